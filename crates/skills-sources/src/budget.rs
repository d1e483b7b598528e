//! [`Budget`]: the limits for everything that is fetched for a source together, because a source can consist of many parts.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Instant,
};

use super::{
    access, digest,
    git::{BLOCK_BYTES, GitError, Limits, mebibytes},
    store::Store,
};

/// The number of bytes that a part counts at least, because it takes a request. By default, this allows 4,096 parts.
const MIN_BYTES: u64 = 64 * 1024;

/// The time and the disk space that are left for all parts of a source together.
pub(super) struct Budget<'a> {
    store: &'a Store,
    /// The parts, such as `archives of the site`.
    what: &'static str,
    /// Creates the error for parts that are too large.
    too_large: fn(String) -> GitError,
    deadline: Instant,
    bytes: u64,
    /// True if nothing was fetched yet.
    is_whole: bool,
}

impl<'a> Budget<'a> {
    /// Starts to fetch the archives of a site, with all of the limits of a store.
    pub(super) fn of_archives(store: &'a Store) -> Self {
        Self::new(store, "archives of the site", GitError::LargeArchive)
    }

    /// Starts to fetch other commits of a repository, with all of the limits of a store.
    pub(super) fn of_commits(store: &'a Store) -> Self {
        Self::new(store, "commits at which skills stay", GitError::TooMuch)
    }

    fn new(store: &'a Store, what: &'static str, too_large: fn(String) -> GitError) -> Self {
        let limits = store.limits();
        let deadline = Instant::now() + limits.total;
        Self { store, what, too_large, deadline, bytes: limits.bytes, is_whole: true }
    }

    /// Fetches the part at `url` with the limits that are left. `fetch` returns the fetched files and their directory.
    ///
    /// # Errors
    /// Returns the errors of `fetch`, [`GitError::Download`] if no time is left, and [`GitError::LargeArchive`] or [`GitError::TooMuch`] if
    /// the parts exceed the limit of the disk space together.
    pub(super) fn fetch<T>(
        &mut self,
        url: &str,
        fetch: impl FnOnce(&Store) -> Result<(T, PathBuf), GitError>,
    ) -> Result<T, GitError> {
        let limits = self.store.limits();
        let total = self.deadline.saturating_duration_since(Instant::now());
        if total.is_zero() {
            let why = format!("the {} took more than {} s", self.what, limits.total.as_secs());
            return Err(access::failed(url, why));
        }
        let too_large = || {
            (self.too_large)(format!("the {} need more than {} together", self.what, mebibytes(limits.bytes)))
        };
        let left = self.bytes.checked_sub(MIN_BYTES).ok_or_else(too_large)?;
        let store = self.store.clone().with_limits(Limits { total, bytes: self.bytes, ..limits });
        self.bytes = left;
        let is_first = std::mem::replace(&mut self.is_whole, false);
        match fetch(&store) {
            Ok((fetched, root)) => {
                let bytes = disk_space(&root).map_err(|source| GitError::Write { path: root, source })?;
                self.bytes = left.saturating_sub(bytes);
                Ok(fetched)
            }
            // The part alone may be smaller than the limit.
            Err(GitError::LargeArchive(_) | GitError::TooMuch(_)) if !is_first => Err(too_large()),
            Err(error) => Err(error),
        }
    }

    /// Returns true if nothing more can be fetched.
    pub(super) fn is_spent(&self) -> bool {
        self.bytes < MIN_BYTES || Instant::now() >= self.deadline
    }
}

fn disk_space(root: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    // A commit without approved skills has no directory.
    if !root.exists() {
        return Ok(bytes);
    }
    for file in digest::files(root)? {
        bytes += fs::metadata(root.join(file))?.len().max(1).next_multiple_of(BLOCK_BYTES);
    }
    Ok(bytes)
}
