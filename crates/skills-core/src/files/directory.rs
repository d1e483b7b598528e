//! Opens a directory by its path, and fails if any component of the path is a link.
//!
//! Discovery stores the canonical path of a skill. When the skill is read later, the directory or one of its parents may have
//! been replaced by a link. Following links and comparing paths afterwards would be a race, because the link can disappear
//! before the comparison. Therefore the open itself rejects links: with a flag of the kernel if there is one, otherwise by
//! opening each component relative to the handle of its parent.

#[cfg(target_os = "linux")]
mod linux;
// We also compile this for the tests on Linux, to test all implementations there.
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
        for (implementation, opened) in opened.into_iter().enumerate() {
            match (opened, expected) {
                (Ok(dir), Ok(())) => assert!(dir.exists("file"), "{} {implementation}", path.display()),
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected), "{} {implementation}: {error}", path.display());
                }
                (opened, _) => panic!("{} {implementation}: {opened:?}", path.display()),
            }
        }
    }

    #[test]
    fn only_directories_can_be_opened() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/b/file"), "").unwrap();
        check(&base.join("a/b"), Ok(()));
        for missing in ["a/c", "c/b"] {
            check(&base.join(missing), Err("os error"));
        }
        for path in [&*base.join("a/b/file"), "a".as_ref(), "".as_ref()] {
            check(path, Err("failed to open skill directory"));
        }
        assert!(open_without_links(base.ancestors().last().unwrap()).is_ok());
    }

    /// For example a home directory that other users may traverse, but not list.
    #[cfg(target_os = "linux")]
    #[test]
    fn parents_need_not_be_readable() {
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
    fn a_link_in_the_path_is_an_error() {
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
            check(&base.join(path), Err("path now contains a link"));
        }
        check(&base.join("a/b"), Ok(()));
    }
}
