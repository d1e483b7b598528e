//! The interceptor as a table: lines in, lines out, with a host that answers from memory.

mod commands;
mod lifecycle;
mod permission;
mod placement;
mod record;
mod reload;
mod version;
mod waiting;

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use skills_core::{Skill, SkillName, SkillSet};

use super::*;
use crate::{events::EventKind, session::Active};

/// What the host was asked for.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) opened: Vec<SessionKey>,
    pub(super) closed: Vec<SessionKey>,
    /// What was served last: whose, which skills, and which of them the user activated.
    pub(super) served: Option<(SessionKey, Vec<String>, Vec<String>)>,
    /// What is found after a reload.
    pub(super) after_reload: Option<SkillSet>,
    /// What there is from now on, without anybody asking.
    pub(super) noticed: Option<SkillSet>,
    /// Directories in which nobody works any more.
    pub(super) left: Vec<String>,
}

struct FakeHost {
    skills: SkillSet,
    log: Arc<Mutex<Log>>,
}

impl Host for FakeHost {
    fn skills(&mut self, _cwd: Option<&Path>) -> SkillSet {
        if let Some(skills) = self.log.lock().unwrap().noticed.take() {
            self.skills = skills;
        }
        self.skills.clone()
    }

    fn open(
        &mut self,
        session: SessionKey,
        transport: Transport,
        _skills: &SkillSet,
        _cwd: Option<&Path>,
    ) -> Result<Endpoint, String> {
        self.log.lock().unwrap().opened.push(session);
        Ok(match transport {
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
        })
    }

    fn serve(&mut self, session: SessionKey, skills: &SkillSet, unlocked: &[SkillName], _cwd: Option<&Path>) {
        let names = |names: &mut dyn Iterator<Item = &SkillName>| names.map(ToString::to_string).collect();
        let served =
            (session, names(&mut skills.iter().map(|skill| &skill.name)), names(&mut unlocked.iter()));
        self.log.lock().unwrap().served = Some(served);
    }

    fn reload(&mut self) -> Duration {
        if let Some(skills) = self.log.lock().unwrap().after_reload.take() {
            self.skills = skills;
        }
        Duration::from_millis(2)
    }

    fn close(&mut self, session: SessionKey) {
        self.log.lock().unwrap().closed.push(session);
    }

    fn leave(&mut self, cwd: &Path) {
        self.log.lock().unwrap().left.push(cwd.display().to_string());
    }
}

/// Everything that one step did, as JSON.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Out {
    pub(super) to_client: Vec<Value>,
    pub(super) to_agent: Vec<Value>,
    /// All others.
    pub(super) effects: Vec<Effect>,
    /// What is recorded: the session and the event.
    pub(super) records: Vec<(Option<String>, EventKind)>,
    /// What is remembered.
    pub(super) remembered: Vec<(String, Active)>,
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
}

/// An interceptor between a client and an agent that the test plays.
pub(super) struct World {
    interceptor: Interceptor,
    pub(super) log: Arc<Mutex<Log>>,
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
        let log = Arc::<Mutex<Log>>::default();
        let host = FakeHost { skills, log: Arc::clone(&log) };
        Self { interceptor: Interceptor::new(policy, Box::new(host)), log }
    }

    /// A line from the client, as text.
    pub(super) fn client_line(&mut self, line: &str) -> Out {
        let mut actions = Actions::default();
        let pass = self.interceptor.from_client(line.as_bytes(), &mut actions);
        let own = own_line(pass, line, std::mem::take(&mut actions.after));
        let mut out = out(actions);
        out.to_agent.extend(own);
        out
    }

    pub(super) fn agent_line(&mut self, line: &str) -> Out {
        let mut actions = Actions::default();
        let pass = self.interceptor.from_agent(line.as_bytes(), &mut actions);
        let own = own_line(pass, line, std::mem::take(&mut actions.after));
        let mut out = out(actions);
        out.to_client.extend(own);
        out
    }

    pub(super) fn client(&mut self, message: &Value) -> Out {
        self.client_line(&format!("{message}\n"))
    }

    pub(super) fn agent(&mut self, message: &Value) -> Out {
        self.agent_line(&format!("{message}\n"))
    }

    pub(super) fn happened(&mut self, event: Event) -> Out {
        let mut actions = Actions::default();
        self.interceptor.happened(event, &mut actions);
        out(actions)
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

fn out(actions: Actions) -> Out {
    assert!(actions.after.is_empty());
    let mut out = Out {
        to_client: actions.to_client.iter().map(|line| json_of(line)).collect(),
        to_agent: actions.to_agent.iter().map(|line| json_of(line)).collect(),
        ..Out::default()
    };
    for effect in actions.effects {
        match effect {
            Effect::Log(..) => {}
            Effect::Record { session, what } => out.records.push((session, what)),
            Effect::Remember { id, active } => out.remembered.push((id, active)),
            effect => out.effects.push(effect),
        }
    }
    out
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
