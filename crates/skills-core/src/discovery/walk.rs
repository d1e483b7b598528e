//! Walks the directories below a root, level by level. It uses several threads, but the result is always the same.

mod candidate;

use std::{
    borrow::Borrow,
    collections::HashMap,
    io,
    num::NonZero,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use self::candidate::Candidate;
use super::{
    Changes, Discovery, Root,
    cache::settle,
    limits,
    load::{Child, LoadError, Visit, unreadable},
    may_be_absent,
    names::is_hidden,
    progress::{IN_SKILLS, Progress, max_of_scope},
};
use crate::{
    diagnostic::Diagnostic,
    order,
    set::Skipped,
    skill::{Scope, Skill},
};

/// The number of directories that are visited before the limits are checked again.
const BATCH: usize = 1024;

/// The number of directories that a thread takes at a time.
const CHUNK: usize = 16;

/// The maximum number of threads. More threads would only wait for the file system.
const MAX_THREADS: usize = 8;

/// The skills of a root, sorted by path. Skills in hidden directories come last.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) skills: Vec<(Arc<Skill>, Vec<Diagnostic>)>,
    pub(super) skipped: Vec<Skipped>,
}

/// The sort key of a skill within a root.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    is_hidden: bool,
    path: PathBuf,
}

/// The visits of the previous search, the changes since then, and the visits of this search.
pub(super) struct Memory<'a> {
    pub(super) before: HashMap<Arc<Path>, Arc<Visit>>,
    pub(super) changes: &'a Changes,
    pub(super) now: HashMap<Arc<Path>, Arc<Visit>>,
}

/// Visits the directories below `root`, except those that `progress` has seen. Finds at most `space` skills.
pub(super) fn walk(
    root: &Root,
    search: &Discovery,
    space: usize,
    progress: &mut Progress,
    memory: Option<&mut Memory<'_>>,
) -> Found {
    // This path is canonical, and was visited below another root. Looking up each part of it again takes long for many roots.
    if progress.seen.contains(&root.path) || progress.is_full(&search.limits) {
        return Found::default();
    }
    let real = progress.has_time().then(|| progress.resolve(&root.path));
    let boundary = root.boundary.as_deref();
    let boundary = boundary.map(|dir| dunce::canonicalize(dir).unwrap_or_else(|_| dir.to_owned()));
    let mut walk = Walk {
        root,
        boundary,
        search,
        space,
        progress,
        memory,
        plain: 0,
        in_skills: 0,
        leading_out: None,
        unresolved: 0,
        skills: Vec::new(),
        skipped: Vec::new(),
    };
    match real {
        Some(Ok(real)) if walk.leads_out(&real) => walk.refuse(root.path.clone(), real),
        Some(Ok(real)) => walk.run(real),
        Some(Err(error)) if error.kind() == io::ErrorKind::NotFound && may_be_absent(root.scope) => {}
        Some(Err(error)) => walk.report(&root.path, unreadable(&error)),
        None => walk.report(&root.path, limits::slow_links(None)),
    }
    walk.finish()
}

struct Walk<'a, 'm> {
    root: &'a Root,
    /// The canonical path of the directory that links must not lead out of.
    boundary: Option<PathBuf>,
    search: &'a Discovery,
    space: usize,
    progress: &'a mut Progress,
    memory: Option<&'a mut Memory<'m>>,
    /// The number of visited directories that are not skills, nor in a skill.
    plain: usize,
    /// The number of visited directories within skills.
    in_skills: usize,
    /// The links that were not followed because they lead out of the boundary.
    leading_out: Option<LeadingOut>,
    /// The number of links that were not followed because the time for links was over.
    unresolved: usize,
    skills: Vec<(Place, Arc<Skill>, Vec<Diagnostic>)>,
    skipped: Vec<Skipped>,
}

/// The number of links that lead out of the boundary, with the first link and its target.
struct LeadingOut {
    number: usize,
    link: PathBuf,
    target: PathBuf,
}

/// The diagnostic of a limit that ends the walk.
struct LimitReached(Diagnostic);

