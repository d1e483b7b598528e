//! [`Resolved`]: a file that is read, changed and written again.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{private, replace};

/// The path of a file after symbolic links. Links are followed only once: if another process exchanges the file for a link after it was
/// read, its new content must not be written to the target of this link.
#[derive(Debug, Clone)]
pub struct Resolved {
    path: PathBuf,
}

impl Resolved {
    /// Follows the links in `path`. The file and its directory may not exist yet.
    ///
    /// # Errors
    /// Returns an error if the path is a symbolic link to a file that doesn't exist, because its target may just be on a disk that is not
    /// mounted.
    pub fn new(path: &Path) -> io::Result<Self> {
        let path = match dunce::canonicalize(path) {
            Ok(path) => path,
            Err(error) if fs::symlink_metadata(path).is_ok() => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("symbolic link target does not exist: {error}"),
                ));
            }
            Err(_) => match (dunce::canonicalize(parent(path)), path.file_name()) {
                (Ok(parent), Some(name)) => parent.join(name),
                _ => std::path::absolute(path)?,
            },
        };
        Ok(Self { path })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file atomically, and keeps the permissions and, if possible, the owner of the file that it replaces. The directory is
    /// created if it doesn't exist.
    ///
    /// # Errors
    /// Returns the system's error if the file can't be written, and an error if its directory was replaced by a link.
    pub fn write(&self, text: &str) -> io::Result<()> {
        let parent = parent(&self.path);
        private::create_dir(parent)?;
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        // From here on, the new file can't be moved if the path of the directory leads elsewhere.
        if dunce::canonicalize(file.path())?.parent() != Some(parent) {
            return Err(io::Error::other("its directory was replaced by a link"));
        }
        file.write_all(text.as_bytes())?;
        // This fails for files that are shared with other users.
        let _ = private::copy_owner(file.as_file(), &self.path);
        private::copy_permissions(file.as_file(), &self.path)?;
        replace(file, &self.path)
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt, chown, symlink};

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        Resolved::new(path)?.write(text)
    }

    #[test]
    fn symbolic_links_are_followed() {
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
        let new = dir.path().join("new/file");
        write(&new, "y").unwrap();
        assert_eq!(fs::read_to_string(new).unwrap(), "y");
    }

    #[test]
    fn links_that_appear_later_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for other in ["other", "private/file"] {
            fs::create_dir_all(at("private")).unwrap();
            fs::create_dir_all(at("project")).unwrap();
            fs::write(at(other), "secret").unwrap();
            fs::write(at("project/file"), "old").unwrap();
            let resolved = Resolved::new(&at("project/file")).unwrap();
            if other == "other" {
                fs::remove_file(at("project/file")).unwrap();
                symlink(at(other), at("project/file")).unwrap();
                resolved.write("new").unwrap();
                assert!(fs::symlink_metadata(at("project/file")).unwrap().is_file());
            } else {
                fs::rename(at("project"), at("moved")).unwrap();
                symlink(at("private"), at("project")).unwrap();
                assert!(resolved.write("new").is_err());
            }
            assert_eq!(fs::read_to_string(at(other)).unwrap(), "secret");
        }
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test must say so")]
    fn the_owner_is_kept() {
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
