//! A proxy without a world around it: the interceptor, and a host that answers from memory.

use std::{
    mem,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use acp_skills_intercept::{
    Actions, CatalogIn, Endpoint, Event, Host, Interceptor, McpMode, Pass, Policy, Transport,
    session::SessionKey,
};
use skills_core::{Skill, SkillName, SkillSet, Source, Stored};

use super::recording::Side;

/// The policy of one case.
pub(super) fn policy(mcp: McpMode, catalog_in: CatalogIn) -> Policy {
    Policy { mcp, catalog_in, ..Policy::default() }
}

/// What the two sides get when one of them says a line.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) to_client: Vec<String>,
    pub(super) to_agent: Vec<String>,
}

/// A proxy that runs.
pub(super) struct Proxy {
    interceptor: Interceptor,
    opened: Arc<Mutex<Vec<SessionKey>>>,
}

impl Proxy {
    /// A proxy that has begun, with a skill of this name.
    pub(super) fn new(policy: &Policy, skill: &str) -> Self {
        // Stored, so that it can be used without our server, too; nothing reads it here.
        let stored = Stored::new(Path::new("/skills").join(skill), "SKILL.md");
        let skill = Skill::new(SkillName::new(skill).unwrap(), "Does <things>.", Source::Stored(stored));
        let opened = Arc::<Mutex<Vec<SessionKey>>>::default();
        let world = World { skills: [skill].into_iter().collect(), opened: Arc::clone(&opened) };
        Self { interceptor: Interceptor::new(policy.clone(), Box::new(world)), opened }
    }

    /// Passes on a line of `side`.
    pub(super) fn play(&mut self, side: Side, line: &str) -> Seen {
        let line = format!("{line}\n");
        let mut actions = Actions::default();
        let pass = match side {
            Side::Client => self.interceptor.from_client(line.as_bytes(), &mut actions),
            Side::Agent => self.interceptor.from_agent(line.as_bytes(), &mut actions),
        };
        let own = match pass {
            Pass::Untouched => Some(line.into_bytes()),
            Pass::Edited(line) => Some(line),
            Pass::Consumed => None,
        };
        let way = match side {
            Side::Client => &mut actions.to_agent,
            Side::Agent => &mut actions.to_client,
        };
        way.extend(own);
        way.append(&mut actions.after);
        // The agent connects at once, so that no prompt waits.
        for session in mem::take(&mut *self.opened.lock().unwrap()) {
            self.interceptor.happened(Event::Listed(session), &mut actions);
        }
        Seen { to_client: texts(actions.to_client), to_agent: texts(actions.to_agent) }
    }
}

fn texts(lines: Vec<Vec<u8>>) -> Vec<String> {
    let text = |line| String::from_utf8(line).unwrap().strip_suffix('\n').expect("a line").to_owned();
    lines.into_iter().map(text).collect()
}

struct World {
    skills: SkillSet,
    opened: Arc<Mutex<Vec<SessionKey>>>,
}

impl Host for World {
    fn skills(&mut self, _cwd: Option<&Path>) -> SkillSet {
        self.skills.clone()
    }

    fn open(
        &mut self,
        session: SessionKey,
        transport: Transport,
        _skills: &SkillSet,
        _cwd: Option<&Path>,
    ) -> Result<Endpoint, String> {
        self.opened.lock().unwrap().push(session);
        Ok(match transport {
            Transport::Acp => Endpoint::Acp { server_id: "server".to_owned() },
            Transport::Http => Endpoint::Http {
                url: format!("http://127.0.0.1:1/{}/mcp", session.0),
                token: "secret".to_owned(),
            },
            Transport::Stdio => Endpoint::Stdio {
                command: "/bin/acp-skills-proxy".to_owned(),
                args: vec!["mcp-bridge".to_owned()],
                env: vec![("SESSION".to_owned(), session.0.to_string())],
            },
        })
    }

    fn serve(&mut self, _: SessionKey, _: &SkillSet, _: &[SkillName], _: Option<&Path>) {}

    fn reload(&mut self) -> Duration {
        Duration::ZERO
    }

    fn close(&mut self, _session: SessionKey) {}
}
