//! What the agent remembers: whether the model still knows what it was told, and how the user began.
//!
//! Our text goes into a prompt once, for as long as the agent remembers that prompt. A turn that failed may be
//! forgotten with all it said; a history that is replayed may hold what an earlier run of the proxy told.

use super::{Interceptor, placement, placement::Placement, prompt};
use crate::{
    session::{Session, SessionKey, Told},
    wire::{Id, Message},
};

/// How much of a prompt is kept for a title, in characters.
const FIRST_WORDS_CHARS: usize = 80;

impl Interceptor {
    /// A turn is over. A prompt that was refused is not part of the conversation
    /// ([stop reasons](https://agentclientprotocol.com/protocol/v1/prompt-turn#stop-reasons)), and some agents forget
    /// one that was cancelled or failed, so what it told the model has to be told again.
    pub(super) fn turn_over(&mut self, key: SessionKey, id: &Id, message: &Message<'_>) {
        let Some(session) = self.sessions.get(key) else { return };
        session.in_flight = session.in_flight.saturating_sub(1);
        let Some((_, before)) = session.teller.take_if(|(teller, _)| teller == id) else { return };
        let reason = message.result.and_then(|result| result.str("stopReason"));
        if message.error.is_some() || matches!(reason.as_deref(), Some("refusal" | "cancelled")) {
            session.told = before;
        }
    }

    /// The agent replays a user's message. `text` is a chunk of it as it came, `clean` what the client sees of that.
    pub(super) fn remembered(&mut self, id: &str, text: &str, clean: &str) {
        let Some(session) = self.sessions.find(id) else { return };
        if text.contains(placement::OPEN) {
            session.words_follow = session.first_words.is_none();
            let in_prompt = placement::choose(self.policy.catalog_in, &self.agent) == Placement::Prompt;
            if in_prompt && session.told == Told::Nothing {
                let now = prompt::how_to_tell(session);
                let ours = placement::text(session, &self.agent, &self.policy.catalog, now);
                if ours.is_some_and(|ours| text.contains(ours.trim_end())) {
                    session.told = now;
                }
            }
        }
        if session.words_follow && !clean.trim().is_empty() {
            session.words_follow = false;
            session.begins_with(clean);
        }
    }
}

impl Session {
    /// Keeps the words of the message that our text stands in front of, unless there was one before.
    pub(super) fn begins_with(&mut self, words: &str) {
        if self.first_words.is_none() {
            let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
            self.first_words = Some(line.chars().take(FIRST_WORDS_CHARS).collect());
        }
    }
}
