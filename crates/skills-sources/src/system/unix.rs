//! What was fetched, on Unix.

use std::{fs, io, path::Path};

use cap_std::fs::{OpenOptions, OpenOptionsExt};

/// Nobody changes a file by accident: it is what was approved.
pub(super) fn protect(options: &mut OpenOptions, is_program: bool) {
    options.mode(if is_program { 0o555 } else { 0o444 });
}

/// Removes a directory, with files that are protected.
pub(super) fn remove_dir_all(dir: &Path) -> io::Result<()> {
    fs::remove_dir_all(dir)
}
