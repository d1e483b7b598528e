//! [`ClientServers`]: the MCP servers that the client passes to sessions, as skills.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use acp_skills_intercept::{ClientServer, SessionKey};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use skills_core::{
    BuildError, Catalog, CatalogOptions, Diagnostic, Scope, Skill, SkillSet,
    set::{REFUSED_BY_POLICY, Skipped},
    text::{sanitize, shorten, shown},
    tool::{ToolError, ToolProvider},
};
use skills_sources::{
    disk::state::{self, StateDir},
    policy::{Policy, PolicyError},
};
use tokio::runtime::Handle;

use super::{
    ServerProvider, ToolServer,
    client_entry::described,
    skills::{Server, SkillServers},
};
use crate::processes::Processes;

/// The maximum number of configurations that are kept in memory.
const MAX_KNOWN: usize = 256;
/// The maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 360;
const VERSION: u32 = 3;
/// The code of the diagnostic about a server that can't be used on demand.
const NOT_ON_DEMAND: &str = "source-not-on-demand";

/// The client's servers as skills. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub struct ClientServers {
    processes: Processes,
    /// The directory with the descriptions of servers.
    store: Option<PathBuf>,
    /// Guards the providers and descriptions, by the JSON of the entry. No other lock is taken while it is held.
    known: Arc<Mutex<HashMap<Vec<u8>, Known>>>,
    /// The servers that are asked for skills.
    offering: SkillServers,
    /// Guards the servers of open sessions. No other lock is taken while it is held.
    sessions: Arc<Mutex<HashMap<SessionKey, OfSession>>>,
    /// The policy of this machine. If it can't be used, no server is used either.
    policy: Arc<Result<Option<Policy>, PolicyError>>,
}

#[derive(Clone)]
struct Known {
    provider: ServerProvider,
    description: Option<String>,
}

/// The servers of one session.
#[derive(Clone)]
struct OfSession {
    /// The skills that stand for servers.
    on_demand: SkillSet,
    offering: Vec<Arc<Server>>,
    /// The skills that the interceptor got last.
    skills: SkillSet,
}

/// The contents of a file in the store.
#[derive(Serialize, Deserialize)]
struct DescriptionFile {
    v: u32,
    description: String,
    /// The estimated number of tokens of the tools.
    tokens: u64,
}

/// The estimated numbers of tokens that a server of a client takes in the first request of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCost {
    /// The number of tools.
    pub tools: usize,
    /// The tokens of its tools, if the agent gets them.
    pub direct: u64,
    /// The tokens of its entry in the catalog, if it is used on demand.
    pub on_demand: u64,
}

impl ClientServers {
    /// Creates the servers. `store` is the directory for their descriptions, and `offering` are the servers that are asked for skills.
    pub fn new(processes: Processes, store: Option<&Path>, offering: SkillServers) -> Self {
        let policy = Arc::new(Policy::load());
        let store = store.map(|dir| dir.join("servers"));
        Self { processes, store, known: Arc::default(), offering, sessions: Arc::default(), policy }
    }

    /// Returns the skills for the servers of a session, and the skills that these servers offer. Reads files.
    pub fn open(&self, session: SessionKey, servers: &[ClientServer], cwd: Option<&Path>) -> SkillSet {
        if servers.is_empty() {
            self.close(session);
            return SkillSet::default();
        }
        let mut refused = Vec::new();
        let offering = self.offering.of_client(servers, cwd, &mut refused);
        let mut on_demand = SkillSet::builder();
        on_demand.extend(&self.skills(servers, cwd));
        for refused in refused {
            on_demand.skip(refused);
        }
        let on_demand = on_demand.build();
        let mut opened = OfSession { on_demand, offering, skills: SkillSet::default() };
        opened.skills = self.skills_of(&opened);
        let skills = opened.skills.clone();
        let before = self.sessions.lock().insert(session, opened);
        // This can end servers.
        drop(before);
        skills
    }

    /// Starts a server, and measures what it takes with and without `--mcp-on-demand`.
    ///
    /// # Errors
    /// Returns an error if the policy refuses the server, if it does not start, or if it does not list its tools.
    pub async fn cost(&self, server: ToolServer, cwd: Option<&Path>) -> Result<ServerCost, ToolError> {
        if let Some(refused) = self.refused(&server) {
            let first = refused.diagnostics.into_iter().next();
            return Err(first.map(|finding| finding.message).unwrap_or_default().into());
        }
        let name = server.skill.clone();
        let described = ServerProvider::new(server, self.processes.clone()).describe(cwd).await?;
        let skill = skill(&name, Some(&shortened(&described.text)))?;
        let on_demand = Catalog::entry_tokens(&skill, &CatalogOptions::default()) as u64;
        Ok(ServerCost { tools: described.tools, direct: described.tokens, on_demand })
    }

    /// Forgets the servers of a session.
    pub fn close(&self, session: SessionKey) {
        let closed = self.sessions.lock().remove(&session);
        drop(closed);
    }

