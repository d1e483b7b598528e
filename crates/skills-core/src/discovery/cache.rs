//! [`DiscoveryCache`]: what a search saw, directory by directory, so that the next one looks only into those that changed.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::load::{LoadError, Visit};
use crate::{
    diagnostic::{Diagnostic, Severity},
    frontmatter::is_half_saved,
    skill::Skill,
};

/// What has changed on disk since the last search. All paths are canonical, on Windows without `\\?\` where that can be (as
/// `dunce::canonicalize` gives them).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Directories in which something that counts has changed: their `SKILL.md`, or which directories are in them.
    pub directories: HashSet<PathBuf>,
    /// Directories that came, went or were replaced, with all that is below them.
    pub trees: HashSet<PathBuf>,
    /// Anything may have changed.
    pub everything: bool,
}

impl Changes {
    /// Anything may have changed.
    pub fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        !self.everything && self.directories.is_empty() && self.trees.is_empty()
    }

    /// Whether `dir` itself has to be looked at again. Does not look for a tree above it, see [`Changes::replaces`].
    pub fn touches(&self, dir: &Path) -> bool {
        self.everything || self.directories.contains(dir) || self.trees.contains(dir)
    }

    /// Whether `path` is one of the trees, or below one.
    pub fn replaces(&self, path: &Path) -> bool {
        self.everything || !self.trees.is_empty() && path.ancestors().any(|dir| self.trees.contains(dir))
    }

    /// Adds others.
    pub fn extend(&mut self, others: Self) {
        self.directories.extend(others.directories);
        self.trees.extend(others.trees);
        self.everything |= others.everything;
    }
}

/// What a search saw of each directory. See [`Discovery::run_incremental`](super::Discovery::run_incremental).
///
/// The last version of a skill that could be loaded is kept for as long as there is a `SKILL.md`.
#[derive(Debug, Default)]
pub struct DiscoveryCache {
    /// By canonical path, which skills share.
    pub(super) visits: HashMap<Arc<Path>, Arc<Visit>>,
}

/// A directory that a search has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VisitedDirectory<'a> {
    /// Its canonical path, shared with the skill.
    pub dir: &'a Arc<Path>,
    /// Whether it is a skill; if not, there may be some below it.
    pub is_skill: bool,
}

impl DiscoveryCache {
    /// The directories that the last search saw, in no order.
    pub fn directories(&self) -> impl Iterator<Item = VisitedDirectory<'_>> {
        self.visits
            .iter()
            .map(|(dir, visit)| VisitedDirectory { dir, is_skill: matches!(**visit, Visit::Skill { .. }) })
    }
}

/// Compares a visit with the one `before`: a skill that did not change is shared, and one that is broken now stays as it
/// was.
pub(super) fn settle(visit: Visit, before: Option<&Arc<Visit>>) -> Arc<Visit> {
    let Some(Visit::Skill { skill: old, diagnostics: old_findings, .. }) = before.map(|before| &**before)
    else {
        return Arc::new(visit);
    };
    let kept = |error: LoadError| {
        let (skill, diagnostics) = (Arc::clone(old), old_findings.clone());
        Arc::new(Visit::Skill { skill, diagnostics, broken: Some(error) })
    };
    match visit {
        Visit::Skill { skill, diagnostics, .. } => {
            if let Some(finding) = half_saved(&diagnostics, old_findings) {
                return kept(LoadError { path: file(&skill), diagnostics: vec![finding] });
            }
            let skill = if old.is_same_as(&skill) { Arc::clone(old) } else { skill };
            Arc::new(Visit::Skill { skill, diagnostics, broken: None })
        }
        Visit::Plain(Some(error), _) => kept(error),
        Visit::Plain(None, _) => Arc::new(visit),
    }
}

/// The finding that a file ends in or right after its frontmatter, when that is new: the save has not finished.
pub(super) fn half_saved(now: &[Diagnostic], before: &[Diagnostic]) -> Option<Diagnostic> {
    let was_so = |now: &Diagnostic| before.iter().any(|before| before.code == now.code);
    let finding = now.iter().find(|finding| is_half_saved(finding) && !was_so(finding))?;
    Some(Diagnostic { severity: Severity::Error, ..finding.clone() })
}

fn file(skill: &Skill) -> PathBuf {
    match &skill.source {
        crate::skill::Source::Stored(stored) => stored.file(),
        _ => PathBuf::new(),
    }
}
