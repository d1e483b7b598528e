//! [`Progress`]: what the searches below several roots share.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The maximum time that the roots of a scope spend on resolving links. A single link can lead through a chain of others and take
/// seconds, and a project can contain thousands of them.
pub(super) const MAX_LINK_TIME: Duration = Duration::from_secs(5);

/// The directories that a search has visited, and the time that it has spent on resolving links.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) seen: HashSet<PathBuf>,
    resolving: Duration,
}

impl Progress {
    /// Creates the progress of a search that has spent this time on links.
    #[cfg(all(test, unix))]
    pub(super) fn after(resolving: Duration) -> Self {
        Self { resolving, ..Self::default() }
    }

    /// Starts the time for links again.
    pub(super) fn enter_scope(&mut self) {
        self.resolving = Duration::ZERO;
    }

    /// Returns true if links can still be resolved.
    pub(super) fn has_time(&self) -> bool {
        self.resolving < MAX_LINK_TIME
    }

    /// Returns the canonical path, and counts the time that this takes.
    pub(super) fn resolve(&mut self, path: &Path) -> io::Result<PathBuf> {
        let started = Instant::now();
        let real = dunce::canonicalize(path);
        self.resolving += started.elapsed();
        real
    }
}
