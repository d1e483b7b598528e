//! Where skills are found, and which one wins a name. The only directory walker.
//!
//! A skill is a directory with a `SKILL.md`. Some are named one by one ([`load_dir`]); others are found below roots:
//! those of a project ([`project_roots`]), of the user ([`user_roots`]), or any directory ([`Root::scanned`]).
//! [`Discovery`] scans roots in the order of their [`Scope`] and adds what it finds to a [`SkillSetBuilder`], in which the
//! first skill with a name wins and the others are reported as shadowed. Nothing is lost silently: what cannot be loaded,
//! cannot be read or is beyond a limit becomes a
//! [`Skipped`](crate::set::Skipped) with diagnostics.
//!
//! Only the beginning of each `SKILL.md` is read here, confined to the skill's directory like every other read; the
//! body is read when the skill is activated.
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
mod load;
mod named;
mod names;
mod roots;
mod walk;

use std::{
    collections::{HashMap, HashSet},
    mem,
};

pub use cache::{Changes, DiscoveryCache, VisitedDirectory};
pub use filter::{Filter, FilterError};
pub use load::{LoadError, load_dir};
pub use named::NamedSkill;
pub use roots::{Root, project_roots, user_roots, user_roots_in};

use crate::{
    set::{SkillSet, SkillSetBuilder},
    skill::Scope,
};

/// What a scan may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Skills in the set, whatever their scope. Default 10,000.
    pub max_skills: usize,
    /// Directories below one root that are *not* skills: a skill costs `max_skills`, not this. Default 2,000.
    pub max_dirs: usize,
    /// Levels below a root at which a skill may be; 1 finds `root/skill` only. Default 6.
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_skills: 10_000, max_dirs: 2_000, max_depth: 6 }
    }
}

/// A search for skills. Running it twice gives the same result in the same order, unless files changed.
///
/// Below a root, the directories of version control, package managers and build tools (`.git`, `node_modules`, `.venv`,
/// `target` …) are passed over, and everything inside a skill. Of other hidden directories `.skills`, `.agents` and `.claude`
/// are searched, and all of them below a root that the user named ([`Scope::Scanned`], [`Scope::Remote`]): public repositories keep skills in
/// `.curated` or `.github/skills`. Links to directories are followed, in a project those that stay in it ([`Root::within`]);
/// each directory is visited once. Within a root, skills come in the order of their paths, those in hidden directories last.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// Where to look. The order counts within a scope; scopes are scanned in the order of their precedence.
    pub roots: Vec<Root>,
    /// Which names to take.
    pub filter: Filter,
    /// What the scan may cost.
    pub limits: Limits,
}

impl Discovery {
    /// A search below `roots` with the default limits and no filter.
    pub fn new(roots: impl IntoIterator<Item = Root>) -> Self {
        Self { roots: roots.into_iter().collect(), ..Self::default() }
    }

    /// Adds what is found to `skills`, behind what is there already.
    ///
    /// A root that does not exist is reported when it was given to be scanned, and nothing to speak of in a
    /// project or for a user.
    pub fn run(&self, skills: &mut SkillSetBuilder) {
        self.walk(skills, None);
    }

    /// The same, with a memory: only directories that `visits` does not know and those of `changes` are looked into.
    ///
    /// A skill that cannot be loaded any more stays as it was, with an error among its diagnostics, until its `SKILL.md`
    /// is gone or can be loaded again. Skills that are as they were are shared with the set before.
    ///
    /// ```
    /// use skills_core::{SkillSet, discovery::{Changes, Discovery, Root, DiscoveryCache}};
    ///
    /// let root = tempfile::tempdir()?;
    /// # let root_path = dunce::canonicalize(root.path())?;
    /// # let root_path = root_path.as_path();
    /// # let write = |text: &str| std::fs::write(root_path.join("SKILL.md"), text);
    /// write("---\nname: greet\ndescription: Greets.\n---\n")?;
    /// let (search, mut visits) = (Discovery::new([Root::scanned(root_path)]), DiscoveryCache::default());
    /// let mut find = |changes: &Changes| -> SkillSet {
    ///     let mut skills = SkillSet::builder();
    ///     search.run_incremental(&mut visits, changes, &mut skills);
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
        roots.sort_by_key(|root| root.scope);
        let mut seen = HashSet::new();
        for root in roots {
            let space = self.limits.max_skills.saturating_sub(skills.len());
            let found = walk::walk(root, self, space, &mut seen, memory.as_deref_mut());
            for skipped in found.skipped {
                skills.skip(skipped);
            }
            for (skill, diagnostics) in found.skills {
                skills.add_shared(skill, diagnostics);
            }
        }
    }

    /// The set of what is found.
    ///
    /// With [`SkillSet::merged`] the sets of several searches become one, for example that of a session's project
    /// and that of the user.
    pub fn find(&self) -> SkillSet {
        let mut skills = SkillSet::builder();
        self.run(&mut skills);
        skills.build()
    }
}

/// Whether a missing root of this scope is normal and not worth reporting.
fn may_be_absent(scope: Scope) -> bool {
    matches!(scope, Scope::Project | Scope::User)
}

#[cfg(test)]
mod tests;