impl Walk<'_, '_> {
    fn run(&mut self, real: PathBuf) {
        // If the root is a link, we keep the name of the link.
        let path = if self.root.path.file_name() == real.file_name() {
            real.clone()
        } else {
            self.root.path.clone()
        };
        let is_new = self.memory.as_ref().is_some_and(|memory| memory.changes.replaces(&real));
        let real = (path != real).then_some(real);
        let mut level = vec![Candidate { path, real, is_new, is_hidden: false, is_in_skill: false }];
        for _ in 0..=self.search.limits.max_depth {
            let mut next = Vec::new();
            let mut candidates = level.into_iter();
            loop {
                let new = candidates
                    .by_ref()
                    .filter(|candidate| self.progress.seen.insert(candidate.real().to_owned()));
                let batch: Vec<_> = new.take(BATCH).collect();
                if batch.is_empty() {
                    break;
                }
                if let Err(LimitReached(diagnostic)) = self.visit_batch(&batch, &mut next) {
                    return self.report(&self.root.path, diagnostic);
                }
            }
            // Visit hidden directories last, so that they don't use up the limits.
            order::sort_by_key(&mut next, |candidate| candidate.is_hidden);
            level = next;
        }
        // Most directories in a skill have only its files, so there is no need to mention those that are too deep.
        level.retain(|candidate| !candidate.is_in_skill && !self.progress.seen.contains(candidate.real()));
        if let Some(first) = level.first() {
            let diagnostic = limits::too_deep(self.search.limits.max_depth, level.len(), &first.path);
            self.report(&self.root.path, diagnostic);
        }
    }

    /// Visits directories and adds their subdirectories to `next`.
    fn visit_batch(&mut self, batch: &[Candidate], next: &mut Vec<Candidate>) -> Result<(), LimitReached> {
        for (candidate, visited) in batch.iter().zip(self.visit_all(batch)) {
            match visited.as_deref() {
                Ok(Visit::Skill { skill, diagnostics, broken, children }) => {
                    self.enter(candidate, children.as_deref().unwrap_or_default(), true, next);
                    if !self.search.filter.takes(&skill.name) {
                        continue;
                    }
                    if self.skills.len() >= self.space {
                        return Err(LimitReached(limits::too_many_skills(self.search.limits.max_skills)));
                    }
                    let mut diagnostics = diagnostics.clone();
                    diagnostics.extend(broken.iter().flat_map(|error| error.diagnostics.iter().cloned()));
                    let place = Place { is_hidden: candidate.is_hidden, path: candidate.path.clone() };
                    self.skills.push((place, Arc::clone(skill), diagnostics));
                    continue;
                }
                Ok(Visit::Plain(broken, children)) => {
                    let skipped = |error: &LoadError| Skipped::new(&error.path, error.diagnostics.clone());
                    self.skipped.extend(broken.iter().map(skipped));
                    self.enter(candidate, children, candidate.is_in_skill, next);
                }
                Err(error) => self.report(&candidate.path, unreadable(error)),
            }
            if candidate.is_in_skill {
                continue;
            }
            self.plain += 1;
            self.count()?;
            let max = self.search.limits.max_dirs;
            if self.plain > max {
                return Err(LimitReached(limits::too_many_directories("without skills", max)));
            }
        }
        Ok(())
    }

    /// Counts a directory that is not a skill.
    fn count(&mut self) -> Result<(), LimitReached> {
        let limits = &self.search.limits;
        if self.progress.count(limits) {
            return Ok(());
        }
        Err(LimitReached(limits::too_many_directories("in all places together", max_of_scope(limits))))
    }

    /// Adds the subdirectories of a directory to `next`. `is_in_skill` is true if they belong to a skill.
    fn enter(&mut self, above: &Candidate, children: &[Child], is_in_skill: bool, next: &mut Vec<Candidate>) {
        let hidden_too = matches!(self.root.scope, Scope::Scanned | Scope::Remote);
        for child in children.iter().filter(|child| hidden_too || !is_hidden(&child.name)) {
            if is_in_skill {
                let max = self.search.limits.max_dirs.saturating_mul(IN_SKILLS);
                if self.in_skills > max {
                    return;
                }
                self.in_skills += 1;
                if let Err(LimitReached(diagnostic)) = self.count() {
                    self.in_skills = usize::MAX;
                    self.report(&self.root.path, diagnostic);
                    return;
                }
                if self.in_skills > max {
                    self.report(&self.root.path, limits::too_many_directories("within skills", max));
                    return;
                }
            }
            if child.is_link && !self.progress.has_time() {
                self.unresolved += 1;
                continue;
            }
            match above.child(child, self.memory.as_deref(), self.progress) {
                Some(child) if self.leads_out(child.real()) => {
                    let Candidate { path, real, .. } = child;
                    self.refuse(path, real.unwrap_or_default());
                }
                Some(child) => next.push(Candidate { is_in_skill, ..child }),
                None => {}
            }
        }
    }

