//! [`TrustedClaims`]: whether the agent can be trusted when it claims that a call is a call of the skill tools.
//!
//! The skills server sees each call that arrives. If the agent asked for permission to call one of the skill tools, and the turn
//! ended without that call, the agent has called another tool.

/// The record of one session's agent.
#[derive(Debug, Default)]
pub(crate) struct TrustedClaims {
    /// The number of calls that were granted because the agent claimed that they are ours.
    granted: u32,
    /// The number of calls that arrived at the skills server.
    arrived: u32,
    /// The number of granted calls that must have arrived by now.
    due: u32,
    is_broken: bool,
}

impl TrustedClaims {
    /// Returns true if the agent's claims are trusted. The second value is true if the trust ends with this call.
    pub(crate) fn check(&mut self) -> (bool, bool) {
        let breaks = !self.is_broken && self.arrived < self.due;
        self.is_broken |= breaks;
        (!self.is_broken, breaks)
    }

    /// Returns true if a claim of the agent was false.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Notes that a call was granted because the agent claims that it is ours.
    pub(crate) fn granted(&mut self) {
        self.granted += 1;
    }

    /// Notes that a call arrived at the skills server.
    pub(crate) fn arrived(&mut self) {
        self.arrived += 1;
    }

    /// Notes the end of a turn. The calls that were granted in the turn must have arrived before the next call is granted,
    /// unless the turn was `cut_short`.
    pub(crate) fn turn_over(&mut self, cut_short: bool) {
        if cut_short {
            self.granted = self.granted.min(self.arrived);
        }
        // If there were extra calls that nobody asked permission for, ignore them. Otherwise, they could hide a call that is
        // missing.
        self.arrived = self.arrived.min(self.granted);
        self.due = self.granted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_trusted_until_one_is_false() {
        let mut claims = TrustedClaims::default();
        for _ in 0..2 {
            assert_eq!(claims.check(), (true, false));
            claims.granted();
        }
        // Calls can arrive at any time during a turn.
        claims.arrived();
        assert_eq!(claims.check(), (true, false));
        claims.arrived();
        claims.turn_over(false);
        assert_eq!(claims.check(), (true, false));
        // When a turn is cut short, we don't expect any calls from it.
        claims.granted();
        claims.turn_over(true);
        assert_eq!(claims.check(), (true, false));
        claims.granted();
        claims.turn_over(false);
        assert_eq!(claims.check(), (false, true));
        claims.arrived();
        assert_eq!(claims.check(), (false, false));
    }

    #[test]
    fn calls_without_a_request_do_not_count() {
        let mut claims = TrustedClaims::default();
        for _ in 0..5 {
            claims.arrived();
        }
        claims.granted();
        claims.turn_over(false);
        assert_eq!(claims.check(), (true, false));
        claims.granted();
        claims.turn_over(false);
        assert_eq!(claims.check(), (false, true));
    }
}
