//! [`Discovery`]: finds skills on disk.
//!
//! A skill is a directory that contains a `SKILL.md`. [`load_dir`] loads a single skill. [`Discovery`] finds skills below roots:
//! those of a project ([`project_roots`]), those of the user ([`user_roots`]), or any directory ([`Root::scanned`]).
//!
//! Roots are searched in the order of their [`Scope`]. The skills are added to a [`SkillSetBuilder`]. If several skills have the
//! same name, the first one wins and the others are reported as shadowed. Skills that can't be loaded and directories that can't
//! be read or exceed a limit are reported as [`Skipped`](crate::set::Skipped).
//!
//! Only the beginning of each `SKILL.md` is read, without following links out of the skill's directory. The body is read when
//! the skill is activated.
//!
//! ```
//! use skills_core::{SkillSet, discovery::{Discovery, Root, load_dir}};
//!
//! let dir = tempfile::tempdir()?;
//! for name in ["review", "greet"] {
//!     std::fs::create_dir(dir.path().join(name))?;
//!     let text = format!("---\nname: {name}\ndescription: Shows how to {name}.\n---\nBody.\n");
//!     std::fs::write(dir.path().join(name).join("SKILL.md"), text)?;
//! }
//!
//! let mut skills = SkillSet::builder();
//! let (skill, diagnostics) = load_dir(&dir.path().join("review"))?;
//! skills.add(skill, diagnostics);
//! Discovery::new([Root::scanned(dir.path())]).run(&mut skills);
//!
//! let names: Vec<_> = skills.build().iter().map(|skill| skill.name.to_string()).collect();
//! assert_eq!(names, ["review", "greet"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cache;
mod filter;
mod limits;
mod load;
mod named;
mod names;
mod progress;
mod repository;
mod roots;
mod walk;

use std::{
    collections::HashMap,
    mem,
    path::{Path, PathBuf},
};

pub use cache::{Changes, DiscoveryCache, VisitedDirectory};
pub use filter::{Filter, FilterError};
pub use load::{LoadError, load_dir};
pub use named::NamedSkill;
pub use names::{PROJECT_ENTRIES, is_hidden, may_have_skills};
pub use roots::{IN_PROJECT, Root, project_roots, user_roots, user_roots_in};

use crate::{
    order,
    set::{SkillSet, SkillSetBuilder},
    skill::{Scope, Source},
};

/// Limits of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of skills in the set, over all scopes. The default is 10,000.
    pub max_skills: usize,
    /// The maximum number of directories below a root that are not skills, nor in a skill. The default is 2,000. There can be 10 times as
    /// many directories in skills. A project can have thousands of roots, so this total also applies to all roots of a scope together.
    pub max_dirs: usize,
    /// The maximum depth of a skill below a root. With 1, only `root/skill` is found. The default is 6.
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_skills: 10_000, max_dirs: 2_000, max_depth: 6 }
    }
}

/// A search for skills. The result and its order are the same each time, unless files change.
///
/// - The directories of version control, package managers and build tools (such as `.git`, `node_modules`, `.venv` and
///   `target`) are not searched, and neither are the subdirectories of a
///   skill, unless [`Discovery::nested`] is set.
/// - The hidden directories `.skills`, `.agents` and `.claude` are searched. Other hidden directories are searched only below
///   roots that the user named ([`Scope::Scanned`], [`Scope::Remote`]), because public repositories have skills in `.curated`
///   or `.github/skills`.
/// - Links to directories are followed, unless they lead out of the root's boundary ([`Root::within`]). Each directory is
///   visited only once.
/// - Within a root, skills are ordered by path. Skills in hidden directories come last.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// The directories to search. They are searched in the order of their scopes, and in the given order within a scope.
    pub roots: Vec<Root>,
    /// Selects skills by name.
    pub filter: Filter,
    /// The limits of the search.
    pub limits: Limits,
    /// True if a `SKILL.md` within the directory of another skill is a skill too. The default is false: it is a file of the outer
    /// skill.
    pub nested: bool,
}

impl Discovery {
    /// Creates a search below `roots` with default limits and without a filter.
    pub fn new(roots: impl IntoIterator<Item = Root>) -> Self {
        Self { roots: roots.into_iter().collect(), ..Self::default() }
    }

    /// Searches for skills and appends them to `skills`.
    ///
    /// A root that doesn't exist is reported as skipped, unless its scope is [`Scope::Project`] or [`Scope::User`].
    pub fn run(&self, skills: &mut SkillSetBuilder) {
        self.walk(skills, None);
    }

