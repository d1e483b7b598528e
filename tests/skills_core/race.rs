//! A skill's directory, or one above it, is exchanged for a link while it is read: nothing outside is ever served.

#![cfg(unix)]
#![expect(clippy::print_stderr, reason = "what came of the race is for whoever runs the test by hand")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use skills_core::{
    Discovery, FileContent, ReadOptions, Skill, SkillFiles, SkillSet,
    activation::{ActivationOptions, BodyCache, activate},
    discovery::{Root, load_dir},
    files,
};
use tempfile::TempDir;

const INSIDE: &str = "INSIDE";
const SECRET: &str = "SECRET";

/// Calls beside the exchange, in each of the two races.
const CALLS: usize = 110_000;

/// How long to wait for both sides of the race to run, and for all calls.
const DEADLINE: Duration = Duration::from_mins(2);

/// `root/skill`, and `outside/skill`, which looks the same but must never be read.
struct Trees {
    _base: TempDir,
    root: PathBuf,
    outside: PathBuf,
}

impl Trees {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let real = dunce::canonicalize(base.path()).unwrap();
        for (tree, mark) in [("root", INSIDE), ("outside", SECRET)] {
            let skill = real.join(tree).join("skill");
            fs::create_dir_all(&skill).unwrap();
            let text = format!("---\nname: skill\ndescription: {mark}\n---\n{mark}\n");
            fs::write(skill.join("SKILL.md"), text).unwrap();
            fs::write(skill.join("notes.txt"), mark).unwrap();
            fs::write(skill.join(format!("{mark}.txt")), mark).unwrap();
        }
        Self { _base: base, root: real.join("root"), outside: real.join("outside") }
    }
}

/// Puts a link to `target` in the place of the directory `place`, and the directory back, until it is told to stop.
fn exchange(place: &Path, target: &Path, stop: &AtomicBool) {
    let parked = place.with_extension("parked");
    let link = place.with_extension("link");
    symlink(target, &link).unwrap();
    while !stop.load(Ordering::Relaxed) {
        fs::rename(place, &parked).unwrap();
        fs::rename(&link, place).unwrap();
        fs::rename(place, &link).unwrap();
        fs::rename(&parked, place).unwrap();
    }
}

/// Everything that reads by a skill, in turns; what it served, when it served anything.
fn call(number: usize, skill: &Skill, root: &Path) -> Option<String> {
    let text = |content| match content {
        FileContent::Text { text, .. } => text,
        other => panic!("{other:?}"),
    };
    match number % 8 {
        0 => {
            let activation = activate(skill, &ActivationOptions::default(), &BodyCache::default());
            activation.ok().map(|activation| activation.text)
        }
        1 => SkillFiles::of(skill).ok().map(|files| format!("{:?}", files.list(9))),
        2 => files::bundled(skill, 9).ok().map(|bundled| format!("{bundled:?}")),
        3 => SkillFiles::of(skill)
            .and_then(|files| files.head("SKILL.md", 999))
            .ok()
            .map(|head| String::from_utf8(head.bytes).unwrap()),
        4 if number.is_multiple_of(5) => {
            // A search goes where links lead, and says so; it must not take one thing for the other.
            let found: SkillSet = Discovery::new([Root::scanned(root)]).find();
            let honest = found.iter().filter(|found| found.dir().is_some_and(|dir| dir.starts_with(root)));
            Some(honest.map(|found| found.description.clone()).collect())
        }
        _ => files::read(skill, "notes.txt", ReadOptions::default()).ok().map(text),
    }
}

/// Races calls against the exchange of `place` for a link to `target`.
fn race(root: &Path, place: &Path, target: &Path) {
    let (skill, _) = load_dir(&root.join("skill")).unwrap();
    let (stop, number) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (served, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let started = Instant::now();
    let work = || {
        loop {
            let number = number.fetch_add(1, Ordering::Relaxed);
            let raced = served.load(Ordering::Relaxed).min(refused.load(Ordering::Relaxed)) > 0;
            if (number >= CALLS && raced) || started.elapsed() > DEADLINE {
                break;
            }
            let text = call(number, &skill, root);
            let side = if text.is_some() { &served } else { &refused };
            side.fetch_add(1, Ordering::Relaxed);
            if let Some(text) = text.filter(|text| text.contains(SECRET)) {
                stop.store(true, Ordering::Relaxed);
                panic!("call {number} served what is outside: {text}");
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| exchange(place, target, &stop));
        let readers = [scope.spawn(work), scope.spawn(work)];
        let results = readers.map(thread::ScopedJoinHandle::join);
        stop.store(true, Ordering::Relaxed);
        for result in results {
            result.expect("nothing outside is served");
        }
    });
    let (served, refused) = (served.into_inner(), refused.into_inner());
    eprintln!("{served} calls were served and {refused} refused in {:.1?}", started.elapsed());
    assert!(served > 0 && refused > 0, "both sides of the race must have run: {served}, {refused}");
    assert!(served + refused >= CALLS, "only {served} + {refused} calls within {DEADLINE:?}");
}

#[test]
fn a_directory_that_is_exchanged_for_a_link() {
    let trees = Trees::new();
    race(&trees.root, &trees.root.join("skill"), &trees.outside.join("skill"));
}

#[test]
fn a_directory_above_it_that_is_exchanged_for_a_link() {
    let trees = Trees::new();
    race(&trees.root, &trees.root, &trees.outside);
}
