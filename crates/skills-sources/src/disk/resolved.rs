//! [`Resolved`]: a file that is read, changed and written again.

use std::{
    ffi::OsStr,
    fs,
    io::{self, Write},
    path::{Component, Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{held::HeldDirectory, private, replace};

/// The path of a file after symbolic links. Links are followed only once, and the directory stays open on Linux: if another process
/// exchanges the file or a directory in its path for a link after the file was read, the new content must not be written to the target of
/// this link.
#[derive(Debug)]
pub struct Resolved {
    path: PathBuf,
    /// `None` if the directory doesn't exist.
    directory: Option<HeldDirectory>,
}

impl Resolved {
    /// Follows the links in `path`. The file and its directory may not exist yet.
    ///
    /// # Errors
    /// Returns an error if the path is a symbolic link to a file that doesn't exist, because its target may just be on a disk that is not
    /// mounted, and if its directory can't be opened.
    pub fn new(path: &Path) -> io::Result<Self> {
        let path = match dunce::canonicalize(path) {
            Ok(path) => path,
            Err(error) if fs::symlink_metadata(path).is_ok() => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("symbolic link target does not exist: {error}"),
                ));
            }
            Err(_) => without_links(path),
        };
        let parent = parent(&path);
        let directory = if parent.is_dir() { Some(HeldDirectory::open(parent)?) } else { None };
        Ok(Self { path, directory })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file atomically, and keeps the permissions and, if possible, the owner of the file that it replaces. The directory is
    /// created if it doesn't exist.
    ///
    /// # Errors
    /// Returns the system's error if the file can't be written, and an error if its directory was replaced.
    pub fn write(&self, text: &str) -> io::Result<()> {
        self.within(|directory, target| {
            let mut file = NamedTempFile::new_in(directory)?;
            file.write_all(text.as_bytes())?;
            // This fails for files that are shared with other users.
            let _ = private::copy_owner(file.as_file(), target);
            private::copy_permissions(file.as_file(), target)?;
            replace(file, target)
        })
    }

    /// Calls `change` with paths of the directory and of the file. The directory is created if it doesn't exist.
    ///
    /// # Errors
    /// Returns the error of `change`, the system's error if the directory can't be created, and an error if it was replaced.
    pub fn within<T>(&self, change: impl FnOnce(&Path, &Path) -> io::Result<T>) -> io::Result<T> {
        let parent = parent(&self.path);
        let created = if self.directory.is_none() {
            private::create_dir(parent)?;
            Some(HeldDirectory::open(parent)?)
        } else {
            None
        };
        let directory = self.directory.as_ref().or(created.as_ref()).expect("one of both exists");
        if dunce::canonicalize(directory.path())? != parent {
            return Err(io::Error::other("its directory was replaced by a link"));
        }
        change(directory.path(), &directory.file(self.path.file_name().unwrap_or(OsStr::new("."))))
    }
}

/// Follows the links in the part of a path that exists. The result is absolute.
pub fn without_links(path: &Path) -> PathBuf {
    // This fails only for an empty path, or without a working directory.
    let path = &*std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = path.ancestors().find_map(|above| Some((dunce::canonicalize(above).ok()?, above)));
    let Some((mut real, above)) = existing else { return path.to_owned() };
    for part in path.strip_prefix(above).into_iter().flat_map(Path::components) {
        match part {
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
    }
    real
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
        symlink(dir.path().join("dotfiles"), dir.path().join("home")).unwrap();
        for (path, expected) in [
            ("new/file", "new/file"),
            ("home/new/sub/file", "dotfiles/new/sub/file"),
            ("missing/../other/file", "other/file"),
            ("home/missing/../file2", "dotfiles/file2"),
        ] {
            write(&dir.path().join(path), path).unwrap();
            assert_eq!(fs::read_to_string(dir.path().join(expected)).unwrap(), path);
        }
    }

    #[test]
    fn relative_paths_become_absolute() {
        let here = std::env::current_dir().unwrap();
        for (path, expected) in [("no-such/state", "no-such/state"), ("./no-such", "no-such"), ("src", "src")]
        {
            assert_eq!(
                without_links(Path::new(path)),
                dunce::canonicalize(&here).unwrap().join(expected),
                "{path}"
            );
        }
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
