//! `update --latest`: leaves the range of versions in an address.

use std::sync::Arc;

use acp_skills::config::{SourceAccess, edit};
use skills_core::text::{shown, shown_path};
use skills_sources::{Address, LockFile, Updater};

use super::super::{Known, Target, lock_error};
use crate::{error::UsageError, output};

/// The range of versions of a source.
pub(super) enum Range {
    /// The range contains the highest version, or can't be changed here.
    Stays,
    /// The range was left. Contains the old address.
    Left(Address),
    /// The versions of the source can't be read. The reason was printed.
    Unknown,
}

/// Replaces the address of a source with one whose range contains the highest version. The range of a `--source` flag or in `projects`
/// can't be changed here, so such a source stays as it is.
///
/// # Errors
/// Returns an error if the lock file can't be read, or if the configuration also has the new address.
pub(super) fn leave(updater: &Updater, target: &Target, source: &mut Known) -> anyhow::Result<Range> {
    let plain = (!source.uses_configuration).then(|| updater.accessing(Arc::new(SourceAccess::default())));
    let updater = plain.as_ref().unwrap_or(updater);
    let lock = LockFile::read(&source.lock).map_err(lock_error)?;
    let newer = updater.beyond_range(&source.address, lock.get(source.address.as_str()));
    let newer = match newer {
        Ok(Some(newer)) => newer,
        Ok(None) => return Ok(Range::Stays),
        Err(error) => {
            // The other sources can be updated.
            output::complain(&error.to_string(), Some(&error.hint()));
            return Ok(Range::Unknown);
        }
    };
    let (old, new) = (shown(source.address.as_str()), shown(newer.as_str()));
    if source.lock != target.lock() {
        output::note(&format!("`{old}` is not in the configuration file; use `--source {new}` instead"));
        return Ok(Range::Stays);
    }
    let path = shown_path(&target.path);
    if target.is_in_projects(&source.address) {
        // The approval of the old address belongs to both lists.
        output::note(&format!(
            "replace `{old}` with `{new}` in an editor, because `projects` in {path} contains it"
        ));
        return Ok(Range::Stays);
    }
    if target.config.all_sources().any(|entry| entry.is_at(&newer)) {
        let hint = if target.is_in_projects(&newer) {
            format!("replace `{old}` with `{new}` in an editor")
        } else {
            format!("remove `{old}` with `acp-skills-proxy remove`")
        };
        return Err(UsageError::new(format!("`{new}` is already in {path}")).hint(hint).into());
    }
    Ok(Range::Left(std::mem::replace(&mut source.address, newer)))
}

/// Replaces the old address in the lock file and in the configuration file.
///
/// # Errors
/// Returns an error if a file can't be written, or if the address in the configuration file can't be edited.
pub(super) fn replace(
    updater: &Updater,
    target: &Target,
    source: &Known,
    old: &Address,
) -> anyhow::Result<()> {
    let new = source.address.as_str();
    let edit = |text: &str| {
        let entries = edit::sources(text).unwrap_or_default();
        let mut text = text.to_owned();
        for (number, entry) in entries.iter().enumerate() {
            if entry.source == old.as_str() {
                text = edit::replace_source(&text, number, new).map_err(|_| not_edited(target, old, new))?;
            }
        }
        Ok(text)
    };
    // If we can't edit the configuration, fail here, before the lock file is written.
    if edit(&target.text)? == target.text {
        return Err(not_edited(target, old, new).into());
    }
    // If this process is killed in between, the source waits for its approval.
    updater.rename(&source.lock, old.as_str(), new).map_err(lock_error)?;
    let changed = target.change(updater, edit);
    if changed.is_err() {
        // The configuration still has the old address.
        updater.rename(&source.lock, new, old.as_str()).map_err(lock_error)?;
    }
    Ok(changed?)
}

fn not_edited(target: &Target, old: &Address, new: &str) -> UsageError {
    let path = shown_path(&target.path);
    UsageError::new(format!("cannot change `{}` in {path}", shown(old.as_str())))
        .hint(format!("replace it with `{}` in an editor, then run `acp-skills-proxy update`", shown(new)))
}
