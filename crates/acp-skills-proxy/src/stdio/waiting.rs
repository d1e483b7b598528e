//! [`Waiting`]: stdin or stdout, even if another process that shares it has made it non-blocking.

use std::{
    fs::File,
    io::{self, Read, Write},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};

/// A stream that always blocks. `O_NONBLOCK` belongs to a stream and not to a process, so the editor or another holder may set it at any
/// time, and may need it.
pub(crate) struct Waiting(pub(super) File);

impl Waiting {
    fn retry<T>(
        &mut self,
        ready: PollFlags,
        mut operation: impl FnMut(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match operation(&mut self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            match poll(&mut [PollFd::new(&self.0, ready)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.retry(PollFlags::IN, |file| file.read(buffer))
    }
}

impl Write for Waiting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.retry(PollFlags::OUT, |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::{os::fd::OwnedFd, thread};

    use super::*;

    #[test]
    fn a_stream_without_data_or_space_is_awaited() {
        let (reader, writer) = io::pipe().unwrap();
        let [mut reader, mut writer] = [OwnedFd::from(reader), OwnedFd::from(writer)].map(|end| {
            rustix::io::ioctl_fionbio(&end, true).unwrap();
            Waiting(File::from(end))
        });
        // More than a pipe holds.
        let sent = vec![b'x'; 4 << 20];
        let length = sent.len();
        let writing = thread::spawn(move || writer.write_all(&sent));
        let mut received = Vec::new();
        reader.read_to_end(&mut received).unwrap();
        writing.join().unwrap().unwrap();
        assert_eq!(received.len(), length);
    }
}
