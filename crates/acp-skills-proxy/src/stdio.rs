//! Our own stdin and stdout: taken away from everybody else, because stdout is the wire.
//!
//! The real descriptors are kept aside without the standard library's buffers. What any dependency prints afterwards
//! goes to stderr.

#![expect(clippy::disallowed_methods, reason = "the descriptors themselves are what is taken")]

use std::{
    fs::File,
    io::{self, IsTerminal},
};

use acp_skills::relay::Ends;

/// Whether a person sits at both ends.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Takes stdin and stdout for the protocol.
///
/// # Errors
/// They are closed, or the system is out of descriptors.
#[cfg(unix)]
pub(crate) fn take() -> io::Result<Ends> {
    use std::os::fd::AsFd;
    let reader = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let writer = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    let watched = reader.try_clone()?;
    let mut ends = Ends::new(reader, writer);
    ends.hangup = Some(Box::new(move || wait_for_hangup(&watched)));
    Ok(ends)
}

/// Waits until nobody has the other end of a pipe or socket. What it still holds may not have been read.
#[cfg(unix)]
fn wait_for_hangup(file: &File) {
    use rustix::event::{PollFd, PollFlags, poll};
    // A hangup is always told. The end of one direction of a socket, which editors use for pipes too, only on Linux.
    #[cfg(target_os = "linux")]
    let flags = PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let flags = PollFlags::empty();
    loop {
        match poll(&mut [PollFd::new(file, flags)], None) {
            Err(rustix::io::Errno::INTR) | Ok(0) => {}
            Ok(_) => return,
            // It cannot be watched: never gone, as far as we know.
            Err(_) => loop {
                std::thread::park();
            },
        }
    }
}

/// Takes stdin and stdout for the protocol.
///
/// # Errors
/// They are closed, or the system is out of handles.
#[cfg(windows)]
pub fn take() -> io::Result<Ends> {
    use std::os::windows::io::AsHandle;
    let reader = File::from(io::stdin().as_handle().try_clone_to_owned()?);
    let writer = File::from(io::stdout().as_handle().try_clone_to_owned()?);
    // Sending what others print to stderr would need `SetStdHandle`, which is unsafe. The lints keep our own code
    // from printing.
    Ok(Ends::new(reader, writer))
}
