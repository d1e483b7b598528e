//! Tests of searching and searching again.

use std::{fs, thread};

use skills_core::{
    Diagnostic,
    discovery::{Discovery, NamedSkill, Root, load_dir},
};

use super::*;
use crate::library::{Library, Scan};

/// A library with the named skill `named/first`, the skills below `roots`, and the projects of sessions.
struct World {
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

impl World {
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
        let set = self.library.at(cwd.as_deref());
        set.iter().map(|skill| format!("{}: {}", skill.name, skill.description)).collect()
    }

    fn is_broken(&self, name: &str) -> bool {
        let set = self.library.at(None);
        set.entry(name).unwrap().diagnostics.iter().any(Diagnostic::is_error)
    }
}

#[test]
fn finds_again() {
    let world = World::new();
    assert_eq!(world.seen(None), ["first: old", "second: old"]);
    world.write("named/first", "new");
    world.write("roots/third", "new");
    fs::remove_dir_all(world.directory.path().join("roots/second")).unwrap();
    assert_eq!(world.seen(None), ["first: old", "second: old"]);
    world.library.reload();
    assert_eq!(world.seen(None), ["first: new", "third: new"]);
}

#[test]
fn what_is_broken_stays_as_it_was_and_what_is_gone_is_gone() {
    let world = World::new();
    assert_eq!(world.seen(None), ["first: old", "second: old"]);
    for (name, dir) in [("first", "named/first"), ("second", "roots/second")] {
        let file = world.directory.path().join(dir).join("SKILL.md");
        // The texts are an empty file, a frontmatter without an end, and a frontmatter without a description.
        for text in ["", "---\nname: other\ndescription: ha", "---\nname: first\n---\nx\n"] {
            fs::write(&file, text).unwrap();
            world.library.reload();
            assert_eq!(world.seen(None), ["first: old", "second: old"], "{dir}: {text:?}");
            assert!(world.is_broken(name), "{dir}: {text:?}");
        }
        world.write(dir, "old");
        world.library.reload();
        assert_eq!(world.seen(None), ["first: old", "second: old"]);
        assert!(!world.is_broken(name));
    }
    for (dir, left) in [("named/first", vec!["second: old"]), ("roots/second", vec![])] {
        fs::remove_file(world.directory.path().join(dir).join("SKILL.md")).unwrap();
        world.library.reload();
        assert_eq!(world.seen(None), left, "{dir}");
    }
    assert_eq!(world.library.at(None).skipped()[0].diagnostics[0].code, "no-skill-md");
    fs::remove_dir_all(world.directory.path().join("named")).unwrap();
    world.library.reload();
    world.write("named/first", "again");
    world.write("roots/second", "again");
    world.library.reload();
    assert_eq!(world.seen(None), ["first: again", "second: again"]);
}

#[test]
fn sets_in_which_nothing_changes_stay_the_same() {
    let world = World::new();
    world.write("here/.skills/mine", "old");
    world.write("there/.skills/yours", "old");
    assert_eq!(world.seen(Some("here")), ["first: old", "mine: old", "second: old"]);
    assert_eq!(world.seen(Some("there")), ["first: old", "yours: old", "second: old"]);
    let at = |cwd: &str| world.library.at(Some(&world.directory.path().join(cwd)));
    let (here, there) = (at("here"), at("there"));
    // The file is written again with the same contents.
    world.write("roots/second", "old");
    world.library.reload();
    assert!(at("here").ptr_eq(&here) && at("there").ptr_eq(&there));
    world.write("here/.skills/mine", "new");
    world.library.reload();
    assert!(!at("here").ptr_eq(&here) && at("there").ptr_eq(&there));
    let shared = |name: &str| Arc::ptr_eq(here.get(name).unwrap(), at("here").get(name).unwrap());
    assert!(shared("first") && shared("second") && !shared("mine"));
    // After the last session has left, the next one searches the directory again.
    world.write("there/.skills/yours", "new");
    world.library.leave(&world.directory.path().join("there"));
    assert_eq!(world.seen(Some("there")), ["first: old", "yours: new", "second: old"]);
}

/// `leave` is called by the threads of the relay, so it must not block.
#[test]
fn nobody_who_leaves_waits_for_the_disk() {
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
    assert_eq!(library.at(Some(here)).len(), 1);
    // This simulates a search on a slow disk.
    let finder = library.finder.lock();
    let (left, leaves) = std::sync::mpsc::channel();
    let (theirs, place) = (Arc::clone(&library), here.to_owned());
    let leaver = thread::spawn(move || {
        theirs.leave(&place);
        left.send(()).unwrap();
    });
    let in_time = leaves.recv_timeout(std::time::Duration::from_secs(10));
    drop(finder);
    leaver.join().unwrap();
    assert_eq!(in_time, Ok(()));
    // The next search doesn't find the project again, and the cache doesn't keep it.
    library.reload();
    assert!(library.found.lock().is_empty() && library.finder.lock().projects.is_empty());
}
