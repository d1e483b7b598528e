//! Messages of the client about a session that is being set up: they are queued until the setup request was sent to the
//! agent.

use std::mem;

use acp_skills_wire::{Kind, Message};

use crate::{
    Interceptor,
    outputs::{Actions, Pass},
    requests::{OpenRequest, Purpose},
};

impl Interceptor {
    /// Queues a message of the client if its session is being set up. Returns false if the message can be forwarded.
    pub(crate) fn queue_behind_setup(&mut self, message: &Message<'_>) -> bool {
        if message.kind() == Kind::Response || !self.pending.has_setups() {
            return false;
        }
        let method = message.method();
        // A cancellation should never have to wait for the work that it's trying to cancel.
        if matches!(method.as_ref(), "session/cancel" | "$/cancel_request") || !self.pending.queue(message) {
            return false;
        }
        if let Some(id) = message.id() {
            let method = method.into_owned();
            self.requests.insert(id, OpenRequest::new(&method, Purpose::Pending));
        }
        true
    }

    /// Handles messages of the client that were queued, as if they had just arrived.
    pub(crate) fn resume(&mut self, lines: Vec<Vec<u8>>, actions: &mut Actions) {
        for line in lines {
            let pass = self.from_client(&line, actions);
            actions.to_agent.extend(match pass {
                Pass::Untouched => Some(line),
                Pass::Edited(line) => Some(line),
                Pass::Consumed => None,
            });
            let mut after = mem::take(&mut actions.after);
            actions.to_agent.append(&mut after);
        }
    }
}
