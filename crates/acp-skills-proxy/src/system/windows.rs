//! Little: the system has no such limits, says itself what is wrong, and tells programs by their names.

use std::io;

/// The system says it itself.
pub(crate) fn limit_hint(_error: &io::Error) -> Option<String> {
    None
}

/// What is wrong with the file `shown`.
pub(crate) fn make_executable_hint(_shown: &str) -> String {
    "it is no program".to_owned()
}

/// Files have no such limit.
pub(crate) fn report_large_files() {}
