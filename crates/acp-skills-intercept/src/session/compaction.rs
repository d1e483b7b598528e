//! [`Compaction`]: what the model of one session has lost because the agent compacted the conversation.

use std::collections::BTreeSet;

use acp_skills_wire::Id;
use skills_core::SkillName;

use super::{
    turn_input::TurnInput,
    usage::{Usage, UsageChange},
};
use crate::events::CompactionSignal;

/// The maximum number of open tool calls and commands that are remembered.
const MAX_OPEN: usize = 8;

/// The compactions of one session.
#[derive(Debug, Default)]
pub(crate) struct Compaction {
    /// True if the agent has received a prompt since the session was set up. Signals before that are history.
    is_live: bool,
    /// The loss that was not restored yet.
    lost: Option<Lost>,
    /// The prompts with instructions whose turns are not over, in order.
    unconfirmed: Vec<Unconfirmed>,
    /// The prompts with the user's own command. The second member is true once the agent has accepted the prompt.
    commands: Vec<(Id, bool)>,
    /// The ids of tool calls that report a running compaction.
    calls: Vec<String>,
    /// The `compactionId` of the last completed compaction.
    last_id: Option<String>,
    /// The keys of skills whose last instructions came from a restoration.
    restored: BTreeSet<String>,
    /// The keys of skills whose last instructions were in a prompt. Some agents keep the prompts.
    in_prompts: BTreeSet<String>,
    usage: Usage,
    turn_input: TurnInput,
}

/// A loss: the catalog, unless it is in the system prompt, and the instructions of the active skills.
#[derive(Debug, Clone)]
struct Lost {
    signal: CompactionSignal,
    /// True if only the usage has fallen. If the usage is back later, nothing was lost.
    is_guess: bool,
    /// The keys of skills whose instructions the model still has, or has received since.
    again: BTreeSet<String>,
}

/// A prompt with instructions, which the agent may drop.
#[derive(Debug)]
struct Unconfirmed {
    prompt: Id,
    /// The keys of the skills whose instructions are in the prompt.
    skills: BTreeSet<String>,
    /// The loss that the prompt restores.
    lost: Option<Lost>,
    /// True if the agent has accepted the prompt, and its turn is not over.
    accepted: bool,
}

/// The consequence of the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// The turn was a compaction.
    Compacted,
    /// The agent may have dropped a prompt with instructions, so the model has lost them.
    LostAgain,
    /// No action is needed.
    Ordinary,
}

impl Compaction {
    /// Returns the state for a copy of the session, whose model has lost the same.
    pub(crate) fn forked(&self) -> Self {
        Self {
            lost: self.lost.clone(),
            restored: self.restored.clone(),
            in_prompts: self.in_prompts.clone(),
            ..Self::default()
        }
    }

    /// Notes that the session is set up again: the agent may replay its history.
    pub(crate) fn reopened(&mut self) {
        self.is_live = false;
        self.calls.clear();
        // The agent may count from the start again.
        self.last_id = None;
        self.usage.reopened();
        self.turn_input = TurnInput::default();
    }

    /// Notes that a prompt is sent to the agent.
    pub(crate) fn prompt_sent(&mut self) {
        self.is_live = true;
        self.usage.prompt_sent(!self.commands.is_empty());
    }

    /// Returns true if the agent has received a prompt since the session was set up.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Notes a compaction. `keeps_prompts` is true if the model still has the user's prompts. Returns true if it is the first
    /// compaction since the last restoration.
    pub(crate) fn noticed(&mut self, signal: CompactionSignal, keeps_prompts: bool) -> bool {
        if signal != CompactionSignal::Usage {
            self.usage.announced();
        }
        let is_first = self.lost.is_none();
        let kept = if keeps_prompts { self.in_prompts.clone() } else { BTreeSet::new() };
        let is_guess = signal == CompactionSignal::Usage;
        match &mut self.lost {
            Some(lost) => {
                lost.is_guess &= is_guess;
                // The model may have lost the instructions that it got since then, too.
                if is_guess || lost.signal == signal {
                    lost.again = kept;
                }
            }
            None => self.lost = Some(Lost { signal, is_guess, again: kept }),
        }
        is_first
    }

