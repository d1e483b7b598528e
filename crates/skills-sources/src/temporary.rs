//! Temporary directories in the cache, beside the versions of a source.

use std::{io, path::Path, time::Duration};

use crate::disk::{leftovers, private};

/// The prefix of directories that are not complete yet.
pub(super) const NEW: &str = ".new-";

/// Creates a temporary directory in the directory of a source, which only the user can read.
pub(super) fn create_in(directory: &Path) -> io::Result<tempfile::TempDir> {
    private::for_owner(tempfile::Builder::new().prefix(NEW)).tempdir_in(directory)
}

/// Removes incomplete directories of killed processes that are at least `old`.
pub(super) fn remove_leftovers(dir: &Path, old: Duration) {
    leftovers::remove_older(dir, old, |path, _| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NEW))
    });
}
