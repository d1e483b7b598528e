//! [`SkillSet`]: an immutable, ordered snapshot of skills, and look-up in it.
//!
//! Sets are cheap to clone and never change; a reload makes a new one, so a call that runs keeps the set it began with.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use serde::Serialize;

use crate::{
    diagnostic::Diagnostic,
    name::SkillName,
    search::{Hits, Query, SearchIndex},
    skill::{Skill, SkillTool},
    text::shown,
    toolbox,
};

/// The name of a tool of a set may have this many bytes: hosts put the name of the server in front of it, and cut off
/// what is longer than 63.
pub const MAX_TOOL_NAME_BYTES: usize = 40;

/// The code of the finding about skills that are being fetched: a set that comes later will have them.
pub const ON_THE_WAY: &str = "source-fetching";

/// An ordered set of skills with unique names (case does not count), and what was left out of it.
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
    waiting: Vec<Waiting>,
    tools: Vec<SkillTool>,
    /// Built when it is first needed.
    index: OnceLock<SearchIndex>,
}

/// A skill of a set and what was found wrong with it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// The skill.
    pub skill: Arc<Skill>,
    /// Findings that did not prevent loading it.
    pub diagnostics: Vec<Diagnostic>,
}

/// A skill that lost its name to one with higher precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Shadowed {
    /// The name they share, as the loser spells it.
    pub name: SkillName,
    /// The loser's `SKILL.md`, or the address of a remote one; `None` for a virtual skill.
    pub path: Option<PathBuf>,
    /// The winner's `SKILL.md`, or its address; `None` for a virtual skill.
    pub by: Option<PathBuf>,
}

/// A skill that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// Its `SKILL.md`, or the directory that should have had one, or the address of the index that lists it.
    pub path: PathBuf,
    /// Why.
    pub diagnostics: Vec<Diagnostic>,
}

/// A skill that is there, and that the user has not approved yet: it is named, and nothing of it is served.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Waiting {
    /// The skill.
    pub skill: Arc<Skill>,
    /// What would be approved, as the hash of all its files.
    pub digest: String,
    /// An earlier version was approved.
    pub has_changed: bool,
    /// The user was asked and said no.
    pub is_refused: bool,
}

impl Waiting {
    /// A skill that nobody has said anything about.
    pub fn new(skill: Arc<Skill>, digest: impl Into<String>) -> Self {
        Self { skill, digest: digest.into(), has_changed: false, is_refused: false }
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        let facts = |it: &Self| (it.has_changed, it.is_refused, it.skill.dir().map(Path::to_owned));
        self.digest == other.digest && facts(self) == facts(other)
    }
}

impl Skipped {
    /// A file that could not be loaded, and why.
    pub fn new(path: impl Into<PathBuf>, diagnostics: Vec<Diagnostic>) -> Self {
        Self { path: path.into(), diagnostics }
    }
}

impl SkillSet {
    /// Collects skills in the order of their precedence: the first with a name wins.
    pub fn builder() -> SkillSetBuilder {
        SkillSetBuilder::default()
    }

    /// One set from several that were made apart, such as that of the user and that of a session's project: skills in
    /// the order of their [scopes](crate::Scope), and within a scope in the order of the sets.
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
        let (mut entries, mut tools) = (Vec::new(), Vec::new());
        for set in sets {
            entries.extend(set.entries());
            tools.extend_from_slice(set.tools());
            merged.0.shadowed.extend_from_slice(set.shadowed());
            merged.0.skipped.extend_from_slice(set.skipped());
            merged.0.waiting.extend_from_slice(set.waiting());
        }
        entries.sort_by_key(|entry| entry.skill.scope);
        for tool in tools {
            // The first one with a name wins.
            drop(merged.add_tool(tool));
        }
        for entry in entries {
            merged.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
        }
        merged.build()
    }

    /// The same without the skills that are not to be kept; the same snapshot when all are.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&Skill) -> bool) -> Self {
        if self.iter().all(|skill| keep(skill)) {
            return self.clone();
        }
        let mut some = Self::builder();
        some.0.tools.extend_from_slice(self.tools());
        for entry in self.entries().iter().filter(|entry| keep(&entry.skill)) {
            some.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
        }
        some.0.shadowed.extend_from_slice(self.shadowed());
        some.0.skipped.extend_from_slice(self.skipped());
        some.0.waiting.extend_from_slice(self.waiting());
        some.build()
    }

    /// The same with the skills and tools of `more` behind its own; the same snapshot when there is nothing in `more`.
    #[must_use]
    pub fn with(&self, more: &Self) -> Self {
        if more.offers_nothing() && more.skipped().is_empty() && more.waiting().is_empty() {
            return self.clone();
        }
        let mut both = Self::builder();
        both.extend(self);
        both.extend(more);
        both.build()
    }

    /// Whether both are the same snapshot: a comparison of two pointers.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The skill with this name; case does not count.
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        self.entry(name).map(|entry| &entry.skill)
    }

    /// The skill with this name and its diagnostics; case does not count.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.0.by_key.get(SkillName::key_of(name).as_str()).map(|&index| &self.0.skills[index])
    }

    /// All skills in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Skill>> + Clone {
        self.0.skills.iter().map(|entry| &entry.skill)
    }

    /// All skills with their diagnostics, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.0.skills
    }

    /// The skills that the model may see, in order ([`Skill::is_listed`]).
    pub fn listed(&self) -> impl Iterator<Item = &Arc<Skill>> + Clone {
        self.iter().filter(|skill| skill.is_listed())
    }

    /// Finds skills that the model may see. The first search builds the index, and blocks for about 10 µs a skill.
    pub fn search(&self, query: &Query) -> Hits {
        self.0.index.get_or_init(|| SearchIndex::new(self)).search(query)
    }

    /// How many skills there are.
    pub fn len(&self) -> usize {
        self.0.skills.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.skills.is_empty()
    }

    /// The tools that belong to no skill ([`SkillSetBuilder::add_tool`]), in order.
    pub fn tools(&self) -> &[SkillTool] {
        &self.0.tools
    }

    /// The tool that belongs to no skill and has this exact name.
    pub fn tool(&self, name: &str) -> Option<&SkillTool> {
        self.0.tools.iter().find(|tool| tool.name == name)
    }

    /// Whether there is neither a skill nor a tool.
    pub fn offers_nothing(&self) -> bool {
        self.is_empty() && self.0.tools.is_empty()
    }

    /// Whether there is neither a skill nor a tool, none is on its way ([`ON_THE_WAY`]), and none waits for the user.
    pub fn will_offer_nothing(&self) -> bool {
        let findings = || self.skipped().iter().flat_map(|skipped| &skipped.diagnostics);
        self.offers_nothing()
            && self.waiting().is_empty()
            && !findings().any(|finding| finding.code == ON_THE_WAY)
    }

    /// Skills that lost their name to another one.
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.0.shadowed
    }

    /// Skills that could not be loaded.
    pub fn skipped(&self) -> &[Skipped] {
        &self.0.skipped
    }

    /// Skills that the user has not approved yet.
    pub fn waiting(&self) -> &[Waiting] {
        &self.0.waiting
    }
}

