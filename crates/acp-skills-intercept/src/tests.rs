//! The interceptor as a table: lines in, lines out, with a host that answers from memory.

mod call_titles;
mod commands;
mod drafts;
mod lifecycle;
mod permission;
mod placement;
mod record;
mod reload;
mod repeats;
mod slow;
mod switches;
mod toggles;
mod trust;
mod version;
mod waiting;

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use skills_core::{Skill, SkillName, SkillSet};

use super::{events::EventKind, *};

/// What the world outside was asked for and told, and what it answers.
#[derive(Debug, Default)]
pub(super) struct Outside {
    skills: SkillSet,
    /// Whether questions are kept until [`World::answer`].
    pub(super) is_slow: bool,
    questions: VecDeque<Query>,
    pub(super) opened: Vec<SessionKey>,
    pub(super) closed: Vec<SessionKey>,
    /// What was served last: whose, which skills, and which of them the user activated.
    pub(super) served: Option<(SessionKey, Vec<String>, Vec<String>)>,
    /// What is found when a user asks for a reload.
    pub(super) after_reload: Option<SkillSet>,
    /// What is remembered of any session.
    pub(super) recalled: ActiveSkills,
    /// What is off in any directory, and what was asked to be kept; an error instead when nothing can be.
    pub(super) off: Vec<SkillName>,
    pub(super) kept: Vec<(PathBuf, Vec<SkillName>, bool)>,
    pub(super) keeps_nothing: bool,
    /// What was asked to be remembered of agents, and what is known of any.
    pub(super) agents: Vec<(String, bool)>,
    pub(super) never_connects: bool,
    /// What was decided about skills that wait.
    pub(super) decisions: Vec<(Vec<SkillName>, bool)>,
    /// Directories in which nobody works any more.
    pub(super) left: Vec<PathBuf>,
}

impl Outside {
    /// The answer to a question; nothing for texts, which the tests give themselves.
    fn answer(&mut self, query: Query) -> Result<Input, Query> {
        match query {
            Query::SetUp { session, ticket, needs } => {
                let skills = needs.skills.unwrap_or_else(|| self.skills.clone());
                let all = skills.with(&needs.client_skills);
                let transport = needs.transport.filter(|_| !all.will_offer_nothing());
                let endpoint = transport.map(|transport| Ok(self.open(session, transport)));
                let active = needs.recall.map(|_| self.recalled.clone()).unwrap_or_default();
                Ok(Input::SetUp {
                    session,
                    ticket,
                    provisions: Provisions {
                        skills,
                        off: self.off.clone(),
                        active,
                        endpoint,
                        never_connects: self.never_connects,
                    },
                })
            }
            Query::Skills { directories, reason } => {
                if matches!(reason, Reason::Reload(..)) {
                    self.skills = self.after_reload.take().unwrap_or_else(|| self.skills.clone());
                }
                let skills = directories.into_iter().map(|cwd| (cwd, self.skills.clone())).collect();
                Ok(Input::Skills(Refreshed { skills, took: Duration::from_millis(2), reason }))
            }
            Query::Resolve { ticket, path, cwd, .. } => {
                let path = cwd.as_ref().map_or_else(|| path.clone(), |cwd| cwd.join(&path));
                let link =
                    path.strip_prefix("/project/notes/link").map(|rest| PathBuf::from("/etc").join(rest));
                Ok(Input::Resolved { ticket, resolved: Resolved { path: Some(link.unwrap_or(path)), cwd } })
            }
            Query::SaveSwitches { session, ticket, cwd, names, on } => {
                let saved =
                    if self.keeps_nothing { Err(HostError("the disk is full".to_owned())) } else { Ok(()) };
                self.kept.push((cwd, names.clone(), on));
                Ok(Input::SwitchesSaved { session, ticket, saved: SavedSwitches { names, on, saved } })
            }
            Query::Trust { session, ticket, skills, trusted, directories, .. } => {
                let done: Vec<_> = skills.iter().map(|it| it.skill.name.clone()).collect();
                let mut now = SkillSet::builder();
                now.extend(&self.skills.filtered(|_| true));
                let mut waiting = Vec::new();
                for it in self.skills.unapproved() {
                    match skills.contains(it) {
                        true if trusted => drop(now.add_shared(it.skill.clone(), Vec::new())),
                        is_meant => {
                            let mut it = it.clone();
                            it.is_refused |= is_meant;
                            waiting.push(it);
                        }
                    }
                }
                let now = now.build();
                let mut rest = SkillSet::builder();
                for skill in now.iter() {
                    rest.add_shared(skill.clone(), Vec::new());
                }
                for it in waiting {
                    rest.add_unapproved(it);
                }
                self.skills = rest.build();
                self.decisions.push((done.clone(), trusted));
                let skills = directories.into_iter().map(|cwd| (cwd, self.skills.clone())).collect();
                let reason = Reason::Changed(Duration::ZERO);
                let refreshed = Refreshed { skills, took: Duration::ZERO, reason };
                let outcome = TrustOutcome { done, ..TrustOutcome::default() };
                Ok(Input::TrustSaved { session, ticket, trusted, outcome, refreshed })
            }
            query @ Query::Fetch { .. } => Err(query),
        }
    }

