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
//! | `marks` | how our text is told from what a person wrote |
//! | `typed`, `words` | what a prompt says |
//! | `tool_paths` | the paths in the input of a tool call |
//! | `calls` | which calls are calls of our tools |
//! | `requests` | requests that the agent has not answered |
//! | `inputs`, `outputs`, `queries` | the ways in and out |

mod agent;
mod agent_facts;
mod briefing;
mod call_titles;
mod calls;
mod client;
mod client_facts;
mod commands;
mod drafts;
mod echo;
pub mod events;
mod expansion;
mod inputs;
mod mark_scanner;
mod marks;
mod menu;
mod outputs;
mod overview;
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
pub mod tool_paths;
mod trust;
mod typed;
mod updates;
mod version;
mod words;

use std::{collections::HashMap, time::Duration};

pub use self::agent_facts::{KnownAgent, known_agent};
pub use acp_skills_wire::NOT_STARTED;
use acp_skills_wire::{Class, Classifier, Id, Message};

use self::{
    agent_facts::AgentFacts,
    client_facts::ClientFacts,
    mark_scanner::MarkScanner,
    requests::{OpenRequest, Purpose},
    session::Sessions,
    setup::WaitingSetups,
};
pub use self::{
    inputs::Input,
    marks::{Mark, begins_with_ours},
    menu::spelling::spelled,
    outputs::{Actions, Effect, Level, Pass, Task},
    policy::{Activation, Approve, CatalogIn, McpMode, Policy, Titles, ToolPolicy},
    queries::{
        Decided, Endpoint, Fetched, Needs, NotFetched, Provisions, Query, Reason, Refreshed, Resolved,
        Switched, Ticket, Transport, Wanted,
    },
    servers::SERVER_NAME,
    session::{
        activations::{Active, By},
        key::SessionKey,
    },
};

/// Decides what becomes of each message.
pub struct Interceptor {
    policy: Policy,
    agent: AgentFacts,
    client: ClientFacts,
    sessions: Sessions,
    /// The client's requests that have no answer yet.
    open: HashMap<Id, OpenRequest>,
    waiting: WaitingSetups,
    /// Messages that come in chunks and may have our text in them, by the agent's id of their session.
    strips: HashMap<String, (updates::ChunkKind, strip::Stream)>,
    mark_scanner: MarkScanner,
    classifier: Classifier,
    last_ticket: u64,
    /// Requests for permission that wait until it is known where a path leads.
    asked: HashMap<Ticket, Vec<u8>>,
    /// Lists of skills that the client waits for.
    lists: HashMap<Ticket, drafts::WaitingList>,
    /// What the user is being asked, and was, about skills of their projects.
    questions: trust::Questions,
    /// How often the skills of all sessions were looked up again.
    refreshes: u64,
    /// Tells the messages that are ours from those of another run of the proxy.
    run: u64,
    /// Stands around what we add for the model.
    mark: Mark,
    /// How many messages were ours.
    messages: u64,
    /// The agent does not take two servers of the same name, not even for two sessions.
    own_names: bool,
    /// Whether the agent comes to our server by itself, in time; nothing while nobody has seen it do so or not.
    connects: Option<bool>,
    /// Commands of sessions whose response is still on its way.
    early_commands: HashMap<String, Vec<u8>>,
}

impl Interceptor {
    /// An interceptor for one connection. `run` is a number that no other run of the proxy has: a random one.
    pub fn new(policy: Policy, run: u64) -> Self {
        Self {
            policy,
            agent: AgentFacts::default(),
            client: ClientFacts::default(),
            sessions: Sessions::default(),
            open: HashMap::new(),
            waiting: WaitingSetups::default(),
            strips: HashMap::new(),
            mark_scanner: MarkScanner::default(),
            classifier: Classifier::new(updates::READ),
            last_ticket: 0,
            asked: HashMap::new(),
            lists: HashMap::new(),
            questions: trust::Questions::default(),
            refreshes: 0,
            run,
            mark: Mark::new(run),
            messages: 0,
            own_names: false,
            connects: None,
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
    // Nearly all lines stream past. This crate is built for speed and who calls it may not be, so it is not inlined there;
    // and what is rare is kept out of it.
    #[inline(never)]
    pub fn from_agent(&mut self, line: &[u8], actions: &mut Actions) -> Pass {
        let class = self.classifier.classify(line);
        if class == Class::Streaming
            && self.strips.is_empty()
            && !self.mark_scanner.must_be_read(line, &mut self.classifier)
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
            Input::Switched { session, ticket, switched } => {
                self.switched(session, ticket, switched, actions);
            }
            Input::Decided { session, ticket, trusted, decided, refreshed } => {
                self.decided(session, ticket, trusted, &decided, refreshed, actions);
            }
            Input::Skills(refreshed) => self.refreshed(refreshed, actions),
            Input::SkillsChanged(took) => self.skills_changed(took, actions),
            Input::Connected(session) => self.connected(session, actions),
            Input::ToolsListed(session) => self.tools_listed(session, actions),
            Input::WaitOver(session) => self.wait_over(session, actions),
            Input::MenuDue(session) => self.menu_due(session, actions),
            Input::Activated(session, skill) => self.activated(session, &skill, By::Model, actions),
            Input::Recorded(session, kind) => self.recorded(session, kind, actions),
            Input::ClientGone => self.release_all(actions),
        }
    }

    /// Whether a request waits for what its session needs.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a request is open that the agent has to answer before it can be used.
    pub fn is_starting(&self) -> bool {
        self.open.values().any(requests::OpenRequest::is_start)
    }

    /// What was kept back, and answers to everything that the agent can no longer answer; `why` is a clause such as
    /// `the agent exited with code 3`.
    pub fn agent_gone(&mut self, why: &str) -> Vec<Vec<u8>> {
        self.waiting.forget();
        let kept: Vec<_> = self.strips.drain().flat_map(|(_, (_, mut stream))| stream.flush()).collect();
        let mut open: Vec<_> = self.open.drain().collect();
        // Numbers in the order of the requests, for whoever reads along.
        open.sort_by_key(|(id, _)| (id.to_json().len(), id.to_json().into_owned()));
        let errors = open.iter().map(|(id, request)| request.unanswered(id, why));
        kept.into_iter().chain(errors).collect()
    }

    /// How long it is worth to wait for the agent to end by itself once the client has gone, where that is known.
    pub fn time_to_leave(&self) -> Option<Duration> {
        self.agent.time_to_leave()
    }

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.sessions.count()
    }

    /// Whether a session is being set up whose id is not known.
    fn is_setting_up(&self) -> bool {
        self.open.values().any(
            |open| matches!(&open.purpose, Purpose::SetUp(setup) if setup.kind == requests::SetupKind::New),
        )
    }

    fn new_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// An id for a message of ours that no other message of the session has.
    fn new_message_id(&mut self) -> String {
        self.messages += 1;
        format!("acp-skills-{:x}-{}", self.run, self.messages)
    }
}
