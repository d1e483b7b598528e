//! [`Group`]: a child process together with everything that it starts; the only file that differs by platform.
//!
//! On Unix a process group, on Windows a job object. A group never outlives its value: dropping it kills it.

use std::{io, process::ExitStatus};

#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
#[cfg(windows)]
use process_wrap::tokio::{JobObject, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

/// Variables that programs need to start at all; everything else goes in a clean environment.
#[cfg(unix)]
pub(super) const ESSENTIAL_VARIABLES: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];
/// Variables that programs need to start at all; everything else goes in a clean environment.
#[cfg(windows)]
pub(super) const ESSENTIAL_VARIABLES: &[&str] = &[
    "PATH",
    "PATHEXT",
    "SystemRoot",
    "SystemDrive",
    "ComSpec",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "ProgramData",
    "ProgramFiles",
    "windir",
];

/// A running child and its descendants.
#[derive(Debug)]
pub(super) struct Group {
    child: Box<dyn ChildWrapper>,
    killed: bool,
}

impl Group {
    /// Starts `command` as the leader of a new group.
    pub(super) fn spawn(command: Command) -> io::Result<Self> {
        let mut wrap = CommandWrap::from(command);
        #[cfg(unix)]
        wrap.wrap(ProcessGroup::leader());
        #[cfg(windows)]
        wrap.wrap(KillOnDrop).wrap(JobObject);
        Ok(Self { child: wrap.spawn()?, killed: false })
    }

    /// The pipes to and from the leader, once.
    pub(super) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin().take(), self.child.stdout().take(), self.child.stderr().take())
    }

    /// Waits for the leader; the others may still run.
    pub(super) async fn exited(&mut self) -> io::Result<ExitStatus> {
        // The wrapper's own `wait` waits for the whole group, for as long as any descendant likes to live.
        self.child.inner_mut().wait().await
    }

    /// Asks all members to end; `false` where the platform has no way to ask.
    pub(super) fn terminate(&self) -> bool {
        #[cfg(unix)]
        {
            const SIGTERM: i32 = 15;
            self.child.signal(SIGTERM).is_ok()
        }
        #[cfg(not(unix))]
        {
            false
        }
    }

    /// Ends all members that are left.
    pub(super) fn kill(&mut self) {
        // Once only: later the number of the group may be somebody else's.
        if !std::mem::replace(&mut self.killed, true) {
            // An error means that nobody is left.
            let _ = self.child.start_kill();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The signal that ended a process, where there are signals.
pub(super) fn signal(status: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    {
        std::os::unix::process::ExitStatusExt::signal(&status)
    }
    #[cfg(not(unix))]
    {
        let _ = status;
        None
    }
}
