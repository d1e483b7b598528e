//! Process groups and signals.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};
use rustix::process::{Pid, Signal, kill_process_group};

/// Variables that programs need to start at all; everything else goes in a clean environment.
pub(crate) const ESSENTIAL_VARIABLES: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// Puts the command into a group that exists, or makes it the leader of one.
pub(super) fn group(command: &mut CommandWrap, joined: Option<u32>) {
    match joined {
        // The wrapper sends its signals to the group of the child's own number, as if it led one; the program may make that.
        Some(group) => command.wrap(ProcessGroup::attach_to(group)),
        None => command.wrap(ProcessGroup::leader()),
    };
}

/// Asks the group to end.
pub(super) fn terminate(child: &dyn ChildWrapper, joined: Option<u32>) -> bool {
    let joined = joined.is_some_and(|group| send(group, Signal::TERM));
    child.signal(Signal::TERM.as_raw()).is_ok() || joined
}

/// Ends the group.
pub(super) fn kill(child: &mut dyn ChildWrapper, joined: Option<u32>) {
    // Errors mean that nobody is left.
    let _ = child.start_kill();
    if let Some(group) = joined {
        send(group, Signal::KILL);
    }
}

fn send(group: u32, signal: Signal) -> bool {
    Pid::from_raw(group.cast_signed()).is_some_and(|group| kill_process_group(group, signal).is_ok())
}

/// The signal that ended a process.
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}
