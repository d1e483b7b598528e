//! Notices that the agent has compacted a conversation: it replaced the messages by a summary, and texts about skills are gone.
//!
//! Agents report this in different ways, and some report it twice. All signals are passive: nothing is advertised, and the client
//! receives what the agent sends.
//!
//! | signal | sent by |
//! |---|---|
//! | `compaction_update` ([session compaction](https://agentclientprotocol.com/rfds/session-compaction)) | agents, to clients that advertise it |
//! | a tool call | Claude and some adapters of Codex, to other clients |
//! | a message of its own | Codex, to other clients |
//! | `usage_update`, whose `used` falls | most agents that report usage |
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
    requests::Purpose,
    session::{Session, UsageChange},
    typed::Typed,
};

/// The message of Codex. Line breaks follow.
pub(crate) const MESSAGE: &str = "*Context compacted to fit the model's context window.*";

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
    fn of(update: Node<'_>) -> Self {
        match update.str("status").as_deref() {
            None => Self::Same,
            Some("pending" | "in_progress") => Self::Running,
            Some("completed") => Self::Completed,
            Some(_) => Self::Other,
        }
    }
}

/// Returns true if an update announces the tool call of a compaction.
fn is_call(update: Node<'_>) -> bool {
    let meta = update.get("_meta");
    let at = |path: &[&str]| meta.and_then(|meta| meta.at(path)).filter(|node| !node.is_null());
    if at(&["jetbrains", "air", "contextCompaction"]).is_some() {
        return true;
    }
    match at(&["claudeCode", "toolName"]) {
        Some(tool) => tool.is_str("compact"),
        // Models choose the titles of some calls, but then the adapter names the tool.
        None => update.get("title").is_some_and(|title| title.is_str(TITLE)) && is_thought(update),
    }
}

fn is_thought(update: Node<'_>) -> bool {
    update.get("kind").is_some_and(|kind| kind.is_str("think"))
}

/// Returns true if an update belongs to a subagent, whose conversation is not that of the session.
fn is_of_subagent(update: Node<'_>) -> bool {
    update.at(&["_meta", "claudeCode", "parentToolUseId"]).is_some_and(|parent| !parent.is_null())
}

/// Returns true if a chunk of the agent is the whole message of Codex.
fn is_message(update: Node<'_>) -> bool {
    update.at(&["content", "text"]).and_then(|text| text.as_text()).is_some_and(|text| text.trim() == MESSAGE)
}

/// Returns true if the raw JSON of a text may be the message of Codex.
pub(crate) fn may_be_message(raw: &[u8]) -> bool {
    const MAX_BREAKS: usize = r"\n\n\n\n".len();
    (MESSAGE.len()..=MESSAGE.len() + MAX_BREAKS).contains(&raw.len()) && raw.starts_with(MESSAGE.as_bytes())
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
fn is_command(session: &Session, message: &Message<'_>, agent: &AgentFacts, policy: &Policy) -> bool {
    let typed = message.param(&["prompt"]).and_then(Typed::read).filter(|typed| typed.sigil == '/');
    typed.is_some_and(|typed| {
        let word = typed.word.as_str();
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
        let progress = Progress::of(update);
        if is_of_subagent(update) || !matches!(progress, Progress::Completed | Progress::Other) {
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
            && id.is_none_or(|id| session.compaction.is_new(&id))
        {
            session.compacted(CompactionSignal::CompactionUpdate, self.agent.quirks, actions);
        }
    }

    /// Handles an update about a tool call. Returns true if the call is a compaction.
    pub(crate) fn compaction_call(
        &mut self,
        message: &Message<'_>,
        update: Node<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(session) = message.session_id().and_then(|id| self.sessions.find(&id)) else { return false };
        let Some(id) = update.str("toolCallId") else { return false };
        let is_known = session.compaction.is_call(&id);
        if !is_known && !is_call(update) {
            return false;
        }
        if is_of_subagent(update) {
            return true;
        }
        // An announcement without a status is pending.
        let is_announced = update.get("sessionUpdate").is_some_and(|kind| kind.is_str("tool_call"));
        match Progress::of(update) {
            Progress::Running => session.compaction.call_started(&id),
            // Claude sends the numbers of a completed compaction in another update.
            Progress::Same if is_announced => session.compaction.call_started(&id),
            Progress::Same => {}
            Progress::Other => {
                session.compaction.call_ended(&id);
                session.compaction.failed();
            }
            Progress::Completed => {
                session.compaction.call_ended(&id);
                if let Some(key) = self.live_session(message)
                    && let Some(session) = self.sessions.get(key)
                {
                    session.compacted(CompactionSignal::ToolCall, self.agent.quirks, actions);
                }
            }
        }
        true
    }

    /// Handles a chunk of a message of the agent, which may be the message of Codex.
    pub(crate) fn compaction_message(
        &mut self,
        message: &Message<'_>,
        update: Node<'_>,
        actions: &mut Actions,
    ) {
        if is_message(update)
            && !is_of_subagent(update)
            && let Some(key) = self.live_session(message)
            && let Some(session) = self.sessions.get(key)
        {
            session.compacted(CompactionSignal::Message, self.agent.quirks, actions);
        }
    }

    /// Handles a report of the context usage.
    pub(crate) fn usage_update(&mut self, message: &Message<'_>, update: Node<'_>, actions: &mut Actions) {
        // Reports that were not read have to be counted first.
        if let Some((key, used)) = self.reader.usage_scanner.take()
            && let Some(session) = self.sessions.get(key)
        {
            session.compaction.usage_passed(used);
        }
        let number = |name| std::str::from_utf8(update.get(name)?.raw()).ok()?.parse::<u64>().ok();
        let Some(used) = number("used").filter(|_| !is_of_subagent(update)) else { return };
        let size = number("size").unwrap_or(0);
        let is_live = self.live_session(message).is_some();
        let Some(session) = message.session_id().and_then(|id| self.sessions.find(&id)) else { return };
        match session.compaction.usage(used, size) {
            UsageChange::Fell if is_live => {
                session.compacted(CompactionSignal::Usage, self.agent.quirks, actions);
            }
            UsageChange::Recovered => {
                if session.compaction.retract() {
                    actions.log(Level::Debug, "the context usage is back, so nothing has to be restored");
                    session.remind(actions);
                }
            }
            UsageChange::Fell | UsageChange::Nothing => {}
        }
        if !session.compaction.watches_usage()
            && let Some(node) = update.get("used")
        {
            self.reader.usage_scanner.remember(message.line, node.span().start, session.key(), used);
        }
    }

    /// Notes a prompt that the agent will receive as it is, if it is the user's own command for a compaction.
    pub(crate) fn note_command(&mut self, key: SessionKey, message: &Message<'_>, id: &Id) {
        if let Some(session) = self.sessions.get(key)
            && is_command(session, message, &self.agent, &self.policy)
        {
            session.compaction.commanded(id.clone());
        }
    }

    /// Returns the session of an update, unless the update is history: the agent has received no prompt since the session was
    /// set up, or is setting it up.
    fn live_session(&mut self, message: &Message<'_>) -> Option<SessionKey> {
        let session = message.session_id().and_then(|id| self.sessions.find(&id))?;
        let key = session.key();
        let is_live = session.compaction.is_live();
        let is_replayed = self
            .requests
            .values()
            .any(|open| matches!(&open.purpose, Purpose::SetUp(setup) if setup.session == key));
        (is_live && !is_replayed).then_some(key)
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
}
