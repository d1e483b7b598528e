//! The flags that select skills, and their conversion back to a command line.

use std::{ffi::OsString, io, num::NonZeroU32, path::PathBuf};

use acp_skills::config::{CheckUpdates, Config, Discover, SkillEntry, SourceEntry, Trusted, config_file};
use clap::{Args, ValueEnum};
use skills_sources::{Address, LockFile, user_lock};

use super::{Flag, number, path};

/// The flags that select skills.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Skills")]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct SkillArgs {
    /// Use the skill in a directory, which contains a SKILL.md. Repeatable; the order is kept.
    #[arg(long = "skill", value_name = "DIR", value_parser = path())]
    pub skill: Vec<PathBuf>,
    /// Use all skills below a directory, up to a depth of 6. Repeatable.
    #[arg(long = "skills", value_name = "DIR", value_parser = path())]
    pub roots: Vec<PathBuf>,
    /// Use the skills of a git repository (`github:OWNER/REPO[/PATH][@REF]`, `gitlab:…`, the URL of its page,
    /// `git+https://…[#REF:PATH]`, `git+ssh://…`, `git+file:///…`), of an archive (`https://….tar.gz` or `.zip`, with
    /// `#sha256=…` for a fixed version), of an npm package (`npm:[@SCOPE/]NAME[@VERSION]`), or of a web site with an index of skills
    /// (https, or http on loopback). They are fetched once and pinned until `update`. Using this flag approves the first version,
    /// except skills in which a scan finds a high risk; approve those with `update`. The skills of an MCP server (`mcp+https://…`)
    /// wait until you trust them in a session. Repeatable.
    #[arg(long = "source", value_name = "SOURCE")]
    pub sources: Vec<String>,
    /// Fetch only sources that are in skills.lock.
    #[arg(long)]
    pub locked: bool,
    /// Search for skills in standard directories: `user` (~/.agents/skills, ~/.claude/skills,
    /// $XDG_CONFIG_HOME/agents/skills; `agents`, `config` and `claude` are parts of it), `project` (.skills, .agents/skills, .claude/skills, from each of the
    /// session's directories up to the root of its repository) and `project-tree` (the same, and the directories below, up to 5 levels down). Skills of a project are used only after you trust them: the editor
    /// asks you if it supports such questions; otherwise, type `/skills trust`, or run `acp-skills-proxy trust`.
    #[arg(long, value_name = "WHERE", value_delimiter = ',')]
    pub discover: Vec<Discover>,
    /// Use the skills of a `project` without asking. Only use this if you trust everyone who can write to the project.
    #[arg(long, value_name = "WHOSE", value_delimiter = ',')]
    pub trust: Vec<Trusted>,
    /// Use only skills whose name matches a glob, such as `pdf-*`. Repeatable.
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// Skip skills whose name matches a glob. Repeatable; takes precedence over --include.
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Use a SKILL.md within the directory of another skill as a skill, too. Without this flag, it is a file of the outer skill.
    #[arg(long)]
    pub nested: bool,
    /// The maximum number of skills to find [default: 10000].
    #[arg(long, value_name = "NUMBER", value_parser = number::<usize>(), allow_negative_numbers = true)]
    pub max_skills: Option<usize>,
    /// The maximum number of MiB to receive from a git repository, or to unpack from an archive [default: 256].
    #[arg(long, value_name = "MIB", value_parser = number::<NonZeroU32>(), allow_negative_numbers = true)]
    pub max_fetch: Option<NonZeroU32>,
    /// Look for new versions of sources in the background, at most once a day (`daily`), or not at all (`never`). `/skills` and
    /// `acp-skills-proxy sources` show the result [default: daily, or never if the variable CI is set].
    #[arg(long, value_name = "WHEN")]
    pub check_updates: Option<CheckUpdates>,
    /// Reject skills that violate any rule of the specification.
    #[arg(long)]
    pub strict: bool,
    /// Watch for skills that are added, changed or removed while the agent runs. This is the default.
    #[arg(long, overrides_with = "no_watch")]
    pub watch: bool,
    /// Read skills only at the start and on `/skills reload`.
    #[arg(long, overrides_with = "watch")]
    pub no_watch: bool,
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// The flags that select a configuration file.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConfigArgs {
    /// Read a configuration file, which can set all flags and define skills. Flags take precedence [default:
    /// skills.yaml in $XDG_CONFIG_HOME/acp-skills-proxy or the platform's configuration directory, if it exists].
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub config: Option<PathBuf>,
    /// Do not read a configuration file.
    #[arg(long, conflicts_with = "config")]
    pub no_config: bool,
}

impl ConfigArgs {
    /// Returns the file to read: the one from `--config`, or the default file if it exists.
    pub(crate) fn path_to_read(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| self.path_to_write().filter(|path| path.is_file()))
    }

    /// Returns the file to write, which need not exist.
    pub(crate) fn path_to_write(&self) -> Option<PathBuf> {
        if self.no_config { None } else { self.config.clone().or_else(config_file) }
    }
}

