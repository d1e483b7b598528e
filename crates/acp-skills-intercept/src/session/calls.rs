//! [`Calls`]: the tool calls of one session that the client was told of, and which of them are calls of our tools.

use std::collections::{HashMap, VecDeque};

/// How many calls are remembered, the last ones. What is forgotten is at worst announced twice, or keeps its title.
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
    /// The agent's own name of the tool, as it was announced.
    name: Option<String>,
    ours: Option<Ours>,
}

/// A call of one of our tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ours {
    /// The tool.
    pub(crate) tool: &'static str,
    /// Its title for people, as far as it is known.
    pub(crate) title: String,
    /// Whether the client has that title.
    pub(crate) is_shown: bool,
}

impl Calls {
    /// The client is told that there is such a call. Returns whether it was told before.
    pub(crate) fn announced(&mut self, id: &str) -> bool {
        std::mem::replace(&mut self.known(id).is_announced, true)
    }

    /// The agent announced the call as one of the tool with this name, if it says so.
    pub(crate) fn named(&mut self, id: &str, name: Option<String>) {
        self.known(id).name = name;
    }

    /// The call is not one of our tools, or another one has its id now: some agents count anew in each turn.
    pub(crate) fn set_theirs(&mut self, id: &str) {
        self.known(id).ours = None;
    }

    /// The name of the tool with which the call was announced.
    pub(crate) fn name(&self, id: &str) -> Option<&str> {
        self.known.get(id)?.name.as_deref()
    }

    /// The call, when it is known to be one of our tools.
    pub(crate) fn ours(&self, id: &str) -> Option<&Ours> {
        self.known.get(id)?.ours.as_ref()
    }

    /// The call is one of our tools.
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
