//! [`Options`]: the configuration options that the client shows.

/// What the agent sent last, and whether ours were there.
#[derive(Debug, Default)]
pub(crate) struct Options {
    theirs: Option<Vec<u8>>,
    were_shown: bool,
}

impl Options {
    /// The agent's list, a JSON array as it was sent; an empty one when it has none.
    pub(crate) fn agent_options(&self) -> &[u8] {
        self.theirs.as_deref().unwrap_or(b"[]")
    }

    /// The agent has sent these.
    pub(crate) fn set_agent_options(&mut self, list: &[u8]) {
        self.theirs = Some(list.to_vec());
    }

    /// The client has got ours.
    pub(crate) fn shown(&mut self) {
        self.were_shown = true;
    }

    /// Whether it has.
    pub(crate) fn were_shown(&self) -> bool {
        self.were_shown
    }
}
