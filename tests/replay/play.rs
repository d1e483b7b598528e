//! A proxy without I/O: the interceptor, and a host that answers its queries from memory.

use std::path::Path;

use acp_skills_intercept::{
    Actions, ActivatedBy, ActiveSkill, ActiveSkills, CatalogIn, Endpoint, Fetched, Input, Interceptor,
    MarkKey, McpMode, Pass, Policy, Provisions, Query, Refreshed, Resolved, SessionKey, Task, Transport,
    Wanted,
};
use skills_core::{Skill, SkillName, SkillSet, Source, Stored};

use super::recording::Side;

/// The number of the run.
const RUN: u64 = 1;
/// The secret of the marks.
const MARKS: MarkKey = MarkKey::new([1; 32]);

/// Returns a policy with these two settings and the defaults of all others.
pub(super) fn policy(mcp: McpMode, catalog_in: CatalogIn) -> Policy {
    Policy { mcp, catalog_in, ..Policy::default() }
}

/// The lines that both sides receive after one of them has sent a line.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) to_client: Vec<String>,
    pub(super) to_agent: Vec<String>,
}

/// A running proxy.
pub(super) struct Proxy {
    interceptor: Interceptor,
    skills: SkillSet,
    /// The active skills of each session.
    active: ActiveSkills,
    /// The number of prompts that restored instructions.
    pub(super) restorations: usize,
}

impl Proxy {
    /// Creates a proxy with one skill of this name.
    pub(super) fn new(policy: &Policy, skill: &str) -> Self {
        // We use a stored skill here, because it can be used without our server. The file doesn't need to exist, because we
        // never read it.
        let stored = Stored::new(Path::new("/skills").join(skill), "SKILL.md");
        let skill = Skill::new(SkillName::new(skill).unwrap(), "Does <things>.", Source::Stored(stored));
        let interceptor = Interceptor::new(policy.clone(), RUN, MARKS);
        let active = ActiveSkills::new();
        Self { interceptor, skills: [skill].into_iter().collect(), active, restorations: 0 }
    }

    /// Makes all skills active in new sessions.
    pub(super) fn with_active_skills(mut self) -> Self {
        self.active = self
            .skills
            .iter()
            .map(|skill| ActiveSkill::new(skill.name.clone(), ActivatedBy::Model))
            .collect();
        self
    }

    /// Handles a line from `side` and returns the lines that both sides receive.
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
        let forwarded = match side {
            Side::Client => &mut actions.to_agent,
            Side::Agent => &mut actions.to_client,
        };
        forwarded.extend(own);
        forwarded.append(&mut actions.after);
        while !actions.tasks.is_empty() {
            for task in std::mem::take(&mut actions.tasks) {
                if let Task::Ask(query) = task {
                    self.answer(query, &mut actions);
                }
            }
        }
        Seen { to_client: texts(actions.to_client), to_agent: texts(actions.to_agent) }
    }

    /// Answers a query immediately. The agent connects to our server immediately as well, so no prompt waits.
    fn answer(&mut self, query: Query, actions: &mut Actions) {
        match query {
            Query::SetUp { session, ticket, needs } => {
                let endpoint = needs.transport.map(|transport| Ok(endpoint(session, transport)));
                let has_server = endpoint.is_some();
                let skills = self.skills.clone();
                let active = self.active.clone();
                let provisions = Provisions { skills, active, endpoint, ..Provisions::default() };
                self.interceptor.handle(Input::SetUp { session, ticket, provisions }, actions);
                if has_server {
                    self.interceptor.handle(Input::ToolsListed(session), actions);
                }
            }
            Query::Skills { workspaces, reason } => {
                let skills =
                    workspaces.into_iter().map(|workspace| (workspace, self.skills.clone())).collect();
                let refreshed =
                    Refreshed { skills, servers: Vec::new(), took: std::time::Duration::ZERO, reason };
                self.interceptor.handle(Input::Skills(refreshed), actions);
            }
            Query::Resolve { ticket, path, workspace, .. } => {
                self.interceptor.handle(
                    Input::Resolved { ticket, resolved: Resolved { path: Some(path), workspace } },
                    actions,
                );
            }
            Query::Fetch { session, ticket, wanted } => {
                self.restorations += usize::from(matches!(wanted, Wanted::Active { .. }));
                let text = "<skill_content name=\"demo\">\nDo it.\n</skill_content>".to_owned();
                let fetched = Fetched { text: Some(text), ..Fetched::default() };
                self.interceptor.handle(Input::Fetched { session, ticket, fetched }, actions);
            }
            query @ (Query::SaveSwitches { .. } | Query::Trust { .. } | Query::Untrust { .. }) => {
                panic!("unexpected query: {query:?}")
            }
        }
    }
}

fn texts(lines: Vec<Vec<u8>>) -> Vec<String> {
    let text = |line| String::from_utf8(line).unwrap().strip_suffix('\n').expect("a line").to_owned();
    lines.into_iter().map(text).collect()
}

fn endpoint(session: SessionKey, transport: Transport) -> Endpoint {
    match transport {
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
    }
}
