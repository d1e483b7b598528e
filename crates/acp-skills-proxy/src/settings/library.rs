//! The skills that flags and configuration name, as they are found, and found again.
//!
//! Sessions get snapshots. Looking again makes new ones, beside those that are in use, from what has changed; `watch`
//! says what that is.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::Instant,
};

use skills_core::{
    Diagnostic, Difference, Skill, SkillSet,
    discovery::{Changes, Discovery, NamedSkill, Visits, project_roots},
};

use super::{
    load_named,
    watch::{self, Inbox, Places},
};
use crate::{
    intercept::Reloaded,
    mcp::{Library, SkillLibrary, WhenReloaded},
};

/// The skills that were found, by precedence.
pub struct Skills {
    named: Vec<Named>,
    strict: bool,
    rest: Found,
    remote: SkillSet,
    project: Option<Discovery>,
    watch: bool,
}

/// A skill that was named.
pub(super) enum Named {
    /// In a directory.
    Stored(NamedSkill),
    /// Defined in the configuration.
    Fixed(Arc<Skill>, Vec<Diagnostic>),
}

/// What a scan finds. It runs beside the start of the agent; the first to ask waits for it.
#[derive(Clone)]
pub(super) struct Found {
    how: Discovery,
    search: Arc<LazyLock<Mutex<Search>, FirstSearch>>,
}

type FirstSearch = Box<dyn FnOnce() -> Mutex<Search> + Send>;

/// What a search found last, and what it remembers for the next time.
#[derive(Default)]
struct Search {
    skills: SkillSet,
    visits: Visits,
}

impl Search {
    fn first(how: &Discovery) -> Self {
        let mut search = Self::default();
        search.again(how, &Changes::default());
        search
    }

    /// Looks again where something has changed. A set in which nothing is other stays the one it was.
    fn again(&mut self, how: &Discovery, changes: &Changes) {
        let mut skills = SkillSet::builder();
        how.run_again(&mut self.visits, changes, &mut skills);
        let skills = skills.build();
        if !is_alike(&self.skills, &skills) {
            self.skills = skills;
        }
    }
}

impl Found {
    pub(super) fn start(how: Discovery) -> Self {
        let is_nothing = how.roots.is_empty();
        let discovery = how.clone();
        let find: FirstSearch = Box::new(move || Mutex::new(Search::first(&discovery)));
        let found = Self { how, search: Arc::new(LazyLock::new(find)) };
        if !is_nothing {
            let ahead = found.clone();
            // Without the thread whoever asks first does the work.
            drop(thread::Builder::new().name("discovery".to_owned()).spawn(move || drop(ahead.get())));
        }
        found
    }

    fn search(&self) -> MutexGuard<'_, Search> {
        lock(&self.search)
    }

    fn get(&self) -> SkillSet {
        self.search().skills.clone()
    }
}

impl Skills {
    /// The skills that were named, those of a scan, those of web sites, and those that `project` finds from the directory
    /// of a session.
    pub(super) fn new(
        named: Vec<Named>,
        strict: bool,
        rest: Found,
        remote: SkillSet,
        project: Option<Discovery>,
    ) -> Self {
        Self { named, strict, rest, remote, project, watch: false }
    }

    /// The same, and whether the library is to notice changes by itself.
    pub(super) fn watched(self, watch: bool) -> Self {
        Self { watch, ..self }
    }

    /// The skills of a session that works in `cwd`.
    pub fn at(&self, cwd: Option<&Path>) -> SkillSet {
        let project = cwd.and_then(|cwd| self.project_search(cwd)).map(|how| how.find());
        self.assemble(project.as_ref())
    }

    /// The search for the skills of the project that `cwd` is in.
    fn project_search(&self, cwd: &Path) -> Option<Discovery> {
        let roots = project_roots(cwd);
        self.project.clone().map(|how| Discovery { roots, ..how })
    }

    fn assemble(&self, project: Option<&SkillSet>) -> SkillSet {
        let rest = self.rest.get();
        if self.named.is_empty() && self.remote.is_empty() && project.is_none_or(is_nothing) {
            return rest;
        }
        let mut builder = SkillSet::builder();
        for named in &self.named {
            match named {
                Named::Stored(skill) => skill.add_to(&mut builder),
                Named::Fixed(skill, diagnostics) => {
                    builder.add_shared(Arc::clone(skill), diagnostics.clone());
                }
            }
        }
        if let Some(project) = project {
            builder.extend(project);
        }
        builder.extend(&rest);
        builder.extend(&self.remote);
        builder.build()
    }

