//! Sees to it that the agent does not outlive a proxy that is killed without warning (Unix).
//!
//! A process of our own binary in a group of its own waits for the end of a pipe whose other end the proxy holds. When
//! the pipe ends without a farewell, the proxy is gone, and the watchdog ends the agent's group. On Windows the job
//! object does the same.

use std::{
    io::{self, PipeWriter, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "watchdog";

/// What the proxy says when it ends the agent itself.
const FAREWELL: &[u8] = b"bye";
/// How long the agent has to end once it was told to.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// A watchdog over the agent; it is dismissed when this is dropped in good order.
pub(super) struct Watchdog {
    child: Child,
    pipe: PipeWriter,
}

impl Watchdog {
    /// Starts `program` (our own binary) to watch over the process group `group`.
    pub(super) fn start(program: &Path, group: Pid) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        let child = Command::new(program)
            .args([SUBCOMMAND, &group.as_raw_nonzero().to_string()])
            .stdin(Stdio::from(reader))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { child, pipe })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // It may have been killed; then there is nobody to dismiss.
        drop(self.pipe.write_all(FAREWELL));
        drop(self.child.wait());
    }
}

/// Watches over a process group until the proxy says farewell or is gone.
///
/// # Errors
/// The number of the group is none.
pub fn run(group: &str) -> io::Result<()> {
    let group = group.parse().ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let mut said = Vec::new();
    // A pipe that cannot be read has ended as well.
    drop(io::stdin().lock().take(FAREWELL.len() as u64).read_to_end(&mut said));
    if said == FAREWELL {
        return Ok(());
    }
    // Fails only when nobody is left.
    let _ = kill_process_group(group, Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while test_kill_process_group(group).is_ok() && Instant::now() < deadline {
        sleep(POLL);
    }
    let _ = kill_process_group(group, Signal::KILL);
    Ok(())
}
