//! [`Briefing`]: what the model of one session was told of the skills, and what it still has to be told.
//!
//! Our text goes into a prompt, or into the system prompt, once, for as long as the agent remembers that. A turn that
//! failed may be forgotten with all it said; a history that is replayed may hold what an earlier run of the proxy told.

mod changes;

use std::sync::Arc;

use acp_skills_wire::{Edit, Id, Message, Node};
use skills_core::{
    SkillSet,
    catalog::{CatalogOptions, Guide},
};

use crate::{
    Interceptor,
    agent_facts::AgentFacts,
    placement::{self, Placement},
    policy::Policy,
    session::Session,
};

/// What the model of one session was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Briefing {
    /// How it was told last to get at the skills; nothing when it was told nothing.
    told: Option<Guide>,
    /// The skills that it was told of last, when it was.
    known: Option<SkillSet>,
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

/// What a prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Words for the model.
    Ordinary,
    /// A command, which is no place for small talk.
    Command,
}

/// What the model is told when the tools come after all.
const LATE: &str = "The skill tools are available now: prefer `activate_skill` and `read_skill_file` to reading the \
                    files of skills yourself.";

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

    /// The model knows these skills from now on.
    fn now_knows(&mut self, guide: Guide, skills: &SkillSet) {
        self.told = Some(guide);
        self.known = Some(skills.clone());
    }
}

impl Session {
    /// Puts the catalog into the system prompt of a request that sets the session up, where the agent takes one.
    pub(crate) fn brief_at_setup(
        &mut self,
        edit: &mut Edit,
        params: Node<'_>,
        agent: &AgentFacts,
        policy: &Policy,
    ) {
        let placement = placement::choose(policy.catalog_in, agent);
        if !matches!(placement, Placement::SystemPrompt | Placement::ClaudeMeta) {
            return;
        }
        let guide = if self.server.is_offered() { Guide::Tools } else { Guide::Files };
        // The same text for as long as the session lives: an agent that compares it would start over.
        let text = self.briefing.system_prompt.clone().or_else(|| {
            let text = placement::text(self, agent, &policy.catalog, guide)?;
            self.briefing.known = Some(self.skills.clone());
            Some(text.into())
        });
        let Some(text) = text else { return };
        match placement {
            Placement::SystemPrompt => placement::into_system_prompt(edit, params, &text),
            _ => placement::into_claude_meta(edit, params, &text),
        }
        self.briefing.system_prompt = Some(text);
        self.briefing.told = Some(guide);
    }

    /// What this prompt has to tell the model about the skills, in our marks; it counts as told from now on.
    pub(crate) fn brief_in_prompt(
        &mut self,
        prompt: &Message<'_>,
        agent: &AgentFacts,
        policy: &Policy,
        occasion: Occasion,
    ) -> Option<String> {
        let (told, known) = (self.briefing.told, self.briefing.known.clone());
        let news = self.news(agent, policy, occasion)?;
        self.briefing.unconfirmed =
            prompt.id().map(|prompt| Unconfirmed { prompt, told, known, accepted: false });
        Some(news)
    }

    /// What the model has not been told yet about the skills and how to use them.
    fn news(&mut self, agent: &AgentFacts, policy: &Policy, occasion: Occasion) -> Option<String> {
        if placement::choose(policy.catalog_in, agent) == Placement::Off {
            return None;
        }
        let now = self.guide();
        // Skills without files were not in the list.
        let late = (self.briefing.told, now) == (Some(Guide::Files), Guide::Tools)
            && self.skills.listed().all(|skill| skill.dir().is_some());
        if self.briefing.told != Some(now) && !late {
            let text = placement::text(self, agent, &policy.catalog, now)?;
            self.briefing.now_knows(now, &self.skills);
            return Some(text);
        }
        self.briefing.told = Some(now);
        let change = match occasion {
            Occasion::Ordinary => self.changes(&policy.catalog),
            Occasion::Command => None,
        };
        let lines: Vec<_> = late.then(|| LATE.to_owned()).into_iter().chain(change).collect();
        (!lines.is_empty()).then(|| placement::wrap(&lines.join("\n")))
    }

    /// How the model can get at the skills now.
    fn guide(&self) -> Guide {
        if self.server.has_tools() { Guide::Tools } else { Guide::Files }
    }

    /// What differs from what the model was told last, on one line; it counts as told from now on.
    fn changes(&mut self, options: &CatalogOptions) -> Option<String> {
        let known = self.briefing.known.as_ref().filter(|known| !known.is(&self.skills))?;
        let text = changes::line(self, known, self.briefing.told, options);
        self.briefing.known = Some(self.skills.clone());
        text
    }

    /// A chunk of a message with text of ours is replayed, as it came: does the model know the catalog from it?
    fn was_briefed(&mut self, chunk: &str, agent: &AgentFacts, policy: &Policy) {
        let in_prompt = placement::choose(policy.catalog_in, agent) == Placement::Prompt;
        if !in_prompt || self.briefing.told.is_some() {
            return;
        }
        let now = self.guide();
        let ours = placement::text(self, agent, &policy.catalog, now);
        if ours.is_some_and(|ours| chunk.contains(ours.trim_end())) {
            self.briefing.now_knows(now, &self.skills);
        }
    }
}

impl Interceptor {
    /// The agent replays a user's message. `text` is a chunk of it as it came, `clean` what the client sees of that.
    pub(crate) fn replayed(&mut self, id: &str, text: &str, clean: &str) {
        let Some(session) = self.sessions.find(id) else { return };
        let has_our_text = text.contains(placement::OPEN);
        if has_our_text {
            session.was_briefed(text, &self.agent, &self.policy);
        }
        session.first_words.replayed(has_our_text, clean);
    }
}
