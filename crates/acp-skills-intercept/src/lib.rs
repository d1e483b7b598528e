//! Decides what happens to each message between an ACP client and an agent, so that the agent gets Agent Skills.
//!
//! The crate is sans-I/O: it has no I/O, no clock and no tasks. The runtime passes each line to [`Interceptor::from_client`] or
//! [`Interceptor::from_agent`], and all other events to [`Interceptor::handle`]. It forwards or drops the line as [`Pass`] says,
//! and carries out the [`Actions`]. If a decision needs data from outside, the interceptor asks a [`Query`], and the answer is
//! an [`Input`]. Meanwhile, only the messages that depend on the answer are held.
//!
//! Two terms are used throughout: the *skills server* is the MCP server that the proxy adds to each session, and the *skill
//! tools* are the tools of that server.
//!
//! # Invariants
//!
//! - No function blocks. The manifest has no dependency that does I/O, and `clippy.toml` forbids the I/O of `std`.
//! - A message that we do not change is forwarded byte for byte. The messages of one session keep their order.
//! - The client never sees text that was added for the model. The agent gets all text that the user wrote.
//! - The state of a session is private to the files that decide about it.
//! - Everything that is held back is in one table, `pending`.
//! - Files do not import each other in a circle. A module and its own children may.
//!
//! # Map
//!
//! | file | decides about |
//! |---|---|
//! | `client`, `agent` | messages of each side: the first match by method |
//! | `setup/` | requests that set up a session: holding, changing and retrying them; messages queued behind them (`queue`) |
//! | `servers` | our entry in `mcpServers` |
//! | `compaction` | whether the agent has compacted a conversation |
//! | `restoration` | what the next prompt restores after a compaction |
//! | `placement` | the place of the catalog, and its JSON |
//! | `briefing/` | the text about skills that the model gets |
//! | `joining` | skills that join the catalog because of a file |
//! | `prompt` | prompts: the text that is added, holding and sending them |
//! | `tools` | waiting for the agent to list the skill tools |
//! | `mcp_messages` | messages of the agent to the skills server over the ACP connection |
//! | `elsewhere` | the ways in which an agent that runs elsewhere gets skills, and its requests for files of skills |
//! | `cancellation` | cancelled turns and requests, closed sessions, clients and agents that disconnect |
//! | `commands/` | prompts with commands for the proxy, and commands of the agent with our prefix (`agents`) |
//! | `expansion` | the form of a command for the agent |
//! | `overview` | answers to `/skills` |
//! | `switches` | `/skills on` and `/skills off` |
//! | `active` | `/skills active` and `/skills drop` |
//! | `trust` | approval of a project's skills |
//! | `toggles` | skills as configuration options in the client |
//! | `drafts/` | drafts of the protocol: lists of skills (also `skill_updates`), and skills that the client provides (`client_skills`) |
//! | `menu/` | our commands in the client's menu, and who gets a name that is a skill and a command of the agent (`names`) |
//! | `updates` | the kinds of updates that are read |
//! | `notices` | warnings for the user of a session |
//! | `chunks` | messages that come in chunks, without our text |
//! | `strip`, `echo` | removing our text from text that the agent repeats |
//! | `mark_scanner` | a quick search for our text in lines that are not read otherwise |
//! | `usage_scanner` | a quick check of reports of context usage |
//! | `titles` | titles of sessions |
//! | `repeats` | our text in any other message of the agent |
//! | `reload` | changed skills in open sessions |
//! | `permission/` | requests for permission that can be answered without the user |
//! | `clarity` | messages that the client may read in another way |
//! | `call_titles`, `call_results` | titles and results of calls of the skill tools |
//! | `record`, `events` | events for the record, and active skills that are saved |
//!
//! | file | holds |
//! |---|---|
//! | `pending/` | the table of pending work, by ticket: held setup requests and their queues, prompts, lists, permissions, questions |
//! | `session/` | the state of a session, in parts (`tools`: the states of waiting for the skill tools) |
//! | `early_lists` | lists for sessions that are not set up yet |
//! | `memory` | facts that were learned in this run |
//! | `policy` | the user's configuration |
//! | `agent_facts`, `client_facts`, `version` | facts about the two sides, and the differences between versions of the protocol |
//! | `known_agents/` | agents that are known by name, with their quirks |
//! | `marks` | the marks around our text |
//! | `mcp_clients` | MCP clients without ACP that are known by name |
//! | `slash_command`, `words`, `recap` | the text of a prompt |
//! | `mentions` | the files that a prompt or a tool call names |
//! | `calls` | calls of the skill tools |
//! | `tool_paths` | the paths in the input of a tool call |
//! | `requests` | the client's requests without an answer |
//! | `inputs`, `outputs`, `queries` | the interface of the interceptor |
//! | `workspace` | the directories of a session |
//! | `trace_context` | the trace that a request belongs to |
//! | `keys`, `ids`, `active_skills` | our names for sessions, queries and timers; ids of our messages; active skills of a session |

