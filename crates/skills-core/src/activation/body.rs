//! [`BodyCache`]: reads and fetches the bodies of skills.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use super::{error::ActivationError, stored};
use crate::{
    diagnostic::Diagnostic,
    frontmatter::{self, MAX_FILE_BYTES},
    last_good::{LastGood, is_unfinished},
    skill::{Instructions, Skill, Source},
    text::shown_path,
};

/// A cache of fetched instructions. It is cheap to clone, and clones share their content.
///
/// Each text is fetched only once, even if several threads request it at the same time. Failures are not cached, so the next
/// activation tries again.
#[derive(Debug, Clone, Default)]
pub struct BodyCache {
    fetched: Arc<Mutex<HashMap<Key, Slot>>>,
    /// The last good texts of virtual skills' files, by path.
    files: Arc<LastGood>,
}

/// The key of a fetched text. A text that was not compared with a checksum must not be found under the key of one that was, so the
/// kinds differ even if their texts are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// The URL of the instructions of a virtual skill.
    Url(String),
    /// The [key](crate::skill::Remote::key) of a remote skill.
    #[cfg(feature = "fetch")]
    Remote(String),
}

/// The instructions of a skill.
pub(super) struct Body {
    pub(super) text: Arc<str>,
    /// The reason for using the last good text instead of the file on disk. `None` if the file was used.
    pub(super) outdated: Option<Diagnostic>,
}

/// A text that has been fetched, or will be. The lock is held during the fetch, so that other threads wait for the result.
type Slot = Arc<Mutex<Option<Arc<str>>>>;

impl BodyCache {
    /// Returns the body of a skill without frontmatter, before any replacements. Blocks while it reads or fetches.
    ///
    /// # Errors
    /// Returns the same errors as [`activate`](super::activate).
    pub fn body(&self, skill: &Skill) -> Result<Arc<str>, ActivationError> {
        self.load(skill).map(|body| body.text)
    }

    pub(super) fn load(&self, skill: &Skill) -> Result<Body, ActivationError> {
        let text = match &skill.source {
            Source::Stored(stored) => {
                let text = stored::read(skill, stored)?;
                return Ok(Body { text: text.body().into(), outdated: text.outdated });
            }
            Source::Virtual(skill) => match &skill.instructions {
                Instructions::Inline(text) => Arc::clone(text),
                Instructions::File(path) => return self.file(path),
                Instructions::Url(url) => self.fetched(Key::Url(url.clone()), || fetch(url))?,
            },
            // Include the checksum in the key, so that we will fetch a new version from the same URL.
            #[cfg(feature = "fetch")]
            Source::Remote(remote) => self.fetched(Key::Remote(remote.key()), || Ok(remote.skill_md()?))?,
        };
        Ok(Body { text, outdated: None })
    }

    /// Returns the body in a file, or the last good one if the file is missing, empty or incomplete.
    fn file(&self, path: &Path) -> Result<Body, ActivationError> {
        let last = self.files.get(path);
        let why = match (read(path), &last) {
            (Ok(file), Some(last)) if file.is_half_saved(last) => "file is empty or incomplete".into(),
            (Ok(file), _) => {
                self.files.used(&path.into(), &file.text);
                return Ok(Body { text: frontmatter::body(&file.text).into(), outdated: None });
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(_)) => error.to_string(),
        };
        let text = last.as_deref().map(frontmatter::body).unwrap_or_default().into();
        let message = format!("using last good instructions from {}: {why}", shown_path(path));
        Ok(Body { text, outdated: Some(Diagnostic::warning("instructions-outdated", message)) })
    }

    fn fetched(
        &self,
        key: Key,
        fetch: impl FnOnce() -> Result<String, ActivationError>,
    ) -> Result<Arc<str>, ActivationError> {
        let slot = {
            let mut slots = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry(key).or_default())
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = &*slot {
            return Ok(Arc::clone(body));
        }
        let body: Arc<str> = frontmatter::body(&fetch()?).into();
        *slot = Some(Arc::clone(&body));
        Ok(body)
    }
}

#[cfg(feature = "fetch")]
fn fetch(url: &str) -> Result<String, ActivationError> {
    Ok(crate::fetch::get_text(url, crate::fetch::Limits::default())?)
}

#[cfg(not(feature = "fetch"))]
fn fetch(url: &str) -> Result<String, ActivationError> {
    Err(ActivationError::NoFetch { url: url.to_owned() })
}

/// The content of a file with instructions.
struct OnDisk {
    text: String,
    modified: Option<SystemTime>,
}

impl OnDisk {
    fn is_half_saved(&self, last: &str) -> bool {
        let is_empty = |text| frontmatter::body(text).trim().is_empty();
        is_empty(&self.text) && !is_empty(last) || is_unfinished(&self.text, last, self.modified)
    }
}

/// Reads a file of a virtual skill. The path is trusted, because it comes from code or from a configuration file.
fn read(path: &Path) -> Result<OnDisk, ActivationError> {
    let failed = |source| ActivationError::Read { path: path.to_owned(), source };
    // We need to check the type before we open the file, since opening a FIFO would block until another process writes to it.
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::other("not a regular file")));
    }
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ActivationError::TooLarge { path: path.to_owned() });
    }
    Ok(OnDisk { text: frontmatter::decode(&bytes).into_owned(), modified: metadata.modified().ok() })
}
