//! [`Fixture`]: an interceptor with a simulated client, agent and host. Queries are answered only if the target asks for it.

use std::{collections::VecDeque, path::PathBuf, time::Duration};

use acp_skills_intercept::{
    Actions, Endpoint, Fetched, HostError, Input, Interceptor, Mark, MarkKey, NotFetched, Pass, Policy,
    Provisions, Query, Reason, Refreshed, Resolved, SavedSwitches, SessionKey, Task, Timer, Transport,
    TrustOutcome,
};
use serde_json::{Value, json};
use skills_core::{Properties, Skill, SkillName, SkillSet, Source, Stored};

/// The number of the run.
const RUN: u64 = 0x5eed;
/// The secret of the marks.
const MARKS: MarkKey = MarkKey::new([0x5e; 32]);
/// A word that is in the instructions of every skill, and nowhere else.
pub(super) const BODY: &str = "Zq-instructions";

/// A side of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Agent,
}

/// An interceptor with a simulated client, agent and host.
pub(super) struct Fixture {
    interceptor: Interceptor,
    skills: SkillSet,
    /// The resolved path of all paths. `None` resolves each path to itself.
    pub(super) leads_to: Option<PathBuf>,
    queries: VecDeque<Query>,
    keys: Vec<SessionKey>,
    menus: Vec<SessionKey>,
    timers: Vec<(SessionKey, Timer)>,
    calls: Vec<(SessionKey, Timer)>,
    /// The lines that the client received, in order.
    pub(super) to_client: Vec<String>,
    /// The lines that the agent received, in order.
    pub(super) to_agent: Vec<String>,
}

/// Returns a stored skill with changed properties.
pub(super) fn skill(name: &str, change: impl FnOnce(&mut Properties)) -> Skill {
    let mut properties = Properties::default();
    change(&mut properties);
    let stored = Stored::new(PathBuf::from("/skills").join(name), "SKILL.md");
    let mut skill = Skill::new(SkillName::new(name).expect("a name"), "Does it.", Source::Stored(stored));
    skill.properties = properties;
    skill
}

impl Fixture {
    pub(super) fn new(policy: Policy, skills: Vec<Skill>) -> Self {
        Self {
            interceptor: Interceptor::new(policy, RUN, MARKS),
            skills: skills.into_iter().collect(),
            leads_to: None,
            queries: VecDeque::new(),
            keys: Vec::new(),
            menus: Vec::new(),
            timers: Vec::new(),
            calls: Vec::new(),
            to_client: Vec::new(),
            to_agent: Vec::new(),
        }
    }

    /// Returns a mark that the user may write about. It is not one of ours.
    pub(super) fn mark() -> Mark {
        Mark::new(0x5eed)
    }

