//! [`SkillSet`]: an immutable, ordered snapshot of skills.
//!
//! Sets are cheap to clone and never change. A reload creates a new set, and calls that are in flight keep the set that they
//! started with.

mod builder;

use std::{
    any::Any,
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use serde::Serialize;

use crate::{
    diagnostic::Diagnostic,
    name::SkillName,
    order,
    search::{Hits, Query, SearchIndex},
    skill::Skill,
    tool::SkillTool,
};

pub use builder::{MAX_TOOL_NAME_BYTES, SkillSetBuilder, ToolNameError};

/// The code of the diagnostic for skills that are being fetched. A later set will contain them.
pub const SOURCE_FETCHING: &str = "source-fetching";

/// The code of the diagnostic for a source that is not in the cache. It is fetched soon, if this process fetches sources.
pub const SOURCE_ABSENT: &str = "source-absent";

/// The code of the diagnostic for skills and sources that the policy of an administrator refuses.
pub const REFUSED_BY_POLICY: &str = "refused-by-policy";

/// An ordered set of skills with unique names, together with everything that was left out of it.
///
/// Names are compared without regard to case ([`SkillName::key`]).
///
/// ```
/// use skills_core::{Skill, SkillSet};
///
/// let skill = Skill::builder("greet", "Greets people.").body("Say hello.").build()?;
/// let set: SkillSet = [skill].into_iter().collect();
/// assert!(set.get("GREET").is_some());
/// # Ok::<(), skills_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct SkillSet(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    skills: Vec<Entry>,
    by_key: HashMap<Box<str>, usize>,
    shadowed: Vec<Shadowed>,
    skipped: Vec<Skipped>,
    unapproved: Vec<Unapproved>,
    notices: Vec<String>,
    tools: Vec<SkillTool>,
    /// Built by the first search.
    index: OnceLock<SearchIndex>,
    /// Built by [`prepare_search`](crate::instructions::prepare_search).
    instructions_index: OnceLock<SearchIndex>,
    /// The value of [`SkillSet::derived`].
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// A skill of a set, with its diagnostics.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// The skill.
    pub skill: Arc<Skill>,
    /// Problems that did not prevent the skill from being loaded.
    pub diagnostics: Vec<Diagnostic>,
}

/// A skill that was left out because a skill with higher precedence has the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Shadowed {
    /// The name, as the skill that was left out spells it.
    pub name: SkillName,
    /// The path of the `SKILL.md` that was left out, or the URL of a remote skill. `None` for a virtual skill.
    pub path: Option<PathBuf>,
    /// The path of the `SKILL.md` that has the name, or the URL of a remote skill. `None` for a virtual skill.
    pub by: Option<PathBuf>,
}

/// A skill that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// The path of the `SKILL.md`, of the directory that should contain one, or the URL of the index that lists the skill.
    pub path: PathBuf,
    /// The reasons.
    pub diagnostics: Vec<Diagnostic>,
}

impl Skipped {
    /// Creates the record of a skill at `path` that could not be loaded because of `diagnostics`.
    pub fn new(path: impl Into<PathBuf>, diagnostics: Vec<Diagnostic>) -> Self {
        Self { path: path.into(), diagnostics }
    }
}

/// A skill that the user has not approved yet. Its name may be shown, but none of its content is served.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unapproved {
    /// The skill.
    pub skill: Arc<Skill>,
    /// The hash of all files of the skill. An approval applies to this hash.
    pub digest: String,
    /// A hash of the times of the last change to the files of the skill and to the directories around them. 0 if they are unknown.
    pub stamp: u64,
    /// True if an earlier version of the skill was approved.
    pub has_changed: bool,
    /// True if the user was asked and refused.
    pub is_refused: bool,
}

impl Unapproved {
    /// Creates the record of a skill that the user has not been asked about.
    pub fn new(skill: Arc<Skill>, digest: impl Into<String>) -> Self {
        Self { skill, digest: digest.into(), stamp: 0, has_changed: false, is_refused: false }
    }

    /// Returns a text that is the same only if the files were not touched in between. Files that were changed and restored make
    /// another version, because the user may have reviewed them while they were different.
    pub fn version(&self) -> String {
        format!("{} {}", self.digest, self.stamp)
    }
}

