//! [`ProcessGroup`]: a child process together with everything that it starts. What differs by system is in `unix` and
//! `windows`.
//!
//! On Unix a process group, on Windows a job object. A group never outlives its value: dropping it kills it. It does
//! outlive this process where that is killed on Unix; what could end it then is told by a [`ProcessObserver`].

#[cfg_attr(unix, path = "process/unix.rs")]
#[cfg_attr(windows, path = "process/windows.rs")]
mod system;

use std::{fmt, io, process::ExitStatus, sync::Arc};

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

pub(super) use system::{ESSENTIAL_VARIABLES, signal};

/// Learns which programs run, so that something outside of this process can end them when this process is gone.
///
/// The functions are called where programs are started and ended, and must not block.
pub trait ProcessObserver: fmt::Debug + Send + Sync {
    /// A program is about to be started. Whoever has to be ready for it first may block here for a moment.
    ///
    /// What it is told of afterwards, it does not learn when this process is killed in between. So it may name a process
    /// group that exists, and that it watches already, for the program to join (Unix).
    fn starting(&self) -> Option<u32> {
        None
    }

    /// A program has been started. `group` is what [`starting`](Self::starting) named; `id` is the program's process, and on
    /// Unix the group that it leads, where it did not join one or has left it to make its own.
    fn started(&self, group: Option<u32>, id: u32);

    /// All of it has been killed, or was never started (no `id`). From now on the numbers may be those of others; ending
    /// these would be an accident.
    fn ended(&self, group: Option<u32>, id: Option<u32>);
}

/// A running child and its descendants. Needs a tokio runtime around it.
#[derive(Debug)]
pub struct ProcessGroup {
    child: Box<dyn ChildWrapper>,
    /// The group that it was started in, where that is not its own.
    joined: Option<u32>,
    /// The number of the leader, until the group is killed. Later it may be somebody else's.
    id: Option<u32>,
    observer: Option<Arc<dyn ProcessObserver>>,
}

impl ProcessGroup {
    /// Starts `command` in the group that `observer` has for it, or as the leader of a new one.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(command: Command, observer: Option<Arc<dyn ProcessObserver>>) -> io::Result<Self> {
        let joined = observer.as_ref().and_then(|observer| observer.starting());
        let mut wrap = CommandWrap::from(command);
        system::group(&mut wrap, joined);
        let child = wrap.spawn().inspect_err(|_| {
            if let Some(observer) = &observer {
                observer.ended(joined, None);
            }
        })?;
        let id = child.id();
        if let (Some(observer), Some(id)) = (&observer, id) {
            observer.started(joined, id);
        }
        Ok(Self { child, joined, id, observer })
    }

    /// The pipes to and from the leader, once.
    pub fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin().take(), self.child.stdout().take(), self.child.stderr().take())
    }

    /// Waits for the leader; the others may still run.
    ///
    /// # Errors
    /// The system does not tell.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        // The wrapper's own `wait` waits for the whole group, for as long as any descendant likes to live.
        self.child.inner_mut().wait().await
    }

    /// Asks all members to end; `false` where the system has no way to ask.
    pub fn terminate(&self) -> bool {
        system::terminate(&*self.child, self.joined)
    }

    /// Ends all members that are left.
    pub fn kill(&mut self) {
        let Some(id) = self.id.take() else { return };
        system::kill(&mut *self.child, self.joined);
        if let Some(observer) = &self.observer {
            observer.ended(self.joined, Some(id));
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
