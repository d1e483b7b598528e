//! [`Briefing`]: what the model of one session was told of the skills.
//!
//! Our text goes into a prompt once, for as long as the agent remembers that. A turn that failed may be forgotten with all
//! it said.

use std::sync::Arc;

use acp_skills_wire::Id;
use skills_core::{SkillSet, catalog::Guide};

/// What the model of one session was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Briefing {
    /// How it was told last to get at the skills; nothing when it was told nothing.
    told: Option<Guide>,
    /// The skills that it was told of last, when it was.
    known: Option<SkillSet>,
    /// Whether it was told with that where their files are.
    names_files: bool,
    /// The text for the system prompt; the same for as long as the session lives.
    system_prompt: Option<Arc<str>>,
    /// The prompt that told it something last, until its turn is over.
    unconfirmed: Option<Unconfirmed>,
}

/// A prompt that told the model something, and what the model knew before.
#[derive(Debug, Clone)]
struct Unconfirmed {
    prompt: Id,
    told: Option<Guide>,
    known: Option<SkillSet>,
    /// Whether the agent has accepted it, and its turn goes on.
    accepted: bool,
}

impl Briefing {
    /// The briefing of a copy of the session.
    pub(crate) fn forked(&self) -> Self {
        Self { unconfirmed: None, ..self.clone() }
    }

    /// The agent never got what it was to be told.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The agent took a prompt; its turn goes on.
    pub(crate) fn accepted(&mut self, prompt: &Id) {
        if let Some(unconfirmed) = self.unconfirmed.as_mut().filter(|it| it.prompt == *prompt) {
            unconfirmed.accepted = true;
        }
    }

    /// The turn of this prompt is over; `forgotten` when the agent may have forgotten it.
    pub(crate) fn turn_over(&mut self, prompt: &Id, forgotten: bool) {
        self.confirm(forgotten, |it| it.prompt == *prompt);
    }

    /// The turns of all prompts that the agent took are over.
    pub(crate) fn turns_over(&mut self, forgotten: bool) {
        self.confirm(forgotten, |it| it.accepted);
    }

    /// What was told with a prompt that the agent forgot has to be told again.
    fn confirm(&mut self, forgotten: bool, is_it: impl Fn(&Unconfirmed) -> bool) {
        if let Some(before) = self.unconfirmed.take_if(|it| is_it(it))
            && forgotten
        {
            (self.told, self.known) = (before.told, before.known);
        }
    }

    /// How the model was told last to get at the skills.
    pub(crate) fn told(&self) -> Option<Guide> {
        self.told
    }

    /// The skills that it was told of last.
    pub(crate) fn known(&self) -> Option<&SkillSet> {
        self.known.as_ref()
    }

    /// The text that is in the system prompt.
    pub(crate) fn system_prompt(&self) -> Option<&Arc<str>> {
        self.system_prompt.as_ref()
    }

    /// This text is in the system prompt, and lists these skills when it is a new one.
    pub(crate) fn in_system_prompt(&mut self, text: Arc<str>, guide: Guide, skills: &SkillSet) {
        if self.system_prompt.replace(text).is_none() {
            self.known = Some(skills.clone());
        }
        self.told = Some(guide);
    }

    /// A prompt told what is known now; until its turn is over, the agent may forget that.
    pub(crate) fn is_unconfirmed_since(&mut self, before: &Self, prompt: Option<Id>) {
        let (told, known) = (before.told, before.known.clone());
        self.unconfirmed = prompt.map(|prompt| Unconfirmed { prompt, told, known, accepted: false });
    }

    /// The model is told from now on to get at the skills in this way.
    pub(crate) fn guided_by(&mut self, guide: Guide) {
        self.told = Some(guide);
    }

    /// Whether it was told where the files of the skills are.
    pub(crate) fn names_files(&self) -> bool {
        self.names_files
    }

    /// This is what it is told.
    pub(crate) fn has_named_files(&mut self, text: &str) {
        self.names_files = text.contains("SKILL.md");
    }

    /// The model knows these skills from now on.
    pub(crate) fn now_knows(&mut self, guide: Guide, skills: &SkillSet) {
        self.told = Some(guide);
        self.known = Some(skills.clone());
    }
}
