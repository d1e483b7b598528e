//! Processes on Unix: groups, signals, exec.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::{Command, ExitStatus},
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};
use rustix::process::{Pid, kill_process_group, test_kill_process_group};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc::{Receiver, channel},
};

use super::{Signal, watchdog::Watchdog};

pub(super) fn group(command: &mut CommandWrap) {
    command.wrap(ProcessGroup::leader());
}

/// The process group that the agent leads. It outlives the agent for as long as a child of the agent's lives.
pub(super) struct Group {
    id: Option<Pid>,
    /// Dismissed when this goes.
    watchdog: Option<Watchdog>,
}

impl Group {
    pub(super) fn of(child: &dyn ChildWrapper) -> Self {
        Self { id: child.id().and_then(|id| Pid::from_raw(id.cast_signed())), watchdog: None }
    }

    pub(super) fn watch_over(&mut self, own_program: &Path) {
        let Some(id) = self.id else { return };
        self.watchdog = Watchdog::start(own_program, id)
            .inspect_err(|error| tracing::warn!("no watchdog over the agent: {error}"))
            .ok();
    }

    pub(super) fn signal(&self, signal: Signal, _child: &mut dyn ChildWrapper) {
        let signal = match signal {
            Signal::Hangup => rustix::process::Signal::HUP,
            Signal::Interrupt => rustix::process::Signal::INT,
            Signal::Terminate => rustix::process::Signal::TERM,
        };
        self.send(signal);
    }

    pub(super) fn kill(&self, _child: &mut dyn ChildWrapper) {
        self.send(rustix::process::Signal::KILL);
    }

    pub(super) fn is_alive(&self) -> bool {
        self.id.is_some_and(|group| test_kill_process_group(group).is_ok())
    }

    fn send(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.id {
            // The only failure is that nobody is left, which is what signals are for.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// The signals that somebody sends to us.
///
/// # Errors
/// The system does not let us listen.
pub fn signals() -> io::Result<Receiver<Signal>> {
    let (sender, receiver) = channel(8);
    for (kind, name) in [
        (SignalKind::hangup(), Signal::Hangup),
        (SignalKind::interrupt(), Signal::Interrupt),
        (SignalKind::terminate(), Signal::Terminate),
    ] {
        let (mut stream, sender) = (signal(kind)?, sender.clone());
        tokio::spawn(
            async move { while stream.recv().await.is_some() && sender.send(name).await.is_ok() {} },
        );
    }
    Ok(receiver)
}

/// The exit code to end with: the agent's own, or 128 + the signal that killed it.
pub fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(125);
    u8::try_from(code).unwrap_or(125)
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

pub(super) fn run_in_terminal(program: &OsStr, arguments: &[OsString]) -> io::Result<u8> {
    // Only returns when it fails: the agent takes our place, our terminal and our process id.
    Err(Command::new(program).args(arguments).exec())
}