mod active;
mod active_skills;
mod agent;
mod agent_facts;
mod briefing;
mod call_results;
mod call_titles;
mod calls;
mod cancellation;
mod chunks;
mod clarity;
mod client;
mod client_facts;
mod commands;
mod compaction;
mod difference;
mod drafts;
mod early_lists;
mod echo;
mod elsewhere;
pub mod events;
mod expansion;
mod hints;
mod ids;
mod inputs;
mod joining;
mod keys;
mod known_agents;
mod mark_scanner;
mod marks;
mod mcp_clients;
mod mcp_messages;
mod memory;
mod mentions;
mod menu;
mod notices;
mod outputs;
mod overview;
mod pending;
mod permission;
mod placement;
mod policy;
mod prompt;
mod queries;
mod recap;
mod record;
mod reload;
mod repeats;
mod requests;
mod restoration;
mod servers;
mod session;
mod setup;
mod slash_command;
mod strip;
mod switches;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "some tests need skills on a disk")]
mod tests;
mod titles;
mod toggles;
pub mod tool_paths;
mod tools;
mod trace_context;
mod trust;
mod updates;
mod usage_scanner;
mod version;
mod words;
mod workspace;

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

pub use acp_skills_wire::{AUTH_REQUIRED, NOT_STARTED};
use acp_skills_wire::{Class, Id, Message};

pub use self::{
    active_skills::{ActivatedBy, ActiveSkill, ActiveSkills},
    difference::Difference,
    inputs::{Input, UserQuestion},
    keys::{SessionKey, Ticket, Timer},
    known_agents::{Agent, Means, Seen, known_agent, known_agents},
    marks::{Mark, MarkKey, begins_with_ours},
    mcp_clients::{McpCatalog, McpClient, mcp_client},
    mcp_messages::MAX_MCP_MESSAGE,
    menu::spelling::{Words, spelled},
    outputs::{Actions, Effect, Level, Pass, SkillFile, Task, UserAnswer},
    policy::{Activation, Approve, CatalogIn, CommandNames, McpMode, OnDemand, Policy, Titles, ToolPolicy},
    queries::{
        ClientServer, Endpoint, Fetched, HostError, Instructions, Listen, Needs, NotFetched, Provisions,
        Query, Reason, Refreshed, Resolved, SavedSwitches, Transport, TrustOutcome, Wanted,
    },
    reload::reload_events,
    restoration::reminder,
    servers::SERVER_NAME,
    session::other_name,
    trust::{TrustForm, trust_decision},
    workspace::{MAX_ROOTS, Workspace},
};
use self::{
    agent_facts::AgentFacts,
    chunks::AgentReader,
    clarity::is_unclear,
    client_facts::ClientFacts,
    ids::OwnIds,
    memory::Memory,
    pending::Pending,
    requests::{OpenRequest, Purpose},
    session::Sessions,
};

/// Decides what happens to each message between one client and one agent.
pub struct Interceptor {
    /// The user's configuration.
    policy: Policy,
    agent: AgentFacts,
    client: ClientFacts,
    /// Facts that were learned in this run.
    memory: Memory,
    sessions: Sessions,
    /// The client's requests that have no answer yet.
    requests: HashMap<Id, OpenRequest>,
    /// The agent's requests that are for us and have no answer yet, with their sessions: those to the skills servers over the ACP
    /// connection, and those for files of skills.
    mcp_requests: HashMap<Id, SessionKey>,
    /// The ids of the skills servers of closed sessions that were reached over the ACP connection.
    closed_servers: VecDeque<(String, SessionKey)>,
    /// All work that is held back until an answer or a call has arrived.
    pending: Pending,
    /// The state of reading the agent's lines.
    reader: AgentReader,
    /// Ids for messages from the proxy.
    ids: OwnIds,
    /// The secret of the marks around the text that we add for the model.
    marks: MarkKey,
}