impl SkillArgs {
    /// Returns true if the flags or a configuration file select skills.
    pub(crate) fn names_skills(&self) -> bool {
        let lists =
            [self.skill.is_empty(), self.roots.is_empty(), self.sources.is_empty(), self.discover.is_empty()];
        self.config.path_to_read().is_some() || lists.contains(&false)
    }

    /// Converts the flags to words of a command line. Paths are absolute, so that the command line works in any
    /// directory.
    ///
    /// # Errors
    /// Returns an error if the working directory is not available.
    pub(crate) fn words(&self) -> io::Result<Vec<OsString>> {
        let mut words = Vec::new();
        let mut add = |flag: &str, value: OsString| words.extend([flag.into(), value]);
        let paths = [("--skill", &self.skill), ("--skills", &self.roots)];
        for (flag, path) in paths.iter().flat_map(|(flag, paths)| paths.iter().map(move |path| (flag, path)))
        {
            add(flag, std::path::absolute(path)?.into());
        }
        for (flag, texts) in
            [("--source", &self.sources), ("--include", &self.include), ("--exclude", &self.exclude)]
        {
            for text in texts {
                add(flag, text.into());
            }
        }
        let places: Vec<_> = self.discover.iter().filter_map(ValueEnum::to_possible_value).collect();
        if !places.is_empty() {
            let places: Vec<_> = places.iter().map(clap::builder::PossibleValue::get_name).collect();
            add("--discover", places.join(",").into());
        }
        if self.trust.contains(&Trusted::Project) {
            add("--trust", "project".into());
        }
        if let Some(number) = self.max_skills {
            add("--max-skills", number.to_string().into());
        }
        if let Some(number) = self.max_fetch {
            add("--max-fetch", number.to_string().into());
        }
        let checks = self.check_updates.as_ref().and_then(ValueEnum::to_possible_value);
        if let Some(checks) = checks {
            add("--check-updates", checks.get_name().into());
        }
        if let Some(config) = &self.config.config {
            add("--config", std::path::absolute(config)?.into());
        }
        let switches = [
            ("--nested", self.nested),
            ("--strict", self.strict),
            ("--no-watch", self.no_watch),
            ("--locked", self.locked),
            ("--no-config", self.config.no_config),
        ];
        words.extend(switches.iter().filter(|switch| switch.1).map(|switch| switch.0.into()));
        Ok(words)
    }

    pub(super) fn override_in(self, config: &mut Config) {
        prepend(&mut config.skills, self.skill.into_iter().map(SkillEntry::Directory));
        prepend(&mut config.roots, self.roots);
        let named: Vec<_> = self.sources.into_iter().map(|source| entry_of(source, config)).collect();
        prepend(&mut config.sources, named);
        self.locked.overrides(&mut config.locked);
        prepend(&mut config.discover, self.discover);
        prepend(&mut config.trust, self.trust);
        if !self.include.is_empty() {
            config.include = self.include;
        }
        if !self.exclude.is_empty() {
            config.exclude = self.exclude;
        }
        self.nested.overrides(&mut config.nested);
        self.max_skills.overrides(&mut config.max_skills);
        self.max_fetch.overrides(&mut config.max_fetch);
        self.check_updates.overrides(&mut config.check_updates);
        self.strict.overrides(&mut config.strict);
        if self.watch || self.no_watch {
            config.watch = Some(!self.no_watch);
        }
    }
}

/// Returns the entry for the source of a flag. If the configuration has this source, its entry applies: the lock file beside it has the
/// user's decisions, such as pins, and naming the source must not approve another version. The filters of `projects` are only for these
/// projects. If the source was named before, the decisions about it in the user's own lock file stay.
fn entry_of(source: String, config: &Config) -> SourceEntry {
    let address = Address::parse(&source).ok();
    // The closest entry comes first, because a file can have a source in several ranges of versions.
    let is_same: [&dyn Fn(&&SourceEntry) -> bool; 4] = [
        &|entry| entry.source.trim() == source.trim(),
        &|entry| address.as_ref().is_some_and(|address| entry.is_at(address)),
        &|entry| address.as_ref().is_some_and(|address| entry.has_place_of(address)),
        &|entry| address.as_ref().is_some_and(|address| entry.has_source_of(address)),
    ];
    let of_file = is_same.iter().find_map(|is_same| config.sources.iter().find(is_same).cloned());
    let of_projects = || {
        let entry = is_same.iter().find_map(|is_same| config.all_sources().find(is_same))?;
        Some(entry.clone().without_filters())
    };
    let Some(entry) = of_file.or_else(of_projects) else { return SourceEntry::new(source) };
    let was_named = LockFile::read(&user_lock()).is_ok_and(|lock| lock.get(source.trim()).is_some());
    if was_named { entry.in_own_lock(source) } else { entry }
}

/// Inserts values of flags before the values of the file.
fn prepend<T>(list: &mut Vec<T>, flags: impl IntoIterator<Item = T>) {
    list.splice(0..0, flags);
}
