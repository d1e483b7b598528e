//! Walks everything under a directory, including hidden files and other entries that a [`Listing`](super::Listing) skips.
//! Scans and approvals use this walk.

use std::{
    collections::VecDeque,
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, ReadDir};

use super::{
    SkillFiles,
    metadata::{Metadata, metadata},
    open::{Opened, open_any},
};
use crate::{order, text::shown};

/// The maximum depth of the walk, in directories under the root.
const MAX_DEPTH: usize = 32;

/// The maximum time to resolve the links of a skill, or of several skills together. A link can lead through a chain of others, so
/// that it takes milliseconds.
pub(super) const MAX_LINK_TIME: Duration = Duration::from_secs(5);

/// The number of times that a link to a file is resolved: for its type, for its size, and to open it.
const LINK_USES: u32 = 3;

/// The name of a directory that scans don't enter: git objects are compressed. Approvals enter it, because a script can read
/// it like any other directory.
const REPOSITORY: &str = ".git";

/// The type of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file, or a link to one inside.
    File,
    /// A link to a directory inside the root. Contains the target as it is stored in the link.
    LinkIn(PathBuf),
    /// A link that leads out of the root or has no target. Contains the target as it is stored in the link.
    LinkOut(PathBuf),
    /// A FIFO, a socket or a device.
    Special,
    /// A `.git` directory, which a scan doesn't enter.
    Repository,
    /// A directory that is too deep or can't be read, an entry whose name is not Unicode, or a link after the time for links.
    Unread,
}

/// An entry under the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The path relative to the root, separated by `/`. Invalid Unicode is replaced by U+FFFD.
    pub path: String,
    pub kind: Kind,
}

impl Entry {
    /// Returns true if [`SkillFiles::visit`] can't see the content, although a program can read it: a link that leads out, a
    /// FIFO, a socket or a device.
    #[cfg(feature = "exec")]
    pub(super) fn is_unseen(&self) -> bool {
        matches!(self.kind, Kind::LinkOut(_) | Kind::Special)
    }
}

/// A callback that receives the path of each entry, and the content if the entry is a file.
pub type VisitEntry<'a> = dyn FnMut(&str, Option<&mut dyn Read>) -> io::Result<()> + 'a;

/// The limits for reading all files of a skill, or of several skills together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum number of entries, such as files and links.
    pub entries: usize,
    /// The maximum size of all files together, in bytes.
    pub bytes: u64,
    /// The maximum time to resolve links.
    pub links: Duration,
}

impl Bounds {
    /// Limits that no reasonable skill exceeds: 10,000 entries, 256 MiB, and 5 seconds for links.
    pub const SKILL: Self = Self { entries: 10_000, bytes: 256 * 1024 * 1024, links: MAX_LINK_TIME };
}

impl SkillFiles {
    /// Lists up to `max` entries under the directory, including `SKILL.md`, hidden files and links that lead out, but without
    /// the contents of `.git` directories. The second value is true if the list is complete.
    #[cfg(feature = "scan")]
    pub(crate) fn every(&self, max: usize) -> (Vec<Entry>, bool) {
        every(&self.dir, max, Repositories::Skip, &mut { MAX_LINK_TIME })
    }

    /// Lists up to `max` entries under the directory: those that [`visit`](Self::visit) passes, and those for which it fails.
    pub(super) fn walk(&self, max: usize) -> Vec<Entry> {
        every(&self.dir, max, Repositories::Enter, &mut { MAX_LINK_TIME }).0
    }

