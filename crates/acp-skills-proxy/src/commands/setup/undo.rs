//! Reverts a change of settings.

use std::process::ExitCode;

use acp_skills_setup::{
    change_record::ChangeRecord,
    document::Document,
    undo::{self, Undone},
};

use super::{How, Place, show, unusable};
use crate::{error::UsageError, output};

/// Reverts the last change of these settings.
///
/// # Errors
/// Returns an error if the settings cannot be parsed or written, or if the record of the change cannot be read.
pub(super) fn undo(place: &Place<'_>, how: How) -> anyhow::Result<ExitCode> {
    let (file, document) = place.read()?;
    let format = &place.settings.format;
    let entries = document.agents(format).map_err(|error| place.broken(&error))?;
    let dir = &place.home.changes;
    let failed = |error: std::io::Error| {
        let dir = place.home.shown(dir);
        UsageError::failed(format_args!("cannot read change record from {dir}"), error)
    };
    let Some(record) = ChangeRecord::last(dir, file.target()).map_err(failed)? else {
        let ours: Vec<_> =
            entries.iter().filter(|entry| entry.ours().is_some()).map(|entry| entry.name.clone()).collect();
        let by_hand = match ours.as_slice() {
            [] => String::new(),
            names => format!(" {}, but `setup` has no record of that change.", show::through(names)),
        };
        output::print(&format!("No change to revert in {}.{by_hand}\n", place.shown()))?;
        return Ok(ExitCode::SUCCESS);
    };
    let before = record.before().map_err(failed)?;
    let after = record.after().map_err(failed)?;
    let undone = match file.bytes() {
        Some(now) => undo::undo(now, before.as_deref(), &after, &record.changes, format)
            .map_err(|error| place.not_edited(&error))?,
        // The user has removed the file.
        None => Undone::Nothing,
    };
    let Undone::Bytes(bytes) = undone else {
        if how != How::Show {
            record.undone()?;
        }
        output::print(&format!(
            "No change to revert in {}: the last change is no longer in the file.\n",
            place.shown()
        ))?;
        return Ok(ExitCode::SUCCESS);
    };
    let result = Document::new(bytes.as_deref().unwrap_or_default()).map_err(|error| place.broken(&error))?;
    let words = show::words(&record.changes, &entries);
    output::print_colored(&show::diff(&place.shown(), document.text(), result.text(), &words))?;
    if bytes.is_none() {
        output::note("note: removing the file, because `setup` created it");
    }
    if !show::confirmed(how, "Revert this change?")? {
        return Ok(ExitCode::SUCCESS);
    }
    file.replace(bytes.as_deref(), dir).map_err(unusable)?;
    record.undone()?;
    output::print("Reverted.\n")?;
    Ok(ExitCode::SUCCESS)
}
