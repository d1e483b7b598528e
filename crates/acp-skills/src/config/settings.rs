//! [`Settings`]: what a configuration comes to.

use std::{ffi::OsString, mem, path::PathBuf, sync::Arc};

use globset::GlobSet;

use acp_skills_intercept::Policy;
use skills_core::{
    Toolbox,
    catalog::{Catalog, CatalogOptions, Location},
    diagnostic::Diagnostic,
    discovery::{Discovery, Filter, NamedSkill, Root, user_roots},
    exec::{Sandbox, ScriptCwd, ScriptOptions},
    skill::Skill,
    toolbox::ToolboxOptions,
};

use super::{
    CatalogLocation, Config, ConfigError, Discover, Project, SearchTool, SkillEntry, SourceEntry, Trusted,
    Validation, scripts,
};
use acp_skills_runtime::{
    library::{DirectoryLibrary, MakeToolbox, Named, ProjectSkills, Scan, load_named},
    processes::Processes,
};
use skills_sources::{Address, LOCK_NAME, Options, Sources, Spec, disk::locations, trust::Trust};

/// What a configuration comes to: what the proxy does, with which skills.
#[non_exhaustive]
pub struct Settings {
    /// The agent's command; may be empty.
    pub agent: Vec<OsString>,
    /// What the interceptor does.
    pub policy: Policy,
    /// Which skills there are.
    pub skills: SkillSources,
    /// How the tools over a set of skills are made.
    pub toolbox: MakeToolbox,
    /// The sandbox of scripts that work in the directory of their session.
    pub sandbox: Option<Sandbox>,
    /// The programs that tools run.
    pub processes: Processes,
}

/// Where skills come from.
pub struct SkillSources {
    named: Vec<SkillEntry>,
    roots: Vec<PathBuf>,
    sources: Vec<Spec>,
    locked: bool,
    projects: Vec<ProjectSources>,
    discover: Vec<Discover>,
    /// `None` where skills of projects need no approval.
    trust: Option<Trust>,
    filter: Filter,
    max_skills: Option<usize>,
    strict: bool,
    validation: Validation,
    watch: bool,
    processes: Processes,
}

/// The same for an entry of `projects`.
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
    /// What `config` comes to.
    ///
    /// # Errors
    /// A value is wrong, or the sandbox that it asks for does not work here.
    pub fn resolve(mut config: Config) -> Result<Self, ConfigError> {
        let agent = mem::take(&mut config.agent).0;
        let mut policy = Policy::default();
        policy.mcp = config.mcp.unwrap_or(policy.mcp);
        if let Some(wait) = config.mcp_wait {
            // Who says how long knows why.
            (policy.mcp_wait, policy.mcp_connect) = (wait, wait);
        }
        policy.catalog_in = config.catalog_in.unwrap_or(policy.catalog_in);
        policy.catalog = catalog_options(&config);
        policy.activation = config.activation.unwrap_or(policy.activation);
        let search = config.search.unwrap_or_default();
        // The sentence about it only stands in a catalog that does not hold every skill.
        policy.catalog.search = search != SearchTool::Off;
        let processes = Processes::default();
        let scripts = scripts::options(&config, &processes)?;
        let in_session = scripts.as_ref().filter(|scripts| scripts.cwd == ScriptCwd::Session);
        let sandbox = in_session.and_then(|scripts| scripts.sandbox.clone());
        let toolbox = make_toolbox(policy.catalog.clone(), search, scripts);
        policy.dollar = config.dollar;
        policy.approve = config.approve.unwrap_or(policy.approve);
        policy.tool_policy = config.tool_policy.unwrap_or(policy.tool_policy);
        policy.titles = config.titles.unwrap_or(policy.titles);
        policy.toggles = config.toggles;
        policy.drafts = config.drafts;
        let skills = SkillSources::resolve(config, processes.clone())?;
        Ok(Self { agent, policy, skills, toolbox, sandbox, processes })
    }
}

fn make_toolbox(catalog: CatalogOptions, search: SearchTool, scripts: Option<ScriptOptions>) -> MakeToolbox {
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
        Toolbox::with_options(skills, ToolboxOptions { mount, search, scripts: scripts.clone() })
    })
}

