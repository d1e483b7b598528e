//! Ends pending work without an answer: if the client cancels a turn or a request, if the agent cancels a request, if a
//! session is closed, or if the client or the agent disconnects.

use acp_skills_wire::{Id, Message, REQUEST_CANCELLED, build};
use serde_json::json;

use crate::{
    Interceptor,
    keys::SessionKey,
    outputs::{Actions, Effect, Pass, Task},
    pending::{Entry, Kind},
    requests::Purpose,
    workspace::Workspace,
};

impl Interceptor {
    /// Cancels the turn of a session: prompts that the agent has not received are answered here, and so are the agent's requests
    /// for permission that the client has not received. The agent gets the notification if it may be working.
    pub(crate) fn cancel_turn(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.session_id() else { return Pass::Untouched };
        let key = self.sessions.key_of(&id);
        if let Some(session) = self.sessions.find(&id) {
            session.claims.cancelled(session.turns.agent_works());
            session.server_calls.cancelled();
        }
        actions.effects.extend(key.map(Effect::TurnCancelled));
        let mut had_prompts = false;
        for entry in self.pending.take_turn(key, &id) {
            if let Kind::Permission { id, .. } = entry.kind {
                let outcome = json!({ "outcome": { "outcome": "cancelled" } });
                actions.to_agent.extend(id.map(|id| build::result(&id, &outcome)));
                continue;
            }
            had_prompts = true;
            self.answer_cancelled(entry, actions);
        }
        if let Some(key) = key.filter(|_| had_prompts) {
            self.end_turn_if_idle(key, actions);
        }
        let is_working = self.sessions.find(&id).is_some_and(|session| session.turns.agent_works());
        // If we didn't cancel any prompts here, the notification must be for the agent.
        if is_working || !had_prompts { Pass::Untouched } else { Pass::Consumed }
    }

    /// Answers a prompt that was cancelled before the agent got it.
    fn answer_cancelled(&mut self, prompt: Entry, actions: &mut Actions) {
        if let Some(id) = prompt.request {
            self.requests.remove(&id);
            actions.to_client.push(self.agent.version.cancelled(&id));
        }
    }

    /// Cancels a request of the client, and answers it here if the agent has not received it.
    pub(crate) fn cancel_request(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.param(&["requestId"]).and_then(Id::of) else { return Pass::Untouched };
        let Some(entry) = self.pending.take_request(&id) else {
            if let Some(Purpose::Prompt(key)) = self.requests.get(&id).map(|open| &open.purpose)
                && let Some(session) = self.sessions.get(*key)
            {
                session.claims.cancelled(session.turns.agent_works());
                actions.effects.push(Effect::TurnCancelled(*key));
            }
            return Pass::Untouched;
        };
        self.requests.remove(&id);
        actions.to_client.push(build::error(&id, REQUEST_CANCELLED, "cancelled"));
        match (entry.kind, entry.session) {
            (Kind::Setup(_), _) => {
                let queue = self.pending.take_queue(entry.ticket);
                self.resume(queue, actions);
            }
            // Later prompts in this session could be ready by now, and were only waiting for this one.
            (Kind::Prompt(_), Some(session)) => {
                self.release(session, actions);
                self.end_turn_if_idle(session, actions);
            }
            _ => {}
        }
        Pass::Consumed
    }

    /// Handles a cancellation by the agent. If the cancelled request is still pending here, it is sent to the client
    /// first. A request to the skills server is cancelled there, and the client doesn't get the notification.
    pub(crate) fn agent_cancels(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.param(&["requestId"]).and_then(Id::of) else { return Pass::Untouched };
        if let Some(&session) = self.mcp_requests.get(&id) {
            actions.tasks.push(Task::CancelMcp { session, request: id });
            return Pass::Consumed;
        }
        if let Some(question) = self.pending.question_for(&id) {
            let params = json!({ "requestId": question });
            actions.to_client.push(build::notification("$/cancel_request", &params));
            return Pass::Consumed;
        }
        while let Some(request) = self.pending.take_agent_request(&id) {
            actions.to_client.push(request);
        }
        Pass::Untouched
    }

    /// Closes a session. Its held prompts are cancelled, and the client gets the agent's requests for permission as they
    /// are.
    pub(crate) fn close_session(&mut self, key: SessionKey, actions: &mut Actions) {
        actions.effects.push(Effect::CloseServer(key));
        let Some(session) = self.sessions.remove(key) else { return };
        self.reader.usage_scanner.forget(key);
        self.server_closed(session.server.acp_id(), key);
        for entry in self.pending.take_session(key) {
            match entry.kind {
                Kind::Permission { line, .. } => actions.to_client.push(line),
                _ => self.answer_cancelled(entry, actions),
            }
        }
        self.release_workspace(session.workspace, actions);
    }

    /// Tells the host that a workspace is no longer needed, unless another session has it, or is being set up with it.
    pub(crate) fn release_workspace(&self, workspace: Workspace, actions: &mut Actions) {
        let is_used = self.sessions.iter().any(|other| other.workspace == workspace)
            || self.pending.workspaces().any(|other| *other == workspace);
        if !workspace.is_empty() && !is_used {
            actions.effects.push(Effect::ReleaseWorkspace(workspace));
        }
    }

    /// Stops waiting for anything, because the client has disconnected. The agent still gets everything that the user
    /// wrote.
    pub(crate) fn client_gone(&mut self, actions: &mut Actions) {
        actions.to_agent.append(&mut self.pending.take_setups());
        self.pending.stop_fetching();
        let sessions = self.sessions.iter_mut().map(|session| {
            session.server.give_up();
            session.key()
        });
        for key in sessions.collect::<Vec<_>>() {
            self.release(key, actions);
        }
    }

    /// Drops all pending work, because the agent has ended. Returns lines for the client: text that was held back, and
    /// an error for each request without an answer. `why` is a clause such as `the agent exited with code 3`.
    pub fn agent_gone(&mut self, why: &str) -> Vec<Vec<u8>> {
        self.pending.clear();
        let mut lines = self.reader.flush_all();
        let mut open: Vec<_> = self.requests.drain().collect();
        // Sort by length first, so that numbers are in the order of the requests.
        open.sort_by_cached_key(|(id, _)| {
            let id = id.to_json().into_owned();
            (id.len(), id)
        });
        lines.extend(open.iter().map(|(id, request)| request.unanswered(id, why)));
        lines
    }
}
