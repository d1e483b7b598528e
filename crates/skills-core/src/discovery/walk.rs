//! The walk below one root: level by level, on a few threads, with the same result as on one.

use std::{
    borrow::Borrow,
    collections::{HashMap, HashSet},
    io,
    num::NonZero,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use super::{
    Changes, Discovery, Root,
    cache::settle,
    load::{Child, Visit, unreadable, visit},
    may_be_absent,
    names::is_hidden,
};
use crate::{
    diagnostic::Diagnostic,
    set::Skipped,
    skill::{Scope, Skill},
};

/// Directories that are visited before the limits are checked again.
const BATCH: usize = 1024;

/// Directories that a thread takes at a time.
const CHUNK: usize = 16;

/// More threads than this wait for the file system, not for each other.
const MAX_THREADS: usize = 8;

/// What one root has, sorted by path; skills in hidden directories come last.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) skills: Vec<(Arc<Skill>, Vec<Diagnostic>)>,
    pub(super) skipped: Vec<Skipped>,
}

/// Where a skill comes among those of a root.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    is_hidden: bool,
    path: PathBuf,
}

/// A directory to visit.
#[derive(Debug)]
struct Candidate {
    /// Its path as a user would type it, by which it is sorted and named.
    path: PathBuf,
    /// Its canonical path, if that differs.
    real: Option<PathBuf>,
    /// It is in a directory that came or was replaced.
    is_new: bool,
    /// It is hidden, or in a hidden directory.
    is_hidden: bool,
}

/// What the search before this one saw, what has changed since, and what this one sees.
pub(super) struct Memory<'a> {
    pub(super) before: HashMap<Arc<Path>, Arc<Visit>>,
    pub(super) changes: &'a Changes,
    pub(super) now: HashMap<Arc<Path>, Arc<Visit>>,
}

impl Candidate {
    fn real(&self) -> &Path {
        self.real.as_deref().unwrap_or(&self.path)
    }

    fn visit(&self, scope: Scope) -> io::Result<Visit> {
        visit(self.real(), self.path.file_name().unwrap_or_default(), scope)
    }

    /// A directory in this one, by its name or by a link; `None` for a link that leads to no directory.
    fn child(&self, child: &Child, memory: Option<&Memory<'_>>) -> Option<Self> {
        let path = self.path.join(&child.name);
        let real = if child.is_link {
            Some(dunce::canonicalize(&path).ok().filter(|real| real.is_dir())?)
        } else {
            self.real.as_ref().map(|real| real.join(&child.name))
        };
        let is_hidden = self.is_hidden || is_hidden(&child.name);
        let mut child = Self { path, real, is_new: self.is_new, is_hidden };
        child.is_new |= memory.is_some_and(|memory| memory.changes.trees.contains(child.real()));
        Some(child)
    }
}

