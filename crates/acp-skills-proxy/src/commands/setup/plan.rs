//! What is to be changed in settings for what was asked.

use acp_skills::agents::{self, AgentError};

use super::{Place, default_flags, no_agent};
use crate::{
    error::UsageError,
    setup::{
        document::{Entry, Ours, SettingsError, Start, program_name},
        edit::Change,
        editors::{Editor, Format},
        program,
    },
};

/// What was asked, and what there is.
pub(super) struct Request<'a> {
    pub editor: &'static Editor,
    pub format: &'a Format,
    /// The agents of the settings.
    pub entries: &'a [Entry],
    /// The words that start us.
    pub own: &'a [String],
    /// The flags; `None` when none were given.
    pub flags: Option<&'a [String]>,
    /// The agent by its name.
    pub agent: Option<&'a str>,
    /// What it is to be called.
    pub name: Option<&'a str>,
    /// The agent's command; empty when none was given.
    pub command: Vec<String>,
}

/// What is to be changed.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub changes: Vec<Change>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// Why nothing is.
pub(super) enum Refused {
    Usage(UsageError),
    Settings(SettingsError),
    Agent(AgentError),
}

impl Refused {
    /// The error for people.
    pub(super) fn told(self, place: &Place<'_>) -> anyhow::Error {
        match self {
            Self::Usage(error) => error.into(),
            Self::Settings(error) => place.broken(&error).into(),
            Self::Agent(error) => error.into(),
        }
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

/// Finds out what is to be changed.
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
    /// The agent of the settings with this name, be it in other letters.
    fn entry(&self, name: &str) -> Option<&Entry> {
        let exact = self.entries.iter().find(|entry| entry.name == name);
        let alike = |entry: &&Entry| entry.name.to_lowercase() == name.to_lowercase();
        exact.or_else(|| self.entries.iter().find(alike))
    }

    /// Our words in front of an agent's command.
    fn prefix(&self) -> Vec<String> {
        let flags = self.flags.map_or_else(default_flags, <[String]>::to_vec);
        [self.own, &flags, &["--".to_owned()]].concat()
    }
}

impl Plan {
    /// Every agent that has a command; those that go through the proxy already are brought up to date.
    fn all(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        if request.name.is_some() {
            return Err(UsageError::new("`--name` is for one agent").hint("name it with `--agent`").into());
        }
        let mut has_command = false;
        for entry in request.entries {
            match &entry.start {
                Start::Command(_) => {
                    has_command = true;
                    self.existing(request, entry)?;
                }
                // Whoever asks for all agents does not ask for one that nobody understands.
                Start::Unclear(error) => self.notes.push(format!("left as it is: {}", error.message)),
                Start::Editor => {}
            }
        }
        if has_command {
            return Ok(());
        }
        // One that the editor starts itself is the one that people use.
        let known = request.entries.iter().find(|entry| agents::find(&entry.name).is_ok());
        Err(no_agent(request.editor, known.map_or("claude", |entry| &entry.name)).into())
    }

    /// An agent that the settings have.
    fn existing(&mut self, request: &Request<'_>, entry: &Entry) -> Result<(), Refused> {
        let words = match &entry.start {
            Start::Command(words) => words,
            Start::Unclear(error) => return Err(Refused::Settings(error.clone())),
            // The editor installs and starts it itself; a second one beside it has a command.
            Start::Editor => return self.known(request, &entry.name),
        };
        match (entry.ours(), request.name) {
            (Some(_), Some(_)) => {
                let message = format!("`{}` goes through the proxy already", entry.name);
                Err(UsageError::new(message).hint("`--name` makes another agent of one that does not").into())
            }
            (Some(ours), None) => self.renew(request, entry, words, ours),
            (None, Some(name)) => self.add(request, name.to_owned(), words, entry.env.clone()),
            (None, None) => {
                let reached = program::reachable(&words[0], request.editor.is_desktop)?;
                self.notes.extend(reached.notes);
                self.changes.push(Change::Splice {
                    name: entry.name.clone(),
                    before: words[..1].to_vec(),
                    after: [request.prefix(), reached.words].concat(),
                });
                Ok(())
            }
        }
    }

    /// One that goes through the proxy already: by the program that runs now, and with other flags if there are any.
    fn renew(
        &mut self,
        request: &Request<'_>,
        entry: &Entry,
        words: &[String],
        ours: Ours,
    ) -> Result<(), Refused> {
        let (before, after) = match (request.flags, ours.agent) {
            (None, _) => (&words[..ours.launcher], request.own.to_vec()),
            (Some(flags), Some(agent)) => {
                (&words[..agent], [request.own, flags, &["--".to_owned()]].concat())
            }
            (Some(_), None) => {
                let message =
                    format!("`{}` goes through the proxy, but has no `--` in front of an agent", entry.name);
                return Err(UsageError::new(message).hint("change its flags by hand").into());
            }
        };
        if before != after {
            self.changes.push(Change::Splice { name: entry.name.clone(), before: before.to_vec(), after });
        }
        Ok(())
    }

    /// One that is known by name.
    fn known(&mut self, request: &Request<'_>, name: &str) -> Result<(), Refused> {
        let agent = agents::find(name).map_err(|error| unknown(request, name, error))?;
        let words = agents::words(agent, |program| which::which(program).ok())?;
        let new_name = match request.name {
            Some(name) => name.to_owned(),
            // There a name is a word of a command line.
            None if request.format.has_argv => format!("{}-skills", name.to_lowercase()),
            None => format!("{} with skills", agent.name),
        };
        // The one that the editor starts itself has what the user gave it.
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
                _ => Err(UsageError::new(format!("there is an agent `{name}` in line {}", entry.line))
                    .hint(format!(
                        "`--agent '{name}'` puts the proxy in front of that one; `--name` calls the new one something else"
                    ))
                    .into()),
            };
        }
        let reached = program::reachable(&agent[0], request.editor.is_desktop)?;
        self.notes.extend(reached.notes);
        let words = [request.prefix(), reached.words, agent[1..].to_vec()].concat();
        self.changes.push(Change::Add { name, words, env });
        Ok(())
    }
}

/// No agent has the name: neither in the settings nor in the table.
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
    UsageError::new(format!("no agent is known as `{name}`"))
        .hint(format!("{}; the settings have {}", error.hint(), theirs.join(", ")))
        .into()
}
