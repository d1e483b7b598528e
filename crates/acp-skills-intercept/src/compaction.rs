//! Notices that the agent has compacted a conversation: it replaced the messages by a summary, and texts about skills are gone.
//!
//! Agents report this in different ways, and some report it twice. All signals are passive: nothing is advertised, and the client
//! receives what the agent sends.
//!
//! | signal | sent by |
//! |---|---|
//! | `compaction_update` ([session compaction](https://agentclientprotocol.com/rfds/session-compaction)) | agents, to clients that advertise it |
//! | a tool call | Claude and some adapters of Codex, to other clients |
//! | a message of its own | Codex, to other clients, and Qwen |
//! | `usage_update`, whose `used` falls | most agents that report usage |
//! | a turn whose model calls have read less than the conversation had | Gemini |
//! | a command of the user, such as `/compact` | the user |
//!
//! A signal counts only after the agent has received a prompt, and not while it replays the history. [`restoration`] decides what
//! the next prompt restores.
//!
//! [`restoration`]: crate::restoration

use acp_skills_wire::{Id, Message, Node};

use crate::{
    Interceptor,
    agent_facts::AgentFacts,
    events::CompactionSignal,
    keys::SessionKey,
    known_agents::Quirks,
    menu::names::Names,
    outputs::{Actions, Level},
    policy::Policy,
    requests::{OpenRequest, Purpose},
    session::{Session, TurnEnd, UsageChange},
    slash_command::SlashCommand,
    usage_scanner::{Report, is_of_subagent},
};

/// The message of Codex. Line breaks follow.
pub(crate) const MESSAGE: &str = "*Context compacted to fit the model's context window.*";

/// The start of the message of Qwen. The name of the model and the numbers of tokens follow.
const QWEN: &str = "IMPORTANT: This conversation ";

/// A part of the message of Qwen.
const QWEN_PART: &str = "A compressed context will be sent for future messages (compressed from: ";

/// The start of the message of Copilot if the command of the user has failed.
const FAILURE: &str = "Failed to run /compact: ";

/// The title of the tool call.
const TITLE: &str = "Compact conversation";

/// The commands that compact a conversation if the agent announces them. For other names, see
/// [`Quirks::compact_commands`](crate::known_agents::Quirks::compact_commands).
const COMMANDS: [&str; 3] = ["compact", "compress", "summarize"];

/// The state of a tool call or of a `compaction_update`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    Completed,
    /// The update has no status, so it does not change.
    Same,
    /// It failed or was cancelled, or the status is unknown. Nothing is lost.
    Other,
}

impl Progress {
    fn of(status: Option<Node<'_>>) -> Self {
        match status.and_then(|status| status.as_str()).as_deref() {
            None => Self::Same,
            Some("pending" | "in_progress") => Self::Running,
            Some("completed") => Self::Completed,
            Some(_) => Self::Other,
        }
    }
}

/// The members of an update about a tool call that tell if the call is a compaction.
#[derive(Default)]
struct CallMembers<'a> {
    meta: Option<Node<'a>>,
    title: Option<Node<'a>>,
    kind: Option<Node<'a>>,
    status: Option<Node<'a>>,
}

impl<'a> CallMembers<'a> {
    /// Reads all of the members in one pass, because an agent sends many updates about calls.
    fn read(update: Node<'a>) -> Self {
        let mut call = Self::default();
        for (name, value) in update.members() {
            let places = [
                ("_meta", &mut call.meta),
                ("title", &mut call.title),
                ("kind", &mut call.kind),
                ("status", &mut call.status),
            ];
            if let Some((_, place)) = places.into_iter().find(|(known, _)| name.is_str(known)) {
                *place = Some(value);
            }
        }
        call
    }

    /// Returns true if the update announces the tool call of a compaction.
    fn is_compaction(&self) -> bool {
        let at = |path: &[&str]| self.meta.and_then(|meta| meta.at(path)).filter(|node| !node.is_null());
        if at(&["jetbrains", "air", "contextCompaction"]).is_some() {
            return true;
        }
        let is = |node: Option<Node<'_>>, text| node.is_some_and(|node| node.is_str(text));
        match at(&["claudeCode", "toolName"]) {
            Some(tool) => tool.is_str("compact"),
            // Models choose the titles of some calls, but then the adapter names the tool.
            None => is(self.title, TITLE) && is(self.kind, "think"),
        }
    }
}

