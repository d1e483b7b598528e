//! Files and directories that only their owner may read, and the rights of those that others may. What differs by system is in
//! `unix` and `windows`.

#[cfg_attr(unix, path = "private/unix.rs")]
#[cfg_attr(windows, path = "private/windows.rs")]
mod system;

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read},
    path::Path,
};

/// Opens a file to append to it; creates it, for its owner alone, when there is none.
///
/// Never blocks: a FIFO that nobody reads is an error. One that somebody reads does not block later either, so what does not
/// fit into it is an error ([`WouldBlock`](io::ErrorKind::WouldBlock)) of the one who writes.
///
/// # Errors
/// As the system says; and when it leads to where this program's stdout does (`/dev/stdout`), which others read.
pub fn append(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().create(true).append(true), path)
}

/// As [`append`], but writing waits for whoever reads a FIFO.
///
/// # Errors
/// As the system says.
pub fn append_and_wait(path: &Path) -> io::Result<File> {
    let file = append(path)?;
    system::wait_when_full(&file)?;
    Ok(file)
}

/// Opens a file to lock it, as [`append`] does.
///
/// # Errors
/// As of [`append`].
pub fn lockable(path: &Path) -> io::Result<File> {
    // Windows locks no file that can only be appended to; elsewhere, a FIFO that may be read is opened without a reader.
    open(OpenOptions::new().create(true).append(true).read(cfg!(windows)), path)
}

/// Reads a file of at most `max_bytes` bytes. One that does not answer, on a slow disk or as a FIFO, is waited for.
///
/// # Errors
/// As the system says, when it is longer, and when it is a device, which may have no end.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    let file = File::open(path)?;
    if system::is_device(&file.metadata()?) {
        return invalid("it is no file");
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return invalid("it is too long to be ours");
    }
    Ok(bytes)
}

/// Gives a file that will be at `path` the rights of the one that is there, or those of any new file.
///
/// # Errors
/// As the system says.
pub fn take_rights(file: &File, path: &Path) -> io::Result<()> {
    system::take_rights(file, path)
}

/// Creates a directory, and those above it, for their owner alone, unless they are there.
///
/// # Errors
/// As the system says.
pub fn create_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    system::private_dir(&mut builder);
    builder.create(path)
}

fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    system::private_file(options);
    let file = options.open(path).map_err(|error| system::explained(error, path))?;
    if system::is_stdout(&file) {
        return Err(io::Error::other("it is where stdout goes"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_appended() {
        let directory = tempfile::tempdir().unwrap();
        let (dir, file) = (directory.path().join("a/b"), directory.path().join("a/b/file"));
        for _ in 0..2 {
            create_dir(&dir).unwrap();
        }
        append(&file).unwrap().write_all(b"one").unwrap();
        append_and_wait(&file).unwrap().write_all(b"two").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"onetwo");
        // Two at once, as several proxies share a record.
        let (mut first, mut second) = (append(&file).unwrap(), append(&file).unwrap());
        first.write_all(b"three").unwrap();
        second.write_all(b"four").unwrap();
        first.write_all(b"five").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"onetwothreefourfive");
    }

    #[test]
    fn what_cannot_be_made() {
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
