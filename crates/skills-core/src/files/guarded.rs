//! Reads files of skills with a [`Guard`](crate::skill::Guard), which allows or rejects each file by its content.

use std::{
    collections::BTreeSet,
    io::{self, Read},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use cap_std::fs::File;

use super::{Bounds, FileError, HARD_CAP_BYTES, SOFT_CAP_BYTES, SkillFiles, every::Entry, path, stamp_of};
use crate::{
    frontmatter::MAX_FRONTMATTER_BYTES,
    skill::{Guard, Skill, Source, Stored},
};

/// Limits memory: the lock is held while a large file is in memory, so that only one such file is read at a time. No other
/// lock is taken while it is held.
static LARGE: Mutex<()> = Mutex::new(());

/// Content that the guard has allowed.
struct AllowedContent {
    bytes: io::Cursor<Vec<u8>>,
    _large: Option<MutexGuard<'static, ()>>,
}

impl Read for AllowedContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl SkillFiles {
    /// Returns the content of a file with this size if the guard allows it. The file is read only once, so the returned content is exactly
    /// what the guard has checked, even if another process changes the file at the same time.
    pub(super) fn checked(
        &self,
        path: &str,
        relative: &Path,
        (file, size): (File, u64),
    ) -> Result<Box<dyn Read>, FileError> {
        let Some(guard) = &self.guard else { return Ok(Box::new(file)) };
        let failed = |source| FileError::Io { path: path.to_owned(), source };
        let is_large = size > SOFT_CAP_BYTES;
        let large = is_large.then(|| LARGE.lock().unwrap_or_else(PoisonError::into_inner));
        let mut bytes = Vec::new();
        file.take(HARD_CAP_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > HARD_CAP_BYTES {
            let size = bytes.len() as u64;
            return Err(FileError::TooLarge { path: path.to_owned(), size, cap: HARD_CAP_BYTES });
        }
        if !guard.allows(&path::joined(relative), Some(&mut bytes.as_slice())).map_err(failed)? {
            return Err(FileError::NotApproved { path: path.to_owned() });
        }
        Ok(Box::new(AllowedContent { bytes: io::Cursor::new(bytes), _large: large }))
    }

    /// Checks all files of the skill with the guard. Needed before running a script, which can read other files by itself, and
    /// can do something else if one of them is missing.
    ///
    /// # Errors
    /// Returns [`FileError::NewEntry`] if there is an entry that the guard doesn't know, [`FileError::NotApproved`] with the first
    /// file that has changed or is missing, [`FileError::Unseen`] if the script could read content through an entry that no guard
    /// can check, and [`FileError::Io`] if a file can't be read or the skill exceeds `bounds`.
    #[cfg(feature = "exec")]
    pub(crate) fn check_all(&self, bounds: Bounds) -> Result<(), FileError> {
        let Some(guard) = &self.guard else { return Ok(()) };
        let entries = self.known_entries(guard, bounds)?;
        if let Some(unseen) = entries.into_iter().find(Entry::is_unseen) {
            return Err(FileError::Unseen { path: unseen.path });
        }
        self.check_contents(guard, bounds)
    }

    /// Lists the entries of the skill.
    ///
    /// # Errors
    /// Returns [`FileError::NewEntry`] if there is an entry that the guard doesn't know. All names are checked before any file is read,
    /// because errors can contain the name of a file.
    fn known_entries(&self, guard: &Guard, bounds: Bounds) -> Result<Vec<Entry>, FileError> {
        let entries = self.walk(bounds.entries);
        let is_known = |entry: &Entry| guard.knows(entry.path.trim_end_matches('/'));
        if entries.iter().all(is_known) { Ok(entries) } else { Err(FileError::NewEntry) }
    }

    /// Compares the contents of all files with the guard, and checks that no file is missing.
    ///
    /// # Errors
    /// Returns the errors of [`check_all`](Self::check_all), apart from [`FileError::Unseen`].
    fn check_contents(&self, guard: &Guard, mut bounds: Bounds) -> Result<(), FileError> {
        let mut seen = BTreeSet::new();
        let mut refused = None;
        let visited = self.visit(&mut bounds, &mut |path, content| {
            if !guard.allows(path, content)? && refused.is_none() {
                refused = Some(path.to_owned());
            }
            seen.insert(path.to_owned());
            Ok(())
        });
        let missing = || guard.paths().find(|path| !seen.contains(*path)).map(str::to_owned);
        match (refused, visited) {
            (Some(path), _) if !guard.knows(&path) => Err(FileError::NewEntry),
            (Some(path), _) => Err(FileError::NotApproved { path }),
            (None, Err(source)) => Err(FileError::Io { path: ".".to_owned(), source }),
            (None, Ok(())) => missing().map_or(Ok(()), |path| Err(FileError::NotApproved { path })),
        }
    }
}

/// Checks all files of a skill before its activation, if its guard [asks for it](crate::skill::FileGuard::checks_activation). The
/// instructions may refer to any of them, also for the agent's own tools. Links that lead out of the skill are allowed if they are known.
///
/// # Errors
/// Returns [`FileError::NewEntry`] if there is an entry that the guard doesn't know, [`FileError::NotApproved`] with the first file
/// that has changed or is missing, and [`FileError::Io`] if a file can't be read or the skill exceeds [`Bounds::SKILL`].
pub(crate) fn check_activation(skill: &Skill) -> Result<(), FileError> {
    let Source::Stored(stored) = &skill.source else { return Ok(()) };
    let Some(guard) = stored.guard.as_ref().filter(|guard| guard.checks_activation()) else {
        return Ok(());
    };
    let files = SkillFiles::of(skill)?;
    files.known_entries(guard, Bounds::SKILL)?;
    files.check_contents(guard, Bounds::SKILL)
}

/// Returns true if the `SKILL.md` of a stored skill is unchanged since discovery read it, so that the skill's name and
/// description are still correct.
///
/// Compares the size of the file and its first [`MAX_FRONTMATTER_BYTES`]. Always true for skills that are not stored in a
/// directory.
///
/// # Errors
/// Returns the errors of [`SkillFiles::head`]. If the skill is [guarded](Skill::guarded), these include
/// [`FileError::NotApproved`].
pub fn is_unchanged(skill: &Skill) -> Result<bool, FileError> {
    let Source::Stored(stored) = &skill.source else { return Ok(true) };
    let head = SkillFiles::of(skill)?.head(stored.file_name, MAX_FRONTMATTER_BYTES as u64)?;
    Ok(!stored.was_found() || head.stamp() == stored.stamp)
}

/// Returns true if `content` is the text of the `SKILL.md` that discovery has read for a skill, so that the skill's name and description are
/// those in the text. This is the comparison of [`is_unchanged`] for a file that was already read.
pub fn is_text_of(stored: &Stored, content: &[u8]) -> bool {
    !stored.was_found() || stamp_of(content, content.len() as u64) == stored.stamp
}
