//! [`Followed`]: the links in the path of a directory.
//!
//! A script can make links in its working directory. A later session can begin in such a link, and its scripts could then write wherever
//! the link leads.

use std::{
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};

/// The maximum number of links in a path, as in Linux.
const MAX_LINKS: usize = 40;

/// A path without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The canonical path.
    pub path: PathBuf,
    /// The links that were followed. The directory of each is canonical.
    pub links: Vec<PathBuf>,
}

/// Follows all links in an absolute path.
///
/// # Errors
/// Returns the system's error if a part of the path doesn't exist, or if there are too many links.
pub fn follow(path: &Path) -> io::Result<Followed> {
    let mut path_so_far = PathBuf::from("/");
    let mut links = Vec::new();
    let mut rest: Vec<OsString> = parts(path);
    while let Some(part) = rest.pop() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => path_so_far = PathBuf::from("/"),
            Some(Component::ParentDir) => drop(path_so_far.pop()),
            Some(Component::Normal(name)) => {
                let next = path_so_far.join(name);
                if !fs::symlink_metadata(&next)?.is_symlink() {
                    path_so_far = next;
                    continue;
                }
                if links.len() == MAX_LINKS {
                    return Err(io::Error::other("too many symbolic links"));
                }
                rest.extend(parts(&fs::read_link(&next)?));
                links.push(next);
            }
            _ => {}
        }
    }
    Ok(Followed { path: path_so_far, links })
}

/// Returns the parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_like_the_system_does() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(dir.join("a/b")).unwrap();
        for (target, link) in [
            ("a/b", "plain"),
            ("../plain/..", "a/up"),
            ("a/up/up", "chain"),
            ("loop", "loop"),
            ("missing", "dangling"),
        ] {
            symlink(target, dir.join(link)).unwrap();
        }
        symlink(dir.join("a"), dir.join("absolute")).unwrap();
        for (path, links) in [
            ("a/b", &[][..]),
            ("a/../a/./b", &[]),
            ("plain", &["plain"]),
            ("a/up/b", &["a/up", "plain"]),
            ("chain", &["chain", "a/up", "plain", "a/up", "plain"]),
            ("absolute/b/..", &["absolute"]),
        ] {
            let expected = Followed {
                path: fs::canonicalize(dir.join(path)).unwrap(),
                links: links.iter().map(|link| dir.join(link)).collect(),
            };
            assert_eq!(follow(&dir.join(path)).unwrap(), expected, "{path}");
        }
        for path in ["loop", "dangling", "plain/x"] {
            assert!(follow(&dir.join(path)).is_err(), "{path}");
        }
    }
}
