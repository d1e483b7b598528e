//! Everything below a directory, for whoever has to judge it: also what a listing passes over.

use std::{
    collections::VecDeque,
    io::{self, Read},
    path::{Path, PathBuf},
};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use super::{
    SkillFiles,
    open::{Opened, open_any},
};
use crate::text::shown;

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
    /// Relative to the directory, separated by `/`; what is not Unicode in it is U+FFFD.
    pub path: String,
    pub kind: Kind,
}

/// Is shown what is at a path, and its content where it is a file.
pub type VisitEntry<'a> = dyn FnMut(&str, Option<&mut dyn Read>) -> io::Result<()> + 'a;

/// What a look at all files of a skill may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Files and directories, at most.
    pub entries: usize,
    /// Bytes of all files together, at most.
    pub bytes: u64,
}

impl Bounds {
    /// More than any skill has that somebody means to have: 10,000 files and 256 MiB.
    pub const SKILL: Self = Self { entries: 10_000, bytes: 256 * 1024 * 1024 };
}

impl SkillFiles {
    /// Everything below the directory with its `SKILL.md`, hidden directories and links that lead out, and whether that
    /// is all; at most `max` entries.
    pub(crate) fn every(&self, max: usize) -> (Vec<Entry>, bool) {
        every(&self.dir, max)
    }

    /// Shows `visit` everything below the directory, hidden or not, sorted by path: a file with its content, and without one
    /// whatever is no file to read: a device, a directory of git, and as `PATH -> "TARGET"` a link that leads out or to a
    /// directory. What was looked at is taken from `bounds`, also when that fails.
    ///
    /// # Errors
    /// There is more than `bounds` allow, of which nothing is read then; a file or directory cannot be read, or `visit` fails. No
    /// two things are shown by one path, so a name that is not Unicode is an error, too.
    pub fn visit(&self, bounds: &mut Bounds, visit: &mut VisitEntry<'_>) -> io::Result<()> {
        let (entries, is_all) = self.every(bounds.entries);
        if !is_all {
            return Err(io::Error::other(format!("it has more than {} files", bounds.entries)));
        }
        let allowed = bounds.bytes;
        let too_long = || io::Error::other(format!("its files have more than {allowed} bytes"));
        // Before any is read: many skills that are each too much must not cost as much each.
        let files = entries.iter().filter(|entry| entry.kind == Kind::File);
        let size = |entry: &Entry| self.dir.metadata(&entry.path).map_or(0, |metadata| metadata.len());
        if files.map(size).fold(0, u64::saturating_add) > allowed {
            return Err(too_long());
        }
        bounds.entries -= entries.len().min(bounds.entries);
        for entry in entries {
            match &entry.kind {
                Kind::File => {}
                Kind::LinkIn(target) | Kind::LinkOut(target) => {
                    visit(&link_path(&entry.path, target), None)?;
                    continue;
                }
                Kind::Special | Kind::Repository => {
                    visit(&entry.path, None)?;
                    continue;
                }
                Kind::Unread => {
                    let path = shown(&entry.path);
                    return Err(io::Error::other(format!("`{path}` in it cannot be looked at")));
                }
            }
            let Opened::File(file, metadata) = open_any(&self.dir, Path::new(&entry.path))? else {
                visit(&entry.path, None)?;
                continue;
            };
            bounds.bytes = bounds.bytes.checked_sub(metadata.len()).ok_or_else(too_long)?;
            // Not more than it said, should it grow meanwhile.
            visit(&entry.path, Some(&mut file.take(metadata.len())))?;
        }
        Ok(())
    }
}

/// What is below `root`, sorted by path, and whether that is all: the walk looks at `max` entries. Links to directories
/// inside are not followed, because what they lead to is met on its own.
fn every(root: &Dir, max: usize) -> (Vec<Entry>, bool) {
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
                // Two names that are not Unicode would be one path here.
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

/// What a link is shown as to whoever sees all there is.
#[expect(clippy::unnecessary_debug_formatting, reason = "no two targets are written the same")]
fn link_path(path: &str, target: &Path) -> String {
    format!("{path} -> {target:?}")
}
