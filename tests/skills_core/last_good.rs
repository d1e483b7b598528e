//! A save that went wrong reaches no model: the last good text of a skill is given until there is a good one again.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use skills_core::{
    Activation, Diagnostic, Discovery, Skill, SkillSet,
    activation::{ActivationError, ActivationOptions, BodyCache, activate, skill_md},
    discovery::{Changes, DiscoveryCache, NamedSkill, Root, load_dir},
    frontmatter::MAX_FILE_BYTES,
};
use tempfile::TempDir;

const GOOD: &str =
    "---\nname: skill\ndescription: Does it.\n---\n# How\n\nFirst this, then that.\n\nTell the user.\n";

/// `base/skill` with a good `SKILL.md` and a file beside it.
struct World {
    _base: TempDir,
    base: PathBuf,
}

impl World {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let world = Self { base: dunce::canonicalize(base.path()).unwrap(), _base: base };
        world.build();
        world
    }

    fn build(&self) {
        fs::create_dir_all(self.dir()).unwrap();
        self.save(GOOD);
        fs::write(self.dir().join("notes.txt"), "notes").unwrap();
    }

    fn dir(&self) -> PathBuf {
        self.base.join("skill")
    }

    fn save(&self, text: impl AsRef<[u8]>) {
        fs::write(self.dir().join("SKILL.md"), text).unwrap();
    }

    fn set_modified(&self, time: SystemTime) {
        let file = File::options().write(true).open(self.dir().join("SKILL.md")).unwrap();
        file.set_modified(time).unwrap();
    }

    fn load(&self) -> Skill {
        load_dir(&self.dir()).unwrap().0
    }
}

fn text(skill: &Skill) -> Result<Activation, ActivationError> {
    activate(skill, &ActivationOptions::default(), &BodyCache::default())
}

/// The codes of what an activation has to say.
fn codes(activation: &Activation) -> Vec<&'static str> {
    activation.diagnostics.iter().map(|it| it.code).collect()
}

type Accident = Box<dyn Fn(&World)>;

/// What can happen to a file, and to what is around it.
fn accidents() -> Vec<(&'static str, Accident)> {
    let save = |text: &'static str| -> Accident { Box::new(move |world| world.save(text)) };
    // On a busy machine a second may pass between the write and the read.
    let cut = |end: usize| -> Accident {
        Box::new(move |world| {
            world.save(&GOOD[..GOOD.len() - end]);
            world.set_modified(SystemTime::now() + Duration::from_secs(30));
        })
    };
    vec![
        ("empty", save("")),
        ("blank", save("\n \n")),
        ("open fence", save("---\n")),
        ("half a name", save("---\nname: sk")),
        ("half a description", save("---\nname: skill\ndescription: Doe")),
        ("no closing fence", save("---\nname: skill\ndescription: Does it.\n")),
        ("half a closing fence", save("---\nname: skill\ndescription: Does it.\n--")),
        ("no body", save("---\nname: skill\ndescription: Does it.\n---\n")),
        ("no body but blanks", save("---\nname: skill\ndescription: Other.\n---\n\n  \n")),
        ("half a body", cut(20)),
        ("all but one byte", cut(1)),
        ("no description", save("---\nname: skill\n---\nNew body.\n")),
        ("no frontmatter", save("# How\n\nNew body.\n")),
        ("conflict", save("<<<<<<< HEAD\n---\nname: skill\ndescription: a\n---\nBody\n")),
        ("zeros", Box::new(|world| world.save([0_u8; 4096]))),
        ("too large", Box::new(|world| world.save(GOOD.repeat(MAX_FILE_BYTES / GOOD.len() + 1)))),
        ("gone", Box::new(|world| fs::remove_file(world.dir().join("SKILL.md")).unwrap())),
        (
            "renamed",
            Box::new(|world| fs::rename(world.dir().join("SKILL.md"), world.base.join("x")).unwrap()),
        ),
        ("directory gone", Box::new(|world| fs::remove_dir_all(world.dir()).unwrap())),
        (
            "a directory in its place",
            Box::new(|world| {
                fs::remove_file(world.dir().join("SKILL.md")).unwrap();
                fs::create_dir(world.dir().join("SKILL.md")).unwrap();
            }),
        ),
        (
            "a file in the place of the directory",
            Box::new(|world| {
                fs::remove_dir_all(world.dir()).unwrap();
                fs::write(world.dir(), "").unwrap();
            }),
        ),
        #[cfg(unix)]
        (
            "a link out",
            Box::new(|world| {
                fs::write(world.base.join("other.md"), "---\nname: a\ndescription: b\n---\nOTHER\n").unwrap();
                fs::remove_file(world.dir().join("SKILL.md")).unwrap();
                std::os::unix::fs::symlink("../other.md", world.dir().join("SKILL.md")).unwrap();
            }),
        ),
    ]
}

