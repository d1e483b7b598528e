//! What becomes of a message from the agent.

use std::borrow::Cow;

use super::{
    Actions, AgentFacts, Effect, Interceptor, Level, Open, Pass, Purpose,
    strip::{self, Chunk},
    version::Turn,
};
use crate::{
    events::{EventKind, Reason},
    session::{Mcp, Session, SessionKey, Told},
};
use acp_skills_wire::{AUTH_REQUIRED, Edit, Id, Kind, Message, Node, REQUEST_CANCELLED};

impl Interceptor {
    pub(super) fn agent_message(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        self.flush_strips(message, actions);
        match message.kind() {
            Kind::Response => self.response(message, actions),
            Kind::Notification if message.method() == "session/update" => self.update(message, actions),
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
                actions.effects.push(Effect::Log(Level::Debug, format!("the agent: {:?}", self.agent)));
                Pass::Untouched
            }
            (Purpose::Name { session, .. }, Some(result)) => {
                match result.str("sessionId") {
                    Some(name) => {
                        if let Some(before) = self.sessions.name(session, &name) {
                            self.drop_session(before, actions);
                        }
                    }
                    None => self.drop_session(session, actions),
                }
                self.started(session, &open.method, actions);
                self.session_is_set_up(session, message, result, actions)
            }
            (Purpose::Enter { session, .. }, Some(result)) => {
                self.started(session, &open.method, actions);
                self.session_is_set_up(session, message, result, actions)
            }
            (Purpose::Name { session, retry }, None) => {
                self.refused(id, open.method, session, false, retry, message, actions)
            }
            (Purpose::Enter { session, known, retry }, None) => {
                self.refused(id, open.method, session, known, retry, message, actions)
            }
            (Purpose::Leave { id }, Some(_)) => {
                if let Some(key) = self.sessions.find(&id).map(|session| session.key) {
                    self.drop_session(key, actions);
                }
                self.strips.remove(&id);
                if open.method == "session/delete" {
                    actions.effects.push(Effect::Remember { id, active: Vec::new() });
                }
                Pass::Untouched
            }
            (Purpose::List, Some(result)) => self.list(message, result),
            (Purpose::Prompt(session), _) => {
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

    /// A session could not be set up. Perhaps the agent does not take our server: it gets a second chance with another
    /// name, when the name is what it complains of, or without.
    #[expect(clippy::too_many_arguments, reason = "the parts of one open request, taken apart by the caller")]
    fn refused(
        &mut self,
        id: Id,
        method: String,
        key: SessionKey,
        known: bool,
        retry: Option<Vec<u8>>,
        message: &Message<'_>,
        actions: &mut Actions,
    ) -> Pass {
        let code = message.error.and_then(|error| error.get("code")).map(|code| code.raw().to_vec());
        let is = |other: i64| code.as_deref() == Some(other.to_string().as_bytes());
        // It wants a login, or the client has changed its mind: neither is about our server.
        let is_about_us = message.error.is_some() && !is(AUTH_REQUIRED) && !is(REQUEST_CANCELLED);
        if let Some(line) = retry.filter(|_| is_about_us)
            && let Some(mut session) = self.sessions.remove(key)
            && let Some(again) = Message::parse(&line)
        {
            let name_is_taken = self.name_is_taken(&session, message);
            if name_is_taken {
                let text = format!("{method} failed: the agent wants another name for each skills server");
                actions.effects.push(Effect::Log(Level::Info, text));
                self.own_names = true;
                session.server_name = None;
            } else {
                let what = EventKind::Fallback { reason: Reason::Refused, ms: None };
                actions.effects.push(Effect::Record { session: session.id.clone(), what });
                Self::warn(actions, format!("{method} failed with the skills server; trying without it"));
                self.host.close(key);
                session.catalog = None;
                (session.told, session.known) = (Told::Nothing, None);
            }
            let pass = self.set_up(&mut session, &again, name_is_taken, actions);
            self.sessions.add(session);
            let retry = name_is_taken.then(|| line.clone());
            let purpose = if method == "session/new" || method == "session/fork" {
                Purpose::Name { session: key, retry }
            } else {
                Purpose::Enter { session: key, known, retry }
            };
            actions.to_agent.push(match pass {
                Pass::Edited(edited) => edited,
                _ => line,
            });
            self.open.insert(id, Open { method, purpose });
            return Pass::Consumed;
        }
        if !known {
            self.drop_session(key, actions);
        }
        Pass::Untouched
    }

    /// Whether the agent refused `session` because another session has a server of the same name: fast-agent has one
    /// list of servers for all its sessions.
    fn name_is_taken(&mut self, session: &Session, message: &Message<'_>) -> bool {
        let Some(name) = session.server_name.as_deref() else { return false };
        let error = message.error.map(|error| error.raw()).unwrap_or_default();
        memchr::memmem::find(error, name.as_bytes()).is_some()
            && self.sessions.iter_mut().any(|other| other.server_name.as_deref() == Some(name))
    }

    /// Forgets a session. Prompts that waited in it have nowhere to go.
    fn drop_session(&mut self, key: SessionKey, actions: &mut Actions) {
        self.host.close(key);
        let Some(session) = self.sessions.remove(key) else { return };
        if let Some(cwd) = &session.cwd
            && !self.sessions.iter_mut().any(|other| other.cwd.as_ref() == Some(cwd))
        {
            self.host.leave(cwd);
        }
        self.cancel_held(session.held, actions);
    }

    fn mcp_message(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let server = message.param(&["serverId"]).and_then(|id| id.as_str());
        let Some(session) = self
            .sessions
            .iter_mut()
            .find(|session| server.is_some() && session.server_id.as_deref() == server.as_deref())
        else {
            return Pass::Untouched;
        };
        session.mcp = Mcp::Listed;
        actions.effects.push(Effect::Mcp { session: session.key, line: message.line.to_vec() });
        Pass::Consumed
    }

    fn update(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(update) = message.param(&["update"]) else { return Pass::Untouched };
        match update.str("sessionUpdate").as_deref() {
            Some("user_message_chunk") => self.user_chunk(message, update, actions),
            Some("user_message") => self.user_message(message, update),
            Some("state_update") => {
                self.state_update(message, update);
                Pass::Untouched
            }
            Some("session_info_update") => self.info(message, update),
            Some("available_commands_update") => self.commands_update(message, update),
            _ => Pass::Untouched,
        }
    }

    /// The user's words, as the agent remembers them: without ours.
    fn user_chunk(&mut self, message: &Message<'_>, update: Node<'_>, actions: &mut Actions) -> Pass {
        let Some(node) = update.at(&["content", "text"]) else { return Pass::Untouched };
        let Some(text) = node.as_str() else { return Pass::Untouched };
        let session = message.session_id().unwrap_or_default().into_owned();
        let stream = self.strips.entry(session.clone()).or_default();
        let chunk = stream.chunk(&text, message.line, &mut actions.to_client);
        if stream.is_idle() {
            self.strips.remove(&session);
        }
        let clean = match &chunk {
            Chunk::Untouched => &text,
            Chunk::Text(clean) => clean.as_str(),
            Chunk::Nothing => "",
        };
        self.remembered(&session, &text, clean);
        match chunk {
            Chunk::Untouched => Pass::Untouched,
            Chunk::Text(text) => Pass::Edited(strip::rewrite(message.line, &text)),
            Chunk::Nothing => Pass::Consumed,
        }
    }

    /// Chunks that were kept back, in case the end of our text follows, go on before anything else of their session.
    fn flush_strips(&mut self, message: &Message<'_>, actions: &mut Actions) {
        if self.strips.is_empty() {
            return;
        }
        let is_chunk = message.method() == "session/update"
            && message
                .param(&["update", "sessionUpdate"])
                .is_some_and(|kind| kind.is_str("user_message_chunk"));
        if is_chunk {
            return;
        }
        let session = match message.kind() {
            Kind::Response => match message.id().and_then(|id| self.open.get(&id)) {
                // It goes on.
                Some(Open { method, .. })
                    if method == "session/prompt" && self.agent.version.turn(message) == Turn::Accepted =>
                {
                    None
                }
                // The end of a turn or of a replay.
                Some(Open {
                    purpose: Purpose::Prompt(key) | Purpose::Enter { session: key, .. }, ..
                }) => {
                    let key = *key;
                    self.sessions.get(key).and_then(|session| session.id.clone())
                }
                // The end of a turn of a session that we do not know.
                Some(open) if open.method == "session/prompt" => {
                    let kept = self.strips.drain().flat_map(|(_, mut stream)| stream.flush());
                    return actions.to_client.extend(kept);
                }
                _ => None,
            },
            Kind::Request | Kind::Notification => message.session_id().map(Cow::into_owned),
        };
        // What belongs to no session, or to another one, may come in the middle.
        if let Some(mut stream) = session.and_then(|id| self.strips.remove(&id)) {
            actions.to_client.append(&mut stream.flush());
        }
    }

    fn info(&mut self, message: &Message<'_>, update: Node<'_>) -> Pass {
        let ours = message.session_id().and_then(|id| self.sessions.find(&id));
        let words = ours.and_then(|session| session.first_words.clone());
        let Some((title, text)) = polluted_title(update, words.as_deref()) else { return Pass::Untouched };
        let mut edit = Edit::new();
        if !clean_title(&mut edit, update, title, text, words) && update.members().count() == 2 {
            // Nothing is left to say.
            return Pass::Consumed;
        }
        Pass::Edited(edit.apply(message.line))
    }

    fn list(&mut self, message: &Message<'_>, result: Node<'_>) -> Pass {
        let mut edit = Edit::new();
        for entry in result.get("sessions").into_iter().flat_map(|sessions| sessions.elements()) {
            let known = entry.str("sessionId").and_then(|id| self.sessions.find(&id));
            let words = known.and_then(|session| session.first_words.clone());
            if let Some((title, text)) = polluted_title(entry, words.as_deref()) {
                clean_title(&mut edit, entry, title, text, words);
            }
        }
        if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
    }
}

/// The title of `object` and what it is without our text; `None` when it can stay. `words` is what the user began with.
fn polluted_title<'a>(object: Node<'a>, words: Option<&str>) -> Option<(Node<'a>, String)> {
    let title = object.get("title")?;
    let said = title.as_str()?;
    let text = strip::title(&said).or_else(|| {
        // An agent that passes over our text makes a title of the arguments alone.
        let (command, arguments) =
            words?.split_once(' ').filter(|(command, _)| command.starts_with(['/', '$']))?;
        let title = said.trim_end().trim_end_matches(['…', '.']).trim_end();
        let is_arguments = !title.is_empty() && arguments.starts_with(title);
        is_arguments.then(|| format!("{command} {said}"))
    })?;
    Some((title, text))
}

/// Writes a clean title; returns whether there is one.
fn clean_title(
    edit: &mut Edit,
    object: Node<'_>,
    title: Node<'_>,
    text: String,
    words: Option<String>,
) -> bool {
    let clean = if text.is_empty() { words } else { Some(text) };
    if let Some(clean) = clean {
        edit.set(title, &clean.into());
        true
    } else {
        edit.remove(object, "title");
        false
    }
}
