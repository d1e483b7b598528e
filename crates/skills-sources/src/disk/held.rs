//! [`HeldDirectory`]: a directory in which files are replaced.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

/// An open directory. It stays the same, even if another process exchanges a part of its path for a link.
#[derive(Debug)]
pub(super) struct HeldDirectory {
    /// A path that leads through the descriptor.
    path: PathBuf,
    _descriptor: Option<File>,
}

impl HeldDirectory {
    /// Opens the directory with a canonical path.
    ///
    /// # Errors
    /// Returns the system's error if the directory can't be opened, and an error if the path leads to another directory now.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let descriptor =
            File::options().read(true).custom_flags(flags.bits().cast_signed()).open(directory)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
        match fs::read_link(&path) {
            Ok(real) if real == directory => Ok(Self { path, _descriptor: Some(descriptor) }),
            Ok(_) => Err(io::Error::other("its directory was replaced by a link")),
            // Without `/proc`, use the path of the directory.
            Err(_) => Ok(Self { path: directory.to_owned(), _descriptor: None }),
        }
    }

    /// Returns a path of the directory, which is valid as long as `self` exists.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path of a file in the directory, which is valid as long as `self` exists.
    pub(super) fn file(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }
}