fn restore(world: &World) {
    if world.dir().is_file() {
        fs::remove_file(world.dir()).unwrap();
    }
    if world.dir().join("SKILL.md").is_dir() || world.dir().join("SKILL.md").is_symlink() {
        fs::remove_dir_all(world.dir()).unwrap();
    }
    world.build();
}

#[test]
fn the_whole_last_text_is_given() {
    for (accident, happens) in accidents() {
        for was_activated in [false, true] {
            let world = World::new();
            let skill = world.load();
            let before = was_activated.then(|| text(&skill).unwrap());
            happens(&world);
            let after = text(&skill).unwrap_or_else(|error| panic!("{accident}: {error}"));
            assert!(
                after.text.contains("# How\n\nFirst this, then that.\n\nTell the user.\n"),
                "{accident}: {after:?}"
            );
            assert_eq!(codes(&after), ["instructions-outdated"], "{accident}");
            if let Some(before) = before.filter(|_| world.dir().is_dir()) {
                assert_eq!(after.text, before.text, "{accident}");
            }
            assert_eq!(&*skill_md(&skill).unwrap(), GOOD, "{accident}");
            // And the moment it is good again, it is that.
            restore(&world);
            world.save(GOOD.replace("First", "Before"));
            let good = text(&skill).unwrap();
            assert!(good.text.contains("Before this") && codes(&good).is_empty(), "{accident}");
        }
    }
}

/// Without another search, the last good version is that of the last activation.
#[test]
fn an_edit_that_was_activated_is_the_last_text() {
    for (accident, happens) in accidents() {
        let world = World::new();
        let skill = world.load();
        world.save(GOOD.replace("First", "Second"));
        assert!(text(&skill).unwrap().text.contains("Second this"));
        happens(&world);
        let after = text(&skill).unwrap();
        // This is a prefix of the first text and not of the last one: it may be a deliberate edit.
        let is_short = matches!(accident, "half a body" | "all but one byte");
        assert!(is_short || after.text.contains("Second this"), "{accident}: {after:?}");
    }
}

#[test]
fn the_same_when_somebody_looks_again() {
    for (accident, happens) in accidents() {
        let world = World::new();
        let search = Discovery::new([Root::scanned(&world.base)]);
        let mut visits = DiscoveryCache::default();
        let mut find = || -> SkillSet {
            let mut skills = SkillSet::builder();
            search.run_incremental(&mut visits, &Changes::everything(), &mut skills);
            skills.build()
        };
        let first = find();
        // Discovery accepts an edit that is never activated.
        world.save(GOOD.replace("First", "Third"));
        let second = find();
        happens(&world);
        let third = find();
        let kept = third.get("skill");
        let is_gone = accident.contains("gone") || accident == "renamed" || accident.contains("in the place");
        let is_gone = is_gone || accident == "a directory in its place";
        assert_eq!(kept.is_none(), is_gone, "{accident}");
        if matches!(accident, "half a body" | "all but one byte") {
            continue;
        }
        for set in [&first, &second, &third] {
            let Some(skill) = set.get("skill") else { continue };
            assert!(text(skill).unwrap().text.contains("Third this"), "{accident}");
        }
        if let Some(entry) = third.entry("skill") {
            assert!(entry.diagnostics.iter().any(Diagnostic::is_error), "{accident}: it is not said");
            assert_eq!(entry.skill.description, "Does it.", "{accident}");
        }
        let mut named =
            NamedSkill::new(world.dir(), second.get("skill").unwrap().as_ref().clone(), Vec::new());
        named.update(load_dir(&world.dir()));
        let mut set = SkillSet::builder();
        named.add_to(&mut set);
        if let Some(skill) = set.build().get("skill") {
            assert!(text(skill).unwrap().text.contains("Third this"), "{accident}");
        }
    }
}

