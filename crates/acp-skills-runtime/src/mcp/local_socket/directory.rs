//! [`Directory`]: the private directory of a Unix socket.
//!
//! The process that uses a directory holds a lock on it, which the system releases if the process is killed. So a directory without
//! a lock is a leftover. The lock also tells programs that clean temporary directories that the directory is in use.

use std::{
    env,
    fs::{self, DirBuilder, File, Metadata, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf, absolute},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags},
    process::geteuid,
};
/// The beginning of the names of all directories.
const PREFIX: &str = "acp-skills-";
/// The number of random bytes in a name, as two hexadecimal digits each.
const RANDOM_BYTES: usize = 8;
/// The name of the socket. It is short, because the path of a socket may only have about 100 bytes.
const SOCKET: &str = "socket";
/// The maximum number of attempts to create a directory. Another process can remove a directory before it is locked.
const MAX_ATTEMPTS: usize = 8;
/// Only the owner may use the directory. The sticky bit keeps it from being cleaned up in `XDG_RUNTIME_DIR`.
const MODE: u32 = 0o1700;

/// The place if the temporary directory can't be used, for example because its path is too long.
const DEFAULT_PLACE: &str = "/tmp";

/// A private directory. Dropping it removes the directory and the socket in it.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Holds the lock.
    lock: File,
}

impl Directory {
    fn create(place: &Path) -> io::Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let path = place.join(random_name()?);
            match DirBuilder::new().mode(MODE).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            }
            match File::open(&path) {
                Ok(lock) => match lock.try_lock() {
                    Ok(()) if is_at(&lock, &path) => return Ok(Self { path, lock }),
                    // Another process treats the directory as a leftover, because it was not locked yet.
                    Ok(()) | Err(TryLockError::WouldBlock) => {}
                    // This file system has no locks.
                    Err(TryLockError::Error(error)) => {
                        // If this fails, the error is still that of the lock.
                        let _ = fs::remove_dir(&path);
                        return Err(error);
                    }
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("cannot lock a new directory"))
    }

    /// Returns the path of the socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        remove(&self.lock, &self.path);
    }
}

/// Creates a directory in `XDG_RUNTIME_DIR`, in the temporary directory or in `/tmp`, and calls `make` with it. Returns the first
/// success.
///
/// # Errors
/// Returns the error for the last of these places, which ends with its path.
pub(super) fn create_in_any<T>(make: impl Fn(Directory) -> io::Result<T>) -> io::Result<T> {
    create_in(&places(), make)
}

fn create_in<T>(places: &[PathBuf], make: impl Fn(Directory) -> io::Result<T>) -> io::Result<T> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no temporary directory");
    for place in places {
        let made = check(place).and_then(|()| Directory::create(place)).and_then(&make);
        match made {
            Ok(made) => return Ok(made),
            Err(error) => last = io::Error::new(error.kind(), format!("{error}: {}", place.display())),
        }
    }
    Err(last)
}

/// Returns the directories in which a socket may be created, in order of preference.
fn places() -> Vec<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime =
        runtime.filter(|path| path.is_absolute() && fs::metadata(path).is_ok_and(|data| is_private(&data)));
    let temporary = absolute(env::temp_dir()).ok();
    let mut places: Vec<_> = runtime.into_iter().chain(temporary).chain([DEFAULT_PLACE.into()]).collect();
    places.dedup();
    places
}

/// Returns true if only this user may use a file or directory.
fn is_private(metadata: &Metadata) -> bool {
    const OTHERS: u32 = 0o077;
    metadata.uid() == geteuid().as_raw() && metadata.mode() & OTHERS == 0
}

/// Checks that other users can't replace a directory in this place with their own.
fn check(place: &Path) -> io::Result<()> {
    const WRITABLE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let mode = fs::metadata(place)?.mode();
    if mode & WRITABLE != 0 && mode & STICKY == 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "other users may rename files"));
    }
    Ok(())
}

fn random_name() -> io::Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{PREFIX}{:016x}", u64::from_ne_bytes(bytes)))
}

