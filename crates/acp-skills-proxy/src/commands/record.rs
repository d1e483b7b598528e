//! Opens the event file, and stores in the state directory.

use std::{io, path::Path};

use acp_skills::events::EventFile;
use acp_skills_runtime::switch_store::SwitchStore;

use crate::error::UsageError;

/// Opens the file of `--events`.
///
/// # Errors
/// Returns an error if the file can't be opened.
pub(crate) fn open(path: &Path) -> Result<EventFile, UsageError> {
    EventFile::open(path).map_err(|error| UsageError::at("cannot write events", path, error))
}

/// Opens the store for switched-off skills in the directory of `--state`.
///
/// # Errors
/// Returns an error if the directory can't be created.
pub(crate) fn open_switches(state: Option<&Path>) -> Result<Option<SwitchStore>, UsageError> {
    state.map(|dir| SwitchStore::open(dir).map_err(|error| cannot_store(dir, error))).transpose()
}

/// Returns the error if `dir` can't be used for state.
pub(crate) fn cannot_store(dir: &Path, error: io::Error) -> UsageError {
    UsageError::at("cannot store state", dir, error)
}
