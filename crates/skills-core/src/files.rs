//! Reads and lists files in the directory of a skill, and only there.
//!
//! Neither the paths (from a model) nor the skills (from third parties) are trusted. Therefore confinement doesn't depend on
//! comparing paths as text: each file is opened through a handle of the skill's directory ([`cap_std::fs::Dir`]), and any path
//! that leads out of it fails. This includes `..`, absolute paths, and symbolic links that are replaced during the open. We
//! check the type of a file *after* opening it, so that there is no race between check and use. Opening never blocks, so a
//! FIFO cannot stall the caller.
//!
//! This module never writes files, never runs them, and never follows a link out of the directory, even if the user created
//! the link.

mod bundled;
pub(crate) mod content;
mod directory;
mod error;
pub(crate) mod every;
mod guarded;
mod list;
mod metadata;
mod open;
mod path;
#[cfg(feature = "fetch")]
mod remote;
mod skill_md;

use std::{
    ffi::{OsStr, OsString},
    hash::Hasher,
    io::{self, Read},
    path::Path,
    time::SystemTime,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, ReadDir},
};

pub use bundled::{Bundled, bundled, read};
pub use content::{FileContent, ReadOptions, media_type};
pub use error::FileError;
pub use every::{Bounds, VisitEntry};
pub(crate) use guarded::check_activation;
pub use guarded::{is_text_of, is_unchanged};
pub use list::{FileEntry, Listing};
pub use metadata::{Metadata, metadata, symlink_metadata};
use open::{Opened, explain_sharing_violation, open_any};
#[cfg(feature = "fetch")]
pub use remote::MAX_REMOTE_FILE_BYTES;
pub use skill_md::SkillMd;

use crate::{
    frontmatter::MAX_FRONTMATTER_BYTES,
    hash::hasher,
    skill::{Guard, Skill, Source},
};

/// The maximum size of the text, or of the image, that one [`SkillFiles::read`] returns: 2 MiB.
///
/// Longer text is truncated, with a note that explains how to read the rest. Larger images are described, but not returned.
pub const SOFT_CAP_BYTES: u64 = 2 * 1024 * 1024;

/// The maximum size of a file that [`SkillFiles::read`] reads: 64 MiB. Larger files are an error.
pub const HARD_CAP_BYTES: u64 = 64 * 1024 * 1024;

/// The accepted names of a skill's file. The first one is the name in the specification; the others occur in practice.
pub const SKILL_FILE_NAMES: [&str; 3] = ["SKILL.md", "skill.md", "Skill.md"];

/// Confined access to the files of one skill.
///
/// ```
/// use skills_core::files::{FileContent, ReadOptions, SkillFiles};
///
/// let dir = tempfile::tempdir()?;
/// std::fs::create_dir(dir.path().join("references"))?;
/// std::fs::write(dir.path().join("references/notes.md"), "one\ntwo\n")?;
///
/// let files = SkillFiles::open(dir.path())?;
/// assert_eq!(files.list(200).files[0].path, "references/notes.md");
///
/// let FileContent::Text { text, .. } = files.read("references/notes.md", ReadOptions::default())? else {
///     panic!("not a text");
/// };
/// assert_eq!(text, "one\ntwo\n");
/// assert!(files.read("../etc/passwd", ReadOptions::default()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SkillFiles {
    dir: Dir,
    guard: Option<Guard>,
}

/// The first bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The bytes, at most as many as requested. If the file is truncated, they don't end within a UTF-8 sequence.
    pub bytes: Vec<u8>,
    /// The size of the whole file in bytes.
    pub size: u64,
    /// True if `bytes` is the whole file.
    pub complete: bool,
    /// The time of the last modification; `None` if the file system doesn't provide it.
    pub modified: Option<SystemTime>,
}

impl SkillFiles {
    /// Opens the directory of a skill. The path may contain links.
    ///
    /// # Errors
    /// Returns [`FileError::Directory`] if the directory doesn't exist or can't be opened.
    pub fn open(dir: &Path) -> Result<Self, FileError> {
        match Dir::open_ambient_dir(dir, ambient_authority()) {
            Ok(dir) => Ok(Self { dir, guard: None }),
            Err(source) => {
                Err(FileError::Directory { dir: dir.to_owned(), source: explain_sharing_violation(source) })
            }
        }
    }

