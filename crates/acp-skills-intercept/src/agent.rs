//! Messages from the agent.

use acp_skills_wire::{Id, Kind, Message, Node};

use crate::{
    Interceptor,
    agent_facts::AgentFacts,
    keys::SessionKey,
    outputs::{Actions, Effect, Level, Pass},
    requests::{Purpose, Setup, SetupKind},
    version::{self, Turn},
};

impl Interceptor {
    /// Decides about a message from the agent.
    pub(crate) fn agent_message(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        self.flush_chunks(message, actions);
        match message.kind() {
            Kind::Response => self.response(message, actions),
            Kind::Notification if message.method() == "session/update" => self.update(message, actions),
            Kind::Notification if message.method() == "$/cancel_request" => {
                self.agent_cancels(message, actions)
            }
            Kind::Request if message.method() == "session/request_permission" => {
                self.permission(message, actions)
            }
            Kind::Request | Kind::Notification if message.method() == "fs/read_text_file" => {
                self.file_request(message, actions)
            }
            Kind::Request | Kind::Notification if message.method() == "mcp/message" => {
                self.mcp_message(message, actions)
            }
            Kind::Request | Kind::Notification => Pass::Untouched,
        }
    }

    fn response(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.id() else { return Pass::Untouched };
        let Some(open) = self.requests.remove(&id) else { return Pass::Untouched };
        match (open.purpose, message.result) {
            (Purpose::Initialize, Some(result)) => {
                self.agent = AgentFacts::read(result);
                actions.log(Level::Debug, format!("the agent: {:?}", self.agent));
                self.announce(message, result)
            }
            (Purpose::SetUp(Setup { session, kind, .. }), Some(result)) => {
                if kind == SetupKind::New {
                    match result.str("sessionId") {
                        Some(name) => {
                            if let Some(before) = self.sessions.name(session, &name) {
                                self.close_session(before, actions);
                            }
                            // A copy may have been replayed before its id was known here.
                            actions.to_client.append(&mut self.reader.flush(&name));
                        }
                        None => self.close_session(session, actions),
                    }
                }
                self.started(session, &open.method, actions);
                self.await_tools(session, actions);
                // If the agent has refused the skills server, we don't need to hold prompts for this session anymore.
                self.release(session, actions);
                let pass = self.session_is_set_up(session, message, result, actions);
                self.skills_after_response(session, actions);
                self.notices_after_response(session, actions);
                let question = self.question(session);
                actions.after.extend(question);
                self.with_options(session, message, pass)
            }
            (Purpose::SetUp(setup), None) => {
                let session = setup.session;
                let pass = self.refused(id, open.method, setup, message, actions);
                // A request that is repeated is not over.
                if pass != Pass::Consumed {
                    self.notices_after_response(session, actions);
                }
                self.forget_early_commands();
                self.forget_early_skills();
                pass
            }
            (Purpose::Close { id }, Some(_)) => {
                if let Some(key) = self.sessions.key_of(&id) {
                    self.close_session(key, actions);
                }
                // There won't be any more messages to flush the chunks of this session, so we do it here.
                actions.to_client.append(&mut self.reader.flush(&id));
                if open.method == "session/delete" {
                    actions.effects.push(Effect::SaveActiveSkills { id, active: Vec::new() });
                }
                Pass::Untouched
            }
            (Purpose::Option(session), Some(_)) => self.with_options(session, message, Pass::Untouched),
            (Purpose::List, Some(result)) => self.session_list(message, result),
            (Purpose::ListSkills(session), _) => self.skills_listed(session, &id, message, actions),
            (Purpose::Prompt(session), _) => {
                self.judge_transport(session, message, actions);
                self.answered(session, &id, message, actions);
                self.end_turn_if_idle(session, actions);
                Pass::Untouched
            }
            _ => Pass::Untouched,
        }
    }

    /// Adds our commands for a session that is set up: to the response, or to an update after it, depending on the version of
    /// the protocol.
    fn session_is_set_up(
        &mut self,
        key: SessionKey,
        response: &Message<'_>,
        result: Node<'_>,
        actions: &mut Actions,
    ) -> Pass {
        if self.agent.version.has_menu_in_response() {
            self.menu_in_response(key, response, result)
        } else {
            self.menu_after_response(key, actions);
            Pass::Untouched
        }
    }

    /// Ends the turn of a session for the host, unless the agent works or prompts are held.
    pub(crate) fn end_turn_if_idle(&mut self, key: SessionKey, actions: &mut Actions) {
        let works = self.sessions.get(key).is_some_and(|session| session.turns.agent_works());
        if !works && !self.pending.has_prompts(key) {
            actions.effects.push(Effect::TurnEnded(key));
        }
    }

    /// Handles the agent's answer to a prompt.
    pub(crate) fn answered(
        &mut self,
        key: SessionKey,
        id: &Id,
        message: &Message<'_>,
        actions: &mut Actions,
    ) {
        let turn = self.agent.version.turn(message);
        let Some(session) = self.sessions.get(key) else { return };
        session.turns.answered();
        match turn {
            Turn::Over { forgotten } => {
                session.briefing.turn_over(id, forgotten);
                session.claims.turn_over();
                session.server_calls.turn_over();
                let end = session.compaction.turn_over(id, forgotten);
                session.turn_ended(end, self.agent.quirks, actions);
                self.turn_has_read(key, message, actions);
            }
            Turn::Accepted => {
                session.turns.accepted();
                session.briefing.accepted(id);
                session.compaction.accepted(id);
            }
        }
    }

    /// Handles a report of the agent's state: it works, waits for the user, or is idle.
    pub(crate) fn state_update(&mut self, message: &Message<'_>, update: Node<'_>, actions: &mut Actions) {
        let Some(session) = message.session_id().and_then(|id| self.sessions.find(&id)) else { return };
        let background = update.get("background").filter(Node::is_array).map(|list| list.raw().to_vec());
        let is_busy = !update.get("state").is_some_and(|state| state.is_str("idle"));
        session.turns.state(is_busy, background);
        if !is_busy {
            let forgotten = version::forgets(update);
            session.briefing.turns_over(forgotten);
            session.claims.turn_over();
            session.server_calls.turn_over();
            let end = session.compaction.turns_over(forgotten);
            session.turn_ended(end, self.agent.quirks, actions);
            let key = session.key();
            self.end_turn_if_idle(key, actions);
        }
    }
}
