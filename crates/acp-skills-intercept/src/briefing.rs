//! What the model still has to be told of the skills: in the system prompt when a session is set up, or in front of a
//! prompt. A history that is replayed may hold what an earlier run of the proxy told.

mod changes;

use acp_skills_wire::{Edit, Message, Node};
use skills_core::catalog::{CatalogOptions, Guide};

use crate::{
    Interceptor,
    agent_facts::AgentFacts,
    placement::{self, Placement},
    policy::Policy,
    session::Session,
};

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
        let known = self.briefing.system_prompt().cloned();
        let text = known.or_else(|| Some(self.catalog(agent, policy, guide)?.into()));
        let Some(text) = text else { return };
        let is_in = match placement {
            Placement::SystemPrompt => placement::into_system_prompt(edit, params, &text),
            _ => placement::into_claude_meta(edit, params, &text),
        };
        // Otherwise it goes into the first prompt.
        if !is_in {
            return;
        }
        self.briefing.in_system_prompt(text, guide, &self.skills);
    }

    /// What this prompt has to tell the model about the skills, in our marks; it counts as told from now on.
    pub(crate) fn brief_in_prompt(
        &mut self,
        prompt: &Message<'_>,
        agent: &AgentFacts,
        policy: &Policy,
        occasion: Occasion,
    ) -> Option<String> {
        let before = self.briefing.clone();
        let news = self.news(agent, policy, occasion)?;
        self.briefing.is_unconfirmed_since(&before, prompt.id());
        Some(news)
    }

    /// What the model has not been told yet about the skills and how to use them.
    fn news(&mut self, agent: &AgentFacts, policy: &Policy, occasion: Occasion) -> Option<String> {
        if placement::choose(policy.catalog_in, agent) == Placement::Off {
            return None;
        }
        let now = self.guide();
        // Skills without files were not in the list.
        let told = self.briefing.told();
        let late = (told, now) == (Some(Guide::Files), Guide::Tools)
            && self.skills.listed().all(|skill| skill.dir().is_some());
        // It was told what to do without the tools.
        let knows_files = (told, now) == (Some(Guide::Tools), Guide::Files) && self.briefing.names_files();
        if told != Some(now) && !late && !knows_files {
            let text = self.catalog(agent, policy, now)?;
            self.briefing.now_knows(now, &self.skills);
            self.briefing.has_named_files(&text);
            return Some(text);
        }
        if !knows_files {
            self.briefing.guided_by(now);
        }
        let change = match occasion {
            Occasion::Ordinary => self.changes(&policy.catalog),
            Occasion::Command => None,
        };
        let lines: Vec<_> = late.then(|| LATE.to_owned()).into_iter().chain(change).collect();
        (!lines.is_empty()).then(|| self.mark.wrap(&lines.join("\n")))
    }

    /// The text that lists the skills and says how to use them, in our marks.
    fn catalog(&self, agent: &AgentFacts, policy: &Policy, guide: Guide) -> Option<String> {
        let text = placement::text(&self.skills, &self.server, agent, &policy.catalog, guide);
        text.map(|text| self.mark.wrap(&text))
    }

    /// How the model can get at the skills now.
    fn guide(&self) -> Guide {
        if self.server.has_tools() { Guide::Tools } else { Guide::Files }
    }

    /// What differs from what the model was told last, on one line; it counts as told from now on.
    fn changes(&mut self, options: &CatalogOptions) -> Option<String> {
        let known = self.briefing.known().filter(|known| !known.ptr_eq(&self.skills))?;
        let told = self.briefing.told()?;
        let text = changes::line(self, known, told, options);
        self.briefing.now_knows(told, &self.skills);
        text
    }

    /// A text of ours is replayed, without its marks: does the model know the catalog from it?
    fn was_briefed(&mut self, ours: &str, agent: &AgentFacts, policy: &Policy) {
        let in_prompt = placement::choose(policy.catalog_in, agent) == Placement::Prompt;
        if !in_prompt || self.briefing.told().is_some() {
            return;
        }
        // With tools or with files: what was told then need not be what would be told now.
        for guide in [self.guide(), Guide::Tools, Guide::Files] {
            let list = placement::list(&self.skills, &policy.catalog, guide);
            if list.is_some_and(|list| has_words(ours, &list)) {
                self.briefing.has_named_files(ours);
                return self.briefing.now_knows(guide, &self.skills);
            }
        }
    }
}

/// Whether `text` begins with the words of `start`: agents flatten space.
fn has_words(text: &str, start: &str) -> bool {
    let mut words = text.split_whitespace();
    start.split_whitespace().all(|word| words.next() == Some(word))
}

impl Interceptor {
    /// The agent replays a user's message, or a part of it: `ours` are the texts of ours in it, without their marks, and
    /// `clean` is what the client sees.
    pub(crate) fn replayed(&mut self, id: &str, ours: &[String], clean: &str) {
        let Some(session) = self.sessions.find(id) else { return };
        for ours in ours {
            session.was_briefed(ours, &self.agent, &self.policy);
        }
        session.first_words.replayed(!ours.is_empty(), clean);
    }
}
