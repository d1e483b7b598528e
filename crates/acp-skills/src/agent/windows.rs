//! Processes on Windows: job objects, console events.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    process::{Command, ExitStatus},
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject};
use tokio::sync::mpsc::{Receiver, channel};

use super::Signal;

pub(super) fn group(command: &mut CommandWrap) {
    // The job ends its processes when its last handle is closed, so also when we are killed.
    command.wrap(JobObject);
}

/// The job object is part of the child; there is nothing to remember.
pub(super) struct Group;

impl Group {
    pub(super) fn of(_child: &dyn ChildWrapper) -> Self {
        Self
    }

    /// The job does it.
    pub(super) fn watch_over(&mut self, _own_program: &Path) {}

    pub(super) fn signal(&self, _signal: Signal, child: &mut dyn ChildWrapper) {
        self.kill(child);
    }

    pub(super) fn kill(&self, child: &mut dyn ChildWrapper) {
        // Fails only when nobody is left.
        drop(child.start_kill());
    }

    /// The job ends with our handle to it.
    pub(super) fn is_alive(&self) -> bool {
        false
    }
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

/// The exit code to end with: the agent's own.
pub fn code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(125)
}

pub(super) fn signal_of(_status: ExitStatus) -> Option<String> {
    None
}

pub(super) fn run_in_terminal(program: &OsStr, arguments: &[OsString]) -> io::Result<u8> {
    Ok(code(Command::new(program).args(arguments).status()?))
}
