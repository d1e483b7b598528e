//! The decisions: a message from the client or the agent in, messages out.
//!
//! Pure: no I/O, no clock, no task. Whoever moves the bytes (`relay`, `chain`) gives each line to
//! [`Interceptor::from_client`] or [`Interceptor::from_agent`], everything else to [`Interceptor::happened`], and does
//! what the [`Actions`] say. What is decided where:
//!
//! | file | decides |
//! |---|---|
//! | `client` | what becomes of a message from the client |
//! | `agent` | what becomes of a message from the agent |
//! | `servers` | the entry in `mcpServers` |
//! | `placement` | how the catalog reaches the model |
//! | `prompt` | what is put in front of a prompt, and which prompts wait |
//! | `strip` | how our text is taken out again of what comes back |
//! | `echo` | the same for a message that comes back as a whole |
//! | `history` | what the agent remembers of what the model was told |
//! | `menu` | our commands in the list that the client shows |
//! | `commands` | which prompts are commands of ours, and what becomes of them |
//! | `expansion` | how a command is written for the agent, and what of it the user sees again |
//! | `overview` | what `/skills` answers |
//! | `reload` | what becomes of sessions when there are other skills, and what the model is told of it |
//! | `version` | what differs between versions of the protocol |
//! | `permission`, `patterns` | requests for permission that the user need not see |
//! | `record` | what is recorded, and what is remembered of a session |

mod agent;
mod client;
mod commands;
mod echo;
pub mod events;
mod expansion;
mod history;
mod host;
pub mod menu;
mod overview;
mod patterns;
mod permission;
pub mod placement;
mod prompt;
mod record;
mod reload;
pub mod servers;
pub mod session;
mod strip;
#[cfg(test)]
mod tests;
mod version;

use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use serde::Deserialize;
use skills_core::catalog::CatalogOptions;

pub use self::host::{Actions, Effect, Endpoint, Event, Host, Level, Pass, Reloaded, Transport, Wanted};
pub use self::{
    permission::{Approve, ToolPolicy},
    version::Version,
};
use crate::session::{By, SessionKey, Sessions};
use acp_skills_wire::{Class, Classifier, Id, Message, Node, build};

/// How the agent is to reach our MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum McpMode {
    /// By what the agent advertises.
    #[default]
    Auto,
    /// Over the ACP connection.
    Acp,
    /// HTTP on loopback.
    Http,
    /// A bridge process.
    Stdio,
    /// Not at all: the model reads the files with its own tools.
    Off,
}

/// Where the catalog is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum CatalogIn {
    /// The cleanest way that the agent offers.
    #[default]
    Auto,
    /// The system prompt where the agent takes one, else the prompt.
    System,
    /// The first prompt.
    Prompt,
    /// Nowhere.
    Off,
}

/// How skills are activated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// The model does it, with our tools or by reading the files.
    #[default]
    Model,
    /// The proxy does it: it puts the skills that fit a prompt in front of it. For agents without tools.
    Prompt,
    /// The model does it where it has our tools, else the proxy.
    Hybrid,
}

/// What the user decided.
#[derive(Debug, Clone)]
pub struct Policy {
    /// How the agent is to reach our MCP server.
    pub mcp: McpMode,
    /// How long a first prompt waits for the agent to have our tools.
    pub mcp_wait: Duration,
    /// Where the catalog is to go.
    pub catalog_in: CatalogIn,
    /// How the catalog is rendered.
    pub catalog: CatalogOptions,
    /// How skills are activated.
    pub activation: Activation,
    /// Whether `$NAME` invokes a skill as `/NAME` does.
    pub dollar: bool,
    /// Which requests for permission are granted because the call is ours.
    pub approve: Approve,
    /// What the `allowed-tools` of active skills mean.
    pub tool_policy: ToolPolicy,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mcp: McpMode::Auto,
            mcp_wait: Duration::from_secs(2),
            catalog_in: CatalogIn::Auto,
            catalog: CatalogOptions::default(),
            activation: Activation::Model,
            dollar: false,
            approve: Approve::Own,
            tool_policy: ToolPolicy::Permissive,
        }
    }
}

