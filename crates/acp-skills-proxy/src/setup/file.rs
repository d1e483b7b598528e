//! [`SettingsFile`]: a settings file as it was read. It is replaced whole or not at all, and only when nobody else has changed
//! it since.
//!
//! A link stays a link: people keep settings in a repository of dotfiles, so what it leads to is replaced.

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// No editor's settings are longer, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A settings file as it was read, or that there was none.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    path: PathBuf,
    /// What the path leads to.
    target: PathBuf,
    /// What was read; `None` where there was no file.
    read: Option<Vec<u8>>,
    permissions: Option<Permissions>,
}

/// Why a settings file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is a link to nothing.
    #[error("{} is a link to {}, which is not there", path.display(), target.display())]
    Dangling {
        /// The link.
        path: PathBuf,
        /// Where to.
        target: PathBuf,
    },
    /// It may not be written.
    #[error("{} is read-only", .0.display())]
    ReadOnly(PathBuf),
    /// It is too long.
    #[error("{} is longer than any settings are", .0.display())]
    TooLong(PathBuf),
    /// Somebody else has changed it.
    #[error("{} was changed by somebody else in the meantime, so nothing was written", .0.display())]
    Changed(PathBuf),
}

impl FileError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Changed(_) => Some("run the same again to see the change of what is there now"),
            Self::ReadOnly(_) => Some(
                "where a program makes your settings, such as home-manager, the change belongs there: `--print` shows it",
            ),
            Self::Dangling { .. } => Some("restore what it leads to, or remove the link"),
            _ => None,
        }
    }
}

impl SettingsFile {
    /// Reads the file.
    ///
    /// # Errors
    /// There is something that cannot be read.
    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        let failed = |source| FileError::Read { path: path.to_owned(), source };
        let target = match dunce::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match fs::read_link(path) {
                    Ok(target) => Err(FileError::Dangling { path: path.to_owned(), target }),
                    Err(_) => Ok(Self {
                        path: path.to_owned(),
                        target: path.to_owned(),
                        read: None,
                        permissions: None,
                    }),
                };
            }
            Err(error) => return Err(failed(error)),
        };
        let metadata = fs::metadata(&target).map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::other("it is no file")));
        }
        if metadata.len() > MAX_BYTES {
            return Err(FileError::TooLong(path.to_owned()));
        }
        let bytes = fs::read(&target).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            target,
            read: Some(bytes),
            permissions: Some(metadata.permissions()),
        })
    }

    /// What it says; `None` where there is no file.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.read.as_deref()
    }

    /// Where it really is.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Replaces the file; `None` removes it. Its permissions stay as they are.
    ///
    /// # Errors
    /// It cannot be written, or is not what was read any more; then nothing has changed.
    pub(crate) fn replace(&self, bytes: Option<&[u8]>) -> Result<(), FileError> {
        let failed = |source| FileError::Write { path: self.path.clone(), source };
        if self.permissions.as_ref().is_some_and(Permissions::readonly) {
            return Err(FileError::ReadOnly(self.path.clone()));
        }
        let Some(bytes) = bytes else {
            self.check_unchanged()?;
            return fs::remove_file(&self.target).map_err(failed);
        };
        let dir = self.target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(dir).map_err(failed)?;
        let mut new = NamedTempFile::new_in(dir).map_err(failed)?;
        new.write_all(bytes).map_err(failed)?;
        if let Some(permissions) = &self.permissions {
            new.as_file().set_permissions(permissions.clone()).map_err(failed)?;
        }
        new.as_file().sync_all().map_err(failed)?;
        // As late as can be; no system swaps files only if one of them is what was read.
        self.check_unchanged()?;
        let put =
            if self.read.is_some() { new.persist(&self.target) } else { new.persist_noclobber(&self.target) };
        match put {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(FileError::Changed(self.path.clone()))
            }
            Err(error) => Err(failed(error.error)),
        }
    }

    fn check_unchanged(&self) -> Result<(), FileError> {
        let now = Self::read(&self.path).map_err(|_| FileError::Changed(self.path.clone()))?;
        let is_same = now.read == self.read && now.target == self.target;
        if is_same { Ok(()) } else { Err(FileError::Changed(self.path.clone())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_else_was_faster() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        fs::write(&path, "old").unwrap();
        let file = SettingsFile::read(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(file.replace(Some(b"ours")), Err(FileError::Changed(_))));
        assert!(matches!(file.replace(None), Err(FileError::Changed(_))));
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        fs::remove_file(&path).unwrap();
        assert!(matches!(file.replace(Some(b"ours")), Err(FileError::Changed(_))));

        let file = SettingsFile::read(&path).unwrap();
        assert_eq!(file.bytes(), None);
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(file.replace(Some(b"ours")), Err(FileError::Changed(_))));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left lying about");
    }

    #[test]
    fn nothing_is_written_over_what_may_not_be() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        fs::write(&path, "old").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        let error = SettingsFile::read(&path).unwrap().replace(Some(b"new")).unwrap_err();
        assert!(matches!(error, FileError::ReadOnly(_)));
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("dotfiles/zed.json"), dir.path().join("settings.json"));
        fs::create_dir(dir.path().join("dotfiles")).unwrap();
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink("dotfiles/zed.json", &link).unwrap();
        SettingsFile::read(&link).unwrap().replace(Some(b"new")).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("dotfiles/zed.json"));
        fs::remove_file(&real).unwrap();
        assert!(matches!(SettingsFile::read(&link), Err(FileError::Dangling { .. })));
    }
}
