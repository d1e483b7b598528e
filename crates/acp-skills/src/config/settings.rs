//! [`Settings`]: a configuration, resolved into the policy, the skills and the tools of a proxy.

use std::{
    ffi::OsString,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use acp_skills_intercept::Policy;
use acp_skills_runtime::{
    library::{DirectoryLibrary, MakeToolbox, ProjectSkills, Scan},
    telemetry,
};
use acp_skills_servers::processes::Processes;
use globset::GlobSet;
use skills_core::{
    Toolbox,
    catalog::{Catalog, CatalogOptions, Location},
    discovery::{Discovery, Filter, Root, user_roots},
    exec::{Sandbox, ScriptCwd, ScriptOptions},
    set::Skipped,
    toolbox::ToolboxOptions,
};
use skills_sources::{Options, Sources, Spec, disk::locations, policy::Policy as Governing, trust::Trust};

use super::{
    CatalogLocation, CheckUpdates, Config, ConfigError, Discover, Project, SearchTool, SkillEntry,
    SourceAccess, Trusted, Validation, elsewhere, governed,
    named::{fixed, load_entry},
    scripts,
    servers::Servers,
    specs,
};

/// A resolved configuration, from which a proxy can be built.
#[non_exhaustive]
pub struct Settings {
    /// The command of the agent: the program and its arguments. Empty if the configuration doesn't name an agent.
    pub agent: Vec<OsString>,
    /// The proxy's policy.
    pub policy: Policy,
    /// The locations of the skills. Call [`SkillSources::load`] to read them.
    pub skills: SkillSources,
    /// The function that creates the tools for a set of skills.
    pub toolbox: MakeToolbox,
    /// The sandbox of scripts, if scripts run in the directory of their session. It is checked for each new directory, so that the
    /// user gets a warning if the sandbox can't protect it.
    pub sandbox: Option<Sandbox>,
    /// The registry of child processes: scripts, command tools and `git`, as soon as they run.
    ///
    /// [`toolbox`](Self::toolbox) and [`skills`](Self::skills) already register their processes in it. Pass it to the host or the
    /// relay of the proxy, so that these processes end when the proxy ends.
    pub processes: Processes,
    /// The directory for state: the one of the configuration, or else the one of the platform. `None` if there is no home directory.
    pub state: Option<PathBuf>,
    /// The settings of telemetry, if it is on. Pass it to [`Telemetry::start`](acp_skills_runtime::telemetry::Telemetry::start).
    pub telemetry: Option<telemetry::Settings>,
}

/// The locations of all skills that a configuration names.
#[expect(clippy::struct_excessive_bools, reason = "independent settings")]
pub struct SkillSources {
    named: Vec<SkillEntry>,
    roots: Vec<PathBuf>,
    sources: Vec<Spec>,
    servers: Servers,
    locked: bool,
    projects: Vec<ProjectSources>,
    discover: Vec<Discover>,
    /// The user's approval of skills in projects. `None` if they don't need approval.
    trust: Option<Trust>,
    filter: Filter,
    max_skills: Option<usize>,
    max_fetch_bytes: Option<u64>,
    /// The settings for the servers of sources.
    access: Arc<SourceAccess>,
    check_updates: bool,
    nested: bool,
    strict: bool,
    validation: Validation,
    watch: bool,
    processes: Processes,
    /// The policy of this machine.
    governing: Option<Arc<Governing>>,
    /// The parts of the configuration that the policy has refused.
    refused: Vec<Skipped>,
}

/// The locations of the skills that an entry of `projects` names.
struct ProjectSources {
    paths: GlobSet,
    named: Vec<SkillEntry>,
    roots: Vec<PathBuf>,
    sources: Vec<Spec>,
    discover: Vec<Discover>,
    is_trusted: bool,
    filter: Filter,
}

impl Settings {
    /// Resolves a configuration. Skills are not read yet.
    ///
    /// The policy of this machine narrows the configuration. What it refuses is listed with the skills of each session.
    ///
    /// # Errors
    /// - [`ConfigError::Policy`] if the policy of this machine can't be used.
    /// - [`ConfigError::Value`] if a glob is invalid, if no skills may be found at all, or if an agent can't connect to `listen`.
    /// - [`ConfigError::Source`] if the address of a source has an unknown format.
    /// - [`ConfigError::Sandbox`] if the requested sandbox can't be used on this system.
    /// - [`ConfigError::Telemetry`] if the variables of telemetry are invalid, and [`ConfigError::Refused`] if the policy requires
    ///   telemetry that is off.
    pub fn resolve(mut config: Config) -> Result<Self, ConfigError> {
        if config.max_skills == Some(0) {
            return Err(ConfigError::Value(
                "the maximum number of skills (`max_skills`) is 0; use at least 1".to_owned(),
            ));
        }
        let governing = Governing::load()?.map(Arc::new);
        let refused = governing.as_deref().map(|governing| governed::narrow(&mut config, governing));
        let telemetry = governed::telemetry(&config, governing.as_deref())?;
        let mut policy = Policy::default();
        policy.mcp = config.mcp.unwrap_or(policy.mcp);
        elsewhere::apply(&config, &mut policy)?;
        let agent = mem::take(&mut config.agent).0;
        if let Some(wait) = config.mcp_wait {
            // If the user sets a timeout, use it for agents that are slow to connect as well.
            policy.mcp_wait = wait;
            policy.mcp_connect = wait;
        }
        policy.catalog_in = config.catalog_in.unwrap_or(policy.catalog_in);
        policy.catalog = catalog_options(&config);
        policy.activation = config.activation.unwrap_or(policy.activation);
        policy.restore_budget = config.restore_budget.unwrap_or(policy.restore_budget);
        let search = config.search.unwrap_or_default();
        // Note that the catalog only mentions the search if it doesn't contain all skills.
        policy.catalog.search = search != SearchTool::Off;
        let processes = Processes::default();
        let scripts = scripts::options(&config, governing.as_deref(), &processes)?;
        let in_session = scripts.as_ref().filter(|scripts| scripts.cwd == ScriptCwd::Session);
        let sandbox = in_session.and_then(|scripts| scripts.sandbox.clone());
        let toolbox = make_toolbox(policy.catalog.clone(), search, scripts, policy.elsewhere);
        policy.commands = config.commands.unwrap_or(policy.commands);
        policy.hint = config.hint;
        policy.dollar = config.dollar;
        policy.approve = config.approve.unwrap_or(policy.approve);
        policy.tool_policy = config.tool_policy.unwrap_or(policy.tool_policy);
        policy.titles = config.titles.unwrap_or(policy.titles);
        policy.toggles = config.toggles;
        policy.drafts = config.drafts;
        policy.mcp_skills = config.mcp_skills.take().unwrap_or_default().0;
        policy.mcp_on_demand = config.mcp_on_demand.take().unwrap_or_default().0;
        let state = config.state.take().or_else(locations::state_dir);
        let mut skills = SkillSources::resolve(config, state.clone(), processes.clone())?;
        if let Some(governing) = &governing {
            let projects = skills.projects.iter_mut().flat_map(|project| &mut project.sources);
            governed::lock(projects.chain(&mut skills.sources), governing);
        }
        skills.governing = governing;
        skills.refused = refused.unwrap_or_default();
        Ok(Self { agent, policy, skills, toolbox, sandbox, processes, state, telemetry })
    }
}

fn make_toolbox(
    catalog: CatalogOptions,
    search: SearchTool,
    scripts: Option<ScriptOptions>,
    elsewhere: bool,
) -> MakeToolbox {
    Arc::new(move |skills| {
        let search = match search {
            SearchTool::On => true,
            SearchTool::Off => false,
            SearchTool::Auto => Catalog::render(&skills, &catalog).is_some_and(|catalog| catalog.omitted > 0),
        };
        let mount = match &catalog.location {
            Location::Mount(prefix) => Some(prefix.clone()),
            _ => None,
        };
        // With absolute paths in the catalog, the agent has the files at the same paths.
        let elsewhere = elsewhere && catalog.location != Location::Absolute;
        Toolbox::with_options(skills, ToolboxOptions { mount, elsewhere, search, scripts: scripts.clone() })
    })
}

fn catalog_options(config: &Config) -> CatalogOptions {
    let mut options = CatalogOptions::default();
    options.format = config.catalog_format.unwrap_or(options.format);
    options.style = config.catalog_style.unwrap_or(options.style);
    options.detail = config.catalog_detail.unwrap_or(options.detail);
    options.budget_chars = config.catalog_budget.unwrap_or(options.budget_chars);
    options.location = match (&config.mount, config.location) {
        (Some(prefix), _) => Location::Mount(prefix.clone()),
        (None, Some(CatalogLocation::Absolute)) => Location::Absolute,
        (None, _) => Location::None,
    };
    options
}

impl SkillSources {
    /// Ensures that the programs that fetch sources end if this process is killed. `program` is the path of `acp-skills-proxy`, which also
    /// runs as the watchdog.
    pub fn guard_processes(&self, program: &Path) {
        self.processes.prepare(program);
    }

    /// Resolves the locations of skills in a configuration.
    ///
    /// # Errors
    /// Returns [`ConfigError::Value`] if a glob is invalid, and [`ConfigError::Source`] if an address has an unknown format.
    fn resolve(config: Config, state: Option<PathBuf>, processes: Processes) -> Result<Self, ConfigError> {
        let filter = specs::filter(&config.include, &config.exclude)?;
        let max_fetch_bytes = config.max_fetch_bytes();
        let nested = config.nested;
        let access = SourceAccess::new(&config, &processes);
        let decisions = Trust::new(state);
        let trust = (!config.trust.contains(&Trusted::Project)).then(|| decisions.clone());
        let mut servers = Servers { sources: Vec::new(), trust: decisions };
        let mut sources = Vec::new();
        for entry in config.sources {
            if entry.server_url().is_some() {
                let own = specs::filter(&entry.include, &entry.exclude)?;
                servers.sources.push((entry, vec![own]));
            } else {
                sources.push(specs::spec(&entry, nested, &[&filter])?);
            }
        }
        let projects =
            config.projects.into_iter().map(|project| ProjectSources::resolve(project, nested, &filter));
        Ok(Self {
            projects: projects.collect::<Result<_, _>>()?,
            named: config.skills,
            roots: config.roots,
            sources,
            servers,
            locked: config.locked,
            discover: config.discover,
            trust,
            filter,
            max_skills: config.max_skills,
            max_fetch_bytes,
            access: Arc::new(access),
            check_updates: checks_updates(config.check_updates),
            nested: config.nested,
            strict: config.strict,
            validation: config.validation,
            watch: config.watch.unwrap_or(true),
            processes,
            governing: None,
            refused: Vec::new(),
        })
    }

    /// Reads the skills that don't depend on a session. The returned library finds the others when a session starts.
    ///
    /// # Errors
    /// - [`ConfigError::Skill`] or [`ConfigError::VirtualSkill`] if a skill in `skills` is invalid.
    /// - [`ConfigError::NoSuchRoot`] if a directory in `roots` doesn't exist.
    /// - [`ConfigError::Unreadable`] if the current directory can't be determined.
    pub fn load(mut self) -> Result<DirectoryLibrary, ConfigError> {
        let settings = (&self.filter, self.governing.as_ref(), &self.processes);
        let servers = self.servers.load(&self.named, self.locked, settings, &mut self.refused)?;
        let mut directories = Vec::new();
        let mut named = Vec::new();
        for entry in self.named {
            named.push(load_entry(entry, self.strict, self.validation, &self.processes, &mut directories)?);
        }
        let mut roots = user_roots();
        roots.retain(|root| is_discovered(root, &self.discover));
        if self.nested {
            roots.extend(directories.into_iter().map(Root::scanned));
        }
        for root in self.roots {
            if !root.is_dir() {
                return Err(ConfigError::NoSuchRoot(root));
            }
            roots.push(Root::scanned(root));
        }
        let discovery = |roots: Vec<Root>| {
            let mut discovery = Discovery::new(roots);
            discovery.filter = self.filter.clone();
            discovery.nested = self.nested;
            if let Some(max) = self.max_skills {
                discovery.limits.max_skills = max;
            }
            discovery
        };
        let project = searches_project(&self.discover).then(|| discovery(Vec::new()));
        let scanned = discovery(roots);
        let options = Options {
            cache: locations::cache_dir(),
            max_skills: scanned.limits.max_skills,
            max_fetch_bytes: self.max_fetch_bytes,
            locked: self.locked,
            credentials: Some(self.access),
            check_updates: self.check_updates && self.watch,
            observer: Some(Arc::new(self.processes.clone())),
            policy: self.governing.clone(),
        };
        let rules = governed::rules(self.governing, self.refused, &options);
        let mut projects = Vec::new();
        for project in self.projects {
            let mut places = Vec::new();
            let mut skills = Vec::new();
            for entry in project.named {
                match entry {
                    // Use a scan for this directory, so that a broken skill in this project doesn't stop sessions in
                    // others.
                    SkillEntry::Directory(path) => places.push(Root::scanned(path)),
                    SkillEntry::Stored(_) => {
                        let text = "`projects`: a skill in a directory can't have properties here; move it to `skills`";
                        return Err(ConfigError::Value(text.to_owned()));
                    }
                    SkillEntry::Virtual(skill) => {
                        skills.push(fixed(*skill, self.validation, &self.processes)?);
                    }
                }
            }
            places.extend(project.roots.into_iter().map(Root::scanned));
            let is_new =
                |root: &Root| is_discovered(root, &project.discover) && !is_discovered(root, &self.discover);
            places.extend(user_roots().into_iter().filter(is_new));
            projects.push(ProjectSkills {
                paths: project.paths,
                fixed: skills,
                scan: Scan::later(discovery(places)),
                sources: Sources::start(project.sources, options.clone()),
                project: searches_project(&project.discover).then(|| discovery(Vec::new())),
                tree: project.discover.contains(&Discover::ProjectTree),
                is_trusted: project.is_trusted,
                filter: project.filter,
            });
        }
        let sources = Sources::start(self.sources, options);
        let library = DirectoryLibrary::new(named, self.strict, Scan::start(scanned), sources, project);
        let tree = self.discover.contains(&Discover::ProjectTree);
        let library = library.servers(servers);
        Ok(library.governed(rules).trust(self.trust).projects(projects).tree(tree).watch(self.watch))
    }
}

/// Returns true if sources are checked for new versions. In CI, they are only checked if the user asks for it.
fn checks_updates(check: Option<CheckUpdates>) -> bool {
    let is_ci =
        || std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0");
    match check {
        Some(check) => check == CheckUpdates::Daily,
        None => !is_ci(),
    }
}

/// Returns true if the projects of sessions are searched.
fn searches_project(discover: &[Discover]) -> bool {
    discover.contains(&Discover::Project) || discover.contains(&Discover::ProjectTree)
}

/// Returns true if a directory of the user is searched.
fn is_discovered(root: &Root, discover: &[Discover]) -> bool {
    let parts: &[Discover] = if root.path.ends_with(".claude/skills") {
        &[Discover::Claude]
    } else if root.path.ends_with(".agents/skills") {
        &[Discover::Agents]
    } else {
        &[Discover::Agents, Discover::Config]
    };
    discover.contains(&Discover::User) || parts.iter().any(|part| discover.contains(part))
}

impl ProjectSources {
    fn resolve(project: Project, nested: bool, common: &Filter) -> Result<Self, ConfigError> {
        let filter = specs::filter(&project.include, &project.exclude)?;
        let sources = project.sources.iter().map(|entry| specs::spec(entry, nested, &[common, &filter]));
        Ok(Self {
            paths: project.path.compile()?,
            named: project.skills,
            roots: project.roots,
            sources: sources.collect::<Result<_, _>>()?,
            discover: project.discover,
            is_trusted: project.trust.contains(&Trusted::Project),
            filter,
        })
    }
}
