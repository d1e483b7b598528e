//! Waits until the other end of a pipe or socket is closed, even if it still holds bytes that we have not read.
//!
//! On Linux, `poll` reports the hangup without waking up for each message. On macOS it cannot: `poll` registers nothing
//! unless it is asked for an event ([`poll_nocancel`]), and then it returns for the first message. Therefore, we use
//! kqueue on macOS and the BSDs. It reports both messages and the end, but sets `EV_EOF` only for the end
//! ([`filt_pipe_draincommon`], `filt_soread_common`).
//!
//! [`poll_nocancel`]: https://github.com/apple-oss-distributions/xnu/blob/main/bsd/kern/sys_generic.c
//! [`filt_pipe_draincommon`]: https://github.com/apple-oss-distributions/xnu/blob/main/bsd/kern/sys_pipe.c

use std::{fs::File, io, thread};

#[cfg(target_os = "linux")]
use by_poll as by_system;
#[cfg(not(target_os = "linux"))]
use by_queue as by_system;

/// Returns when the other end is closed. Never returns for descriptors that cannot be watched, such as regular files.
pub(super) fn wait(file: &File) {
    if by_system(file).is_err() {
        // If the system can't watch this descriptor, treat it as always open.
        loop {
            thread::park();
        }
    }
}

#[cfg(target_os = "linux")]
fn by_poll(file: &File) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    loop {
        // Hangups are always reported. With `RDHUP`, we're also notified when just one direction is closed, since
        // some editors use a socket instead of a pipe.
        match poll(&mut [PollFd::new(file, PollFlags::RDHUP)], None) {
            Err(rustix::io::Errno::INTR) | Ok(0) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

// This is also compiled on Linux, so that we can run the tests there.
#[cfg(any(test, not(target_os = "linux")))]
fn by_queue(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use mio::{Events, Interest, Poll, Token, event::Event, unix::SourceFd};
    let mut poll = Poll::new()?;
    poll.registry().register(&mut SourceFd(&file.as_raw_fd()), Token(0), Interest::READABLE)?;
    let mut events = Events::with_capacity(1);
    loop {
        match poll.poll(&mut events, None) {
            // There is an event for each message, so check whether this is the end.
            Ok(()) if events.iter().any(Event::is_read_closed) => return Ok(()),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::Shutdown,
        os::{fd::OwnedFd, unix::net::UnixStream},
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
    };

    use super::*;

    /// The implementations that work on this system.
    const WAYS: [fn(&File) -> io::Result<()>; 2] = [by_system, by_queue];

    /// Writes messages, of which the last one is not read, and closes the writer with `leave`. The wait must end only then.
    fn check<W: Write>(pipe: impl Fn() -> (OwnedFd, W), leave: impl Fn(W) -> Option<W>) {
        for way in WAYS {
            let (reader, mut writer) = pipe();
            let mut reader = File::from(reader);
            let has_left = Arc::new(AtomicBool::new(false));
            writer.write_all(b"before").unwrap();
            let waits = thread::spawn({
                let watched = reader.try_clone().unwrap();
                let has_left = Arc::clone(&has_left);
                move || {
                    way(&watched).unwrap();
                    has_left.load(Ordering::SeqCst)
                }
            });
            let mut read = [0; 6];
            for _ in 0..100 {
                reader.read_exact(&mut read).unwrap();
                writer.write_all(b"unread").unwrap();
                thread::yield_now();
            }
            has_left.store(true, Ordering::SeqCst);
            let rest = leave(writer);
            assert!(waits.join().unwrap(), "the end was reported too early");
            drop(rest);
        }
    }

    #[test]
    fn the_end_of_a_pipe_is_detected() {
        let pipe = || {
            let (reader, writer) = io::pipe().unwrap();
            (reader.into(), writer)
        };
        check(pipe, |_writer| None);
    }

    #[test]
    fn the_end_of_a_socket_is_detected() {
        let pair = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (ours.into(), theirs)
        };
        check(pair, |_writer| None);
        // Close the socket in just one direction.
        check(pair, |writer| {
            writer.shutdown(Shutdown::Write).unwrap();
            Some(writer)
        });
    }
}
