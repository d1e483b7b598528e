//! [`SettingsFile`]: a settings file with the content that was read. It is replaced atomically, and only if no other program
//! has changed it since.
//!
//! A symbolic link stays a link, because users keep settings in a repository of dotfiles. The file that it points to is
//! replaced.

use std::{
    ffi::OsStr,
    fs::{self, Permissions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use skills_sources::disk::{self, Resolved, bounded, error_text, leftovers, private, shorten_home};
use tempfile::{Builder, NamedTempFile};

/// The prefix of the names of staged files. Six random characters follow.
const STAGED: &str = ".acp-skills-proxy-";
/// The age of a staged file after which it counts as left over. A running process moves its file long before.
const IN_USE: Duration = Duration::from_mins(1);

/// The maximum size of a settings file, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A settings file with the content that was read. The file may not exist yet.
#[derive(Debug)]
pub struct SettingsFile {
    path: PathBuf,
    /// The file that `path` points to, after symbolic links.
    target: Resolved,
    /// The content that was read. `None` if there was no file.
    read: Option<Vec<u8>>,
    permissions: Option<Permissions>,
}

/// An error that prevented reading or writing a settings file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Reading failed.
    #[error("cannot read settings: {}: {}", error_text(source), shorten_home(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Writing failed.
    #[error("cannot write settings: {}: {}", error_text(source), shorten_home(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is a symbolic link whose target does not exist.
    #[error("{} is a broken symbolic link to {}", path.display(), target.display())]
    Dangling {
        /// The link.
        path: PathBuf,
        /// The target of the link.
        target: PathBuf,
    },
    /// The file is read-only.
    #[error("{} is read-only", .0.display())]
    ReadOnly(PathBuf),
    /// The file is larger than 64 MiB.
    #[error("{} is too large for a settings file (more than 64 MiB)", .0.display())]
    TooLong(PathBuf),
    /// Another program has changed the file since it was read.
    #[error("{} was changed by another program; no settings were written", .0.display())]
    Changed(PathBuf),
}

impl FileError {
    /// Returns a hint that explains how to resolve the error.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Changed(_) => Some("run the same command again to use the new content"),
            Self::ReadOnly(_) => Some(
                "if another program generates your settings, for example home-manager, use `--print` to show the change and make it there",
            ),
            Self::Dangling { .. } => Some("restore the target, or remove the link"),
            _ => None,
        }
    }
}

impl SettingsFile {
    /// Reads the file. A file that does not exist is not an error.
    ///
    /// # Errors
    /// Returns [`FileError::Dangling`] if the path is a link whose target does not exist, [`FileError::TooLong`] if the file is
    /// too large, and [`FileError::Read`] if it is not a regular file or cannot be read.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let failed = |source| FileError::Read { path: path.to_owned(), source };
        let target = Resolved::new(path).map_err(|error| match fs::read_link(path) {
            Ok(target) if error.kind() == io::ErrorKind::NotFound => {
                FileError::Dangling { path: path.to_owned(), target }
            }
            _ => failed(error),
        })?;
        let metadata = match fs::metadata(target.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), target, read: None, permissions: None });
            }
            metadata => metadata.map_err(failed)?,
        };
        let bytes = bounded::read(target.path(), MAX_BYTES).map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => FileError::TooLong(path.to_owned()),
            _ => failed(error),
        })?;
        Ok(Self {
            path: path.to_owned(),
            target,
            read: Some(bytes),
            permissions: Some(metadata.permissions()),
        })
    }

    /// Returns the content that was read. `None` if there was no file.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.read.as_deref()
    }

    /// Returns the path of the file itself, after symbolic links.
    pub fn target(&self) -> &Path {
        self.target.path()
    }

    /// Replaces the content of the file, or removes the file if `bytes` is `None`. The owner and the permissions are kept.
    ///
    /// The new content is first written to a file in `staging`, a directory of ours, so that nothing is left beside the settings if
    /// this process is killed. If `staging` is on another file system, the file has to be beside the settings; then the next run
    /// removes what is left.
    ///
    /// # Errors
    /// Returns [`FileError::ReadOnly`] if the file is read-only, [`FileError::Changed`] if it differs from the content that was
    /// read, and [`FileError::Write`] if it cannot be written. In all cases the file is unchanged.
    pub fn replace(&self, bytes: Option<&[u8]>, staging: &Path) -> Result<(), FileError> {
        let failed = |source| FileError::Write { path: self.path.clone(), source };
        if self.permissions.as_ref().is_some_and(Permissions::readonly) {
            return Err(FileError::ReadOnly(self.path.clone()));
        }
        let Some(bytes) = bytes else {
            self.check_unchanged()?;
            return self.target.within(|_, target| fs::remove_file(target)).map_err(failed);
        };
        let put = self.target.within(|dir, target| {
            remove_leftovers(dir);
            let staged = private::create_dir(staging).and_then(|()| self.stage(bytes, staging))?;
            match self.put(staged, target) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::CrossesDevices => {
                    let staged = self.stage(bytes, dir)?;
                    Ok(self.put(staged, target))
                }
                put => Ok(put),
            }
        });
        put.map_err(failed)??.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => FileError::Changed(self.path.clone()),
            _ => failed(error),
        })
    }

    /// Writes the new content to a file in `dir`.
    fn stage(&self, bytes: &[u8], dir: &Path) -> io::Result<NamedTempFile> {
        remove_leftovers(dir);
        let mut new = Builder::new().prefix(STAGED).tempfile_in(dir)?;
        new.write_all(bytes)?;
        if let Some(permissions) = &self.permissions {
            // This comes first, because it can change the permissions.
            private::copy_owner(new.as_file(), self.target.path())?;
            new.as_file().set_permissions(permissions.clone())?;
        }
        new.as_file().sync_all()?;
        Ok(new)
    }

    /// Puts a staged file in the place of the settings, which is `target`.
    fn put(&self, staged: NamedTempFile, target: &Path) -> Result<io::Result<()>, FileError> {
        // Do this as late as possible, because there is no way to replace a file only if its content is the same.
        self.check_unchanged()?;
        let put = if self.read.is_some() {
            disk::replace(staged, target)
        } else {
            staged.persist_noclobber(target).map(drop).map_err(|error| error.error)
        };
        Ok(put)
    }

    fn check_unchanged(&self) -> Result<(), FileError> {
        let now = Self::read(&self.path).map_err(|_| FileError::Changed(self.path.clone()))?;
        let is_same = now.read == self.read && now.target.path() == self.target.path();
        if is_same { Ok(()) } else { Err(FileError::Changed(self.path.clone())) }
    }
}