/// What the agent said of itself in its answer to `initialize`.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that an agent takes or not")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentFacts {
    /// The version of the protocol that it settled on.
    pub version: Version,
    /// It takes MCP servers over HTTP.
    pub mcp_http: bool,
    /// It does not take MCP servers over stdio.
    pub no_mcp_stdio: bool,
    /// It takes MCP servers over the ACP connection (unstable).
    pub mcp_acp: bool,
    /// It takes the field `systemPrompt` (draft).
    pub system_prompt: bool,
    /// Which agent it is, where that matters.
    pub kind: AgentKind,
    /// The name that it gives itself.
    pub name: Option<String>,
}

/// Agents whose ways differ from the protocol, or from what others do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentKind {
    /// Claude's adapter.
    Claude,
    /// Codex's adapter.
    Codex,
    /// Gemini, which has a tool of its own named `activate_skill`.
    Gemini,
    /// Any other.
    #[default]
    Other,
}

impl AgentKind {
    /// The agent with this `agentInfo.name`.
    fn of(name: &str) -> Self {
        let is = |part: &str| name.contains(part);
        if is("claude-agent-acp") || is("claude-code-acp") {
            Self::Claude
        } else if is("codex-acp") {
            Self::Codex
        } else if is("gemini") {
            Self::Gemini
        } else {
            Self::Other
        }
    }
}

impl AgentFacts {
    /// What the result of `initialize` says.
    pub fn read(result: Node<'_>) -> Self {
        let version = Version::settled(result);
        let places = version.places();
        // An object marker or a flag, as the version has it and as texts before it had it.
        let marked = |node: Option<Node<'_>>| {
            node.is_some_and(|node| !node.is_null() && node.as_bool() != Some(false))
        };
        let mcp = |transport| marked(result.at(places.mcp).and_then(|mcp| mcp.get(transport)));
        let name = result.at(places.name).and_then(|name| name.as_str());
        Self {
            version,
            mcp_http: mcp("http"),
            no_mcp_stdio: !version.requires_stdio() && !mcp("stdio"),
            mcp_acp: mcp("acp"),
            system_prompt: marked(result.at(places.system_prompt)),
            kind: AgentKind::of(name.as_deref().unwrap_or_default()),
            name: name.map(Cow::into_owned),
        }
    }
}

/// A request of the client's that the agent has not answered.
#[derive(Debug)]
struct Open {
    method: String,
    purpose: Purpose,
}

/// What the answer to an open request means to us.
#[derive(Debug)]
enum Purpose {
    /// It tells what the agent can do.
    Initialize,
    /// It names the session (`session/new`, `session/fork`).
    Name { session: SessionKey, retry: Option<Vec<u8>> },
    /// It opens a session whose id is known (`session/load`, `session/resume`).
    Enter { session: SessionKey, known: bool, retry: Option<Vec<u8>> },
    /// It ends a session.
    Leave { id: String },
    /// It ends a turn of this session.
    Prompt(SessionKey),
    /// It lists sessions with titles.
    List,
    /// Nothing.
    Other,
    /// It is answered already, by us.
    Answered,
}

/// The updates that the interceptor reads; all others stream past it.
const READ_UPDATES: [&[u8]; 5] = [
    br#""user_message_chunk""#,
    br#""user_message""#,
    br#""session_info_update""#,
    br#""available_commands_update""#,
    br#""state_update""#,
];

/// Decides what becomes of each message.
pub struct Interceptor {
    policy: Policy,
    host: Box<dyn Host>,
    agent: AgentFacts,
    sessions: Sessions,
    open: HashMap<Id, Open>,
    strips: HashMap<String, strip::Stream>,
    classifier: Classifier,
    tickets: u64,
    /// Tells the messages that are ours from those of another run of the proxy.
    run: u64,
    /// How many messages were ours.
    messages: u64,
    /// The agent does not take two servers of the same name, not even for two sessions.
    own_names: bool,
    /// Commands of sessions whose response is still on its way.
    early_commands: HashMap<String, Vec<u8>>,
}

