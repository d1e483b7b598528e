//! What is put in front of a prompt, and which prompts wait until the agent has our tools.

use std::mem;

use super::{Actions, Effect, Interceptor, Pass, placement, placement::Placement};
use crate::{
    session::{Held, Mcp, Session, SessionKey, Told},
    wire::{Edit, Id, Message, Node},
};

/// How much of the first prompt is kept for a title, in characters.
const FIRST_WORDS_CHARS: usize = 80;

impl Interceptor {
    pub(super) fn prompt(&mut self, message: &Message<'_>, id: &Id, actions: &mut Actions) -> Pass {
        let Some(session) = message.session_id().and_then(|id| self.sessions.find(&id)) else {
            return Pass::Untouched;
        };
        if session.first_words.is_none() {
            session.first_words = first_words(message);
        }
        // Later prompts of a session must not overtake one that waits.
        let waits =
            !session.held.is_empty() || (session.mcp == Mcp::Expected && !self.policy.mcp_wait.is_zero());
        if !waits {
            return self.write_prompt_of(message);
        }
        if session.held.is_empty() {
            actions.effects.push(Effect::Wait(session.key, self.policy.mcp_wait));
        }
        session.held.push(Held { id: id.clone(), line: message.line.to_vec() });
        Pass::Consumed
    }

    fn write_prompt_of(&mut self, message: &Message<'_>) -> Pass {
        let placement = placement::choose(self.policy.catalog_in, &self.agent);
        match message.session_id().and_then(|id| self.sessions.find(&id)) {
            Some(session) => write_prompt(session, message, placement, &self.policy.catalog),
            None => Pass::Untouched,
        }
    }

    pub(super) fn tools_listed(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        session.mcp = Mcp::Listed;
        self.release(key, actions);
    }

    pub(super) fn wait_over(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        if session.mcp == Mcp::Expected {
            session.mcp = Mcp::Missing;
            Self::warn(
                actions,
                "the agent did not connect to the skills server in time; the catalog names the files instead",
            );
        }
        self.release(key, actions);
    }

    pub(super) fn release_all(&mut self, actions: &mut Actions) {
        let keys: Vec<_> = self.sessions.iter_mut().map(|session| session.key).collect();
        for key in keys {
            self.release(key, actions);
        }
    }

    /// Sends the prompts of a session that have waited.
    fn release(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        for held in mem::take(&mut session.held) {
            let pass = Message::parse(&held.line).map(|message| self.write_prompt_of(&message));
            actions.to_agent.push(match pass {
                Some(Pass::Edited(line)) => line,
                _ => held.line,
            });
        }
    }
}

/// Puts what the model has to be told in front of the prompt.
fn write_prompt(
    session: &mut Session,
    message: &Message<'_>,
    placement: Placement,
    options: &skills_core::catalog::CatalogOptions,
) -> Pass {
    let Some(blocks) = message.param(&["prompt"]).filter(Node::is_array) else { return Pass::Untouched };
    if session.skills.is_empty() || placement == Placement::Off || is_command(blocks) {
        return Pass::Untouched;
    }
    let now = match session.mcp {
        Mcp::Off | Mcp::Missing => Told::Files,
        Mcp::Expected | Mcp::Listed => Told::Tools,
    };
    let text = match (session.told, now) {
        (before, now) if before == now => return Pass::Untouched,
        (Told::Files, Told::Tools) => Some(placement::wrap(LATE)),
        _ => placement::text(session, options, now),
    };
    session.told = now;
    let Some(text) = text else { return Pass::Untouched };
    let mut edit = Edit::new();
    edit.unshift(blocks, &placement::block(&text).to_string());
    Pass::Edited(edit.apply(message.line))
}

/// What the model is told when the tools come after all.
const LATE: &str = "The skill tools are available now: prefer `activate_skill` and `read_skill_file` to reading the files of skills yourself.";

/// Whether the prompt is a command of the agent's, which must stay as it is: agents look for it in the first block, in
/// the last one, or in all of them joined.
pub(super) fn is_command(blocks: Node<'_>) -> bool {
    blocks
        .elements()
        .filter_map(|block| block.str("text"))
        .any(|text| text.trim_start().starts_with(['/', '$']))
}

fn first_words(message: &Message<'_>) -> Option<String> {
    let blocks = message.param(&["prompt"])?;
    let text = blocks.elements().find_map(|block| block.str("text"))?;
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!words.is_empty()).then(|| words.chars().take(FIRST_WORDS_CHARS).collect())
}
