//! What becomes of each message between an ACP client and an agent that is to have skills.
//!
//! Decisions without I/O, clock or task. Whoever moves the bytes gives each line to [`Interceptor::from_client`] or
//! [`Interceptor::from_agent`] and everything else that happens to [`Interceptor::handle`], and does what the [`Actions`]
//! say. What a decision needs from outside leaves as a [`Query`] and comes back as an [`Input`]; meanwhile everything that
//! does not depend on the answer goes on.
//!
//! # Invariants
//!
//! - Nothing here blocks: the manifest has no crate that does I/O for it, and `clippy.toml` keeps out what `std` has.
//! - A message that we do not change is byte-identical on the other side. Messages of one session keep their order.
//! - The client never sees a word that was added for the model; the agent never loses a word that the user wrote.
//! - What is known of a session is private to the file that decides about it.
//!
//! # Where what is decided
//!
//! | file | decides |
//! |---|---|
//! | `client`, `agent` | what becomes of a message from that side |
//! | `setup/` | requests that set up a session: what they wait for, what is added, a second try |
//! | `servers` | the entry in `mcpServers` |
//! | `placement` | where the catalog goes, and how it is written there |
//! | `briefing/` | what the model still has to be told of the skills |
//! | `prompt` | what is put in front of a prompt, and what it waits for |
//! | `commands` | which prompts are commands of ours, and what becomes of them |
//! | `expansion` | how a command is written for the agent |
//! | `overview` | what `/skills` answers |
//! | `switches` | which skills are on |
//! | `trust` | which skills of a project wait for the user, who is asked |
//! | `toggles` | the same as options that the client shows |
//! | `drafts/` | the drafts of the protocol about skills: lists of them, and those that a client brings |
//! | `menu/` | our commands in the list that the client shows |
//! | `updates` | which updates of the agent's are read |
//! | `strip`, `echo` | how our text is taken out again of what comes back |
//! | `mark_scanner` | in which lines that nobody reads our text may be |
//! | `titles` | titles of sessions |
//! | `repeats` | our text wherever else an agent repeats it |
//! | `reload` | what becomes of sessions when there are other skills |
//! | `permission/` | requests for permission that the user need not see |
//! | `call_titles` | what people see of calls of our own tools |
//! | `record`, `events` | what is recorded, and what is remembered of a session |
//!
//! | file | knows |
//! |---|---|
//! | `session/` | what is known of a session, each part private to the file that guards it (`turns`: prompts that are held) |
//! | `policy` | what the user decided |
//! | `agent_facts`, `client_facts`, `version` | what is known of the two sides, and what differs between versions of the protocol |
//! | `known_agents/` | the agents that are known by name, with their quirks |
//! | `marks` | how our text is told from what a person wrote |
//! | `typed`, `words` | what a prompt says |
//! | `calls` | which calls are calls of our tools |
//! | `requests` | requests that the agent has not answered |
//! | `inputs`, `outputs`, `queries` | the ways in and out |

mod active_skills;
mod agent;
mod agent_facts;
mod briefing;
mod call_titles;
mod calls;
mod cancellation;
mod chunks;
mod client;
mod client_facts;
mod commands;
mod drafts;
mod echo;
pub mod events;
mod expansion;
mod ids;
mod inputs;
mod keys;
mod known_agents;
mod mark_scanner;
mod marks;
mod memory;
mod menu;
mod outputs;
mod overview;
mod pending;
mod permission;
mod placement;
mod policy;
mod prompt;
mod queries;
mod record;
mod reload;
mod repeats;
mod requests;
mod servers;
mod session;
mod setup;
mod strip;
mod switches;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "some tests need skills on a disk")]
mod tests;
mod titles;
mod toggles;
mod tools;
mod trust;
mod typed;
mod updates;
mod version;
mod words;

use std::{collections::HashMap, time::Duration};

pub use acp_skills_wire::NOT_STARTED;
use acp_skills_wire::{Class, Id, Message};

pub use self::{
    active_skills::{ActivatedBy, ActiveSkills},
    inputs::Input,
    keys::{SessionKey, Ticket, Timer},
    known_agents::{Agent, Means, Seen, known_agent, known_agents},
    marks::{Mark, begins_with_ours},
    menu::spelling::spelled,
    outputs::{Actions, Effect, Level, Pass, Task},
    policy::{Activation, Approve, CatalogIn, McpMode, Policy, Titles, ToolPolicy},
    queries::{
        Endpoint, Fetched, HostError, Needs, NotFetched, Provisions, Query, Reason, Refreshed, Resolved,
        SavedSwitches, Transport, TrustOutcome, Wanted,
    },
    servers::SERVER_NAME,
};
use self::{
    agent_facts::AgentFacts,
    chunks::AgentReader,
    client_facts::ClientFacts,
    ids::OwnIds,
    memory::Memory,
    pending::Pending,
    requests::{OpenRequest, Purpose},
    session::Sessions,
};

