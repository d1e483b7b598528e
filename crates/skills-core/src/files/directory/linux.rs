//! Opens a directory on Linux: with a flag of `openat2`, or component by component before Linux 5.6. Neither needs read
//! permission for the parent directories.

use std::{fs::File, io, path::Path};

use cap_std::fs::Dir;
use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat},
    io::Errno,
};

use crate::files::FileError;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Opens the directory at the absolute `path`.
pub(in crate::files) fn open_without_links(path: &Path) -> Result<Dir, FileError> {
    open_with_openat2(path).unwrap_or_else(|| open_by_steps(path))
}

/// Opens the directory with one system call. Returns `None` if the kernel or a system call filter doesn't allow `openat2`.
pub(super) fn open_with_openat2(path: &Path) -> Option<Result<Dir, FileError>> {
    if !path.is_absolute() {
        return Some(Err(failed(path, Errno::INVAL)));
    }
    match openat2(CWD, path, OFlags::RDONLY | DIRECTORY, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(dir) => Some(Ok(Dir::from_std_file(File::from(dir)))),
        Err(Errno::LOOP) => Some(Err(FileError::LinkInPath { dir: path.to_owned() })),
        // System call filters return either of these errors. If we just don't have access to the directory, `open_by_steps` will
        // report that.
        Err(Errno::NOSYS | Errno::PERM) => None,
        Err(error) => Some(Err(failed(path, error))),
    }
}

/// Opens each component relative to its parent, the last one for reading.
pub(super) fn open_by_steps(path: &Path) -> Result<Dir, FileError> {
    let failed = |error| failed(path, error);
    let Ok(below) = path.strip_prefix("/") else { return Err(failed(Errno::INVAL)) };
    let mut dir = openat(CWD, "/", OFlags::PATH | DIRECTORY, Mode::empty()).map_err(failed)?;
    let mut names = below.iter().peekable();
    if names.peek().is_none() {
        dir = openat(&dir, ".", OFlags::RDONLY | DIRECTORY, Mode::empty()).map_err(failed)?;
    }
    while let Some(name) = names.next() {
        let access = if names.peek().is_some() { OFlags::PATH } else { OFlags::RDONLY };
        dir = match openat(&dir, name, access | DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(child) => child,
            Err(error) => {
                let is_link = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
                return Err(if is_link {
                    FileError::LinkInPath { dir: path.to_owned() }
                } else {
                    failed(error)
                });
            }
        };
    }
    Ok(Dir::from_std_file(File::from(dir)))
}

fn failed(path: &Path, error: Errno) -> FileError {
    FileError::Directory { dir: path.to_owned(), source: io::Error::from(error) }
}
