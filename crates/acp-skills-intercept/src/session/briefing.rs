//! [`Briefing`]: the texts about skills that the model of one session has received.
//!
//! Each text is added to one prompt. If the turn of that prompt fails, the agent may drop the prompt from its history, and the
//! text is sent again.

use std::sync::Arc;

use acp_skills_wire::Id;
use skills_core::{SkillSet, catalog::Guide};

/// The texts about skills that the model of one session has received.
#[derive(Debug, Clone, Default)]
pub(crate) struct Briefing {
    /// The last instructions for using the skills. `None` if the model has received none.
    guide: Option<Guide>,
    /// The skills that the model knows, if it knows any.
    known: Option<SkillSet>,
    /// True if the last instructions have the paths of the skills.
    has_paths: bool,
    /// The text in the system prompt. It does not change while the session exists.
    system_prompt: Option<Arc<str>>,
    /// The instructions and the skills in the system prompt. They survive a compaction.
    in_system_prompt: Option<(Guide, SkillSet)>,
    /// The latest prompt with injected text, until the turn is over.
    unconfirmed: Option<Unconfirmed>,
}

/// A prompt with injected text, and the state before this prompt.
#[derive(Debug, Clone)]
struct Unconfirmed {
    prompt: Id,
    guide: Option<Guide>,
    known: Option<SkillSet>,
    /// True if the agent has accepted the prompt, and its turn is not over.
    accepted: bool,
}

impl Briefing {
    /// Returns the briefing for a copy of the session.
    pub(crate) fn forked(&self) -> Self {
        Self { unconfirmed: None, ..self.clone() }
    }

    /// Resets the briefing, because the agent refused the request with our text.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Remembers that a prompt was accepted but the turn is not over.
    pub(crate) fn accepted(&mut self, prompt: &Id) {
        if let Some(unconfirmed) =
            self.unconfirmed.as_mut().filter(|unconfirmed| unconfirmed.prompt == *prompt)
        {
            unconfirmed.accepted = true;
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

    /// Ends the unconfirmed state. If the agent has dropped the prompt, its text has to be sent again.
    fn confirm(&mut self, forgotten: bool, matches: impl Fn(&Unconfirmed) -> bool) {
        if let Some(before) = self.unconfirmed.take_if(|unconfirmed| matches(unconfirmed))
            && forgotten
        {
            self.guide = before.guide;
            self.known = before.known;
        }
    }

    /// Returns the last instructions for using the skills.
    pub(crate) fn guide(&self) -> Option<Guide> {
        self.guide
    }

    /// Returns the skills that the model knows.
    pub(crate) fn known(&self) -> Option<&SkillSet> {
        self.known.as_ref()
    }

    /// Returns the text in the system prompt.
    pub(crate) fn system_prompt(&self) -> Option<&Arc<str>> {
        self.system_prompt.as_ref()
    }

    /// Remembers that this text is in the system prompt. A new text lists `skills`.
    pub(crate) fn sent_in_system_prompt(&mut self, text: Arc<str>, guide: Guide, skills: &SkillSet) {
        if self.system_prompt.replace(text).is_none() {
            self.known = Some(skills.clone());
            self.in_system_prompt = Some((guide, skills.clone()));
        }
        self.guide = Some(guide);
    }

    /// Notes that the agent has replaced the conversation by a summary. Only the system prompt is left.
    pub(crate) fn lost(&mut self) {
        (self.guide, self.known) = self.in_system_prompt.clone().unzip();
    }

    /// Remembers the prompt that has the last text. Until its turn is over, the agent may drop the prompt.
    pub(crate) fn sent_with(&mut self, before: &Self, prompt: Option<Id>) {
        let guide = before.guide;
        let known = before.known.clone();
        self.unconfirmed = prompt.map(|prompt| Unconfirmed { prompt, guide, known, accepted: false });
    }

    /// Sets the last instructions for using the skills.
    pub(crate) fn set_guide(&mut self, guide: Guide) {
        self.guide = Some(guide);
    }

    /// Returns true if the model has the paths of the skills.
    pub(crate) fn has_paths(&self) -> bool {
        self.has_paths
    }

    /// Remembers whether a text for the model has the paths of the skills.
    pub(crate) fn note_paths(&mut self, text: &str) {
        self.has_paths = text.contains("SKILL.md");
    }

    /// Remembers that the model knows these skills.
    pub(crate) fn set_known(&mut self, guide: Guide, skills: &SkillSet) {
        self.guide = Some(guide);
        self.known = Some(skills.clone());
    }
}
