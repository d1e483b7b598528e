//! Which skills there are: the flags, what they override, and the same as words of a command line.

use std::{ffi::OsString, io, path::PathBuf};

use acp_skills::config::{Config, Discover, SkillEntry, SourceEntry, Trusted, config_file};
use clap::{Args, ValueEnum};

use super::{Flag, path};

/// Which skills there are.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Skills")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct SkillArgs {
    /// A skill: a directory with a SKILL.md. Repeatable; the order is kept.
    #[arg(long = "skill", value_name = "DIR", value_parser = path())]
    pub skill: Vec<PathBuf>,
    /// A directory to look for skills in, to depth 6. Repeatable.
    #[arg(long = "skills", value_name = "DIR", value_parser = path())]
    pub roots: Vec<PathBuf>,
    /// Skills from elsewhere, fetched once and then pinned until `update`: a git repository (`github:OWNER/REPO[/PATH][@REF]`,
    /// `gitlab:…`, the address of its page, `git+https://…[#REF:PATH]`, `git+ssh://…`, `git+file:///…`), or a web site with
    /// an index of skills (https, or http on loopback). Naming it approves what it has at first, but for skills in which a
    /// scan finds a high risk: those wait for `update`. Repeatable.
    #[arg(long = "source", value_name = "SOURCE")]
    pub sources: Vec<String>,
    /// Fetch nothing that is not in skills.lock.
    #[arg(long)]
    pub locked: bool,
    /// Where else to look: `user` (~/.agents/skills, ~/.claude/skills, $XDG_CONFIG_HOME/agents/skills) and `project`
    /// (.skills, .agents/skills, .claude/skills from the session's directory up to the repository's root). A project's
    /// skills speak to your agent, so each waits until you trust it: the editor asks where it can, and `/skills trust` does.
    #[arg(long, value_name = "WHERE", value_delimiter = ',')]
    pub discover: Vec<Discover>,
    /// Use what --discover finds in a `project` without asking: only where you trust all who write to it.
    #[arg(long, value_name = "WHOSE", value_delimiter = ',')]
    pub trust: Vec<Trusted>,
    /// Only skills whose names match; a glob such as `pdf-*`. Repeatable.
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// No skills whose names match. Repeatable; wins over --include.
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// How many skills are looked for at most [default: 10000].
    #[arg(long, value_name = "NUMBER")]
    pub max_skills: Option<usize>,
    /// Refuse skills that break any rule of the specification.
    #[arg(long)]
    pub strict: bool,
    /// Notice when skills are added, changed or removed while the agent runs. This is the default.
    #[arg(long, overrides_with = "no_watch")]
    pub watch: bool,
    /// Look at skills at the start only, and when a user types `/skills reload`.
    #[arg(long, overrides_with = "watch")]
    pub no_watch: bool,
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Which configuration file.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConfigArgs {
    /// A file with everything that flags can say, and with skills of its own; flags win [default: skills.yaml in
    /// $XDG_CONFIG_HOME/acp-skills-proxy, or where the platform keeps such files, if there is one].
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub config: Option<PathBuf>,
    /// Read no configuration file.
    #[arg(long, conflicts_with = "config")]
    pub no_config: bool,
}

impl ConfigArgs {
    /// The file to read: the one that is named, or the one that is found.
    pub(crate) fn path_to_read(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| self.path_to_write().filter(|path| path.is_file()))
    }

    /// The file to write, which need not exist.
    pub(crate) fn path_to_write(&self) -> Option<PathBuf> {
        if self.no_config { None } else { self.config.clone().or_else(config_file) }
    }
}

impl SkillArgs {
    /// Whether they say where skills are.
    pub(crate) fn names_skills(&self) -> bool {
        let lists =
            [self.skill.is_empty(), self.roots.is_empty(), self.sources.is_empty(), self.discover.is_empty()];
        self.config.path_to_read().is_some() || lists.contains(&false)
    }

    /// The same as words of a command line that means the same in any directory.
    ///
    /// # Errors
    /// There is no working directory that paths could begin in.
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
        if let Some(config) = &self.config.config {
            add("--config", std::path::absolute(config)?.into());
        }
        let switches = [
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
        prepend(&mut config.sources, self.sources.into_iter().map(SourceEntry::new));
        self.locked.overrides(&mut config.locked);
        prepend(&mut config.discover, self.discover);
        prepend(&mut config.trust, self.trust);
        if !self.include.is_empty() {
            config.include = self.include;
        }
        if !self.exclude.is_empty() {
            config.exclude = self.exclude;
        }
        self.max_skills.overrides(&mut config.max_skills);
        self.strict.overrides(&mut config.strict);
        if self.watch || self.no_watch {
            config.watch = Some(!self.no_watch);
        }
    }
}

/// What flags list comes before what the file lists.
fn prepend<T>(list: &mut Vec<T>, flags: impl IntoIterator<Item = T>) {
    list.splice(0..0, flags);
}
