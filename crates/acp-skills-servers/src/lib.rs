//! MCP servers behind skills. Their tools are not given to the agent: a skill describes them when it is activated, and
//! `call_skill_tool` passes calls on.
//!
//! **This crate has no stable API.** It changes with the program `acp-skills-proxy`. Rust programs should use the crate
//! `acp-skills` instead.
//!
//! # Modules
//!
//! | module | responsible for |
//! |---|---|
//! | [`processes`] | all child processes, so that none outlives the proxy |
//! | `provider` | the tools of one server, as a provider of `skills-core` |
//! | `slot` | starting a server once, and starting it again after it has ended |
//! | `connection` | the connection to a running server: listing and calling its tools |
//! | `listing` | the tools of a running server, as they were listed last |
//! | `messages` | JSON-RPC over that connection, in both directions |
//! | `process`, `stdio`, `stderr` | servers that are programs |
//! | `form` | forms that a server shows to the user |
//! | `hidden` | the values of the configuration that are not shown |
//! | `http` | servers with streamable HTTP |
//! | [`skills`] | skills that servers offer |
//! | `client_entry` | the servers in requests of the client |
//! | `client_servers` | the client's servers as skills |
//! | `session` | the session of a call: its servers, its directories, and questions to the user |
//! | `values` | values with `${NAME}`, and where secrets come from |
//! | `variables` | environment variables with such values, for scripts and command tools |
//!
//! A server is started when its skill is first used in a session, in the directory of the session. It ends with the session, or
//! with the proxy if it is shared.

mod client_entry;
mod client_servers;
mod connection;
mod form;
mod hidden;
mod http;
mod listing;
mod messages;
mod process;
pub mod processes;
mod provider;
mod session;
pub mod skills;
mod slot;
mod stderr;
mod stdio;
mod values;
mod variables;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use globset::GlobSet;
use serde::Deserialize;
use skills_sources::policy::Server;

pub use self::{
    client_servers::{ClientServers, ServerCost},
    messages::{Progress, progress_channel},
    provider::ServerProvider,
    session::{CallLink, SessionLink},
    values::{Secret, Secrets, ValueError},
    variables::{CommandWithVariables, SkillVariables},
};

/// The description of an MCP server.
#[derive(Debug, Clone, Default)]
pub struct ToolServer {
    /// The name of the skill, which users see with each call.
    pub skill: String,
    /// The way to reach the server.
    pub address: Address,
    /// True if all sessions use the same process. By default, each session has its own.
    pub shared: bool,
    /// The tools that the model may use. By default, all of them.
    pub tools: ToolFilter,
    /// The calls that the user is asked about.
    pub ask: Ask,
    /// The time limits.
    pub limits: Limits,
    /// Values for `${NAME}` in the environment and in headers.
    pub secrets: Secrets,
}

impl ToolServer {
    /// Returns the server and the names of its environment variables, for a decision of a policy.
    pub(crate) fn for_policy(&self) -> (Server<'_>, impl Iterator<Item = &str>) {
        let (server, env) = match &self.address {
            Address::Command { program, args, env, .. } => (Server::Program(program, args), &env[..]),
            Address::Http { url, .. } => (Server::Url(url), &[][..]),
        };
        (server, env.iter().map(|(name, _)| name.as_str()))
    }

    /// Returns a text that identifies the server by its name and its address, without secrets. `session` is the directory in which a
    /// program runs unless it has its own. The directory is a part of the text if the program or an argument is a file in it, because
    /// another directory has another file with this name.
    pub(crate) fn identity(&self, session: Option<&Path>) -> String {
        match &self.address {
            Address::Command { program, args, cwd, .. } => {
                let text = format!("mcp {}\n{program} {args:?}", self.skill);
                let dir = cwd.as_deref().or(session).unwrap_or(Path::new("."));
                let is_in_dir = |name: &String| {
                    !name.is_empty()
                        && Path::new(name).is_relative()
                        && dir.join(name).symlink_metadata().is_ok()
                };
                if !args.iter().chain([program]).any(is_in_dir) {
                    return text;
                }
                let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
                format!("{text}\n{}", dir.display())
            }
            Address::Http { url, .. } => format!("mcp {}\n{url}", self.skill),
        }
    }
}

/// The way to reach an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A program that speaks MCP on its standard input and output.
    Command {
        /// The program: a path, or a name to find in `PATH`.
        program: String,
        /// The arguments.
        args: Vec<String>,
        /// Environment variables to set in addition to those of the proxy. The values can contain `${NAME}`.
        env: Vec<(String, String)>,
        /// The working directory. The default is the session's directory.
        cwd: Option<PathBuf>,
    },
    /// The URL of a server with streamable HTTP.
    Http {
        /// The URL.
        url: String,
        /// Headers for each request. The values can contain `${NAME}`.
        headers: Vec<(String, String)>,
    },
}