    /// Creates a fixture after the handshake, with the session `s`.
    pub(super) fn with_session(policy: Policy, skills: Vec<Skill>) -> Self {
        let mut fixture = Self::new(policy, skills);
        fixture.send(
            Side::Client,
            &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } }),
        );
        let capabilities = json!({ "mcpCapabilities": { "http": true }, "loadSession": true });
        fixture.send(
            Side::Agent,
            &json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1, "agentCapabilities": capabilities } }),
        );
        fixture.send(
            Side::Client,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": "/p", "mcpServers": [] } }),
        );
        fixture.settle();
        fixture.send(Side::Agent, &json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": "s" } }));
        fixture.settle();
        fixture
    }

    pub(super) fn send(&mut self, side: Side, message: &Value) -> Pass {
        self.line(side, message.to_string().as_bytes())
    }

    /// Sends a line. `line` has no line break.
    pub(super) fn line(&mut self, side: Side, line: &[u8]) -> Pass {
        let line = [line, b"\n"].concat();
        let mut actions = Actions::default();
        let pass = match side {
            Side::Client => self.interceptor.from_client(&line, &mut actions),
            Side::Agent => self.interceptor.from_agent(&line, &mut actions),
        };
        let own = match &pass {
            Pass::Untouched => Some(line),
            Pass::Edited(line) => Some(line.clone()),
            Pass::Consumed => None,
        };
        let way = match side {
            Side::Client => &mut actions.to_agent,
            Side::Agent => &mut actions.to_client,
        };
        way.extend(own);
        way.append(&mut actions.after);
        self.take(actions);
        pass
    }

    pub(super) fn handle(&mut self, input: Input) {
        let mut actions = Actions::default();
        self.interceptor.handle(input, &mut actions);
        assert!(actions.after.is_empty(), "there is no message that they could follow");
        self.take(actions);
    }

    fn take(&mut self, actions: Actions) {
        let text = |line: Vec<u8>| {
            let end = line.iter().position(|&byte| byte == b'\n');
            assert_eq!(end, Some(line.len() - 1), "a message is one line");
            String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned()
        };
        self.to_client.extend(actions.to_client.into_iter().map(text));
        self.to_agent.extend(actions.to_agent.into_iter().map(text));
        for task in actions.tasks {
            match task {
                Task::Ask(query) => {
                    if let Query::SetUp { session, .. } = &query
                        && !self.keys.contains(session)
                    {
                        self.keys.push(*session);
                    }
                    self.queries.push_back(query);
                }
                Task::MenuTimer { session, .. } => self.menus.push(session),
                Task::ToolsTimer { session, timer, .. } => self.timers.push((session, timer)),
                Task::CallTimer { session, timer, .. } => self.calls.push((session, timer)),
                Task::Mcp { .. } | Task::ReadFile { .. } | Task::CancelMcp { .. } => {}
            }
        }
    }

    /// Answers the oldest or the latest pending query. Returns false if there is none.
    pub(super) fn answer(&mut self, is_oldest: bool, is_there: bool) -> bool {
        let query = if is_oldest { self.queries.pop_front() } else { self.queries.pop_back() };
        let Some(query) = query else { return false };
        let input = match query {
            Query::SetUp { session, ticket, needs } => {
                let endpoint = needs.transport.map(|transport| match transport {
                    _ if !is_there => Err(HostError("no endpoint".to_owned())),
                    Transport::Acp => Ok(Endpoint::Acp { server_id: "server".to_owned() }),
                    Transport::Http => Ok(Endpoint::Http {
                        url: format!("http://127.0.0.1:1/{}/mcp", session.0),
                        token: "secret".to_owned(),
                    }),
                    Transport::Stdio => Ok(Endpoint::Stdio {
                        command: "/bin/acp-skills-proxy".to_owned(),
                        args: vec!["mcp-bridge".to_owned()],
                        env: Vec::new(),
                    }),
                });
                let skills = self.skills.clone();
                let provisions = Provisions { skills, endpoint, ..Provisions::default() };
                Input::SetUp { session, ticket, provisions }
            }
            Query::Fetch { session, ticket, .. } if is_there => {
                let text = Some(format!("<skill_content>{BODY}</skill_content>"));
                Input::Fetched { session, ticket, fetched: Fetched { text, ..Fetched::default() } }
            }
            Query::Fetch { session, ticket, .. } => {
                let why = NotFetched { why: "it is gone".to_owned(), failed: None };
                Input::NotFetched { session, ticket, why }
            }
            Query::Resolve { ticket, path, workspace, .. } => {
                let path = self.leads_to.clone().unwrap_or(path);
                Input::Resolved { ticket, resolved: Resolved { path: Some(path), workspace } }
            }
            Query::SaveSwitches { session, ticket, names, on, .. } => {
                let saved = if is_there { Ok(()) } else { Err(HostError("the disk is full".to_owned())) };
                Input::SwitchesSaved { session, ticket, saved: SavedSwitches { names, on, saved } }
            }
            Query::Trust { session, ticket, trusted, skills, .. } => {
                let names = skills.iter().map(|waiting| waiting.skill.name.clone());
                let mut outcome = TrustOutcome::default();
                if is_there {
                    outcome.done.extend(names);
                } else {
                    outcome.failed.extend(names.map(|name| (name, "it has changed".to_owned())));
                }
                let refreshed = Refreshed::nothing(Reason::Changed(Duration::ZERO));
                Input::TrustSaved { session, ticket, trusted, outcome, refreshed }
            }
            Query::Untrust { session, ticket, names, .. } => {
                let mut outcome = TrustOutcome::default();
                outcome.done.extend(names);
                let refreshed = Refreshed::nothing(Reason::Changed(Duration::ZERO));
                Input::TrustSaved { session, ticket, trusted: false, outcome, refreshed }
            }
            Query::Skills { workspaces, reason } if is_there => {
                let skills =
                    workspaces.into_iter().map(|workspace| (workspace, self.skills.clone())).collect();
                Input::Skills(Refreshed { skills, servers: Vec::new(), took: Duration::ZERO, reason })
            }
            Query::Skills { reason, .. } => Input::Skills(Refreshed::nothing(reason)),
        };
        self.handle(input);
        true
    }

    /// Removes the oldest timer of a session. If there is none, returns a timer that has already ended.
    pub(super) fn oldest_timer(&mut self, key: SessionKey) -> Timer {
        let index = self.timers.iter().position(|(session, _)| *session == key);
        index.map_or(Timer(0), |index| self.timers.remove(index).1)
    }

    /// Returns the session that was set up at this index, modulo their number.
    pub(super) fn key(&self, index: usize) -> Option<SessionKey> {
        self.keys.get(index.checked_rem(self.keys.len())?).copied()
    }

    /// Answers all queries, and lets all timeouts pass.
    pub(super) fn settle(&mut self) {
        loop {
            while self.answer(true, true) {}
            for key in self.keys.clone() {
                self.handle(Input::ToolsListed(key));
                while let Some(index) = self.timers.iter().position(|(session, _)| *session == key) {
                    let (session, timer) = self.timers.remove(index);
                    self.handle(Input::ToolsTimerEnded { session, timer });
                }
            }
            for key in std::mem::take(&mut self.menus) {
                self.handle(Input::MenuTimerEnded(key));
            }
            for (session, timer) in std::mem::take(&mut self.calls) {
                self.handle(Input::CallTimerEnded { session, timer });
            }
            if self.queries.is_empty() && self.calls.is_empty() {
                break;
            }
        }
    }
}
