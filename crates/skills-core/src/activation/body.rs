//! Where a body comes from.

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

/// What was fetched: each text once, however many skills, sessions and threads ask. Cheap to clone; clones share.
///
/// A failure is not kept: the next activation tries again.
#[derive(Debug, Clone, Default)]
pub struct BodyCache {
    fetched: Arc<Mutex<HashMap<String, Slot>>>,
    /// What the files of virtual skills said, by their paths.
    files: Arc<LastGood>,
}

/// The instructions of a skill.
pub(super) struct Body {
    pub(super) text: Arc<str>,
    /// Why these are not what is on disk.
    pub(super) outdated: Option<Diagnostic>,
}

/// Locked while it is being filled, so that others wait instead of fetching too.
type Slot = Arc<Mutex<Option<Arc<str>>>>;

impl BodyCache {
    /// The body of `skill`, without frontmatter, as [`activate`](super::activate) gives it.
    ///
    /// # Errors
    /// When it cannot be read or fetched.
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
                Instructions::Url(url) => self.fetched(url, || fetch(url))?,
            },
            // Another hash is another text, even at the same address.
            #[cfg(feature = "fetch")]
            Source::Remote(remote) => self.fetched(&remote.key(), || Ok(remote.skill_md()?))?,
        };
        Ok(Body { text, outdated: None })
    }

    /// The body in a file, or the last one while the file is gone, empty or half written.
    fn file(&self, path: &Path) -> Result<Body, ActivationError> {
        let last = self.files.get(path);
        let why = match (read(path), &last) {
            (Ok(file), Some(last)) if file.is_half_saved(last) => "the file is empty or half written".into(),
            (Ok(file), _) => {
                self.files.used(&path.into(), &file.text);
                return Ok(Body { text: frontmatter::body(&file.text).into(), outdated: None });
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(_)) => error.to_string(),
        };
        let text = last.as_deref().map(frontmatter::body).unwrap_or_default().into();
        let message = format!("these are the last good instructions in {}: {why}", shown_path(path));
        Ok(Body { text, outdated: Some(Diagnostic::warning("instructions-outdated", message)) })
    }

    fn fetched(
        &self,
        key: &str,
        fetch: impl FnOnce() -> Result<String, ActivationError>,
    ) -> Result<Arc<str>, ActivationError> {
        let slot = {
            let mut slots = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry(key.to_owned()).or_default())
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

/// A file with instructions, as it is on disk.
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

/// Reads a file named in a configuration; it may be anywhere.
fn read(path: &Path) -> Result<OnDisk, ActivationError> {
    let failed = |source| ActivationError::Read { path: path.to_owned(), source };
    // Before it is opened: whoever opens a FIFO waits for somebody who writes.
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ActivationError::TooLarge { path: path.to_owned() });
    }
    Ok(OnDisk { text: frontmatter::decode(&bytes).into_owned(), modified: metadata.modified().ok() })
}
