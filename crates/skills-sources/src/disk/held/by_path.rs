//! [`HeldDirectory`] on systems other than Linux, where scripts run without a sandbox.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

/// A directory, by its path.
#[derive(Debug)]
pub(super) struct HeldDirectory(PathBuf);

impl HeldDirectory {
    #[expect(clippy::unnecessary_wraps, reason = "opening the directory on Linux can fail")]
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        Ok(Self(directory.to_owned()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn file(&self, name: &OsStr) -> PathBuf {
        self.0.join(name)
    }
}