/// Visits what is below `root`; each canonical directory once, as `seen` knows.
pub(super) fn walk(
    root: &Root,
    search: &Discovery,
    space: usize,
    seen: &mut HashSet<PathBuf>,
    memory: Option<&mut Memory<'_>>,
) -> Found {
    let (skills, skipped) = (Vec::new(), Vec::new());
    let boundary = root.boundary.as_deref();
    let boundary = boundary.map(|dir| dunce::canonicalize(dir).unwrap_or_else(|_| dir.to_owned()));
    let mut walk =
        Walk { root, boundary, search, space, seen, memory, plain: 0, leading_out: None, skills, skipped };
    match dunce::canonicalize(&root.path) {
        Ok(real) if walk.leads_out(&real) => walk.refuse(root.path.clone(), real),
        Ok(real) => walk.run(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound && may_be_absent(root.scope) => {}
        Err(error) => walk.report(&root.path, unreadable(&error)),
    }
    walk.finish()
}

struct Walk<'a, 'm> {
    root: &'a Root,
    /// The canonical directory that no link may lead out of.
    boundary: Option<PathBuf>,
    search: &'a Discovery,
    space: usize,
    seen: &'a mut HashSet<PathBuf>,
    memory: Option<&'a mut Memory<'m>>,
    /// How many directories turned out not to be skills.
    plain: usize,
    /// The links that were not followed.
    leading_out: Option<LeadingOut>,
    skills: Vec<(Place, Arc<Skill>, Vec<Diagnostic>)>,
    skipped: Vec<Skipped>,
}

/// Links that lead out of the boundary: how many, and the first of them with where it leads.
struct LeadingOut {
    number: usize,
    link: PathBuf,
    target: PathBuf,
}

/// A limit that ends the walk.
struct LimitReached(Diagnostic);

impl Walk<'_, '_> {
    fn run(&mut self, real: PathBuf) {
        // The root goes by the name it was given, which may be that of a link.
        let path = if self.root.path.file_name() == real.file_name() {
            real.clone()
        } else {
            self.root.path.clone()
        };
        let is_new = self.memory.as_ref().is_some_and(|memory| memory.changes.replaces(&real));
        let real = (path != real).then_some(real);
        let mut level = vec![Candidate { path, real, is_new, is_hidden: false }];
        for _ in 0..=self.search.limits.max_depth {
            let mut next = Vec::new();
            let mut candidates = level.into_iter();
            loop {
                let new = candidates.by_ref().filter(|it| self.seen.insert(it.real().to_owned()));
                let batch: Vec<_> = new.take(BATCH).collect();
                if batch.is_empty() {
                    break;
                }
                if let Err(LimitReached(diagnostic)) = self.visit_batch(&batch, &mut next) {
                    return self.report(&self.root.path, diagnostic);
                }
            }
            // Hidden directories must not use up the limits before the others have been visited.
            next.sort_by_key(|it| it.is_hidden);
            level = next;
        }
        level.retain(|it| !self.seen.contains(it.real()));
        if let Some(first) = level.first() {
            let diagnostic = self.too_deep(level.len(), &first.path);
            self.report(&self.root.path, diagnostic);
        }
    }

    /// Visits directories and schedules those in them.
    fn visit_batch(&mut self, batch: &[Candidate], next: &mut Vec<Candidate>) -> Result<(), LimitReached> {
        for (candidate, visited) in batch.iter().zip(self.visit_all(batch)) {
            match visited.as_deref() {
                Ok(Visit::Skill { skill, diagnostics, broken }) => {
                    if !self.search.filter.takes(&skill.name) {
                        continue;
                    }
                    if self.skills.len() >= self.space {
                        return Err(self.too_many_skills());
                    }
                    let mut diagnostics = diagnostics.clone();
                    diagnostics.extend(broken.iter().flat_map(|error| error.diagnostics.iter().cloned()));
                    let place = Place { is_hidden: candidate.is_hidden, path: candidate.path.clone() };
                    self.skills.push((place, Arc::clone(skill), diagnostics));
                    continue;
                }
                Ok(Visit::Plain(broken, children)) => {
                    let broken = broken.iter();
                    self.skipped.extend(broken.map(|it| Skipped::new(&it.path, it.diagnostics.clone())));
                    let hidden_too = matches!(self.root.scope, Scope::Scanned | Scope::Remote);
                    for child in children.iter().filter(|it| hidden_too || !is_hidden(&it.name)) {
                        match candidate.child(child, self.memory.as_deref()) {
                            Some(child) if self.leads_out(child.real()) => {
                                let Candidate { path, real, .. } = child;
                                self.refuse(path, real.unwrap_or_default());
                            }
                            Some(child) => next.push(child),
                            None => {}
                        }
                    }
                }
                Err(error) => self.report(&candidate.path, unreadable(error)),
            }
            self.plain += 1;
            if self.plain > self.search.limits.max_dirs {
                return Err(self.too_many_directories());
            }
        }
        Ok(())
    }

    /// What is in each of these directories, in their order: as the last search saw it where nothing has changed.
    fn visit_all(&mut self, batch: &[Candidate]) -> Vec<io::Result<Arc<Visit>>> {
        let scope = self.root.scope;
        let Some(memory) = &mut self.memory else {
            return visit_all(batch, scope).into_iter().map(|visit| visit.map(Arc::new)).collect();
        };
        let is_known = |it: &Candidate| {
            let known =
                memory.before.get(it.real()).filter(|_| !it.is_new && !memory.changes.touches(it.real()));
            known.is_some_and(|visit| is_of(visit, scope, it))
        };
        let known: Vec<bool> = batch.iter().map(is_known).collect();
        let unknown = batch.iter().zip(&known).filter(|(_, known)| !**known).map(|(it, _)| it);
        let mut visited = visit_all(&unknown.collect::<Vec<_>>(), scope).into_iter();
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

    /// Whether a canonical path is beyond the directory that no link may lead out of.
    fn leads_out(&self, real: &Path) -> bool {
        self.boundary.as_ref().is_some_and(|boundary| !real.starts_with(boundary))
    }

    fn refuse(&mut self, link: PathBuf, target: PathBuf) {
        self.leading_out.get_or_insert(LeadingOut { number: 0, link, target }).number += 1;
    }

    fn too_deep(&self, number: usize, example: &Path) -> Diagnostic {
        let message = format!(
            "{number} {} more than {} levels below were not searched, for example {}",
            if number == 1 { "directory" } else { "directories" },
            self.search.limits.max_depth,
            example.display()
        );
        Diagnostic::warning("too-deep", message).help("give a directory nearer to the skills")
    }

    fn too_many_skills(&self) -> LimitReached {
        let message =
            format!("there are more than {} skills; the others were left out", self.search.limits.max_skills);
        let help = "raise `max_skills`, or include fewer names";
        LimitReached(Diagnostic::warning("too-many-skills", message).help(help))
    }

    fn too_many_directories(&self) -> LimitReached {
        let message = format!(
            "more than {} directories here are no skills; the rest was not searched",
            self.search.limits.max_dirs
        );
        let help = "give a directory nearer to the skills";
        LimitReached(Diagnostic::warning("too-many-directories", message).help(help))
    }

    fn report(&mut self, path: &Path, diagnostic: Diagnostic) {
        self.skipped.push(Skipped::new(path, vec![diagnostic]));
    }

    fn finish(mut self) -> Found {
        if let Some(LeadingOut { number, link, target }) = self.leading_out.take() {
            let (link, target) = (link.display(), target.display());
            let message = match number {
                1 => format!("{link} leads out of the project, to {target}, and is not followed"),
                _ => format!(
                    "{number} links lead out of the project and are not followed, for example {link} to {target}"
                ),
            };
            let diagnostic = Diagnostic::error("link-out-of-project", message);
            let help = "if it is yours, give the directory that it leads to as one to scan";
            self.report(&self.root.path, diagnostic.help(help));
        }
        self.skills.sort_by(|a, b| a.0.cmp(&b.0));
        self.skipped.sort_by(|a, b| a.path.cmp(&b.path));
        let skills = self.skills.into_iter().map(|(_, skill, diagnostics)| (skill, diagnostics)).collect();
        Found { skills, skipped: self.skipped }
    }
}

/// Whether this is what a visit would find: the name and the scope that a directory is known by are part of that.
fn is_of(visit: &Visit, scope: Scope, candidate: &Candidate) -> bool {
    match visit {
        Visit::Skill { skill, .. } => {
            skill.scope == scope && candidate.path.file_name() == candidate.real().file_name()
        }
        Visit::Plain(..) => true,
    }
}

/// Visits all, in parallel when it pays; the results are in the order of `batch`.
fn visit_all<C: Borrow<Candidate> + Sync>(batch: &[C], scope: Scope) -> Vec<io::Result<Visit>> {
    let threads =
        thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS).min(batch.len() / CHUNK);
    if threads < 2 {
        return batch.iter().map(|it| it.borrow().visit(scope)).collect();
    }
    let chunks: Vec<&[C]> = batch.chunks(CHUNK).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = chunks.get(index) else { return done };
            done.push((index, chunk.iter().map(|it| it.borrow().visit(scope)).collect::<Vec<_>>()));
        }
    };
    let mut done = thread::scope(|scope| {
        // Where there can be no more threads, those that are there do it all.
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
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().flat_map(|(_, visits)| visits).collect()
}
