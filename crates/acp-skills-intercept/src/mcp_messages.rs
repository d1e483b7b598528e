//! MCP over the ACP connection (unstable): `mcp/message` of the agent for the skills server, and the cancellation of such requests.

use acp_skills_wire::{INVALID_PARAMS, Message, build};

use crate::{
    Interceptor,
    keys::SessionKey,
    outputs::{Actions, Pass, Task},
};

/// The maximum size of a message for the skills server, in bytes.
pub const MAX_MCP_MESSAGE: usize = 4 * 1024 * 1024;

/// The maximum number of closed servers that are remembered. Messages for older ones are forwarded to the client.
const MAX_CLOSED: usize = 256;

impl Interceptor {
    /// Remembers the server of a session that is closed, because the client does not know this server.
    pub(crate) fn server_closed(&mut self, id: Option<&str>, session: SessionKey) {
        let Some(id) = id else { return };
        if self.closed_servers.len() == MAX_CLOSED {
            self.closed_servers.pop_front();
        }
        self.closed_servers.push_back((id.to_owned(), session));
    }

    /// Passes a message for the skills server to the server of its session. All other messages are for servers of the client.
    pub(crate) fn mcp_message(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(server) = message.param(&["serverId"]).and_then(|id| id.as_str()) else {
            return Pass::Untouched;
        };
        let Some(session) = self.sessions.iter_mut().find(|session| session.server.is_reached_by(&server))
        else {
            let Some((_, key)) = self.closed_servers.iter().find(|(id, _)| *id == *server) else {
                return Pass::Untouched;
            };
            let request = message.id();
            // The host answers that the server is closed.
            let task = request.map(|id| Task::Mcp { session: *key, request: Some(id), line: b"{}".to_vec() });
            actions.tasks.extend(task);
            return Pass::Consumed;
        };
        let key = session.key();
        let request = message.id();
        if message.line.len() > MAX_MCP_MESSAGE {
            match request {
                Some(id) => {
                    actions.to_agent.push(build::error(&id, INVALID_PARAMS, "message is longer than 4 MiB"));
                }
                None => actions.warn(
                    "the agent's notification to the skills server is longer than 4 MiB, so it was dropped",
                ),
            }
            return Pass::Consumed;
        }
        if let Some(id) = &request {
            session.server.listed();
            self.mcp_requests.insert(id.clone(), key);
        }
        actions.tasks.push(Task::Mcp { session: key, request, line: message.line.to_vec() });
        Pass::Consumed
    }
}
