//! One system call in place of one for each component, and no right to read the directories on the way is needed.

use std::{fs::File, io, path::Path};

use cap_std::fs::Dir;
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};

use crate::files::FileError;

/// `None` where the kernel (before 5.6), or a filter of system calls, has no `openat2`.
pub(super) fn open_at_once(path: &Path) -> Option<Result<Dir, FileError>> {
    let failed = |source: io::Error| FileError::Directory { dir: path.to_owned(), source };
    if !path.is_absolute() {
        return Some(Err(failed(io::ErrorKind::InvalidInput.into())));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(dir) => Some(Ok(Dir::from_std_file(File::from(dir)))),
        Err(Errno::LOOP) => Some(Err(FileError::LinkInPath { dir: path.to_owned() })),
        // Filters answer with either; a directory that may not be opened is told from that by the slow way.
        Err(Errno::NOSYS | Errno::PERM) => None,
        Err(error) => Some(Err(failed(error.into()))),
    }
}
