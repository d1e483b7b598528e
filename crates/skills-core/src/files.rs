//! Reads and listings below a skill's directory, and nowhere else.
//!
//! Paths come from models, and skills come from strangers. So no comparison of strings decides what is inside: each
//! open goes through a handle of the skill's directory ([`cap_std::fs::Dir`]), and the operating system refuses
//! whatever leads out, be it `..`, an absolute path or a symbolic link that was swapped a moment ago. What was opened
//! is asked for its type *after* the open, so that there is no gap between check and use either; the open never
//! blocks, so that a FIFO cannot stall a caller.
//!
//! This module never writes, never executes and never follows a link out, not even one that the user made.

mod bundled;
pub(crate) mod content;
mod directory;
mod error;
pub(crate) mod every;
mod guarded;
mod list;
mod open;
mod path;
#[cfg(feature = "fetch")]
pub(crate) mod remote;
mod skill_md;

use std::{
    ffi::{OsStr, OsString},
    hash::{DefaultHasher, Hasher},
    io::{self, Read},
    path::Path,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, Metadata, ReadDir},
    time::SystemTime,
};

pub use bundled::{Bundled, bundled, read};
pub use content::{FileContent, ReadOptions};
pub use error::FileError;
pub use every::{Bounds, VisitEntry};
pub use guarded::is_unchanged;
pub use list::{FileEntry, Listing};
use open::{Opened, in_plain_words, open_any};
#[cfg(feature = "fetch")]
pub use remote::MAX_REMOTE_FILE_BYTES;
pub use skill_md::SkillMd;

use crate::{
    frontmatter::MAX_FRONTMATTER_BYTES,
    skill::{Guard, Skill, Source},
};

/// Text beyond this many bytes is left out of one [`SkillFiles::read`], with a sentence that says how to read on;
/// images beyond it are described, not shown. 2 MiB.
pub const SOFT_CAP_BYTES: u64 = 2 * 1024 * 1024;

/// Files beyond this many bytes are refused by [`SkillFiles::read`]. 64 MiB.
pub const HARD_CAP_BYTES: u64 = 64 * 1024 * 1024;

/// The names that a skill's file may have; the first is the standard's, the others occur.
pub const SKILL_FILE_NAMES: [&str; 3] = ["SKILL.md", "skill.md", "Skill.md"];

/// The files below one directory.
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
    /// At most as many bytes as were asked for; a truncated UTF-8 text ends between two characters.
    pub bytes: Vec<u8>,
    /// The size of the whole file in bytes.
    pub size: u64,
    /// Whether the file has no further bytes.
    pub complete: bool,
    /// When the file was written to, where the file system says so.
    pub modified: Option<std::time::SystemTime>,
}

impl SkillFiles {
    /// Opens the directory of a skill.
    ///
    /// # Errors
    /// [`FileError::Directory`] when there is no such directory, or it cannot be opened.
    pub fn open(dir: &Path) -> Result<Self, FileError> {
        match Dir::open_ambient_dir(dir, ambient_authority()) {
            Ok(dir) => Ok(Self { dir, guard: None }),
            Err(source) => Err(FileError::Directory { dir: dir.to_owned(), source: in_plain_words(source) }),
        }
    }

    /// Opens the directory of a stored skill. Where discovery has found it, that fails when a link has taken its place,
    /// or that of a directory above it: it could lead every read elsewhere.
    ///
    /// # Errors
    /// [`FileError::NoFiles`] for a virtual skill, [`FileError::LinkInPath`], else as [`SkillFiles::open`].
    pub fn of(skill: &Skill) -> Result<Self, FileError> {
        let Source::Stored(stored) = &skill.source else {
            return Err(FileError::NoFiles(skill.name.clone()));
        };
        let files =
            if stored.was_found() { Self::open_canonical(&stored.dir) } else { Self::open(&stored.dir) };
        Ok(Self { guard: stored.guard.clone(), ..files? })
    }

    /// Opens the directory of a skill by its canonical path, in which no component may have become a link.
    ///
    /// # Errors
    /// [`FileError::LinkInPath`], else as [`SkillFiles::open`].
    pub(crate) fn open_canonical(dir: &Path) -> Result<Self, FileError> {
        Ok(Self { dir: directory::open_without_links(dir)?, guard: None })
    }

    /// What is directly in the directory, in no order.
    pub(crate) fn entries(&self) -> io::Result<ReadDir> {
        self.dir.entries()
    }

    /// The files that come with the skill, sorted by path, without its `SKILL.md`; the first `max` of them.
    ///
    /// Directories whose name starts with a dot, `node_modules`, `__pycache__` and links to directories are passed
    /// over; links to files that lead outside are not listed. The walk is bounded, see [`Listing::complete`].
    pub fn list(&self, max: usize) -> Listing {
        list::list(&self.dir, max)
    }

