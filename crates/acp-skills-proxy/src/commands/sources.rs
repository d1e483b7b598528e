//! `add`, `update`, `remove` and `sources`: manage the sources of skills and their approval.
//!
//! This file has what the commands share: flags and the configuration file.
//!
//! | file | contents |
//! |---|---|
//! | `add`, `update`, `outdated`, `remove`, `list` | the command of that name; `list` is `sources` |
//! | `approval` | the flags and the question for approval |
//! | `choices` | the user's answers about single skills |
//! | `known` | the sources that the user has named, and their lock files |
//! | `fetching` | comparing several sources at the same time |
//! | `trust` | `trust` and `untrust`, for the skills of a project |
//! | `why` | explains a skill |
//! | `pin` | `sources pin` and `sources unpin` |
//! | `findings` | scans skills before they are approved |
//! | `shadowed` | new skills with the name of a skill that is used already |
//! | `show` | shows skills and changes before they are approved |

pub(crate) mod add;
mod approval;
mod choices;
mod fetching;
mod findings;
mod known;
pub(crate) mod list;
pub(crate) mod outdated;
mod pin;
pub(crate) mod remove;
mod shadowed;
mod show;
pub(crate) mod trust;
pub(crate) mod update;
pub(crate) mod why;

use std::{io, num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use acp_skills::config::{Config, MAX_BYTES, SourceAccess, SourceEntry, bytes_of_mebibytes, shorten_home};
use acp_skills_servers::processes::Processes;
use clap::Args;
use skills_core::{
    discovery::{Filter, FilterError},
    text::shown_path,
};
use skills_sources::{
    Address, Offer, SkillChange, Updater,
    disk::{Resolved, bounded},
    lock_beside,
};

use self::{approval::ApprovalArgs, known::Known};
use crate::{
    args::{ConfigArgs, LogArgs, number},
    error::UsageError,
    log,
};

/// The flags that the commands share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// The flag of the commands that fetch.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FetchArgs {
    /// The maximum number of MiB to receive from a git repository, or to unpack from an archive [default: 256].
    #[arg(long, value_name = "MIB", value_parser = number::<NonZeroU32>(), allow_negative_numbers = true)]
    max_fetch: Option<NonZeroU32>,
}

impl FetchArgs {
    /// Returns the limit of the flag, or else of the configuration file, in bytes.
    pub(super) fn max_bytes(&self, target: &Target) -> Option<u64> {
        self.max_fetch.map(bytes_of_mebibytes).or(target.config.max_fetch_bytes())
    }
}

/// The configuration file that the commands write to.
pub(super) struct Target {
    /// The path of the file, which need not exist.
    pub(super) path: PathBuf,
    /// The contents of the file. Empty if it does not exist.
    pub(super) text: String,
    /// The contents of the file. The default if it does not exist.
    pub(super) config: Config,
}

impl Target {
    /// Reads the file, which exists if `--config` names it.
    ///
    /// # Errors
    /// The same as those of [`read`](Self::read), and an error if the file of `--config` does not exist.
    pub(super) fn existing(args: &CommonArgs) -> anyhow::Result<Self> {
        if let Some(path) = args.config.config.as_deref().filter(|path| !path.exists()) {
            let message = format!("no such configuration file: {}", shorten_home(path));
            return Err(UsageError::new(message)
                .hint("`acp-skills-proxy add SOURCE --config FILE` creates one")
                .into());
        }
        Self::read(args)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Returns an error if the flags exclude a configuration file, if the platform has no default path for it, or if the file can't be
    /// read or is invalid.
    pub(super) fn read(args: &CommonArgs) -> anyhow::Result<Self> {
        let path = args.config.path_to_write().ok_or_else(|| {
            UsageError::new("no configuration file to change")
                .hint("use `--config FILE`; the file is created if it does not exist")
        })?;
        if !path.exists() {
            return Ok(Self { path, text: String::new(), config: Config::default() });
        }
        let (config, text) = log::with_warnings_on_stderr(|| Config::read_with_text(&path))?;
        Ok(Self { path, text, config })
    }

    /// Returns all sources with the filters that apply to them.
    ///
    /// # Errors
    /// Returns an error if a glob is invalid.
    fn sources(&self) -> Result<Vec<(&SourceEntry, Vec<Filter>)>, FilterError> {
        let common = self.filter()?;
        let mut sources = Vec::new();
        // MCP servers have no versions.
        for entry in self.config.sources.iter().filter(|entry| entry.server_url().is_none()) {
            sources.push((entry, vec![common.clone(), filter(entry)?]));
        }
        for project in &self.config.projects {
            let own = Filter::new(&project.include, &project.exclude)?;
            for entry in &project.sources {
                sources.push((entry, vec![common.clone(), own.clone(), filter(entry)?]));
            }
        }
        Ok(sources)
    }

    /// Returns the filter of the whole configuration.
    ///
    /// # Errors
    /// Returns an error if a glob is invalid.
    pub(super) fn filter(&self) -> Result<Filter, FilterError> {
        Filter::new(&self.config.include, &self.config.exclude)
    }

    /// Reads the file again, applies `edit` and writes the result atomically. Another process may have changed the file in the
    /// meantime. A file lock prevents concurrent changes by other processes of this program.
    ///
    /// # Errors
    /// Returns an error if the file can't be locked, read or written, and the error of `edit`.
    pub(super) fn change(
        &self,
        updater: &Updater,
        edit: impl FnOnce(&str) -> Result<String, UsageError>,
    ) -> Result<(), UsageError> {
        let failed = |what: &str, error: io::Error| {
            let timed_out = error.kind() == io::ErrorKind::TimedOut;
            let failed = UsageError::failed(format_args!("cannot {what} {}", shown_path(&self.path)), error);
            let hint = "wait for that process to end, or end it, then retry";
            if timed_out { failed.hint(hint) } else { failed }
        };
        let _lock = updater.lock_for_change(&self.path).map_err(|error| failed("write", error))?;
        let file = Resolved::new(&self.path).map_err(|error| failed("write", error))?;
        let text = match bounded::read_text(file.path(), MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|error| failed("read", error))?,
        };
        let edited = edit(&text)?;
        if edited == text {
            return Ok(());
        }
        file.write(&edited).map_err(|error| failed("write", error))
    }

