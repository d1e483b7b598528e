//! Lists the files of a skill for the model.

use std::{collections::VecDeque, time::Duration};

use cap_std::fs::{Dir, DirEntry};
use serde::Serialize;

use super::{
    FileError, SKILL_FILE_NAMES,
    every::{MAX_LINK_TIME, entries_of, resolve},
    metadata::of_entry,
};
use crate::{order, skill::Guard};

/// The maximum number of entries that one listing reads.
const MAX_ENTRIES: usize = 10_000;

/// The maximum depth of a listing, in directories under the root.
const MAX_DEPTH: usize = 16;

/// The maximum number of directory entries that an error lists.
const MAX_LISTED_ENTRIES: usize = 50;

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileEntry {
    /// The path relative to the skill's directory, separated by `/`. It is untrusted: escape it before you show it to a
    /// person.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
}

/// A list of the files of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// The files, sorted by path.
    pub files: Vec<FileEntry>,
    /// The number of further files that are not in `files`.
    pub more: usize,
    /// True if the walk covered the whole directory. It stops after 10,000 entries, and does not go deeper than 16 levels. If
    /// false, `more` is a lower bound.
    pub complete: bool,
}

impl Listing {
    /// Returns the number of all files, including those that are not in `files`.
    pub fn total(&self) -> usize {
        self.files.len() + self.more
    }
}

/// Lists the first `max` files under `root`. If there is a guard, only lists the files that it knows, because the model sees their
/// names.
pub(super) fn list(root: &Dir, guard: Option<&Guard>, max: usize) -> Listing {
    let mut listing = Listing { files: Vec::new(), more: 0, complete: true };
    let mut seen = 0;
    let mut links = MAX_LINK_TIME;
    // Walk breadth-first, so that a walk that reaches its limit has seen the files near the root. Only one directory is open at a time.
    let mut dirs = VecDeque::from([(String::new(), 0)]);
    while let Some((above, depth)) = dirs.pop_front() {
        let Ok(entries) = entries_of(root, &above) else {
            listing.complete = false;
            continue;
        };
        let prefix = if depth == 0 { above } else { above + "/" };
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
                // The model can't request a file whose name is not Unicode, but we should still count it.
                listing.more += usize::from(guard.is_none());
                continue;
            };
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                if name.starts_with('.') || name == "node_modules" || name == "__pycache__" {
                    continue;
                }
                if depth < MAX_DEPTH {
                    dirs.push_back((format!("{prefix}{name}"), depth + 1));
                } else {
                    listing.complete = false;
                }
                continue;
            }
            let is_skill_file = depth == 0 && SKILL_FILE_NAMES.contains(&name.as_str());
            if is_skill_file || name == ".DS_Store" {
                continue;
            }
            let path = format!("{prefix}{name}");
            if guard.is_none_or(|guard| guard.knows(&path))
                && let Some(size) = size_of(root, &entry, &path, &mut links)
            {
                listing.files.push(FileEntry { path, size });
            }
        }
    }
    listing.complete &= !links.is_zero();
    order::sort_by(&mut listing.files, |a, b| a.path.cmp(&b.path));
    listing.more += listing.files.len().saturating_sub(max);
    listing.files.truncate(max);
    listing
}

/// Returns the size of a file, or of the target if the entry is a link to a file inside the skill. Returns `None` otherwise, and for a
/// link if there is no time left in `links`.
fn size_of(root: &Dir, entry: &DirEntry, path: &str, links: &mut Duration) -> Option<u64> {
    let metadata = of_entry(entry).ok()?;
    // `of_entry` does not follow links; `resolve` follows them within `root` only.
    let metadata = match metadata.is_symlink() {
        true if links.is_zero() => return None,
        true => resolve(root, path, links).ok()?,
        false => metadata,
    };
    metadata.is_file().then_some(metadata.len())
}

/// Returns the error for reading the directory `relative`, which lists its entries. If there is a guard, only lists the entries
/// that it knows.
pub(super) fn directory_error(path: &str, relative: &str, dir: &Dir, guard: Option<&Guard>) -> FileError {
    let prefix = if relative.is_empty() { String::new() } else { format!("{relative}/") };
    let mut entries: Vec<String> = dir
        .entries()
        .into_iter()
        .flatten()
        .take(MAX_ENTRIES)
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            if guard.is_some_and(|guard| !guard.knows(&format!("{prefix}{name}"))) {
                return None;
            }
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            Some(if is_dir { name + "/" } else { name })
        })
        .collect();
    order::sort(&mut entries);
    let more = entries.len().saturating_sub(MAX_LISTED_ENTRIES);
    entries.truncate(MAX_LISTED_ENTRIES);
    FileError::IsDirectory { path: path.to_owned(), entries, more }
}
