//! [`SessionServer`]: the MCP server of one session, and how far the agent got with it.

use std::mem;

use crate::queries::{Endpoint, Transport};

/// How far the agent got with our MCP server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Progress {
    /// The session has no entry of ours: switched off, refused, or nothing to serve.
    #[default]
    Off,
    /// The entry is in `mcpServers`; nobody has asked for the tools yet.
    Awaited,
    /// The agent did not ask for the tools in time.
    Missing,
    /// The agent has the list of tools.
    Listed,
}

/// The MCP server of one session, as the agent knows it.
#[derive(Debug, Default)]
pub(crate) struct SessionServer {
    progress: Progress,
    /// Its name in `mcpServers`; it stays when the session is set up again.
    name: Option<String>,
    /// Where it is, once it was opened.
    endpoint: Option<(Transport, Endpoint)>,
    /// Whether anybody has come to that place.
    is_connected: bool,
    /// How many waits have not ended; the last one counts.
    waits: u32,
    /// Whether it is waited for the list of tools of an agent that has connected.
    is_full_wait: bool,
}

/// What the end of a wait means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// Nothing: there is nothing to wait for any more, or a later wait counts.
    Stale,
    /// The agent has connected, and gets the rest of the time.
    GoesOn,
    /// It had its time.
    Over,
}

impl SessionServer {
    /// The name in `mcpServers`, when the session has had an entry.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Where it is, when it was opened for this transport before.
    pub(crate) fn endpoint(&self, transport: Transport) -> Option<&Endpoint> {
        self.endpoint.as_ref().filter(|(opened, _)| *opened == transport).map(|(_, endpoint)| endpoint)
    }

    /// It was opened.
    pub(crate) fn opened(&mut self, transport: Transport, endpoint: Endpoint) {
        self.endpoint = Some((transport, endpoint));
    }

    /// Whether the session has an entry of ours.
    pub(crate) fn is_offered(&self) -> bool {
        self.progress != Progress::Off
    }

    /// Whether the agent may be fetching our tools.
    pub(crate) fn is_awaited(&self) -> bool {
        self.progress == Progress::Awaited
    }

    /// Whether it did not in time.
    pub(crate) fn is_missing(&self) -> bool {
        self.progress == Progress::Missing
    }

    /// Whether the model can be told to use our tools.
    pub(crate) fn has_tools(&self) -> bool {
        matches!(self.progress, Progress::Awaited | Progress::Listed)
    }

    /// Whether requests of the agent's for this server id are ours.
    pub(crate) fn is_reached_by(&self, id: &str) -> bool {
        let offered = self.endpoint.as_ref().filter(|_| self.is_offered());
        matches!(offered, Some((_, Endpoint::Acp { server_id })) if server_id == id)
    }

    /// How the agent was told to reach it.
    pub(crate) fn transport(&self) -> Option<Transport> {
        self.endpoint.as_ref().filter(|_| self.is_offered()).map(|(transport, _)| *transport)
    }

    /// Somebody who knows the token has come.
    pub(crate) fn connected(&mut self) {
        self.is_connected = true;
    }

    /// Whether somebody has.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// A wait begins.
    pub(crate) fn wait_begins(&mut self) {
        self.waits += 1;
    }

    /// Whether a wait has not ended.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waits > 0
    }

    /// A wait has ended; `has_rest` when there is more time for an agent that has connected.
    pub(crate) fn wait_ends(&mut self, has_rest: bool) -> WaitEnd {
        self.waits = self.waits.saturating_sub(1);
        if !self.is_awaited() || self.is_waited_for() {
            return WaitEnd::Stale;
        }
        if has_rest && self.is_connected && !mem::replace(&mut self.is_full_wait, true) {
            return WaitEnd::GoesOn;
        }
        WaitEnd::Over
    }

    /// The agent has the tools.
    pub(crate) fn listed(&mut self) {
        (self.progress, self.is_connected) = (Progress::Listed, true);
    }

    /// The agent does not come for them, as far as anybody waits.
    pub(crate) fn gave_up(&mut self) {
        if self.is_awaited() {
            self.progress = Progress::Missing;
        }
    }

    /// The request that sets the session up has no entry of ours. Returns whether the agent had the tools until now.
    pub(crate) fn withdraw(&mut self) -> bool {
        mem::take(&mut self.progress) == Progress::Listed
    }

    /// The request has an entry of this name. `had_tools` when the agent has been at the same address before: one that
    /// still has the session need not connect again.
    pub(crate) fn offer(&mut self, name: String, transport: Transport, had_tools: bool) {
        self.name = Some(name);
        // Over the ACP connection there is nothing to connect.
        let is_there = transport == Transport::Acp || had_tools;
        self.progress = if is_there { Progress::Listed } else { Progress::Awaited };
        self.is_full_wait = false;
    }

    /// The agent wants another name.
    pub(crate) fn forget_name(&mut self) {
        self.name = None;
    }

    /// The server is closed; what it was is of no use any more.
    pub(crate) fn closed(&mut self) {
        *self = Self { name: self.name.take(), waits: self.waits, ..Self::default() };
    }
}
