//! Limits, signals and modes.

use std::io;

use rustix::io::Errno;
use tokio::{runtime::Runtime, signal::unix::SignalKind};

/// What to do about `error`, where a limit is what is wrong.
pub(crate) fn limit_hint(error: &io::Error) -> Option<String> {
    let hint = match Errno::from_io_error(error)? {
        Errno::MFILE => {
            "this process may open too few files: raise the limit, for example with `ulimit -n 1024`"
        }
        Errno::NFILE => "too many files are open on this system",
        Errno::AGAIN => {
            "there are too many processes and threads: end some, or raise the limit (`ulimit -u`)"
        }
        Errno::NOSPC => "the disk is full",
        Errno::DQUOT => "your quota of disk space is used up",
        Errno::FBIG => "files may not be that large here: raise the limit (`ulimit -f`)",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// How the file `shown` becomes a program.
pub(crate) fn make_executable_hint(shown: &str) -> String {
    format!("make it executable: `chmod +x {shown}`")
}

/// A file that has reached the limit of the system is an error for whoever writes it, and not the end of the process.
pub(crate) fn report_large_files(runtime: &Runtime) {
    let _inside = runtime.enter();
    let signal = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    // To have asked for it once is enough; nobody needs to hear of it.
    drop(tokio::signal::unix::signal(signal));
}
