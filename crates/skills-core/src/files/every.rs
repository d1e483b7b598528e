//! Everything below a directory, for whoever has to judge it: also what a listing passes over.

use std::{collections::VecDeque, path::PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

/// Directories below the root that the walk descends, at most.
const MAX_DEPTH: usize = 32;

/// The name of a directory that is not looked into: objects of git are compressed, and no one's instructions.
const REPOSITORY: &str = ".git";

/// What is at a path below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file, or a link to one inside.
    File,
    /// A link to a directory inside, and what is written in it.
    LinkIn(PathBuf),
    /// A link that leads out of the directory, or to nothing inside, and what is written in it.
    LinkOut(PathBuf),
    /// A FIFO, a socket or a device.
    Special,
    /// A directory of git, which was not looked into.
    Repository,
    /// A directory that was not looked into for another reason, or something with a name that nobody can ask for.
    Unread,
}

/// One thing below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Relative to the directory, separated by `/`; what is no Unicode in it is U+FFFD.
    pub path: String,
    pub kind: Kind,
}

/// What is below `root`, sorted by path, and whether that is all: the walk looks at `max` entries. Links to directories
/// inside are not followed, because what they lead to is met on its own.
pub(super) fn every(root: &Dir, max: usize) -> (Vec<Entry>, bool) {
    let (mut found, mut complete, mut seen) = (Vec::new(), true, 0);
    let Ok(top) = root.try_clone() else { return (found, false) };
    // Breadth first, so that a bounded walk sees what is near.
    let mut dirs = VecDeque::from([(top, String::new(), 0)]);
    'walk: while let Some((dir, prefix, depth)) = dirs.pop_front() {
        let Ok(entries) = dir.entries() else {
            found.push(Entry { path: prefix, kind: Kind::Unread });
            continue;
        };
        for entry in entries {
            if seen == max {
                complete = false;
                break 'walk;
            }
            seen += 1;
            let Ok(entry) = entry else {
                complete = false;
                break;
            };
            let name = entry.file_name();
            let path = format!("{prefix}{}", name.to_string_lossy());
            let written = || dir.read_link_contents(&name).unwrap_or_default();
            let kind = match entry.file_type() {
                // Two names that are no Unicode would be one path here.
                _ if name.to_str().is_none() => Kind::Unread,
                Ok(kind) if kind.is_dir() && name == REPOSITORY => Kind::Repository,
                Ok(kind) if kind.is_dir() => {
                    // Not through a link, even if the entry has become one since it was listed.
                    match dir.open_dir_nofollow(&name) {
                        Ok(child) if depth < MAX_DEPTH => {
                            dirs.push_back((child, path + "/", depth + 1));
                            continue;
                        }
                        _ => Kind::Unread,
                    }
                }
                Ok(kind) if kind.is_symlink() => match root.metadata(&path) {
                    Ok(metadata) if metadata.is_dir() => Kind::LinkIn(written()),
                    Ok(metadata) if metadata.is_file() => Kind::File,
                    Ok(_) => Kind::Special,
                    Err(_) => Kind::LinkOut(written()),
                },
                Ok(kind) if kind.is_file() => Kind::File,
                _ => Kind::Special,
            };
            found.push(Entry { path, kind });
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    (found, complete)
}
