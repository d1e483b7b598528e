//! [`ClientServers`]: the MCP servers that the client passes to sessions, as skills.

use std::{
    collections::HashMap,
    fmt::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use acp_skills_intercept::ClientServer;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skills_core::{
    Diagnostic, Scope, Skill, SkillSet,
    set::{REFUSED_BY_POLICY, Skipped},
    text::{sanitize, shown},
    tool::ToolProvider,
};
use skills_sources::{
    disk::state::{self, StateDir},
    policy::{Policy, PolicyError, Server},
};
use tokio::runtime::Handle;

use super::{Address, ServerProvider, ToolServer};
use crate::processes::Processes;

/// The maximum number of configurations that are kept in memory.
const MAX_KNOWN: usize = 256;
/// The maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 500;
const VERSION: u32 = 2;

/// The client's servers as skills. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub(crate) struct ClientServers {
    processes: Processes,
    /// The directory with the descriptions of servers.
    store: Option<PathBuf>,
    /// Guards the providers and descriptions, by the JSON of the entry. No other lock is taken while it is held.
    known: Arc<Mutex<HashMap<Vec<u8>, Known>>>,
    /// The policy of this machine. If it can't be used, no server is used either.
    policy: Arc<Result<Option<Policy>, PolicyError>>,
}

#[derive(Clone)]
struct Known {
    provider: ServerProvider,
    description: Option<String>,
}

/// The contents of a file in the store.
#[derive(Serialize, Deserialize)]
struct DescriptionFile {
    v: u32,
    description: String,
}

impl ClientServers {
    /// Creates the servers. `store` is the directory for their descriptions.
    pub(crate) fn new(processes: Processes, store: Option<&Path>) -> Self {
        let policy = Arc::new(Policy::load());
        Self { processes, store: store.map(|dir| dir.join("servers")), known: Arc::default(), policy }
    }

    /// Opens the directory with the descriptions of servers.
    fn store(&self) -> Option<StateDir> {
        let opened = StateDir::open(self.store.clone()?);
        opened.inspect_err(|error| tracing::warn!("cannot keep descriptions of MCP servers: {error}")).ok()
    }

    /// Returns skills for servers of the client. Servers with an unknown transport are left out. A server that was not seen before is
    /// described in the background, for later sessions. Reads files.
    pub(crate) fn skills(&self, servers: &[ClientServer], cwd: Option<&Path>) -> SkillSet {
        let mut skills = SkillSet::builder();
        let mut add = |server: &ClientServer| {
            let (description, digest) = described(server)?;
            if let Some(refused) = self.refused(&description) {
                skills.skip(refused);
                return None;
            }
            let known = self.known(server, description, &digest, cwd);
            let name = shown(&server.name);
            let description = match &known.description {
                Some(description) => format!("Tools of the MCP server {name}. {description}"),
                None => format!("Tools of the MCP server {name}."),
            };
            let body = "Use the tools of this skill.";
            let mut skill = Skill::builder(&server.name, description).body(body).build().ok()?;
            skill.scope = Scope::Session;
            skill.provider = Some(Arc::new(known.provider) as Arc<dyn ToolProvider>);
            skills.add(skill, Vec::new()).then_some(())
        };
        for server in servers {
            // A server that can't be described is left out.
            let _ = add(server);
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
        let (address, env) = match &server.address {
            Address::Command { program, args, env, .. } => (Server::Program(program, args), &env[..]),
            Address::Http { url, .. } => (Server::Url(url), &[][..]),
        };
        let variables = env.iter().map(|(name, _)| name.as_str());
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
            let Some(text) = provider.describe(cwd.as_deref()).await else { return };
            let description: String = sanitize(&text).chars().take(MAX_DESCRIPTION).collect();
            if let Some(store) = servers.store() {
                let file = DescriptionFile { v: VERSION, description: description.clone() };
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

/// Reads an entry of `mcpServers`. Returns the server, and a text that identifies its configuration without secrets.
fn described(server: &ClientServer) -> Option<(ToolServer, String)> {
    let entry: Value = serde_json::from_slice(&server.entry).ok()?;
    let text = |key: &str| entry[key].as_str().map(str::to_owned);
    // The client has resolved these values already.
    let pairs = |key: &str| -> Vec<(String, String)> {
        let list = entry[key].as_array().into_iter().flatten();
        let pair = |pair: &Value| {
            Some((pair["name"].as_str()?.to_owned(), pair["value"].as_str()?.replace('$', "$$")))
        };
        list.filter_map(pair).collect()
    };
    let mut digest = format!("{}\n", server.name);
    let address = match entry["type"].as_str() {
        None | Some("stdio") => {
            let args: Vec<_> = entry["args"].as_array().into_iter().flatten().collect();
            let args: Option<Vec<_>> = args.into_iter().map(|arg| arg.as_str().map(str::to_owned)).collect();
            let address =
                Address::Command { program: text("command")?, args: args?, env: pairs("env"), cwd: None };
            // Writing to a string never fails.
            let _ = write!(digest, "{} {}", entry["command"], entry["args"]);
            address
        }
        Some("http") => {
            let url = text("url").filter(|url| skills_core::fetch::is_allowed(url))?;
            digest.push_str(&url);
            Address::Http { url, headers: pairs("headers") }
        }
        Some(_) => return None,
    };
    Some((ToolServer { skill: server.name.clone(), address, ..ToolServer::default() }, digest))
}
