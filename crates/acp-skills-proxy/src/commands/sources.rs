//! `add`, `update`, `remove` and `sources`: which skills come from elsewhere, and what of them is approved.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | which sources there are, in which configuration, and asking |
//! | `add`, `update`, `remove`, `list` | the command of that name; `list` is `sources` |
//! | `findings` | what a scan finds in skills before they are approved |
//! | `show` | what is shown before somebody approves |

pub(crate) mod add;
mod findings;
pub(crate) mod list;
pub(crate) mod remove;
mod show;
pub(crate) mod update;

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use acp_skills::config::{Config, SourceEntry};
use acp_skills_runtime::processes::Processes;
use clap::Args;
use skills_core::text::shown_path;
use skills_sources::{Address, LockFile, Updater, lock_beside, user_lock};

use crate::{
    args::{ConfigArgs, LogArgs},
    error::UsageError,
    log, output,
};

/// Flags that these commands share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Print JSON. Nobody is asked: only what --yes approves is written.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// A source, and where it is written what was approved of it.
pub(super) struct Known {
    pub(super) address: Address,
    pub(super) lock: PathBuf,
}

/// The configuration file that the commands write to.
pub(super) struct Target {
    /// It need not exist.
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) sources: Vec<SourceEntry>,
}

impl Target {
    /// Reads it.
    ///
    /// # Errors
    /// There is no place for one, or it cannot be read.
    pub(super) fn read(args: &CommonArgs) -> anyhow::Result<Self> {
        let path = args.config.path_to_write().ok_or_else(|| {
            UsageError::new("there is no configuration file")
                .hint("name one with `--config FILE`; it is made when there is none")
        })?;
        if !path.exists() {
            return Ok(Self { path, text: String::new(), sources: Vec::new() });
        }
        let config = Config::read(&path)?;
        let text = fs::read_to_string(&path)?;
        Ok(Self { path, text, sources: config.all_sources().cloned().collect() })
    }

    /// Changes what it says now: since it was read, somebody may have written something else into it. Whole or not at all,
    /// and one process at a time.
    pub(super) fn change(
        &self,
        updater: &Updater,
        edit: impl FnOnce(&str) -> Result<String, UsageError>,
    ) -> Result<(), UsageError> {
        let failed = |what: &str, error: io::Error| {
            UsageError::failed(format_args!("cannot {what} {}", shown_path(&self.path)), error)
        };
        let _lock = updater.lock_for_change(&self.path).map_err(|error| failed("write", error))?;
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|error| failed("read", error))?,
        };
        let edited = edit(&text)?;
        if edited == text {
            return Ok(());
        }
        let write = || -> io::Result<()> {
            let parent = self.path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(parent)?;
            skills_sources::disk::write(&self.path, &edited)
        };
        write().map_err(|error| failed("write", error))
    }

    pub(super) fn lock(&self) -> PathBuf {
        lock_beside(&self.path)
    }
}

/// All sources that are known: those of the configuration, and those that flags have named before.
pub(super) fn known(target: &Target) -> anyhow::Result<Vec<Known>> {
    let mut known = Vec::new();
    for entry in &target.sources {
        known.push(Known {
            address: Address::parse(&entry.source).map_err(acp_skills::config::ConfigError::from)?,
            lock: target.lock(),
        });
    }
    let lock = user_lock();
    for source in LockFile::read(&lock).map_err(lock_error)?.sources() {
        // One that an older or newer version of this program has written.
        if let Ok(address) = Address::parse(source) {
            known.push(Known { address, lock: lock.clone() });
        }
    }
    known.dedup_by(|a, b| a.address == b.address && a.lock == b.lock);
    Ok(known)
}

/// Those that a user means by an address.
pub(super) fn named(known: Vec<Known>, source: &str) -> anyhow::Result<Vec<Known>> {
    let address = Address::parse(source).map_err(acp_skills::config::ConfigError::from)?;
    let is_meant = |it: &Known| it.address == address || it.address.place() == address.place();
    let (meant, others): (Vec<_>, Vec<_>) = known.into_iter().partition(is_meant);
    if meant.is_empty() {
        let names: Vec<_> = others.iter().map(|it| format!("`{}`", it.address)).collect();
        let hint = if names.is_empty() {
            format!("`acp-skills-proxy add {address}` adds it")
        } else {
            format!("there are {}", names.join(", "))
        };
        return Err(UsageError::new(format!("`{address}` is not one of your sources")).hint(hint).into());
    }
    Ok(meant)
}

/// What fetches, in processes that end with this one.
pub(super) fn updater(args: &CommonArgs) -> anyhow::Result<Updater> {
    let mut config = Config::default();
    args.log.clone().override_in(&mut config);
    log::start(&config)?;
    let processes = Processes::default();
    processes.prepare(&std::env::current_exe()?);
    Updater::new(Some(Arc::new(processes))).map_err(source_error)
}

/// How long nobody has used what is removed by itself.
const LONG_UNUSED: Duration = Duration::from_hours(24 * 30);

/// Keeps the cache from growing for ever.
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

/// Asks on the terminal, unless it was said already.
///
/// # Errors
/// There is nobody to ask.
pub(super) fn agreed(question: &str, yes: bool) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        let message = "nothing is approved: there is no terminal to ask on";
        return Err(UsageError::new(message).hint("`--yes` approves what is shown").into());
    }
    Ok(output::ask(question))
}
