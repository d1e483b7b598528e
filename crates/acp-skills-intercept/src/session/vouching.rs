//! [`Vouching`]: whether calls that an agent says are ours have turned out to be ours.
//!
//! Our own server sees each call that arrives. An agent that asked for permission in the name of one of our tools, and whose
//! turn ended without that call, has called something else.

/// What is known of one session's agent.
#[derive(Debug, Default)]
pub(crate) struct Vouching {
    /// How many calls were granted because they are ours.
    granted: u32,
    /// How many arrived.
    arrived: u32,
    /// How many of those granted must have arrived by now.
    due: u32,
    is_broken: bool,
}

impl Vouching {
    /// Whether the agent's word is taken. When it turns out to be broken, the second value says so, once.
    pub(crate) fn holds(&mut self) -> (bool, bool) {
        let breaks = !self.is_broken && self.arrived < self.due;
        self.is_broken |= breaks;
        (!self.is_broken, breaks)
    }

    /// Whether the agent's word turned out to be broken.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// A call is granted because it is ours.
    pub(crate) fn granted(&mut self) {
        self.granted += 1;
    }

    /// A call arrived at our server.
    pub(crate) fn arrived(&mut self) {
        self.arrived += 1;
    }

    /// A turn is over. What was granted in it must have arrived when the next call is granted, unless the turn was
    /// `cut_short`.
    pub(crate) fn turn_over(&mut self, cut_short: bool) {
        if cut_short {
            self.granted = self.granted.min(self.arrived);
        }
        // Calls that nobody asked about make up for none that did not come.
        self.arrived = self.arrived.min(self.granted);
        self.due = self.granted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_taken_until_it_is_broken() {
        let mut vouching = Vouching::default();
        for _ in 0..2 {
            assert_eq!(vouching.holds(), (true, false));
            vouching.granted();
        }
        // In one turn calls may arrive whenever they like.
        vouching.arrived();
        assert_eq!(vouching.holds(), (true, false));
        vouching.arrived();
        vouching.turn_over(false);
        assert_eq!(vouching.holds(), (true, false));
        // A turn that was cut short owes nothing.
        vouching.granted();
        vouching.turn_over(true);
        assert_eq!(vouching.holds(), (true, false));
        vouching.granted();
        vouching.turn_over(false);
        assert_eq!(vouching.holds(), (false, true));
        vouching.arrived();
        assert_eq!(vouching.holds(), (false, false));
    }

    #[test]
    fn calls_that_nobody_asked_about_are_no_credit() {
        let mut vouching = Vouching::default();
        for _ in 0..5 {
            vouching.arrived();
        }
        vouching.granted();
        vouching.turn_over(false);
        assert_eq!(vouching.holds(), (true, false));
        vouching.granted();
        vouching.turn_over(false);
        assert_eq!(vouching.holds(), (false, true));
    }
}
