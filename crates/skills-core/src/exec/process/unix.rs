//! Process groups and signals.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};

/// Variables that programs need to start at all; everything else goes in a clean environment.
pub(crate) const ESSENTIAL_VARIABLES: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

const SIGTERM: i32 = 15;

/// Makes the command the leader of a group.
pub(super) fn group(command: &mut CommandWrap) {
    command.wrap(ProcessGroup::leader());
}

/// Asks the group to end.
pub(super) fn terminate(child: &dyn ChildWrapper) -> bool {
    child.signal(SIGTERM).is_ok()
}

/// The signal that ended a process.
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}
