//! Reads and writes files that the user named and that may not be regular files. A FIFO has no data until a process writes to it, and a device
//! such as `/dev/zero` never ends.

use std::{
    fs::{self, File},
    io::{self, Cursor, Read, Write},
    mem,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use super::private::refuse_link;

/// The time after which we log a warning that says what we are waiting for.
const SILENCE: Duration = Duration::from_secs(1);
/// The timeout for a file that is not a regular file.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The size of one read of a FIFO, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads a file of at most `max_bytes` bytes. If it is not a regular file, logs a warning after one second of waiting, and gives up
/// after 30 seconds.
///
/// # Errors
/// Returns the system's error if the file can't be read, [`InvalidData`](io::ErrorKind::InvalidData) if it is larger, and
/// [`TimedOut`](io::ErrorKind::TimedOut) if the file has not ended by then.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let owned = path.to_owned();
    within(path, WRITER, TIMEOUT, move || {
        let mut bytes = Vec::new();
        File::open(&owned)?.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            let why = format!("the file is larger than {} MiB", max_bytes >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(bytes)
    })
}

/// Reads a file as [`read`] does, and returns it as text.
///
/// # Errors
/// Returns the errors of [`read`], and [`InvalidData`](io::ErrorKind::InvalidData) if the file is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    String::from_utf8(read(path, max_bytes)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the file is not valid UTF-8"))
}

/// Writes a file. If it is a FIFO that is not read, logs a warning after one second of waiting, and gives up after 30 seconds.
///
/// A symbolic link is only followed in `/dev`, because a project can contain a link to a file that runs at the next login.
///
/// # Errors
/// Returns the system's error if the file can't be written, an error if the path is a symbolic link, and [`TimedOut`](io::ErrorKind::TimedOut) if no process has read
/// everything by then.
pub fn write(path: &Path, text: String) -> io::Result<()> {
    let follows = std::path::absolute(path)?.starts_with("/dev");
    let owned = path.to_owned();
    let write = move || create(&owned, follows)?.write_all(text.as_bytes());
    if fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return write();
    }
    within(path, READER, TIMEOUT, write)
}

/// Creates or truncates a file. Its path may only be a symbolic link if `follows` is true.
fn create(path: &Path, follows: bool) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    if follows {
        return options.open(path);
    }
    refuse_link(&mut options);
    options.open(path).map_err(|error| {
        let link = "the path is a symbolic link; name its target instead";
        if path.is_symlink() { io::Error::new(error.kind(), link) } else { error }
    })
}

/// Opens a file for reading, unless it is a device, which may never end. If it is a FIFO, waits for a process that
/// writes to it, as [`read`] does. Each read of the result waits in the same way, so a FIFO of any length can be read.
///
/// # Errors
/// Returns the system's error if the file can't be opened, [`InvalidInput`](io::ErrorKind::InvalidInput) if it is a device, and
/// [`TimedOut`](io::ErrorKind::TimedOut) if no process writes to the FIFO. Reads of the result also return
/// [`TimedOut`](io::ErrorKind::TimedOut).
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let owned = path.to_owned();
    let file = within(path, WRITER, TIMEOUT, move || File::open(owned))?;
    if super::private::is_device(&file)? {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the file is a device, so reading it may never end",
        ));
    }
    let metadata = file.metadata()?;
    if metadata.is_file() || metadata.is_dir() {
        return Ok(Box::new(file));
    }
    Ok(Box::new(Pieces::start(file, path, TIMEOUT)?))
}

/// A reader that waits for each piece of a file with a timeout.
struct Pieces {
    path: PathBuf,
    received: Receiver<io::Result<Vec<u8>>>,
    timeout: Duration,
    /// The piece that is being returned.
    current: Cursor<Vec<u8>>,
    has_warned: bool,
}

