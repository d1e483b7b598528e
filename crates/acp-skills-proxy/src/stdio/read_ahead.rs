//! Reads ahead of whoever reads, so that the end is noticed while nobody takes what was said before it.
//!
//! On Windows nothing but a read tells that the other end of a pipe is closed, and the proxy does not read while the agent
//! takes nothing. The little that editors say then fits into what is read ahead.
//!
//! Nothing is read before somebody asks for it: a start that fails leaves all that was said to whoever answers instead.

use std::{
    io::{self, Read},
    mem,
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread,
};

/// How much is read at once at most, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// How many chunks are kept for the reader; more stay where they are until it takes one.
const CHUNKS: usize = 64;

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
    Running {
        chunks: Receiver<io::Result<Vec<u8>>>,
        chunk: io::Cursor<Vec<u8>>,
    },
    /// There can be no thread, which was told.
    Failed,
}

impl<R: Read + Send + 'static> ReadAhead<R> {
    fn start(&mut self) -> io::Result<()> {
        *self = match mem::replace(self, Self::Failed) {
            Self::Waiting(source, open) => {
                let (sender, chunks) = sync_channel(CHUNKS);
                thread::Builder::new().name("read-ahead".to_owned()).spawn(move || {
                    copy(source, &sender);
                    drop(open);
                })?;
                Self::Running { chunks, chunk: io::Cursor::default() }
            }
            started => started,
        };
        Ok(())
    }
}

/// Reads until the end or an error.
fn copy(mut source: impl Read, sender: &SyncSender<io::Result<Vec<u8>>>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let chunk = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => Ok(buffer[..count].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_over = chunk.is_err();
        // Fails when nobody reads any more.
        if sender.send(chunk).is_err() || is_over {
            break;
        }
    }
}

impl<R: Read + Send + 'static> Read for ReadAhead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.start()?;
        let Self::Running { chunks, chunk } = self else { return Ok(0) };
        loop {
            let count = chunk.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match chunks.recv() {
                Ok(next) => *chunk = io::Cursor::new(next?),
                Err(_) => return Ok(0),
            }
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
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(3 * CHUNKS * CHUNK_BYTES).collect();
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
        let most = taken + CHUNKS + 1;
        for _ in 0..most {
            reads.recv().unwrap();
        }
        for _ in 0..1_000 {
            thread::yield_now();
            assert!(reads.try_recv().is_err());
        }
    }
}
