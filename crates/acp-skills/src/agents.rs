//! Agents that are known by name: how each is started, and what was seen of it behind the proxy.
//!
//! The table is `agents.json`: identifiers and packages are those of the [ACP registry](https://agentclientprotocol.com/registry), which
//! `.ci/registry.mjs` compares each night; `seen` is written by the tests with real agents; commands and notes are what was tried. It has no versions to install, so that nobody is held back by an old table. What
//! the proxy does differently for an agent is none of this: the interceptor decides that, by what the agent says of itself.

#[cfg(test)]
mod tests;

use std::{ffi::OsString, path::PathBuf, sync::LazyLock};

use serde::{Deserialize, Serialize};

/// How alike two names have to be, from 0 to 1, for one to be meant by the other.
const ALIKE: f64 = 0.75;

/// An agent that can be started by its identifier.
///
/// ```
/// use acp_skills::agents;
///
/// let agent = agents::find("claude").expect("it is known");
/// assert_eq!(agent.id, "claude-acp");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Agent {
    /// The identifier, in the ACP registry unless [`registry`](Self::registry) says otherwise: `claude-acp`.
    pub id: String,
    /// Other names that people use.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The name for people.
    pub name: String,
    /// What it calls itself in its answer to `initialize` (`agentInfo.name`), where that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<String>,
    /// The installed program with the arguments that make it speak ACP.
    pub program: Vec<String>,
    /// The package of npm that has the program, for `npx`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub npx: Option<String>,
    /// The package of PyPI that has the program, for `uvx`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uvx: Option<String>,
    /// Where it is explained, and can be had when it is no package.
    pub home: String,
    /// Whether the ACP registry has it.
    #[serde(default = "yes")]
    pub registry: bool,
    /// What was seen of it behind the proxy; `None` when it was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// What to know about it, in words that complete a sentence about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// What was seen of an agent behind the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Seen {
    /// The package or program that was tried.
    #[serde(rename = "as")]
    pub program: String,
    /// The version that was tried, without its last part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version that it says of itself, likewise, when that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// Whether it opens no session without an account, so that nothing was seen but its start and its refusals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub login: bool,
    /// How it reaches the skills server: `HTTP` or `stdio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Where the catalog goes: `system prompt` or `first prompt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// What the model works with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Means>,
}

impl Seen {
    /// Whether an agent that says this version of itself is the one that was tried.
    ///
    /// ```
    /// let agent = acp_skills::agents::find("opencode").expect("it is known");
    /// let seen = agent.seen.as_ref().expect("it was tried");
    /// assert!(seen.is_of("1.18.99") && !seen.is_of("1.180.0"));
    /// ```
    pub fn is_of(&self, version: &str) -> bool {
        let tried = self.says.as_ref().or(self.version.as_ref());
        let rest = version.trim_start_matches('v').strip_prefix(tried.map_or("", String::as_str));
        tried.is_some() && rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    }
}

/// What a model works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Means {
    /// The tools of the skills server.
    Tools,
    /// The files, which the catalog names, because the agent gives it no tools of ours.
    Files,
}

/// Why an agent cannot be started by its name. The message says what is wrong, [`hint`](Self::hint) what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// No agent has this name.
    #[error("no agent is known as `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// The identifier that is most like it.
        similar: Option<&'static str>,
    },
    /// It is a package, and what runs packages is not here.
    #[error("`{id}` needs `{needed}` or `{program}`, and neither is in PATH")]
    NoRunner {
        /// The agent.
        id: &'static str,
        /// `npx` or `uvx`.
        needed: &'static str,
        /// The agent's own program.
        program: &'static str,
    },
    /// It is a program to install, and it is not.
    #[error("`{}` is not in PATH, and `{}` is no package that `npx` or `uvx` could run", .0.program[0], .0.id)]
    NotInstalled(&'static Agent),
}

impl AgentError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { similar: Some(similar), .. } => {
                format!("did you mean `{similar}`? `acp-skills-proxy setup --agents` lists all")
            }
            Self::Unknown { .. } => {
                "`acp-skills-proxy setup --agents` lists those that are; the command of any other goes after `--`".to_owned()
            }
            Self::NoRunner { needed: "uvx", .. } => "install uv, which has `uvx`: https://docs.astral.sh/uv".to_owned(),
            Self::NoRunner { .. } => "install Node.js, which has `npx`: https://nodejs.org".to_owned(),
            Self::NotInstalled(agent) => format!(
                "install it from {}; when it is not in PATH, give its command after `--`: `-- /path/to/{}`",
                agent.home,
                agent.program.join(" ")
            ),
        }
    }
}

impl Agent {
    /// The command that starts it: the program if it is installed, else its package with `npx` or `uvx`.
    ///
    /// # Errors
    /// None of them is in PATH.
    pub fn command(&'static self) -> Result<Vec<OsString>, AgentError> {
        let words = self.words(|program| which::which(program).ok())?;
        Ok(words.into_iter().map(OsString::from).collect())
    }

    /// The same, where `find` says where a program is.
    ///
    /// # Errors
    /// It finds none.
    pub fn words(&'static self, find: impl Fn(&str) -> Option<PathBuf>) -> Result<Vec<String>, AgentError> {
        let (program, arguments) =
            self.program.split_first().expect("the table has a program for each agent");
        if find(program).is_some() {
            return Ok(self.program.clone());
        }
        let (runner, package): (&'static str, Vec<String>) = match (&self.npx, &self.uvx) {
            (Some(package), _) => ("npx", vec!["-y".to_owned(), package.clone()]),
            // The package has more programs than one, or one with another name.
            (None, Some(package)) => ("uvx", vec!["--from".to_owned(), package.clone(), program.clone()]),
            (None, None) => return Err(AgentError::NotInstalled(self)),
        };
        if find(runner).is_none() {
            return Err(AgentError::NoRunner { id: &self.id, needed: runner, program });
        }
        Ok([vec![runner.to_owned()], package, arguments.to_vec()].concat())
    }
}

/// All of them, those first that most people use.
pub fn all() -> &'static [Agent] {
    static AGENTS: LazyLock<Vec<Agent>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("agents/agents.json")).expect("a test reads the table")
    });
    &AGENTS
}

/// The agent with this identifier or other name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static Agent, AgentError> {
    let is_meant = |known: &String| known.eq_ignore_ascii_case(name);
    let found = all().iter().find(|agent| is_meant(&agent.id) || agent.aliases.iter().any(is_meant));
    found.ok_or_else(|| AgentError::Unknown { name: name.to_owned(), similar: similar(name) })
}

/// The agent that calls itself this in its answer to `initialize`.
pub fn calling_itself(info: &str) -> Option<&'static Agent> {
    all().iter().find(|agent| agent.info.as_deref() == Some(info))
}

/// The identifier of the agent that has a name like this.
fn similar(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let names = all().iter().flat_map(|agent| {
        let names = std::iter::once(&agent.id).chain(&agent.aliases);
        names.map(|known| (strsim::jaro_winkler(&name, known), agent.id.as_str()))
    });
    let best = names.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= ALIKE).then_some(best.1)
}

fn yes() -> bool {
    true
}
