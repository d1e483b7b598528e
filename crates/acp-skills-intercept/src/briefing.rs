//! The text about skills that the model gets: in the system prompt when a session is set up, or in front of a prompt.
//!
//! Each text is sent once. If the agent replays the history of a session, texts of an earlier run count as sent.

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

/// The maximum number of skills in one list, except for the catalog.
const MAX_NAMED: usize = 20;

/// The kind of prompt that a text is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A prompt for the model, which is not a command.
    Ordinary,
    /// A command. It does not get the list of changed skills.
    Command,
}

/// The text for the model if the agent connects to the skills server after the catalog was sent without tools.
const LATE: &str = "The skill tools are available now: prefer `activate_skill` and `read_skill_file` to reading the \
                    files of skills yourself.";

/// The same text for a model that could not read the files either.
const LATE_ELSEWHERE: &str = "The skill tools are available now: when a task matches a skill, call `activate_skill` with its name before \
                              you begin.";

impl Session {
    /// Adds the catalog to the system prompt in a request that sets up the session, if the agent supports a system prompt.
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
        let guide = if self.server.is_offered() { Guide::Tools } else { self.without_tools };
        // This text should never change during a session, because some agents start over when the system prompt changes.
        let known = self.briefing.system_prompt().cloned();
        let text = known.or_else(|| Some(self.catalog(agent, policy, guide)?.into()));
        let Some(text) = text else { return };
        let is_in = match placement {
            Placement::SystemPrompt => placement::into_system_prompt(edit, params, &text),
            _ => placement::into_claude_meta(edit, params, &text),
        };
        // If we can't edit the field, the catalog will be sent with the first prompt instead.
        if !is_in {
            return;
        }
        self.briefing.sent_in_system_prompt(text, guide, &self.skills);
    }

    /// Returns the text about skills that this prompt needs, inside our marks. The text counts as sent from now on.
    pub(crate) fn brief_in_prompt(
        &mut self,
        prompt: &Message<'_>,
        agent: &AgentFacts,
        policy: &Policy,
        occasion: Occasion,
    ) -> Option<String> {
        let before = self.briefing.clone();
        let news = self.news(agent, policy, occasion)?;
        self.briefing.sent_with(&before, prompt.id());
        Some(news)
    }

    /// Returns the text about skills that the model does not know yet.
    fn news(&mut self, agent: &AgentFacts, policy: &Policy, occasion: Occasion) -> Option<String> {
        if placement::choose(policy.catalog_in, agent) == Placement::Off {
            return None;
        }
        let now = self.guide();
        // If the model didn't have the skill tools before, it was only told about skills with files. If there are more skills, we
        // have to send it the whole list.
        let known_guide = self.briefing.guide();
        let late = match (known_guide, now) {
            (Some(Guide::Files), Guide::Tools) if self.skills.listed().all(|skill| skill.dir().is_some()) => {
                Some(LATE)
            }
            (Some(Guide::Prompts), Guide::Tools) => Some(LATE_ELSEWHERE),
            _ => None,
        };
        // The catalog we sent along with the tools may also list the paths. In that case, the model can use it without the
        // tools.
        let knows_files =
            (known_guide, now) == (Some(Guide::Tools), Guide::Files) && self.briefing.has_paths();
        if known_guide != Some(now) && late.is_none() && !knows_files {
            let text = self.catalog(agent, policy, now)?;
            self.briefing.set_known(now, &self.skills);
            self.briefing.note_paths(&text);
            return Some(text);
        }
        if !knows_files {
            self.briefing.set_guide(now);
        }
        let change = match occasion {
            Occasion::Ordinary => self.changes(&policy.catalog),
            Occasion::Command => None,
        };
        let lines: Vec<_> = late.map(str::to_owned).into_iter().chain(change).collect();
        (!lines.is_empty()).then(|| self.marks.wrap(&lines.join("\n")))
    }

    /// Returns the catalog with instructions, inside our marks. Returns `None` if there is no skill to list.
    fn catalog(&self, agent: &AgentFacts, policy: &Policy, guide: Guide) -> Option<String> {
        let text = placement::text(self, agent, &policy.catalog, guide);
        text.map(|text| self.marks.wrap(&text))
    }

    /// Returns the changes since the last text for the model, on one line. They count as sent from now on.
    fn changes(&mut self, options: &CatalogOptions) -> Option<String> {
        let known = self.briefing.known().filter(|known| !known.ptr_eq(&self.skills))?;
        let known_guide = self.briefing.guide()?;
        let text = changes::line(self, known, known_guide, options);
        self.briefing.set_known(known_guide, &self.skills);
        text
    }

    /// Remembers that text from the proxy was replayed. If this contains the catalog, the model knows the skills.
    /// `ours` should be given without marks.
    fn was_briefed(&mut self, ours: &[String], agent: &AgentFacts, policy: &Policy) {
        let in_prompt = placement::choose(policy.catalog_in, agent) == Placement::Prompt;
        if !in_prompt || self.briefing.guide().is_some() || !self.briefing.may_compare(ours.len()) {
            return;
        }
        // The earlier run could have used a different guide from the one we would send now, so we try all of them.
        for guide in [self.guide(), Guide::Tools, Guide::Files, Guide::Prompts] {
            let Some(list) = placement::list(&self.skills, &policy.catalog, guide) else { continue };
            if let Some(ours) = ours.iter().find(|ours| has_words(ours, &list)) {
                self.briefing.note_paths(ours);
                return self.briefing.set_known(guide, &self.skills);
            }
        }
    }
}

/// Returns the texts for the first skills of a list, and how many more there are.
pub(crate) fn first<T>(skills: &[T], tell: impl Fn(&T) -> String) -> Vec<String> {
    let mut texts: Vec<_> = skills.iter().take(MAX_NAMED).map(tell).collect();
    if skills.len() > MAX_NAMED {
        texts.push(format!("and {} more", skills.len() - MAX_NAMED));
    }
    texts
}

/// Returns true if `text` begins with the words of `start`. White space is ignored, because agents change it.
fn has_words(text: &str, start: &str) -> bool {
    let mut words = text.split_whitespace();
    start.split_whitespace().all(|word| words.next() == Some(word))
}

impl Interceptor {
    /// Handles a replayed message of the user, or a part of one. `ours` contains the texts that an earlier run added,
    /// without their marks. `clean` is the rest of the message, which the client sees.
    pub(crate) fn replayed(&mut self, id: &str, ours: &[String], clean: &str) {
        let Some(session) = self.sessions.find(id) else { return };
        session.was_briefed(ours, &self.agent, &self.policy);
        session.first_words.replayed(!ours.is_empty(), clean);
    }
}
