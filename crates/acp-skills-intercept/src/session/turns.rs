//! [`Turns`]: the agent's work in one session.

/// The agent's work in one session, as far as the agent reports it.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The number of prompts that the agent has not answered.
    in_flight: usize,
    /// True if the agent reports that it works, even if it has answered every prompt.
    is_busy: bool,
    /// The background work in the agent's last report, as a JSON array. `None` if the report had none.
    background: Option<Vec<u8>>,
}

impl Turns {
    /// Returns true if the agent has a prompt that it has not answered, or reports that it is busy.
    pub(crate) fn agent_works(&self) -> bool {
        self.in_flight > 0 || self.is_busy
    }

    /// Returns true if the last report of the agent says that it is busy.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Returns the background work in the agent's last report, as a JSON array.
    pub(crate) fn background(&self) -> Option<&[u8]> {
        self.background.as_deref()
    }

    /// Remembers that a prompt goes to the agent.
    pub(crate) fn sent(&mut self) {
        self.in_flight += 1;
    }

    /// Remembers that the agent has answered a prompt.
    pub(crate) fn answered(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Remembers that the agent has accepted a prompt. The agent reports the end of the turn later.
    pub(crate) fn accepted(&mut self) {
        self.is_busy = true;
    }

    /// Remembers the state that the agent has reported.
    pub(crate) fn state(&mut self, is_busy: bool, background: Option<Vec<u8>>) {
        self.is_busy = is_busy;
        self.background = background;
    }
}
