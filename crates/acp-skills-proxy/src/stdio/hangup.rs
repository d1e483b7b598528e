//! Waits until nobody has the other end of a pipe or socket, also while nobody reads what it still holds.
//!
//! Linux tells that by `poll`, without a word about each message. macOS does not: without an event that it knows, `poll`
//! registers nothing there ([`poll_nocancel`]), and would be used up by the first message with one. A queue of kernel
//! events tells both, the end as `EV_EOF` ([`filt_pipe_draincommon`], `filt_soread_common`); so do those of the BSDs.
//!
//! [`poll_nocancel`]: https://github.com/apple-oss-distributions/xnu/blob/main/bsd/kern/sys_generic.c
//! [`filt_pipe_draincommon`]: https://github.com/apple-oss-distributions/xnu/blob/main/bsd/kern/sys_pipe.c

use std::{fs::File, io, thread};

#[cfg(target_os = "linux")]
use by_poll as by_system;
#[cfg(not(target_os = "linux"))]
use by_queue as by_system;

/// Returns when the other end is closed. Never returns for what cannot be watched, such as a file.
pub(super) fn wait(file: &File) {
    if by_system(file).is_err() {
        // Never gone, as far as we know.
        loop {
            thread::park();
        }
    }
}

#[cfg(target_os = "linux")]
fn by_poll(file: &File) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    loop {
        // A hangup is always told; this is the end of one direction of a socket, which editors use for pipes too.
        match poll(&mut [PollFd::new(file, PollFlags::RDHUP)], None) {
            Err(rustix::io::Errno::INTR) | Ok(0) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

// On Linux for its tests, which are the same everywhere.
#[cfg(any(test, not(target_os = "linux")))]
fn by_queue(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use mio::{Events, Interest, Poll, Token, event::Event, unix::SourceFd};
    let mut poll = Poll::new()?;
    poll.registry().register(&mut SourceFd(&file.as_raw_fd()), Token(0), Interest::READABLE)?;
    let mut events = Events::with_capacity(1);
    loop {
        match poll.poll(&mut events, None) {
            // Each message is an event as well, whoever reads it.
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

    /// The ways that work on this system.
    const WAYS: [fn(&File) -> io::Result<()>; 2] = [by_system, by_queue];

    /// Says something, lets one message be read and the other not, and leaves.
    fn check<W: Write>(pipe: impl Fn() -> (OwnedFd, W), leave: impl Fn(W) -> Option<W>) {
        for way in WAYS {
            let (reader, mut writer) = pipe();
            let mut reader = File::from(reader);
            let has_left = Arc::new(AtomicBool::new(false));
            writer.write_all(b"before").unwrap();
            let waits = thread::spawn({
                let (watched, has_left) = (reader.try_clone().unwrap(), Arc::clone(&has_left));
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
            assert!(waits.join().unwrap(), "it was told too early");
            drop(rest);
        }
    }

    #[test]
    fn pipes() {
        let pipe = || {
            let (reader, writer) = io::pipe().unwrap();
            (reader.into(), writer)
        };
        check(pipe, |_writer| None);
    }

    #[test]
    fn sockets() {
        let pair = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (ours.into(), theirs)
        };
        check(pair, |_writer| None);
        // It goes on listening.
        check(pair, |writer| {
            writer.shutdown(Shutdown::Write).unwrap();
            Some(writer)
        });
    }
}
