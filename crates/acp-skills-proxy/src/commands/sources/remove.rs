//! `remove`: one source less, in configuration and lock.

use std::process::ExitCode;

use acp_skills::config::{SourceEntry, edit};
use clap::Args;
use serde_json::json;
use skills_core::text::shown_path;
use skills_sources::Address;

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
        let is_in_config =
            it.lock == target.lock() && target.sources.iter().any(|entry| is(entry, &it.address));
        let take_out = |text: &str| {
            let failed = || not_taken_out(&target, &it.address);
            let mut text = text.to_owned();
            loop {
                let sources = edit::sources(&text).ok_or_else(failed)?;
                let Some(number) = sources.iter().position(|entry| is(entry, &it.address)) else {
                    return Ok(text);
                };
                text = edit::remove_source(&text, number).map_err(|_| failed())?;
            }
        };
        if is_in_config {
            // Nothing is written before it is known that all of it can be.
            if take_out(&target.text)? == target.text {
                return Err(not_taken_out(&target, &it.address).into());
            }
        }
        if updater.forget(&it.lock, it.address.as_str()).map_err(lock_error)? {
            removed.push(it.lock.clone());
        }
        if is_in_config {
            target.change(&updater, take_out)?;
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

fn is(entry: &SourceEntry, address: &Address) -> bool {
    Address::parse(&entry.source).is_ok_and(|it| it == *address)
}

/// Such as one of a project, or in a list that is not edited.
fn not_taken_out(target: &Target, address: &Address) -> UsageError {
    let path = shown_path(&target.path);
    UsageError::new(format!(
        "cannot take the source out of {path}: the file has a shape that is not edited here"
    ))
    .hint(format!("take it out yourself, wherever it stands: {address}"))
}
