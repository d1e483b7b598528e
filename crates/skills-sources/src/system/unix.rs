//! Write protection and removal of fetched files on Unix.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use cap_std::fs::{OpenOptions, OpenOptionsExt};

/// Makes a new file read-only, so that approved content isn't changed by accident.
pub(super) fn protect(options: &mut OpenOptions, is_program: bool) {
    options.mode(if is_program { 0o555 } else { 0o444 });
}

/// Returns the disk space that a file or a directory uses, in bytes.
pub(super) fn disk_bytes(metadata: &fs::Metadata) -> u64 {
    // Some file systems count the blocks of a new file later, and some compress files.
    metadata.len().max(metadata.blocks() * 512)
}

/// Returns true if the file can be executed.
pub(super) fn is_executable(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// Removes a directory that may contain read-only files.
pub(super) fn remove_dir_all(dir: &Path) -> io::Result<()> {
    fs::remove_dir_all(dir)
}