impl Pieces {
    fn start(mut file: File, path: &Path, timeout: Duration) -> io::Result<Self> {
        let (sender, received) = sync_channel(1);
        // A blocking read can't be cancelled, so after a timeout, the thread stays until the program exits.
        thread::Builder::new().name("patient".to_owned()).spawn(move || {
            loop {
                let mut piece = vec![0; PIECE_BYTES];
                let read = file.read(&mut piece).map(|length| {
                    piece.truncate(length);
                    piece
                });
                let is_last = !matches!(&read, Ok(piece) if !piece.is_empty());
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        })?;
        Ok(Self { path: path.to_owned(), received, timeout, current: Cursor::default(), has_warned: false })
    }

    /// Waits for the next piece. It is empty at the end of the file.
    fn next(&mut self) -> io::Result<Vec<u8>> {
        let mut received = self.received.recv_timeout(SILENCE.min(self.timeout));
        if matches!(received, Err(RecvTimeoutError::Timeout)) {
            if !mem::replace(&mut self.has_warned, true) {
                warn_of_wait(WRITER.0, &self.path);
            }
            received = self.received.recv_timeout(self.timeout.saturating_sub(SILENCE));
        }
        match received {
            Ok(piece) => piece,
            Err(RecvTimeoutError::Timeout) => Err(timed_out(WRITER.1, self.timeout)),
            // The thread has sent the end before.
            Err(RecvTimeoutError::Disconnected) => Ok(Vec::new()),
        }
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.current.position() == self.current.get_ref().len() as u64 && !buffer.is_empty() {
            self.current = Cursor::new(self.next()?);
        }
        self.current.read(buffer)
    }
}

/// The process at the other end of a FIFO that we read: what it has to do, and what it did not do.
const WRITER: (&str, &str) = ("writes to", "written the file to its end");
/// The process at the other end of a FIFO that we write to.
const READER: (&str, &str) = ("reads", "read the file to its end");

/// Runs `work`, which reads or writes the file at `path`. Waits with a timeout if it is not a regular file.
fn within<T: Send + 'static>(
    path: &Path,
    (does, done_in_time): (&str, &str),
    timeout: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() || metadata.is_dir() {
        return work();
    }
    let (done, result) = sync_channel(1);
    // A blocking read can't be cancelled, so after a timeout, the thread stays until the program exits.
    thread::Builder::new().name("patient".to_owned()).spawn(move || {
        // This fails if the caller has stopped waiting because of a timeout.
        let _ = done.send(work());
    })?;
    if let Ok(result) = result.recv_timeout(SILENCE.min(timeout)) {
        return result;
    }
    warn_of_wait(does, path);
    result
        .recv_timeout(timeout.saturating_sub(SILENCE))
        .unwrap_or_else(|_| Err(timed_out(done_in_time, timeout)))
}

fn warn_of_wait(does: &str, path: &Path) {
    tracing::warn!("waiting for a process that {does} {} and closes it", path.display());
}

fn timed_out(done_in_time: &str, timeout: Duration) -> io::Error {
    let why = format!("no process has {done_in_time} in {} seconds", timeout.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, why)
}

#[cfg(all(test, unix))]
mod tests {
    use std::{io::Write, process::Command};

    use super::*;

    #[test]
    fn regular_files_and_devices() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "123").unwrap();
        assert_eq!(read(&file, 3).unwrap(), b"123");
        assert_eq!(read(&file, 2).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(Path::new("/dev/zero"), 1 << 20).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(Path::new("/dev/null"), 1).unwrap(), b"");
        open(&file).unwrap();
        assert_eq!(open(Path::new("/dev/zero")).err().unwrap().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(open(&dir.path().join("none")).err().unwrap().kind(), io::ErrorKind::NotFound);
        read(dir.path(), 1).unwrap_err();
    }

    #[test]
    fn a_fifo() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = |name: &str| {
            let fifo = dir.path().join(name);
            assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
            fifo
        };
        let silent = fifo("silent");
        let owned = silent.clone();
        let error =
            within(&silent, WRITER, Duration::from_millis(10), move || File::open(owned)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // The FIFO is open for writing, but no more data comes.
        let stuck = fifo("stuck");
        let mut held = File::options().read(true).write(true).open(&stuck).unwrap();
        held.write_all(b"123").unwrap();
        // The time must be enough for a thread to read what is there, also on a busy machine.
        let mut pieces = Pieces::start(File::open(&stuck).unwrap(), &stuck, Duration::from_secs(2)).unwrap();
        let mut read_so_far = Vec::new();
        let error = pieces.read_to_end(&mut read_so_far).unwrap_err();
        assert_eq!((error.kind(), &*read_so_far), (io::ErrorKind::TimedOut, b"123".as_slice()));
        let written = fifo("written");
        let writer = written.clone();
        let writes = thread::spawn(move || fs::write(writer, "123"));
        assert_eq!(read(&written, 3).unwrap(), b"123");
        writes.join().unwrap().unwrap();
        let read = fifo("read");
        let reader = read.clone();
        let reads = thread::spawn(move || fs::read_to_string(reader));
        write(&read, "456".to_owned()).unwrap();
        assert_eq!(reads.join().unwrap().unwrap(), "456");
        let new = dir.path().join("new");
        write(&new, "7".to_owned()).unwrap();
        write(&new, "8".to_owned()).unwrap();
        assert_eq!(read_text(&new, 1).unwrap(), "8");
        fs::write(&new, [0xff]).unwrap();
        assert_eq!(read_text(&new, 1).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