    /// Visits directories, and returns the results in the same order. Unchanged directories are taken from the cache.
    fn visit_all(&mut self, batch: &[Candidate]) -> Vec<io::Result<Arc<Visit>>> {
        let root = self.root;
        let nested = self.search.nested;
        let Some(memory) = &mut self.memory else {
            return visit_all(batch, root, nested).into_iter().map(|visit| visit.map(Arc::new)).collect();
        };
        let is_known = |candidate: &Candidate| {
            let is_unchanged = !candidate.is_new && !memory.changes.touches(candidate.real());
            let known = memory.before.get(candidate.real()).filter(|_| is_unchanged);
            known.is_some_and(|visit| is_of(visit, root, candidate))
        };
        let known: Vec<bool> = batch.iter().map(is_known).collect();
        let unknown = batch.iter().zip(&known).filter(|(_, known)| !**known).map(|(candidate, _)| candidate);
        let mut visited = visit_all(&unknown.collect::<Vec<_>>(), root, nested).into_iter();
        let visits = batch.iter().zip(known).map(|(candidate, is_known)| {
            let (dir, before) = memory.before.remove_entry(candidate.real()).unzip();
            let visit = match before {
                Some(before) if is_known => before,
                before => match visited.next() {
                    Some(Ok(visit)) => settle(visit, before.as_ref()),
                    Some(Err(error)) => return Err(error),
                    None => return Err(io::ErrorKind::Interrupted.into()),
                },
            };
            let dir = dir.unwrap_or_else(|| {
                visit
                    .dir()
                    .filter(|dir| ***dir == *candidate.real())
                    .map_or_else(|| candidate.real().into(), Arc::clone)
            });
            memory.now.insert(dir, Arc::clone(&visit));
            Ok(visit)
        });
        visits.collect()
    }

    /// Returns true if a canonical path is outside of the boundary.
    fn leads_out(&self, real: &Path) -> bool {
        let is_reachable = || self.root.reachable.iter().any(|dir| real.starts_with(dir));
        self.boundary.as_ref().is_some_and(|boundary| !real.starts_with(boundary) && !is_reachable())
    }

    fn refuse(&mut self, link: PathBuf, target: PathBuf) {
        self.leading_out.get_or_insert(LeadingOut { number: 0, link, target }).number += 1;
    }

    fn report(&mut self, path: &Path, diagnostic: Diagnostic) {
        self.skipped.push(Skipped::new(path, vec![diagnostic]));
    }

    fn finish(mut self) -> Found {
        if let Some(LeadingOut { number, link, target }) = self.leading_out.take() {
            self.report(&self.root.path, limits::leading_out(number, &link, &target));
        }
        if self.unresolved > 0 {
            self.report(&self.root.path, limits::slow_links(Some(self.unresolved)));
        }
        order::sort_by(&mut self.skills, |a, b| a.0.cmp(&b.0));
        order::sort_by(&mut self.skipped, |a, b| a.path.cmp(&b.path));
        let skills = self.skills.into_iter().map(|(_, skill, diagnostics)| (skill, diagnostics)).collect();
        Found { skills, skipped: self.skipped }
    }
}

/// Returns true if a cached visit is valid for this candidate: it was found in the same way, and the name is that of the
/// directory.
fn is_of(visit: &Visit, root: &Root, candidate: &Candidate) -> bool {
    match visit {
        Visit::Skill { skill, .. } => {
            (skill.scope, &skill.session_root) == (root.scope, &root.session_root)
                && candidate.path.file_name() == candidate.real().file_name()
        }
        Visit::Plain(..) => true,
    }
}

/// Visits directories, in parallel if there are many. The results are in the order of `batch`.
fn visit_all<C: Borrow<Candidate> + Sync>(batch: &[C], root: &Root, nested: bool) -> Vec<io::Result<Visit>> {
    let threads =
        thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS).min(batch.len() / CHUNK);
    if threads < 2 {
        return batch.iter().map(|candidate| candidate.borrow().visit(root, nested)).collect();
    }
    let chunks: Vec<&[C]> = batch.chunks(CHUNK).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = chunks.get(index) else { return done };
            done.push((
                index,
                chunk.iter().map(|candidate| candidate.borrow().visit(root, nested)).collect::<Vec<_>>(),
            ));
        }
    };
    let mut done = thread::scope(|scope| {
        // If we can't start more threads, the existing ones will just do all the work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    order::sort_by_key(&mut done, |(index, _)| *index);
    done.into_iter().flat_map(|(_, visits)| visits).collect()
}

#[cfg(all(test, unix))]
mod tests;
