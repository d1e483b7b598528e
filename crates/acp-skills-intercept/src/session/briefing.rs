//! [`Briefing`]: the texts about skills that the model of one session has received.
//!
//! Each text is added to one prompt. If the turn of that prompt fails, the agent may drop the prompt from its history, and the
//! text is sent again.

use std::sync::Arc;

use acp_skills_wire::Id;
use skills_core::{SkillSet, catalog::Guide};

/// The maximum number of prompts with injected text whose turns are not over.
const MAX_UNCONFIRMED: usize = 8;

/// The maximum number of replayed messages with injected text that are compared with the catalog. Each comparison renders the catalog.
const MAX_COMPARED: u8 = 32;

/// The texts about skills that the model of one session has received.
#[derive(Debug, Clone, Default)]
pub(crate) struct Briefing {
    /// The texts in the conversation and in the system prompt.
    told: Told,
    /// The text in the system prompt. It does not change while the session exists.
    system_prompt: Option<Arc<str>>,
    /// The instructions and the skills in the system prompt. They survive a compaction.
    in_system_prompt: Told,
    /// The prompts with injected text whose turns are not over, in order.
    unconfirmed: Vec<Unconfirmed>,
    /// The number of replayed messages that were compared with the catalog.
    compared: u8,
}

/// The content of the texts that the model has received.
#[derive(Debug, Clone, Default)]
struct Told {
    /// Specifies whether the model was last told to use the skill tools or to read the files. `None` if it was told neither.
    guide: Option<Guide>,
    /// The skills that the model knows, if it knows any.
    known: Option<SkillSet>,
    /// True if the last instructions have the paths of the skills.
    has_paths: bool,
}

/// A prompt with injected text, and the state before this prompt.
#[derive(Debug, Clone)]
struct Unconfirmed {
    prompt: Id,
    before: Told,
    /// True if the agent has accepted the prompt, and its turn is not over.
    accepted: bool,
}

impl Briefing {
    /// Returns the briefing for a copy of the session.
    pub(crate) fn forked(&self) -> Self {
        Self { unconfirmed: Vec::new(), ..self.clone() }
    }

    /// Resets the briefing, because the agent refused the request with our text.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Remembers that a prompt was accepted but the turn is not over.
    pub(crate) fn accepted(&mut self, prompt: &Id) {
        for sent in &mut self.unconfirmed {
            sent.accepted |= sent.prompt == *prompt;
        }
    }

    /// Remembers that the turn of this prompt is over. `forgotten` is true if the agent may have dropped the prompt.
    pub(crate) fn turn_over(&mut self, prompt: &Id, forgotten: bool) {
        self.confirm(forgotten, |unconfirmed| unconfirmed.prompt == *prompt);
    }

    /// Remembers that the turns of all accepted prompts are over.
    pub(crate) fn turns_over(&mut self, forgotten: bool) {
        self.confirm(forgotten, |unconfirmed| unconfirmed.accepted);
    }

    /// Removes the prompts that match from the unconfirmed ones. If the agent has `forgotten` them, their texts have to be sent again.
    fn confirm(&mut self, forgotten: bool, matches: impl Fn(&Unconfirmed) -> bool) {
        let Some(first) = self.unconfirmed.iter().position(&matches) else { return };
        if forgotten {
            // The texts of later prompts depend on this one.
            let before = self.unconfirmed[first].before.clone();
            for later in &mut self.unconfirmed[first..] {
                later.before.clone_from(&before);
            }
            self.told = before;
        }
        self.unconfirmed.retain(|sent| !matches(sent));
    }

    /// Returns true if a replayed message with this number of injected texts may be compared with the catalog. Counts the message.
    pub(crate) fn may_compare(&mut self, texts: usize) -> bool {
        let may_compare = texts > 0 && self.compared < MAX_COMPARED;
        self.compared += u8::from(may_compare);
        may_compare
    }

    /// Returns the last instructions for using the skills.
    pub(crate) fn guide(&self) -> Option<Guide> {
        self.told.guide
    }

    /// Returns the skills that the model knows.
    pub(crate) fn known(&self) -> Option<&SkillSet> {
        self.told.known.as_ref()
    }

    /// Returns the text in the system prompt.
    pub(crate) fn system_prompt(&self) -> Option<&Arc<str>> {
        self.system_prompt.as_ref()
    }

    /// Remembers that this text is in the system prompt. A new text lists `skills`.
    pub(crate) fn sent_in_system_prompt(&mut self, text: Arc<str>, guide: Guide, skills: &SkillSet) {
        let has_paths = has_paths(&text);
        if self.system_prompt.replace(text).is_none() {
            self.in_system_prompt = Told { guide: Some(guide), known: Some(skills.clone()), has_paths };
            self.told = self.in_system_prompt.clone();
        }
        self.told.guide = Some(guide);
    }

    /// Notes that the agent has replaced the conversation by a summary. Only the system prompt is left.
    pub(crate) fn lost(&mut self) {
        self.told = self.in_system_prompt.clone();
        // It makes no difference any more if the agent drops one of these prompts.
        self.unconfirmed.clear();
    }

    /// Remembers the prompt with the latest text, and the state `before` it, because the agent may drop the prompt until its turn
    /// is over.
    pub(crate) fn sent_with(&mut self, before: &Self, prompt: Option<Id>) {
        let Some(prompt) = prompt else { return };
        if self.unconfirmed.len() == MAX_UNCONFIRMED {
            self.unconfirmed.remove(0);
        }
        self.unconfirmed.push(Unconfirmed { prompt, before: before.told.clone(), accepted: false });
    }

    /// Sets the last instructions for using the skills.
    pub(crate) fn set_guide(&mut self, guide: Guide) {
        self.told.guide = Some(guide);
    }

    /// Returns true if the model has the paths of the skills.
    pub(crate) fn has_paths(&self) -> bool {
        self.told.has_paths
    }

    /// Remembers whether a text for the model has the paths of the skills.
    pub(crate) fn note_paths(&mut self, text: &str) {
        self.told.has_paths = has_paths(text);
    }

    /// Remembers that the model knows these skills.
    pub(crate) fn set_known(&mut self, guide: Guide, skills: &SkillSet) {
        self.told.guide = Some(guide);
        self.told.known = Some(skills.clone());
    }
}

/// Returns true if a text for the model has the paths of the skills.
fn has_paths(text: &str) -> bool {
    text.contains("SKILL.md")
}
