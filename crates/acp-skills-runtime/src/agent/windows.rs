//! Processes on Windows: job objects, console events, batch files.

use std::{
    ffi::{OsStr, OsString},
    io,
    process::{Command, ExitStatus},
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use tokio::sync::mpsc::{Receiver, channel};

use super::Signal;
use crate::processes::end_children_with_this_process;

/// Puts what the command starts into a job. [`KillOnDrop`] is what makes the wrapper set `KILL_ON_JOB_CLOSE`, with which the
/// system ends the job when its last handle is closed, so also when this process is killed.
pub(super) fn group(command: &mut CommandWrap, _prepared: Option<u32>) {
    command.wrap(KillOnDrop).wrap(JobObject);
}

/// The job is part of the child.
pub(super) struct Group {
    pub(super) prepared: Option<u32>,
    pub(super) id: Option<u32>,
}

#[expect(clippy::unused_self, reason = "the interface of the other systems")]
impl Group {
    pub(super) fn new(id: Option<u32>, prepared: Option<u32>) -> Self {
        Self { prepared, id }
    }

    /// The system tells a console event to everybody on the console, so also to the agent. It may end by itself; whoever
    /// waits for that ends it later.
    pub(super) fn forward(&self, _signal: Signal) {}

    pub(super) fn terminate(&self, child: &mut dyn ChildWrapper) {
        self.kill(child);
    }

    pub(super) fn kill(&self, child: &mut dyn ChildWrapper) {
        // Fails only when nobody is left.
        drop(child.start_kill());
    }

    /// To end the job does not take a while.
    pub(super) fn is_alive(&self) -> bool {
        false
    }
}

/// The program to start for a name, found as a shell does: with the endings of `PATHEXT`, so that `npx` is `npx.cmd`.
///
/// The standard library starts a batch file through `cmd.exe` only when its ending is there, and then quotes the arguments
/// such that none of them becomes a command, or refuses those for which that cannot be done
/// ([`std::process`](std::process#windows-argument-splitting), CVE-2024-24576).
pub(super) fn resolve(program: &OsStr) -> OsString {
    // What is not found is reported by whoever starts it.
    which::which(program).map_or_else(|_| program.to_owned(), OsString::from)
}

/// The console events that somebody sends to us.
///
/// # Errors
/// The system does not let us listen.
pub fn signals() -> io::Result<Receiver<Signal>> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};
    let (sender, receiver) = channel(8);
    macro_rules! forward {
        ($stream:expr, $name:expr) => {
            let (mut stream, sender) = ($stream, sender.clone());
            tokio::spawn(async move {
                while stream.recv().await.is_some() && sender.send($name).await.is_ok() {}
            });
        };
    }
    forward!(ctrl_c()?, Signal::Interrupt);
    forward!(ctrl_break()?, Signal::Terminate);
    forward!(ctrl_close()?, Signal::Hangup);
    Ok(receiver)
}

/// The exit code to end with: the agent's own, which may be any number of 32 bits.
pub fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(125)
}

pub(super) fn signal_of(_status: ExitStatus) -> Option<String> {
    None
}

pub(super) fn run_in_terminal(program: &OsStr, arguments: &[OsString]) -> io::Result<i32> {
    // It cannot take our place, so it ends with us.
    end_children_with_this_process();
    Ok(code(Command::new(resolve(program)).args(arguments).status()?))
}
