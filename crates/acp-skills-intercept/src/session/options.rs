//! [`Options`]: the configuration options that the client shows.

/// The agent's last list of options. Switches for skills are added to it.
#[derive(Debug, Default)]
pub(crate) struct Options {
    theirs: Option<Vec<u8>>,
    were_shown: bool,
}

impl Options {
    /// Returns the agent's list, a JSON array as the agent sent it. It is empty if the agent has no options.
    pub(crate) fn agent_options(&self) -> &[u8] {
        self.theirs.as_deref().unwrap_or(b"[]")
    }

    /// Stores the agent's list.
    pub(crate) fn set_agent_options(&mut self, list: &[u8]) {
        self.theirs = Some(list.to_vec());
    }

    /// Remembers that the switches for skills were sent to the client.
    pub(crate) fn shown(&mut self) {
        self.were_shown = true;
    }

    /// Returns true if the switches for skills were sent to the client.
    pub(crate) fn were_shown(&self) -> bool {
        self.were_shown
    }
}
