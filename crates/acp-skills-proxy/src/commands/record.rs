//! Opens the event file, telemetry, and stores in the state directory.

use std::{io, path::Path};

use acp_skills::{
    activity::{self, Observer},
    events::EventFile,
};
use acp_skills_runtime::{
    switch_store::SwitchStore,
    telemetry::{Settings, Telemetry},
};

use crate::error::UsageError;

/// Opens the file of `--events`.
///
/// # Errors
/// Returns an error if the file can't be opened.
pub(crate) fn open(path: &Path) -> Result<EventFile, UsageError> {
    EventFile::open(path).map_err(|error| UsageError::at("cannot write events", path, error))
}

/// Starts telemetry, if it is on.
///
/// # Errors
/// Returns an error if the thread can't be started.
pub(crate) fn start_telemetry(settings: Option<Settings>) -> Result<Option<Telemetry>, UsageError> {
    let started = settings.map(Telemetry::start).transpose();
    started.map_err(|error| UsageError::failed("cannot send telemetry", error))
}

/// Returns the observer that writes the record and sends telemetry.
pub(crate) fn observer(events: Option<&EventFile>, telemetry: Option<&Telemetry>) -> Option<Observer> {
    activity::both(events.map(activity::record_to), telemetry.map(Telemetry::observer))
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
