//! What becomes of a prompt: what is put beside it, what it waits for, and when it goes on.

use std::time::Duration;

use acp_skills_wire::{Edit, Id, Message, Node};

use crate::{
    Interceptor,
    agent_facts::AgentFacts,
    briefing::Occasion,
    commands::{self, Command},
    events::{EventKind, FallbackReason},
    expansion,
    keys::{SessionKey, Ticket},
    marks,
    outputs::{Actions, Effect, Level, Pass, Task},
    policy::{Activation, Policy},
    queries::{Fetched, NotFetched, Query, Wanted},
    record,
    requests::Purpose,
    session::{
        Session,
        server::WaitEnd,
        turns::{HeldKind, HeldPrompt, Text},
    },
    words::{is_command, words},
};

/// What the user is told of a skill that went while its text was fetched.
const GONE: &str = "The skill is not there any more; `/skills` lists those that are.";

impl Interceptor {
    /// A prompt; nothing when it is answered already.
    pub(crate) fn prompt(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) -> Option<(Purpose, Pass)> {
        let session = message.session_id().and_then(|id| self.sessions.find(&id));
        let Some(session) = session else { return Some((Purpose::Other, Pass::Untouched)) };
        let key = session.key();
        let invoked = match Command::of(session, message, &self.policy) {
            Some(Command::Skills(words)) => {
                let waits = self.skills_command(key, message, id, &words, actions);
                return waits.then_some((Purpose::Prompt(key), Pass::Consumed));
            }
            Some(Command::Invoke(skill)) => Some(skill),
            None => None,
        };
        let wanted = match &invoked {
            Some(skill) => Some(commands::wanted(session, skill, message)),
            None => wanted(session, message, &self.policy),
        };
        let text = match wanted {
            Some(wanted) => Text::Pending(self.fetch(key, wanted, actions)),
            None => Text::None,
        };
        let time = self.time_to_connect();
        let Some(session) = self.sessions.get(key) else { return Some((Purpose::Other, Pass::Untouched)) };
        let tools_awaited = session.server.is_awaited() && !self.policy.mcp_wait.is_zero();
        // The session may not be open yet: nobody counts until somebody waits.
        if tools_awaited && !session.server.is_waited_for() {
            session.server.wait_begins();
            actions.tasks.push(Task::Wait(key, time));
        }
        let pass = if tools_awaited || text != Text::None || session.turns.has_held() {
            let kind = invoked.map_or(HeldKind::Ordinary, HeldKind::Invocation);
            session.turns.hold(HeldPrompt::new(id.clone(), message.line, kind, text));
            Pass::Consumed
        } else {
            session.turns.sent();
            write_prompt(session, message, None, &self.agent, &self.policy)
        };
        Some((Purpose::Prompt(key), pass))
    }

    /// Asks for a text.
    fn fetch(&mut self, session: SessionKey, wanted: Wanted, actions: &mut Actions) -> Ticket {
        let ticket = self.new_ticket();
        actions.ask(Query::Fetch { session, ticket, wanted });
        ticket
    }

    /// How long an agent has that has not connected.
    fn time_to_connect(&self) -> Duration {
        self.policy.mcp_connect.min(self.policy.mcp_wait)
    }

    /// A session is open: from now on the agent has its time to get our tools. The proxies of a chain count at once.
    pub(crate) fn await_tools(&mut self, key: SessionKey, actions: &mut Actions) {
        let time = self.time_to_connect();
        let never_connects = self.policy.mcp_connect < self.policy.mcp_wait && self.connects == Some(false);
        let Some(session) = self.sessions.get(key) else { return };
        if !session.server.is_awaited() || time.is_zero() {
            return;
        }
        // Also when nobody waits: who comes in this time is to be waited for again.
        session.server.wait_begins();
        actions.tasks.push(Task::Wait(key, time));
        if never_connects && !session.server.is_connected() {
            self.give_up(key, Duration::ZERO, actions);
        }
    }

    /// Somebody has come to the server of a session.
    pub(crate) fn connected(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        // With a prompt, it need not have come by itself.
        let in_time =
            (session.server.is_awaited() || session.server.is_waited_for()) && !session.turns.agent_works();
        session.server.connected();
        if in_time {
            self.connects(true, actions);
        }
    }

