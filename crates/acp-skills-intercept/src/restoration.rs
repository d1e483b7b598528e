//! Restores what the model has lost in a [compaction](crate::compaction), with the next prompt that is not a command: the
//! catalog, unless it is in the system prompt, and the instructions of the active skills. Some agents keep the prompts of the user
//! when they compact a conversation, and so also the catalog and the instructions in them.
//!
//! The skills that were used last come first. Each skill gets at most a fifth of the budget; those that are too long, or for which
//! nothing is left, are only named. The instructions are the current ones, and a skill that is off or gone is left out.

use acp_skills_wire::Message;
use skills_core::{SkillName, catalog::Guide, estimate_tokens};

use crate::{
    agent_facts::AgentFacts,
    briefing::{self, Occasion},
    events::EventKind,
    outputs::{Actions, Effect},
    policy::Policy,
    queries::{Instructions, Wanted},
    session::Session,
    words::is_command,
};

/// The share of the budget for one skill: 5,000 of 25,000 tokens.
const SHARE: usize = 5;

/// The maximum number of skills whose instructions are fetched.
const MAX_FETCHED: usize = 32;

/// Returns the reminder for the results of the skill tools until the next prompt. `skills` are those whose instructions the model
/// has lost. Returns `None` if there are none.
pub fn reminder<'a>(skills: impl Iterator<Item = &'a SkillName>) -> Option<String> {
    let names = names(&skills.collect::<Vec<_>>())?;
    Some(format!(
        "The conversation was compacted, so the instructions of these skills may be gone: {names}. If you still need a skill, \
         activate it again."
    ))
}

/// Lists names. Returns `None` if there are none.
fn names(skills: &[&SkillName]) -> Option<String> {
    let names = briefing::first(skills, |name| format!("`{name}`"));
    (!names.is_empty()).then(|| names.join(", "))
}

/// Splits skills into those whose instructions fit the budget, and the others.
fn within_budget(
    lost: Vec<SkillName>,
    instructions: Instructions,
    budget: usize,
) -> (Instructions, Vec<SkillName>) {
    let mut left = budget;
    let mut instructions = instructions;
    let mut fitting = Vec::new();
    let mut others = Vec::new();
    for name in lost {
        let found = instructions.iter().position(|(other, _)| other.key() == name.key());
        let text = found.map(|index| instructions.swap_remove(index).1);
        let tokens = text.as_deref().map_or(usize::MAX, estimate_tokens);
        match text {
            Some(text) if tokens <= left && tokens <= budget / SHARE => {
                left -= tokens;
                fitting.push((name, text));
            }
            _ => others.push(name),
        }
    }
    (fitting, others)
}

/// Returns the texts to fetch for a prompt that restores a loss. `other` is the text that the prompt needs anyway. Returns `None` if
/// the prompt restores no instructions.
pub(crate) fn wanted(session: &Session, message: &Message<'_>, other: Option<&Wanted>) -> Option<Wanted> {
    if !is_due(session, message) {
        return None;
    }
    let mut names = session.lost_skills();
    names.truncate(MAX_FETCHED);
    if names.is_empty() {
        return None;
    }
    let guide = session.guide();
    let best_for = match other {
        Some(Wanted::BestFor { words, .. }) => Some(words.clone()),
        _ => None,
    };
    Some(Wanted::Active { names, guide, best_for })
}

/// Returns true if this prompt restores a loss.
pub(crate) fn is_due(session: &Session, message: &Message<'_>) -> bool {
    session.compaction.lost().is_some()
        && message.param(&["prompt"]).is_some_and(|blocks| !is_command(blocks))
}

impl Session {
    /// Returns the active skills whose instructions the model has lost, most recently used first. Skills that are off or gone are
    /// left out.
    pub(crate) fn lost_skills(&self) -> Vec<SkillName> {
        let is_there = |name: &&SkillName| self.skills.get(name.as_str()).is_some();
        let active = self.activations.iter().map(|(name, _)| name).filter(is_there);
        active.filter(|name| self.compaction.has_lost(name)).rev().cloned().collect()
    }

    /// Sets the skills that the results of the skill tools remind of.
    pub(crate) fn remind(&mut self, actions: &mut Actions) {
        let skills = self.lost_skills();
        actions.effects.push(Effect::Remind { session: self.key(), skills });
    }

