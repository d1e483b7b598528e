//! What the agent remembers: whether the model still knows what it was told, and how the user began.
//!
//! Our text goes into a prompt once, for as long as the agent remembers that prompt. A turn that failed may be
//! forgotten with all it said; a history that is replayed may hold what an earlier run of the proxy told.

use super::{
    Interceptor, placement,
    placement::Placement,
    prompt,
    version::{self, Turn},
};
use crate::session::{Session, SessionKey, Teller, Told};
use acp_skills_wire::{Id, Message, Node};

/// How much of a prompt is kept for a title, in characters.
const FIRST_WORDS_CHARS: usize = 80;

impl Interceptor {
    /// A prompt is answered.
    pub(super) fn answered(&mut self, key: SessionKey, id: &Id, message: &Message<'_>) {
        let turn = self.agent.version.turn(message);
        let Some(session) = self.sessions.get(key) else { return };
        session.in_flight = session.in_flight.saturating_sub(1);
        match turn {
            Turn::Over { forgotten } => session.turn_over(forgotten, |teller| teller.id == *id),
            Turn::Accepted => {
                // What it does comes to an end that it tells.
                session.busy = true;
                if let Some(teller) = session.teller.as_mut().filter(|teller| teller.id == *id) {
                    teller.accepted = true;
                }
            }
        }
    }

    /// The agent begins to work, waits for the user, or has done all there was to do.
    pub(super) fn state_update(&mut self, message: &Message<'_>, update: Node<'_>) {
        let Some(session) = message.session_id().and_then(|id| self.sessions.find(&id)) else { return };
        session.background = update.get("background").filter(Node::is_array).map(|list| list.raw().to_vec());
        session.busy = !update.get("state").is_some_and(|state| state.is_str("idle"));
        if !session.busy {
            session.turn_over(version::forgets(update), |teller| teller.accepted);
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
                    session.known = Some(session.skills.clone());
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
    /// A turn is over. What the prompt that `is_its` told the model has to be told again when the agent forgot it.
    fn turn_over(&mut self, forgotten: bool, is_its: impl Fn(&Teller) -> bool) {
        if let Some(teller) = self.teller.take_if(|teller| is_its(teller))
            && forgotten
        {
            (self.told, self.known) = (teller.told, teller.known);
        }
    }

    /// Keeps the words of the message that our text stands in front of, unless there was one before.
    pub(super) fn begins_with(&mut self, words: &str) {
        if self.first_words.is_none() {
            let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
            self.first_words = Some(line.chars().take(FIRST_WORDS_CHARS).collect());
        }
    }
}
