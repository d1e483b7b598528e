//! Metadata of the standard library, from `fstat`.

pub use std::fs::Metadata;
use std::{io, path::Path, time::SystemTime};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, DirEntry, File, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;

/// Returns the metadata of the entry at `path` below `dir`. Links are followed below `dir`.
///
/// # Errors
/// Returns the system's error, and an error if the path leads out of `dir`.
pub fn metadata(dir: &Dir, path: impl AsRef<Path>) -> io::Result<Metadata> {
    dir.open_with(path, &named(FollowSymlinks::Yes))?.into_std().metadata()
}

/// Returns the metadata of the entry at `path` below `dir`, which can be a link.
///
/// # Errors
/// Returns the errors of [`metadata`].
pub fn symlink_metadata(dir: &Dir, path: impl AsRef<Path>) -> io::Result<Metadata> {
    dir.open_with(path, &named(FollowSymlinks::No))?.into_std().metadata()
}

pub(in crate::files) fn of_entry(entry: &DirEntry) -> io::Result<Metadata> {
    entry.open_with(&named(FollowSymlinks::No))?.into_std().metadata()
}

/// Returns an open file with its metadata. Takes the file, because a conversion to a file of the standard library and back costs nothing.
pub(in crate::files) fn of_file(file: File) -> io::Result<(File, Metadata)> {
    let file = file.into_std();
    let metadata = file.metadata()?;
    Ok((File::from_std(file), metadata))
}

pub(in crate::files) fn modified(metadata: &Metadata) -> Option<SystemTime> {
    metadata.modified().ok()
}

/// Returns options for a descriptor that only names an entry. It can't be read, so no permission is needed.
fn named(follow: FollowSymlinks) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::PATH.bits().cast_signed()).follow(follow);
    options
}
