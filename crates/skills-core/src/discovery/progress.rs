//! [`Progress`]: what the searches below several roots share.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::Limits;

/// The maximum time that the roots of a scope spend on resolving links. A single link can lead through a chain of others and take
/// seconds, and a project can contain thousands of them.
pub(super) const MAX_LINK_TIME: Duration = Duration::from_secs(5);

/// The maximum number of directories within skills, as a multiple of [`Limits::max_dirs`].
pub(super) const IN_SKILLS: usize = 10;

/// Returns the maximum number of directories that are not skills, below all roots of a scope.
pub(super) fn max_of_scope(limits: &Limits) -> usize {
    limits.max_dirs.saturating_mul(IN_SKILLS + 1)
}

/// The directories that a search has visited, and the time that it has spent on resolving links.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) seen: HashSet<PathBuf>,
    /// The number of directories that are not skills, below all roots of a scope.
    directories: usize,
    resolving: Duration,
}

impl Progress {
    /// Creates the progress of a search that has spent this time on links.
    #[cfg(all(test, unix))]
    pub(super) fn after(resolving: Duration) -> Self {
        Self { resolving, ..Self::default() }
    }

    /// Starts the time for links and the number of directories again.
    pub(super) fn enter_scope(&mut self) {
        self.resolving = Duration::ZERO;
        self.directories = 0;
    }

    /// Counts a directory that is not a skill. Returns false if there are too many below all roots of a scope.
    pub(super) fn count(&mut self, limits: &Limits) -> bool {
        self.directories += 1;
        !self.is_full(limits)
    }

    /// Returns true if there are too many directories below all roots of a scope.
    pub(super) fn is_full(&self, limits: &Limits) -> bool {
        self.directories > max_of_scope(limits)
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
