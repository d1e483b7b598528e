//! [`Query`]: the interceptor's questions to the host, with the types of their answers.
//!
//! A query is one of the [tasks](crate::Task) in [`Actions`](crate::Actions). Its answer is an [`Input`](crate::Input). Until
//! the answer arrives, the interceptor holds back only the messages that depend on it.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use skills_core::{Skill, SkillName, SkillSet, catalog::Guide, set::Unapproved};
use thiserror::Error;

use crate::{
    active_skills::ActiveSkills,
    events::EventKind,
    keys::{SessionKey, Ticket},
    trace_context::TraceContext,
    workspace::Workspace,
};

/// An error of the host: a clause for the user, such as `the disk is full`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct HostError(pub String);

/// The transport between the agent and the skills server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Over the ACP connection itself: `mcp/message` (unstable).
    Acp,
    /// Streamable HTTP on loopback, or at the address of [`Listen`].
    Http,
    /// A bridge process that is started by the agent.
    Stdio,
}

impl Transport {
    /// Returns the name of the transport, as in `--mcp`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Http => "http",
            Self::Stdio => "stdio",
        }
    }
}

/// An address that the user has chosen for the skills server, so that an agent elsewhere can connect to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The address to listen on. The port 0 selects a free one.
    pub address: SocketAddr,
    /// The start of the URL for the agent, such as `http://host.docker.internal:7000`, without a `/` at the end. Without a port, it has
    /// the port of the listener. `None` if the agent connects to `address` itself.
    pub url: Option<String>,
}

/// The address of one session's MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `mcp/message` with this server id.
    Acp {
        /// The id, unique in this run of the proxy.
        server_id: String,
    },
    /// A URL and the token for the `Authorization: Bearer` header.
    Http {
        /// `http://127.0.0.1:PORT/PATH`, or the same with the address of [`Listen`].
        url: String,
        /// The token.
        token: String,
    },
    /// A command to run.
    Stdio {
        /// The absolute path of the program.
        command: String,
        /// The arguments.
        args: Vec<String>,
        /// Variables for the environment of the process.
        env: Vec<(String, String)>,
    },
}

/// A question to the host. There is no limit to the time that the host needs for an answer.
#[derive(Debug, Clone)]
pub enum Query {
    /// Provide what a session needs before its setup request is forwarded. Answered with
    /// [`Input::SetUp`](crate::Input::SetUp).
    SetUp {
        /// The session.
        session: SessionKey,
        /// The ticket to return in the answer.
        ticket: Ticket,
        /// The needs of the session.
        needs: Needs,
    },
    /// Fetch a text for a prompt. Answered with [`Input::Fetched`](crate::Input::Fetched) or
    /// [`Input::NotFetched`](crate::Input::NotFetched).
    Fetch {
        /// The session that provides the skills.
        session: SessionKey,
        /// The ticket to return in the answer.
        ticket: Ticket,
        /// The text.
        wanted: Wanted,
    },
    /// Resolve the links of a path. Answered with [`Input::Resolved`](crate::Input::Resolved).
    Resolve {
        /// The session.
        session: SessionKey,
        /// The ticket to return in the answer.
        ticket: Ticket,
        /// The path as the agent wrote it: absolute, or relative to the working directory. The file may not exist.
        path: PathBuf,
        /// The directories of the session.
        workspace: Workspace,
    },
    /// Save which skills are enabled or disabled in new sessions of a directory. Answered with
    /// [`Input::SwitchesSaved`](crate::Input::SwitchesSaved).
    SaveSwitches {
        /// The session in which the command was used.
        session: SessionKey,
        /// The ticket to return in the answer.
        ticket: Ticket,
        /// The directory as the client wrote it.
        cwd: PathBuf,
        /// The skills.
        names: Vec<SkillName>,
        /// True if the skills are turned on.
        on: bool,
    },
    /// Save the user's decision about unapproved skills of the project. Answered with
    /// [`Input::TrustSaved`](crate::Input::TrustSaved).
    Trust {
        /// The session in which the decision was made.
        session: SessionKey,
        /// The ticket to return in the answer.
        ticket: Ticket,
        /// The directories of the session.
        workspace: Workspace,
        /// The skills in the versions that the user was shown.
        skills: Vec<Unapproved>,
        /// True if the user approves the skills, false if the user refuses them.
        trusted: bool,
        /// The directories of all sessions. The decision may change the skills of each.
        workspaces: Vec<Workspace>,
    },
    /// Take the user's trust in all skills of the project with certain names back. Answered with
    /// [`Input::TrustSaved`](crate::Input::TrustSaved).
    Untrust {
        /// The session in which the decision was made.
        session: SessionKey,
        /// The ticket to return in the answer.
        ticket: Ticket,
        /// The directories of the session.
        workspace: Workspace,
        /// The names. The session may have no skill with one of them, for example because its directory is missing at the moment.
        names: Vec<SkillName>,
        /// The skills of the session with these names.
        skills: Vec<Arc<Skill>>,
        /// The directories of all sessions. The decision may change the skills of each.
        workspaces: Vec<Workspace>,
    },
    /// Return the current skills of workspaces. Answered with [`Input::Skills`](crate::Input::Skills). An answer is never
    /// older than the one before it.
    Skills {
        /// The directories of sessions.
        workspaces: Vec<Workspace>,
        /// The reason for the query, to return in the answer.
        reason: Reason,
    },
}

