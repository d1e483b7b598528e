//! Waiting for the agent to list the skill tools. The states are in [`ToolsState`](crate::session::tools::ToolsState).

use std::time::Duration;

use acp_skills_wire::Message;
use skills_core::catalog::Guide;

use crate::{
    Interceptor, commands,
    events::{EventKind, FallbackReason},
    keys::{SessionKey, Ticket, Timer},
    outputs::{Actions, Effect, Level, Task},
    pending::{PromptKind, PromptText},
    prompt,
    queries::{Query, Wanted},
    session::{Session, tools::ToolsEffect},
};

impl Interceptor {
    /// Returns the connect timeout.
    fn connect_timeout(&self) -> Duration {
        self.policy.mcp_connect.min(self.policy.mcp_wait)
    }

    /// Returns true if a prompt of this session has to be held for the skill tools. If no timer runs yet, because the session
    /// is not open, this function starts the connect timeout.
    pub(crate) fn must_wait_for_tools(&mut self, key: SessionKey, actions: &mut Actions) -> bool {
        let timeout = self.connect_timeout();
        let is_off = self.policy.mcp_wait.is_zero();
        let Some(session) = self.sessions.get(key) else { return false };
        if is_off || !session.server.is_awaited() {
            return false;
        }
        if let ToolsEffect::StartConnectTimer(timer) = session.server.prompt_held() {
            actions.tasks.push(Task::ToolsTimer { session: key, timer, time: timeout });
        }
        true
    }

    /// Starts the connect timeout again if prompts are held while the session is set up once more. The agent may refuse that, or never
    /// answer.
    pub(crate) fn hold_on(&self, session: &mut Session, actions: &mut Actions) {
        if self.pending.has_prompts(session.key())
            && let ToolsEffect::StartConnectTimer(timer) = session.server.prompt_held()
        {
            let time = self.connect_timeout();
            actions.tasks.push(Task::ToolsTimer { session: session.key(), timer, time });
        }
    }

    /// Starts the timeout for the skill tools when the agent has opened a session. All proxies in a chain start their timeouts at
    /// the same time.
    pub(crate) fn await_tools(&mut self, key: SessionKey, actions: &mut Actions) {
        let timeout = self.connect_timeout();
        let never_connects =
            self.policy.mcp_connect < self.policy.mcp_wait && self.memory.agent_connects == Some(false);
        let Some(session) = self.sessions.get(key) else { return };
        if timeout.is_zero() {
            return;
        }
        // We start the timer even if we know that the agent doesn't connect. This way, we will notice if it does connect in time.
        let ToolsEffect::StartConnectTimer(timer) = session.server.session_opened() else { return };
        let is_connected = session.server.is_connected();
        actions.tasks.push(Task::ToolsTimer { session: key, timer, time: timeout });
        if never_connects && !is_connected {
            if session.server.give_up() == ToolsEffect::TimedOut {
                self.go_on_without_tools(key, Duration::ZERO, actions);
            }
            self.release(key, actions);
        }
    }

    /// Handles a connection to the server of a session.
    pub(crate) fn connected(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        let effect = session.server.connected();
        // While the agent is working on a prompt, it may connect just to call a tool. So we can't draw any conclusion from
        // this.
        if effect == ToolsEffect::ConnectedInTime && !session.turns.agent_works() {
            self.learn_connects(true, actions);
        }
    }

    /// Remembers whether the agent connects to the skills server by itself. If it connects only when its model calls a
    /// tool, prompts of later sessions are not held.
    fn learn_connects(&mut self, connects: bool, actions: &mut Actions) {
        if self.memory.agent_connects.replace(connects) == Some(connects)
            || self.policy.mcp_connect >= self.policy.mcp_wait
        {
            return;
        }
        if let Some(agent) = self.agent.identity() {
            actions.effects.push(Effect::SaveAgentConnects { agent, connects });
        }
    }

    /// Sends the held prompts of a session when the agent has listed the skill tools.
    pub(crate) fn tools_listed(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        session.server.listed();
        self.release(key, actions);
    }

    /// Handles the end of a timer.
    pub(crate) fn tools_timer_ended(&mut self, key: SessionKey, timer: Timer, actions: &mut Actions) {
        let connect = self.connect_timeout();
        let wait = self.policy.mcp_wait;
        let rest = wait.saturating_sub(connect);
        let Some(session) = self.sessions.get(key) else { return };
        match session.server.timer_ended(timer, !rest.is_zero()) {
            ToolsEffect::StartListTimer(timer) => {
                actions.tasks.push(Task::ToolsTimer { session: key, timer, time: rest });
            }
            ToolsEffect::TimedOut => {
                let is_connected = session.server.is_connected();
                if !is_connected {
                    self.learn_connects(false, actions);
                }
                self.go_on_without_tools(key, if is_connected { wait } else { connect }, actions);
                self.release(key, actions);
            }
            // We don't need this timer anymore. But if the session has since been set up without the tools, we still have to
            // release its prompts.
            _ => self.release(key, actions),
        }
    }

    /// Fetches the texts of held prompts again, now for a model without the skill tools, and records the timeout. `waited` is the
    /// time that the agent had.
    fn go_on_without_tools(&mut self, key: SessionKey, waited: Duration, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        let session = &*session;
        let mut again: Vec<(Ticket, Wanted)> = Vec::new();
        for (ticket, prompt) in self.pending.prompts(key) {
            let Some(message) = Message::parse(&prompt.line) else { continue };
            let wanted = match &prompt.kind {
                // We have to fetch this text again, since it refers to the tools.
                PromptKind::Invocation(skill) => Some(commands::wanted(session, skill, &message)),
                // The restored instructions refer to the tools, so we have to fetch them again.
                PromptKind::Ordinary if prompt.restores.is_some() => {
                    prompt::wanted(session, &message, &self.policy)
                }
                // Since the model can't use the tools, we may have to activate skills for it here.
                PromptKind::Ordinary if prompt.text == PromptText::None => {
                    prompt::text_of_matching_skills(session, &message, &self.policy)
                }
                PromptKind::Ordinary | PromptKind::Command => None,
            };
            if let Some(wanted) = wanted {
                prompt.text = PromptText::Fetching;
                again.push((ticket, wanted));
            }
        }
        for (ticket, wanted) in again {
            let ticket = self.pending.renew(ticket);
            actions.ask(Query::Fetch { session: key, ticket, wanted });
        }
        let instead = match session.without_tools {
            Guide::Prompts => "adding the skills that match to prompts",
            _ => "using paths to skill files",
        };
        let kind = EventKind::Fallback { reason: FallbackReason::NotConnected, ms: Some(waited.into()) };
        let session = self.sessions.get(key).and_then(|session| Some(session.id()?.to_owned()));
        actions.effects.push(Effect::Record { session, kind });
        let text = format!("agent did not connect to the skills server in time; {instead} instead");
        actions.log(Level::Info, text);
    }
}