    /// Opens the directory of a stored skill.
    ///
    /// If discovery found the skill, its path is canonical. In this case, opening fails if the directory or one of its parents
    /// has since been replaced by a link, because the link could redirect all reads.
    ///
    /// # Errors
    /// Returns [`FileError::NoFiles`] if the skill is not stored in a directory, [`FileError::LinkInPath`] if its path now
    /// contains a link, and otherwise the errors of [`SkillFiles::open`].
    pub fn of(skill: &Skill) -> Result<Self, FileError> {
        let Source::Stored(stored) = &skill.source else {
            return Err(FileError::NoFiles(skill.name.clone()));
        };
        let files =
            if stored.was_found() { Self::open_canonical(&stored.dir) } else { Self::open(&stored.dir) };
        Ok(Self { guard: stored.guard.clone(), ..files? })
    }

    /// Opens the directory of a skill by its canonical path.
    ///
    /// # Errors
    /// Returns [`FileError::LinkInPath`] if a component of the path is now a link, and otherwise the errors of
    /// [`SkillFiles::open`].
    pub(crate) fn open_canonical(dir: &Path) -> Result<Self, FileError> {
        Ok(Self { dir: directory::open_without_links(dir)?, guard: None })
    }

    /// Lists the direct entries of the directory, in no particular order.
    pub(crate) fn entries(&self) -> io::Result<ReadDir> {
        self.dir.entries()
    }

    /// Lists the first `max` files of the skill, sorted by path, without its `SKILL.md`.
    ///
    /// Hidden directories, `node_modules`, `__pycache__`, links to directories, and links that lead out of the skill are
    /// skipped. Also skipped are files that the skill's guard doesn't know. The walk is bounded; see [`Listing::complete`]. This method doesn't fail: a directory that can't be read only
    /// makes the listing incomplete.
    pub fn list(&self, max: usize) -> Listing {
        list::list(&self.dir, self.guard.as_ref(), max)
    }

    /// Reads the file at `path`, which is relative to the skill's directory and separated by `/`.
    ///
    /// # Errors
    /// - [`FileError::Invalid`] if the path cannot name a file of a skill, for example because it is absolute.
    /// - [`FileError::Outside`] if the path, or a link on it, leads out of the directory.
    /// - [`FileError::NotFound`], [`FileError::IsDirectory`] or [`FileError::NotAFile`] if it isn't a regular file.
    /// - [`FileError::TooLarge`] if the file has more than [`HARD_CAP_BYTES`].
    /// - [`FileError::PastEnd`] if `options` request lines after the last one.
    /// - [`FileError::NotApproved`] if the skill has a guard that rejects the file.
    /// - [`FileError::Io`] if the file can't be opened or read.
    pub fn read(&self, path: &str, options: ReadOptions) -> Result<FileContent, FileError> {
        let (file, metadata) = self.open_file(path)?;
        let size = metadata.len();
        if size > HARD_CAP_BYTES {
            return Err(FileError::TooLarge { path: path.to_owned(), size, cap: HARD_CAP_BYTES });
        }
        content::read(path, file, size, options)
    }

    /// Reads the first `max` bytes of the file at `path`, without decoding them.
    ///
    /// For a `SKILL.md`, discovery uses [`MAX_FRONTMATTER_BYTES`] and activation uses
    /// [`MAX_FILE_BYTES`](crate::frontmatter::MAX_FILE_BYTES).
    ///
    /// # Errors
    /// Returns the errors of [`SkillFiles::read`], except [`FileError::PastEnd`]. Only a guarded file can be
    /// [`FileError::TooLarge`].
    pub fn head(&self, path: &str, max: u64) -> Result<Head, FileError> {
        let (file, metadata) = self.open_file(path)?;
        Head::read(file, &metadata, max).map_err(|source| FileError::Io { path: path.to_owned(), source })
    }

