//! Opens the event file.

use std::path::Path;

use acp_skills::events::EventFile;

use crate::error::UsageError;

/// Opens the file of `--events`.
///
/// # Errors
/// Returns an error if the file can't be opened.
pub(crate) fn open(path: &Path) -> Result<EventFile, UsageError> {
    EventFile::open(path).map_err(|error| UsageError::at("cannot write events", path, error))
}
