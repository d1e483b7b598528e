//! Prompts in the table of pending work.
//!
//! A prompt is held while the agent may still be fetching the skill tools (a model that starts without the tools does not see
//! them), while a text for the prompt is being fetched, or while an earlier prompt of its session is held.

use acp_skills_wire::Id;
use skills_core::SkillName;

use super::{Entry, Kind, Pending};
use crate::{
    events::EventKind,
    keys::{SessionKey, Ticket},
    queries::Instructions,
};

/// A prompt that the agent has not received yet.
#[derive(Debug)]
pub(crate) struct HeldPrompt {
    /// The request.
    pub(crate) line: Vec<u8>,
    /// The kind of prompt.
    pub(crate) kind: PromptKind,
    /// The text to put in front of the prompt.
    pub(crate) text: PromptText,
    /// The activations in the text, which are recorded when the prompt is sent.
    pub(crate) activations: Vec<EventKind>,
    /// The instructions of skills for a prompt that restores a loss. `None` for all other prompts.
    pub(crate) restores: Option<Instructions>,
}

/// The kinds of prompts that can be held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptKind {
    /// Words for the model.
    Ordinary,
    /// A command that invokes a skill.
    Invocation(SkillName),
    /// A `/skills` command, which the proxy answers and the agent never sees.
    Command,
}

/// The text that a prompt gets in addition to the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptText {
    /// No text is needed, or there is none.
    None,
    /// The host has been asked, with the ticket of the entry. For a `/skills` command this is the answer to the user.
    Fetching,
    /// The text.
    Ready(String),
}

impl HeldPrompt {
    /// Creates a prompt without activations.
    pub(crate) fn new(line: &[u8], kind: PromptKind, text: PromptText) -> Self {
        Self { line: line.to_vec(), kind, text, activations: Vec::new(), restores: None }
    }
}

impl Entry {
    /// Returns the prompt if this entry is a prompt of `session`.
    fn prompt_of(&mut self, session: SessionKey) -> Option<&mut HeldPrompt> {
        match &mut self.kind {
            Kind::Prompt(prompt) if self.session == Some(session) => Some(prompt),
            _ => None,
        }
    }

    /// Splits a prompt's entry into the id of the request and the prompt.
    fn into_prompt(self) -> Option<(Id, HeldPrompt)> {
        match self.kind {
            Kind::Prompt(prompt) => Some((self.request?, prompt)),
            _ => None,
        }
    }

    fn is_fetching(&self) -> bool {
        matches!(&self.kind, Kind::Prompt(prompt) if prompt.text == PromptText::Fetching)
    }
}

impl Pending {
    /// Returns true if prompts of this session are held.
    pub(crate) fn has_prompts(&self, session: SessionKey) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.session == Some(session) && matches!(entry.kind, Kind::Prompt(_)))
    }

    /// Returns the held prompts of a session with their tickets, in order.
    pub(crate) fn prompts(&mut self, session: SessionKey) -> impl Iterator<Item = (Ticket, &mut HeldPrompt)> {
        self.entries.iter_mut().filter_map(move |entry| {
            let ticket = entry.ticket;
            Some((ticket, entry.prompt_of(session)?))
        })
    }

    /// Returns the prompt for which a text is fetched with this ticket.
    pub(crate) fn fetching_prompt(&mut self, ticket: Ticket) -> Option<&mut HeldPrompt> {
        let entry = self.entries.iter_mut().find(|entry| entry.ticket == ticket && entry.is_fetching())?;
        match &mut entry.kind {
            Kind::Prompt(prompt) => Some(prompt),
            _ => None,
        }
    }

    /// Removes the prompt for which a text is fetched with this ticket.
    pub(crate) fn take_fetching_prompt(&mut self, ticket: Ticket) -> Option<(Id, HeldPrompt)> {
        self.take_first(|entry| entry.ticket == ticket && entry.is_fetching())?.into_prompt()
    }

    /// Removes and returns the first prompt of a session with the id of the request, unless its text is still being fetched.
    pub(crate) fn take_ready_prompt(&mut self, session: SessionKey) -> Option<(Id, HeldPrompt)> {
        let is_prompt =
            |entry: &Entry| entry.session == Some(session) && matches!(entry.kind, Kind::Prompt(_));
        let index = self.entries.iter().position(is_prompt)?;
        if self.entries[index].is_fetching() {
            return None;
        }
        self.entries.remove(index).into_prompt()
    }

    /// Stops waiting for texts, because the client has disconnected. Prompts are sent without their texts, and
    /// `/skills` commands are dropped.
    pub(crate) fn stop_fetching(&mut self) {
        self.entries.retain_mut(|entry| {
            let Kind::Prompt(prompt) = &mut entry.kind else { return true };
            if prompt.text == PromptText::Fetching {
                prompt.text = PromptText::None;
            }
            prompt.kind != PromptKind::Command
        });
    }
}
