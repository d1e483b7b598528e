//! The walk below one root: level by level, on a few threads, with the same result as on one.

use std::{
    collections::HashSet,
    ffi::OsString,
    io,
    num::NonZero,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    Discovery, Root,
    load::{Child, Visit, unreadable, visit},
    may_be_absent,
};
use crate::{Diagnostic, Skill, set::Skipped};

/// Directories that are visited before the limits are checked again.
const BATCH: usize = 1024;

/// Directories that a thread takes at a time.
const CHUNK: usize = 16;

/// More threads than this wait for the file system, not for each other.
const MAX_THREADS: usize = 8;

/// What one root has, sorted by path.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) skills: Vec<(Skill, Vec<Diagnostic>)>,
    pub(super) skipped: Vec<Skipped>,
}

/// A directory to visit.
#[derive(Debug)]
struct Candidate {
    /// Its path as somebody would type it, which sorts and names it.
    path: PathBuf,
    /// Its canonical path, if that is another.
    real: Option<PathBuf>,
}

impl Candidate {
    fn real(&self) -> &Path {
        self.real.as_deref().unwrap_or(&self.path)
    }

    fn visit(&self) -> io::Result<Visit> {
        visit(self.real(), self.path.file_name().unwrap_or_default())
    }

    /// A directory in this one; `None` for a link that leads to no directory.
    fn child(&self, child: Child) -> Option<Self> {
        let path = self.path.join(&child.name);
        let real = if child.is_link {
            Some(dunce::canonicalize(&path).ok().filter(|real| real.is_dir())?)
        } else {
            self.real.as_ref().map(|real| real.join(&child.name))
        };
        Some(Self { path, real })
    }
}

/// Visits what is below `root`; each canonical directory once, as `seen` knows.
pub(super) fn walk(root: &Root, search: &Discovery, space: usize, seen: &mut HashSet<PathBuf>) -> Found {
    let mut walk = Walk { root, search, space, seen, plain: 0, skills: Vec::new(), skipped: Vec::new() };
    match dunce::canonicalize(&root.path) {
        Ok(real) => walk.run(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound && may_be_absent(root.scope) => {}
        Err(error) => walk.report(&root.path, unreadable(&error)),
    }
    walk.finish()
}

struct Walk<'a> {
    root: &'a Root,
    search: &'a Discovery,
    space: usize,
    seen: &'a mut HashSet<PathBuf>,
    /// How many directories turned out not to be skills.
    plain: usize,
    skills: Vec<(PathBuf, Skill, Vec<Diagnostic>)>,
    skipped: Vec<Skipped>,
}

/// A limit that ends the walk.
struct LimitReached(Diagnostic);

impl Walk<'_> {
    fn run(&mut self, real: PathBuf) {
        // The root goes by the name it was given, which may be that of a link.
        let path = if self.root.path.file_name() == real.file_name() {
            real.clone()
        } else {
            self.root.path.clone()
        };
        let mut level = vec![Candidate { real: (path != real).then_some(real), path }];
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
        for (candidate, visited) in batch.iter().zip(visit_all(batch)) {
            match visited {
                Ok(Visit::Skill(skill, diagnostics)) => {
                    if !self.search.filter.takes(&skill.name) {
                        continue;
                    }
                    if self.skills.len() >= self.space {
                        return Err(self.too_many_skills());
                    }
                    self.skills.push((candidate.path.clone(), *skill, diagnostics));
                    continue;
                }
                Ok(Visit::Plain(broken, mut children)) => {
                    self.skipped.extend(broken.map(|it| Skipped::new(it.path, it.diagnostics)));
                    children.retain(|child| is_searched(&child.name));
                    children.sort_unstable_by(|a, b| a.name.cmp(&b.name));
                    next.extend(children.into_iter().filter_map(|child| candidate.child(child)));
                }
                Err(error) => self.report(&candidate.path, unreadable(&error)),
            }
            self.plain += 1;
            if self.plain > self.search.limits.max_dirs {
                return Err(self.too_many_directories());
            }
        }
        Ok(())
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
        self.skills.sort_by(|a, b| a.0.cmp(&b.0));
        self.skipped.sort_by(|a, b| a.path.cmp(&b.path));
        let skills = self.skills.into_iter().map(|(_, skill, diagnostics)| (skill, diagnostics)).collect();
        Found { skills, skipped: self.skipped }
    }
}

/// Visits all, in parallel when it pays; the results are in the order of `batch`.
fn visit_all(batch: &[Candidate]) -> Vec<io::Result<Visit>> {
    let threads =
        thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS).min(batch.len() / CHUNK);
    if threads < 2 {
        return batch.iter().map(Candidate::visit).collect();
    }
    let chunks: Vec<&[Candidate]> = batch.chunks(CHUNK).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = chunks.get(index) else { return done };
            done.push((index, chunk.iter().map(Candidate::visit).collect::<Vec<_>>()));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
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

/// Whether a directory with this name may have skills.
fn is_searched(name: &OsString) -> bool {
    let bytes = name.as_encoded_bytes();
    match bytes {
        [b'.', ..] => matches!(bytes, b".skills" | b".agents" | b".claude"),
        _ => !matches!(bytes, b"node_modules" | b"target"),
    }
}
