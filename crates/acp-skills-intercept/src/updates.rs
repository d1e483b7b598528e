//! The agent's updates that the interceptor reads. All other updates are forwarded without reading them.
//!
//! The kinds are in one table, which the classifier uses too, so that it never skips an update that is handled here.

use acp_skills_wire::{Message, Node};

use crate::{
    Interceptor,
    call_titles::Shape,
    outputs::{Actions, Pass},
    permission,
};

/// Declares the kinds of update that are read, and their spelling on the wire.
macro_rules! kinds {
    ($($kind:ident = $name:literal),+ $(,)?) => {
        /// A kind of update that is read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum UpdateKind { $($kind),+ }

        /// The kinds of update that are read, as JSON strings.
        pub(crate) const READ: &[&[u8]] = &[$(concat!("\"", $name, "\"").as_bytes()),+];

        impl UpdateKind {
            fn of(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$kind),)+
                    _ => None,
                }
            }
        }
    };
}

kinds!(
    UserMessageChunk = "user_message_chunk",
    UserMessage = "user_message",
    StateUpdate = "state_update",
    SessionInfo = "session_info_update",
    AvailableCommands = "available_commands_update",
    ConfigOptions = "config_option_update",
    ToolCall = "tool_call",
    ToolCallUpdate = "tool_call_update",
    Compaction = "compaction_update",
    AvailableSkills = "available_skills_update",
    Subagent = "subagent_update",
    SessionMessage = "session_message",
    SessionMessageChunk = "session_message_chunk",
);

/// The kind of an update that reports the context usage. It is parsed if the usage has fallen, or if `usage_scanner` does not know
/// its form.
const USAGE: &str = "usage_update";

/// Updates that are not part of a message. Agents send them at any time, even in the middle of a message.
const ASIDES: [&str; 7] = [
    "available_commands_update",
    "available_skills_update",
    "config_option_update",
    "session_info_update",
    "subagent_update",
    "notice",
    USAGE,
];

/// Returns the kind of an update, or `None` if the message is no update.
fn kind_of<'a>(message: &Message<'a>) -> Option<Node<'a>> {
    message.param(&["update", "sessionUpdate"]).filter(|_| message.method() == "session/update")
}

/// Returns true for an update that is not part of a message.
pub(crate) fn is_aside(message: &Message<'_>) -> bool {
    kind_of(message).is_some_and(|kind| ASIDES.iter().any(|aside| kind.is_str(aside)))
}

impl Interceptor {
    /// Handles a `session/update` notification of the agent.
    pub(crate) fn update(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(update) = message.param(&["update"]) else { return Pass::Untouched };
        let Some(name) = update.str("sessionUpdate") else { return Pass::Untouched };
        let Some(kind) = UpdateKind::of(&name) else {
            // Most of these are not read; see `mark_scanner` and `usage_scanner`.
            if let Some(kind) = ChunkKind::of(&name) {
                if kind == ChunkKind::Agent {
                    self.compaction_message(message, update, actions);
                }
                return self.message_chunk(message, update, kind, actions);
            }
            if name == USAGE {
                self.usage_update(message, update, actions);
            }
            return Pass::Untouched;
        };
        match kind {
            UpdateKind::UserMessageChunk => self.message_chunk(message, update, ChunkKind::User, actions),
            UpdateKind::UserMessage => self.whole_message(message, update, ChunkKind::User),
            UpdateKind::SessionMessage => self.whole_message(message, update, ChunkKind::Session),
            UpdateKind::SessionMessageChunk => {
                self.message_chunk(message, update, ChunkKind::Session, actions)
            }
            UpdateKind::Subagent => self.subagent(message, update),
            UpdateKind::AvailableSkills => self.skills_update(message, update),
            UpdateKind::StateUpdate => {
                self.state_update(message, update, actions);
                Pass::Untouched
            }
            UpdateKind::SessionInfo => self.session_info(message, update),
            UpdateKind::AvailableCommands => self.commands_update(message, update),
            UpdateKind::ConfigOptions => self.options_update(message, update),
            UpdateKind::ToolCall => self.call_update(message, update, Shape::Whole, actions),
            UpdateKind::ToolCallUpdate => self.call_update(message, update, Shape::Part, actions),
            UpdateKind::Compaction => {
                self.compaction_update(message, update, actions);
                Pass::Untouched
            }
        }
    }

    /// Handles an update about a tool call. `shape` is [`Shape::Whole`] if the update announces the call.
    fn call_update(
        &mut self,
        message: &Message<'_>,
        update: Node<'_>,
        shape: Shape,
        actions: &mut Actions,
    ) -> Pass {
        let Some(key) = message.session_id().and_then(|id| self.sessions.key_of(&id)) else {
            return Pass::Untouched;
        };
        if let Some(session) = self.sessions.get(key) {
            session.call_touches(update, actions);
            permission::shell_may_move(update, session, &self.agent, &self.policy);
            session.compaction.call_updated();
        }
        let Some(id) = update.str("toolCallId") else { return Pass::Untouched };
        if self.compaction_call(key, &id, update, shape == Shape::Whole, actions) {
            return Pass::Untouched;
        }
        self.tool_call(key, &id, message, update, shape)
    }
}

/// The kind of message that a chunk belongs to. Chunks of the agent are read only if they may contain our text or the message about
/// a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    /// A message of the user, which the agent repeats.
    #[default]
    User,
    /// A message of the agent.
    Agent,
    /// The agent's thoughts.
    Thought,
    /// A message between two sessions, such as those of an agent and its subagent.
    Session,
}

impl ChunkKind {
    fn of(name: &str) -> Option<Self> {
        match name {
            "user_message_chunk" => Some(Self::User),
            "agent_message_chunk" => Some(Self::Agent),
            "agent_thought_chunk" => Some(Self::Thought),
            "session_message_chunk" => Some(Self::Session),
            _ => None,
        }
    }

    /// Returns the kind of chunk in a message, or `None` if the message is no chunk.
    pub(crate) fn of_message(message: &Message<'_>) -> Option<Self> {
        Self::of(&kind_of(message)?.as_str()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_handled() {
        for quoted in READ {
            let name = std::str::from_utf8(quoted).unwrap().trim_matches('"');
            assert!(UpdateKind::of(name).is_some(), "{name}");
        }
    }
}