/// Deleting the end of a text is a deliberate edit, which takes effect after a moment.
#[test]
fn a_text_that_was_shortened_is_current() {
    let world = World::new();
    let skill = world.load();
    world.save(&GOOD[..GOOD.len() - 16]);
    world.set_modified(SystemTime::now() + Duration::from_secs(30));
    assert!(text(&skill).unwrap().text.contains("Tell the user."));
    world.set_modified(SystemTime::now() - Duration::from_secs(2));
    let short = text(&skill).unwrap();
    assert!(!short.text.contains("Tell the user.") && codes(&short).is_empty());
    // Or until the next search.
    world.save(&GOOD[..GOOD.len() - 24]);
    assert!(!text(&world.load()).unwrap().text.contains("then that."));
}

/// Editors truncate the file and write it piece by piece; whatever moment an activation hits, its text is whole.
#[test]
fn a_file_that_is_saved_all_the_time() {
    let world = World::new();
    let version = |word: &str| GOOD.replace("then that", &format!("then {}END", word.repeat(3_000)));
    let versions = [version("this "), version("that, and more ")];
    world.save(&versions[0]);
    let skill = world.load();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for text in versions.iter().cycle() {
                let mut file = File::create(world.dir().join("SKILL.md")).unwrap();
                for piece in text.as_bytes().chunks(4096) {
                    file.write_all(piece).unwrap();
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for round in 0..300 {
            let text = text(&skill).map(|activation| activation.text);
            let is_whole = text.as_ref().is_ok_and(|text| {
                versions
                    .iter()
                    .any(|version| text.contains(version.split_once("# How").unwrap().1.trim_end()))
            });
            if !is_whole {
                stop.store(true, Ordering::Relaxed);
                panic!("round {round}: {text:?}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// A skill that never was complete is not broken by an edit that leaves it so.
#[test]
fn skills_that_were_never_whole() {
    for odd in
        ["---\nname: skill\ndescription: d\n\nNo fence, old.\n", "---\nname: skill\ndescription: d\n---\n"]
    {
        let world = World::new();
        world.save(odd);
        let skill = world.load();
        assert!(codes(&text(&skill).unwrap()).is_empty());
        let edited = odd.replace("old", "new").replace(": d", ": e");
        world.save(&edited);
        let current = text(&skill).unwrap();
        assert_eq!(current.text.contains("new"), odd.contains("old"));
        assert!(codes(&current).is_empty());
    }
}

/// A file that a configuration names has no frontmatter to tell whether it is whole.
#[test]
fn instructions_of_virtual_skills() {
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("body.md");
    let skill = Skill::builder("a", "x").body_file(&file).build().unwrap();
    let cache = BodyCache::default();
    let activate = || activate(&skill, &ActivationOptions::default(), &cache);
    assert!(activate().is_err());
    fs::write(&file, "").unwrap();
    assert!(codes(&activate().unwrap()).is_empty(), "it was never more than that");
    fs::write(&file, "First this, then that.").unwrap();
    assert!(activate().unwrap().text.contains("then that."));
    let accidents: [&dyn Fn(&Path); 3] =
        [&|file| fs::write(file, " \n").unwrap(), &|file| fs::write(file, "First").unwrap(), &|file| {
            fs::remove_file(file).unwrap();
        }];
    for happens in accidents {
        happens(&file);
        let after = activate().unwrap();
        assert!(after.text.contains("First this, then that.") && codes(&after) == ["instructions-outdated"]);
    }
    fs::write(&file, "Now this.").unwrap();
    assert!(activate().unwrap().text.contains("Now this."));
}
