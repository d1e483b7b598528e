//! `remove`: removes a source from the configuration and the lock file.

use std::process::ExitCode;

use acp_skills::config::{SourceEntry, edit};
use clap::Args;
use serde_json::json;
use skills_core::text::shown_path;
use skills_sources::Address;

use super::{CommonArgs, Target, known, lock_error, named, tidy, updater};
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
    let matching = named(known(&target)?, &source)?;
    let updater = updater(&common)?;
    let mut removed = Vec::new();
    for known in matching {
        let is_in_config =
            known.lock == target.lock() && target.config.all_sources().any(|entry| is(entry, &known.address));
        let remove_from = |text: &str| {
            let failed = || not_removed(&target, &known.address);
            let mut text = text.to_owned();
            loop {
                let sources = edit::sources(&text).ok_or_else(failed)?;
                let Some(number) = sources.iter().position(|entry| is(entry, &known.address)) else {
                    return Ok(text);
                };
                text = edit::remove_source(&text, number).map_err(|_| failed())?;
            }
        };
        if is_in_config {
            // If we can't edit the configuration, fail here, before the lock file is written.
            if remove_from(&target.text)? == target.text {
                return Err(not_removed(&target, &known.address).into());
            }
        }
        if updater.forget(&known.lock, known.address.as_str()).map_err(lock_error)? {
            removed.push(known.lock.clone());
        }
        if is_in_config {
            target.change(&updater, remove_from)?;
            removed.push(target.path.clone());
        }
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

/// Returns true if the entry has this address.
fn is(entry: &SourceEntry, address: &Address) -> bool {
    Address::parse(&entry.source).is_ok_and(|parsed| parsed == *address)
}

/// Returns the error for a source that can't be removed automatically, for example because its list has an unsupported format.
fn not_removed(target: &Target, address: &Address) -> UsageError {
    let path = shown_path(&target.path);
    UsageError::new(format!("cannot remove source from {path}, because the file format is not supported"))
        .hint(format!("remove {address} from the file in an editor"))
}
