//! What to do when the system has too little of something.

use std::io;

/// What to do about `error`, where a limit is what is wrong.
#[cfg(unix)]
pub(super) fn hint(error: &io::Error) -> Option<String> {
    use rustix::io::Errno;
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

/// There it says so itself.
#[cfg(windows)]
pub(super) fn hint(_: &io::Error) -> Option<String> {
    None
}