impl Query {
    /// Returns the session that the query belongs to, if it belongs to a single one.
    pub fn session(&self) -> Option<SessionKey> {
        match self {
            Self::SetUp { session, .. }
            | Self::Fetch { session, .. }
            | Self::Resolve { session, .. }
            | Self::SaveSwitches { session, .. }
            | Self::Trust { session, .. }
            | Self::Untrust { session, .. } => Some(*session),
            Self::Skills { .. } => None,
        }
    }
}

/// The result of [`Query::SaveSwitches`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSwitches {
    /// The skills.
    pub names: Vec<SkillName>,
    /// True if the skills were turned on.
    pub on: bool,
    /// The error if the switches could not be saved.
    pub saved: Result<(), HostError>,
}

/// The result of [`Query::Trust`] and [`Query::Untrust`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustOutcome {
    /// The skills for which this decision is in effect.
    pub done: Vec<SkillName>,
    /// The skills for which this decision could not be applied, with the reason as a clause.
    pub failed: Vec<(SkillName, String)>,
    /// The names for which there was no trust to take back.
    pub unknown: Vec<SkillName>,
    /// The names of which no skill is there at the moment. A skill that appears waits for the user's trust.
    pub absent: Vec<SkillName>,
    /// Skills that are still used, although the trust in skills of their names was taken back, each with its place.
    pub remaining: Vec<(SkillName, String)>,
    /// The error if the decision could not be saved. Then it is in effect for this run only.
    pub saved: Result<(), HostError>,
}

impl Default for TrustOutcome {
    fn default() -> Self {
        Self {
            done: Vec::new(),
            failed: Vec::new(),
            unknown: Vec::new(),
            absent: Vec::new(),
            remaining: Vec::new(),
            saved: Ok(()),
        }
    }
}

/// The needs of a session that is being set up.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// The directories of the session.
    pub workspace: Workspace,
    /// The skills of the session. If `None`, the host finds the skills of the workspace.
    pub skills: Option<SkillSet>,
    /// The skills that the client provides for the session.
    pub client_skills: SkillSet,
    /// The MCP servers of the client that become skills of the session, or that are asked for skills.
    pub servers: Vec<ClientServer>,
    /// The agent's id of the session from which to load active skills.
    pub recall: Option<String>,
    /// The transport for the skills server. `None` if the agent gets no server. A session without skills needs no server either.
    pub transport: Option<Transport>,
    /// The address of the skills server over HTTP, if the user has chosen one.
    pub listen: Option<Listen>,
    /// True if the schemas of the tools should not list the names of skills, because the agent refuses calls with other names.
    pub open_names: bool,
    /// The agent's name and version, to load whether this agent connects to the skills server.
    pub agent: Option<String>,
    /// The trace of the client that the session belongs to.
    pub trace: Option<Box<TraceContext>>,
}

/// An MCP server of the client that becomes a skill, or that is asked for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientServer {
    /// True if the server becomes a skill, so that the agent doesn't get it.
    pub on_demand: bool,
    /// True if the server is asked for skills.
    pub offers: bool,
    /// The name of the server.
    pub name: String,
    /// The entry in `mcpServers`, as JSON. It can contain secrets.
    pub entry: Vec<u8>,
}

