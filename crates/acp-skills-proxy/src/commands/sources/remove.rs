//! `remove`: removes a source from the configuration and the lock file.

use std::process::ExitCode;

use acp_skills::config::{SourceEntry, edit};
use clap::Args;
use serde_json::json;
use skills_core::text::shown_path;
use skills_sources::{Address, LockFile};

use super::{
    CommonArgs, Target,
    known::{known, named},
    lock_error, tidy, updater,
};
use crate::{error::UsageError, output};

/// The flags of `remove`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy remove github:acme/skills
  acp-skills-proxy remove github:acme/skills --config ./skills.yaml")]
pub(crate) struct RemoveArgs {
    /// The address of the source.
    source: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// Removes the source. Its skills stay in the cache until they were not used for 30 days.
///
/// # Errors
/// Returns an error if the source is unknown, or if the configuration or the lock file can't be written.
pub(crate) fn run(args: RemoveArgs) -> anyhow::Result<ExitCode> {
    let RemoveArgs { source, common } = args;
    let target = Target::existing(&common)?;
    let mut matching = named(known(&target)?, &source)?;
    // With `--config`, the user doesn't mean approvals of the same source for `--source`.
    if common.config.config.is_some() && matching.iter().any(|known| known.lock == target.lock()) {
        matching.retain(|known| known.lock == target.lock());
    }
    let updater = updater(&common)?;
    let (mut removed, mut kept) = (Vec::new(), Vec::new());
    for known in matching {
        let is = |entry: &SourceEntry| entry.is_at(&known.address);
        let has_lock = known.lock == target.lock();
        let is_listed = has_lock && target.config.sources.iter().any(is);
        let is_in_projects = has_lock && target.is_in_projects(&known.address);
        if is_in_projects {
            kept.push(known.address.clone());
        }
        let remove_from = |text: &str| {
            let failed = || not_removed(&target, &known.address);
            let mut text = text.to_owned();
            loop {
                let sources = edit::sources(&text).ok_or_else(failed)?;
                let Some(number) = sources.iter().position(is) else {
                    return Ok(text);
                };
                text = edit::remove_source(&text, number).map_err(|_| failed())?;
            }
        };
        if is_listed && remove_from(&target.text)? == target.text {
            return Err(not_removed(&target, &known.address).into());
        }
        // A lock file that can't be read must not stop this half-way.
        LockFile::read(&known.lock).map_err(lock_error)?;
        if is_listed {
            target.change(&updater, remove_from)?;
            removed.push(target.path.clone());
        }
        // A project still needs its approved version.
        if !is_in_projects && updater.forget(&known.lock, known.address.as_str()).map_err(lock_error)? {
            removed.push(known.lock.clone());
        }
    }
    if let Some(address) = kept.first().filter(|_| removed.is_empty()) {
        return Err(still_used(&target, address).into());
    }
    for address in &kept {
        output::note(&still_used(&target, address).to_string());
    }
    removed.dedup();
    tidy(&updater);
    if common.json {
        output::print_json(&json!({ "source": source, "removedFrom": removed }))?;
    } else {
        let places: Vec<_> = removed.iter().map(|path| shown_path(path)).collect();
        output::print(&format!("Removed from {}.\n", places.join(" and ")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the error for a source of `projects`.
fn still_used(target: &Target, address: &Address) -> UsageError {
    let path = shown_path(&target.path);
    UsageError::new(format!("`{address}` is still used, because `projects` in {path} contains it"))
        .hint("remove it from `projects` in an editor, then retry")
}

/// Returns the error for a source that can't be removed automatically, for example because its list has an unsupported format.
fn not_removed(target: &Target, address: &Address) -> UsageError {
    let path = shown_path(&target.path);
    UsageError::new(format!("cannot remove source from {path}, because the file format is not supported"))
        .hint(format!("remove {address} from the file in an editor"))
}
