//! [`Settings`]: what flags and configuration file become together. Flags win.

mod library;
mod remote;
mod tools;
mod watch;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use skills_core::{
    LoadError, Skill, Source, Toolbox,
    catalog::{Catalog, CatalogOptions, Detail, Format, Location},
    diagnostic::Diagnostic,
    discovery::{Discovery, Filter, NamedSkill, Root, load_dir, user_roots},
    exec::ScriptOptions,
    frontmatter::{ParseContext, Verdict, validate_bytes},
    toolbox::ToolboxOptions,
};

use crate::{
    cli::{
        ActivationBy, CatalogDetail, CatalogFormat, Discover, LocationKind, LogArgs, ProxyArgs, RecordArgs,
        SearchWhen, SkillArgs, UsageError,
    },
    config::{Config, SkillEntry, Validation},
    intercept::{Activation, Policy},
    mcp::MakeToolbox,
};

pub use self::library::Skills;
use self::library::{Found, Named as NamedNow};

/// How long the agent may take to get our tools, unless somebody says otherwise.
const MCP_WAIT: Duration = Duration::from_secs(2);

/// Everything that was decided before the start.
pub struct Settings {
    /// The agent's command; may be empty.
    pub agent: Vec<OsString>,
    /// What the interceptor does.
    pub policy: Policy,
    /// What is kept, and where.
    pub record: RecordArgs,
    /// Where messages go.
    pub log: LogArgs,
    /// Which skills there are.
    pub skills: SkillSources,
    /// How the tools over a set of skills are made.
    pub toolbox: MakeToolbox,
}

/// Where skills come from.
pub struct SkillSources {
    named: Vec<Named>,
    roots: Vec<PathBuf>,
    sources: Vec<String>,
    discover: Vec<Discover>,
    filter: Filter,
    max_skills: Option<usize>,
    strict: bool,
    validation: Validation,
    watch: bool,
}

enum Named {
    Directory(PathBuf),
    Virtual(Box<crate::config::VirtualSkill>),
}

impl Settings {
    /// Reads the configuration file that the flags name, and puts both together.
    ///
    /// # Errors
    /// The file cannot be read or is wrong, or a flag's value is.
    pub fn resolve(args: ProxyArgs) -> anyhow::Result<Self> {
        let mut config = match &args.skills.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        let agent = if args.agent.is_empty() {
            std::mem::take(&mut config.agent).0.into_iter().map(OsString::from).collect()
        } else {
            args.agent
        };
        let mut policy = Policy::default();
        if let Some(mode) = args.server.mcp.or(config.mcp) {
            policy.mcp = mode.into();
        }
        policy.mcp_wait = match (args.server.mcp_wait, config.mcp_wait) {
            (Some(wait), _) => wait,
            (None, Some(seconds)) => Duration::try_from_secs_f64(seconds)
                .map_err(|error| UsageError::new(format!("`mcp_wait`: {error}")))?,
            (None, None) => MCP_WAIT,
        };
        if let Some(place) = args.catalog.catalog_in.or(config.catalog_in) {
            policy.catalog_in = place.into();
        }
        policy.catalog = catalog_options(&args.catalog, &config);
        policy.activation = match args.server.activation.or(config.activation) {
            None | Some(ActivationBy::Model) => Activation::Model,
            Some(ActivationBy::Prompt) => Activation::Prompt,
            Some(ActivationBy::Hybrid) => Activation::Hybrid,
        };
        let search = args.server.search.or(config.search).unwrap_or(SearchWhen::Auto);
        // The sentence about it only stands in a catalog that does not hold every skill.
        policy.catalog.search = search != SearchWhen::Off;
        let toolbox = make_toolbox(policy.catalog.clone(), search, tools::scripts(&args.scripts, &config)?);
        policy.dollar = args.user.dollar || config.dollar;
        if let Some(approve) = args.user.approve.or(config.approve) {
            policy.approve = approve.into();
        }
        if let Some(tool_policy) = args.user.tool_policy.or(config.tool_policy) {
            policy.tool_policy = tool_policy.into();
        }
        let record = RecordArgs {
            events: args.record.events.or_else(|| config.events.take()),
            state: args.record.state.or_else(|| config.state.take()),
        };
        let log = LogArgs {
            log: args.log.log.or(config.log),
            log_file: args.log.log_file.or_else(|| config.log_file.take()),
        };
        Ok(Self { agent, policy, record, log, toolbox, skills: SkillSources::resolve(args.skills, config)? })
    }
}

fn make_toolbox(catalog: CatalogOptions, search: SearchWhen, scripts: Option<ScriptOptions>) -> MakeToolbox {
    Arc::new(move |skills| {
        let search = match search {
            SearchWhen::On => true,
            SearchWhen::Off => false,
            SearchWhen::Auto => Catalog::render(&skills, &catalog).is_some_and(|catalog| catalog.omitted > 0),
        };
        let mount = match &catalog.location {
            Location::Mount(prefix) => Some(prefix.clone()),
            _ => None,
        };
        Toolbox::with_options(skills, ToolboxOptions { mount, search, scripts: scripts.clone() })
    })
}

