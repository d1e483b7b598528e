//! `sources pin` and `sources unpin`: keep a skill at its approved version, or let it go.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use skills_core::{
    SkillName,
    text::{shown, shown_path},
};
use skills_sources::{Pinned, Updater};

use super::{
    CommonArgs, Target,
    known::{Known, known, named, note_unused, with_pinned},
    lock_error, updater,
};
use crate::{error::UsageError, output};

/// The arguments of `sources pin` and `sources unpin`.
#[derive(Debug, Args)]
pub(crate) struct PinArgs {
    /// The name of the skill.
    name: String,
    /// The source of the skill, if several sources have a skill with this name.
    #[arg(long, value_name = "SOURCE")]
    from: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// An approved skill.
pub(super) struct Approved {
    pub(super) source: Known,
    pub(super) pinned: Pinned,
    /// The directory of the skill in the source.
    pub(super) path: String,
}

/// Returns the approved skills with a name. If the skills of a source are not in the cache, the name in the lock file counts, or else the
/// last part of the directory.
///
/// # Errors
/// Returns an error if a lock file can't be read.
pub(super) fn approved(sources: Vec<Known>, updater: &Updater, name: &str) -> anyhow::Result<Vec<Approved>> {
    let key = SkillName::key_of(name);
    let mut found = Vec::new();
    for (source, pinned) in with_pinned(sources)? {
        let Some(pinned) = pinned else { continue };
        let stored = updater.approved(&source.address, &pinned);
        let stored = stored.iter().flat_map(|offer| &offer.skills);
        let by_name = stored.filter(|skill| SkillName::key_of(&skill.name) == key).map(|skill| &skill.path);
        let paths = pinned.skills().into_iter().flat_map(|skills| skills.keys());
        // A pinned skill of an older lock file may have no known version.
        let paths = paths.chain(&pinned.decisions().pinned);
        let by_path = paths.filter(|path| SkillName::key_of(pinned.decisions().name_of(path)) == key);
        let path = by_name.chain(by_path).next().cloned();
        found.extend(path.map(|path| Approved { source, pinned, path }));
    }
    Ok(found)
}

/// Pins a skill, or unpins it.
///
/// # Errors
/// Returns an error if no source or several sources have an approved skill with this name, or if the lock file can't be written.
pub(super) fn run(args: &PinArgs, is_pinned: bool) -> anyhow::Result<ExitCode> {
    let PinArgs { name, from, common } = args;
    let target = Target::existing(common)?;
    let updater = updater(common)?;
    let mut sources = known(&target)?;
    if let Some(source) = from {
        sources = named(sources, source)?;
    }
    let found = approved(sources, &updater, name)?;
    let [skill] = &found[..] else {
        let name = shown(name);
        return Err(if found.is_empty() {
            UsageError::new(format!("no source has an approved skill `{name}`"))
                .hint("use `acp-skills-proxy list` to list the skills")
        } else {
            let sources: Vec<_> =
                found.iter().map(|skill| format!("`--from {}`", skill.source.address)).collect();
            UsageError::new(format!("several sources have a skill `{name}`"))
                .hint(format!("use {}", sources.join(" or ")))
        }
        .into());
    };
    let Approved { source: Known { lock, address, .. }, path, pinned } = skill;
    note_unused([&**lock].into_iter())?;
    let is_changed = updater.set_pinned(lock, address, path, is_pinned).map_err(lock_error)?;
    if common.json {
        output::print_json(&json!({
            "name": name,
            "source": address.as_str(),
            "path": path,
            "version": pinned.version_of(path),
            "lock": lock,
            "pinned": is_pinned,
            "changed": is_changed,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let version = &pinned.version_of(path)[..12];
    let text = match (is_pinned, is_changed) {
        (true, true) => format!("stays at {version} until `sources unpin`"),
        (true, false) => format!("is already pinned at {version}"),
        (false, true) => "changes with the next `update` again".to_owned(),
        (false, false) => "was not pinned".to_owned(),
    };
    output::print(&format!("`{}` from {address} {text} ({}).\n", shown(name), shown_path(lock)))?;
    Ok(ExitCode::SUCCESS)
}