    /// Returns the first signal of the loss that was not restored yet.
    pub(crate) fn lost(&self) -> Option<CompactionSignal> {
        self.lost.as_ref().map(|lost| lost.signal)
    }

    /// Returns true if the model has lost the instructions of this skill, provided that the skill is active.
    pub(crate) fn has_lost(&self, skill: &SkillName) -> bool {
        self.lost.as_ref().is_some_and(|lost| !lost.again.contains(&skill.key()))
    }

    /// Notes that the model receives the instructions of a skill, other than in a restoration. `prompt` is the prompt that contains
    /// them, or `None` if they are in the result of a tool.
    pub(crate) fn activated(&mut self, skill: &SkillName, prompt: Option<Id>) {
        let key = skill.key();
        self.restored.remove(&key);
        self.in_prompts.remove(&key);
        if let Some(lost) = &mut self.lost {
            lost.again.insert(key.clone());
        }
        if let Some(prompt) = prompt {
            self.in_prompts.insert(key.clone());
            self.sent_with(prompt).skills.insert(key);
        }
    }

    /// Returns the entry of a prompt with instructions.
    fn sent_with(&mut self, prompt: Id) -> &mut Unconfirmed {
        let known = self.unconfirmed.iter().position(|sent| sent.prompt == prompt);
        let index = known.unwrap_or_else(|| {
            if self.unconfirmed.len() == MAX_OPEN {
                self.unconfirmed.remove(0);
            }
            let skills = BTreeSet::new();
            self.unconfirmed.push(Unconfirmed { prompt, skills, lost: None, accepted: false });
            self.unconfirmed.len() - 1
        });
        &mut self.unconfirmed[index]
    }

    /// Returns true if the last instructions of this skill came from a restoration.
    pub(crate) fn was_restored(&self, skill: &SkillName) -> bool {
        self.restored.contains(&skill.key())
    }