    /// Reads the file at `path`, relative to the skill's directory and separated by `/`.
    ///
    /// # Errors
    /// A [`FileError`] that says why the path is not served; nothing outside of the directory is ever opened for
    /// reading.
    pub fn read(&self, path: &str, options: ReadOptions) -> Result<FileContent, FileError> {
        let (file, metadata) = self.open_file(path)?;
        let size = metadata.len();
        if size > HARD_CAP_BYTES {
            return Err(FileError::TooLarge { path: path.to_owned(), size, cap: HARD_CAP_BYTES });
        }
        content::read(path, file, size, options)
    }

    /// Reads the first `max` bytes of the file at `path`, as they are.
    ///
    /// Discovery reads a `SKILL.md` with [`MAX_FRONTMATTER_BYTES`], activation
    /// with [`MAX_FILE_BYTES`](crate::frontmatter::MAX_FILE_BYTES).
    ///
    /// # Errors
    /// As [`SkillFiles::read`].
    pub fn head(&self, path: &str, max: u64) -> Result<Head, FileError> {
        let (file, metadata) = self.open_file(path)?;
        Head::read(file, &metadata, max).map_err(|source| FileError::Io { path: path.to_owned(), source })
    }

    /// The same for a file directly in the directory that may well not exist, without looking for what was meant; `None`
    /// when it does not.
    pub(crate) fn head_if_exists(&self, name: &OsStr, max: u64) -> Result<Option<Head>, FileError> {
        let path = || name.to_string_lossy().into_owned();
        match open_any(&self.dir, Path::new(name)) {
            Ok(Opened::File(file, metadata)) => match Head::read(file, &metadata, max) {
                Ok(head) => Ok(Some(head)),
                Err(source) => Err(FileError::Io { path: path(), source }),
            },
            // A directory with that name is not a skill's file, and not worth a diagnostic.
            Ok(Opened::Dir(_)) => Ok(None),
            Ok(Opened::Special) => Err(FileError::NotAFile { path: path() }),
            Err(source) if is_absent(&source) => Ok(None),
            Err(source) => Err(self.explain(&path(), source)),
        }
    }

    /// How the directory spells the name of a file that was opened as `name`, when it spells it differently: some file
    /// systems ignore case, and what they find under one name others do not.
    pub(crate) fn other_spelling(&self, name: &OsStr) -> Option<OsString> {
        let swapped = skill_md::swap_case(name)?;
        // Nearly every file system tells the two apart, and asking costs less than a listing.
        self.dir.symlink_metadata(swapped).ok()?;
        skill_md::other_spelling(self.dir.entries().ok()?.flatten().map(|entry| entry.file_name()), name)
    }

    /// The content of the regular file at `path`.
    fn open_file(&self, path: &str) -> Result<(Box<dyn Read>, Metadata), FileError> {
        let relative = path::check(path)?;
        match open_any(&self.dir, &relative) {
            Ok(Opened::File(file, metadata)) => Ok((self.checked(path, &relative, file)?, metadata)),
            Ok(Opened::Dir(dir)) => Err(list::directory_error(path, &dir)),
            Ok(Opened::Special) => Err(FileError::NotAFile { path: path.to_owned() }),
            Err(source) => Err(self.explain(path, source)),
        }
    }

    /// Translates an error of the operating system for the caller who asked for `path`.
    fn explain(&self, path: &str, source: io::Error) -> FileError {
        let path = path.to_owned();
        match source.kind() {
            // `cap_std` reports an escape as this kind without an OS error code.
            io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => FileError::Outside { path },
            _ if is_absent(&source) => {
                let similar = path::similar(&path, &self.list(path::MAX_CANDIDATES));
                FileError::NotFound { path, similar }
            }
            // Opening a socket fails with an error that has no kind: ENXIO, or EOPNOTSUPP on macOS.
            _ if self.dir.symlink_metadata(&path).is_ok_and(|m| is_special(&m)) => {
                FileError::NotAFile { path }
            }
            _ => FileError::Io { path, source: in_plain_words(source) },
        }
    }
}

impl Head {
    fn read(file: impl Read, metadata: &Metadata, max: u64) -> io::Result<Self> {
        let (size, modified) = (metadata.len(), metadata.modified().ok().map(SystemTime::into_std));
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(max)).unwrap_or(0) + 1);
        // One byte more than wanted tells whether there are any.
        file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let complete = bytes.len() <= max;
        if !complete {
            bytes.truncate(content::char_boundary(&bytes[..max]));
        }
        Ok(Self { bytes, size, complete, modified })
    }

    /// Tells one text from another: by its beginning, which is all of it for nearly every skill, and by its size.
    pub(crate) fn stamp(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let beginning = match self.bytes.get(..MAX_FRONTMATTER_BYTES) {
            Some(beginning) if self.bytes.len() > MAX_FRONTMATTER_BYTES => {
                &beginning[..content::char_boundary(beginning)]
            }
            _ => &self.bytes,
        };
        hasher.write(beginning);
        hasher.write_u64(self.size);
        hasher.finish()
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_special(metadata: &Metadata) -> bool {
    !(metadata.is_file() || metadata.is_dir() || metadata.is_symlink())
}

#[cfg(test)]
mod tests;
