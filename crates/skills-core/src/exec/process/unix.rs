//! Process groups and signals.

use std::{fs::File, os::unix::process::ExitStatusExt, process::ExitStatus};

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup, ProcessSession};
use rustix::process::{Pid, Signal, kill_process_group};

/// The variables that programs need to start. All other variables are removed for
/// [`Environment::Clean`](super::super::Environment).
pub(crate) const ESSENTIAL_VARIABLES: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// Starts the command in the existing group `joined`, or as the leader of a new group.
pub(super) fn group(command: &mut CommandWrap, joined: Option<u32>) {
    match joined {
        // The wrapper also signals a group that has the id of the child. The program may create such a group later.
        Some(group) => command.wrap(ProcessGroup::attach_to(group)),
        None => command.wrap(ProcessGroup::leader()),
    };
}

/// Starts the command in a group like [`group`], but without a controlling terminal.
pub(super) fn group_without_terminal(command: &mut CommandWrap, joined: Option<u32>) {
    // If this process has no terminal either, don't leave the existing group, because it is already being watched.
    if File::open("/dev/tty").is_err() {
        return group(command, joined);
    }
    if let Some(group) = joined {
        // The command is in the watched group until it creates its session.
        command.command_mut().process_group(group.cast_signed());
    }
    command.wrap(ProcessSession);
}

/// Sends SIGTERM to the group.
pub(super) fn terminate(child: &dyn ChildWrapper, joined: Option<u32>) -> bool {
    let joined = joined.is_some_and(|group| send(group, Signal::TERM));
    child.signal(Signal::TERM.as_raw()).is_ok() || joined
}

/// Sends SIGKILL to the group.
pub(super) fn kill(child: &mut dyn ChildWrapper, joined: Option<u32>) {
    // We can ignore errors, since they only mean that no process is left.
    let _ = child.start_kill();
    if let Some(group) = joined {
        send(group, Signal::KILL);
    }
}

fn send(group: u32, signal: Signal) -> bool {
    Pid::from_raw(group.cast_signed()).is_some_and(|group| kill_process_group(group, signal).is_ok())
}

/// Returns the signal that ended a process.
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}
