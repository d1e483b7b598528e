//! Write protection and removal of fetched files on Unix.

use std::{fs, io, path::Path};

use cap_std::fs::{OpenOptions, OpenOptionsExt};

/// Makes a new file read-only, so that approved content isn't changed by accident.
pub(super) fn protect(options: &mut OpenOptions, is_program: bool) {
    options.mode(if is_program { 0o555 } else { 0o444 });
}

/// Removes a directory that may contain read-only files.
pub(super) fn remove_dir_all(dir: &Path) -> io::Result<()> {
    fs::remove_dir_all(dir)
}
