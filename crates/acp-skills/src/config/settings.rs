//! [`Settings`]: what a configuration comes to.

use std::{ffi::OsString, mem, path::PathBuf, sync::Arc};

use acp_skills_intercept::Policy;
use skills_core::{
    Toolbox,
    catalog::{Catalog, CatalogOptions, Location},
    diagnostic::Diagnostic,
    discovery::{Discovery, Filter, NamedSkill, Root, user_roots},
    exec::{Sandbox, ScriptCwd, ScriptOptions},
    toolbox::ToolboxOptions,
};

use super::{CatalogLocation, Config, ConfigError, Discover, SearchTool, SkillEntry, Validation, scripts};
use crate::{
    library::{DirectoryLibrary, MakeToolbox, Named, Scan, load_named, remote},
    processes::Processes,
};

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
    #[doc(hidden)]
    pub processes: Processes,
}

/// Where skills come from.
pub struct SkillSources {
    named: Vec<SkillEntry>,
    roots: Vec<PathBuf>,
    sources: Vec<String>,
    discover: Vec<Discover>,
    filter: Filter,
    max_skills: Option<usize>,
    strict: bool,
    validation: Validation,
    watch: bool,
    processes: Processes,
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
    /// A glob is wrong.
    fn resolve(config: Config, processes: Processes) -> Result<Self, ConfigError> {
        Ok(Self {
            named: config.skills,
            roots: config.roots,
            sources: config.sources,
            discover: config.discover,
            filter: Filter::new(&config.include, &config.exclude)
                .map_err(|error| ConfigError::Value(error.to_string()))?,
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
    /// A skill that was named cannot be loaded, or a site's list of skills cannot be fetched.
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
                    let (skill, warnings) = skill.build_with(self.validation, &self.processes)?;
                    let warnings =
                        warnings.into_iter().map(|text| Diagnostic::warning("missing-program", text));
                    named.push(Named::Fixed(Arc::new(skill), warnings.collect()));
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
        // The scan goes on while the sites answer.
        let scanned = discovery(roots);
        let max_skills = scanned.limits.max_skills;
        let scan = Scan::start(scanned);
        let remote = remote::load(&self.sources, &self.filter, max_skills)
            .map_err(|(url, source)| ConfigError::Source { url: url.to_owned(), source })?;
        Ok(DirectoryLibrary::new(named, self.strict, scan, remote, project).watched(self.watch))
    }
}