    /// Whether anything is in a directory, or could come to be in one.
    fn has_directories(&self) -> bool {
        self.project.is_some()
            || !self.rest.how.roots.is_empty()
            || self.named.iter().any(|named| matches!(named, Named::Stored(_)))
    }

    /// The same as something that remembers what it found.
    pub fn into_library(self) -> Library {
        Arc::new(self.remembering())
    }

    fn remembering(self) -> Remembering {
        let (watch, by_directory) = (self.watch && self.has_directories(), self.project.is_some());
        let finder = Finder { skills: self, projects: HashMap::new(), warned: HashSet::new() };
        let inbox = OnceLock::new();
        let (finder, found) = (Mutex::new(finder), Mutex::default());
        Remembering { watch, by_directory, finder, found, inbox }
    }
}

/// Skills, and those of each directory that was asked for.
pub(super) struct Remembering {
    watch: bool,
    /// Whether the skills of a session depend on its directory.
    by_directory: bool,
    /// Held while somebody looks at the disk; always before `found`.
    finder: Mutex<Finder>,
    /// What sessions get; held for a moment.
    found: Mutex<HashMap<Option<PathBuf>, SkillSet>>,
    /// Where changes arrive, once somebody watches.
    inbox: OnceLock<Arc<Inbox>>,
}

/// Looks at the disk.
struct Finder {
    skills: Skills,
    /// By the working directory of their sessions.
    projects: HashMap<PathBuf, Search>,
    /// What people have been warned of and is still so.
    warned: HashSet<String>,
}

impl Finder {
    /// The skills of a directory that nobody asked for before.
    fn find(&mut self, cwd: Option<&Path>) -> SkillSet {
        let project = cwd.and_then(|cwd| {
            let how = self.skills.project_search(cwd)?;
            let search = self.projects.entry(cwd.to_owned()).or_insert_with(|| Search::first(&how));
            Some(search.skills.clone())
        });
        self.skills.assemble(project.as_ref())
    }

    /// Looks again at what has changed.
    fn look_again(&mut self, changes: &Changes) {
        let strict = self.skills.strict;
        for named in &mut self.skills.named {
            if let Named::Stored(skill) = named
                && is_touched(skill.path(), changes)
            {
                let loaded = load_named(skill.path(), strict);
                skill.update(loaded);
            }
        }
        let rest = &self.skills.rest;
        rest.search().again(&rest.how, changes);
        for (cwd, search) in &mut self.projects {
            if let Some(how) = self.skills.project_search(cwd) {
                search.again(&how, changes);
            }
        }
    }

    /// A bad skill is a warning in the log, never an outage; and one warning, for as long as it is bad.
    fn warn<'s>(&mut self, sets: impl IntoIterator<Item = &'s SkillSet>, all: bool) {
        let now: HashSet<String> = sets.into_iter().flat_map(warnings).collect();
        for warning in now.difference(&self.warned) {
            tracing::warn!("{warning}");
        }
        if all {
            self.warned = now;
        } else {
            self.warned.extend(now);
        }
    }
}

impl Remembering {
    /// Looks again at what has changed. Says what came of it, when that is anything.
    pub(super) fn look_again(&self, changes: &Changes) -> Option<Reloaded> {
        let started = Instant::now();
        let mut finder = lock(&self.finder);
        finder.look_again(changes);
        let before = lock(&self.found).clone();
        let mut after = HashMap::with_capacity(before.len());
        let (mut added, mut removed, mut changed) = (HashSet::new(), HashSet::new(), HashSet::new());
        for (cwd, old) in &before {
            let new = finder.find(cwd.as_deref());
            if is_alike(old, &new) {
                after.insert(cwd.clone(), old.clone());
                continue;
            }
            let difference = Difference::between(old, &new);
            let paths = |skills: Vec<Arc<Skill>>| {
                skills.into_iter().map(|skill| (skill.name.key(), skill.dir().map(Path::to_owned)))
            };
            added.extend(paths(difference.added));
            removed.extend(paths(difference.removed));
            changed.extend(paths(difference.changed));
            after.insert(cwd.clone(), new);
        }
        finder.warn(after.values(), true);
        let is_same = after.iter().all(|(cwd, new)| before.get(cwd).is_some_and(|old| old.is(new)));
        let mut found = lock(&self.found);
        // Somebody may have left in the meantime.
        after.retain(|cwd, _| found.contains_key(cwd));
        finder.projects.retain(|cwd, _| after.contains_key(&Some(cwd.clone())));
        *found = after;
        drop(found);
        let took = started.elapsed();
        let (added, removed, changed) = (added.len(), removed.len(), changed.len());
        (!is_same).then_some(Reloaded { added, removed, changed, took })
    }