    /// Searches again, but reads only directories that are listed in `changes` or missing from `cache`. Updates the cache.
    ///
    /// If a skill can no longer be loaded, the previous version is kept until the `SKILL.md` is fixed or removed, and an error
    /// is added to the diagnostics. Unchanged skills are shared with the previous set.
    ///
    /// ```
    /// use skills_core::{SkillSet, discovery::{Changes, Discovery, Root, DiscoveryCache}};
    ///
    /// let root = tempfile::tempdir()?;
    /// # let root_path = dunce::canonicalize(root.path())?;
    /// # let root_path = root_path.as_path();
    /// # let write = |text: &str| std::fs::write(root_path.join("SKILL.md"), text);
    /// write("---\nname: greet\ndescription: Greets.\n---\n")?;
    /// let search = Discovery::new([Root::scanned(root_path)]);
    /// let mut cache = DiscoveryCache::default();
    /// let mut find = |changes: &Changes| -> SkillSet {
    ///     let mut skills = SkillSet::builder();
    ///     search.run_incremental(&mut cache, changes, &mut skills);
    ///     skills.build()
    /// };
    /// assert_eq!(find(&Changes::default()).len(), 1);
    ///
    /// write("---\nname: greet\ndescription: Says hello.\n---\n")?;
    /// let changes = Changes { directories: [root_path.to_owned()].into(), ..Changes::default() };
    /// assert_eq!(find(&Changes::default()).get("greet").unwrap().description, "Greets.");
    /// assert_eq!(find(&changes).get("greet").unwrap().description, "Says hello.");
    ///
    /// write("half a fi")?;
    /// let broken = find(&changes);
    /// assert_eq!(broken.get("greet").unwrap().description, "Says hello.");
    /// assert!(broken.entry("greet").unwrap().diagnostics.iter().any(|finding| finding.is_error()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn run_incremental(
        &self,
        cache: &mut DiscoveryCache,
        changes: &Changes,
        skills: &mut SkillSetBuilder,
    ) {
        let before = mem::take(&mut cache.visits);
        let now = HashMap::with_capacity(before.len());
        let mut memory = walk::Memory { before, changes, now };
        self.walk(skills, Some(&mut memory));
        cache.visits = memory.now;
    }

    fn walk(&self, skills: &mut SkillSetBuilder, mut memory: Option<&mut walk::Memory<'_>>) {
        let mut roots: Vec<&Root> = self.roots.iter().collect();
        order::sort_by_key(&mut roots, |root| root.scope);
        let mut progress = progress::Progress::default();
        let mut scope = None;
        for root in roots {
            // A project must not use up the time for the skills of the user.
            if scope.replace(root.scope) != Some(root.scope) {
                progress.enter_scope();
            }
            let space = self.limits.max_skills.saturating_sub(skills.len());
            let found = walk::walk(root, self, space, &mut progress, memory.as_deref_mut());
            for skipped in found.skipped {
                skills.skip(skipped);
            }
            for (skill, diagnostics) in found.skills {
                skills.add_shared(skill, diagnostics);
            }
        }
    }

    /// Searches for skills and returns them as a set.
    ///
    /// Use [`SkillSet::merged`] to merge the sets of several searches, such as those of the project and of the user.
    pub fn find(&self) -> SkillSet {
        let mut skills = SkillSet::builder();
        self.run(&mut skills);
        skills.build()
    }
}

/// Returns the paths of all `SKILL.md` files within the directory of a skill, except its own, sorted. They can be invalid.
///
/// By default, they are files of this skill. They are skills of their own if [`Discovery::nested`] is set.
pub fn skills_within(dir: &Path) -> Vec<PathBuf> {
    let real = dunce::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let found = Discovery { nested: true, ..Discovery::new([Root::scanned(&real).within(&real)]) }.find();
    let stored = found.iter().filter_map(|skill| match &skill.source {
        Source::Stored(stored) => Some(stored.file()),
        _ => None,
    });
    let shadowed = found.shadowed().iter().filter_map(|shadowed| shadowed.path.clone());
    let skipped = found.skipped().iter().map(|skipped| skipped.path.clone()).filter(|path| path.is_file());
    let mut files: Vec<PathBuf> =
        stored.chain(shadowed).chain(skipped).filter(|file| file.parent() != Some(&*real)).collect();
    order::sort(&mut files);
    files
}

/// Returns true if a missing root of this scope is normal and not reported.
fn may_be_absent(scope: Scope) -> bool {
    matches!(scope, Scope::Project | Scope::User)
}

#[cfg(test)]
mod tests;