    /// Returns true if `projects` in the configuration has the source. The commands don't change `projects`.
    pub(super) fn is_in_projects(&self, address: &Address) -> bool {
        self.config.projects.iter().flat_map(|project| &project.sources).any(|entry| entry.is_at(address))
    }

    /// Returns the path of the lock file in the directory of the configuration file.
    pub(super) fn lock(&self) -> PathBuf {
        lock_beside(&self.path)
    }
}

/// Returns the filter of an entry of `sources`.
///
/// # Errors
/// Returns an error if a glob is invalid.
pub(super) fn filter(entry: &SourceEntry) -> Result<Filter, FilterError> {
    Filter::new(&entry.include, &entry.exclude)
}

/// Starts the log and returns an updater with the limits and the credentials of a configuration.
pub(super) fn fetching_updater(
    args: &CommonArgs,
    fetch: &FetchArgs,
    target: &Target,
) -> anyhow::Result<Updater> {
    let (updater, processes) = start(args)?;
    let access = SourceAccess::new(&target.config, &processes).with_directory(target.path.parent());
    Ok(updater.with_max_fetch_bytes(fetch.max_bytes(target)).with_credentials(Some(Arc::new(access))))
}

/// Starts the log and returns the updater. Its child processes end when this process ends.
pub(super) fn updater(args: &CommonArgs) -> anyhow::Result<Updater> {
    Ok(start(args)?.0)
}

fn start(args: &CommonArgs) -> anyhow::Result<(Updater, Processes)> {
    let mut config = Config::default();
    args.log.clone().override_in(&mut config);
    log::start(&config)?;
    let processes = Processes::default();
    processes.prepare(&std::env::current_exe()?);
    let updater = Updater::new(Some(Arc::new(processes.clone()))).map_err(source_error)?;
    Ok((updater, processes))
}

/// The age after which unused versions are removed from the cache automatically.
const LONG_UNUSED: Duration = Duration::from_hours(24 * 30);

/// Removes versions from the cache that were not used for 30 days.
pub(super) fn tidy(updater: &Updater) {
    for path in updater.prune(LONG_UNUSED) {
        tracing::info!("removed {} from the cache", shown_path(&path));
    }
}

pub(super) fn source_error(error: skills_sources::SourceError) -> anyhow::Error {
    let hint = error.hint();
    UsageError::of(error).hint(hint).into()
}

pub(super) fn lock_error(error: skills_sources::LockError) -> anyhow::Error {
    let hint = error.hint();
    UsageError::of(error).hint(hint).into()
}

/// Keeps the local files of an offer that was not approved, if the user has to look at some of them.
pub(super) fn keep_unseen<'a>(offer: &Offer, changes: impl IntoIterator<Item = &'a SkillChange>) {
    let is_unseen = |change: &SkillChange| !show::unseen(std::slice::from_ref(change)).is_empty();
    if changes.into_iter().any(is_unseen) {
        offer.keep_files();
    }
}
