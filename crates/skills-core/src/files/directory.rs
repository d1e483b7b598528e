//! Opens a directory by a path in which no component may be a link.
//!
//! Discovery knows a skill by its canonical path. By the time it is read, a link may have taken the place of the skill's
//! directory or of one above it. Following links and comparing paths afterwards would be a race: the link can be gone
//! again when the paths are compared. So the open itself refuses links, by a flag of the kernel where there is one, and
//! otherwise by opening each component relative to the handle of its parent.

#[cfg(target_os = "linux")]
mod linux;

use std::path::Path;

use cap_fs_ext::DirExt;
use cap_std::{ambient_authority, fs::Dir};

use super::{FileError, open::in_plain_words};

/// Opens the directory at `path`, which is absolute and was canonical when it was found.
pub(super) fn open_without_links(path: &Path) -> Result<Dir, FileError> {
    #[cfg(target_os = "linux")]
    if let Some(opened) = linux::open_at_once(path) {
        return opened;
    }
    open_by_steps(path)
}

/// Opens one component after the other. Needs the right to read each directory on the way.
fn open_by_steps(path: &Path) -> Result<Dir, FileError> {
    let failed = |source| FileError::Directory { dir: path.to_owned(), source: in_plain_words(source) };
    let root = path.ancestors().last().unwrap_or(path);
    let mut dir = Dir::open_ambient_dir(root, ambient_authority()).map_err(failed)?;
    for name in path.strip_prefix(root).unwrap_or(path) {
        dir = match dir.open_dir_nofollow(name) {
            Ok(child) => child,
            Err(_) if dir.symlink_metadata(name).is_ok_and(|metadata| metadata.is_symlink()) => {
                return Err(FileError::LinkInPath { dir: path.to_owned() });
            }
            Err(error) => return Err(failed(error)),
        };
    }
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(path: &Path, expected: Result<(), &str>) {
        let opened = [open_without_links(path), open_by_steps(path)];
        for (way, opened) in opened.into_iter().enumerate() {
            match (opened, expected) {
                (Ok(dir), Ok(())) => assert!(dir.exists("file"), "{} {way}", path.display()),
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().contains(expected), "{} {way}: {error}", path.display());
                }
                (opened, _) => panic!("{} {way}: {opened:?}", path.display()),
            }
        }
    }

    #[test]
    fn directories() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/b/file"), "").unwrap();
        check(&base.join("a/b"), Ok(()));
        for missing in ["a/c", "c/b"] {
            check(&base.join(missing), Err("os error"));
        }
        assert!(open_without_links(&base.join("a/b/file")).is_err());
        assert!(open_without_links(Path::new("a")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links() {
        use std::os::unix::fs::symlink;
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/b/file"), "").unwrap();
        symlink("a", base.join("above")).unwrap();
        symlink("b", base.join("a/last")).unwrap();
        symlink(base.join("a/b"), base.join("absolute")).unwrap();
        symlink("gone", base.join("dangling")).unwrap();
        for path in ["above/b", "a/last", "absolute", "dangling", "above/last"] {
            check(&base.join(path), Err("there is a link in its path now"));
        }
        check(&base.join("a/b"), Ok(()));
    }
}
