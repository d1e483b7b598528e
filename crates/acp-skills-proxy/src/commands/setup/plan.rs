//! Plans the changes of settings for the arguments of `setup`.

use acp_skills::agents::{self, AgentError};
use acp_skills_setup::{
    SetupError,
    document::{Entry, Ours, SettingsError, Start, program_name},
    edit::Change,
    editors::{Editor, Format},
    program,
};

use super::{Place, flags, no_agent};
use crate::error::UsageError;

/// The arguments, and the current settings.
pub(super) struct Request<'a> {
    pub editor: &'static Editor,
    pub format: &'a Format,
    /// The agents of the settings.
    pub entries: &'a [Entry],
    /// The words that start the proxy.
    pub own: &'a [String],
    /// The flags of the proxy. `None` if none were given.
    pub flags: Option<&'a [String]>,
    /// The name of the agent, in the settings or in the table of known agents.
    pub agent: Option<&'a str>,
    /// The name for a new agent.
    pub name: Option<&'a str>,
    /// The agent's command. Empty if none was given.
    pub command: Vec<String>,
}

/// The changes to make.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub changes: Vec<Change>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// An error that prevented a plan.
pub(super) enum Refused {
    Usage(UsageError),
    Setup(SetupError),
    /// The agent loads all of the skills itself.
    Doubles(UsageError),
    Settings(SettingsError),
    Agent(AgentError),
}

impl Refused {
    /// Returns the error to report.
    pub(super) fn into_error(self, place: &Place<'_>) -> anyhow::Error {
        match self {
            Self::Setup(error) => error.into(),
            Self::Usage(error) | Self::Doubles(error) => error.into(),
            Self::Settings(error) => place.broken(&error).into(),
            Self::Agent(error) => error.into(),
        }
    }
}

impl From<SetupError> for Refused {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<UsageError> for Refused {
    fn from(error: UsageError) -> Self {
        Self::Usage(error)
    }
}

impl From<AgentError> for Refused {
    fn from(error: AgentError) -> Self {
        Self::Agent(error)
    }
}

/// Plans the changes.
pub(super) fn plan(request: &Request<'_>) -> Result<Plan, Refused> {
    let mut plan = Plan::default();
    if let Some(program) = request.command.first() {
        let name =
            request.name.map_or_else(|| format!("{} with skills", program_name(program)), str::to_owned);
        plan.add(request, name, &request.command, Vec::new())?;
    } else if let Some(agent) = request.agent {
        match request.entry(agent) {
            Some(entry) => plan.existing(request, entry)?,
            None => plan.known(request, agent)?,
        }
    } else {
        plan.all(request)?;
    }
    Ok(plan)
}

impl Request<'_> {
    /// Returns the agent of the settings with this name. An exact match wins over one that differs in case.
    fn entry(&self, name: &str) -> Option<&Entry> {
        let exact = self.entries.iter().find(|entry| entry.name == name);
        let alike = |entry: &&Entry| entry.name.to_lowercase() == name.to_lowercase();
        exact.or_else(|| self.entries.iter().find(alike))
    }
}

impl Plan {
    /// Returns the words of the proxy in front of an agent's command, and adds the notes about them.
    fn prefix(&mut self, request: &Request<'_>, agent: &[String]) -> Result<Vec<String>, Refused> {
        let words = request.flags.map_or_else(flags::default, <[String]>::to_vec);
        let chosen = flags::without_doubles(words, agent).map_err(Refused::Doubles)?;
        for note in chosen.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Ok([request.own, &chosen.words, &["--".to_owned()]].concat())
    }

    /// Plans the changes of all agents that have a command. Agents that use the proxy already are updated.
    fn all(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        if request.name.is_some() {
            return Err(UsageError::new("`--name` can only be used with one agent")
                .hint("use `--agent` to select an agent")
                .into());
        }
        let mut has_command = false;
        for entry in request.entries {
            match &entry.start {
                Start::Command(_) => {
                    has_command = true;
                    match self.existing(request, entry) {
                        // The same goes for an agent that has all of the skills already.
                        Err(Refused::Doubles(error)) => {
                            self.notes.push(format!("unchanged: `{}`: {error}", entry.name));
                        }
                        other => other?,
                    }
                }
                // It's fine to skip this agent, because the user asked for all agents and not just for this one.
                Start::Unclear(error) => self.notes.push(format!("unchanged: {}", error.message)),
                Start::Editor => {}
            }
        }
        if has_command {
            return Ok(());
        }
        // Suggest an agent that the editor already starts, as this is most likely the one the user wants.
        let known = request.entries.iter().find(|entry| agents::find(&entry.name).is_ok());
        Err(no_agent(request.editor, known.map_or("claude", |entry| &entry.name)).into())
    }

