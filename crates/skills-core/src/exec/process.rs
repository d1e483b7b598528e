//! [`ProcessGroup`]: a child process together with all processes that it starts.
//!
//! The group is a process group on Unix and a job object on Windows. Dropping the value kills the group. If this process is
//! killed on Unix, however, the group keeps running. A [`ProcessObserver`] can pass the group's number to another process,
//! which can then kill it. The code for each system is in `process/unix.rs` and `process/windows.rs`.

#[cfg_attr(unix, path = "process/unix.rs")]
#[cfg_attr(windows, path = "process/windows.rs")]
mod system;

use std::{fmt, io, process::ExitStatus, sync::Arc};

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

pub(super) use system::{ESSENTIAL_VARIABLES, signal};

/// A callback that receives the start and end of each program.
///
/// An observer can tell a watchdog process which groups to kill if this process dies. The methods are called on the thread
/// that starts or ends the program, so they must not block, except for a moment in [`starting`](Self::starting).
pub trait ProcessObserver: fmt::Debug + Send + Sync {
    /// Called before a program is started. May block for a moment, for example until a watchdog is ready.
    ///
    /// If this process is killed between starting a program and calling [`started`](Self::started), the observer never hears
    /// about the program. To close this gap on Unix, return the number of an existing process group that is already watched:
    /// the program is then started in that group. The default implementation returns `None`, for a new group.
    fn starting(&self) -> Option<u32> {
        None
    }

    /// Called after a program has been started. `group` is the return value of [`starting`](Self::starting), and `id` is the
    /// process ID of the program. On Unix, `id` is also the number of the program's group if it leads one: if `group` is
    /// `None`, or if the program left that group to create its own. It is also called for the first process in a sandbox.
    fn started(&self, group: Option<u32>, id: u32);

    /// Called after the group has been killed, or if the program could not be started (then `id` is `None`). The system may
    /// now reuse the numbers, so the observer must not kill them any more.
    fn ended(&self, group: Option<u32>, id: Option<u32>);
}

/// A running child process and its descendants. Must be created within a tokio runtime.
#[derive(Debug)]
pub struct ProcessGroup {
    child: Box<dyn ChildWrapper>,
    /// The existing group in which the child was started; `None` if it leads its own.
    joined: Option<u32>,
    /// The process ID of the leader. Taken when the group is killed, because the system may then reuse the number.
    id: Option<u32>,
    observer: Option<Arc<dyn ProcessObserver>>,
}

impl ProcessGroup {
    /// Starts `command` in the group that `observer` returns, or as the leader of a new group.
    ///
    /// # Errors
    /// Returns the system's error if the program can't be started.
    pub fn spawn(command: Command, observer: Option<Arc<dyn ProcessObserver>>) -> io::Result<Self> {
        Self::start(command, observer, system::group)
    }

    /// Starts `command` like [`spawn`](Self::spawn), but on Unix without a controlling terminal, so that no program can ask the user
    /// a question there. A program that tries to read from the terminal gets an error instead of being stopped.
    ///
    /// # Errors
    /// Returns the system's error if the program can't be started.
    pub fn spawn_without_terminal(
        command: Command,
        observer: Option<Arc<dyn ProcessObserver>>,
    ) -> io::Result<Self> {
        Self::start(command, observer, system::group_without_terminal)
    }

    fn start(
        command: Command,
        observer: Option<Arc<dyn ProcessObserver>>,
        group: impl FnOnce(&mut CommandWrap, Option<u32>),
    ) -> io::Result<Self> {
        let joined = observer.as_ref().and_then(|observer| observer.starting());
        let mut wrap = CommandWrap::from(command);
        group(&mut wrap, joined);
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

    /// Takes the pipes of the leader: standard input, output and error. Each is `None` if it isn't piped or was taken before.
    pub fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin().take(), self.child.stdout().take(), self.child.stderr().take())
    }

    /// Waits until the leader has exited. Its descendants may still be running.
    ///
    /// # Errors
    /// Returns the system's error if the exit status is not available.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        // We can't use the wrapper's own `wait` here: it waits for the whole group, but a descendant may run forever.
        self.child.inner_mut().wait().await
    }

    /// Asks all processes of the group to terminate. Returns false if the system has no way to ask (Windows).
    pub fn terminate(&self) -> bool {
        system::terminate(&*self.child, self.joined)
    }

    /// Kills all remaining processes of the group. Does nothing if they were killed before.
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