/// Removes staged files of processes that were killed. Files that are newer than a minute may still be in use. The directory can be the
/// home directory of the user, so files with a similar name are left.
fn remove_leftovers(dir: &Path) {
    leftovers::remove_older(dir, IN_USE, |path, metadata| {
        let name = path.file_name().and_then(OsStr::to_str);
        metadata.is_file()
            && name.and_then(|name| name.strip_prefix(STAGED)).is_some_and(leftovers::is_random)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_program_changed_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let state = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        fs::write(&path, "old").unwrap();
        let file = SettingsFile::read(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(file.replace(Some(b"ours"), state.path()), Err(FileError::Changed(_))));
        assert!(matches!(file.replace(None, state.path()), Err(FileError::Changed(_))));
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        fs::remove_file(&path).unwrap();
        assert!(matches!(file.replace(Some(b"ours"), state.path()), Err(FileError::Changed(_))));

        let file = SettingsFile::read(&path).unwrap();
        assert_eq!(file.bytes(), None);
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(file.replace(Some(b"ours"), state.path()), Err(FileError::Changed(_))));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "temporary files are removed");
    }

    /// A process that is killed before it replaces the file leaves its staged file.
    #[test]
    fn staged_files_are_not_beside_the_settings_and_leftovers_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let state = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        fs::write(&path, "old").unwrap();
        let file = SettingsFile::read(&path).unwrap();
        let staged = file.stage(b"new", state.path()).unwrap();
        assert!(staged.path().starts_with(state.path()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let left = staged.into_temp_path().keep().unwrap();
        // A new file may belong to a process that is still running, so it is not removed.
        file.replace(Some(b"one"), state.path()).unwrap();
        assert!(left.exists());
        for place in [state.path(), dir.path()] {
            let old = fs::File::create(place.join(".acp-skills-proxy-a1B2c3")).unwrap();
            old.set_modified(std::time::SystemTime::now() - 2 * IN_USE).unwrap();
        }
        // These are files of the user.
        let mine = [".acp-skills-proxy-notes.md", ".acp-skills-proxy-old", "acp-skills-proxy-a1B2c3"];
        for name in mine {
            let old = fs::File::create(dir.path().join(name)).unwrap();
            old.set_modified(std::time::SystemTime::now() - 2 * IN_USE).unwrap();
        }
        SettingsFile::read(&path).unwrap().replace(Some(b"two"), state.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1 + mine.len());
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    /// A sandboxed script in the project can exchange a directory for a link to one of the user's.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_that_becomes_a_link_is_not_followed() {
        for has_file in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let at = |path: &str| dir.path().join(path);
            for path in ["state", "home", "project/.cursor"] {
                fs::create_dir_all(at(path)).unwrap();
            }
            if has_file {
                fs::write(at("home/mcp.json"), "old").unwrap();
                fs::write(at("project/.cursor/mcp.json"), "old").unwrap();
            }
            let file = SettingsFile::read(&at("project/.cursor/mcp.json")).unwrap();
            fs::rename(at("project/.cursor"), at("project/moved")).unwrap();
            std::os::unix::fs::symlink(at("home"), at("project/.cursor")).unwrap();
            assert!(file.replace(Some(b"new"), &at("state")).is_err());
            let mine = fs::read_to_string(at("home/mcp.json")).ok();
            assert_eq!(mine.as_deref(), has_file.then_some("old"));
        }
    }

    #[test]
    fn a_read_only_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let state = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        fs::write(&path, "old").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        let error = SettingsFile::read(&path).unwrap().replace(Some(b"new"), state.path()).unwrap_err();
        assert!(matches!(error, FileError::ReadOnly(_)));
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[cfg(unix)]
    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test must say so")]
    fn the_owner_is_kept() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

        let dir = tempfile::tempdir().unwrap();
        let state = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        if chown(&path, Some(1000), Some(1000)).is_err() {
            return eprintln!("skipped: only root can give files to other users");
        }
        SettingsFile::read(&path).unwrap().replace(Some(b"new"), state.path()).unwrap();
        let now = fs::metadata(&path).unwrap();
        assert_eq!((now.uid(), now.gid(), now.mode() & 0o777), (1000, 1000, 0o600));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let dir = tempfile::tempdir().unwrap();
        let state = tempfile::tempdir().unwrap();
        let real = dir.path().join("dotfiles/zed.json");
        let link = dir.path().join("settings.json");
        fs::create_dir(dir.path().join("dotfiles")).unwrap();
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink("dotfiles/zed.json", &link).unwrap();
        SettingsFile::read(&link).unwrap().replace(Some(b"new"), state.path()).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("dotfiles/zed.json"));
        fs::remove_file(&real).unwrap();
        assert!(matches!(SettingsFile::read(&link), Err(FileError::Dangling { .. })));
    }
}
