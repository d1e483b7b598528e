//! [`Decisions`]: what was decided about requests for permission, for the user to read.

use std::collections::VecDeque;

/// How many decisions a session remembers for `/skills`.
const MAX_DECISIONS: usize = 50;

/// What was decided about requests for permission in one session, for the user to read.
#[derive(Debug, Default)]
pub(crate) struct Decisions(VecDeque<String>);

impl Decisions {
    /// Adds one; the oldest goes when there are too many.
    pub(crate) fn add(&mut self, text: String) {
        if self.0.len() == MAX_DECISIONS {
            self.0.pop_front();
        }
        self.0.push_back(text);
    }

    /// The last ones, at most `count`, in order.
    pub(crate) fn last(&self, count: usize) -> Vec<&str> {
        self.0.iter().skip(self.0.len().saturating_sub(count)).map(String::as_str).collect()
    }
}
