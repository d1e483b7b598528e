//! Agents on Unix: process groups, signals and `exec`.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Command, ExitStatus},
};

use acp_skills_servers::processes::group_is_alive;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use rustix::process::{Pid, kill_process_group};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc::{Receiver, channel},
};

use super::Signal;

/// Puts the new process into the prepared group, or makes it the leader of a new group.
pub(super) fn group(command: &mut CommandWrap, prepared: Option<u32>) {
    let group = prepared.and_then(|group| i32::try_from(group).ok()).unwrap_or(0);
    command.command_mut().process_group(group);
}

/// The process groups of an agent. A group can outlive the agent, because it exists as long as any process is in it.
pub(super) struct Group {
    /// The group in which the agent was started, if it was prepared by a leader process.
    pub(super) prepared: Option<u32>,
    /// The agent's process id, which is also the id of the group that it leads. The agent leads a group if no group
    /// was prepared, or if it creates one.
    pub(super) id: Option<u32>,
}

impl Group {
    pub(super) fn new(id: Option<u32>, prepared: Option<u32>) -> Self {
        Self { prepared, id }
    }

    pub(super) fn forward(&self, signal: Signal) {
        self.send(match signal {
            Signal::Hangup => rustix::process::Signal::HUP,
            Signal::Interrupt => rustix::process::Signal::INT,
            Signal::Terminate => rustix::process::Signal::TERM,
        });
    }

    pub(super) fn terminate(&self, _child: &mut dyn ChildWrapper) {
        self.send(rustix::process::Signal::TERM);
    }

    pub(super) fn kill(&self, _child: &mut dyn ChildWrapper) {
        self.send(rustix::process::Signal::KILL);
    }

    pub(super) fn is_alive(&self) -> bool {
        self.all().any(group_is_alive)
    }

    fn send(&self, signal: rustix::process::Signal) {
        for group in self.all() {
            // This fails if the group doesn't have any processes left, so we can ignore the error.
            let _ = kill_process_group(group, signal);
        }
    }

    fn all(&self) -> impl Iterator<Item = Pid> {
        let ids = self.prepared.into_iter().chain(self.id);
        ids.filter_map(|id| Pid::from_raw(id.cast_signed()))
    }
}

/// Returns the program to start for a name. The operating system looks it up.
pub(super) fn resolve(program: &OsStr) -> OsString {
    program.to_owned()
}

/// Starts to receive the signals that are sent to this process.
///
/// # Errors
/// Returns an error if a signal handler cannot be installed.
pub fn signals() -> io::Result<Receiver<Signal>> {
    let (sender, receiver) = channel(8);
    for (kind, name) in [
        (SignalKind::hangup(), Signal::Hangup),
        (SignalKind::interrupt(), Signal::Interrupt),
        (SignalKind::terminate(), Signal::Terminate),
    ] {
        let mut stream = signal(kind)?;
        let sender = sender.clone();
        tokio::spawn(
            async move { while stream.recv().await.is_some() && sender.send(name).await.is_ok() {} },
        );
    }
    Ok(receiver)
}

/// Returns the exit code for the proxy: the agent's exit code, or 128 + the number of the signal that killed the agent.
pub fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(125)
}

pub(super) fn signal_of(status: ExitStatus) -> Option<String> {
    let number = status.signal()?;
    let name = match number {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    };
    Some(format!("signal {number}{name}"))
}

/// Runs a program in this terminal, in another `directory` if there is one.
pub(super) fn run_in_terminal(
    program: &OsStr,
    arguments: &[OsString],
    directory: Option<PathBuf>,
) -> io::Result<i32> {
    // If `exec` works, it doesn't return, because this process becomes the agent.
    let path = super::search_path(program).map(|path| ("PATH", path));
    let mut command = Command::new(program);
    command.args(arguments).envs(path);
    if let Some(directory) = directory {
        command.current_dir(&directory).env("PWD", directory);
    }
    Err(command.exec())
}