impl PartialEq for Unapproved {
    fn eq(&self, other: &Self) -> bool {
        let facts =
            |entry: &Self| (entry.has_changed, entry.is_refused, entry.skill.dir().map(Path::to_owned));
        (&self.digest, self.stamp) == (&other.digest, other.stamp) && facts(self) == facts(other)
    }
}

impl SkillSet {
    /// Returns a builder. Add skills in the order of their precedence: the first skill with a name wins.
    pub fn builder() -> SkillSetBuilder {
        SkillSetBuilder::default()
    }

    /// Merges sets that were made separately, such as the user's skills and those of a project.
    ///
    /// The skills are ordered by [scope](crate::Scope), and by the order of `sets` within a scope.
    ///
    /// ```
    /// use skills_core::{Scope, Skill, SkillSet};
    ///
    /// let set = |name: &str, scope| -> SkillSet {
    ///     let mut skill = Skill::builder(name, "An example.").body("…").build().unwrap();
    ///     skill.scope = scope;
    ///     [skill].into_iter().collect()
    /// };
    /// let merged = SkillSet::merged([&set("greet", Scope::User), &set("Greet", Scope::Project)]);
    /// assert_eq!(merged.get("greet").unwrap().scope, Scope::Project);
    /// assert_eq!(merged.shadowed().len(), 1);
    /// ```
    pub fn merged<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut merged = Self::builder();
        let mut entries = Vec::new();
        for set in sets {
            entries.extend(set.entries());
            merged.add_tools(set);
            merged.add_left_out(set);
        }
        order::sort_by_key(&mut entries, |entry| entry.skill.scope);
        for entry in entries {
            merged.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
        }
        merged.build()
    }

    /// Returns the set without the skills for which `keep` returns false, or the same snapshot if all skills are kept.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&Skill) -> bool) -> Self {
        if self.iter().all(|skill| keep(skill)) {
            return self.clone();
        }
        let mut kept = Self::builder();
        kept.add_tools(self);
        for entry in self.entries().iter().filter(|entry| keep(&entry.skill)) {
            kept.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
        }
        kept.add_left_out(self);
        kept.build()
    }

    /// Returns the set with all skills listed that wait for a file and for which `has_joined` returns true
    /// ([`Skill::awaits_path`]), or the same snapshot if there are none.
    #[must_use]
    pub fn joined(&self, has_joined: impl Fn(&Skill) -> bool) -> Self {
        let joins = |skill: &Skill| skill.awaits_path() && has_joined(skill);
        if !self.iter().any(|skill| joins(skill)) {
            return self.clone();
        }
        let mut joined = Self::builder();
        joined.add_tools(self);
        for Entry { skill, diagnostics } in self.entries() {
            let skill = if joins(skill) {
                Arc::new(Skill { has_joined: true, ..Skill::clone(skill) })
            } else {
                Arc::clone(skill)
            };
            joined.add_shared(skill, diagnostics.clone());
        }
        joined.add_left_out(self);
        joined.build()
    }

    /// Appends the skills and tools of `more` with lower precedence. Returns the same snapshot if `more` is empty.
    #[must_use]
    pub fn with(&self, more: &Self) -> Self {
        let is_silent =
            more.skipped().is_empty() && more.unapproved().is_empty() && more.notices().is_empty();
        if more.offers_nothing() && is_silent {
            return self.clone();
        }
        let mut both = Self::builder();
        both.extend(self);
        both.extend(more);
        both.build()
    }

    /// Returns true if both are the same snapshot. This compares two pointers, not the skills.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns true if both sets have the same skills ([`Skill::is_same_as`]), the same diagnostics, and the same records of what was left
    /// out.
    pub fn is_alike(&self, other: &Self) -> bool {
        let pairs = || self.entries().iter().zip(other.entries());
        self.ptr_eq(other)
            || self.len() == other.len()
                && pairs().all(|(a, b)| {
                    a.diagnostics == b.diagnostics
                        && (Arc::ptr_eq(&a.skill, &b.skill) || a.skill.is_same_as(&b.skill))
                })
                && self.skipped() == other.skipped()
                && self.unapproved() == other.unapproved()
                && self.shadowed() == other.shadowed()
                && self.notices() == other.notices()
    }

    /// Returns the skill with this name, ignoring case.
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        self.entry(name).map(|entry| &entry.skill)
    }

    /// Returns the skill with this name and its diagnostics, ignoring case.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.0.by_key.get(SkillName::key_of(name).as_str()).map(|&index| &self.0.skills[index])
    }

    /// Returns all skills, in the order in which they were added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Skill>> + Clone {
        self.0.skills.iter().map(|entry| &entry.skill)
    }

    /// Returns all skills with their diagnostics, in the order in which they were added.
    pub fn entries(&self) -> &[Entry] {
        &self.0.skills
    }

    /// Returns the skills that the model sees ([`Skill::is_listed`]), in the same order as [`iter`](Self::iter).
    pub fn listed(&self) -> impl Iterator<Item = &Arc<Skill>> + Clone {
        self.iter().filter(|skill| skill.is_listed())
    }

    /// Finds skills that the model sees ([`Skill::is_listed`]), best first.
    ///
    /// The first search builds an index, which takes about 20 µs per skill. The instructions are only searched if they were indexed
    /// before ([`prepare_search`](crate::instructions::prepare_search)).
    pub fn search(&self, query: &Query) -> Hits {
        let with_instructions = self.0.instructions_index.get().filter(|_| query.instructions);
        let index = with_instructions
            .unwrap_or_else(|| self.0.index.get_or_init(|| SearchIndex::new(self.iter().cloned())));
        index.search(query)
    }

    /// Builds the index for searches of the instructions, if there is none yet.
    pub(crate) fn index_instructions(&self, read: impl Fn(&Skill) -> Option<Arc<str>>) {
        let build = || SearchIndex::with_instructions(self.iter().cloned(), read);
        self.0.instructions_index.get_or_init(build);
    }

    /// Returns a value that is computed from this snapshot, and keeps it as long as the snapshot. This is for a host that needs
    /// the same value of many skills often.
    ///
    /// A snapshot keeps one value only. If it has one of another type, the value is computed with each call.
    pub fn derived<T: Send + Sync + 'static>(&self, derive: impl Fn(&Self) -> T) -> Arc<T> {
        let kept = self.0.derived.get_or_init(|| Arc::new(derive(self)));
        Arc::clone(kept).downcast().unwrap_or_else(|_| Arc::new(derive(self)))
    }

    /// Returns the number of skills.
    pub fn len(&self) -> usize {
        self.0.skills.len()
    }

    /// Returns true if the set has no skills. It may still have tools.
    pub fn is_empty(&self) -> bool {
        self.0.skills.is_empty()
    }

    /// Returns the tools that belong to no skill ([`SkillSetBuilder::add_tool`]), in the order in which they were
    /// added.
    pub fn tools(&self) -> &[SkillTool] {
        &self.0.tools
    }

    /// Returns the tool that belongs to no skill and has exactly this name.
    pub fn tool(&self, name: &str) -> Option<&SkillTool> {
        self.0.tools.iter().find(|tool| tool.name == name)
    }

    /// Returns true if the set has no skills and no tools.
    pub fn offers_nothing(&self) -> bool {
        self.is_empty() && self.0.tools.is_empty()
    }

    /// Returns true if the set is empty and will stay empty.
    ///
    /// This is not the case before and while a skill is being fetched ([`SOURCE_ABSENT`], [`SOURCE_FETCHING`]), or if it has to be approved
    /// by the user.
    pub fn will_offer_nothing(&self) -> bool {
        let findings = || self.skipped().iter().flat_map(|skipped| &skipped.diagnostics);
        self.offers_nothing()
            && self.unapproved().is_empty()
            && !findings().any(|finding| [SOURCE_ABSENT, SOURCE_FETCHING].contains(&finding.code))
    }

    /// Returns the skills that were left out because another skill has the same name.
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.0.shadowed
    }

    /// Returns the skills that could not be loaded.
    pub fn skipped(&self) -> &[Skipped] {
        &self.0.skipped
    }

    /// Returns sentences for the user about the places that provide the skills, for example that there is a new version. They are not
    /// for the model.
    pub fn notices(&self) -> &[String] {
        &self.0.notices
    }

    /// Returns the skills that the user has not approved yet.
    pub fn unapproved(&self) -> &[Unapproved] {
        &self.0.unapproved
    }
}

impl FromIterator<Skill> for SkillSet {
    fn from_iter<I: IntoIterator<Item = Skill>>(skills: I) -> Self {
        let mut builder = Self::builder();
        for skill in skills {
            builder.add(skill, Vec::new());
        }
        builder.build()
    }
}
