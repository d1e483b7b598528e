//! Replaces the directory of a skill, or its parent, by a link while the skill is read. No read may return content from
//! outside.

#![expect(clippy::print_stderr, reason = "prints the outcome for manual runs")]

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

/// The number of calls in each of the two races.
const CALLS: usize = 110_000;

/// The time limit for all calls, and for both outcomes of the race to occur.
const DEADLINE: Duration = Duration::from_mins(2);

/// A skill in `root/skill`, and a similar one in `outside/skill`, which must never be read.
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

/// Replaces the directory `place` by a link to `target`, and back, until `stop` is set.
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

/// Calls one of the functions that read a skill, chosen by `number`. Returns the text that it read, or `None` if it failed.
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
            // It's fine for this to follow links, because we store the canonical path. But if that path is inside the root,
            // then the text must be too.
            let found: SkillSet = Discovery::new([Root::scanned(root)]).find();
            let inside = found.iter().filter(|found| found.dir().is_some_and(|dir| dir.starts_with(root)));
            Some(inside.map(|found| found.description.clone()).collect())
        }
        _ => files::read(skill, "notes.txt", ReadOptions::default()).ok().map(text),
    }
}

/// Runs calls on two threads while `place` is replaced by a link to `target`.
fn race(root: &Path, place: &Path, target: &Path) {
    let (skill, _) = load_dir(&root.join("skill")).unwrap();
    let stop = AtomicBool::new(false);
    let number = AtomicUsize::new(0);
    let served = AtomicUsize::new(0);
    let rejected = AtomicUsize::new(0);
    let started = Instant::now();
    let work = || {
        loop {
            let number = number.fetch_add(1, Ordering::Relaxed);
            let raced = served.load(Ordering::Relaxed).min(rejected.load(Ordering::Relaxed)) > 0;
            if (number >= CALLS && raced) || started.elapsed() > DEADLINE {
                break;
            }
            let text = call(number, &skill, root);
            let outcome = if text.is_some() { &served } else { &rejected };
            outcome.fetch_add(1, Ordering::Relaxed);
            if let Some(text) = text.filter(|text| text.contains(SECRET)) {
                stop.store(true, Ordering::Relaxed);
                panic!("call {number} returned content from outside: {text}");
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| exchange(place, target, &stop));
        let readers = [scope.spawn(work), scope.spawn(work)];
        let results = readers.map(thread::ScopedJoinHandle::join);
        stop.store(true, Ordering::Relaxed);
        for result in results {
            result.expect("no call should return content from outside");
        }
    });
    let served = served.into_inner();
    let rejected = rejected.into_inner();
    eprintln!("{served} calls succeeded and {rejected} were rejected in {:.1?}", started.elapsed());
    assert!(served > 0 && rejected > 0, "both outcomes must occur: {served}, {rejected}");
    assert!(served + rejected >= CALLS, "only {served} + {rejected} calls finished within {DEADLINE:?}");
}

#[test]
fn a_directory_replaced_by_a_link_is_never_read() {
    let trees = Trees::new();
    race(&trees.root, &trees.root.join("skill"), &trees.outside.join("skill"));
}

#[test]
fn a_parent_replaced_by_a_link_is_never_read() {
    let trees = Trees::new();
    race(&trees.root, &trees.root, &trees.outside);
}
