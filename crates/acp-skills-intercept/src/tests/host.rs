//! [`Host`]: answers the interceptor's queries from memory.

use super::*;

/// A host that answers from memory.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(super) skills: SkillSet,
    /// True if queries are kept until [`Fixture::answer`].
    pub(super) is_slow: bool,
    pub(super) questions: VecDeque<Query>,
    pub(super) opened: Vec<SessionKey>,
    pub(super) closed: Vec<SessionKey>,
    /// The last [`Effect::Serve`]: the session, the skills, and those that the user activated.
    pub(super) served: Option<(SessionKey, Vec<String>, Vec<String>)>,
    /// The skills that a reload finds.
    pub(super) after_reload: Option<SkillSet>,
    /// The saved active skills of any session.
    pub(super) recalled: ActiveSkills,
    /// The skills that are off in any directory, the switches that were saved, and whether saving a decision fails.
    pub(super) off: Vec<SkillName>,
    pub(super) kept: Vec<(PathBuf, Vec<SkillName>, bool)>,
    pub(super) keeps_nothing: bool,
    /// The saved facts about agents, and the fact that is loaded for any agent.
    pub(super) agents: Vec<(String, bool)>,
    pub(super) never_connects: bool,
    /// The decisions about unapproved skills.
    pub(super) decisions: Vec<(Vec<SkillName>, bool)>,
    /// The skills that the results of the skill tools remind of, after each change.
    pub(super) reminders: Vec<(SessionKey, Vec<String>)>,
    /// The sessions in which a turn runs.
    pub(super) turns: Vec<SessionKey>,
    /// The number of answers to questions of MCP servers behind skills, and the last answer.
    pub(super) answered: usize,
    pub(super) user_answer: Option<UserAnswer>,
    /// The directories that were released.
    pub(super) left: Vec<Workspace>,
}

impl Host {
    fn saved(&self) -> Result<(), HostError> {
        if self.keeps_nothing { Err(HostError("the disk is full".to_owned())) } else { Ok(()) }
    }

    /// Answers a query. Returns the query if it asks for a text, because the tests answer these themselves.
    #[expect(clippy::result_large_err, reason = "a question that has no answer is returned as it is")]
    pub(super) fn answer(&mut self, query: Query) -> Result<Input, Query> {
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
                        real: needs.workspace.clone(),
                        workspace: needs.workspace,
                        skills,
                        servers: SkillSet::default(),
                        off: self.off.clone(),
                        active,
                        endpoint,
                        never_connects: self.never_connects,
                    },
                })
            }
            Query::Skills { workspaces, reason } => {
                if matches!(reason, Reason::Reload(..) | Reason::Listing(..)) {
                    self.skills = self.after_reload.take().unwrap_or_else(|| self.skills.clone());
                }
                let skills =
                    workspaces.into_iter().map(|workspace| (workspace, self.skills.clone())).collect();
                Ok(Input::Skills(Refreshed {
                    skills,
                    servers: Vec::new(),
                    took: Duration::from_millis(2),
                    reason,
                }))
            }
            Query::Resolve { ticket, path, workspace, .. } => {
                let path = workspace.cwd.as_ref().map_or_else(|| path.clone(), |cwd| cwd.join(&path));
                let link =
                    path.strip_prefix("/project/notes/link").map(|rest| PathBuf::from("/etc").join(rest));
                Ok(Input::Resolved {
                    ticket,
                    resolved: Resolved { path: Some(link.unwrap_or(path)), workspace },
                })
            }
            Query::SaveSwitches { session, ticket, cwd, names, on } => {
                let saved = self.saved();
                self.kept.push((cwd, names.clone(), on));
                Ok(Input::SwitchesSaved { session, ticket, saved: SavedSwitches { names, on, saved } })
            }
            Query::Trust { session, ticket, skills, trusted, workspaces, .. } => {
                let done: Vec<_> = skills.iter().map(|entry| entry.skill.name.clone()).collect();
                let mut now = SkillSet::builder();
                now.extend(&self.skills.filtered(|_| true));
                let mut waiting = Vec::new();
                for skill in self.skills.unapproved() {
                    match skills.contains(skill) {
                        true if trusted => {
                            let _ = now.add_shared(skill.skill.clone(), Vec::new());
                        }
                        is_meant => {
                            let mut skill = skill.clone();
                            skill.is_refused |= is_meant;
                            waiting.push(skill);
                        }
                    }
                }
                let now = now.build();
                let mut rest = SkillSet::builder();
                for skill in now.iter() {
                    rest.add_shared(skill.clone(), Vec::new());
                }
                for skill in waiting {
                    rest.add_unapproved(skill);
                }
                self.skills = rest.build();
                self.decisions.push((done.clone(), trusted));
                let skills =
                    workspaces.into_iter().map(|workspace| (workspace, self.skills.clone())).collect();
                let reason = Reason::Changed(Duration::ZERO);
                let refreshed = Refreshed { skills, servers: Vec::new(), took: Duration::ZERO, reason };
                let saved = self.saved();
                let outcome = TrustOutcome { done, saved, ..TrustOutcome::default() };
                Ok(Input::TrustSaved { session, ticket, trusted, outcome, refreshed })
            }
            Query::Untrust { session, ticket, names, .. } => {
                let done = names;
                let refreshed = Refreshed::nothing(Reason::Changed(Duration::ZERO));
                let outcome = TrustOutcome { done, ..TrustOutcome::default() };
                Ok(Input::TrustSaved { session, ticket, trusted: false, outcome, refreshed })
            }
            query @ Query::Fetch { .. } => Err(query),
        }
    }

    pub(super) fn open(&mut self, session: SessionKey, transport: Transport) -> Endpoint {
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

    /// Carries out an effect, or adds it to `out`.
    pub(super) fn apply(&mut self, effect: Effect, out: &mut Out) {
        match effect {
            Effect::Log(..) | Effect::Opened { .. } | Effect::TurnCancelled(_) => {}
            Effect::AnswerServer { answer, .. } => {
                self.answered += 1;
                self.user_answer = Some(answer);
            }
            Effect::TurnStarted { session, .. } => self.turns.push(session),
            Effect::TurnEnded(session) => self.turns.retain(|other| *other != session),
            Effect::Record { session, kind } => out.records.push((session, kind)),
            Effect::SaveActiveSkills { id, active } => out.remembered.push((id, active)),
            Effect::Remind { session, skills } => {
                let skills = skills.iter().map(ToString::to_string).collect();
                self.reminders.push((session, skills));
            }
            Effect::SaveAgentConnects { agent, connects } => self.agents.push((agent, connects)),
            Effect::Serve { session, skills, unlocked, .. } => {
                let names =
                    |names: &mut dyn Iterator<Item = &SkillName>| names.map(ToString::to_string).collect();
                let served = names(&mut skills.iter().map(|skill| &skill.name));
                self.served = Some((session, served, names(&mut unlocked.iter())));
            }
            Effect::CloseServer(session) => self.closed.push(session),
            Effect::ReleaseWorkspace(workspace) => self.left.push(workspace),
        }
    }
}
