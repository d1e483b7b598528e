//! Metadata of `cap_std`.

use std::{io, path::Path, time::SystemTime};

pub use cap_std::fs::Metadata;
use cap_std::fs::{Dir, DirEntry, File};

/// Returns the metadata of the entry at `path` below `dir`. Links are followed below `dir`.
///
/// # Errors
/// Returns the system's error, and an error if the path leads out of `dir`.
pub fn metadata(dir: &Dir, path: impl AsRef<Path>) -> io::Result<Metadata> {
    dir.metadata(path)
}

/// Returns the metadata of the entry at `path` below `dir`, which can be a link.
///
/// # Errors
/// Returns the errors of [`metadata`].
pub fn symlink_metadata(dir: &Dir, path: impl AsRef<Path>) -> io::Result<Metadata> {
    dir.symlink_metadata(path)
}

pub(in crate::files) fn of_entry(entry: &DirEntry) -> io::Result<Metadata> {
    entry.metadata()
}

pub(in crate::files) fn of_file(file: File) -> io::Result<(File, Metadata)> {
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

pub(in crate::files) fn modified(metadata: &Metadata) -> Option<SystemTime> {
    metadata.modified().ok().map(cap_std::time::SystemTime::into_std)
}
