//! What there is below a directory.

use std::collections::VecDeque;

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, DirEntry};
use serde::Serialize;

use super::{FileError, SKILL_FILE_NAMES};

/// Entries that one listing looks at, at most.
const MAX_ENTRIES: usize = 10_000;

/// Directories below the root that a listing descends, at most.
const MAX_DEPTH: usize = 16;

/// Entries of a directory that an error names.
const MAX_NAMED: usize = 50;

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileEntry {
    /// Relative to the skill's directory, separated by `/`. The name is a stranger's: escape it where it is shown.
    pub path: String,
    /// In bytes.
    pub size: u64,
}

/// The files of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// Sorted by path.
    pub files: Vec<FileEntry>,
    /// How many files there are beyond these.
    pub more: usize,
    /// Whether the walk saw everything. It stops after 10,000 entries and 16 levels; then `more` is a lower bound.
    pub complete: bool,
}

impl Listing {
    /// How many files there are, listed or not.
    pub fn total(&self) -> usize {
        self.files.len() + self.more
    }
}

pub(super) fn list(root: &Dir, max: usize) -> Listing {
    let mut listing = Listing { files: Vec::new(), more: 0, complete: true };
    let mut seen = 0;
    let Ok(top) = root.try_clone() else {
        return Listing { complete: false, ..listing };
    };
    // Breadth first, so that a bounded walk sees what is near.
    let mut dirs = VecDeque::from([(top, String::new(), 0)]);
    while let Some((dir, prefix, depth)) = dirs.pop_front() {
        let Ok(entries) = dir.entries() else {
            listing.complete = false;
            continue;
        };
        for entry in entries {
            if seen == MAX_ENTRIES {
                listing.complete = false;
                dirs.clear();
                break;
            }
            seen += 1;
            let Ok(entry) = entry else {
                listing.complete = false;
                break;
            };
            let Ok(name) = entry.file_name().into_string() else {
                // Nobody can ask for it, but it is there.
                listing.more += 1;
                continue;
            };
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                if name.starts_with('.') || name == "node_modules" || name == "__pycache__" {
                    continue;
                }
                // Not through a link, even if the entry has become one since it was listed.
                match dir.open_dir_nofollow(&name) {
                    Ok(child) if depth < MAX_DEPTH => {
                        dirs.push_back((child, format!("{prefix}{name}/"), depth + 1));
                    }
                    _ => listing.complete = false,
                }
                continue;
            }
            let is_skill_file = depth == 0 && SKILL_FILE_NAMES.contains(&name.as_str());
            if is_skill_file || name == ".DS_Store" {
                continue;
            }
            let path = format!("{prefix}{name}");
            if let Some(size) = size_of(root, &entry, &path) {
                listing.files.push(FileEntry { path, size });
            }
        }
    }
    listing.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    listing.more += listing.files.len().saturating_sub(max);
    listing.files.truncate(max);
    listing
}

/// The size of a file, or of the file inside that a link leads to; `None` for everything else.
fn size_of(root: &Dir, entry: &DirEntry, path: &str) -> Option<u64> {
    let metadata = entry.metadata().ok()?;
    // `DirEntry::metadata` does not follow links; `Dir::metadata` follows them within `root` only.
    let metadata = if metadata.is_symlink() { root.metadata(path).ok()? } else { metadata };
    metadata.is_file().then(|| metadata.len())
}

/// The error for reading a directory: it names what is in it.
pub(super) fn directory_error(path: &str, dir: &Dir) -> FileError {
    let mut entries: Vec<String> = dir
        .entries()
        .into_iter()
        .flatten()
        .take(MAX_ENTRIES)
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            Some(if is_dir { name + "/" } else { name })
        })
        .collect();
    entries.sort_unstable();
    let more = entries.len().saturating_sub(MAX_NAMED);
    entries.truncate(MAX_NAMED);
    FileError::IsDirectory { path: path.to_owned(), entries, more }
}
