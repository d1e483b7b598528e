//! [`Guard`]: which files of a stored skill may be served, file by file and as they are read.

use std::{fmt, io, sync::Arc};

/// Decides about each file of a skill when it is read, such as by the hashes that a user approved.
pub trait FileGuard: Send + Sync {
    /// Whether what is at `path` (relative to the skill's directory, separated by `/`) may be served with this content;
    /// `None` is what is no file to read, such as a link that leads out, which is shown as `PATH -> "TARGET"`.
    ///
    /// # Errors
    /// It cannot be read.
    fn allows(&self, path: &str, content: Option<&mut dyn io::Read>) -> io::Result<bool>;
}

/// A guard, and a text that tells it from others: two guards with the same text allow the same.
#[derive(Clone)]
pub struct Guard {
    key: Arc<str>,
    files: Arc<dyn FileGuard>,
}

impl Guard {
    /// A guard that is told from others by `key`.
    pub fn new(key: impl Into<Arc<str>>, files: impl FileGuard + 'static) -> Self {
        Self { key: key.into(), files: Arc::new(files) }
    }

    pub(crate) fn allows(&self, path: &str, content: Option<&mut dyn io::Read>) -> io::Result<bool> {
        self.files.allows(path, content)
    }
}

impl PartialEq for Guard {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Guard {}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.key).finish()
    }
}
