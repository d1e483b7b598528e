//! [`Snapshots`]: a library that caches the sets of its sessions, and replaces them after a change.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::{Arc, OnceLock},
    thread,
    time::Instant,
};

use acp_skills_intercept::{Difference, Workspace};
use parking_lot::Mutex;
use skills_core::{Skill, SkillName, SkillSet, discovery::Changes, set::Unapproved};
use skills_sources::{Notify, Sources, trust::Decided};

use acp_skills_servers::skills::SkillServers;

use super::{
    Library, Reloaded, SkillLibrary, WhenReloaded,
    directories::{DirectoryLibrary, Named, load_named},
    project_searches::ProjectSearches,
    warnings::{notes, warnings},
    watch::{self, Coverage, Debounce, Watched},
};

impl DirectoryLibrary {
    /// Creates a library that caches its results and notices changes.
    pub fn into_library(self) -> Library {
        Arc::new(Snapshots::over(self))
    }
}

/// A cache with a set of skills for each workspace.
pub(super) struct Snapshots {
    watch: bool,
    /// True if the skills of a session depend on its directories.
    by_directory: bool,
    servers: SkillServers,
    /// Guards access to the disk. This lock is held while we read from disk, and is taken before `found`.
    finder: Mutex<Finder>,
    /// The sets of the sessions. The lock is never held while the disk is read.
    found: Mutex<HashMap<Workspace, SkillSet>>,
    /// The queue of changes, once the library is watched.
    debounce: OnceLock<Arc<Debounce>>,
}

/// The part of the library that reads the disk.
struct Finder {
    skills: DirectoryLibrary,
    /// The searches of projects, by the directories of their sessions.
    projects: HashMap<Workspace, ProjectSearches>,
    /// The warnings that were logged and still apply.
    warned: HashSet<String>,
}

impl Finder {
    /// Returns the skills of a workspace that has no set yet.
    fn find(&mut self, workspace: &Workspace) -> SkillSet {
        let run = || ProjectSearches::run(&self.skills, workspace);
        let found = self.projects.entry(workspace.clone()).or_insert_with(run).found();
        self.skills.assemble(workspace, &found)
    }

    /// Searches again in the changed directories.
    fn rescan(&mut self, changes: &Changes) {
        for sources in self.skills.all_sources() {
            if sources.lock_files().into_iter().any(|file| is_touched(file, changes)) {
                sources.reload();
            }
        }
        let strict = self.skills.strict;
        for named in &mut self.skills.named {
            if let Named::Stored(skill) = named
                && is_touched(skill.path(), changes)
            {
                let loaded = load_named(skill.path(), strict);
                skill.update(loaded);
            }
        }
        for scan in self.skills.scans() {
            scan.search().rescan(&scan.discovery, changes);
        }
        for (workspace, projects) in &mut self.projects {
            projects.rescan(&self.skills, workspace, changes);
        }
    }

    /// Logs the problems of these sets. To avoid repeated messages, each problem is only logged once. Use `all` if
    /// these are all sets of the library. Then other problems are considered fixed, and will be logged again if they
    /// return.
    fn warn<'s>(&mut self, sets: impl IntoIterator<Item = &'s SkillSet>, all: bool) {
        let missing = self.skills.missing();
        let mut now: HashSet<String> = missing.into_iter().collect();
        let mut noted: HashSet<String> = HashSet::new();
        for set in sets {
            now.extend(warnings(set));
            noted.extend(notes(set));
        }
        for warning in now.difference(&self.warned) {
            tracing::warn!("{warning}");
        }
        for note in noted.difference(&self.warned) {
            tracing::info!("{note}");
        }
        now.extend(noted);
        if all {
            self.warned = now;
        } else {
            self.warned.extend(now);
        }
    }
}

impl Snapshots {
    /// Creates a cache for these skills.
    pub(super) fn over(skills: DirectoryLibrary) -> Self {
        let by_directory = skills.project.is_some() || !skills.projects.is_empty();
        let servers = skills.servers.clone();
        let watch = skills.watch && (skills.has_directories() || servers.trust().is_some());
        let finder = Finder { skills, projects: HashMap::new(), warned: HashSet::new() };
        Self {
            watch,
            by_directory,
            servers,
            finder: Mutex::new(finder),
            found: Mutex::default(),
            debounce: OnceLock::new(),
        }
    }

    /// Searches again in the changed directories, and replaces the sets that differ. Returns `None` if all sets are
    /// the same.
    fn rescan(&self, changes: &Changes) -> Option<Reloaded> {
        let started = Instant::now();
        let mut finder = self.finder.lock();
        finder.rescan(changes);
        let before = self.found.lock().clone();
        let mut after = HashMap::with_capacity(before.len());
        let mut added = HashSet::new();
        let mut removed = HashSet::new();
        let mut changed = HashSet::new();
        for (workspace, old) in &before {
            let new = finder.find(workspace);
            if old.is_alike(&new) {
                after.insert(workspace.clone(), old.clone());
                continue;
            }
            let difference = Difference::between(old, &new);
            let paths = |skills: Vec<Arc<Skill>>| {
                skills.into_iter().map(|skill| (skill.name.key(), skill.dir().map(Path::to_owned)))
            };
            added.extend(paths(difference.added));
            removed.extend(paths(difference.removed));
            changed.extend(paths(difference.changed));
            after.insert(workspace.clone(), new);
        }
        finder.warn(after.values(), true);
        let is_same = after.iter().all(|(at, new)| before.get(at).is_some_and(|old| old.ptr_eq(new)));
        let mut found = self.found.lock();
        // A session could have ended while we were searching, so keep only the workspaces that are still in use.
        after.retain(|workspace, _| found.contains_key(workspace));
        finder.projects.retain(|workspace, _| after.contains_key(workspace));
        *found = after;
        drop(found);
        // The skills of the client's servers are not in these sets.
        let is_decided = || self.servers.trust_files().iter().any(|file| is_touched(file, changes));
        (!is_same || is_decided()).then(|| Reloaded {
            added: added.len(),
            removed: removed.len(),
            changed: changed.len(),
            took: started.elapsed(),
        })
    }
}

