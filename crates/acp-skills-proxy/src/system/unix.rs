//! Limits, signals and modes.

use std::{io, sync::atomic::AtomicBool};

use rustix::{io::Errno, process::Signal};
use signal_hook::flag;

/// What to do about `error`, where a limit is what is wrong.
pub(crate) fn limit_hint(error: &io::Error) -> Option<String> {
    // `tempfile` says where it failed, in an error that has the kind of the system's and not its number.
    let hint = match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full",
        io::ErrorKind::QuotaExceeded => "your quota of disk space is used up",
        io::ErrorKind::FileTooLarge => "files may not be that large here: raise the limit (`ulimit -f`)",
        _ => match Errno::from_io_error(error)? {
            Errno::MFILE => {
                "this process may open too few files: raise the limit, for example with `ulimit -n 1024`"
            }
            Errno::NFILE => "too many files are open on this system",
            Errno::AGAIN => {
                "there are too many processes and threads: end some, or raise the limit (`ulimit -u`)"
            }
            _ => return None,
        },
    };
    Some(hint.to_owned())
}

/// How the file `shown` becomes a program.
pub(crate) fn make_executable_hint(shown: &str) -> String {
    format!("make it executable: `chmod +x {shown}`")
}

/// From now on a file that has reached the limit of the system is an error for whoever writes it, and not the end of this
/// process. The signal is caught, not ignored: programs that we start would inherit that.
pub(crate) fn report_large_files() {
    // Nobody asks whether it came: the write has failed.
    static CAME: AtomicBool = AtomicBool::new(false);
    // Where it cannot be caught, all is as it was.
    drop(flag::register(Signal::XFSZ.as_raw(), &CAME));
}
