//! [`Followed`]: the links in the path of a directory.
//!
//! A script can make links in its working directory. A later session can begin in such a link, and its scripts could then write wherever
//! the link leads.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

/// The maximum number of links in a path, as in Linux.
const MAX_LINKS: usize = 40;

/// A path without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The canonical path.
    pub path: PathBuf,
    /// The links that were followed.
    pub links: Vec<Link>,
}

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The path of the link, in a directory with a canonical path.
    pub path: PathBuf,
    /// The user id of its owner.
    pub owner: u32,
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
                let metadata = fs::symlink_metadata(&next)?;
                if !metadata.is_symlink() {
                    path_so_far = next;
                    continue;
                }
                if links.len() == MAX_LINKS {
                    return Err(io::Error::other("too many symbolic links"));
                }
                rest.extend(parts(&fs::read_link(&next)?));
                // Don't look at the link again, because it can be exchanged at any time.
                links.push(Link { path: next, owner: metadata.uid() });
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
        let owner = fs::metadata(&dir).unwrap().uid();
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
                links: links.iter().map(|link| Link { path: dir.join(link), owner }).collect(),
            };
            assert_eq!(follow(&dir.join(path)).unwrap(), expected, "{path}");
        }
        for path in ["loop", "dangling", "plain/x"] {
            assert!(follow(&dir.join(path)).is_err(), "{path}");
        }
    }
}