/// The answer to [`Query::SetUp`].
#[derive(Debug, Clone, Default)]
pub struct Provisions {
    /// The skills of the session, without those of the client.
    pub skills: SkillSet,
    /// The skills with the servers of the client, and the skills that these servers offer. Servers that cannot become skills are missing.
    pub servers: SkillSet,
    /// The names of disabled skills in the directory. The skills may not exist.
    pub off: Vec<SkillName>,
    /// The skills that were active when the session was last open.
    pub active: ActiveSkills,
    /// The address of the session's MCP server, or the error if it could not be opened. `None` if no server is needed.
    pub endpoint: Option<Result<Endpoint, HostError>>,
    /// True if the agent did not connect when a connection was last awaited.
    pub never_connects: bool,
    /// The directories of the session without links.
    pub real: Workspace,
    /// The directories of the session, as in the query.
    pub workspace: Workspace,
}

/// The reason for [`Query::Skills`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The library noticed that skills have changed. The duration is the time that it needed.
    Changed(Duration),
    /// Sessions were set up during a refresh of all sessions. The duration is the time of that refresh.
    CatchUp(Duration),
    /// A user entered `/skills reload`, and waits for the answer.
    Reload(SessionKey, Ticket),
    /// A user entered a command that lists skills which wait for approval. The list has to show the files as they are now.
    Listing(SessionKey, Ticket),
    /// The client asked for a list of skills without a session.
    List(Ticket),
}

/// A text that the host can fetch for a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The activation text of a skill.
    Skill {
        /// The name of the skill.
        name: String,
        /// The words after the command. Empty if there are none.
        arguments: String,
        /// The way in which the model uses the skill.
        guide: Guide,
    },
    /// The activation texts of the skills that match some words best.
    BestFor {
        /// The words.
        words: String,
        /// The way in which the model uses the skills.
        guide: Guide,
    },
    /// The activation texts of these skills, one by one in [`Fetched::skills`].
    Active {
        /// The names of the skills.
        names: Vec<SkillName>,
        /// The way in which the model uses the skills.
        guide: Guide,
        /// The words for [`Fetched::text`], which is then that of [`Wanted::BestFor`].
        best_for: Option<String>,
    },
    /// The name of the skill that clearly fits these words best, as [`Fetched::hint`].
    Hint {
        /// The words of the prompt.
        words: String,
        /// Skills that are not named.
        except: Vec<SkillName>,
    },
}

/// The instructions of skills, as the model gets them.
pub type Instructions = Vec<(SkillName, String)>;

/// The answer to [`Query::Fetch`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The text. `None` if no skill matches, or if the skill no longer exists.
    pub text: Option<String>,
    /// The activations in the text.
    pub activations: Vec<EventKind>,
    /// The texts for [`Wanted::Active`]. Skills that cannot be activated are missing.
    pub skills: Instructions,
    /// The skill for [`Wanted::Hint`].
    pub hint: Option<SkillName>,
}

/// The answer to [`Query::Fetch`] if the text cannot be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFetched {
    /// The reason, as a sentence for the user.
    pub why: String,
    /// The activation that failed.
    pub failed: Option<EventKind>,
}

/// The answer to [`Query::Resolve`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The absolute path. `None` if it passes through a link below the directories of the session, or cannot be resolved.
    pub path: Option<PathBuf>,
    /// The directories of the session without links. If one cannot be resolved, this is the directory as the client wrote it.
    pub workspace: Workspace,
}

/// The answer to [`Query::Skills`].
#[derive(Debug, Clone)]
pub struct Refreshed {
    /// The skills by workspace.
    pub skills: Vec<(Workspace, SkillSet)>,
    /// The current [`Provisions::servers`] of the sessions that have any. A set without a change is the same snapshot as before.
    pub servers: Vec<(SessionKey, SkillSet)>,
    /// The time that it took to find them.
    pub took: Duration,
    /// The reason in the query.
    pub reason: Reason,
}

impl Refreshed {
    /// Returns an answer without any directory, which changes nothing.
    pub fn nothing(reason: Reason) -> Self {
        Self { skills: Vec::new(), servers: Vec::new(), took: Duration::ZERO, reason }
    }
}
