//! The skills that flags and configuration name, as they are found, and found again.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    thread,
};

use skills_core::{
    SkillSet,
    discovery::{Discovery, load_dir, project_roots},
};

use crate::mcp::{Library, SkillLibrary};

/// The skills that were found, by precedence.
pub struct Skills {
    named: SkillSet,
    rest: Found,
    remote: SkillSet,
    project: Option<Discovery>,
}

/// What a scan finds. It runs beside the start of the agent; the first to ask waits for it.
#[derive(Clone)]
pub(super) struct Found {
    how: Discovery,
    skills: Arc<LazyLock<SkillSet, Box<dyn FnOnce() -> SkillSet + Send>>>,
}

impl Found {
    pub(super) fn start(how: Discovery) -> Self {
        let is_nothing = how.roots.is_empty();
        let discovery = how.clone();
        let find: Box<dyn FnOnce() -> SkillSet + Send> = Box::new(move || discovery.find());
        let found = Self { how, skills: Arc::new(LazyLock::new(find)) };
        if !is_nothing {
            let ahead = found.clone();
            // Without the thread whoever asks first does the work.
            drop(
                thread::Builder::new().name("discovery".to_owned()).spawn(move || drop(ahead.get().clone())),
            );
        }
        found
    }

    fn get(&self) -> &SkillSet {
        &self.skills
    }
}

impl Skills {
    /// The skills that were named, those of a scan, those of web sites, and those that `project` finds from the directory
    /// of a session.
    pub(super) fn new(named: SkillSet, rest: Found, remote: SkillSet, project: Option<Discovery>) -> Self {
        Self { named, rest, remote, project }
    }

    /// The skills of a session that works in `cwd`.
    pub fn at(&self, cwd: Option<&Path>) -> SkillSet {
        let mut builder = SkillSet::builder();
        builder.extend(&self.named);
        if let (Some(project), Some(cwd)) = (&self.project, cwd) {
            let mut discovery = project.clone();
            discovery.roots = project_roots(cwd);
            discovery.run(&mut builder);
        }
        builder.extend(self.rest.get());
        builder.extend(&self.remote);
        builder.build()
    }

    /// Looks again at everything that is on disk. A skill that was named and cannot be loaded any more stays as it was.
    fn look_again(&mut self) {
        let mut named = SkillSet::builder();
        for entry in self.named.entries() {
            match entry.skill.dir().map(load_dir) {
                Some(Ok((skill, diagnostics))) => {
                    named.add(skill, diagnostics);
                }
                Some(Err(error)) => {
                    let mut diagnostics = entry.diagnostics.clone();
                    diagnostics.extend(error.diagnostics);
                    named.add_shared(Arc::clone(&entry.skill), diagnostics);
                }
                None => {
                    named.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
                }
            }
        }
        self.named = named.build();
        self.rest = Found::start(self.rest.how.clone());
    }

    /// The same as something that remembers what it found.
    pub fn into_library(self) -> Library {
        Arc::new(Remembering(Mutex::new((self, HashMap::new()))))
    }
}

/// Skills, and those of each directory that was asked for.
struct Remembering(Mutex<(Skills, HashMap<Option<PathBuf>, SkillSet>)>);

impl SkillLibrary for Remembering {
    fn at(&self, cwd: Option<&Path>) -> SkillSet {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (skills, found) = &mut *state;
        let cwd = cwd.filter(|_| skills.project.is_some());
        found.entry(cwd.map(Path::to_owned)).or_insert_with(|| told_of(skills.at(cwd))).clone()
    }

    fn reload(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (skills, found) = &mut *state;
        skills.look_again();
        found.clear();
    }
}

/// A bad skill is a warning in the log, never an outage.
fn told_of(skills: SkillSet) -> SkillSet {
    for skipped in skills.skipped() {
        for finding in skipped.diagnostics.iter().filter(|finding| finding.is_error()) {
            tracing::warn!("skipped {}: {}", skipped.path.display(), finding.message);
        }
    }
    for shadowed in skills.shadowed() {
        tracing::warn!("skill `{}` is shadowed by another of this name", shadowed.name);
    }
    skills
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_core::discovery::Root;

    #[test]
    fn finds_again() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, description: &str| {
            let dir = directory.path().join(name);
            std::fs::create_dir_all(&dir).unwrap();
            let name = name.rsplit('/').next().unwrap();
            let text = format!("---\nname: {name}\ndescription: {description}\n---\nx\n");
            std::fs::write(dir.join("SKILL.md"), text).unwrap();
            dir
        };
        let named = write("named/first", "old");
        write("roots/second", "old");
        let mut set = SkillSet::builder();
        let (skill, diagnostics) = load_dir(&named).unwrap();
        set.add(skill, diagnostics);
        let roots = Discovery::new(vec![Root::scanned(directory.path().join("roots"))]);
        let library = Skills::new(set.build(), Found::start(roots), SkillSet::default(), None).into_library();
        let seen = || {
            let set = library.at(None);
            set.iter().map(|skill| format!("{}: {}", skill.name, skill.description)).collect::<Vec<_>>()
        };
        assert_eq!(seen(), ["first: old", "second: old"]);
        write("named/first", "new");
        write("roots/third", "new");
        std::fs::remove_dir_all(directory.path().join("roots/second")).unwrap();
        assert_eq!(seen(), ["first: old", "second: old"]);
        library.reload();
        assert_eq!(seen(), ["first: new", "third: new"]);
        // What was named stays, and says why.
        std::fs::remove_file(named.join("SKILL.md")).unwrap();
        library.reload();
        assert_eq!(seen(), ["first: new", "third: new"]);
        assert!(
            library
                .at(None)
                .entry("first")
                .unwrap()
                .diagnostics
                .iter()
                .any(skills_core::Diagnostic::is_error)
        );
    }
}
