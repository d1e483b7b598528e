//! [`SkillServers`]: MCP servers that offer skills, by the skills extension of MCP (SEP-2640).
//!
//! A server is asked for its skills in the background, so that neither the start nor a session waits for it. The user approves the
//! skills as they are listed, with the checksums of all files. The files are only read when the model needs them, and each is compared
//! with its checksum.
//!
//! | file | owns |
//! |---|---|
//! | `server/` | one server: asking it, following its changes, asking again after a failure, and reading files |
//! | `entries` | the entries of a list, and the checks that they pass |
//!
//! [MCP: skills](https://modelcontextprotocol.io/seps/2640-skills-extension)

mod entries;
mod server;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak},
};

use acp_skills_intercept::ClientServer;
use parking_lot::Mutex;
use skills_core::{Scope, Skill, SkillSet, discovery::Filter, set::Skipped};
use skills_sources::{
    Notify,
    policy::{Policy, Refusal},
    trust::Trust,
};

pub use self::server::Server;
use super::{Address, ToolServer, client_entry::described};
use crate::processes::Processes;

/// The MCP servers that offer skills. Cheap to clone; all clones share their state. The default has none, and asks none.
#[derive(Clone, Default)]
pub struct SkillServers(Option<Arc<Inner>>);

struct Inner {
    trust: Trust,
    processes: Processes,
    filter: Filter,
    policy: Option<Arc<Policy>>,
    configured: Vec<Configured>,
    /// The callback for changes of the client's servers, once servers can be asked.
    client_changed: OnceLock<Notify>,
    /// Guards the servers of clients by their configuration. No other lock is taken while it is held.
    of_clients: Mutex<HashMap<Vec<u8>, Weak<Server>>>,
}

/// A server of the configuration.
pub struct Configured {
    server: Arc<Server>,
    filters: Vec<Filter>,
    scope: Option<Scope>,
}

impl Configured {
    /// Creates a server of the configuration. A skill is served only if it passes all of `filters`. `scope` is the place of its skills for
    /// the rule `skills.allow` of a policy, or `None` if the server is a source, to which the rule does not apply.
    pub fn new(
        server: ToolServer,
        processes: &Processes,
        filters: Vec<Filter>,
        scope: Option<Scope>,
    ) -> Self {
        let server = Arc::new(Server::new(server, processes.clone(), None, true));
        Self { server, filters, scope }
    }
}

impl SkillServers {
    /// Creates the servers. `trust` has the decisions of the user, `filter` applies to all skills, and `policy` to all servers and skills.
    pub fn new(
        trust: Trust,
        processes: Processes,
        filter: Filter,
        policy: Option<Arc<Policy>>,
        configured: Vec<Configured>,
    ) -> Self {
        let client_changed = OnceLock::new();
        let of_clients = Mutex::default();
        Self(Some(Arc::new(Inner {
            trust,
            processes,
            filter,
            policy,
            configured,
            client_changed,
            of_clients,
        })))
    }

    /// Starts to ask the servers of the configuration. `changed` is called when their skills have changed, and `client_changed` for servers
    /// of the client. Does nothing outside of a tokio runtime.
    pub fn start(&self, changed: &Notify, client_changed: Notify) {
        let Some(inner) = &self.0 else { return };
        // This is only called once.
        let _ = inner.client_changed.set(client_changed);
        inner.configured.iter().for_each(|configured| configured.server.start(Arc::clone(changed)));
    }

