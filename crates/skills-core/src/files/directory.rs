//! Opens a directory by a path in which no component may be a link.
//!
//! Discovery knows a skill by its canonical path. By the time it is read, somebody may have put a link in the place of
//! the skill's directory, or of one above it; comparing names after an open that follows links leaves a moment in which
//! both are exchanged. So the open itself refuses links: the kernel does where it can, otherwise each component is
//! opened below the handle of the one before it.

#[cfg(target_os = "linux")]
mod linux;

use std::{io, path::Path};

use cap_fs_ext::DirExt;
use cap_std::{ambient_authority, fs::Dir};

/// Opens the directory at `path`, which is absolute and was canonical when it was found.
pub(super) fn open_without_links(path: &Path) -> io::Result<Dir> {
    #[cfg(target_os = "linux")]
    if let Some(opened) = linux::open_at_once(path) {
        return opened;
    }
    open_by_steps(path)
}

/// Opens one component after the other. Needs the right to read each directory on the way.
fn open_by_steps(path: &Path) -> io::Result<Dir> {
    let root = path.ancestors().last().unwrap_or(path);
    let below = path.strip_prefix(root).map_err(io::Error::other)?;
    let mut dir = Dir::open_ambient_dir(root, ambient_authority())?;
    for name in below {
        dir = match dir.open_dir_nofollow(name) {
            Ok(child) => child,
            Err(_) if dir.symlink_metadata(name).is_ok_and(|metadata| metadata.is_symlink()) => {
                return Err(link_in_path());
            }
            Err(error) => return Err(error),
        };
    }
    Ok(dir)
}

/// What a caller is told who may well have put the link there without ill intent.
fn link_in_path() -> io::Error {
    io::Error::other("there is a link in its path now; look for the skills again")
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
            let error = open_without_links(&base.join(missing)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{missing}");
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
