//! Reads ahead of whoever reads, so that the end is noticed while nobody takes what was said before it.
//!
//! On Windows nothing but a read tells that the other end of a pipe is closed, and the proxy does not read while the agent
//! takes nothing. The little that editors say then fits into what is read ahead.
//!
//! Nothing is read before somebody asks for it: a start that fails leaves all that was said to whoever answers instead.

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

/// How much is read at once at most, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// How much is kept for the reader, in bytes: then no more is read until it takes some. Bytes are what counts, because whoever
/// writes short lines may have each of them read alone.
const KEPT_BYTES: usize = 64 * CHUNK_BYTES;

/// Reads `source` from a thread of its own, from the first read on. Returns what reads the same bytes, and what waits for
/// their end.
pub(super) fn read_ahead<R: Read + Send + 'static>(source: R) -> (ReadAhead<R>, impl FnOnce() + Send) {
    let (open, end) = channel();
    let wait = move || {
        // Fails when the thread is over, or will never be there.
        let _ = end.recv();
    };
    (ReadAhead::Waiting(source, open), wait)
}

/// What was read ahead, in order.
pub(super) enum ReadAhead<R> {
    /// Nobody has read yet. What is sent nothing, but dropped, tells the end.
    Waiting(R, Sender<()>),
    Running(Taker),
    /// There can be no thread, which was told.
    Failed,
}

/// What is between the thread that reads and the one that takes.
#[derive(Default)]
struct Shared {
    kept: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// Nothing more is read; an error is told once, behind the bytes.
    end: Option<io::Result<()>>,
    /// Nobody takes any more.
    is_left: bool,
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, once `is_ready`.
    fn wait(&self, is_ready: impl Fn(&Kept) -> bool) -> MutexGuard<'_, Kept> {
        let guard = self.changed.wait_while(self.kept(), |kept| !is_ready(kept));
        guard.unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until the end, an error, or nobody takes it any more.
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

/// Takes what is kept.
pub(super) struct Taker(Arc<Shared>);

impl Read for Taker {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut kept = self.0.wait(|kept| !kept.bytes.is_empty() || kept.end.is_some());
        let count = kept.bytes.read(buffer)?;
        if kept.bytes.is_empty() {
            // A flood leaves nothing behind.
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
            Self::Waiting(source, open) => {
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
    fn the_same_bytes() {
        let (source, mut writer) = io::pipe().unwrap();
        let (mut reader, end) = read_ahead(source);
        // More than is kept.
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
    fn the_end_is_noticed_before_the_rest_is_read() {
        let (source, mut writer) = io::pipe().unwrap();
        let (mut reader, end) = read_ahead(source);
        writer.write_all(b"first").unwrap();
        reader.read_exact(&mut [0; 5]).unwrap();
        let said = vec![b'x'; 10 * CHUNK_BYTES];
        writer.write_all(&said).unwrap();
        drop(writer);
        end();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert!(read == said, "{} bytes", read.len());
    }

    /// Each of which is read alone.
    #[test]
    fn the_end_is_noticed_behind_many_small_pieces() {
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

    /// Where the agent does not start, somebody else answers.
    #[test]
    fn what_nobody_asked_for_is_left_to_others() {
        let (mut source, mut writer) = io::pipe().unwrap();
        writer.write_all(b"said").unwrap();
        let (reader, end) = read_ahead(source.try_clone().unwrap());
        drop(reader);
        // Nobody waits for ever.
        end();
        let mut read = [0; 4];
        source.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"said");
    }

    /// Says something, and fails.
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
    fn failures() {
        let (mut reader, end) = read_ahead(Failing(b"said"));
        let mut read = vec![0; 1];
        reader.read_exact(&mut read).unwrap();
        end();
        assert_eq!(reader.read_to_end(&mut read).unwrap_err().to_string(), "no more");
        assert_eq!(read, b"said");
    }

    /// A source that would fill any memory.
    #[test]
    fn what_is_kept_is_bounded() {
        struct Endless(std::sync::mpsc::Sender<()>);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                // Fails when nobody counts any more.
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
        // What has been taken, what is kept, and the one that waits to be kept.
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
