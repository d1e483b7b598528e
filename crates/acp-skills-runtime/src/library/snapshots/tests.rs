//! Tests of searching and searching again.

use std::{fs, path::PathBuf, thread};

use skills_core::{
    Diagnostic,
    discovery::{Discovery, NamedSkill, Root, load_dir},
    set::Skipped,
};

use super::*;
use crate::library::{Library, Scan};

/// A library with the named skill `named/first`, the skills below `roots`, and the projects of sessions.
struct Fixture {
    directory: tempfile::TempDir,
    library: Library,
}

fn write(base: &Path, name: &str, description: &str) -> PathBuf {
    let dir = base.join(name);
    fs::create_dir_all(&dir).unwrap();
    let name = name.rsplit('/').next().unwrap();
    fs::write(dir.join("SKILL.md"), format!("---\nname: {name}\ndescription: {description}\n---\nx\n"))
        .unwrap();
    dir
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path();
        let first = write(base, "named/first", "old");
        write(base, "roots/second", "old");
        let (skill, diagnostics) = load_dir(&first).unwrap();
        let named = vec![Named::Stored(NamedSkill::new(first, skill, diagnostics))];
        let rest = Scan::start(Discovery::new([Root::scanned(base.join("roots"))]));
        let project = Some(Discovery::default());
        let library = DirectoryLibrary::new(named, false, rest, Sources::default(), project).into_library();
        Self { directory, library }
    }

    fn write(&self, name: &str, description: &str) -> PathBuf {
        write(self.directory.path(), name, description)
    }

    fn seen(&self, cwd: Option<&str>) -> Vec<String> {
        let cwd = cwd.map(|cwd| self.directory.path().join(cwd));
        let set = self.library.at(&Workspace { cwd, ..Workspace::default() });
        set.iter().map(|skill| format!("{}: {}", skill.name, skill.description)).collect()
    }

    fn is_broken(&self, name: &str) -> bool {
        let set = self.library.at(&Workspace::default());
        set.entry(name).unwrap().diagnostics.iter().any(Diagnostic::is_error)
    }
}

#[test]
fn reload_finds_new_changed_and_removed_skills() {
    let fixture = Fixture::new();
    assert_eq!(fixture.seen(None), ["first: old", "second: old"]);
    fixture.write("named/first", "new");
    fixture.write("roots/third", "new");
    fs::remove_dir_all(fixture.directory.path().join("roots/second")).unwrap();
    assert_eq!(fixture.seen(None), ["first: old", "second: old"]);
    fixture.library.reload();
    assert_eq!(fixture.seen(None), ["first: new", "third: new"]);
}

#[test]
fn a_broken_skill_is_kept_and_a_removed_one_is_not() {
    let fixture = Fixture::new();
    assert_eq!(fixture.seen(None), ["first: old", "second: old"]);
    for (name, dir) in [("first", "named/first"), ("second", "roots/second")] {
        let file = fixture.directory.path().join(dir).join("SKILL.md");
        // An empty file, frontmatter that doesn't end, and frontmatter that doesn't have a description.
        for text in ["", "---\nname: other\ndescription: ha", "---\nname: first\n---\nx\n"] {
            fs::write(&file, text).unwrap();
            fixture.library.reload();
            assert_eq!(fixture.seen(None), ["first: old", "second: old"], "{dir}: {text:?}");
            assert!(fixture.is_broken(name), "{dir}: {text:?}");
        }
        fixture.write(dir, "old");
        fixture.library.reload();
        assert_eq!(fixture.seen(None), ["first: old", "second: old"]);
        assert!(!fixture.is_broken(name));
    }
    for (dir, left) in [("named/first", vec!["second: old"]), ("roots/second", vec![])] {
        fs::remove_file(fixture.directory.path().join(dir).join("SKILL.md")).unwrap();
        fixture.library.reload();
        assert_eq!(fixture.seen(None), left, "{dir}");
    }
    assert_eq!(fixture.library.at(&Workspace::default()).skipped()[0].diagnostics[0].code, "no-skill-md");
    fs::remove_dir_all(fixture.directory.path().join("named")).unwrap();
    fixture.library.reload();
    fixture.write("named/first", "again");
    fixture.write("roots/second", "again");
    fixture.library.reload();
    assert_eq!(fixture.seen(None), ["first: again", "second: again"]);
}

#[test]
fn unchanged_sets_are_kept() {
    let fixture = Fixture::new();
    fixture.write("here/.skills/mine", "old");
    fixture.write("there/.skills/yours", "old");
    assert_eq!(fixture.seen(Some("here")), ["first: old", "mine: old", "second: old"]);
    assert_eq!(fixture.seen(Some("there")), ["first: old", "yours: old", "second: old"]);
    let at = |cwd: &str| fixture.library.at(&Workspace::of(fixture.directory.path().join(cwd)));
    let here = at("here");
    let there = at("there");
    // Write the same content to the file.
    fixture.write("roots/second", "old");
    fixture.library.reload();
    assert!(at("here").ptr_eq(&here) && at("there").ptr_eq(&there));
    fixture.write("here/.skills/mine", "new");
    fixture.library.reload();
    assert!(!at("here").ptr_eq(&here) && at("there").ptr_eq(&there));
    let shared = |name: &str| Arc::ptr_eq(here.get(name).unwrap(), at("here").get(name).unwrap());
    assert!(shared("first") && shared("second") && !shared("mine"));
    // If no session uses the directory any more, the next session needs to search it from scratch.
    fixture.write("there/.skills/yours", "new");
    fixture.library.leave(&Workspace::of(fixture.directory.path().join("there")));
    assert_eq!(fixture.seen(Some("there")), ["first: old", "yours: new", "second: old"]);
}

/// `leave` is called by the threads of the relay, so it must not block.
#[test]
fn leaving_does_not_wait_for_the_disk() {
    let skills = DirectoryLibrary::new(
        Vec::new(),
        false,
        Scan::start(Discovery::default()),
        Sources::default(),
        Some(Discovery::default()),
    );
    let library = Arc::new(Snapshots::over(skills));
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), ".skills/mine", "old");
    let here = directory.path();
    assert_eq!(library.at(&Workspace::of(here)).len(), 1);
    // Hold the lock to simulate a search on a slow disk.
    let finder = library.finder.lock();
    let (left, receiver) = std::sync::mpsc::channel();
    let shared = Arc::clone(&library);
    let place = Workspace::of(here);
    let leaver = thread::spawn(move || {
        shared.leave(&place);
        left.send(()).unwrap();
    });
    let in_time = receiver.recv_timeout(std::time::Duration::from_secs(10));
    drop(finder);
    leaver.join().unwrap();
    assert_eq!(in_time, Ok(()));
    // The next search should not bring the project back, and it should not be in the cache.
    library.reload();
    assert!(library.found.lock().is_empty() && library.finder.lock().projects.is_empty());
}

/// A project can have any number of invalid skills.
#[test]
fn only_the_first_problems_are_logged() {
    for (count, logged) in [(20, 20), (21, 21), (10_000, 21)] {
        let mut skills = SkillSet::builder();
        for number in 0..count {
            let path = PathBuf::from(format!("{number:05}"));
            skills.skip(Skipped::new(path, vec![Diagnostic::error("invalid", "is invalid")]));
        }
        let lines = warnings(&skills.build());
        assert_eq!(lines.len(), logged);
        assert_eq!(lines[0], "skipped 00000: is invalid");
        if count > 20 {
            assert_eq!(
                lines[20],
                format!("{} more problems with skills; `acp-skills-proxy list` shows all", count - 20)
            );
        }
    }
}