fn catalog_options(config: &Config) -> CatalogOptions {
    let mut options = CatalogOptions::default();
    options.format = config.catalog_format.unwrap_or(options.format);
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
    /// Where `config` says that skills are.
    ///
    /// # Errors
    /// A glob or the address of a source is wrong.
    fn resolve(config: Config, processes: Processes) -> Result<Self, ConfigError> {
        let filter = filter(&config.include, &config.exclude)?;
        let sources = config.sources.iter().map(|entry| spec(entry, &filter)).collect::<Result<_, _>>()?;
        let state = config.state.or_else(locations::state_dir);
        let trust = (!config.trust.contains(&Trusted::Project)).then(|| Trust::new(state));
        let projects = config.projects.into_iter().map(|it| ProjectSources::resolve(it, &filter));
        Ok(Self {
            projects: projects.collect::<Result<_, _>>()?,
            named: config.skills,
            roots: config.roots,
            sources,
            locked: config.locked,
            discover: config.discover,
            trust,
            filter,
            max_skills: config.max_skills,
            strict: config.strict,
            validation: config.validation,
            watch: config.watch.unwrap_or(true),
            processes,
        })
    }

    /// Reads the skills that do not depend on a session, and gives what finds those that do.
    ///
    /// # Errors
    /// A skill that was named cannot be loaded, or a directory to look in does not exist.
    pub fn load(self) -> Result<DirectoryLibrary, ConfigError> {
        let mut named = Vec::new();
        for source in self.named {
            match source {
                SkillEntry::Directory(path) => {
                    let path = std::path::absolute(&path)
                        .map_err(|source| ConfigError::Unreadable { path: path.clone(), source })?;
                    let (skill, diagnostics) = load_named(&path, self.strict)
                        .map_err(|source| ConfigError::Skill { path: path.clone(), source })?;
                    named.push(Named::Stored(NamedSkill::new(path, skill, diagnostics)));
                }
                SkillEntry::Virtual(skill) => {
                    let (skill, warnings) = fixed(*skill, self.validation, &self.processes)?;
                    named.push(Named::Fixed(skill, warnings));
                }
            }
        }
        let mut roots = Vec::new();
        if self.discover.contains(&Discover::User) {
            roots.extend(user_roots());
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
            if let Some(max) = self.max_skills {
                discovery.limits.max_skills = max;
            }
            discovery
        };
        let project = self.discover.contains(&Discover::Project).then(|| discovery(Vec::new()));
        let scanned = discovery(roots);
        let options = Options {
            cache: locations::cache_dir(),
            max_skills: scanned.limits.max_skills,
            locked: self.locked,
            observer: Some(Arc::new(self.processes.clone())),
        };
        let mut projects = Vec::new();
        for it in self.projects {
            let (mut places, mut skills) = (Vec::new(), Vec::new());
            for entry in it.named {
                match entry {
                    // Found and not named: a skill that is broken in one project must not stop the others.
                    SkillEntry::Directory(path) => places.push(Root::scanned(path)),
                    SkillEntry::Virtual(skill) => {
                        skills.push(fixed(*skill, self.validation, &self.processes)?);
                    }
                }
            }
            places.extend(it.roots.into_iter().map(Root::scanned));
            if it.discover.contains(&Discover::User) && !self.discover.contains(&Discover::User) {
                places.extend(user_roots());
            }
            projects.push(ProjectSkills {
                paths: it.paths,
                fixed: skills,
                scan: Scan::later(discovery(places)),
                sources: Sources::start(it.sources, options.clone()),
                project: it.discover.contains(&Discover::Project).then(|| discovery(Vec::new())),
                is_trusted: it.is_trusted,
                filter: it.filter,
            });
        }
        let sources = Sources::start(self.sources, options);
        let scan = Scan::start(scanned);
        let library = DirectoryLibrary::new(named, self.strict, scan, sources, project);
        Ok(library.trust(self.trust).projects(projects).watch(self.watch))
    }
}

impl ProjectSources {
    fn resolve(project: Project, common: &Filter) -> Result<Self, ConfigError> {
        Ok(Self {
            paths: project.path.compile()?,
            named: project.skills,
            roots: project.roots,
            sources: project.sources.iter().map(|entry| spec(entry, common)).collect::<Result<_, _>>()?,
            discover: project.discover,
            is_trusted: project.trust.contains(&Trusted::Project),
            filter: filter(&project.include, &project.exclude)?,
        })
    }
}

/// A virtual skill, with warnings.
fn fixed(
    skill: super::VirtualSkill,
    validation: Validation,
    processes: &Processes,
) -> Result<(Arc<Skill>, Vec<Diagnostic>), ConfigError> {
    let (skill, warnings) = skill.build_with(validation, processes)?;
    let warnings = warnings.into_iter().map(|text| Diagnostic::warning("missing-program", text));
    Ok((Arc::new(skill), warnings.collect()))
}

fn filter(include: &[String], exclude: &[String]) -> Result<Filter, ConfigError> {
    Filter::new(include, exclude).map_err(|error| ConfigError::Value(error.to_string()))
}

/// A source, of which the whole configuration takes what `common` takes.
fn spec(entry: &SourceEntry, common: &Filter) -> Result<Spec, ConfigError> {
    let state = || locations::state_dir().unwrap_or_default().join(LOCK_NAME);
    Ok(Spec {
        address: Address::parse(&entry.source)?,
        filters: vec![common.clone(), filter(&entry.include, &entry.exclude)?],
        lock: entry.lock.clone().unwrap_or_else(state),
    })
}
