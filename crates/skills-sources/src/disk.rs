//! Files that this program keeps for its user: where they are, who may read them, and which process may change them.
//!
//! | module | responsible for |
//! |---|---|
//! | [`locations`] | the directories for configuration, cache and state on each platform |
//! | [`private`] | files and directories that only their owner can read |
//! | [`lock`] | locks between processes |
//! | [`bounded`] | regular files, which are read with a limit |
//! | [`patient`] | files that may not be regular files, which are read with a timeout |
//! | [`secret()`] | the secret of the installation |
//! | [`state`] | small state files, written atomically under a lock |
//! | [`replace()`] | replacing files that other processes may have open |
//! | [`home`] | `~` in paths |
//! | [`leftovers`] | temporary files of processes that were killed |
//! | [`error_text()`] | the text of a system's error |

pub mod bounded;
pub mod home;
pub mod leftovers;
pub mod locations;
pub mod lock;
pub mod patient;
pub mod private;
mod replace;
mod secret;
pub mod state;
mod system_error;

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

pub use self::{
    home::{expand_home, shorten_home},
    locations::{cache_dir, config_file, state_dir},
    lock::FileLock,
    replace::replace,
    secret::{SECRET_BYTES, secret},
    state::StateDir,
    system_error::error_text,
};

/// Writes `text` to a file atomically, and keeps the permissions and, if possible, the owner of the file that it replaces. A symbolic link is followed.
///
/// # Errors
/// Returns the system's error if the file cannot be written, and an error if `path` is a symbolic link to a file that does
/// not exist.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        // Don't replace the link, since its target may just be on a disk that is not mounted.
        Err(error) if fs::symlink_metadata(path).is_ok() => {
            return Err(io::Error::new(
                error.kind(),
                format!("symbolic link target does not exist: {error}"),
            ));
        }
        Err(_) => path.to_owned(),
    };
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    // This fails for files that are shared with other users.
    let _ = private::copy_owner(file.as_file(), &path);
    private::copy_permissions(file.as_file(), &path)?;
    replace(file, &path)
}

/// Returns `path` relative to `base`, with `/` as the separator on every platform. The path is empty for `base` itself. A path that is
/// not below `base` stays whole.
pub(crate) fn relative_path(base: &Path, path: &Path) -> String {
    let below = path.strip_prefix(base).unwrap_or(path);
    below.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn symbolic_links_are_followed() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        let file = dir.path().join("dotfiles/file");
        symlink(&file, &link).unwrap();
        let error = write(&link, "x").unwrap_err();
        assert!(
            error.to_string().contains("does not exist") && fs::read_link(&link).unwrap() == file,
            "{error}"
        );
        fs::create_dir(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        write(&link, "x").unwrap();
        assert_eq!(
            (fs::read_link(&link).unwrap(), fs::read_to_string(&file).unwrap()),
            (file, "x".to_owned())
        );
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test must say so")]
    fn the_owner_is_kept() {
        use std::os::unix::fs::{MetadataExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        if chown(&file, Some(1000), Some(1000)).is_err() {
            return eprintln!("skipped: only root can give files to other users");
        }
        write(&file, "x").unwrap();
        let metadata = fs::metadata(&file).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (1000, 1000));
        let new = tempfile::NamedTempFile::new_in(dir.path()).unwrap();
        private::copy_owner(new.as_file(), &file).unwrap();
        assert_eq!(new.as_file().metadata().unwrap().uid(), 1000);
    }
}
