//! Agents on Windows: job objects, console events and batch files.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    process::{Command, ExitStatus},
};

use acp_skills_servers::processes::end_children_with_this_process;
use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use tokio::sync::mpsc::{Receiver, channel};

use super::Signal;

/// Puts the new process into a job object. With [`KillOnDrop`], the wrapper sets `KILL_ON_JOB_CLOSE`. Windows then
/// ends the job when its last handle is closed, which also happens if this process is killed.
pub(super) fn group(command: &mut CommandWrap, _prepared: Option<u32>) {
    command.wrap(KillOnDrop).wrap(JobObject);
}

/// The ids of the agent. The job itself is part of the child.
pub(super) struct Group {
    pub(super) prepared: Option<u32>,
    pub(super) id: Option<u32>,
}

#[expect(clippy::unused_self, reason = "same interface as on Unix")]
impl Group {
    pub(super) fn new(id: Option<u32>, prepared: Option<u32>) -> Self {
        Self { prepared, id }
    }

    /// Does nothing, because Windows sends a console event to all processes of the console, which includes the agent.
    /// If the agent doesn't exit, the caller ends it later.
    pub(super) fn forward(&self, _signal: Signal) {}

    pub(super) fn terminate(&self, child: &mut dyn ChildWrapper) {
        self.kill(child);
    }

    pub(super) fn kill(&self, child: &mut dyn ChildWrapper) {
        // This fails if the job has already ended, so we can ignore the error.
        let _ = child.start_kill();
    }

    /// Returns false, because a job ends at once.
    pub(super) fn is_alive(&self) -> bool {
        false
    }
}

/// Returns the program to start for a name. It is looked up with the extensions of `PATHEXT`, as a shell does, so
/// `npx` becomes `npx.cmd`.
///
/// The standard library runs a batch file with `cmd.exe` only if the name has its extension. It then quotes the
/// arguments so that none of them can become a command, or returns an error if that isn't possible
/// ([`std::process`](std::process#windows-argument-splitting), CVE-2024-24576).
pub(super) fn resolve(program: &OsStr) -> OsString {
    // If the program is not found, just use the name, so that we return the error from trying to start it.
    which::which(program).map_or_else(|_| program.to_owned(), OsString::from)
}

/// Starts to receive the console events that are sent to this process.
///
/// # Errors
/// Returns an error if a console handler cannot be installed.
pub fn signals() -> io::Result<Receiver<Signal>> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};
    let (sender, receiver) = channel(8);
    macro_rules! forward {
        ($stream:expr, $name:expr) => {
            let mut stream = $stream;
            let sender = sender.clone();
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

/// Returns the exit code for the proxy: the agent's exit code, which can be any 32-bit number, or 125 if it is unknown.
pub fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(125)
}

pub(super) fn signal_of(_status: ExitStatus) -> Option<String> {
    None
}

/// Runs a program in this terminal, in another `directory` if there is one.
pub(super) fn run_in_terminal(
    program: &OsStr,
    arguments: &[OsString],
    directory: Option<PathBuf>,
) -> io::Result<i32> {
    // Windows can't replace this process with the command, so make sure that the command ends when we do.
    end_children_with_this_process();
    let mut command = Command::new(resolve(program));
    command.args(arguments);
    if let Some(directory) = directory {
        command.current_dir(&directory).env("PWD", directory);
    }
    Ok(code(command.status()?))
}
