//! Agents that are known by name: the command that starts each one, and results of running it behind the proxy.
//!
//! The rows are [`Agent`]s; the interceptor owns the table, because it also needs to know where an agent differs from the
//! protocol. Identifiers and packages are those of the [ACP registry](https://agentclientprotocol.com/registry).

#[cfg(test)]
mod tests;

use std::{ffi::OsString, path::PathBuf};

pub use acp_skills_intercept::{Agent, Means, Seen};
pub use acp_skills_runtime::agent::ROOT;

/// The minimum similarity, from 0 to 1, of a name that is suggested in place of an unknown name.
const MIN_SIMILARITY: f64 = 0.75;

/// An agent could not be started by its name. The message says what is wrong, and [`hint`](Self::hint) how to resolve it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// No agent has this name.
    #[error("unknown agent `{name}`")]
    Unknown {
        /// The name that was looked up.
        name: String,
        /// The identifier of the agent with the most similar name, if there is one.
        similar: Option<&'static str>,
    },
    /// The agent is a package, and neither the program itself nor the runner of packages is installed.
    #[error("`{id}` needs `{needed}` or `{program}`, and neither is in PATH")]
    NoRunner {
        /// The agent's identifier.
        id: &'static str,
        /// The runner: `npx` or `uvx`.
        needed: &'static str,
        /// The agent's own program.
        program: &'static str,
    },
    /// The agent has no package, and its program is not installed.
    #[error("`{}` is not in PATH, and `{}` is not a package that `npx` or `uvx` could run", .0.program[0], .0.id)]
    NotInstalled(&'static Agent),
}

impl AgentError {
    /// Returns a hint that resolves the error, without a full stop.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { similar: Some(similar), .. } => {
                format!("did you mean `{similar}`? `acp-skills-proxy setup --agents` lists all agents")
            }
            Self::Unknown { .. } => {
                "`acp-skills-proxy setup --agents` lists the known agents; to use another one, give its command after `--`".to_owned()
            }
            Self::NoRunner { needed: "uvx", .. } => "install uv, which has `uvx`: https://docs.astral.sh/uv".to_owned(),
            Self::NoRunner { .. } => "install Node.js, which has `npx`: https://nodejs.org".to_owned(),
            Self::NotInstalled(agent) => format!(
                "install it from {}; if it is installed outside of PATH, give its command after `--`: `-- /path/to/{}`",
                agent.home,
                agent.program.join(" ")
            ),
        }
    }
}

/// Returns the command that starts an agent: its program if it is in `PATH`, otherwise its package with `npx` or `uvx`.
///
/// # Errors
/// - [`AgentError::NoRunner`] if the agent has a package, and neither the program nor the runner is in `PATH`.
/// - [`AgentError::NotInstalled`] if the agent has no package, and the program is not in `PATH`.
pub fn command(agent: &'static Agent) -> Result<Vec<OsString>, AgentError> {
    let words = words(agent, |program| which::which(program).ok())?;
    Ok(words.into_iter().map(OsString::from).collect())
}

/// Returns the same command as [`command`], as text. `find` returns the path of an installed program.
///
/// # Errors
/// The same as those of [`command`].
pub fn words(
    agent: &'static Agent,
    find: impl Fn(&str) -> Option<PathBuf>,
) -> Result<Vec<String>, AgentError> {
    let (&program, arguments) = agent.program.split_first().expect("the table has a program for each agent");
    if find(program).is_some() {
        return Ok(owned(agent.program));
    }
    let (runner, package) = match (agent.npx, agent.uvx) {
        (Some(package), _) => ("npx", vec!["--prefix", ROOT, "-y", package]),
        // With `--from`, this also works for packages where the program doesn't have the same name as the package.
        (None, Some(package)) => ("uvx", vec!["--from", package, program]),
        (None, None) => return Err(AgentError::NotInstalled(agent)),
    };
    if find(runner).is_none() {
        return Err(AgentError::NoRunner { id: agent.id, needed: runner, program });
    }
    Ok(owned(&[&[runner], &package[..], arguments].concat()))
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Returns all known agents, the most used ones first.
pub fn all() -> &'static [Agent] {
    acp_skills_intercept::known_agents()
}

/// Returns the agent with this identifier or alias. Case is ignored.
///
/// ```
/// use acp_skills::agents;
///
/// let agent = agents::find("claude").expect("a known agent");
/// assert_eq!(agent.id, "claude-acp");
/// ```
///
/// # Errors
/// Returns [`AgentError::Unknown`] if no agent has this name.
pub fn find(name: &str) -> Result<&'static Agent, AgentError> {
    let has_name = |agent: &&Agent| names(agent).any(|known| known.eq_ignore_ascii_case(name));
    let found = all().iter().find(has_name);
    found.ok_or_else(|| AgentError::Unknown { name: name.to_owned(), similar: similar(name) })
}

/// Returns the agent that a command starts, by its program or its package. Returns `None` if it is not a known agent.
///
/// ```
/// use acp_skills::agents;
///
/// let words = ["npx", "-y", "@google/gemini-cli@latest", "--acp"].map(str::to_owned);
/// assert_eq!(agents::of_command(&words), agents::find("gemini").ok());
/// ```
pub fn of_command(words: &[String]) -> Option<&'static Agent> {
    let is_program = |agent: &&Agent| {
        // The first word can be an interpreter.
        words.iter().take(2).any(|word| {
            let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
            let name = name.strip_suffix(".exe").or(name.strip_suffix(".cmd")).unwrap_or(name);
            name == agent.program[0]
        })
    };
    let is_package = |agent: &&Agent| {
        let is_version = |rest: &str| rest.is_empty() || rest.starts_with(['@', '=', '>', '<', '~']);
        let packages = [agent.npx, agent.uvx];
        let mut packages = packages.into_iter().flatten();
        packages.any(|package| words.iter().any(|word| word.strip_prefix(package).is_some_and(is_version)))
    };
    all().iter().find(is_package).or_else(|| all().iter().find(is_program))
}

/// Returns the agent with exactly this `agentInfo.name` in its response to `initialize`.
pub fn calling_itself(info: &str) -> Option<&'static Agent> {
    all().iter().find(|agent| agent.info == Some(info))
}

/// Returns the identifier and the aliases of an agent.
fn names(agent: &Agent) -> impl Iterator<Item = &'static str> {
    std::iter::once(agent.id).chain(agent.aliases.iter().copied())
}

/// Returns the identifier of the agent with the most similar name, if one is similar enough.
fn similar(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let scored = all().iter().flat_map(|agent| {
        let name = &name;
        names(agent).map(move |known| (strsim::jaro_winkler(name, known), agent.id))
    });
    let (similarity, id) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (similarity >= MIN_SIMILARITY).then_some(id)
}