    /// Calls `visit` for each entry under the directory, including hidden ones, sorted by path.
    ///
    /// A file is passed with its content. Other entries have no content: links that lead out of the root or to a directory.
    /// The path of such a link is passed as `PATH -> "TARGET"`.
    ///
    /// What was used is subtracted from `bounds`, even if this method fails later, so that several calls can share one limit. The
    /// entries of a skill with too many are not subtracted, because listing them takes little time.
    ///
    /// # Errors
    /// Returns an error before reading any file if the skill exceeds `bounds`. Also returns an error if a file or directory
    /// can't be read, if `visit` fails, if a name is not Unicode (because two such names could appear as the same path), or if
    /// an entry is a FIFO, a socket or a device (because its content can be different for each reader).
    pub fn visit(&self, bounds: &mut Bounds, visit: &mut VisitEntry<'_>) -> io::Result<()> {
        let (entries, is_all) = every(&self.dir, bounds.entries, Repositories::Enter, &mut bounds.links);
        if !is_all {
            return Err(io::Error::other(format!("skill has more than {} files", bounds.entries)));
        }
        let allowed = bounds.bytes;
        let too_long = || io::Error::other(format!("skill has more than {allowed} bytes"));
        // Check the total before reading any file, so that many oversized skills don't cost much time.
        let files = entries.iter().filter(|entry| entry.kind == Kind::File);
        let size = |entry: &Entry| metadata(&self.dir, &entry.path).map_or(0, |found| found.len());
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
                Kind::Special => return Err(not_regular(&entry.path)),
                Kind::Repository | Kind::Unread => {
                    let path = shown(&entry.path);
                    return Err(io::Error::other(format!("cannot read `{path}`")));
                }
            }
            let Opened::File(file, metadata) = open_any(&self.dir, Path::new(&entry.path))? else {
                return Err(not_regular(&entry.path));
            };
            bounds.bytes = bounds.bytes.checked_sub(metadata.len()).ok_or_else(too_long)?;
            // Don't read more than the size that was counted, in case the file is growing.
            visit(&entry.path, Some(&mut file.take(metadata.len())))?;
        }
        Ok(())
    }
}

fn not_regular(path: &str) -> io::Error {
    io::Error::other(format!("`{}` is not a regular file", shown(path)))
}

/// The treatment of `.git` directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repositories {
    Enter,
    Skip,
}

/// Walks up to `max` entries below `root` and returns them sorted by path. The second value is true if the walk is complete. The
/// time that it takes to resolve links is subtracted from `links`.
/// Links to directories inside are not followed, because the walk reaches their targets anyway.
fn every(root: &Dir, max: usize, repositories: Repositories, links: &mut Duration) -> (Vec<Entry>, bool) {
    let mut found = Vec::new();
    let mut complete = true;
    let mut seen = 0;
    // Walk breadth-first, so that a walk that reaches its limit has seen the files near the root.
    let mut dirs = VecDeque::from([(String::new(), 0)]);
    'walk: while let Some((above, depth)) = dirs.pop_front() {
        let Ok(entries) = entries_of(root, &above) else {
            found.push(Entry { path: above, kind: Kind::Unread });
            continue;
        };
        let prefix = if depth == 0 { above } else { above + "/" };
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
            let target = || root.read_link_contents(&path).unwrap_or_default();
            let kind = match entry.file_type() {
                // Two names that are not Unicode could have the same lossy path.
                _ if name.to_str().is_none() => Kind::Unread,
                Ok(kind) if kind.is_dir() && name == REPOSITORY && repositories == Repositories::Skip => {
                    Kind::Repository
                }
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => {
                    dirs.push_back((path, depth + 1));
                    continue;
                }
                Ok(kind) if kind.is_dir() => Kind::Unread,
                Ok(kind) if kind.is_symlink() && links.is_zero() => Kind::Unread,
                Ok(kind) if kind.is_symlink() => match resolve(root, &path, links) {
                    Ok(metadata) if metadata.is_dir() => Kind::LinkIn(target()),
                    Ok(metadata) if metadata.is_file() => Kind::File,
                    Ok(_) => Kind::Special,
                    Err(_) => Kind::LinkOut(target()),
                },
                Ok(kind) if kind.is_file() => Kind::File,
                _ => Kind::Special,
            };
            found.push(Entry { path, kind });
        }
    }
    order::sort_by(&mut found, |a, b| a.path.cmp(&b.path));
    (found, complete)
}

/// Opens a directory below `root` to read its entries. An empty path is the root. A walk over a wide tree must not keep directories open,
/// because there can be more of them than a process may have open files.
pub(super) fn entries_of(root: &Dir, path: &str) -> io::Result<ReadDir> {
    // Don't follow a link, even if the directory has been replaced by one since it was listed.
    let dir = if path.is_empty() { root.try_clone() } else { root.open_dir_nofollow(path) };
    dir?.entries()
}

/// Returns the metadata of the target of a link, and subtracts the time from `time` that all uses of the link take.
pub(super) fn resolve(root: &Dir, link: &str, time: &mut Duration) -> io::Result<Metadata> {
    let started = Instant::now();
    let target = metadata(root, link);
    *time = time.saturating_sub(started.elapsed() * LINK_USES);
    target
}

/// Formats a link for [`VisitEntry`], so that its target is part of the path.
#[expect(clippy::unnecessary_debug_formatting, reason = "different targets never have the same debug format")]
fn link_path(path: &str, target: &Path) -> String {
    format!("{path} -> {target:?}")
}
