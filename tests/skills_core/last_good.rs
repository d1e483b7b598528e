//! Tests that a broken `SKILL.md` doesn't reach the model: the last good text is returned until the file is fixed.

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

/// A directory with a valid skill that has one other file.
struct Fixture {
    _base: TempDir,
    base: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let fixture = Self { base: dunce::canonicalize(base.path()).unwrap(), _base: base };
        fixture.build();
        fixture
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

/// Returns the codes of the diagnostics.
fn codes(activation: &Activation) -> Vec<&'static str> {
    activation.diagnostics.iter().map(|finding| finding.code).collect()
}

type Accident = Box<dyn Fn(&Fixture)>;

/// Returns the ways in which a file and its directory can be damaged.
fn accidents() -> Vec<(&'static str, Accident)> {
    let save = |text: &'static str| -> Accident { Box::new(move |fixture| fixture.save(text)) };
    // Use a time in the future here, because it may take more than a second to get to the file if the machine is slow.
    let cut = |end: usize| -> Accident {
        Box::new(move |fixture| {
            fixture.save(&GOOD[..GOOD.len() - end]);
            fixture.set_modified(SystemTime::now() + Duration::from_secs(30));
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
        ("zeros", Box::new(|fixture| fixture.save([0_u8; 4096]))),
        ("too large", Box::new(|fixture| fixture.save(GOOD.repeat(MAX_FILE_BYTES / GOOD.len() + 1)))),
        ("gone", Box::new(|fixture| fs::remove_file(fixture.dir().join("SKILL.md")).unwrap())),
        (
            "renamed",
            Box::new(|fixture| fs::rename(fixture.dir().join("SKILL.md"), fixture.base.join("x")).unwrap()),
        ),
        ("directory gone", Box::new(|fixture| fs::remove_dir_all(fixture.dir()).unwrap())),
        (
            "a directory in its place",
            Box::new(|fixture| {
                fs::remove_file(fixture.dir().join("SKILL.md")).unwrap();
                fs::create_dir(fixture.dir().join("SKILL.md")).unwrap();
            }),
        ),
        (
            "a file in the place of the directory",
            Box::new(|fixture| {
                fs::remove_dir_all(fixture.dir()).unwrap();
                fs::write(fixture.dir(), "").unwrap();
            }),
        ),
        #[cfg(unix)]
        (
            "a link out",
            Box::new(|fixture| {
                fs::write(fixture.base.join("other.md"), "---\nname: a\ndescription: b\n---\nOTHER\n")
                    .unwrap();
                fs::remove_file(fixture.dir().join("SKILL.md")).unwrap();
                std::os::unix::fs::symlink("../other.md", fixture.dir().join("SKILL.md")).unwrap();
            }),
        ),
    ]
}

fn restore(fixture: &Fixture) {
    if fixture.dir().is_file() {
        fs::remove_file(fixture.dir()).unwrap();
    }
    if fixture.dir().join("SKILL.md").is_dir() || fixture.dir().join("SKILL.md").is_symlink() {
        fs::remove_dir_all(fixture.dir()).unwrap();
    }
    fixture.build();
}

#[test]
fn the_last_good_text_is_returned() {
    for (accident, damage) in accidents() {
        for was_activated in [false, true] {
            let fixture = Fixture::new();
            let skill = fixture.load();
            let before = was_activated.then(|| text(&skill).unwrap());
            damage(&fixture);
            let after = text(&skill).unwrap_or_else(|error| panic!("{accident}: {error}"));
            assert!(
                after.text.contains("# How\n\nFirst this, then that.\n\nTell the user.\n"),
                "{accident}: {after:?}"
            );
            assert_eq!(codes(&after), ["instructions-outdated"], "{accident}");
            if let Some(before) = before.filter(|_| fixture.dir().is_dir()) {
                assert_eq!(after.text, before.text, "{accident}");
            }
            assert_eq!(&*skill_md(&skill).unwrap(), GOOD, "{accident}");
            // If the file is fixed, we should use the new text right away.
            restore(&fixture);
            fixture.save(GOOD.replace("First", "Before"));
            let good = text(&skill).unwrap();
            assert!(good.text.contains("Before this") && codes(&good).is_empty(), "{accident}");
        }
    }
}

/// If there was no further search, the last good text is that of the last activation.
#[test]
fn an_activated_edit_becomes_the_last_good_text() {
    for (accident, damage) in accidents() {
        let fixture = Fixture::new();
        let skill = fixture.load();
        fixture.save(GOOD.replace("First", "Second"));
        assert!(text(&skill).unwrap().text.contains("Second this"));
        damage(&fixture);
        let after = text(&skill).unwrap();
        // If the text isn't a prefix of the one that we have, then we can't tell that it's damaged, so it's treated as an edit.
        let is_short = matches!(accident, "half a body" | "all but one byte");
        assert!(is_short || after.text.contains("Second this"), "{accident}: {after:?}");
    }
}

#[test]
fn the_last_good_text_survives_another_search() {
    for (accident, damage) in accidents() {
        let fixture = Fixture::new();
        let search = Discovery::new([Root::scanned(&fixture.base)]);
        let mut cache = DiscoveryCache::default();
        let mut find = || -> SkillSet {
            let mut skills = SkillSet::builder();
            search.run_incremental(&mut cache, &Changes::everything(), &mut skills);
            skills.build()
        };
        let first = find();
        // Discovery must find this change, even though the skill isn't activated in between.
        fixture.save(GOOD.replace("First", "Third"));
        let second = find();
        damage(&fixture);
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
            assert!(entry.diagnostics.iter().any(Diagnostic::is_error), "{accident}: there is no error");
            assert_eq!(entry.skill.description, "Does it.", "{accident}");
        }
        let mut named =
            NamedSkill::new(fixture.dir(), second.get("skill").unwrap().as_ref().clone(), Vec::new());
        named.update(load_dir(&fixture.dir()));
        let mut set = SkillSet::builder();
        named.add_to(&mut set);
        if let Some(skill) = set.build().get("skill") {
            assert!(text(skill).unwrap().text.contains("Third this"), "{accident}");
        }
    }
}

/// Deleting the end of a file looks like an incomplete save at first, so it takes effect a second later.
#[test]
fn a_shortened_text_takes_effect_after_a_second() {
    let fixture = Fixture::new();
    let skill = fixture.load();
    fixture.save(&GOOD[..GOOD.len() - 16]);
    fixture.set_modified(SystemTime::now() + Duration::from_secs(30));
    assert!(text(&skill).unwrap().text.contains("Tell the user."));
    fixture.set_modified(SystemTime::now() - Duration::from_secs(2));
    let short = text(&skill).unwrap();
    assert!(!short.text.contains("Tell the user.") && codes(&short).is_empty());
    // If we search for skills again, we just use whatever text is found, without waiting for a second.
    fixture.save(&GOOD[..GOOD.len() - 24]);
    assert!(!text(&fixture.load()).unwrap().text.contains("then that."));
}

/// Editors truncate a file and write it in pieces. An activation at any moment returns a complete text.
#[test]
fn a_file_that_is_saved_continuously_is_always_complete() {
    let fixture = Fixture::new();
    let version = |word: &str| GOOD.replace("then that", &format!("then {}END", word.repeat(3_000)));
    let versions = [version("this "), version("that, and more ")];
    fixture.save(&versions[0]);
    let skill = fixture.load();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for text in versions.iter().cycle() {
                let mut file = File::create(fixture.dir().join("SKILL.md")).unwrap();
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

/// If a skill was incomplete from the beginning, an edit that keeps it incomplete is accepted.
#[test]
fn a_skill_that_was_always_incomplete_can_be_edited() {
    for odd in
        ["---\nname: skill\ndescription: d\n\nNo fence, old.\n", "---\nname: skill\ndescription: d\n---\n"]
    {
        let fixture = Fixture::new();
        fixture.save(odd);
        let skill = fixture.load();
        assert!(codes(&text(&skill).unwrap()).is_empty());
        let edited = odd.replace("old", "new").replace(": d", ": e");
        fixture.save(&edited);
        let current = text(&skill).unwrap();
        assert_eq!(current.text.contains("new"), odd.contains("old"));
        assert!(codes(&current).is_empty());
    }
}

/// The file of a virtual skill has no frontmatter that could show if it is complete.
#[test]
fn instructions_files_of_virtual_skills_have_a_last_good_text() {
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("body.md");
    let skill = Skill::builder("a", "x").body_file(&file).build().unwrap();
    let cache = BodyCache::default();
    let activate = || activate(&skill, &ActivationOptions::default(), &cache);
    assert!(activate().is_err());
    fs::write(&file, "").unwrap();
    assert!(codes(&activate().unwrap()).is_empty(), "an empty file is accepted if it was always empty");
    fs::write(&file, "First this, then that.").unwrap();
    assert!(activate().unwrap().text.contains("then that."));
    let accidents: [&dyn Fn(&Path); 3] =
        [&|file| fs::write(file, " \n").unwrap(), &|file| fs::write(file, "First").unwrap(), &|file| {
            fs::remove_file(file).unwrap();
        }];
    for damage in accidents {
        damage(&file);
        let after = activate().unwrap();
        assert!(after.text.contains("First this, then that.") && codes(&after) == ["instructions-outdated"]);
    }
    fs::write(&file, "Now this.").unwrap();
    assert!(activate().unwrap().text.contains("Now this."));
}