    fn open(&mut self, session: SessionKey, transport: Transport) -> Endpoint {
        self.opened.push(session);
        match transport {
            Transport::Acp => Endpoint::Acp { server_id: format!("id-{}", session.0) },
            Transport::Http => Endpoint::Http {
                url: format!("http://127.0.0.1:1/{}/mcp", session.0),
                token: format!("token-{}", session.0),
            },
            Transport::Stdio => Endpoint::Stdio {
                command: "/bin/acp-skills-proxy".to_owned(),
                args: vec!["mcp-bridge".to_owned()],
                env: vec![("A".to_owned(), "1".to_owned())],
            },
        }
    }

    /// Does what can be done at once. Returns what the tests look at.
    fn apply(&mut self, effect: Effect, out: &mut Out) {
        match effect {
            Effect::Log(..) | Effect::Opened { .. } | Effect::TurnStarted { .. } | Effect::TurnEnded(_) => {}
            Effect::Record { session, kind } => out.records.push((session, kind)),
            Effect::SaveActiveSkills { id, active } => out.remembered.push((id, active)),
            Effect::SaveAgentConnects { agent, connects } => self.agents.push((agent, connects)),
            Effect::Serve { session, skills, unlocked, .. } => {
                let names =
                    |names: &mut dyn Iterator<Item = &SkillName>| names.map(ToString::to_string).collect();
                let served = names(&mut skills.iter().map(|skill| &skill.name));
                self.served = Some((session, served, names(&mut unlocked.iter())));
            }
            Effect::CloseServer(session) => self.closed.push(session),
            Effect::ReleaseDirectory(cwd) => self.left.push(cwd),
        }
    }
}

/// Everything that one step did, as JSON.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) to_client: Vec<Value>,
    pub(super) to_agent: Vec<Value>,
    /// What is to be done that takes its time.
    pub(super) tasks: Vec<Task>,
    /// What is recorded: the session and the event.
    pub(super) records: Vec<(Option<String>, EventKind)>,
    /// What is remembered.
    pub(super) remembered: Vec<(String, ActiveSkills)>,
}

impl Out {
    /// The only line for the agent.
    pub(super) fn agent(&self) -> &Value {
        assert_eq!(self.to_agent.len(), 1, "{self:?}");
        &self.to_agent[0]
    }

    /// The only line for the client.
    pub(super) fn client(&self) -> &Value {
        assert_eq!(self.to_client.len(), 1, "{self:?}");
        &self.to_client[0]
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.to_client.is_empty() && self.to_agent.is_empty()
    }

    /// Nothing at all is said, done or recorded.
    pub(super) fn is_silence(&self) -> bool {
        self.is_nothing() && self.tasks.is_empty() && self.records.is_empty() && self.remembered.is_empty()
    }

    /// The number of the only text that is asked for.
    pub(super) fn ticket(&self) -> Ticket {
        match &self.tasks[..] {
            [Task::Ask(Query::Fetch { ticket, .. })] => *ticket,
            tasks => panic!("no text is asked for: {tasks:?}"),
        }
    }

    /// The only text that is asked for.
    pub(super) fn wanted(&self) -> &Wanted {
        match &self.tasks[..] {
            [Task::Ask(Query::Fetch { wanted, .. })] => wanted,
            tasks => panic!("no text is asked for: {tasks:?}"),
        }
    }

    fn append(&mut self, mut other: Self) {
        self.to_client.append(&mut other.to_client);
        self.to_agent.append(&mut other.to_agent);
        self.tasks.append(&mut other.tasks);
        self.records.append(&mut other.records);
        self.remembered.append(&mut other.remembered);
    }
}