    /// Plans the change of an agent in the settings.
    fn existing(&mut self, request: &Request<'_>, entry: &Entry) -> Result<(), Refused> {
        let words = match &entry.start {
            Start::Command(words) => words,
            Start::Unclear(error) => return Err(Refused::Settings(error.clone())),
            // If the agent is started by the editor, there is no command to change, so add a second agent instead.
            Start::Editor => return self.known(request, &entry.name),
        };
        match (entry.ours(), request.name) {
            (Some(_), Some(_)) => {
                let message = format!("`{}` already uses the proxy", entry.name);
                Err(UsageError::new(message)
                    .hint("`--name` copies an agent, but only if the agent does not use the proxy yet")
                    .into())
            }
            (Some(ours), None) => self.renew(request, entry, words, ours),
            (None, Some(name)) => self.add(request, name.to_owned(), words, entry.env.clone()),
            (None, None) => {
                let prefix = self.prefix(request, words)?;
                let reached = program::reachable(&words[0], request.editor.is_desktop)?;
                self.notes.extend(reached.notes);
                self.changes.push(Change::Splice {
                    name: entry.name.clone(),
                    before: words[..1].to_vec(),
                    after: [prefix, reached.words].concat(),
                });
                Ok(())
            }
        }
    }

    /// Plans the update of an agent that uses the proxy already: the path of the running program, and the new flags if there are
    /// any.
    fn renew(
        &mut self,
        request: &Request<'_>,
        entry: &Entry,
        words: &[String],
        ours: Ours,
    ) -> Result<(), Refused> {
        let (before, after) = match (request.flags, ours.agent) {
            (None, _) => (&words[..ours.launcher], request.own.to_vec()),
            (Some(_), Some(agent)) => (&words[..agent], self.prefix(request, &words[agent..])?),
            (Some(_), None) => {
                let message =
                    format!("`{}` uses the proxy, but has no `--` before the agent command", entry.name);
                return Err(UsageError::new(message).hint("edit the flags by hand").into());
            }
        };
        if before != after {
            self.changes.push(Change::Splice { name: entry.name.clone(), before: before.to_vec(), after });
        }
        Ok(())
    }

    /// Plans the addition of a known agent.
    fn known(&mut self, request: &Request<'_>, name: &str) -> Result<(), Refused> {
        let agent = agents::find(name).map_err(|error| unknown(request, name, error))?;
        let words = agents::words(agent, |program| which::which(program).ok())?;
        let new_name = match request.name {
            Some(name) => name.to_owned(),
            // In this format, names are used on the command line.
            None if request.format.has_argv => format!("{}-skills", name.to_lowercase()),
            None => format!("{} with skills", agent.name),
        };
        // If the editor already starts this agent, use the same environment variables.
        let same =
            request.entries.iter().find(|entry| entry.name == agent.id && entry.start == Start::Editor);
        let env = same.map(|entry| entry.env.clone()).unwrap_or_default();
        self.add(request, new_name, &words, env)
    }

    fn add(
        &mut self,
        request: &Request<'_>,
        name: String,
        agent: &[String],
        env: Vec<(String, String)>,
    ) -> Result<(), Refused> {
        if let Some(entry) = request.entries.iter().find(|entry| entry.name == name) {
            return match (&entry.start, entry.ours()) {
                (Start::Command(words), Some(ours)) => self.renew(request, entry, words, ours),
                _ => Err(UsageError::new(format!("settings already contain agent `{name}` in line {}", entry.line))
                    .hint(format!(
                        "use `--agent '{name}'` to use the proxy for that agent, or `--name` to select another name"
                    ))
                    .into()),
            };
        }
        let prefix = self.prefix(request, agent)?;
        let reached = program::reachable(&agent[0], request.editor.is_desktop)?;
        self.notes.extend(reached.notes);
        let words = [prefix, reached.words, agent[1..].to_vec()].concat();
        self.changes.push(Change::Add { name, words, env });
        Ok(())
    }
}

/// Returns the error for a name that is neither in the settings nor in the table of known agents.
fn unknown(request: &Request<'_>, name: &str, error: AgentError) -> Refused {
    let theirs: Vec<_> = request
        .entries
        .iter()
        .filter(|entry| entry.command().is_some())
        .map(|entry| format!("`{}`", entry.name))
        .collect();
    if theirs.is_empty() {
        return error.into();
    }
    UsageError::new(format!("unknown agent `{name}`"))
        .hint(format!("{}; agents in settings: {}", error.hint(), theirs.join(", ")))
        .into()
}
