//! [`HeldDirectory`] on systems other than Linux, where scripts run without a sandbox.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

/// A directory, by its path.
#[derive(Debug)]
pub struct HeldDirectory(PathBuf);

impl HeldDirectory {
    /// Returns the directory.
    ///
    /// # Errors
    /// Never returns an error on this system.
    pub fn open(directory: &Path) -> io::Result<Self> {
        Ok(Self(directory.to_owned()))
    }

    /// Returns the directory. It is created if it doesn't exist, like those above it.
    ///
    /// # Errors
    /// Returns the system's error if a directory can't be created.
    pub fn create(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        Self::open(directory)
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in the directory.
    pub fn file(&self, name: &OsStr) -> PathBuf {
        self.0.join(name)
    }
}
