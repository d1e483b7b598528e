//! Job objects. The system kills all processes of a job when its last handle is closed, for example because this process was
//! killed.

use std::process::ExitStatus;

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};

/// The variables that programs need to start. All other variables are removed for
/// [`Environment::Clean`](super::super::Environment).
pub(crate) const ESSENTIAL_VARIABLES: &[&str] = &[
    "PATH",
    "PATHEXT",
    "SystemRoot",
    "SystemDrive",
    "ComSpec",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "ProgramData",
    "ProgramFiles",
    "windir",
];

/// Starts the command in a new job. [`KillOnDrop`] is what makes the job end with its handle. The program is created
/// suspended, so it is in the job before it runs.
pub(super) fn group(command: &mut CommandWrap, _joined: Option<u32>) {
    command.wrap(KillOnDrop).wrap(JobObject);
}

/// Starts the command in a new job. A program can still use the console of this process.
pub(super) fn group_without_terminal(command: &mut CommandWrap, joined: Option<u32>) {
    group(command, joined);
}

/// Returns false: Windows has no way to ask a program without a window to terminate.
pub(super) fn terminate(_: &dyn ChildWrapper, _joined: Option<u32>) -> bool {
    false
}

/// Kills all processes of the job.
pub(super) fn kill(child: &mut dyn ChildWrapper, _joined: Option<u32>) {
    // We can ignore errors, since they only mean that no process is left.
    let _ = child.start_kill();
}

/// Returns `None`: Windows has no signals.
pub(crate) fn signal(_: ExitStatus) -> Option<i32> {
    None
}