/// Returns true if this is a name that [`random_name`] could return.
fn is_random_name(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == 2 * RANDOM_BYTES
            && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Returns true if `path` still leads to this open directory.
fn is_at(directory: &File, path: &Path) -> bool {
    let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let open = directory.metadata().map(id);
    open.is_ok_and(|open| fs::symlink_metadata(path).map(id).is_ok_and(|found| found == open))
}

/// Removes the directories of this user's processes that were killed. Errors are ignored.
pub(in crate::mcp) fn remove_leftovers() {
    for place in places() {
        remove_leftovers_in(&place);
    }
}

fn remove_leftovers_in(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(is_random_name) {
            continue;
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(directory) = rustix::fs::openat(CWD, entry.path(), flags, Mode::empty()).map(File::from)
        else {
            continue;
        };
        let is_ours = directory.metadata().is_ok_and(|metadata| is_private(&metadata));
        // Don't remove a directory that is in use.
        if is_ours && directory.try_lock().is_ok() {
            remove(&directory, &entry.path());
        }
    }
}

/// Removes the socket in a directory, and the directory if it is empty then.
fn remove(directory: &File, path: &Path) {
    let found = rustix::fs::statat(directory, SOCKET, AtFlags::SYMLINK_NOFOLLOW);
    if found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_socket()) {
        // If this fails, the directory stays, and the next process tries again.
        let _ = rustix::fs::unlinkat(directory, SOCKET, AtFlags::empty());
    }
    if is_at(directory, path) {
        let _ = fs::remove_dir(path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    };

    use super::*;

    fn names(place: &Path) -> Vec<String> {
        let entries = fs::read_dir(place).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_is_private_and_removed_at_the_end() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::create(place.path()).unwrap();
        assert!(is_private(&fs::metadata(&directory.path).unwrap()));
        assert!(names(place.path()).iter().all(|name| is_random_name(name)));
        let _listener = UnixListener::bind(directory.socket()).unwrap();
        drop(directory);
        assert_eq!(names(place.path()), [""; 0]);
    }

    #[test]
    fn only_leftovers_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let place = parent.path();
        let used = Directory::create(place).unwrap();
        let _listener = UnixListener::bind(used.socket()).unwrap();
        let name = |last: char| format!("{PREFIX}{}{last}", "0".repeat(15));
        let make = |name: &str, mode: u32| {
            let path = place.join(name);
            DirBuilder::new().mode(mode).create(&path).unwrap();
            path
        };
        // These are leftovers: one from before the socket was created, and one from after that.
        make(&name('1'), MODE);
        drop(UnixListener::bind(make(&name('2'), 0o700).join(SOCKET)).unwrap());
        // These are not.
        let mut kept = names(place);
        kept.retain(|kept| used.path.ends_with(kept));
        fs::write(make(&name('3'), MODE).join(SOCKET), "a file").unwrap();
        fs::write(make(&name('4'), MODE).join("file"), "x").unwrap();
        make(&name('g'), MODE);
        make(PREFIX, MODE);
        make(&format!("{}0", name('5')), MODE);
        allow(&make(&name('6'), MODE), 0o755);
        fs::write(place.join(name('7')), "a file").unwrap();
        let elsewhere = make("elsewhere", 0o700);
        drop(UnixListener::bind(elsewhere.join(SOCKET)).unwrap());
        symlink(&elsewhere, place.join(name('8'))).unwrap();
        kept.extend(["3", "4", "6", "7", "8", "g"].map(|last| name(last.parse().unwrap())));
        kept.extend([PREFIX.to_owned(), format!("{}0", name('5')), "elsewhere".to_owned()]);
        kept.sort();
        for _ in 0..2 {
            remove_leftovers_in(place);
            assert_eq!(names(place), kept);
        }
        assert!(
            used.socket().symlink_metadata().is_ok() && elsewhere.join(SOCKET).symlink_metadata().is_ok()
        );
    }

    #[test]
    fn the_first_usable_place_is_used() {
        let parent = tempfile::tempdir().unwrap();
        let place = |name: &str, mode: u32| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            allow(&path, mode);
            path
        };
        let open = place("open", 0o777);
        let sticky = place("with spaces", 0o1777);
        let private = place("private", 0o700);
        let missing = parent.path().join("missing");
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        let made = |places: &[&PathBuf]| {
            let places: Vec<_> = places.iter().copied().cloned().collect();
            create_in(&places, |directory| {
                Ok(directory.path.parent().map(Path::to_owned).unwrap_or_default())
            })
        };
        for (places, used) in [
            (vec![&private, &sticky], &private),
            (vec![&open, &sticky, &private], &sticky),
            (vec![&missing, &file, &private], &private),
        ] {
            assert_eq!(&made(&places).unwrap(), used);
        }
        for (places, why) in [
            (vec![], "no temporary directory"),
            (vec![&missing, &open], "other users may rename files: "),
            (vec![&open, &missing], "No such file"),
        ] {
            let error = made(&places).unwrap_err().to_string();
            assert!(error.starts_with(why), "{error}");
        }
        // A socket that can't be created leaves no directory.
        create_in(std::slice::from_ref(&sticky), |_| Err::<(), _>(io::Error::other("too long"))).unwrap_err();
        assert_eq!(names(&sticky), [""; 0]);
    }

    /// A process can take a directory for a leftover before it is locked. No process then uses a directory that was removed.
    #[test]
    fn directories_are_not_removed_while_they_are_created() {
        let place = tempfile::tempdir().unwrap();
        let ends = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                    remove_leftovers_in(place.path());
                }
            });
            for _ in 0..500 {
                // With bad luck, each attempt is disturbed.
                let Ok(directory) = Directory::create(place.path()) else { continue };
                let listener = UnixListener::bind(directory.socket()).unwrap();
                assert!(directory.socket().symlink_metadata().is_ok());
                drop((directory, listener));
            }
            ends.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        remove_leftovers_in(place.path());
        assert_eq!(names(place.path()), [""; 0]);
    }
}
