//! Write protection and removal of fetched files on Unix.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

use cap_std::fs::{OpenOptions, OpenOptionsExt};

/// Makes a new file read-only, so that approved content isn't changed by accident.
pub(super) fn protect(options: &mut OpenOptions, is_program: bool) {
    options.mode(if is_program { 0o555 } else { 0o444 });
}

/// Returns true if the file can be executed.
pub(super) fn is_executable(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// Removes a directory that may contain read-only files.
pub(super) fn remove_dir_all(dir: &Path) -> io::Result<()> {
    fs::remove_dir_all(dir)
}
