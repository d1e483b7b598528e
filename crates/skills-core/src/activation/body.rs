//! Where a body comes from.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    FileError, Instructions, Skill, SkillFiles, Source,
    frontmatter::{self, MAX_FILE_BYTES},
};

/// Why a skill cannot be activated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActivationError {
    /// The skill's directory or its `SKILL.md` cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file with the instructions of a virtual skill cannot be read.
    #[error("cannot read the instructions in {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The instructions are larger than what can be loaded.
    #[error("the instructions in {} have more than {MAX_FILE_BYTES} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The instructions cannot be fetched.
    #[cfg(feature = "fetch")]
    #[error(transparent)]
    Fetch(#[from] crate::fetch::FetchError),
    /// The instructions of a remote skill cannot be fetched, or are not what its index says.
    #[cfg(feature = "fetch")]
    #[error(transparent)]
    Remote(#[from] crate::remote::RemoteError),
    /// The program is about to end, or reading panicked.
    #[error("reading the instructions was interrupted")]
    Interrupted,
    /// The instructions are behind a URL, and this build cannot fetch.
    #[error("cannot fetch {url}: this program was built without the feature `fetch`")]
    NoFetch {
        /// The address.
        url: String,
    },
}

/// What was fetched: each text once, however many skills, sessions and threads ask. Cheap to clone; clones share.
///
/// A failure is not kept: the next activation tries again.
#[derive(Debug, Clone, Default)]
pub struct BodyCache {
    fetched: Arc<Mutex<HashMap<String, Slot>>>,
}

/// Locked while it is being filled, so that others wait instead of fetching too.
type Slot = Arc<Mutex<Option<Arc<str>>>>;

impl BodyCache {
    /// The body of `skill`, without frontmatter; from the cache only when it is behind a URL.
    ///
    /// # Errors
    /// When it cannot be read or fetched.
    pub fn body(&self, skill: &Skill) -> Result<Arc<str>, ActivationError> {
        match &skill.source {
            Source::Stored(stored) => {
                let head = SkillFiles::of(skill)?.head(stored.file_name, MAX_FILE_BYTES as u64)?;
                if !head.complete {
                    return Err(ActivationError::TooLarge { path: stored.file() });
                }
                Ok(frontmatter::body(&frontmatter::decode(&head.bytes)).into())
            }
            Source::Virtual(skill) => match &skill.instructions {
                Instructions::Inline(text) => Ok(Arc::clone(text)),
                Instructions::File(path) => Ok(frontmatter::body(&frontmatter::decode(&read(path)?)).into()),
                Instructions::Url(url) => self.fetched(url, || fetch(url)),
            },
            // Another hash is another text, even at the same address.
            #[cfg(feature = "fetch")]
            Source::Remote(remote) => self.fetched(&remote.key(), || Ok(remote.skill_md()?)),
        }
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

/// The file that somebody named in a configuration; it may be anywhere.
fn read(path: &Path) -> Result<Vec<u8>, ActivationError> {
    let failed = |source| ActivationError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ActivationError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}
