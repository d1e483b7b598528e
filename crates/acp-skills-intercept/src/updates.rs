//! Which updates of the agent's are read, and by whom. All others stream past the interceptor.
//!
//! There is one table: what is dispatched here is what the classifier lets nobody miss.

use acp_skills_wire::Message;

use crate::{
    Interceptor,
    outputs::{Actions, Pass},
};

/// Declares the kinds of update that are read, and their spelling on the wire.
macro_rules! kinds {
    ($($kind:ident = $name:literal),+ $(,)?) => {
        /// A kind of update that somebody reads.
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
);

impl Interceptor {
    /// The agent tells something of a session.
    pub(crate) fn update(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(update) = message.param(&["update"]) else { return Pass::Untouched };
        let Some(kind) = update.str("sessionUpdate").and_then(|kind| UpdateKind::of(&kind)) else {
            return Pass::Untouched;
        };
        match kind {
            UpdateKind::UserMessageChunk => self.user_message_chunk(message, update, actions),
            UpdateKind::UserMessage => self.user_message(message, update),
            UpdateKind::StateUpdate => {
                self.state_update(message, update);
                Pass::Untouched
            }
            UpdateKind::SessionInfo => self.session_info(message, update),
            UpdateKind::AvailableCommands => self.commands_update(message, update),
        }
    }

    /// Whether a message is a chunk of a user's message.
    pub(crate) fn is_user_message_chunk(message: &Message<'_>) -> bool {
        let kind = message.param(&["update", "sessionUpdate"]);
        message.method() == "session/update"
            && kind.and_then(|kind| UpdateKind::of(&kind.as_str()?)) == Some(UpdateKind::UserMessageChunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_dispatched() {
        for quoted in READ {
            let name = std::str::from_utf8(quoted).unwrap().trim_matches('"');
            assert!(UpdateKind::of(name).is_some(), "{name}");
        }
    }
}
