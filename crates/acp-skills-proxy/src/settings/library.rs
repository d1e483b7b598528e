//! The skills that flags and configuration name, as they are found, and found again.
//!
//! Sessions get snapshots. Looking again makes new ones (`remembering`), beside those that are in use, from what has
//! changed; `watch` says what that is.

mod remembering;

use std::{
    path::Path,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
};

use skills_core::{
    Diagnostic, Skill, SkillSet,
    discovery::{Changes, Discovery, NamedSkill, Visits, project_roots},
};

pub(super) use self::remembering::Remembering;
use crate::mcp::Library;

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
        Arc::new(Remembering::over(self))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
