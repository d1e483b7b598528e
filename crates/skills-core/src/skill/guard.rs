//! [`Guard`]: decides whether a file of a stored skill may be served.

use std::{fmt, io, sync::Arc};

/// Decides whether a file of a skill may be served, for example by comparing it to a hash that the user approved.
pub trait FileGuard: Send + Sync {
    /// Returns true if the file at `path` may be served with this content.
    ///
    /// `path` is relative to the skill's directory and separated by `/`. `content` is `None` if the entry is not a regular
    /// file. For a link out of the skill's directory, `path` is `PATH -> "TARGET"`.
    ///
    /// # Errors
    /// Returns an error if `content` can't be read.
    fn allows(&self, path: &str, content: Option<&mut dyn io::Read>) -> io::Result<bool>;

    /// Returns true if the skill can only be activated while all of its files are allowed, and none is missing. By default, only the files
    /// that are read are checked.
    fn checks_activation(&self) -> bool {
        false
    }

    /// Lists the paths of all entries that may be served, in the order of their bytes, without those before `start`. They have
    /// the format of `path` in [`allows`](Self::allows).
    fn paths<'a>(&'a self, start: &str) -> Box<dyn Iterator<Item = &'a str> + 'a>;
}

/// A [`FileGuard`] with a key. Two guards with the same key allow the same files.
#[derive(Clone)]
pub struct Guard {
    key: Arc<str>,
    files: Arc<dyn FileGuard>,
}

impl Guard {
    /// Creates a guard. Guards that allow different files must have different keys.
    pub fn new(key: impl Into<Arc<str>>, files: impl FileGuard + 'static) -> Self {
        Self { key: key.into(), files: Arc::new(files) }
    }

    /// Returns the key.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn allows(&self, path: &str, content: Option<&mut dyn io::Read>) -> io::Result<bool> {
        self.files.allows(path, content)
    }

    pub(crate) fn checks_activation(&self) -> bool {
        self.files.checks_activation()
    }

    /// Returns true if there may be an entry with this name: a file, a link, or a directory that contains one.
    pub(crate) fn knows(&self, path: &str) -> bool {
        let begins = |end: &str| {
            let start = format!("{path}{end}");
            self.files.paths(&start).next().is_some_and(|first| first.starts_with(&start))
        };
        self.files.paths(path).next() == Some(path) || begins("/") || begins(" -> ")
    }

    /// Lists the paths of all entries that may be served.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.paths("")
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