/// Decides what becomes of each message between one client and one agent.
pub struct Interceptor {
    /// The user's decisions.
    policy: Policy,
    agent: AgentFacts,
    client: ClientFacts,
    /// Facts that were learned in this run.
    memory: Memory,
    sessions: Sessions,
    /// The client's requests that have no answer yet.
    requests: HashMap<Id, OpenRequest>,
    /// Work that is held back until something else has happened.
    pending: Pending,
    /// The state of reading the agent's lines.
    reader: AgentReader,
    /// Ids of our own messages.
    ids: OwnIds,
}

impl Interceptor {
    /// Creates an interceptor for one connection. `run` is a random number that no other run of the proxy has.
    pub fn new(policy: Policy, run: u64) -> Self {
        Self {
            policy,
            agent: AgentFacts::default(),
            client: ClientFacts::default(),
            memory: Memory::default(),
            sessions: Sessions::default(),
            requests: HashMap::new(),
            pending: Pending::default(),
            reader: AgentReader::new(),
            ids: OwnIds::new(run),
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
    // Nearly all lines stream past. This crate is built for speed and who calls it may not be, so it is not inlined there;
    // and what is rare is kept out of it.
    #[inline(never)]
    pub fn from_agent(&mut self, line: &[u8], actions: &mut Actions) -> Pass {
        let class = self.reader.classifier.classify(line);
        if class == Class::Streaming
            && !self.reader.has_held()
            && !self.reader.mark_scanner.must_be_read(line, &mut self.reader.classifier)
        {
            return Pass::Untouched;
        }
        self.read_from_agent(line, class, actions)
    }

    #[inline(never)]
    fn read_from_agent(&mut self, line: &[u8], class: Class, actions: &mut Actions) -> Pass {
        let pass = match class {
            Class::NotAMessage => {
                if !line.trim_ascii().is_empty() {
                    let text: String = String::from_utf8_lossy(line).trim().chars().take(200).collect();
                    actions.log(Level::Info, format!("the agent printed a line that is no message: {text}"));
                }
                Pass::Consumed
            }
            Class::Streaming | Class::Other => match Message::parse(line) {
                Some(message) => self.agent_message(&message, actions),
                None => Pass::Untouched,
            },
        };
        self.without_repeats(line, pass)
    }

    /// Decides about something else that happened.
    pub fn handle(&mut self, input: Input, actions: &mut Actions) {
        match input {
            Input::SetUp { session, ticket, provisions } => {
                self.provisioned(session, ticket, provisions, actions);
            }
            Input::Fetched { session, ticket, fetched } => self.fetched(session, ticket, fetched, actions),
            Input::NotFetched { session, ticket, why } => self.not_fetched(session, ticket, why, actions),
            Input::Resolved { ticket, resolved } => self.resolved(ticket, &resolved, actions),
            Input::SwitchesSaved { session, ticket, saved } => {
                self.switches_saved(session, ticket, saved, actions);
            }
            Input::TrustSaved { session, ticket, trusted, outcome, refreshed } => {
                self.trust_saved(session, ticket, trusted, &outcome, refreshed, actions);
            }
            Input::Skills(refreshed) => self.refreshed(refreshed, actions),
            Input::SkillsChanged(took) => self.skills_changed(took, actions),
            Input::Connected(session) => self.connected(session, actions),
            Input::ToolsListed(session) => self.tools_listed(session, actions),
            Input::ToolsTimerEnded { session, timer } => self.tools_timer_ended(session, timer, actions),
            Input::MenuTimerEnded(session) => self.menu_timer_ended(session, actions),
            Input::Activated(session, skill) => self.activated(session, &skill, ActivatedBy::Model, actions),
            Input::Recorded(session, kind) => self.recorded(session, kind, actions),
            Input::ClientGone => self.client_gone(actions),
        }
    }

    /// Whether a request waits for what its session needs.
    pub fn is_waiting(&self) -> bool {
        self.pending.has_setups()
    }

    /// Whether a request is open that the agent has to answer before it can be used.
    pub fn is_starting(&self) -> bool {
        self.requests.values().any(requests::OpenRequest::is_start)
    }

    /// Returns how long to wait for the agent to exit on its own after the client has gone, if that was measured.
    pub fn shutdown_grace(&self) -> Option<Duration> {
        self.agent.quirks.shutdown_grace
    }

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.sessions.count()
    }

    /// Whether a session is being set up whose id is not known.
    fn is_setting_up(&self) -> bool {
        self.requests.values().any(
            |open| matches!(&open.purpose, Purpose::SetUp(setup) if setup.kind == requests::SetupKind::New),
        )
    }
}