    /// Reads the first `max` bytes of the file `name` directly in the directory. Returns `None` if there is no such file.
    /// Unlike [`head`](Self::head), this doesn't search for similar names, so it's fast if the file doesn't exist.
    pub(crate) fn head_if_exists(&self, name: &OsStr, max: u64) -> Result<Option<Head>, FileError> {
        let path = || name.to_string_lossy().into_owned();
        match open_any(&self.dir, Path::new(name)) {
            Ok(Opened::File(file, metadata)) => match Head::read(file, &metadata, max) {
                Ok(head) => Ok(Some(head)),
                Err(source) => Err(FileError::Io { path: path(), source }),
            },
            // There is a directory with this name instead of a file, so we treat the file as missing.
            Ok(Opened::Dir(_)) => Ok(None),
            Ok(Opened::Special) => Err(FileError::NotAFile { path: path() }),
            Err(source) if is_absent(&source) => Ok(None),
            Err(source) => Err(self.explain(&path(), source)),
        }
    }

    /// Returns the actual name of a file that was opened as `name`, if it differs. This happens on file systems that ignore
    /// case. Other systems would not find the file.
    pub(crate) fn other_spelling(&self, name: &OsStr) -> Option<OsString> {
        let swapped = skill_md::swap_case(name)?;
        // To avoid listing the directory in most cases, first check if the file also exists under another spelling.
        symlink_metadata(&self.dir, swapped).ok()?;
        skill_md::other_spelling(self.dir.entries().ok()?.flatten().map(|entry| entry.file_name()), name)
    }

    /// Opens the regular file at `path`.
    fn open_file(&self, path: &str) -> Result<(Box<dyn Read>, Metadata), FileError> {
        let relative = path::check(path)?;
        match open_any(&self.dir, &relative) {
            Ok(Opened::File(file, metadata)) => {
                let size = metadata.len();
                Ok((self.checked(path, &relative, (file, size))?, metadata))
            }
            Ok(Opened::Dir(dir)) => {
                Err(list::directory_error(path, &path::joined(&relative), &dir, self.guard.as_ref()))
            }
            Ok(Opened::Special) => Err(FileError::NotAFile { path: path.to_owned() }),
            Err(source) => Err(self.explain(path, source)),
        }
    }

    /// Converts the system's error for `path` to a [`FileError`].
    fn explain(&self, path: &str, source: io::Error) -> FileError {
        let path = path.to_owned();
        match source.kind() {
            // `cap_std` reports an escape as this kind without an OS error code.
            io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => FileError::Outside { path },
            _ if is_absent(&source) => {
                let similar = path::similar(&path, &self.list(path::MAX_CANDIDATES));
                FileError::NotFound { path, similar }
            }
            // Opening a socket fails with ENXIO, or with EOPNOTSUPP on macOS. Neither has an `ErrorKind`.
            _ if symlink_metadata(&self.dir, &path).is_ok_and(|metadata| is_special(&metadata)) => {
                FileError::NotAFile { path }
            }
            _ => FileError::Io { path, source: explain_sharing_violation(source) },
        }
    }
}

impl Head {
    fn read(file: impl Read, metadata: &Metadata, max: u64) -> io::Result<Self> {
        let size = metadata.len();
        let modified = metadata::modified(metadata);
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(max)).unwrap_or(0) + 1);
        // Read one more byte than requested to see if the file continues.
        file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let complete = bytes.len() <= max;
        if !complete {
            bytes.truncate(content::char_boundary(&bytes[..max]));
        }
        Ok(Self { bytes, size, complete, modified })
    }

    /// Returns a hash of the frontmatter's part of the text and of the size of the file, to detect changes. For nearly all
    /// skills, that part is the whole text.
    pub(crate) fn stamp(&self) -> u64 {
        stamp_of(&self.bytes, self.size)
    }
}

/// Returns the [stamp](Head::stamp) of a file with these bytes and this size.
fn stamp_of(bytes: &[u8], size: u64) -> u64 {
    let mut hasher = hasher();
    let beginning = match bytes.get(..MAX_FRONTMATTER_BYTES) {
        Some(beginning) if bytes.len() > MAX_FRONTMATTER_BYTES => {
            &beginning[..content::char_boundary(beginning)]
        }
        _ => bytes,
    };
    hasher.write(beginning);
    hasher.write_u64(size);
    hasher.finish()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_special(metadata: &Metadata) -> bool {
    !(metadata.is_file() || metadata.is_dir() || metadata.is_symlink())
}

#[cfg(test)]
mod tests;