    /// Returns true if the configuration has a server that is asked for skills.
    pub fn has_configured(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| !inner.configured.is_empty())
    }

    /// Returns the skills that the servers of the configuration offer. May read the disk.
    pub fn configured(&self) -> SkillSet {
        let mut skills = SkillSet::builder();
        if let Some(inner) = &self.0 {
            for Configured { server, filters, scope } in &inner.configured {
                skills.extend(&inner.permitted(server, filters, *scope));
            }
        }
        skills.build()
    }

    /// Returns the servers of a client that are asked for skills, and starts those that don't run yet. Servers that the policy refuses are
    /// added to `refused`; the agent gets them anyway.
    pub fn of_client(
        &self,
        servers: &[ClientServer],
        cwd: Option<&Path>,
        refused: &mut Vec<Skipped>,
    ) -> Vec<Arc<Server>> {
        let Some((inner, changed)) =
            self.0.as_ref().and_then(|inner| Some((inner, inner.client_changed.get()?)))
        else {
            return Vec::new();
        };
        let asked = servers.iter().filter(|server| server.offers);
        asked.filter_map(|server| inner.server_of(server, (cwd, changed), refused)).collect()
    }

    /// Returns the skills that these servers offer. May read the disk.
    pub fn offered(&self, servers: &[Arc<Server>]) -> SkillSet {
        let mut skills = SkillSet::builder();
        for server in servers {
            skills.extend(&self.0.as_ref().map(|inner| inner.of_server(server)).unwrap_or_default());
        }
        skills.build()
    }

    /// Asks all servers again.
    pub fn ask_again(&self) {
        let Some(inner) = &self.0 else { return };
        inner.configured.iter().for_each(|configured| configured.server.ask_again());
        let running: Vec<_> = inner.of_clients.lock().values().filter_map(Weak::upgrade).collect();
        for server in running {
            server.ask_again();
        }
    }

    /// Returns the decisions of the user about the skill of a server. `None` for any other skill.
    pub fn trust_of(&self, skill: &Skill) -> Option<&Trust> {
        skill.service()?;
        self.trust()
    }

    /// Returns the files with the user's decisions about servers.
    pub fn trust_files(&self) -> Vec<PathBuf> {
        let Some(trust) = self.trust() else { return Vec::new() };
        self.identities().iter().filter_map(|identity| trust.file(Path::new(identity))).collect()
    }

    /// Returns the decisions of the user about servers. `None` if no server is asked.
    pub fn trust(&self) -> Option<&Trust> {
        Some(&self.0.as_ref()?.trust)
    }

    /// Returns the keys of the decisions about servers of the configuration, and of clients as long as they run.
    pub fn identities(&self) -> Vec<String> {
        let Some(inner) = &self.0 else { return Vec::new() };
        let running: Vec<_> = inner.of_clients.lock().values().filter_map(Weak::upgrade).collect();
        let configured = inner.configured.iter().map(|configured| &configured.server);
        configured.chain(&running).map(|server| server.identity().to_owned()).collect()
    }
}

impl Inner {
    /// Returns the server for an entry of the client. Clients pass the same servers to each session.
    fn server_of(
        &self,
        server: &ClientServer,
        (cwd, changed): (Option<&Path>, &Notify),
        refused: &mut Vec<Skipped>,
    ) -> Option<Arc<Server>> {
        let (described, _) = described(server)?;
        if let Err(refusal) = self.allowed(&described) {
            // A server that also becomes a skill is refused there.
            refused.extend((!server.on_demand).then(|| refusal.skipped(&server.name)));
            return None;
        }
        // A program runs in the directory of the session.
        let cwd = cwd.filter(|_| matches!(described.address, Address::Command { .. }));
        let mut key = server.entry.clone();
        key.extend(cwd.iter().flat_map(|cwd| cwd.as_os_str().as_encoded_bytes()));
        let mut known = self.of_clients.lock();
        known.retain(|_, server| server.strong_count() > 0);
        if let Some(running) = known.get(&key).and_then(Weak::upgrade) {
            running.ask_if_old();
            return Some(running);
        }
        let new = Arc::new(Server::new(described, self.processes.clone(), cwd.map(Path::to_owned), false));
        new.start(Arc::clone(changed));
        known.insert(key, Arc::downgrade(&new));
        Some(new)
    }

    fn allowed(&self, server: &ToolServer) -> Result<(), Refusal> {
        let Some(policy) = &self.policy else { return Ok(()) };
        let (address, variables) = server.for_policy();
        policy.server(&server.skill, &address, variables)
    }

    /// Returns the skills of a server of a client.
    fn of_server(&self, server: &Server) -> SkillSet {
        self.permitted(server, &[], Some(Scope::Session))
    }

    /// Returns the skills that pass the filters and the policy, and that the user trusts.
    fn permitted(&self, server: &Server, filters: &[Filter], scope: Option<Scope>) -> SkillSet {
        let found = server.found();
        let mut skills = SkillSet::builder();
        found.skipped().iter().for_each(|skipped| skills.skip(skipped.clone()));
        let takes =
            |skill: &Skill| [&self.filter].into_iter().chain(filters).all(|filter| filter.takes(&skill.name));
        for entry in found.entries().iter().filter(|entry| takes(&entry.skill)) {
            match self.allowed_skill(&entry.skill, scope) {
                Ok(()) => {
                    skills.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
                }
                Err(refusal) => skills.skip(refusal.skipped(entry.skill.name.as_str())),
            }
        }
        self.trust.sift_entries(Path::new(server.identity()), &skills.build())
    }

    fn allowed_skill(&self, skill: &Skill, scope: Option<Scope>) -> Result<(), Refusal> {
        let Some(policy) = &self.policy else { return Ok(()) };
        // The files are only read when the model needs them, so there is nothing to scan.
        policy.scanned(&skill.name, None)?;
        scope.map_or(Ok(()), |scope| policy.skill(skill.name.as_str(), scope, None))
    }
}
