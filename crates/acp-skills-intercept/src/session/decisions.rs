//! [`Decisions`]: decisions about requests for permission, which `/skills` shows to the user.

/// The maximum number of different decisions in a session.
const MAX_DECISIONS: usize = 50;

/// The last decisions about requests for permission in one session, each with its number of times.
#[derive(Debug, Default)]
pub(crate) struct Decisions(Vec<(String, u32)>);

impl Decisions {
    /// Adds a decision, or moves it to the end if it was made before. Drops the oldest one if there are too many.
    pub(crate) fn add(&mut self, text: String) {
        let before = self.0.iter().position(|(other, _)| *other == text);
        let times = before.map_or(0, |at| self.0.remove(at).1);
        if self.0.len() == MAX_DECISIONS {
            self.0.remove(0);
        }
        self.0.push((text, times + 1));
    }

    /// Returns the last decisions, at most `count`, in order, each with its number of times.
    pub(crate) fn last(&self, count: usize) -> &[(String, u32)] {
        &self.0[self.0.len().saturating_sub(count)..]
    }
}
