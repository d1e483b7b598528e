//! [`Decisions`]: what was decided about requests for permission, for the user to read.

/// How many different decisions a session remembers for `/skills`.
const MAX_DECISIONS: usize = 50;

/// What was decided about requests for permission in one session, for the user to read, each with how often.
#[derive(Debug, Default)]
pub(crate) struct Decisions(Vec<(String, u32)>);

impl Decisions {
    /// Adds one. It is the last one now; the oldest goes when there are too many.
    pub(crate) fn add(&mut self, text: String) {
        let before = self.0.iter().position(|(other, _)| *other == text);
        let times = before.map_or(0, |at| self.0.remove(at).1);
        if self.0.len() == MAX_DECISIONS {
            self.0.remove(0);
        }
        self.0.push((text, times + 1));
    }

    /// The last ones, at most `count`, in order, each with how often it was decided.
    pub(crate) fn last(&self, count: usize) -> &[(String, u32)] {
        &self.0[self.0.len().saturating_sub(count)..]
    }
}
