//! Reads ahead of the reader, so that the end of a pipe is detected while earlier bytes are still unread.
//!
//! On Windows, only a read reports that the other end of a pipe is closed, and the proxy does not read while the agent accepts
//! no input. Editors send little in that time, so it fits into the read-ahead buffer.
//!
//! Reading starts with the first read of the consumer. If the start of the agent fails, all bytes are left for `refusal`, which
//! answers the client instead.

use std::{
    collections::VecDeque,
    io::{self, Read},
    mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Sender, channel},
    },
    thread,
};

/// The maximum size of one read, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// The size of the buffer in bytes. If it is full, reading pauses until the consumer takes some bytes. The limit is not a number
/// of reads, because each read may return one short line.
const KEPT_BYTES: usize = 64 * CHUNK_BYTES;

/// Reads `source` in a separate thread, which starts with the first read of the result. Returns a reader of the same bytes, and a
/// function that blocks until `source` has ended.
pub(super) fn read_ahead<R: Read + Send + 'static>(source: R) -> (ReadAhead<R>, impl FnOnce() + Send) {
    let (open, end) = channel();
    let wait = move || {
        // If this fails, the thread has ended or was never started.
        let _ = end.recv();
    };
    (ReadAhead::NotStarted(source, open), wait)
}

/// A reader of the bytes that were read ahead, in order.
pub(super) enum ReadAhead<R> {
    /// Reading has not started. Dropping the sender signals the end.
    NotStarted(R, Sender<()>),
    Running(Taker),
    /// The thread could not be started, which was reported as an error of the first read.
    Failed,
}

/// The state that the reading thread and the consumer share.
#[derive(Default)]
struct Shared {
    kept: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// The result of reading once the source has ended. An error is returned once, after the bytes.
    end: Option<io::Result<()>>,
    /// True if the consumer was dropped.
    is_left: bool,
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the buffer as soon as `is_ready` returns true.
    fn wait(&self, is_ready: impl Fn(&Kept) -> bool) -> MutexGuard<'_, Kept> {
        let guard = self.changed.wait_while(self.kept(), |kept| !is_ready(kept));
        guard.unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until the end or an error, or until the consumer is dropped.
    fn fill(&self, mut source: impl Read) {
        let mut buffer = vec![0; CHUNK_BYTES];
        let end = loop {
            match source.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(count) => {
                    let mut kept = self.wait(|kept| kept.bytes.len() < KEPT_BYTES || kept.is_left);
                    if kept.is_left {
                        return;
                    }
                    kept.bytes.extend(&buffer[..count]);
                    self.changed.notify_all();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.kept().end = Some(end);
        self.changed.notify_all();
    }
}

/// The consumer of the buffer.
pub(super) struct Taker(Arc<Shared>);

impl Read for Taker {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut kept = self.0.wait(|kept| !kept.bytes.is_empty() || kept.end.is_some());
        let count = kept.bytes.read(buffer)?;
        if kept.bytes.is_empty() {
            // Free the memory that was used for a large backlog.
            kept.bytes.shrink_to(CHUNK_BYTES);
            if let (0, Some(end)) = (count, &mut kept.end) {
                mem::replace(end, Ok(()))?;
            }
        }
        self.0.changed.notify_all();
        Ok(count)
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        self.0.kept().is_left = true;
        self.0.changed.notify_all();
    }
}

impl<R: Read + Send + 'static> ReadAhead<R> {
    fn start(&mut self) -> io::Result<()> {
        *self = match mem::replace(self, Self::Failed) {
            Self::NotStarted(source, open) => {
                let shared = Arc::<Shared>::default();
                let taker = Taker(Arc::clone(&shared));
                thread::Builder::new().name("read-ahead".to_owned()).spawn(move || {
                    shared.fill(source);
                    drop(open);
                })?;
                Self::Running(taker)
            }
            started => started,
        };
        Ok(())
    }
}

impl<R: Read + Send + 'static> Read for ReadAhead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.start()?;
        match self {
            Self::Running(taker) if !buffer.is_empty() => taker.read(buffer),
            _ => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_bytes_are_unchanged() {
        let (source, mut writer) = io::pipe().unwrap();
        let (mut reader, end) = read_ahead(source);
        // Use more bytes than will fit into the buffer.
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(3 * KEPT_BYTES).collect();
        let expected = bytes.clone();
        let writes = thread::spawn(move || writer.write_all(&bytes));
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        writes.join().unwrap().unwrap();
        assert!(read == expected, "{} bytes", read.len());
        end();
    }

    #[test]
    fn the_end_is_detected_before_the_rest_is_read() {
        let (source, mut writer) = io::pipe().unwrap();
        let (mut reader, end) = read_ahead(source);
        writer.write_all(b"first").unwrap();
        reader.read_exact(&mut [0; 5]).unwrap();
        let sent = vec![b'x'; 10 * CHUNK_BYTES];
        writer.write_all(&sent).unwrap();
        drop(writer);
        end();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert!(read == sent, "{} bytes", read.len());
    }

    /// Each byte is returned by a separate read.
    #[test]
    fn the_end_is_detected_after_many_small_reads() {
        struct Pieces(usize);
        impl Read for Pieces {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let Some(left) = self.0.checked_sub(1) else { return Ok(0) };
                self.0 = left;
                buffer[0] = b'x';
                Ok(1)
            }
        }
        let (mut reader, end) = read_ahead(Pieces(10_000));
        reader.read_exact(&mut [0]).unwrap();
        end();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), 9_999);
    }

    /// If the agent does not start, `refusal` reads these bytes.
    #[test]
    fn without_a_read_no_bytes_are_taken() {
        let (mut source, mut writer) = io::pipe().unwrap();
        writer.write_all(b"said").unwrap();
        let (reader, end) = read_ahead(source.try_clone().unwrap());
        drop(reader);
        // The wait should end when the reader is dropped.
        end();
        let mut read = [0; 4];
        source.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"said");
    }

    /// Returns some bytes, and then an error.
    struct Failing(&'static [u8]);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::other("no more")),
                count => Ok(count),
            }
        }
    }

    #[test]
    fn errors_come_after_the_bytes() {
        let (mut reader, end) = read_ahead(Failing(b"said"));
        let mut read = vec![0; 1];
        reader.read_exact(&mut read).unwrap();
        end();
        assert_eq!(reader.read_to_end(&mut read).unwrap_err().to_string(), "no more");
        assert_eq!(read, b"said");
    }

    /// Reads a source that never ends.
    #[test]
    fn the_buffer_is_bounded() {
        struct Endless(std::sync::mpsc::Sender<()>);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                // This fails after the test has dropped the receiver.
                self.0.send(()).map_err(io::Error::other)?;
                Ok(buffer.len())
            }
        }
        let (sender, reads) = channel();
        let (mut reader, _end) = read_ahead(Endless(sender));
        let mut taken = 0;
        for _ in 0..10 {
            reader.read_exact(&mut vec![0; CHUNK_BYTES]).unwrap();
            taken += 1;
        }
        // The number of reads that were used, plus those in the buffer, plus the one that is waiting for room.
        let most = taken + KEPT_BYTES / CHUNK_BYTES + 1;
        for _ in 0..most {
            reads.recv().unwrap();
        }
        for _ in 0..1_000 {
            thread::yield_now();
            assert!(reads.try_recv().is_err());
        }
    }
}