    /// It was seen whether the agent comes to our server by itself. One that comes when its model calls a tool need not be
    /// waited for.
    fn connects(&mut self, connects: bool, actions: &mut Actions) {
        if self.connects.replace(connects) == Some(connects)
            || self.policy.mcp_connect >= self.policy.mcp_wait
        {
            return;
        }
        if let Some(agent) = self.agent.identity() {
            actions.effects.push(Effect::RememberAgent { agent, connects });
        }
    }

    /// The agent has our tools.
    pub(crate) fn tools_listed(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        session.server.listed();
        self.release(key, actions);
    }

    /// The agent had its time to get our tools.
    pub(crate) fn wait_over(&mut self, key: SessionKey, actions: &mut Actions) {
        let (wait, connect) = (self.policy.mcp_wait, self.time_to_connect());
        let rest = wait.saturating_sub(connect);
        let Some(session) = self.sessions.get(key) else { return };
        match session.server.wait_ends(!rest.is_zero()) {
            // The session may have been set up again without what was waited for.
            WaitEnd::Stale => self.release(key, actions),
            WaitEnd::GoesOn => {
                session.server.wait_begins();
                actions.tasks.push(Task::Wait(key, rest));
            }
            WaitEnd::Over => {
                let has_connected = session.server.is_connected();
                if !has_connected {
                    self.connects(false, actions);
                }
                self.give_up(key, if has_connected { wait } else { connect }, actions);
            }
        }
    }

    /// Nobody waits any longer for the agent to get our tools; it had `waited` for it.
    fn give_up(&mut self, key: SessionKey, waited: Duration, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        if session.server.is_awaited() {
            session.server.gave_up();
            let mut again = Vec::new();
            let mut held: Vec<_> = session.turns.held_mut().collect();
            let (skills, server) = (&session.skills, &session.server);
            for held in &mut held {
                let Some(message) = Message::parse(&held.line) else { continue };
                let wanted = match &held.kind {
                    // This was to say how to use the tools.
                    HeldKind::Invocation(skill) => Some(Wanted::Skill {
                        name: skill.as_str().to_owned(),
                        arguments: commands::arguments(&message),
                        tools: server.has_tools(),
                    }),
                    // Without tools the proxy may have to do it.
                    HeldKind::Ordinary if held.text == Text::None => {
                        by_proxy(server.has_tools(), skills.is_empty(), &message, &self.policy)
                    }
                    HeldKind::Ordinary | HeldKind::Command => None,
                };
                again.extend(wanted.map(|wanted| (held.id.clone(), wanted)));
            }
            for (id, wanted) in again {
                let ticket = self.fetch(key, wanted, actions);
                let held = self
                    .sessions
                    .get(key)
                    .and_then(|session| session.turns.held_mut().find(|held| held.id == id));
                if let Some(held) = held {
                    held.text = Text::Pending(ticket);
                }
            }
            let kind = EventKind::Fallback { reason: FallbackReason::NotConnected, ms: Some(waited.into()) };
            let session = self.sessions.get(key).and_then(|session| Some(session.id()?.to_owned()));
            actions.effects.push(Effect::Record { session, kind });
            actions.log(
                Level::Info,
                "the agent did not connect to the skills server in time; it is told where the files are instead",
            );
        }
        self.release(key, actions);
    }

    /// A text is here.
    pub(crate) fn fetched(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        fetched: Fetched,
        actions: &mut Actions,
    ) {
        let Some(session) = self.sessions.get(key) else { return };
        if let Some(held) = session.turns.awaiting(ticket) {
            let Fetched { text, activations } = fetched;
            let kind = held.kind.clone();
            if text.is_none() && matches!(kind, HeldKind::Invocation(_)) {
                let why = NotFetched { why: GONE.to_owned(), failed: None };
                return self.not_fetched(key, ticket, why, actions);
            }
            held.text = text.map_or(Text::None, Text::Ready);
            held.activations = activations;
            if let HeldKind::Invocation(skill) = kind {
                self.invoked(key, &skill, actions);
            }
        }
        self.release(key, actions);
    }