impl Interceptor {
    /// Creates an interceptor for one connection. `run` is a random number that no other run of the proxy has, and `marks` is the
    /// secret of the marks around text for the model.
    pub fn new(policy: Policy, run: u64, marks: MarkKey) -> Self {
        Self {
            policy,
            agent: AgentFacts::default(),
            client: ClientFacts::default(),
            memory: Memory::default(),
            sessions: Sessions::default(),
            requests: HashMap::new(),
            mcp_requests: HashMap::new(),
            closed_servers: VecDeque::new(),
            pending: Pending::default(),
            reader: AgentReader::new(),
            ids: OwnIds::new(run),
            marks,
        }
    }

    /// Decides about a line from the client.
    pub fn from_client(&mut self, line: &[u8], actions: &mut Actions) -> Pass {
        let pass = match Message::parse(line) {
            Some(message) => self.client_message(&message, actions),
            // We leave it to the agent to handle batches and invalid lines.
            None => Pass::Untouched,
        };
        self.send_notices(actions);
        pass
    }

    /// Decides about a line from the agent. A line that is not a message is dropped, because the client would fail on it.
    // This is the hot path, since nearly all lines are streaming updates that we forward without parsing them. We use more
    // optimization for this crate than for its callers, so we have to make sure that this isn't inlined into them. Rare cases are
    // handled in a separate function.
    #[inline(never)]
    pub fn from_agent(&mut self, line: &[u8], actions: &mut Actions) -> Pass {
        if self.pending.asks_about_call() && is_unclear(line) {
            self.pending.unclear();
        }
        let class = self.reader.classifier.classify(line);
        if class == Class::Streaming
            && !self.reader.has_held()
            && !self.reader.mark_scanner.must_be_read(line, &mut self.reader.classifier)
            && !self.reader.usage_scanner.must_be_read(line, self.reader.classifier.kind())
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
                    actions.log(Level::Info, format!("the agent wrote a line that is not a message: {text}"));
                }
                Pass::Consumed
            }
            Class::Streaming | Class::Other => match Message::parse(line) {
                Some(message) => self.agent_message(&message, actions),
                None => Pass::Untouched,
            },
        };
        self.send_notices(actions);
        self.without_repeats(line, pass)
    }

    /// Handles an event other than a message.
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
            Input::CallTimerEnded { session, timer } => self.call_timer_ended(session, timer, actions),
            Input::CallArrived { session, tool, arguments } => {
                self.call_arrived(session, &tool, &arguments, actions);
            }
            Input::UserAsked { session, number, question } => {
                self.user_asked(session, number, question, actions);
            }
            Input::Activated(session, skill) => self.activated(session, &skill, actions),
            Input::Recorded(session, kind) => self.recorded(session, kind, actions),
            Input::McpAnswered(request) => {
                self.mcp_requests.remove(&request);
            }
            Input::ClientGone => self.client_gone(actions),
        }
        self.send_notices(actions);
    }

    /// Returns true if a request that sets up a session is held.
    pub fn has_setups(&self) -> bool {
        self.pending.has_setups()
    }

    /// Returns the approximate size of the client's messages that are held, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.pending.held_bytes()
    }

    /// Returns true if a request is open that the agent has to answer before it can be used.
    pub fn is_starting(&self) -> bool {
        self.requests.values().any(requests::OpenRequest::is_start)
    }

    /// Returns the grace period for the agent to exit after the client disconnects, or `None` if this was not measured.
    pub fn shutdown_grace(&self) -> Option<Duration> {
        self.agent.quirks.shutdown_grace
    }

    /// Returns true if a session is being set up but the id is not known yet.
    fn is_setting_up(&self) -> bool {
        self.requests.values().any(
            |open| matches!(&open.purpose, Purpose::SetUp(setup) if setup.kind == requests::SetupKind::New),
        )
    }
}