    /// Notes that the loss is restored by a prompt, with the instructions of `skills`.
    pub(crate) fn restored<'a>(&mut self, prompt: Option<Id>, skills: impl Iterator<Item = &'a SkillName>) {
        self.usage.settled();
        let skills: Vec<_> = skills.map(SkillName::key).collect();
        self.restored.extend(skills.iter().cloned());
        self.in_prompts.extend(skills.iter().cloned());
        let lost = self.lost.take();
        if let Some(prompt) = prompt {
            let sent = self.sent_with(prompt);
            sent.skills.extend(skills);
            sent.lost = lost;
        }
    }

    /// Notes a prompt with the user's own command for a compaction.
    pub(crate) fn commanded(&mut self, prompt: Id) {
        if self.commands.len() == MAX_OPEN {
            self.commands.remove(0);
        }
        self.commands.push((prompt, false));
    }

    /// Notes that a compaction failed or was cancelled. If it was that of a command, the turn of the command does not count.
    pub(crate) fn failed(&mut self) {
        self.commands.clear();
        self.usage.command_over(false);
    }

    /// Notes that the agent accepted a prompt but the turn is not over.
    pub(crate) fn accepted(&mut self, prompt: &Id) {
        for (id, accepted) in &mut self.commands {
            *accepted |= id == prompt;
        }
        for sent in &mut self.unconfirmed {
            sent.accepted |= sent.prompt == *prompt;
        }
    }

    /// Notes that the turn of this prompt is over. `forgotten` is true if the agent may have dropped the prompt.
    pub(crate) fn turn_over(&mut self, prompt: &Id, forgotten: bool) -> TurnEnd {
        self.end(forgotten, |id, _| id == prompt)
    }

    /// Notes that the turns of all accepted prompts are over.
    pub(crate) fn turns_over(&mut self, forgotten: bool) -> TurnEnd {
        self.end(forgotten, |_, accepted| accepted)
    }

    fn end(&mut self, forgotten: bool, matches: impl Fn(&Id, bool) -> bool) -> TurnEnd {
        // The fall of a compaction comes in its own turn or in the next one.
        if self.lost.is_none() {
            self.usage.turn_over();
        }
        let is_over = |sent: &mut Unconfirmed| matches(&sent.prompt, sent.accepted);
        let over: Vec<_> = self.unconfirmed.extract_if(.., is_over).collect();
        let before = self.commands.len();
        self.commands.retain(|(id, accepted)| !matches(id, *accepted));
        let is_command = self.commands.len() < before;
        // Codex doesn't report the end of a call that failed.
        let is_open = is_command && !std::mem::take(&mut self.calls).is_empty();
        let has_shrunk = is_command && self.usage.command_over(forgotten);
        if forgotten {
            let has_lost = !over.is_empty();
            // The loss of a later prompt includes those before it.
            over.into_iter().rev().for_each(|sent| self.dropped(sent));
            return if has_shrunk {
                TurnEnd::Compacted
            } else if has_lost && self.lost.is_some() {
                TurnEnd::LostAgain
            } else {
                TurnEnd::Ordinary
            };
        }
        if has_shrunk || (is_command && !is_open) { TurnEnd::Compacted } else { TurnEnd::Ordinary }
    }

    /// Notes that the agent may have dropped a prompt with instructions.
    fn dropped(&mut self, sent: Unconfirmed) {
        if self.lost.is_none() {
            // The fall of the usage is settled, so this is not a guess any more.
            self.lost = sent.lost.map(|lost| Lost { is_guess: false, ..lost });
        }
        for skill in &sent.skills {
            self.restored.remove(skill);
            self.in_prompts.remove(skill);
            if let Some(lost) = &mut self.lost {
                lost.again.remove(skill);
            }
        }
    }

    /// Notes a tool call that reports a running compaction.
    pub(crate) fn call_started(&mut self, id: &str) {
        if self.is_call(id) {
            return;
        }
        if self.calls.len() == MAX_OPEN {
            self.calls.remove(0);
        }
        self.calls.push(id.to_owned());
    }

    /// Returns true if this tool call reports a running compaction.
    pub(crate) fn is_call(&self, id: &str) -> bool {
        self.calls.iter().any(|call| call == id)
    }

    /// Notes that the tool call has ended.
    pub(crate) fn call_ended(&mut self, id: &str) {
        self.calls.retain(|call| call != id);
    }

    /// Notes that the compaction with this id is completed. Returns false if it was completed before.
    pub(crate) fn note_completed(&mut self, id: &str) -> bool {
        if self.last_id.as_deref() == Some(id) {
            return false;
        }
        self.last_id = Some(id.to_owned());
        true
    }

    /// Reads a report of the context usage.
    pub(crate) fn usage(&mut self, used: u64, size: u64) -> UsageChange {
        if used == 0 {
            // OpenCode reports this if the compaction of a command failed or was cancelled.
            self.failed();
        }
        self.usage.report(used, size)
    }

    /// Notes an update about a tool call.
    pub(crate) fn call_updated(&mut self) {
        self.turn_input.call_updated();
    }

    /// Notes the end of a turn whose model calls have read `tokens` in all. Returns true if the conversation was compacted.
    pub(crate) fn turn_has_read(&mut self, tokens: Option<u64>) -> bool {
        self.turn_input.turn_over(tokens.unwrap_or(0))
    }

    /// Remembers that reports without a fall have passed. The last one was `used`.
    pub(crate) fn usage_passed(&mut self, used: u64) {
        self.usage.passed(used);
    }

    /// Ignores the last fall of the usage from now on, because it was part of the history.
    pub(crate) fn fall_is_history(&mut self) {
        self.usage.settled();
    }

    /// Returns true if the next report of the usage has to be read.
    pub(crate) fn watches_usage(&self) -> bool {
        self.usage.must_be_read()
    }

    /// Takes back a loss that was only noticed by the usage. Returns true if there was one.
    pub(crate) fn retract(&mut self) -> bool {
        self.lost.take_if(|lost| lost.is_guess).is_some()
    }
}
