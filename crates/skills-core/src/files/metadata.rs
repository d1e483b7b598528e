//! The type, the size and the time of an entry below a directory.
//!
//! On Linux, `cap_std` panics for a file with the earliest time that btrfs and tmpfs can store, and anyone who can write a file can set
//! its time. So there, the metadata is that of the standard library.

#[cfg_attr(target_os = "linux", path = "metadata/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "metadata/other.rs")]
mod platform;

pub use platform::{Metadata, metadata, symlink_metadata};
pub(super) use platform::{modified, of_entry, of_file};

#[cfg(all(test, unix))]
mod tests {
    use std::{
        fs,
        os::unix::fs::symlink,
        time::{Duration, UNIX_EPOCH},
    };

    use cap_std::{ambient_authority, fs::Dir};

    use super::*;

    /// Returns `f`, `d` or `l`, like `find -type`.
    fn letter(metadata: &Metadata) -> char {
        match (metadata.is_file(), metadata.is_dir(), metadata.is_symlink()) {
            (true, ..) => 'f',
            (_, true, _) => 'd',
            (.., true) => 'l',
            _ => 's',
        }
    }

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
            ("file", Some('f'), Some('f')),
            ("dir", Some('d'), Some('d')),
            ("in", Some('f'), Some('l')),
            ("out", None, Some('l')),
            ("none", None, None),
            ("dir/../file", Some('f'), Some('f')),
        ] {
            assert_eq!(metadata(&dir, name).ok().as_ref().map(letter), followed, "{name}");
            assert_eq!(symlink_metadata(&dir, name).ok().as_ref().map(letter), entry, "{name}");
        }
        for entry in dir.entries().unwrap().map(Result::unwrap) {
            let (listed, named) = (of_entry(&entry), symlink_metadata(&dir, entry.file_name()));
            assert_eq!(letter(&listed.unwrap()), letter(&named.unwrap()), "{entry:?}");
        }
        let (_, file) = of_file(dir.open("file").unwrap()).unwrap();
        assert_eq!((file.len(), modified(&file)), (4, Some(day)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn extreme_times() {
        // This is a tmpfs, which stores all 64 bits.
        let Ok(temporary) = tempfile::tempdir_in("/dev/shm") else { return };
        fs::write(temporary.path().join("file"), "x").unwrap();
        let dir = Dir::open_ambient_dir(temporary.path(), ambient_authority()).unwrap();
        for tv_sec in [i64::MIN, -1, i64::MAX] {
            let time = rustix::fs::Timespec { tv_sec, tv_nsec: 999_999_999 };
            let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
            rustix::fs::utimensat(&dir, "file", &times, rustix::fs::AtFlags::empty()).unwrap();
            let entry = dir.entries().unwrap().next().unwrap().unwrap();
            let opened = of_file(dir.open("file").unwrap()).map(|(_, metadata)| metadata);
            for found in [metadata(&dir, "file"), symlink_metadata(&dir, "file"), of_entry(&entry), opened] {
                let found = found.unwrap();
                assert!(found.is_file() && modified(&found).is_some(), "{tv_sec}");
            }
        }
    }
}