    /// Returns the texts that restore the loss, inside our marks. The loss counts as restored from now on. Returns `None` if nothing
    /// is lost, for example because an earlier prompt has restored it in the meantime.
    pub(crate) fn restore(
        &mut self,
        prompt: &Message<'_>,
        instructions: Instructions,
        agent: &AgentFacts,
        policy: &Policy,
        actions: &mut Actions,
    ) -> Option<Vec<String>> {
        let signal = self.compaction.lost()?;
        let was_told = self.briefing.guide().is_some();
        if !agent.quirks.keeps_prompts {
            self.briefing.lost();
        }
        let mut texts: Vec<_> =
            self.brief_in_prompt(prompt, agent, policy, Occasion::Ordinary).into_iter().collect();
        let (fitting, others) = within_budget(self.lost_skills(), instructions, policy.restore_budget);
        let instructions = self.instructions_again(&fitting, &others);
        // A command can come before everything else. Then the catalog is not restored, but sent for the first time.
        let is_restored = was_told || instructions.is_some();
        texts.extend(instructions.map(|text| self.marks.wrap(&text)));
        self.compaction.restored(prompt.id(), fitting.iter().map(|(name, _)| name));
        self.remind(actions);
        if is_restored && !texts.is_empty() {
            let kind = EventKind::Restored {
                skills: fitting.iter().map(|(name, _)| name.to_string()).collect(),
                tokens: texts.iter().map(|text| estimate_tokens(text) as u64).sum(),
                signal,
            };
            actions.effects.push(Effect::Record { session: self.id().map(str::to_owned), kind });
        }
        Some(texts)
    }

    /// Returns the instructions of `fitting` and the names of `others`. Returns `None` if both are empty.
    fn instructions_again(&self, fitting: &Instructions, others: &[SkillName]) -> Option<String> {
        let mut parts = Vec::new();
        if !fitting.is_empty() {
            parts.push(
                "The conversation was compacted. These are the instructions of the skills that were active. Keep following them \
                 where they apply."
                    .to_owned(),
            );
            parts.extend(fitting.iter().map(|(_, text)| text.clone()));
        }
        if let Some(names) = names(&others.iter().collect::<Vec<_>>()) {
            let how = match self.guide() {
                Guide::Tools => "activate it",
                Guide::Prompts => "ask the user to send `/skill:NAME` with its name",
                _ => "read its `SKILL.md`",
            };
            let which = if fitting.is_empty() {
                "The conversation was compacted, so the instructions of these skills may be gone"
            } else {
                "These skills were active, too"
            };
            parts.push(format!("{which}: {names}. If you still need a skill, {how} again."));
        }
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_kept() {
        for (sizes, budget, expected) in [
            (&[1000, 2000][..], 25_000, (&[0, 1][..], &[][..])),
            (&[5000, 5001, 10], 25_000, (&[0, 2], &[1])),
            (&[5000, 5000, 5000, 5000, 4999, 2, 1], 25_000, (&[0, 1, 2, 3, 4, 6], &[5])),
            (&[10], 0, (&[], &[0])),
            (&[200, 201], 1000, (&[0], &[1])),
        ] {
            let name = |number: usize| SkillName::new(&format!("s{number}")).unwrap();
            let lost: Vec<_> = (0..sizes.len()).map(name).collect();
            // A token has four of these characters. The order of the texts does not matter.
            let texts =
                sizes.iter().enumerate().rev().map(|(number, size)| (name(number), "x".repeat(size * 4)));
            let (fitting, others) = within_budget(lost, texts.collect(), budget);
            let names = |numbers: &[usize]| numbers.iter().map(|&number| name(number)).collect::<Vec<_>>();
            let fitting: Vec<_> = fitting.into_iter().map(|(name, _)| name).collect();
            assert_eq!((fitting, others), (names(expected.0), names(expected.1)), "{sizes:?} {budget}");
        }
    }

    #[test]
    fn a_skill_without_instructions_is_named() {
        let name = SkillName::new("a").unwrap();
        assert_eq!(within_budget(vec![name.clone()], Vec::new(), 25_000), (Vec::new(), vec![name]));
    }

    #[test]
    fn the_reminder_is_short() {
        let names: Vec<_> = (0..30).map(|number| SkillName::new(&format!("s{number}")).unwrap()).collect();
        assert_eq!(reminder([].iter()), None);
        assert!(reminder(names.iter()).unwrap().contains("`s19`, and 10 more."));
    }
}