/// Tells the interceptors of the tests apart.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// An interceptor between a client and an agent that the test plays.
pub(super) struct World {
    interceptor: Interceptor,
    /// The timers that run for the tools, the oldest first.
    timers: Vec<(SessionKey, Timer)>,
    pub(super) outside: Outside,
}

pub(super) fn skills(names: &[&str]) -> SkillSet {
    let skill =
        |name: &&str| Skill::builder(*name, format!("Does {name} <well>.")).body("Do it.").build().unwrap();
    names.iter().map(skill).collect()
}

/// One skill, no waiting, nothing else decided.
pub(super) fn policy() -> Policy {
    Policy { mcp_wait: Duration::ZERO, ..Policy::default() }
}

impl World {
    pub(super) fn new(policy: Policy) -> Self {
        Self::with_skills(policy, skills(&["review"]))
    }

    pub(super) fn with_skills(policy: Policy, skills: SkillSet) -> Self {
        Self {
            interceptor: Interceptor::new(policy, RUNS.fetch_add(1, Ordering::Relaxed)),
            timers: Vec::new(),
            outside: Outside { skills, ..Outside::default() },
        }
    }

    /// A line from the client, as text.
    pub(super) fn client_line(&mut self, line: &str) -> Out {
        let mut actions = Actions::default();
        let pass = self.interceptor.from_client(line.as_bytes(), &mut actions);
        let own = own_line(pass, line, std::mem::take(&mut actions.after));
        let mut out = Self::said(&mut actions);
        out.to_agent.extend(own);
        self.carry_out(actions, out)
    }

    pub(super) fn agent_line(&mut self, line: &str) -> Out {
        let mut actions = Actions::default();
        let pass = self.interceptor.from_agent(line.as_bytes(), &mut actions);
        let own = own_line(pass, line, std::mem::take(&mut actions.after));
        let mut out = Self::said(&mut actions);
        out.to_client.extend(own);
        self.carry_out(actions, out)
    }

    /// The lines of one decision.
    fn said(actions: &mut Actions) -> Out {
        let lines = |lines: &mut Vec<Vec<u8>>| lines.drain(..).map(|line| json_of(&line)).collect();
        Out {
            to_client: lines(&mut actions.to_client),
            to_agent: lines(&mut actions.to_agent),
            ..Out::default()
        }
    }

    /// Does what was decided, and answers what was asked, unless the world is slow.
    fn carry_out(&mut self, actions: Actions, mut out: Out) -> Out {
        assert!(actions.after.is_empty());
        for effect in actions.effects {
            self.outside.apply(effect, &mut out);
        }
        for task in actions.tasks {
            match task {
                Task::Ask(query @ Query::Fetch { .. }) => out.tasks.push(Task::Ask(query)),
                Task::Ask(query) if self.outside.is_slow => self.outside.questions.push_back(query),
                Task::Ask(query) => match self.outside.answer(query) {
                    Ok(input) => out.append(self.handle(input)),
                    Err(query) => out.tasks.push(Task::Ask(query)),
                },
                task => {
                    if let Task::ToolsTimer { session, timer, .. } = task {
                        self.timers.push((session, timer));
                    }
                    out.tasks.push(task);
                }
            }
        }
        out
    }

    /// Ends the oldest timer of a session.
    pub(super) fn timer_ends(&mut self, session: SessionKey) -> Out {
        let index = self.timers.iter().position(|(key, _)| *key == session).expect("a timer");
        let (session, timer) = self.timers.remove(index);
        self.handle(Input::ToolsTimerEnded { session, timer })
    }

    /// The bytes that the agent gets for a line from the client.
    pub(super) fn as_the_agent_gets_it(&mut self, line: &str) -> String {
        let mut actions = Actions::default();
        let mut lines = match self.interceptor.from_client(line.as_bytes(), &mut actions) {
            Pass::Untouched => vec![line.as_bytes().to_vec()],
            Pass::Edited(line) => vec![line],
            Pass::Consumed => Vec::new(),
        };
        for task in std::mem::take(&mut actions.tasks) {
            let Task::Ask(query) = task else { panic!("{task:?}") };
            let input = self.outside.answer(query).expect("an answer");
            self.interceptor.handle(input, &mut actions);
            lines.append(&mut actions.to_agent);
        }
        for effect in actions.effects {
            self.outside.apply(effect, &mut Out::default());
        }
        assert_eq!(lines.len(), 1);
        String::from_utf8(lines.remove(0)).unwrap()
    }

