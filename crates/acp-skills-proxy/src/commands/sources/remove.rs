//! `remove`: one source less, in configuration and lock.

use std::process::ExitCode;

use acp_skills::{config::edit, sources::Address};
use clap::Args;
use serde_json::json;
use skills_core::text::shown_path;

use super::{CommonArgs, Target, known, lock_error, named, tidy, updater};
use crate::{error::UsageError, output};

/// Flags of `remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The source.
    source: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// Removes the source. What was fetched of it goes from the cache when nobody has used it for a while.
///
/// # Errors
/// There is no such source, or configuration or lock cannot be written.
pub(crate) fn run(args: RemoveArgs) -> anyhow::Result<ExitCode> {
    let RemoveArgs { source, common } = args;
    let target = Target::read(&common)?;
    let meant = named(known(&target)?, &source)?;
    let updater = updater(&common)?;
    let mut removed = Vec::new();
    for it in meant {
        let place = target.sources.iter().position(|entry| {
            it.lock == target.lock()
                && Address::parse(&entry.source).is_ok_and(|address| address == it.address)
        });
        // Nothing is written before it is known that all of it can be.
        let edited =
            place.map(|number| edit::remove_source(&target.text, number)).transpose().map_err(|error| {
                let path = shown_path(&target.path);
                UsageError::new(format!("cannot take the source out of {path}: {error}"))
                    .hint(format!("take it out yourself, wherever it stands: {}", it.address))
            })?;
        if updater.forget(&it.lock, it.address.as_str()).map_err(lock_error)? {
            removed.push(it.lock.clone());
        }
        if let Some(edited) = edited {
            target.write(&edited)?;
            removed.push(target.path.clone());
        }
    }
    tidy(&updater);
    if common.json {
        output::print_json(&json!({ "source": source, "removedFrom": removed }))?;
    } else {
        let places: Vec<_> = removed.iter().map(|path| shown_path(path)).collect();
        output::print(&format!("Removed from {}.\n", places.join(" and ")))?;
    }
    Ok(ExitCode::SUCCESS)
}