impl Interceptor {
    /// An interceptor for one connection.
    pub fn new(policy: Policy, host: Box<dyn Host>) -> Self {
        Self {
            policy,
            host,
            agent: AgentFacts::default(),
            sessions: Sessions::default(),
            open: HashMap::new(),
            strips: HashMap::new(),
            classifier: Classifier::new(&READ_UPDATES),
            tickets: 0,
            run: RandomState::new().hash_one(()),
            messages: 0,
            own_names: false,
            early_commands: HashMap::new(),
        }
    }

    /// Decides about a line from the client.
    pub fn from_client(&mut self, line: &[u8], actions: &mut Actions) -> Pass {
        match Message::parse(line) {
            Some(message) => self.client_message(&message, actions),
            // Batches and broken lines are the agent's to judge.
            None => Pass::Untouched,
        }
    }

    /// Decides about a line from the agent. A line that is no message does not go on: the client would choke on it.
    pub fn from_agent(&mut self, line: &[u8], actions: &mut Actions) -> Pass {
        match self.classifier.classify(line) {
            Class::Streaming if self.strips.is_empty() => Pass::Untouched,
            Class::NotAMessage => {
                if !line.trim_ascii().is_empty() {
                    let text: String = String::from_utf8_lossy(line).trim().chars().take(200).collect();
                    let text = format!("the agent printed a line that is no message: {text}");
                    actions.effects.push(Effect::Log(Level::Warn, text));
                }
                Pass::Consumed
            }
            Class::Streaming | Class::Other => match Message::parse(line) {
                Some(message) => self.agent_message(&message, actions),
                None => Pass::Untouched,
            },
        }
    }

    /// Decides about something else that happened.
    pub fn happened(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Listed(session) => self.tools_listed(session, actions),
            Event::WaitOver(session) => self.wait_over(session, actions),
            Event::Fetched { session, ticket, text, activations } => {
                self.fetched(session, ticket, text, activations, actions);
            }
            Event::NotFetched { session, ticket, why, failed } => {
                self.not_fetched(session, ticket, &why, failed, actions);
            }
            Event::MenuDue(session) => self.menu_due(session, actions),
            Event::Activated(session, skill) => self.activated(session, &skill, By::Model, actions),
            Event::Recorded(session, what) => self.recorded(session, what, actions),
            Event::Reloaded(reloaded) => self.reloaded(reloaded.took, actions),
            Event::ClientGone => self.release_all(actions),
        }
    }

    /// What was kept back, and answers to everything that the agent can no longer answer; `why` is a clause such as `the agent exited with code 3`.
    pub fn agent_gone(&mut self, why: &str) -> Vec<Vec<u8>> {
        let kept: Vec<_> = self.strips.drain().flat_map(|(_, mut stream)| stream.flush()).collect();
        let mut open: Vec<_> = self.open.drain().collect();
        // Numbers in the order of the requests, for whoever reads along.
        open.sort_by_key(|(id, _)| (id.to_json().len(), id.to_json().into_owned()));
        let errors = open.iter().map(|(id, request)| {
            let text = format!("{why} before it answered `{}`", request.method);
            build::error(id, acp_skills_wire::INTERNAL_ERROR, &text)
        });
        kept.into_iter().chain(errors).collect()
    }

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.sessions.count()
    }

    /// Whether a session is being set up whose id is not known.
    fn is_setting_up(&self) -> bool {
        self.open.values().any(|open| matches!(open.purpose, Purpose::Name { .. }))
    }

    fn warn(actions: &mut Actions, text: impl Into<String>) {
        actions.effects.push(Effect::Log(Level::Warn, text.into()));
    }
}
