//! [`Calls`]: the tool calls of one session that the client knows, and which of them are calls of the skill tools.

use std::collections::{HashMap, VecDeque};

/// The maximum number of calls. If an older call is dropped, it may be announced twice, or keep the agent's title.
const MAX_CALLS: usize = 512;

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
        std::mem::replace(&mut self.known(id).is_announced, true)
    }

    /// Remembers the name of the tool in the announcement, if the agent sends one.
    pub(crate) fn named(&mut self, id: &str, name: Option<String>) {
        self.known(id).name = name;
    }

    /// Remembers that the call is not a call of the skill tools. One of our calls may have had the same id before,
    /// because some agents reuse ids in each turn.
    pub(crate) fn set_theirs(&mut self, id: &str) {
        self.known(id).ours = None;
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
        self.known(id).ours = Some(ours);
    }

    fn known(&mut self, id: &str) -> &mut Known {
        if !self.known.contains_key(id) {
            if self.order.len() == MAX_CALLS
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
            self.order.push_back(id.to_owned());
        }
        self.known.entry(id.to_owned()).or_default()
    }
}