    /// Answers the question that was asked first of those that wait.
    pub(super) fn answer(&mut self) -> Out {
        let query = self.outside.questions.pop_front().expect("a question");
        let input = self.outside.answer(query).expect("an answer");
        self.handle(input)
    }

    pub(super) fn client(&mut self, message: &Value) -> Out {
        self.client_line(&format!("{message}\n"))
    }

    pub(super) fn agent(&mut self, message: &Value) -> Out {
        self.agent_line(&format!("{message}\n"))
    }

    pub(super) fn handle(&mut self, input: Input) -> Out {
        let mut actions = Actions::default();
        self.interceptor.handle(input, &mut actions);
        let after = std::mem::take(&mut actions.after);
        assert!(after.is_empty(), "there is no line that they follow");
        let out = Self::said(&mut actions);
        self.carry_out(actions, out)
    }

    /// There are these skills now, and the library says so.
    pub(super) fn notices(&mut self, skills: SkillSet) -> Out {
        self.outside.skills = skills;
        self.handle(Input::SkillsChanged(Duration::from_millis(2)))
    }

    pub(super) fn request(&mut self, id: u64, method: &str, params: &Value) -> Out {
        self.client(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    pub(super) fn respond(&mut self, id: u64, result: &Value) -> Out {
        self.agent(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    pub(super) fn refuse(&mut self, id: u64, code: i64) -> Out {
        self.agent(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "no" } }))
    }

    /// `initialize` with an agent of these capabilities.
    pub(super) fn initialized(mut self, name: &str, capabilities: &Value) -> Self {
        self.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        let result =
            json!({ "protocolVersion": 1, "agentInfo": { "name": name }, "agentCapabilities": capabilities });
        self.respond(0, &result);
        self
    }

    /// The same for an agent that settles on version 2 of the protocol.
    pub(super) fn initialized_v2(mut self, name: &str, session: &Value) -> Self {
        let info = |name: &str| json!({ "name": name, "version": "1" });
        self.request(0, "initialize", &json!({ "protocolVersion": 2, "info": info("editor") }));
        let result =
            json!({ "protocolVersion": 2, "info": info(name), "capabilities": { "session": session } });
        self.respond(0, &result);
        self
    }

    /// A new session; returns the request as the agent got it.
    pub(super) fn new_session(&mut self, request: u64, id: &str) -> Value {
        let out = self.request(request, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
        self.respond(request, &json!({ "sessionId": id }));
        out.agent().clone()
    }

    /// A prompt with these texts.
    pub(super) fn prompt(&mut self, request: u64, session: &str, texts: &[&str]) -> Out {
        let blocks: Vec<_> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        self.request(request, "session/prompt", &json!({ "sessionId": session, "prompt": blocks }))
    }

    pub(super) fn update(&mut self, session: &str, update: &Value) -> Out {
        let params = json!({ "sessionId": session, "update": update });
        self.agent(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    }

    pub(super) fn gone(&mut self) -> Vec<Value> {
        let lines = self.interceptor.agent_gone("the agent exited with code 3");
        lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// What stands around what is added.
    pub(super) fn mark(&self) -> Mark {
        self.interceptor.ids.mark
    }

    pub(super) fn sessions(&self) -> usize {
        self.interceptor.session_count()
    }
}

fn own_line(pass: Pass, line: &str, after: Vec<Vec<u8>>) -> Vec<Value> {
    let own = match pass {
        Pass::Untouched => Some(line.as_bytes().to_vec()),
        Pass::Edited(line) => Some(line),
        Pass::Consumed => None,
    };
    own.into_iter().chain(after).map(|line| json_of(&line)).collect()
}

fn json_of(line: &[u8]) -> Value {
    assert!(line.ends_with(b"\n"), "no line: {:?}", String::from_utf8_lossy(line));
    serde_json::from_slice(line).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(line).into_owned()))
}

/// A text of ours without its marks.
pub(super) fn unmarked(text: &str) -> &str {
    assert!(begins_with_ours(text), "{text}");
    let inside = text.split_once('\n').unwrap().1.strip_suffix(">\n").unwrap();
    inside.rsplit_once("\n</acp-skills-proxy:").unwrap().0
}

/// The texts of a prompt.
pub(super) fn texts(message: &Value) -> Vec<&str> {
    message["params"]["prompt"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect()
}
