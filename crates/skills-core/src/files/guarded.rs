//! What is served of skills with a [`Guard`](crate::skill::Guard): the very bytes that it has allowed.

use std::{
    io::{self, Read},
    path::{Component, Path},
    sync::{Mutex, MutexGuard, PoisonError},
};

use cap_std::fs::File;

#[cfg(feature = "exec")]
use super::Bounds;
use super::{FileError, HARD_CAP_BYTES, SOFT_CAP_BYTES, SkillFiles};
use crate::{
    frontmatter::MAX_FRONTMATTER_BYTES,
    skill::{Skill, Source},
};

/// Held while a large file is in memory to be compared: many at a time would be too much. Nothing else is locked meanwhile.
static LARGE: Mutex<()> = Mutex::new(());

/// Content that was compared.
struct Compared {
    bytes: io::Cursor<Vec<u8>>,
    _large: Option<MutexGuard<'static, ()>>,
}

impl Read for Compared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl SkillFiles {
    /// The content, if it may be served. What is served is what was looked at, whoever writes into the file meanwhile: it is
    /// read once.
    pub(super) fn checked(
        &self,
        path: &str,
        relative: &Path,
        file: File,
    ) -> Result<Box<dyn Read>, FileError> {
        let Some(guard) = &self.guard else { return Ok(Box::new(file)) };
        let failed = |source| FileError::Io { path: path.to_owned(), source };
        let is_large = file.metadata().map_err(failed)?.len() > SOFT_CAP_BYTES;
        let large = is_large.then(|| LARGE.lock().unwrap_or_else(PoisonError::into_inner));
        let mut bytes = Vec::new();
        file.take(HARD_CAP_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > HARD_CAP_BYTES {
            let size = bytes.len() as u64;
            return Err(FileError::TooLarge { path: path.to_owned(), size, cap: HARD_CAP_BYTES });
        }
        let parts: Vec<_> = relative
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_string_lossy()),
                _ => None,
            })
            .collect();
        if !guard.allows(&parts.join("/"), Some(&mut bytes.as_slice())).map_err(failed)? {
            return Err(FileError::NotApproved { path: path.to_owned() });
        }
        Ok(Box::new(Compared { bytes: io::Cursor::new(bytes), _large: large }))
    }

    /// Whether everything below the directory may be served: for whoever runs a program that reads the rest by itself.
    ///
    /// # Errors
    /// [`FileError::NotApproved`] names the first file that may not.
    #[cfg(feature = "exec")]
    pub(crate) fn check_all(&self, mut bounds: Bounds) -> Result<(), FileError> {
        let Some(guard) = &self.guard else { return Ok(()) };
        let mut refused = None;
        let seen = self.visit(&mut bounds, &mut |path, content| {
            if !guard.allows(path, content)? && refused.is_none() {
                refused = Some(path.to_owned());
            }
            Ok(())
        });
        match refused {
            Some(path) => Err(FileError::NotApproved { path }),
            None => seen.map_err(|source| FileError::Io { path: ".".to_owned(), source }),
        }
    }
}

/// Whether the `SKILL.md` of a stored skill still begins as when discovery read it, so that the skill's name and description
/// are what it says. Where the skill is [guarded](Skill::guarded), it is read as the guard allows it. True of all other skills.
///
/// # Errors
/// The file cannot be read, or the guard does not allow it.
pub fn is_unchanged(skill: &Skill) -> Result<bool, FileError> {
    let Source::Stored(stored) = &skill.source else { return Ok(true) };
    let head = SkillFiles::of(skill)?.head(stored.file_name, MAX_FRONTMATTER_BYTES as u64)?;
    Ok(!stored.was_found() || head.stamp() == stored.stamp)
}