impl Watched for Snapshots {
    fn rescan(&self, changes: &Changes) -> Option<Reloaded> {
        Self::rescan(self, changes)
    }

    fn coverage(&self) -> Coverage {
        let finder = self.finder.lock();
        let mut coverage = Coverage::default();
        // If there are too many directories, the first ones are watched. Begin with the trust files, as the user can decide in a session of
        // another proxy process. A project comes last.
        let of_projects = finder.projects.values().flat_map(|projects| finder.skills.trust_files(projects));
        for file in self.servers.trust_files().into_iter().chain(of_projects) {
            coverage.add_decisions(file);
        }
        for file in finder.skills.all_sources().flat_map(Sources::lock_files) {
            coverage.add_file(file);
        }
        for named in &finder.skills.named {
            if let Named::Stored(skill) = named {
                coverage.add_named(skill.path());
            }
        }
        for scan in finder.skills.scans() {
            coverage.add_search(&scan.discovery, &scan.search().visits);
        }
        for projects in finder.projects.values() {
            for (search, found) in projects.iter() {
                coverage.add_search(&search.discovery, &found.visits);
                coverage.add_links(&search.root);
            }
            for dir in projects.tree_directories() {
                coverage.add_tree(dir);
            }
        }
        coverage
    }
}

impl SkillLibrary for Snapshots {
    fn at(&self, workspace: &Workspace) -> SkillSet {
        let workspace = if self.by_directory { workspace.clone() } else { Workspace::default() };
        // Look here before we lock the finder, so that a session that already has its skills doesn't have to wait for
        // a search.
        if let Some(known) = self.found.lock().get(&workspace) {
            return known.clone();
        }
        let mut finder = self.finder.lock();
        if let Some(known) = self.found.lock().get(&workspace) {
            return known.clone();
        }
        finder.projects.remove(&workspace);
        let skills = finder.find(&workspace);
        finder.warn([&skills], false);
        self.found.lock().insert(workspace, skills.clone());
        if let Some(debounce) = self.debounce.get().filter(|_| self.by_directory) {
            debounce.recheck();
        }
        skills
    }

    fn servers(&self) -> SkillServers {
        self.servers.clone()
    }

    fn reload(&self) {
        self.servers.ask_again();
        self.rescan(&Changes::everything());
    }

    fn decide(&self, workspace: &Workspace, skills: &[Unapproved], trusted: bool) -> Decided {
        let decided = self.finder.lock().skills.decide(workspace, skills, trusted);
        self.rescan(&Changes::default());
        decided
    }

    fn revoke(&self, workspace: &Workspace, names: &[SkillName], skills: &[Arc<Skill>]) -> Decided {
        let decided = self.finder.lock().skills.revoke(workspace, names, skills);
        self.rescan(&Changes::default());
        decided
    }

    fn leave(&self, workspace: &Workspace) {
        self.found.lock().remove(workspace);
        // If a search is running, it will remove the project, so we don't have to wait for it here.
        if let Some(mut finder) = self.finder.try_lock() {
            finder.projects.remove(workspace);
        }
    }

    fn watch(self: Arc<Self>, changed: WhenReloaded) {
        // This is called by the watch, and also by sources that are fetched in the background.
        let changed = Arc::new(Mutex::new(changed));
        let library = Arc::downgrade(&self);
        let notified = Arc::clone(&changed);
        let notify: Notify = Arc::new(move || {
            let reloaded = library.upgrade().and_then(|library| library.rescan(&Changes::default()));
            if let Some(reloaded) = reloaded {
                notified.lock()(reloaded);
            }
        });
        let notified = Arc::clone(&changed);
        let debounce = self.watch.then(|| Arc::clone(self.debounce.get_or_init(Arc::default)));
        let client_changed = move || {
            // The decisions about a new server have to be watched.
            if let Some(debounce) = &debounce {
                debounce.recheck();
            }
            notified.lock()(Reloaded::default());
        };
        self.servers.start(&notify, Arc::new(client_changed));
        let sources: Vec<Sources> = self.finder.lock().skills.all_sources().cloned().collect();
        // Loading the sources can take long, and the client waits for the answer to its first request.
        let work = move || sources.iter().for_each(|sources| sources.watch(Arc::clone(&notify)));
        if let Err(error) = thread::Builder::new().name("sources".to_owned()).spawn(work) {
            tracing::warn!("cannot fetch missing sources: {error}");
        }
        if self.watch {
            let debounce = self.debounce.get_or_init(Arc::default);
            let changed = move |reloaded| changed.lock()(reloaded);
            watch::start(Arc::downgrade(&self), Arc::clone(debounce), Box::new(changed));
        }
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        if let Some(debounce) = self.debounce.get() {
            debounce.close();
        }
    }
}

/// Returns true if a named skill should be loaded again. This includes changes to any symbolic link in the path.
fn is_touched(path: &Path, changes: &Changes) -> bool {
    let real = dunce::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    changes.touches(&real) || changes.replaces(&real) || changes.replaces(path)
}

#[cfg(test)]
mod tests;
