//! The interceptor as a table: lines in, lines out, with a host that answers from memory.

mod call_titles;
mod commands;
mod compaction;
mod drafts;
mod elsewhere;
mod files;
mod hints;
mod host;
mod leftovers;
mod lifecycle;
mod mcp_messages;
mod notices;
mod permission;
mod placement;
mod record;
mod refused;
mod reload;
mod repeats;
mod shown;
mod skill_updates;
mod slow;
mod steering;
mod subagents;
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
use skills_core::{Skill, SkillName, SkillSet, catalog::Guide};

use self::host::Host;
use super::{events::EventKind, *};

/// The effects of one step, as JSON.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) to_client: Vec<Value>,
    pub(super) to_agent: Vec<Value>,
    /// The tasks.
    pub(super) tasks: Vec<Task>,
    /// The recorded events with their sessions.
    pub(super) records: Vec<(Option<String>, EventKind)>,
    /// The saved active skills.
    pub(super) remembered: Vec<(String, ActiveSkills)>,
}

impl Out {
    /// Returns the only line for the agent.
    pub(super) fn agent(&self) -> &Value {
        assert_eq!(self.to_agent.len(), 1, "{self:?}");
        &self.to_agent[0]
    }

    /// Returns the only line for the client.
    pub(super) fn client(&self) -> &Value {
        assert_eq!(self.to_client.len(), 1, "{self:?}");
        &self.to_client[0]
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.to_client.is_empty() && self.to_agent.is_empty()
    }

    /// Returns true if the step had no effect at all.
    pub(super) fn is_silence(&self) -> bool {
        self.is_nothing() && self.tasks.is_empty() && self.records.is_empty() && self.remembered.is_empty()
    }

    /// Returns the ticket of the only query, which asks for a text.
    pub(super) fn ticket(&self) -> Ticket {
        match &self.tasks[..] {
            [Task::Ask(Query::Fetch { ticket, .. })] => *ticket,
            tasks => panic!("no text is asked for: {tasks:?}"),
        }
    }

    /// Returns the text of the only query.
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

/// The number of the next interceptor.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// The secret of all interceptors.
pub(super) const MARKS: MarkKey = MarkKey::new([7; 32]);

/// An interceptor with a host. The test plays the client and the agent.
pub(super) struct Fixture {
    interceptor: Interceptor,
    /// The running timers for the tools, the oldest first.
    timers: Vec<(SessionKey, Timer)>,
    pub(super) host: Host,
}

pub(super) fn skills(names: &[&str]) -> SkillSet {
    let skill =
        |name: &&str| Skill::builder(*name, format!("Does {name} <well>.")).body("Do it.").build().unwrap();
    names.iter().map(skill).collect()
}

/// Returns the default policy without waiting for tools.
pub(super) fn policy() -> Policy {
    Policy { mcp_wait: Duration::ZERO, ..Policy::default() }
}

/// Returns a fixture with an open session `s`.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new(policy()).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    fixture
}

/// Returns a text that was added for the model.
fn ours() -> String {
    Mark::new(7).wrap("<available_skills>…</available_skills>")
}

impl Fixture {
    pub(super) fn new(policy: Policy) -> Self {
        Self::with_skills(policy, skills(&["review"]))
    }

    pub(super) fn with_skills(policy: Policy, skills: SkillSet) -> Self {
        Self {
            interceptor: Interceptor::new(policy, RUNS.fetch_add(1, Ordering::Relaxed), MARKS),
            timers: Vec::new(),
            host: Host { skills, ..Host::default() },
        }
    }

    /// Passes on a line of the client.
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

    /// Returns the lines of one decision.
    fn said(actions: &mut Actions) -> Out {
        let lines = |lines: &mut Vec<Vec<u8>>| lines.drain(..).map(|line| json_of(&line)).collect();
        Out {
            to_client: lines(&mut actions.to_client),
            to_agent: lines(&mut actions.to_agent),
            ..Out::default()
        }
    }

    /// Carries out effects, and answers queries unless the host is slow.
    fn carry_out(&mut self, actions: Actions, mut out: Out) -> Out {
        assert!(actions.after.is_empty());
        for effect in actions.effects {
            self.host.apply(effect, &mut out);
        }
        for task in actions.tasks {
            match task {
                Task::Ask(query @ Query::Fetch { .. }) => out.tasks.push(Task::Ask(query)),
                Task::Ask(query) if self.host.is_slow => self.host.questions.push_back(query),
                Task::Ask(query) => match self.host.answer(query) {
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

    /// Returns the bytes that the agent gets for a line of the client.
    pub(super) fn as_the_agent_gets_it(&mut self, line: &str) -> String {
        let mut actions = Actions::default();
        let mut lines = match self.interceptor.from_client(line.as_bytes(), &mut actions) {
            Pass::Untouched => vec![line.as_bytes().to_vec()],
            Pass::Edited(line) => vec![line],
            Pass::Consumed => Vec::new(),
        };
        for task in std::mem::take(&mut actions.tasks) {
            let Task::Ask(query) = task else { panic!("{task:?}") };
            let input = self.host.answer(query).expect("an answer");
            self.interceptor.handle(input, &mut actions);
            lines.append(&mut actions.to_agent);
        }
        for effect in actions.effects {
            self.host.apply(effect, &mut Out::default());
        }
        assert_eq!(lines.len(), 1);
        String::from_utf8(lines.remove(0)).unwrap()
    }

    /// Answers the oldest query that was kept.
    pub(super) fn answer(&mut self) -> Out {
        let query = self.host.questions.pop_front().expect("a question");
        let input = self.host.answer(query).expect("an answer");
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

    /// Sets the skills, and reports the change.
    pub(super) fn notices(&mut self, skills: SkillSet) -> Out {
        self.host.skills = skills;
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

    /// Sends `initialize`, and answers for an agent with these capabilities.
    pub(super) fn initialized(mut self, name: &str, capabilities: &Value) -> Self {
        self.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        let result =
            json!({ "protocolVersion": 1, "agentInfo": { "name": name }, "agentCapabilities": capabilities });
        self.respond(0, &result);
        self
    }

    /// Sends `initialize`, and answers for an agent with version 2 of the protocol.
    pub(super) fn initialized_v2(mut self, name: &str, session: &Value) -> Self {
        let info = |name: &str| json!({ "name": name, "version": "1" });
        self.request(0, "initialize", &json!({ "protocolVersion": 2, "info": info("editor") }));
        let result =
            json!({ "protocolVersion": 2, "info": info(name), "capabilities": { "session": session } });
        self.respond(0, &result);
        self
    }

    /// Opens a new session, and returns the request that the agent got.
    pub(super) fn new_session(&mut self, request: u64, id: &str) -> Value {
        let out = self.request(request, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
        self.respond(request, &json!({ "sessionId": id }));
        out.agent().clone()
    }

    /// Sends a prompt with these texts.
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

    pub(super) fn sessions(&self) -> usize {
        self.interceptor.sessions.iter().count()
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

/// Returns a text of ours without its marks.
pub(super) fn unmarked(text: &str) -> &str {
    assert!(begins_with_ours(text), "{text}");
    let inside = text.split_once('\n').unwrap().1.strip_suffix(">\n").unwrap();
    inside.rsplit_once("\n</acp-skills-proxy:").unwrap().0
}

/// Returns the texts of a prompt.
pub(super) fn texts(message: &Value) -> Vec<&str> {
    message["params"]["prompt"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect()
}
