//! [`Metadata`]: the type, the size and the time of an entry below a directory.
//!
//! On Linux, `cap_std` panics for a file with the earliest time that btrfs and tmpfs can store, and anyone who can write a file can set
//! its time. So there, the values come from the system without `cap_std`.

#[cfg(target_os = "linux")]
#[path = "metadata/linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "metadata/other.rs"]
mod platform;

use std::{io, path::Path, time::SystemTime};

use cap_std::fs::{Dir, DirEntry, File};

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    File,
    Dir,
    Link,
    Special,
}

/// The type, the size and the time of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Metadata {
    kind: Type,
    len: u64,
    modified: Option<SystemTime>,
}

impl Metadata {
    /// Returns the metadata of an open file or directory.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn of(file: &File) -> io::Result<Self> {
        platform::of(file)
    }

    /// Returns the metadata of the entry at `path` below `dir`. Links are followed below `dir`.
    ///
    /// # Errors
    /// Returns the system's error, and an error if the path leads out of `dir`.
    pub fn at(dir: &Dir, path: impl AsRef<Path>) -> io::Result<Self> {
        platform::at(dir, path.as_ref(), true)
    }

    /// Returns the metadata of the entry at `path` below `dir`, which can be a link.
    ///
    /// # Errors
    /// Returns the errors of [`Metadata::at`].
    pub fn of_link(dir: &Dir, path: impl AsRef<Path>) -> io::Result<Self> {
        platform::at(dir, path.as_ref(), false)
    }

    /// Returns the metadata of an entry of a directory, which can be a link.
    pub(super) fn of_entry(entry: &DirEntry) -> io::Result<Self> {
        platform::of_entry(entry)
    }

    /// Returns true for a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == Type::File
    }

    /// Returns true for a directory.
    pub fn is_dir(&self) -> bool {
        self.kind == Type::Dir
    }

    /// Returns true for a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.kind == Type::Link
    }

    /// Returns true for a FIFO, a socket or a device.
    pub(super) fn is_special(&self) -> bool {
        self.kind == Type::Special
    }

    /// Returns the size, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "the name is that of the standard library")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns the time of the last change; `None` if the platform can't represent it.
    pub(super) fn modified(&self) -> Option<SystemTime> {
        self.modified
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        fs,
        os::unix::fs::symlink,
        time::{Duration, UNIX_EPOCH},
    };

    use cap_std::ambient_authority;

    use super::*;

    #[test]
    fn types_sizes_and_times() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path();
        fs::write(path.join("file"), "1234").unwrap();
        fs::create_dir(path.join("dir")).unwrap();
        symlink("file", path.join("in")).unwrap();
        symlink("/etc/passwd", path.join("out")).unwrap();
        let day = UNIX_EPOCH - Duration::from_hours(24);
        fs::File::open(path.join("file")).unwrap().set_modified(day).unwrap();
        let dir = Dir::open_ambient_dir(path, ambient_authority()).unwrap();
        for (name, followed, entry) in [
            ("file", Some(Type::File), Some(Type::File)),
            ("dir", Some(Type::Dir), Some(Type::Dir)),
            ("in", Some(Type::File), Some(Type::Link)),
            ("out", None, Some(Type::Link)),
            ("none", None, None),
            ("dir/../file", Some(Type::File), Some(Type::File)),
        ] {
            assert_eq!(Metadata::at(&dir, name).ok().map(|found| found.kind), followed, "{name}");
            assert_eq!(Metadata::of_link(&dir, name).ok().map(|found| found.kind), entry, "{name}");
        }
        for entry in dir.entries().unwrap().map(Result::unwrap) {
            let (listed, named) = (Metadata::of_entry(&entry), Metadata::of_link(&dir, entry.file_name()));
            assert_eq!(listed.unwrap().kind, named.unwrap().kind, "{entry:?}");
        }
        let file = Metadata::of(&dir.open("file").unwrap()).unwrap();
        assert_eq!((file.len(), file.modified()), (4, Some(day)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn extreme_times() {
        for (seconds, nanoseconds) in [(i64::MIN, 0), (i64::MIN, 999_999_999), (i64::MAX, 0), (-1, 1), (0, 0)]
        {
            let time = platform::time(seconds, nanoseconds);
            let expected = u64::try_from(seconds).map_or_else(
                |_| UNIX_EPOCH.checked_sub(Duration::from_secs(seconds.unsigned_abs())),
                |seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)),
            );
            let expected = expected.and_then(|time| time.checked_add(Duration::from_nanos(nanoseconds)));
            assert_eq!(time, expected, "{seconds}");
        }
        // No system call fails for a file on tmpfs with such a time.
        let Ok(temporary) = tempfile::tempdir_in("/dev/shm") else { return };
        fs::write(temporary.path().join("file"), "x").unwrap();
        let dir = Dir::open_ambient_dir(temporary.path(), ambient_authority()).unwrap();
        let time = rustix::fs::Timespec { tv_sec: i64::MIN, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(&dir, "file", &times, rustix::fs::AtFlags::empty()).unwrap();
        assert!(Metadata::at(&dir, "file").unwrap().is_file());
        assert!(Metadata::of(&dir.open("file").unwrap()).unwrap().is_file());
        assert!(Metadata::of_entry(&dir.entries().unwrap().next().unwrap().unwrap()).unwrap().is_file());
    }
}