fn catalog_options(args: &crate::cli::CatalogArgs, config: &Config) -> CatalogOptions {
    let mut options = CatalogOptions::default();
    if let Some(format) = args.catalog_format.or(config.catalog_format) {
        options.format = match format {
            CatalogFormat::Xml => Format::Xml,
            CatalogFormat::Json => Format::Json,
            CatalogFormat::Markdown => Format::Markdown,
        };
    }
    if let Some(detail) = args.catalog_detail.or(config.catalog_detail) {
        options.detail = match detail {
            CatalogDetail::Full => Detail::Full,
            CatalogDetail::Names => Detail::NamesOnly,
        };
    }
    if let Some(budget) = args.catalog_budget.or(config.catalog_budget) {
        options.budget_chars = budget;
    }
    let mount =
        args.mount.clone().or_else(|| args.location.is_none().then(|| config.mount.clone()).flatten());
    options.location = match (mount, args.location.or(config.location)) {
        (Some(prefix), _) => Location::Mount(prefix),
        (None, Some(LocationKind::Absolute)) => Location::Absolute,
        (None, _) => Location::None,
    };
    options
}

impl SkillSources {
    /// Puts the flags and the configuration file together; the flags' skills come first.
    ///
    /// # Errors
    /// A glob is wrong.
    pub fn resolve(args: SkillArgs, config: Config) -> anyhow::Result<Self> {
        let named = args.skill.into_iter().map(Named::Directory);
        let named = named.chain(config.skills.into_iter().map(|entry| match entry {
            SkillEntry::Directory(path) => Named::Directory(path),
            SkillEntry::Virtual(skill) => Named::Virtual(skill),
        }));
        let mut discover = args.discover;
        discover.extend(config.discover);
        let include = if args.include.is_empty() { config.include } else { args.include };
        let exclude = if args.exclude.is_empty() { config.exclude } else { args.exclude };
        Ok(Self {
            named: named.collect(),
            roots: args.roots.into_iter().chain(config.roots).collect(),
            sources: args.sources.into_iter().chain(config.sources).collect(),
            discover,
            filter: Filter::new(&include, &exclude).map_err(|error| UsageError::new(error.to_string()))?,
            max_skills: args.max_skills.or(config.max_skills),
            strict: args.strict || config.strict,
            validation: config.validation,
            watch: !args.no_watch && (args.watch || config.watch.unwrap_or(true)),
        })
    }

    /// Reads the skills that do not depend on a session, and gives what finds those that do.
    ///
    /// # Errors
    /// A skill that was named cannot be loaded, or a site's list of skills cannot be fetched.
    pub fn load(self) -> anyhow::Result<Skills> {
        let mut named = Vec::new();
        for source in self.named {
            match source {
                Named::Directory(path) => {
                    let path = std::path::absolute(path)?;
                    let (skill, diagnostics) =
                        load_named(&path, self.strict).map_err(|error| refuse(&path, &error))?;
                    named.push(NamedNow::Stored(NamedSkill::new(path, skill, diagnostics)));
                }
                Named::Virtual(skill) => {
                    let (skill, warnings) = skill
                        .build(self.validation)
                        .map_err(|error| UsageError::new(format!("{error:#}")))?;
                    let warnings =
                        warnings.into_iter().map(|text| Diagnostic::warning("missing-program", text));
                    named.push(NamedNow::Fixed(Arc::new(skill), warnings.collect()));
                }
            }
        }
        let mut roots = Vec::new();
        if self.discover.contains(&Discover::User) {
            roots.extend(user_roots());
        }
        for root in self.roots {
            if !root.is_dir() {
                let text =
                    format!("cannot look for skills in {}: there is no such directory", root.display());
                return Err(UsageError::new(text).into());
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
        let rest = discovery(roots);
        let max_skills = rest.limits.max_skills;
        let rest = Found::start(rest);
        let remote = remote::load(&self.sources, &self.filter, max_skills)?;
        Ok(Skills::new(named, self.strict, rest, remote, project).watched(self.watch))
    }
}

/// Loads a skill that was named by an absolute path: what cannot be loaded is an error, and so is any broken rule with
/// `--strict`.
fn load_named(path: &Path, strict: bool) -> Result<(Skill, Vec<Diagnostic>), LoadError> {
    let (skill, diagnostics) = load_dir(path)?;
    if strict && let Source::Stored(stored) = &skill.source {
        let file = stored.file();
        let bytes = std::fs::read(&file).map_err(|error| {
            LoadError::new(&file, vec![Diagnostic::error("unreadable-file", error.to_string())])
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let broken = validate_bytes(&bytes, &ParseContext::in_directory(&name), Verdict::Spec);
        if !broken.is_empty() {
            return Err(LoadError::new(file, broken));
        }
    }
    Ok((skill, diagnostics))
}

fn refuse(path: &Path, error: &LoadError) -> UsageError {
    let lines: Vec<_> = error.diagnostics.iter().map(|finding| finding.in_file(&error.path)).collect();
    UsageError::new(format!("cannot load the skill in {}\n{}", path.display(), lines.join("\n")))
}