    /// A text cannot be had. A command fails with that, and the agent does not hear of it; any other prompt goes
    /// without.
    pub(crate) fn not_fetched(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        why: NotFetched,
        actions: &mut Actions,
    ) {
        let NotFetched { why, failed } = why;
        let Some(session) = self.sessions.get(key) else { return };
        let id = session.id().map(str::to_owned);
        let Some(held) = session.turns.awaiting(ticket) else { return };
        actions.effects.extend(failed.map(|kind| Effect::Record { session: id, kind }));
        held.text = Text::None;
        let level = if matches!(held.kind, HeldKind::Invocation(_)) {
            let id = held.id.clone();
            if let Some(prompt) = session.turns.take(&id) {
                self.answer_held(key, &prompt, &why, actions);
            }
            // The user has read it in the answer.
            Level::Info
        } else {
            Level::Warn
        };
        actions.log(level, why);
        self.release(key, actions);
    }

    /// Answers a prompt that waited, in the agent's place.
    pub(crate) fn answer_held(
        &mut self,
        key: SessionKey,
        prompt: &HeldPrompt,
        text: &str,
        actions: &mut Actions,
    ) {
        self.open.remove(&prompt.id);
        if let Some(message) = Message::parse(&prompt.line) {
            self.reply(key, &message, &prompt.id, text, actions);
        }
    }

    /// The client is gone: nothing is worth waiting for, and the agent is to have all that the user wrote.
    pub(crate) fn release_all(&mut self, actions: &mut Actions) {
        self.release_waiting(actions);
        let sessions = self.sessions.iter_mut().map(|session| {
            session.turns.stop_waiting();
            session.server.gave_up();
            session.key()
        });
        for key in sessions.collect::<Vec<_>>() {
            self.release(key, actions);
        }
    }

    /// Sends the prompts of a session that need not wait any longer.
    pub(crate) fn release(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        if session.server.is_awaited() && !self.policy.mcp_wait.is_zero() {
            return;
        }
        while let Some(held) = session.turns.pop_ready() {
            let text = match held.text {
                Text::Ready(text) => Some(text),
                Text::None | Text::Pending(_) => None,
            };
            // Only now: a text may be fetched again, or never be sent.
            for kind in held.activations {
                if held.kind == HeldKind::Ordinary {
                    record::put_in_front(session, &kind, actions);
                }
                actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
            }
            session.turns.sent();
            let pass = Message::parse(&held.line).map(|message| match &held.kind {
                HeldKind::Invocation(skill) => {
                    if let Some(words) = words(&message) {
                        session.first_words.begin_with(&words);
                    }
                    expansion::write(session, &message, skill, text.as_deref(), &self.agent, &self.policy)
                }
                _ => write_prompt(session, &message, text.as_deref(), &self.agent, &self.policy),
            });
            actions.to_agent.push(match pass {
                Some(Pass::Edited(line)) => line,
                _ => held.line,
            });
        }
    }
}

/// The text that the prompt needs and that has to be fetched.
fn wanted(session: &Session, message: &Message<'_>, policy: &Policy) -> Option<Wanted> {
    by_proxy(session.server.has_tools(), session.skills.is_empty(), message, policy)
}

/// The text of the skills that fit the prompt, when it is the proxy that activates skills.
fn by_proxy(has_tools: bool, is_empty: bool, message: &Message<'_>, policy: &Policy) -> Option<Wanted> {
    let by_proxy = match policy.activation {
        Activation::Model => false,
        Activation::Prompt => true,
        Activation::Hybrid => !has_tools,
    };
    let blocks = message.param(&["prompt"])?;
    if !by_proxy || is_empty || is_command(blocks) {
        return None;
    }
    words(message).map(Wanted::BestFor)
}

/// Puts what the model has to be told beside what the user wrote, where the agent's kind wants it: the catalog, and `text`.
fn write_prompt(
    session: &mut Session,
    message: &Message<'_>,
    text: Option<&str>,
    agent: &AgentFacts,
    policy: &Policy,
) -> Pass {
    let Some(blocks) = message.param(&["prompt"]).filter(Node::is_array) else { return Pass::Untouched };
    if is_command(blocks) {
        return Pass::Untouched;
    }
    let mut edit = Edit::new();
    let add = if agent.kind.wants_words_first() { Edit::push } else { Edit::unshift };
    if let Some(text) = session.brief_in_prompt(message, agent, policy, Occasion::Ordinary) {
        add(&mut edit, blocks, &marks::block(&text).to_string());
    }
    if let Some(text) = text {
        add(&mut edit, blocks, &marks::block(&session.mark.wrap(text)).to_string());
    }
    if edit.is_empty() {
        return Pass::Untouched;
    }
    if let Some(words) = words(message) {
        session.first_words.begin_with(&words);
    }
    Pass::Edited(edit.apply(message.line))
}
