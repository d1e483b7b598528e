//! [`DiscoveryCache`]: the directories that a search has read, so that the next search reads only those that changed.

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

/// The changes on disk since the last search.
///
/// All paths are canonical. On Windows, they have no prefix `\\?\` if possible, as with `dunce::canonicalize`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Directories whose `SKILL.md` or subdirectories have changed.
    pub directories: HashSet<PathBuf>,
    /// Directories that were created, removed or replaced, together with everything below them.
    pub trees: HashSet<PathBuf>,
    /// True if anything may have changed.
    pub everything: bool,
}

impl Changes {
    /// Returns changes that invalidate the whole cache.
    pub fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// Returns true if nothing has changed.
    pub fn is_empty(&self) -> bool {
        !self.everything && self.directories.is_empty() && self.trees.is_empty()
    }

    /// Returns true if `dir` itself has to be read again. Trees above it are not considered ([`Changes::replaces`]).
    pub fn touches(&self, dir: &Path) -> bool {
        self.everything || self.directories.contains(dir) || self.trees.contains(dir)
    }

    /// Returns true if `path` is a changed tree, or below one.
    pub fn replaces(&self, path: &Path) -> bool {
        self.everything || !self.trees.is_empty() && path.ancestors().any(|dir| self.trees.contains(dir))
    }

    /// Adds the changes of `others`.
    pub fn extend(&mut self, others: Self) {
        self.directories.extend(others.directories);
        self.trees.extend(others.trees);
        self.everything |= others.everything;
    }
}

/// The directories that a search has read. See [`Discovery::run_incremental`](super::Discovery::run_incremental).
///
/// If a `SKILL.md` becomes invalid, the cache keeps the last version that could be loaded.
#[derive(Debug, Default)]
pub struct DiscoveryCache {
    /// Visits by canonical path. The skills share the paths.
    pub(super) visits: HashMap<Arc<Path>, Arc<Visit>>,
}

/// A directory that a search has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VisitedDirectory<'a> {
    /// The canonical path, shared with the skill.
    pub dir: &'a Arc<Path>,
    /// True if the directory is a skill.
    pub is_skill: bool,
    /// True if there may be skills below the directory.
    pub may_have_more: bool,
}

impl DiscoveryCache {
    /// Returns all directories from the previous search, in no particular order.
    pub fn directories(&self) -> impl Iterator<Item = VisitedDirectory<'_>> {
        self.visits.iter().map(|(dir, visit)| VisitedDirectory {
            dir,
            is_skill: matches!(**visit, Visit::Skill { .. }),
            may_have_more: !matches!(**visit, Visit::Skill { children: None, .. }),
        })
    }
}

/// Merges a visit of a directory with the previous visit. If the skill did not change, the previous skill is reused. If
/// it is broken now, the previous version is kept.
pub(super) fn settle(visit: Visit, before: Option<&Arc<Visit>>) -> Arc<Visit> {
    let Some(Visit::Skill { skill: old, diagnostics: old_findings, children: old_children, .. }) =
        before.map(|before| &**before)
    else {
        return Arc::new(visit);
    };
    let kept = |error: LoadError, children| {
        let skill = Arc::clone(old);
        Arc::new(Visit::Skill { skill, diagnostics: old_findings.clone(), broken: Some(error), children })
    };
    match visit {
        Visit::Skill { skill, diagnostics, children, .. } => {
            if let Some(finding) = half_saved(&diagnostics, old_findings) {
                return kept(LoadError { path: file(&skill), diagnostics: vec![finding] }, children);
            }
            let skill = if old.is_same_as(&skill) { Arc::clone(old) } else { skill };
            Arc::new(Visit::Skill { skill, diagnostics, broken: None, children })
        }
        Visit::Plain(Some(error), children) => kept(error, old_children.is_some().then_some(children)),
        Visit::Plain(None, _) => Arc::new(visit),
    }
}

/// Returns the finding that the file has no body or ends within its frontmatter, if the finding is new.
///
/// This happens if the file is read in the middle of a save.
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