/// Returns the message about a compaction in a chunk of the agent: `Completed`, or `Other` if the compaction has failed.
fn message_in(update: Node<'_>) -> Option<Progress> {
    let text = update.at(&["content", "text"])?.as_text()?;
    if text.trim() == MESSAGE || (text.starts_with(QWEN) && text.contains(QWEN_PART)) {
        Some(Progress::Completed)
    } else if text.starts_with(FAILURE) {
        Some(Progress::Other)
    } else {
        None
    }
}

/// Returns true if the raw JSON of a text may be a message about a compaction.
pub(crate) fn may_be_message(raw: &[u8]) -> bool {
    // The first byte is enough for most texts.
    let start = match raw.first() {
        Some(b'*') => MESSAGE,
        Some(b'I') => QWEN,
        Some(b'F') => FAILURE,
        _ => return false,
    };
    raw.starts_with(start.as_bytes())
}

/// Returns true if the raw JSON of a text may be the message of Codex after other bytes.
pub(crate) fn may_end_in_message(raw: &[u8]) -> bool {
    let mut text = raw;
    while let Some(rest) = text.strip_suffix(br"\n") {
        text = rest;
    }
    text.ends_with(MESSAGE.as_bytes())
}

/// Returns true if a prompt is the user's own command for a compaction.
fn is_compact_command(session: &Session, message: &Message<'_>, agent: &AgentFacts, policy: &Policy) -> bool {
    let command =
        message.param(&["prompt"]).and_then(SlashCommand::read).filter(|command| command.sigil == '/');
    command.is_some_and(|command| {
        let word = command.word.as_str();
        agent.quirks.compact_commands.contains(&word)
            || (COMMANDS.contains(&word) && Names::of(session, policy.commands).are_agents(word))
    })
}

impl Interceptor {
    /// Handles a `compaction_update`.
    pub(crate) fn compaction_update(
        &mut self,
        message: &Message<'_>,
        update: Node<'_>,
        actions: &mut Actions,
    ) {
        let progress = Progress::of(update.get("status"));
        if is_of_subagent(update.get("_meta")) || !matches!(progress, Progress::Completed | Progress::Other) {
            return;
        }
        let Some(key) = self.live_session(message) else { return };
        if progress == Progress::Other {
            if let Some(session) = self.sessions.get(key) {
                session.compaction.failed();
            }
            return;
        }
        let id = update.str("compactionId");
        if let Some(session) = self.sessions.get(key)
            && id.is_none_or(|id| session.compaction.note_completed(&id))
        {
            session.compacted(CompactionSignal::CompactionUpdate, self.agent.quirks, actions);
        }
    }

    /// Handles an update about the tool call with this id. `is_first` is true if the update announces the call. Returns true if the
    /// call is a compaction.
    pub(crate) fn compaction_call(
        &mut self,
        key: SessionKey,
        id: &str,
        update: Node<'_>,
        is_first: bool,
        actions: &mut Actions,
    ) -> bool {
        let Some(session) = self.sessions.get(key) else { return false };
        let call = CallMembers::read(update);
        if !call.is_compaction() && !session.compaction.is_call(id) {
            return false;
        }
        if is_of_subagent(call.meta) {
            return true;
        }
        match Progress::of(call.status) {
            Progress::Running => session.compaction.call_started(id),
            // An announcement without a status is pending.
            Progress::Same if is_first => session.compaction.call_started(id),
            // Claude sends the numbers of a completed compaction in another update.
            Progress::Same => {}
            Progress::Other => {
                session.compaction.call_ended(id);
                session.compaction.failed();
            }
            Progress::Completed => {
                session.compaction.call_ended(id);
                if self.is_live(key)
                    && let Some(session) = self.sessions.get(key)
                {
                    session.compacted(CompactionSignal::ToolCall, self.agent.quirks, actions);
                }
            }
        }
        true
    }

    /// Handles a chunk of a message of the agent, which may be a message about a compaction.
    pub(crate) fn compaction_message(
        &mut self,
        message: &Message<'_>,
        update: Node<'_>,
        actions: &mut Actions,
    ) {
        if let Some(progress) = message_in(update)
            && !is_of_subagent(update.get("_meta"))
            && let Some(key) = self.live_session(message)
            && let Some(session) = self.sessions.get(key)
        {
            if progress == Progress::Completed {
                session.compacted(CompactionSignal::Message, self.agent.quirks, actions);
            } else {
                session.compaction.failed();
            }
        }
    }

