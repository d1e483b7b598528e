//! Job objects. The system ends everything in one when its last handle is closed, so also when this process is killed.

use std::process::ExitStatus;

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};

/// Variables that programs need to start at all; everything else goes in a clean environment.
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

/// Puts what the command starts into a job; without [`KillOnDrop`] the job would not end with its handle. The program is
/// created suspended, so it is in the job before it runs.
pub(super) fn group(command: &mut CommandWrap, _joined: Option<u32>) {
    command.wrap(KillOnDrop).wrap(JobObject);
}

/// There is no signal that asks a program without a window to end.
pub(super) fn terminate(_: &dyn ChildWrapper, _joined: Option<u32>) -> bool {
    false
}

/// Ends the job.
pub(super) fn kill(child: &mut dyn ChildWrapper, _joined: Option<u32>) {
    // An error means that nobody is left.
    let _ = child.start_kill();
}

/// There are no signals.
pub(crate) fn signal(_: ExitStatus) -> Option<i32> {
    None
}