impl SearchIndex {
    /// Indexes the skills of a set that a model may see; about 10 µs a skill.
    pub fn new(skills: &SkillSet) -> Self {
        Self::over(skills.listed().cloned().collect())
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

/// Why a tool cannot be added to a set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolNameError {
    /// Some host would not take the name.
    #[error("`{}` is no name for a tool: 1 to {MAX_TOOL_NAME_BYTES} of a-z, A-Z, 0-9, `_` and `-`", shown(.0))]
    Invalid(String),
    /// There is a tool of this name.
    #[error("there is a tool `{0}` already")]
    Taken(String),
}

/// Builds a [`SkillSet`]; reports what is shadowed instead of losing it.
#[derive(Debug, Default)]
pub struct SkillSetBuilder(Inner);

impl SkillSetBuilder {
    /// Adds a skill; returns whether it got in, or lost its name to an earlier one.
    pub fn add(&mut self, skill: Skill, diagnostics: Vec<Diagnostic>) -> bool {
        self.add_shared(Arc::new(skill), diagnostics)
    }

    /// The same for a skill that is shared with another set.
    pub fn add_shared(&mut self, skill: Arc<Skill>, diagnostics: Vec<Diagnostic>) -> bool {
        let key = skill.name.key().into_boxed_str();
        if let Some(&index) = self.0.by_key.get(&key) {
            let (path, by) = (file(&skill), file(&self.0.skills[index].skill));
            // The same file reached twice is not a conflict.
            if path.is_none() || path != by {
                self.0.shadowed.push(Shadowed { name: skill.name.clone(), path, by });
            }
            return false;
        }
        self.0.by_key.insert(key, self.0.skills.len());
        self.0.skills.push(Entry { skill, diagnostics });
        true
    }

    /// Adds a tool that belongs to no skill: the model has it from the beginning, beside the tools for skills.
    ///
    /// # Errors
    /// When its name is taken, or none that every host takes.
    pub fn add_tool(&mut self, tool: SkillTool) -> Result<(), ToolNameError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !(1..=MAX_TOOL_NAME_BYTES).contains(&tool.name.len()) || !tool.name.bytes().all(is_plain) {
            return Err(ToolNameError::Invalid(tool.name));
        }
        if toolbox::NAMES.contains(&tool.name.as_str()) || self.0.tools.iter().any(|it| it.name == tool.name)
        {
            return Err(ToolNameError::Taken(tool.name));
        }
        self.0.tools.push(tool);
        Ok(())
    }

    /// Records a skill that could not be loaded.
    pub fn skip(&mut self, skipped: Skipped) {
        self.0.skipped.push(skipped);
    }

    /// Records a skill that the user has not approved yet.
    pub fn wait(&mut self, waiting: Waiting) {
        self.0.waiting.push(waiting);
    }

    /// Adds the skills and tools of `set`, and what it left out, behind those already here.
    pub fn extend(&mut self, set: &SkillSet) {
        for tool in set.tools() {
            // The first one with a name wins.
            drop(self.add_tool(tool.clone()));
        }
        for entry in set.entries() {
            self.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
        }
        self.0.shadowed.extend_from_slice(set.shadowed());
        self.0.skipped.extend_from_slice(set.skipped());
        self.0.waiting.extend_from_slice(set.waiting());
    }

    /// How many skills there are so far.
    pub fn len(&self) -> usize {
        self.0.skills.len()
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.0.skills.is_empty()
    }

    /// The finished set. A skill that is also in it because the user named it does not wait.
    pub fn build(mut self) -> SkillSet {
        let Inner { skills, waiting, .. } = &mut self.0;
        if !waiting.is_empty() {
            let dirs: HashSet<_> = skills.iter().filter_map(|entry| entry.skill.dir()).collect();
            waiting.retain(|it| it.skill.dir().is_none_or(|dir| !dirs.contains(dir)));
        }
        SkillSet(Arc::new(self.0))
    }
}

fn file(skill: &Skill) -> Option<PathBuf> {
    match &skill.source {
        crate::skill::Source::Stored(stored) => Some(stored.file()),
        crate::skill::Source::Virtual(_) => None,
        #[cfg(feature = "fetch")]
        crate::skill::Source::Remote(remote) => Some(PathBuf::from(&*remote.url)),
    }
}