    /// Handles the response at the end of a turn, which can contain the input of all calls of the model.
    pub(crate) fn turn_has_read(&mut self, key: SessionKey, response: &Message<'_>, actions: &mut Actions) {
        const TOKENS: [&str; 4] = ["_meta", "quota", "token_count", "input_tokens"];
        let tokens = response.result.and_then(|result| result.at(&TOKENS)?.as_number());
        let Some(session) = self.sessions.get(key) else { return };
        if session.compaction.turn_has_read(tokens) {
            session.compacted(CompactionSignal::Usage, self.agent.quirks, actions);
        }
        // The next report has to be read.
        if session.compaction.watches_usage() {
            self.count_usage();
        }
    }

    /// Counts the reports of the context usage that were not read.
    fn count_usage(&mut self) {
        if let Some((key, used)) = self.reader.usage_scanner.take()
            && let Some(session) = self.sessions.get(key)
        {
            session.compaction.usage_passed(used);
        }
    }

    /// Handles a report of the context usage.
    pub(crate) fn usage_update(&mut self, message: &Message<'_>, update: Node<'_>, actions: &mut Actions) {
        // Reports that were not read have to be counted first.
        self.count_usage();
        let Some(session_id) = message.param(&["sessionId"]) else { return };
        let Some(key) = session_id.as_str().and_then(|id| self.sessions.key_of(&id)) else { return };
        let Some(used_node) = update.get("used") else { return };
        let Some(used) = used_node.as_number().filter(|_| !is_of_subagent(update.get("_meta"))) else {
            return;
        };
        let size_node = update.get("size");
        let size = size_node.and_then(|size| size.as_number());
        let is_live = self.is_live(key);
        let Some(session) = self.sessions.get(key) else { return };
        match session.compaction.usage(used, size.unwrap_or(0)) {
            UsageChange::Fell if is_live => {
                session.compacted(CompactionSignal::Usage, self.agent.quirks, actions);
            }
            UsageChange::Recovered => {
                if session.compaction.retract() {
                    actions.log(Level::Debug, "the context usage is back, so nothing has to be restored");
                    session.remind(actions);
                }
            }
            UsageChange::Fell => session.compaction.fall_is_history(),
            UsageChange::Nothing => {}
        }
        if !session.compaction.watches_usage()
            && let Some(size) = size_node.filter(|_| size.is_some())
        {
            let report = Report { line: message.line, session_id, used: used_node, size };
            self.reader.usage_scanner.remember(report, key, used);
        }
    }

    /// Notes a prompt that the agent will receive as it is, if it is the user's own command for a compaction.
    pub(crate) fn note_command(&mut self, key: SessionKey, message: &Message<'_>, id: &Id) {
        if let Some(session) = self.sessions.get(key)
            && is_compact_command(session, message, &self.agent, &self.policy)
        {
            session.compaction.commanded(id.clone());
            // The next report has to be read.
            self.count_usage();
        }
    }

    /// Returns the session of an update, unless the update is history.
    fn live_session(&mut self, message: &Message<'_>) -> Option<SessionKey> {
        let key = message.session_id().and_then(|id| self.sessions.key_of(&id))?;
        self.is_live(key).then_some(key)
    }

    /// Returns false if updates of this session are history: the agent has received no prompt since the session was set up, or is
    /// setting it up.
    fn is_live(&mut self, key: SessionKey) -> bool {
        let is_live = self.sessions.get(key).is_some_and(|session| session.compaction.is_live());
        let is_set_up =
            |open: &OpenRequest| matches!(&open.purpose, Purpose::SetUp(setup) if setup.session == key);
        is_live && !self.requests.values().any(is_set_up)
    }
}

impl Session {
    /// Notes that the conversation was compacted.
    pub(crate) fn compacted(&mut self, signal: CompactionSignal, quirks: &Quirks, actions: &mut Actions) {
        if self.compaction.noticed(signal, quirks.keeps_prompts) {
            actions.log(Level::Info, format!("the agent has compacted the conversation ({signal})"));
        }
        self.remind(actions);
    }

    /// Handles the end of a turn.
    pub(crate) fn turn_ended(&mut self, end: TurnEnd, quirks: &Quirks, actions: &mut Actions) {
        match end {
            TurnEnd::Compacted => self.compacted(CompactionSignal::Command, quirks, actions),
            TurnEnd::LostAgain => self.remind(actions),
            TurnEnd::Ordinary => {}
        }
    }
}
