//! Metadata from `fstat`.

use std::{
    io,
    os::fd::AsFd,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, DirEntry, OpenOptions, OpenOptionsExt};
use rustix::fs::{FileType, OFlags, fstat};

use super::{Metadata, Type};

/// Returns the metadata of what was opened, or of the entry that a descriptor names.
pub(super) fn of(file: impl AsFd) -> io::Result<Metadata> {
    let stat = fstat(file)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Type::File,
        FileType::Directory => Type::Dir,
        FileType::Symlink => Type::Link,
        _ => Type::Special,
    };
    let modified = time(stat.st_mtime, stat.st_mtime_nsec);
    Ok(Metadata { kind, len: stat.st_size.unsigned_abs(), modified })
}

pub(super) fn at(dir: &Dir, path: &Path, follows: bool) -> io::Result<Metadata> {
    of(dir.open_with(path, &named(follows))?)
}

pub(super) fn of_entry(entry: &DirEntry) -> io::Result<Metadata> {
    of(entry.open_with(&named(false))?)
}

/// Returns options for a descriptor that only names an entry. It can't be read, so no permission is needed.
fn named(follows: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::PATH.bits().cast_signed());
    options.follow(if follows { FollowSymlinks::Yes } else { FollowSymlinks::No });
    options
}

/// Returns a time after 1970 or, for negative seconds, before.
pub(super) fn time(seconds: i64, nanoseconds: u64) -> Option<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    time?.checked_add(Duration::from_nanos(nanoseconds))
}
