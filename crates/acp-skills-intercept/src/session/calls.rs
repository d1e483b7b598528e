//! [`Calls`]: the tool calls of one session that the client knows, and which of them are calls of the skill tools.

use std::collections::{HashMap, VecDeque};

/// The maximum number of calls. If an older call is dropped, it may be announced twice, or keep the agent's title.
const MAX_CALLS: usize = 512;

/// The maximum length of an id and of a tool's name, in bytes. Longer ones are not remembered.
const MAX_BYTES: usize = 1024;

/// The tool calls of one session, by the agent's id.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    known: HashMap<String, Known>,
    order: VecDeque<String>,
}

#[derive(Debug, Default)]
struct Known {
    is_announced: bool,
    /// The agent's name of the tool in the announcement.
    name: Option<String>,
    ours: Option<Ours>,
    is_of_subagent: bool,
}

/// A call of one of the skill tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ours {
    /// The name of the tool.
    pub(crate) tool: &'static str,
    /// The title for people, as far as it is known.
    pub(crate) title: String,
    /// True if the client has received this title.
    pub(crate) is_shown: bool,
}

impl Calls {
    /// Remembers that a call is announced to the client. Returns true if it was announced before.
    pub(crate) fn announced(&mut self, id: &str) -> bool {
        self.known(id).is_some_and(|call| std::mem::replace(&mut call.is_announced, true))
    }

    /// Remembers the name of the tool in the announcement, if the agent sends one.
    pub(crate) fn named(&mut self, id: &str, name: Option<String>) {
        if let Some(call) = self.known(id) {
            call.name = name.filter(|name| name.len() <= MAX_BYTES);
        }
    }

    /// Remembers that a subagent makes the call.
    pub(crate) fn set_of_subagent(&mut self, id: &str) {
        if let Some(call) = self.known(id) {
            call.is_of_subagent = true;
        }
    }

    /// Returns true if a subagent makes the call.
    pub(crate) fn is_of_subagent(&self, id: &str) -> bool {
        self.known.get(id).is_some_and(|call| call.is_of_subagent)
    }

    /// Remembers that the call is not a call of the skill tools. One of our calls may have had the same id before,
    /// because some agents reuse ids in each turn.
    pub(crate) fn set_theirs(&mut self, id: &str) {
        if let Some(call) = self.known(id) {
            call.ours = None;
        }
    }

    /// Returns the name of the tool in the announcement.
    pub(crate) fn name(&self, id: &str) -> Option<&str> {
        self.known.get(id)?.name.as_deref()
    }

    /// Returns the call if it is a call of the skill tools.
    pub(crate) fn ours(&self, id: &str) -> Option<&Ours> {
        self.known.get(id)?.ours.as_ref()
    }

    /// Returns the id of the latest call of one of the skill tools with this title.
    pub(crate) fn latest(&self, tool: &str, title: &str) -> Option<&str> {
        let is_it = |id: &&String| self.ours(id).is_some_and(|ours| ours.tool == tool && ours.title == title);
        self.order.iter().rev().find(is_it).map(String::as_str)
    }

    /// Remembers that the call is a call of the skill tools.
    pub(crate) fn set_ours(&mut self, id: &str, ours: Ours) {
        if let Some(call) = self.known(id) {
            call.ours = Some(ours);
        }
    }

    /// Returns what is remembered of a call. Returns `None` if its id is too long.
    fn known(&mut self, id: &str) -> Option<&mut Known> {
        if id.len() > MAX_BYTES {
            return None;
        }
        if !self.known.contains_key(id) {
            if self.order.len() == MAX_CALLS
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
            self.order.push_back(id.to_owned());
        }
        Some(self.known.entry(id.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ids_and_names_are_not_kept() {
        let mut calls = Calls::default();
        let (short, long) = ("x".repeat(MAX_BYTES), "x".repeat(MAX_BYTES + 1));
        for (id, is_kept) in [(&short, true), (&long, false)] {
            assert!(!calls.announced(id));
            assert_eq!(calls.announced(id), is_kept);
            calls.named(id, Some(short.clone()));
            assert_eq!(calls.name(id).is_some(), is_kept);
            calls.named(id, Some(long.clone()));
            assert_eq!(calls.name(id), None);
        }
        assert_eq!((calls.known.len(), calls.order.len()), (1, 1));
    }
}