impl Default for Address {
    fn default() -> Self {
        Self::Http { url: String::new(), headers: Vec::new() }
    }
}

/// The tools of a server that the model may use.
#[derive(Debug, Clone, Default)]
pub struct ToolFilter {
    /// Only tools that match are used, if set.
    pub include: Option<GlobSet>,
    /// Tools that match are not used.
    pub exclude: Option<GlobSet>,
}

impl ToolFilter {
    fn takes(&self, tool: &str) -> bool {
        self.include.as_ref().is_none_or(|globs| globs.is_match(tool))
            && !self.exclude.as_ref().is_some_and(|globs| globs.is_match(tool))
    }
}

/// The calls of a server's tools that the user is asked about, if the agent has not asked about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// All calls.
    #[default]
    Always,
    /// Calls of tools that the server does not mark as read-only.
    Writes,
    /// No calls.
    Never,
}

/// The time limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time for starting a server or connecting to it. The default is 30 seconds.
    pub start: Duration,
    /// The time for listing its tools. The default is 30 seconds.
    pub list: Duration,
    /// The time for a call, counted from its last progress. The default is 5 minutes.
    pub call: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let start = Duration::from_secs(30);
        Self { start, list: start, call: Duration::from_mins(5) }
    }
}

/// The error of a server. The model reads its text, so it contains no values of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ServerError {
    #[error("program `{0}` not found")]
    NotFound(String),
    #[error("cannot start program `{program}`: {reason}")]
    NotStarted { program: String, reason: String },
    #[error("{0}")]
    Value(#[from] ValueError),
    #[error("server did not {what} within {} s", limit.as_secs_f64())]
    Timeout { what: &'static str, limit: Duration },
    #[error("server has ended")]
    Ended,
    #[error("{error}; the last lines of its stderr: {lines}")]
    Explained { error: Box<Self>, lines: String },
    #[error("server has ended twice; activate the skill to start it again")]
    EndedTwice,
    #[error("server answered with error {code}: {message}")]
    Refused { code: i64, message: String },
    #[error("server sent an invalid answer: {0}")]
    Invalid(&'static str),
    #[error("request to server failed: {0}")]
    Http(String),
    #[error("call was cancelled, or its skill was removed")]
    Cancelled,
    #[error("`uri` must be the address of a resource; skills are loaded with `activate_skill`")]
    NoResource,
    #[error("server offers no skills")]
    NoSkills,
    #[error("the user declined the call")]
    Declined,
    #[error(
        "the user cannot be asked about the call here. To allow the calls of this server, the user can set `ask: never` for it in skills.yaml"
    )]
    CannotAsk,
    #[error("the `allowed-tools` of the active skills don't include this tool")]
    NotAllowed,
    #[error("`input` must be an object")]
    Input,
}

impl ServerError {
    /// Describes the error without any text of the server. Use this where the user has to approve each text that the
    /// model reads.
    fn without_text(&self) -> String {
        match self {
            Self::Explained { error, .. } => error.without_text(),
            Self::Refused { code, .. } => format!("server answered with error {code}"),
            Self::Http(_) => "request to server failed".to_owned(),
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trust in a server applies to another directory only if its program doesn't come from the directory.
    #[test]
    fn servers_from_a_directory_are_known_by_it() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for dir in &dirs {
            std::fs::write(dir.path().join("server.js"), "").unwrap();
        }
        let absolute = dirs[0].path().join("server.js").to_string_lossy().into_owned();
        for (program, args, is_same) in [
            ("npx", &["-y", "@acme/docs"] as &[_], true),
            (&*absolute, &[], true),
            ("node", &[&*absolute, ""], true),
            ("node", &["./missing.js"], true),
            ("./server.js", &[], false),
            ("node", &["server.js"], false),
            ("uvx", &["."], false),
        ] {
            let address = |cwd: Option<PathBuf>| Address::Command {
                program: program.to_owned(),
                args: args.iter().map(ToString::to_string).collect(),
                env: Vec::new(),
                cwd,
            };
            let of = |cwd, session| {
                ToolServer { skill: "docs".into(), address: address(cwd), ..ToolServer::default() }
                    .identity(session)
            };
            let [first, second] = [dirs[0].path(), dirs[1].path()];
            assert_eq!(of(None, Some(first)) == of(None, Some(second)), is_same, "{program} {args:?}");
            assert_eq!(of(None, Some(first)), of(Some(first.to_owned()), Some(second)), "{program} {args:?}");
        }
    }
}
