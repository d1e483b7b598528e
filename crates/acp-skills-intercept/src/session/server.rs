//! [`SessionServer`]: our MCP server for one session, as the agent sees it.

use super::tools::{ToolsEffect, ToolsEvent, ToolsState};
use crate::{
    keys::Timer,
    queries::{Endpoint, Transport},
};

/// Our MCP server for one session, as the agent sees it.
#[derive(Debug, Default)]
pub(crate) struct SessionServer {
    tools: ToolsState,
    /// The name in `mcpServers`, which is kept when the session is set up again.
    name: Option<String>,
    /// The address of the server, once it was opened.
    endpoint: Option<(Transport, Endpoint)>,
    /// True if the agent has connected to the server, in this setup of the session or an earlier one.
    is_connected: bool,
    /// The number of the last timer.
    last_timer: u64,
}

impl SessionServer {
    /// Returns the name in `mcpServers` if the session has had an entry.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the address of the server if it was opened for this transport.
    pub(crate) fn endpoint(&self, transport: Transport) -> Option<&Endpoint> {
        self.endpoint.as_ref().filter(|(opened, _)| *opened == transport).map(|(_, endpoint)| endpoint)
    }

    /// Remembers the address of the server.
    pub(crate) fn opened(&mut self, transport: Transport, endpoint: Endpoint) {
        self.endpoint = Some((transport, endpoint));
    }

    /// Returns true if `mcpServers` has an entry for the skills server.
    pub(crate) fn is_offered(&self) -> bool {
        self.tools != ToolsState::NotOffered
    }

    /// Returns true if the agent may still list the skill tools in time.
    pub(crate) fn is_awaited(&self) -> bool {
        self.tools.is_awaited()
    }

    /// Returns true if the agent did not list the skill tools in time.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.tools, ToolsState::Missing(_))
    }

    /// Returns true if the model can be told to use the skill tools.
    pub(crate) fn has_tools(&self) -> bool {
        self.is_awaited() || self.tools == ToolsState::Listed
    }

    /// Returns true if the agent's requests for this server id are for the skills server.
    pub(crate) fn is_reached_by(&self, id: &str) -> bool {
        let offered = self.endpoint.as_ref().filter(|_| self.is_offered());
        matches!(offered, Some((_, Endpoint::Acp { server_id })) if server_id == id)
    }

    /// Returns the server id if the server is reached over the ACP connection.
    pub(crate) fn acp_id(&self) -> Option<&str> {
        match &self.endpoint {
            Some((_, Endpoint::Acp { server_id })) => Some(server_id),
            _ => None,
        }
    }

    /// Returns the transport in the entry of `mcpServers`.
    pub(crate) fn transport(&self) -> Option<Transport> {
        self.endpoint.as_ref().filter(|_| self.is_offered()).map(|(transport, _)| *transport)
    }

    /// Returns true if the agent has connected to the server.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Applies an event to the state of the tools.
    fn apply(&mut self, event: ToolsEvent) -> ToolsEffect {
        let (tools, effect) = self.tools.next(event);
        self.tools = tools;
        effect
    }

    fn new_timer(&mut self) -> Timer {
        self.last_timer += 1;
        Timer(self.last_timer)
    }

    /// Remembers that a prompt has to be held.
    pub(crate) fn prompt_held(&mut self) -> ToolsEffect {
        let timer = self.new_timer();
        self.apply(ToolsEvent::PromptHeld { timer })
    }

    /// Remembers that the agent has opened the session.
    pub(crate) fn session_opened(&mut self) -> ToolsEffect {
        let timer = self.new_timer();
        self.apply(ToolsEvent::Opened { timer })
    }

    /// Remembers that the agent has connected.
    pub(crate) fn connected(&mut self) -> ToolsEffect {
        self.is_connected = true;
        self.apply(ToolsEvent::Connected)
    }

    /// Remembers that a timer has ended. `has_rest` is true if an agent that has connected gets more time.
    pub(crate) fn timer_ended(&mut self, timer: Timer, has_rest: bool) -> ToolsEffect {
        let next = (has_rest && self.is_connected).then(|| self.new_timer());
        self.apply(ToolsEvent::TimerEnded { timer, next })
    }

    /// Remembers that the agent has the list of tools.
    pub(crate) fn listed(&mut self) {
        self.is_connected = true;
        self.apply(ToolsEvent::Listed);
    }

    /// Stops waiting for the agent to list the tools.
    pub(crate) fn give_up(&mut self) -> ToolsEffect {
        self.apply(ToolsEvent::GivenUp)
    }

    /// Remembers that the request that sets up the session has no entry for the skills server. Returns true if the
    /// agent had the tools until now.
    pub(crate) fn withdraw(&mut self) -> bool {
        let had_tools = self.tools == ToolsState::Listed;
        self.apply(ToolsEvent::Withdrawn);
        had_tools
    }

    /// Remembers that the request has an entry of this name. `had_tools` is true if the agent has listed the tools at
    /// the same address before. In this case, the agent may still be connected, so prompts don't wait for a connection.
    pub(crate) fn offer(&mut self, name: String, transport: Transport, had_tools: bool) {
        self.name = Some(name);
        // If we use the ACP connection, there is nothing to connect to.
        self.apply(ToolsEvent::Offered { has_tools: transport == Transport::Acp || had_tools });
    }

    /// Forgets the name, because the agent wants another one.
    pub(crate) fn forget_name(&mut self) {
        self.name = None;
    }

    /// Remembers that the server is closed. Only its name is reused.
    pub(crate) fn closed(&mut self) {
        *self = Self { name: self.name.take(), last_timer: self.last_timer, ..Self::default() };
    }
}
