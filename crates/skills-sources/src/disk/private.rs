//! Files and directories that only their owner can read. Code that differs by operating system is in `unix` and `windows`.

#[cfg_attr(unix, path = "private/unix.rs")]
#[cfg_attr(windows, path = "private/windows.rs")]
mod system;

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read},
    path::Path,
};

pub use self::system::for_owner;
pub(super) use self::system::refuse_link;

/// Opens a file for appending. If the file doesn't exist, it is created so that only its owner can read it, but not through a link: a
/// script can make a link to a file that runs at the next login.
///
/// Never blocks. If `path` is a FIFO, writes don't block either: a write that doesn't fit into a full FIFO fails with
/// [`WouldBlock`](io::ErrorKind::WouldBlock).
///
/// # Errors
/// Returns the system's error if the file can't be opened, and an error if `path` is a FIFO without a reader, or leads to this
/// program's stdout (such as `/dev/stdout`), because stdout carries the protocol.
pub fn append(path: &Path) -> io::Result<File> {
    let existing = || open(OpenOptions::new().append(true), path);
    match existing() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    match open(OpenOptions::new().create_new(true).append(true), path) {
        // Another process may have just created it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => existing().map_err(|error| {
            io::Error::new(error.kind(), format!("symbolic link target does not exist: {error}"))
        }),
        created => created,
    }
}

/// Opens a file as [`append`] does, but writes block while a FIFO is full.
///
/// # Errors
/// Returns the errors of [`append`].
pub fn append_and_wait(path: &Path) -> io::Result<File> {
    let file = append(path)?;
    system::wait_when_full(&file)?;
    Ok(file)
}

/// Refuses to append to the file of another program, such as a shell's settings, that a configuration names. `file` was opened at `path`.
/// `is_ours` receives up to 32 bytes from its start. New and empty files, FIFOs and devices are accepted.
///
/// # Errors
/// Returns an error if `is_ours` returns false, or if the file can't be read.
pub fn check_start(file: &File, path: &Path, is_ours: fn(&[u8]) -> bool) -> io::Result<()> {
    let metadata = file.metadata()?;
    // A path in `/dev` can lead to a file that is already open, such as stderr.
    if !metadata.is_file() || metadata.len() == 0 || path.starts_with("/dev") {
        return Ok(());
    }
    let mut start = Vec::new();
    let again = File::open(path)?;
    let is_same = system::is_same(&metadata, &again.metadata()?);
    again.take(32).read_to_end(&mut start)?;
    let refused = "the file exists, and another program has written it; remove it or use another file";
    if is_same && is_ours(&start) {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::AlreadyExists, refused))
    }
}

/// Opens a lock file as [`append`] does.
///
/// # Errors
/// Returns the errors of [`append`].
pub fn lockable(path: &Path) -> io::Result<File> {
    // On Windows, we also need to open the file for reading, so that it can be locked. Don't do this on Unix, because we
    // could then open a FIFO without a reader.
    open(OpenOptions::new().create(true).append(true).read(cfg!(windows)), path)
}

/// Returns true if `file` is a device, such as a terminal or `/dev/zero`.
///
/// # Errors
/// Returns the system's error.
pub fn is_device(file: &File) -> io::Result<bool> {
    Ok(system::is_device(&file.metadata()?))
}

/// Makes an existing file private that other users can read. Returns true if its permissions were changed. FIFOs and devices are
/// left as they are.
///
/// # Errors
/// Returns an error if the permissions can't be changed, for example because the file belongs to another user.
pub fn tighten(file: &File) -> io::Result<bool> {
    system::tighten(file).map_err(|error| {
        let why = format!("other users can read the file, and its permissions can't be changed: {error}");
        io::Error::new(error.kind(), why)
    })
}

/// Reads a file of at most `max_bytes` bytes. Blocks if the file is a FIFO or on a slow disk.
///
/// # Errors
/// Returns the system's error if the file can't be read, and [`InvalidData`](io::ErrorKind::InvalidData) if it is larger, or if it is
/// a device, which may be endless.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    let file = File::open(path)?;
    if system::is_device(&file.metadata()?) {
        return invalid("not a regular file");
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return invalid("file exceeds the maximum size");
    }
    Ok(bytes)
}

/// Copies the permissions of the file at `path` to `file`, which will replace it. If there is no file at `path`, the default
/// permissions of new files are set.
///
/// # Errors
/// Returns the system's error.
pub fn copy_permissions(file: &File, path: &Path) -> io::Result<()> {
    system::copy_permissions(file, path)
}

/// Gives a file the owner and the group of the file at `path`, which it will replace. Does nothing if there is no such file,
/// and on Windows.
///
/// # Errors
/// Returns an error if this process may not do so, for example because it is not run by the owner. Another group is only an error if
/// the group has rights that other users don't have.
pub fn copy_owner(file: &File, path: &Path) -> io::Result<()> {
    system::copy_owner(file, path)
}

/// Creates a directory and its missing parents so that only their owner can read them. Existing directories are unchanged.
///
/// # Errors
/// Returns the system's error if a directory can't be created.
pub fn create_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    system::private_dir(&mut builder);
    builder.create(path)
}

/// Returns true if only this user and administrators can create files in the directory and in each directory above it. Programs that look
/// for settings in these directories then find none of another user. Always true on Windows, where directories of users are private.
pub fn is_own(dir: &Path) -> bool {
    dunce::canonicalize(dir).is_ok_and(|dir| dir.ancestors().all(system::is_own))
}

fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    system::private_file(options);
    let file = options.open(path).map_err(|error| system::explained(error, path))?;
    if system::is_stdout(&file) {
        return Err(io::Error::other("path leads to stdout, which is reserved for the protocol"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn writers_append_to_the_same_file() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().join("a/b");
        let file = directory.path().join("a/b/file");
        for _ in 0..2 {
            create_dir(&dir).unwrap();
        }
        append(&file).unwrap().write_all(b"one").unwrap();
        append_and_wait(&file).unwrap().write_all(b"two").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"onetwo");
        // Use two writers at once, because several proxies may share an event file.
        let mut first = append(&file).unwrap();
        let mut second = append(&file).unwrap();
        first.write_all(b"three").unwrap();
        second.write_all(b"four").unwrap();
        first.write_all(b"five").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"onetwothreefourfive");
    }

    #[test]
    fn files_and_directories_that_cannot_be_created() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        append(&file).unwrap();
        create_dir(&file).unwrap_err();
        create_dir(&file.join("below")).unwrap_err();
        append(&file.join("below")).unwrap_err();
        append(directory.path()).unwrap_err();
        assert_eq!(append(&directory.path().join("none/file")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
