//! Limits, signals and file modes of Unix.

use std::{fs, io, sync::atomic::AtomicBool};

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
        io::ErrorKind::OutOfMemory => {
            "raise the limit of the address space using `ulimit -v`, for example `ulimit -v unlimited`"
        }
        _ => match Errno::from_io_error(error)? {
            Errno::MFILE => {
                "too many open files in this process; raise the limit, for example using `ulimit -n 1024`"
            }
            Errno::NFILE => "too many open files on this system",
            Errno::AGAIN if address_space_limit().is_some() => {
                "too many processes and threads, or too little memory; raise the limit using `ulimit -u` or `ulimit -v`"
            }
            Errno::AGAIN => "too many processes and threads; end some, or raise the limit using `ulimit -u`",
            _ => return None,
        },
    };
    Some(hint.to_owned())
}

/// The address space in bytes that the proxy needs after its start, mostly for the stacks of its threads.
const NEEDED_ADDRESS_SPACE: u64 = 30 << 20;

/// Checks that the limit of the address space (`ulimit -v`) leaves enough for the threads of the proxy. Without this check, the
/// start fails at a place that depends on the limit, and the client may get no answer.
///
/// # Errors
/// Returns an error that names the limit if less than 30 MiB are left. Only Linux is checked, because macOS ignores the limit.
pub(crate) fn check_address_space() -> io::Result<()> {
    let Some(limit) = address_space_limit() else { return Ok(()) };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let used = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.split_whitespace().next());
    let used = used.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10;
    let needed = used + NEEDED_ADDRESS_SPACE;
    if limit >= needed {
        return Ok(());
    }
    let [limit, needed] = [limit, needed].map(|bytes| bytes >> 20);
    let text =
        format!("the address space is limited to {limit} MiB, but the proxy needs at least {needed} MiB");
    Err(io::Error::new(io::ErrorKind::OutOfMemory, text))
}

/// Returns the limit of the address space in bytes, if there is one.
fn address_space_limit() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return rustix::process::getrlimit(rustix::process::Resource::As).current;
    #[cfg(not(target_os = "linux"))]
    None
}

/// Returns a hint that explains how to make the file `shown` executable.
pub(crate) fn make_executable_hint(shown: &str) -> String {
    format!("make it executable: `chmod +x {shown}`")
}

/// Catches the signals that end this process if a person or a terminal sends them, and does nothing then. A watchdog has to outlive the
/// proxy.
pub(crate) fn catch_signals() {
    static WAS_RAISED: AtomicBool = AtomicBool::new(false);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1, Signal::USR2] {
        // If this fails, the signal still ends the process.
        let _ = flag::register(signal.as_raw(), &WAS_RAISED);
    }
}

/// Replaces the reaction to two signals by none:
///
/// - `SIGXFSZ`: a write that exceeds the file size limit returns an error instead of ending this process.
/// - `SIGCHLD`: if the program that starts us ignores it, the system drops the exit status of our children.
///
/// The signals are caught and not ignored, because programs that we start would inherit an ignored signal.
pub(crate) fn catch_harmless_signals() {
    // `register` needs a flag, but we never read it.
    static WAS_RAISED: AtomicBool = AtomicBool::new(false);
    for signal in [Signal::XFSZ, Signal::CHILD] {
        // If this fails, the signal has its usual effect.
        let _ = flag::register(signal.as_raw(), &WAS_RAISED);
    }
}
