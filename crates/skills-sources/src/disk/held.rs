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
pub struct HeldDirectory {
    /// A path that leads through the descriptor.
    path: PathBuf,
    _descriptor: Option<File>,
}

impl HeldDirectory {
    /// Opens the directory with a canonical path.
    ///
    /// # Errors
    /// Returns the system's error if the directory can't be opened, and an error if the path leads to another directory now.
    pub fn open(directory: &Path) -> io::Result<Self> {
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

    /// Opens the directory with a canonical path. It is created if it doesn't exist, like those above it.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open), and the system's error if a directory can't be created.
    pub fn create(directory: &Path) -> io::Result<Self> {
        match (Self::open(directory), directory.parent(), directory.file_name()) {
            (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                match fs::create_dir(Self::create(parent)?.file(name)) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => Self::open(directory),
                }
            }
            (opened, ..) => opened,
        }
    }

    /// Returns a path of the directory, which is valid as long as `self` exists.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path of a file in the directory, which is valid as long as `self` exists.
    pub fn file(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }
}