    /// Returns the current skills of all sessions with servers. A set without a change is the same snapshot as before. Reads files.
    pub fn current(&self) -> Vec<(SessionKey, SkillSet)> {
        let sessions = self.sessions.lock().clone();
        let mut current = Vec::new();
        for (key, opened) in sessions {
            let skills = self.skills_of(&opened);
            let skills = if opened.skills.is_alike(&skills) { opened.skills } else { skills };
            if let Some(known) = self.sessions.lock().get_mut(&key) {
                known.skills = skills.clone();
            }
            current.push((key, skills));
        }
        current
    }

    fn skills_of(&self, session: &OfSession) -> SkillSet {
        session.on_demand.with(&self.offering.offered(&session.offering))
    }

    /// Opens the directory with the descriptions of servers.
    fn store(&self) -> Option<StateDir> {
        let opened = StateDir::open(self.store.clone()?);
        opened.inspect_err(|error| tracing::warn!("cannot keep descriptions of MCP servers: {error}")).ok()
    }

    /// Returns skills for servers of the client. Servers with an unknown transport are left out. A server that was not seen before is
    /// described in the background, for later sessions. Reads files.
    fn skills(&self, servers: &[ClientServer], cwd: Option<&Path>) -> SkillSet {
        let mut skills = SkillSet::builder();
        let mut add = |server: &ClientServer| {
            let (description, digest) = described(server)?;
            if let Some(refused) = self.refused(&description) {
                skills.skip(refused);
                return None;
            }
            let known = self.known(server, description, &digest, cwd);
            let mut skill = skill(&server.name, known.description.as_deref()).ok()?;
            skill.provider = Some(Arc::new(known.provider) as Arc<dyn ToolProvider>);
            skills.add(skill, Vec::new()).then_some(())
        };
        let on_demand = || servers.iter().filter(|server| server.on_demand);
        for server in on_demand() {
            // A server that can't be described is left out.
            let _ = add(server);
        }
        for server in on_demand().filter(|server| described(server).is_none()) {
            let name = shown(&server.name);
            let why = format!(
                "the agent always gets the MCP server {name}, because it is neither a program nor reached over streamable HTTP"
            );
            skills.skip(Skipped::new(&server.name, vec![Diagnostic::warning(NOT_ON_DEMAND, why)]));
        }
        skills.build()
    }

    /// Returns the record of a server that the policy refuses.
    fn refused(&self, server: &ToolServer) -> Option<Skipped> {
        let policy = match &*self.policy {
            Ok(policy) => policy.as_ref()?,
            Err(error) => {
                let finding = Diagnostic::error(REFUSED_BY_POLICY, error.to_string()).help(error.hint());
                return Some(Skipped::new(&server.skill, vec![finding]));
            }
        };
        let (address, variables) = server.for_policy();
        Some(policy.server(&server.skill, &address, variables).err()?.skipped(&server.skill))
    }

    fn known(
        &self,
        server: &ClientServer,
        description: ToolServer,
        digest: &str,
        cwd: Option<&Path>,
    ) -> Known {
        if let Some(known) = self.known.lock().get(&server.entry) {
            return known.clone();
        }
        let provider = ServerProvider::new(description, self.processes.clone());
        let read = |store: &StateDir| state::read::<DescriptionFile>(&store.about(digest.as_bytes())).ok()?;
        let store = self.store();
        let file = store.as_ref().and_then(read).filter(|file| file.v == VERSION);
        provider.set_tokens(file.as_ref().map_or(0, |file| file.tokens));
        let known = Known { provider, description: file.map(|file| file.description) };
        if known.description.is_none() {
            self.describe(server.entry.clone(), digest.to_owned(), known.provider.clone(), cwd);
        }
        let mut all = self.known.lock();
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.entry(server.entry.clone()).or_insert(known).clone()
    }

    /// Asks a server for its description in the background.
    fn describe(&self, entry: Vec<u8>, digest: String, provider: ServerProvider, cwd: Option<&Path>) {
        let Ok(runtime) = Handle::try_current() else { return };
        let servers = self.clone();
        let cwd = cwd.map(Path::to_owned);
        runtime.spawn(async move {
            let Ok(described) = provider.describe(cwd.as_deref()).await else { return };
            let description = shortened(&described.text);
            if let Some(store) = servers.store() {
                let tokens = described.tokens;
                let file = DescriptionFile { v: VERSION, description: description.clone(), tokens };
                if let Err(error) = state::write(&store.about(digest.as_bytes()), Some(&file)) {
                    tracing::warn!("cannot keep the description of an MCP server: {error}");
                }
            }
            if let Some(known) = servers.known.lock().get_mut(&entry) {
                known.description = Some(description);
            }
        });
    }
}

/// Returns the skill that stands for a server, without its provider.
fn skill(server: &str, about: Option<&str>) -> Result<Skill, BuildError> {
    let name = shown(server);
    let description = match about {
        Some(about) => format!("Tools of the MCP server {name}. {about}"),
        None => format!("Tools of the MCP server {name}."),
    };
    let mut skill = Skill::builder(server, description).body("Use the tools of this skill.").build()?;
    skill.scope = Scope::Session;
    Ok(skill)
}

/// Returns the description of a server, as it is kept.
fn shortened(text: &str) -> String {
    shorten(&sanitize(text), MAX_DESCRIPTION).into_owned()
}
