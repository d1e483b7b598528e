//! Files and directories that only their owner may read. What differs by system is in `unix` and `windows`.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    path::Path,
};

/// Opens a file to append to it; creates it, for its owner alone, when there is none.
///
/// Never blocks: a FIFO that nobody reads is an error. One that somebody reads does not block later either, so what does not
/// fit into it is an error ([`WouldBlock`](io::ErrorKind::WouldBlock)) of the one who writes.
///
/// # Errors
/// As the system says.
pub fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    system::private_file(&mut options);
    options.open(path).map_err(|error| system::explained(error, path))
}

/// The same, but writing waits for whoever reads a FIFO.
///
/// # Errors
/// As the system says.
pub(crate) fn append_and_wait(path: &Path) -> io::Result<File> {
    let file = append(path)?;
    system::wait_when_full(&file)?;
    Ok(file)
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

#[cfg(all(test, unix))]
mod tests {
    use std::{
        io::{Read, Write},
        os::unix::fs::PermissionsExt,
        process::Command,
    };

    use super::*;

    #[test]
    fn only_the_owner_may_read() {
        let directory = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (dir, file) = (directory.path().join("a/b"), directory.path().join("a/b/file"));
        create_dir(&dir).unwrap();
        append(&file).unwrap().write_all(b"one").unwrap();
        append_and_wait(&file).unwrap().write_all(b"two").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"onetwo");
        assert_eq!((mode(&directory.path().join("a")), mode(&dir), mode(&file)), (0o700, 0o700, 0o600));
    }

    #[test]
    fn a_fifo_holds_nobody_up() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for open in [append, append_and_wait] {
            let error = open(&fifo).unwrap_err();
            assert!(error.to_string().contains("a FIFO that nobody reads"), "{error}");
        }
        // Held by a reader, without a writer yet.
        let mut reader = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        let mut writer = append(&fifo).unwrap();
        let full = std::iter::repeat_with(|| writer.write(&[b'x'; 1024])).find_map(Result::err).unwrap();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        // The other one waits until there is room.
        let mut patient = append_and_wait(&fifo).unwrap();
        let waits = std::thread::spawn(move || patient.write_all(b"last"));
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"last") {
            let mut some = [0; 4096];
            let count = reader.read(&mut some).unwrap();
            bytes.extend_from_slice(&some[..count]);
        }
        waits.join().unwrap().unwrap();
    }

    #[test]
    fn what_is_no_file() {
        let error = append(Path::new("/")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        append(Path::new("/dev/null")).unwrap();
    }
}
