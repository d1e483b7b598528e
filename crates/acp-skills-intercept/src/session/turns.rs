//! [`Turns`]: the prompts of one session, those that the agent has and those that wait.
//!
//! A prompt waits when the agent is still fetching our tools (a model that starts without them does not see them), when
//! a text for it is being fetched, or when one before it in its session waits.

use std::{collections::VecDeque, mem};

use acp_skills_wire::Id;
use skills_core::SkillName;

use crate::{events::EventKind, keys::Ticket};

/// The prompts of one session.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    held: VecDeque<HeldPrompt>,
    /// How many prompts the agent has not answered.
    in_flight: usize,
    /// Whether the agent says that it works, also when it has answered every prompt.
    is_busy: bool,
    /// What the agent said last of its work in the background: a JSON array.
    background: Option<Vec<u8>>,
}

/// A prompt that waits.
#[derive(Debug)]
pub(crate) struct HeldPrompt {
    /// The request's id.
    pub(crate) id: Id,
    /// The request.
    pub(crate) line: Vec<u8>,
    /// What it is.
    pub(crate) kind: HeldKind,
    /// What is to be put in front of it, or to be answered.
    pub(crate) text: Text,
    /// The activations in the text, for the record.
    pub(crate) activations: Vec<EventKind>,
}

/// What a prompt that waits is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeldKind {
    /// Words for the model.
    Ordinary,
    /// A command that invokes a skill.
    Invocation(SkillName),
    /// A `/skills`, which the agent never sees.
    Command,
}

/// A text that is put in front of a prompt besides the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Text {
    /// None.
    None,
    /// It was asked for under this number.
    Pending(Ticket),
    /// It is here.
    Ready(String),
}

impl HeldPrompt {
    /// A prompt that waits for this text, if any.
    pub(crate) fn new(id: Id, line: &[u8], kind: HeldKind, text: Text) -> Self {
        Self { id, line: line.to_vec(), kind, text, activations: Vec::new() }
    }

    fn awaits(&self, ticket: Ticket) -> bool {
        self.text == Text::Pending(ticket)
    }
}

impl Turns {
    /// Whether prompts wait.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether the agent works, as far as is known.
    pub(crate) fn agent_works(&self) -> bool {
        self.in_flight > 0 || self.is_busy
    }

    /// Whether the agent says that it works.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// What goes on in the background, as the agent told it last: a JSON array.
    pub(crate) fn background(&self) -> Option<&[u8]> {
        self.background.as_deref()
    }

    /// A prompt goes to the agent.
    pub(crate) fn sent(&mut self) {
        self.in_flight += 1;
    }

    /// The agent answered a prompt.
    pub(crate) fn answered(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The agent accepted a prompt: what it does comes to an end that it tells.
    pub(crate) fn accepted(&mut self) {
        self.is_busy = true;
    }

    /// The agent says how it stands.
    pub(crate) fn state(&mut self, is_busy: bool, background: Option<Vec<u8>>) {
        (self.is_busy, self.background) = (is_busy, background);
    }

    /// Keeps a prompt behind all others.
    pub(crate) fn hold(&mut self, prompt: HeldPrompt) {
        self.held.push_back(prompt);
    }

    /// The first prompt, when it need not wait for a text.
    pub(crate) fn pop_ready(&mut self) -> Option<HeldPrompt> {
        self.held.pop_front_if(|held| !matches!(held.text, Text::Pending(_)))
    }

    /// The prompt that waits for this text.
    pub(crate) fn awaiting(&mut self, ticket: Ticket) -> Option<&mut HeldPrompt> {
        self.held.iter_mut().find(|held| held.awaits(ticket))
    }

    /// Takes out the prompt that waits for this text.
    pub(crate) fn take_awaiting(&mut self, ticket: Ticket) -> Option<HeldPrompt> {
        let index = self.held.iter().position(|held| held.awaits(ticket))?;
        self.held.remove(index)
    }

    /// Takes out the prompt with this id.
    pub(crate) fn take(&mut self, id: &Id) -> Option<HeldPrompt> {
        let index = self.held.iter().position(|held| held.id == *id)?;
        self.held.remove(index)
    }

    /// Takes out all prompts that wait.
    pub(crate) fn take_held(&mut self) -> VecDeque<HeldPrompt> {
        mem::take(&mut self.held)
    }

    /// All prompts that wait.
    pub(crate) fn held_mut(&mut self) -> impl Iterator<Item = &mut HeldPrompt> {
        self.held.iter_mut()
    }

    /// Nothing is worth waiting for any more: what has not been fetched is left out, and what the agent never sees is
    /// forgotten.
    pub(crate) fn stop_waiting(&mut self) {
        self.held.retain(|held| held.kind != HeldKind::Command);
        for held in &mut self.held {
            if matches!(held.text, Text::Pending(_)) {
                held.text = Text::None;
            }
        }
    }
}
