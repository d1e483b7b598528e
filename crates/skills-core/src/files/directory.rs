//! Opens a directory by a path in which no component may be a link.
//!
//! Discovery knows a skill by its canonical path. By the time it is read, a link may have taken the place of the skill's
//! directory or of one above it. Following links and comparing paths afterwards would be a race: the link can be gone
//! again when the paths are compared. So the open itself refuses links, by a flag of the kernel where there is one, and
//! otherwise by opening each component relative to the handle of its parent.

#[cfg(target_os = "linux")]
mod linux;
// On Linux for its tests, which are the same everywhere.
#[cfg(any(test, not(target_os = "linux")))]
mod other;

#[cfg(target_os = "linux")]
pub(super) use linux::open_without_links;
#[cfg(not(target_os = "linux"))]
pub(super) use other::open_without_links;

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn check(path: &Path, expected: Result<(), &str>) {
        let opened = [
            open_without_links(path),
            other::open_without_links(path),
            #[cfg(target_os = "linux")]
            linux::open_by_steps(path),
        ];
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
        for path in [&*base.join("a/b/file"), "a".as_ref(), "".as_ref()] {
            check(path, Err("cannot open the skill's directory"));
        }
        assert!(open_without_links(base.ancestors().last().unwrap()).is_ok());
    }

    /// A home directory that others may pass but not list is no obstacle.
    #[cfg(target_os = "linux")]
    #[test]
    fn directories_that_cannot_be_read() {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/b/file"), "").unwrap();
        fs::set_permissions(base.join("a"), fs::Permissions::from_mode(0o111)).unwrap();
        for opened in [open_without_links(&base.join("a/b")), linux::open_by_steps(&base.join("a/b"))] {
            assert!(opened.unwrap().exists("file"));
        }
        fs::set_permissions(base.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
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