    /// What has to be watched for [`look_again`](Self::look_again) to be told of every change.
    pub(super) fn places(&self) -> Places {
        let finder = lock(&self.finder);
        let mut places = Places::default();
        for named in &finder.skills.named {
            if let Named::Stored(skill) = named {
                places.add_named(skill.path());
            }
        }
        let rest = &finder.skills.rest;
        places.add_search(&rest.how, &rest.search().visits);
        for (cwd, search) in &finder.projects {
            if let Some(how) = finder.skills.project_search(cwd) {
                places.add_search(&how, &search.visits);
            }
        }
        places
    }
}

impl SkillLibrary for Remembering {
    fn at(&self, cwd: Option<&Path>) -> SkillSet {
        let cwd = cwd.filter(|_| self.by_directory).map(Path::to_owned);
        // Nobody waits for what is being looked at again.
        if let Some(known) = lock(&self.found).get(&cwd) {
            return known.clone();
        }
        let mut finder = lock(&self.finder);
        if let Some(known) = lock(&self.found).get(&cwd) {
            return known.clone();
        }
        if let Some(left) = &cwd {
            finder.projects.remove(left);
        }
        let skills = finder.find(cwd.as_deref());
        finder.warn([&skills], false);
        lock(&self.found).insert(cwd, skills.clone());
        if let Some(inbox) = self.inbox.get().filter(|_| self.by_directory) {
            inbox.look_around();
        }
        skills
    }

    fn reload(&self) {
        self.look_again(&Changes::everything());
    }

    fn leave(&self, cwd: &Path) {
        lock(&self.found).remove(&Some(cwd.to_owned()));
        // Nobody waits here for a disk either: whoever looks at it now, or next, forgets the project.
        if let Ok(mut finder) = self.finder.try_lock() {
            finder.projects.remove(cwd);
        }
    }

    fn watch(self: Arc<Self>, changed: WhenReloaded) {
        if self.watch {
            let inbox = self.inbox.get_or_init(Arc::default);
            watch::start(Arc::downgrade(&self), Arc::clone(inbox), changed);
        }
    }
}

impl Drop for Remembering {
    fn drop(&mut self) {
        if let Some(inbox) = self.inbox.get() {
            inbox.close();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a named skill has to be loaded again. What `path` leads to may have changed with any link on the way.
fn is_touched(path: &Path, changes: &Changes) -> bool {
    let real = dunce::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    changes.touches(&real) || changes.replaces(&real) || changes.replaces(path)
}

/// Whether there is nothing in a set, not even a bad skill.
fn is_nothing(set: &SkillSet) -> bool {
    set.is_empty() && set.skipped().is_empty()
}

/// Whether two sets are the same to everybody: the same skills, and the same things wrong with them.
fn is_alike(old: &SkillSet, new: &SkillSet) -> bool {
    let pairs = || old.entries().iter().zip(new.entries());
    old.is(new)
        || old.len() == new.len()
            && pairs().all(|(a, b)| {
                a.diagnostics == b.diagnostics
                    && (Arc::ptr_eq(&a.skill, &b.skill) || a.skill.is_same_as(&b.skill))
            })
            && old.skipped() == new.skipped()
            && old.shadowed() == new.shadowed()
}

/// What people have to know about a set.
fn warnings(skills: &SkillSet) -> Vec<String> {
    let mut lines = Vec::new();
    for skipped in skills.skipped() {
        for finding in skipped.diagnostics.iter().filter(|finding| finding.is_error()) {
            lines.push(format!("skipped {}: {}", skipped.path.display(), finding.message));
        }
    }
    for entry in skills.entries() {
        for finding in entry.diagnostics.iter().filter(|finding| finding.is_error()) {
            let name = &entry.skill.name;
            lines.push(format!(
                "the skill `{name}` cannot be loaded again and stays as it was: {}",
                finding.message
            ));
        }
    }
    for shadowed in skills.shadowed() {
        lines.push(format!("skill `{}` is shadowed by another of this name", shadowed.name));
    }
    lines
}

#[cfg(test)]
mod tests;
