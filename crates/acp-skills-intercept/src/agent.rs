//! What becomes of a message from the agent.

use std::borrow::Cow;

use acp_skills_wire::{Id, Kind, Message, Node};

use crate::{
    Interceptor,
    agent_facts::AgentFacts,
    keys::SessionKey,
    outputs::{Actions, Effect, Level, Pass, Task},
    requests::{OpenRequest, Purpose, Setup, SetupKind},
    strip::Stream,
    updates::{self, ChunkKind},
    version::{self, Turn},
};

/// How many sessions may have text kept back when one that nobody set up wants the same.
const MAX_KEPT: usize = 64;

impl Interceptor {
    pub(crate) fn agent_message(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        self.flush_strips(message, actions);
        match message.kind() {
            Kind::Response => self.response(message, actions),
            Kind::Notification if message.method() == "session/update" => self.update(message, actions),
            Kind::Notification if message.method() == "$/cancel_request" => {
                self.agent_cancels(message, actions);
                Pass::Untouched
            }
            Kind::Request if message.method() == "session/request_permission" => {
                self.permission(message, actions)
            }
            Kind::Request if message.method() == "mcp/message" => self.mcp_message(message, actions),
            Kind::Request | Kind::Notification => Pass::Untouched,
        }
    }

    fn response(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.id() else { return Pass::Untouched };
        let Some(open) = self.open.remove(&id) else { return Pass::Untouched };
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
                                self.drop_session(before, actions);
                            }
                        }
                        None => self.drop_session(session, actions),
                    }
                }
                self.started(session, &open.method, actions);
                self.await_tools(session, actions);
                // Perhaps without our server, which the agent refused.
                self.release(session, actions);
                let pass = self.session_is_set_up(session, message, result, actions);
                let question = self.question(session);
                actions.after.extend(question);
                self.with_options(session, message, pass)
            }
            (Purpose::SetUp(setup), None) => self.refused(id, open.method, setup, message, actions),
            (Purpose::Leave { id }, Some(_)) => {
                if let Some(key) = self.sessions.key_of(&id) {
                    self.drop_session(key, actions);
                }
                // What was kept back is the last that is heard of it.
                if let Some((_, mut stream)) = self.strips.remove(&id) {
                    actions.to_client.append(&mut stream.flush());
                }
                if open.method == "session/delete" {
                    actions.effects.push(Effect::Remember { id, active: Vec::new() });
                }
                Pass::Untouched
            }
            (Purpose::Option(session), Some(_)) => self.with_options(session, message, Pass::Untouched),
            (Purpose::List, Some(result)) => self.session_list(message, result),
            (Purpose::ListSkills(session), _) => self.skills_listed(session, &id, message, actions),
            (Purpose::Prompt(session), _) => {
                self.judge_transport(session, message, actions);
                self.answered(session, &id, message);
                Pass::Untouched
            }
            _ => Pass::Untouched,
        }
    }

    /// A session is set up: its first commands are in the response, or come later.
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

    fn mcp_message(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(server) = message.param(&["serverId"]).and_then(|id| id.as_str()) else {
            return Pass::Untouched;
        };
        let Some(session) = self.sessions.iter_mut().find(|session| session.server.is_reached_by(&server))
        else {
            return Pass::Untouched;
        };
        session.server.listed();
        actions.tasks.push(Task::Mcp { session: session.key(), line: message.line.to_vec() });
        Pass::Consumed
    }

    /// Words of the user's or the agent's: without ours.
    pub(crate) fn message_chunk(
        &mut self,
        message: &Message<'_>,
        update: Node<'_>,
        kind: ChunkKind,
        actions: &mut Actions,
    ) -> Pass {
        let session = message.session_id().unwrap_or_default().into_owned();
        let Some(text) = update.at(&["content", "text"]).and_then(|node| node.as_text()) else {
            // An image, say: no text goes on behind it.
            if let Some((_, mut stream)) = self.strips.remove(&session) {
                actions.to_client.append(&mut stream.flush());
            }
            return Pass::Untouched;
        };
        self.flush_strangers(&session, actions);
        let (_, stream) = self.strips.entry(session.clone()).or_insert_with(|| (kind, Stream::default()));
        let passed = stream.chunk(&text, message.line);
        if stream.is_idle() {
            self.strips.remove(&session);
        }
        if kind == ChunkKind::User {
            self.replayed(&session, &passed.ours, &passed.clean);
        }
        let Some(mut lines) = passed.lines else { return Pass::Untouched };
        // Where no session is named, nobody can tell which chunk goes on with this one.
        if message.session_id().is_none()
            && let Some((_, mut stream)) = self.strips.remove(&session)
        {
            lines.append(&mut stream.flush());
        }
        let Some(last) = lines.pop() else { return Pass::Consumed };
        actions.to_client.append(&mut lines);
        if last == message.line { Pass::Untouched } else { Pass::Edited(last) }
    }

    /// Chunks of sessions that nobody set up go on when there are many: an agent may make up any number.
    fn flush_strangers(&mut self, session: &str, actions: &mut Actions) {
        let is_stranger = |id: &str| self.sessions.key_of(id).is_none();
        if self.strips.len() < MAX_KEPT || self.strips.contains_key(session) || !is_stranger(session) {
            return;
        }
        let strangers = self.strips.extract_if(|id, _| is_stranger(id));
        actions.to_client.extend(strangers.flat_map(|(_, (_, mut stream))| stream.flush()));
    }

    /// Chunks that were kept back, in case the end of our text follows, go on before anything else of their session.
    fn flush_strips(&mut self, message: &Message<'_>, actions: &mut Actions) {
        if self.strips.is_empty() {
            return;
        }
        let chunk = ChunkKind::of_message(message);
        let session = match message.kind() {
            Kind::Response => match message.id().and_then(|id| self.open.get(&id)) {
                // It goes on.
                Some(OpenRequest { method, .. })
                    if method == "session/prompt" && self.agent.version.turn(message) == Turn::Accepted =>
                {
                    None
                }
                // The end of a turn or of a replay.
                Some(OpenRequest {
                    purpose:
                        Purpose::Prompt(key)
                        | Purpose::SetUp(Setup { session: key, kind: SetupKind::Enter { .. }, .. }),
                    ..
                }) => {
                    let key = *key;
                    self.sessions.get(key).and_then(|session| Some(session.id()?.to_owned()))
                }
                // The end of a turn of a session that we do not know.
                Some(open) if open.method == "session/prompt" => {
                    let kept = self.strips.drain().flat_map(|(_, (_, mut stream))| stream.flush());
                    return actions.to_client.extend(kept);
                }
                _ => None,
            },
            Kind::Request | Kind::Notification => message.session_id().map(Cow::into_owned),
        };
        // What belongs to no session, or to another one, may come in the middle.
        let Some(id) = session else { return };
        // It may go on with what was kept back.
        if chunk.is_some_and(|chunk| self.strips.get(&id).is_some_and(|(kind, _)| *kind == chunk)) {
            return;
        }
        // Nor do updates that say nothing end a text of ours: agents report tokens while a model speaks.
        if updates::is_aside(message) && self.strips.get(&id).is_some_and(|(_, stream)| stream.is_inside()) {
            return;
        }
        if let Some((_, mut stream)) = self.strips.remove(&id) {
            actions.to_client.append(&mut stream.flush());
        }
    }

    /// A prompt is answered.
    pub(crate) fn answered(&mut self, key: SessionKey, id: &Id, message: &Message<'_>) {
        let turn = self.agent.version.turn(message);
        let Some(session) = self.sessions.get(key) else { return };
        session.turns.answered();
        match turn {
            Turn::Over { forgotten } => {
                session.briefing.turn_over(id, forgotten);
                session.vouching.turn_over(forgotten);
            }
            Turn::Accepted => {
                session.turns.accepted();
                session.briefing.accepted(id);
            }
        }
    }

    /// The agent begins to work, waits for the user, or has done all there was to do.
    pub(crate) fn state_update(&mut self, message: &Message<'_>, update: Node<'_>) {
        let Some(session) = message.session_id().and_then(|id| self.sessions.find(&id)) else { return };
        let background = update.get("background").filter(Node::is_array).map(|list| list.raw().to_vec());
        let is_busy = !update.get("state").is_some_and(|state| state.is_str("idle"));
        session.turns.state(is_busy, background);
        if !is_busy {
            let forgotten = version::forgets(update);
            session.briefing.turns_over(forgotten);
            session.vouching.turn_over(forgotten);
        }
    }
}
