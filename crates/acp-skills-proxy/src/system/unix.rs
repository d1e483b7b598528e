//! Limits, signals and file modes of Unix.

use std::{io, sync::atomic::AtomicBool};

use rustix::{io::Errno, process::Signal};
use signal_hook::flag;

/// Returns a hint for an error that was caused by a limit of the system, and `None` for other errors.
pub(crate) fn limit_hint(error: &io::Error) -> Option<String> {
    // Check the kind first, because an error from `tempfile` also includes the path: it still has the kind of the
    // original error, but not the number.
    let hint = match error.kind() {
        io::ErrorKind::StorageFull => "disk is full",
        io::ErrorKind::QuotaExceeded => "disk quota exceeded",
        io::ErrorKind::FileTooLarge => {
            "file exceeds the maximum file size; raise the limit using `ulimit -f`"
        }
        _ => match Errno::from_io_error(error)? {
            Errno::MFILE => {
                "too many open files in this process; raise the limit, for example using `ulimit -n 1024`"
            }
            Errno::NFILE => "too many open files on this system",
            Errno::AGAIN => "too many processes and threads; end some, or raise the limit using `ulimit -u`",
            _ => return None,
        },
    };
    Some(hint.to_owned())
}

/// Returns a hint that explains how to make the file `shown` executable.
pub(crate) fn make_executable_hint(shown: &str) -> String {
    format!("make it executable: `chmod +x {shown}`")
}

/// Makes a write that exceeds the file size limit return an error instead of ending this process. `SIGXFSZ` is caught and not
/// ignored, because programs that we start would inherit an ignored signal.
pub(crate) fn report_large_files() {
    // `register` needs a flag, but we never read it, because the write will fail and report the problem.
    static WAS_RAISED: AtomicBool = AtomicBool::new(false);
    // If this fails, a write that is too large will still end the process.
    let _ = flag::register(Signal::XFSZ.as_raw(), &WAS_RAISED);
}
