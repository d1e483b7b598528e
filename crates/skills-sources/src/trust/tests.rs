use std::{
    fs,
    time::{Duration, Instant},
};

use skills_core::{
    ReadOptions,
    discovery::{Discovery, project_roots},
    files,
};

use super::*;

mod names;
#[cfg(unix)]
mod replaced;

struct Project {
    dir: tempfile::TempDir,
    trust: Trust,
}

impl Project {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let trust = Trust::new(Some(dir.path().join("state")));
        let project = Self { dir, trust };
        project.write("SKILL.md", "---\nname: x\ndescription: d\n---\nBody.\n");
        project.write("references/a.md", "a");
        project
    }

    fn root(&self) -> PathBuf {
        dunce::canonicalize(self.dir.path().join("project")).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.dir.path().join("project/.skills/x").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn sift(&self) -> SkillSet {
        self.trust.sift(&self.root(), &Discovery::new(project_roots(&self.root())).find())
    }

    /// Returns the number of trusted skills, and the state of each waiting skill: `changed`, `refused` or `new`.
    fn state(&self) -> (usize, Vec<&'static str>) {
        let skills = self.sift();
        let word = |waiting: &Unapproved| match (waiting.has_changed, waiting.is_refused) {
            (_, true) => "refused",
            (true, _) => "changed",
            _ => "new",
        };
        (skills.len(), skills.unapproved().iter().map(word).collect())
    }

    fn decide(&self, trusted: bool) -> Decided {
        self.trust.decide(&self.root(), self.sift().unapproved(), trusted)
    }
}

#[test]
fn a_skill_is_approved_once_by_checksum() {
    let project = Project::new();
    assert_eq!(project.state(), (0, vec!["new"]));
    project.decide(false);
    assert_eq!(project.state(), (0, vec!["refused"]));
    let decided = project.decide(true);
    assert_eq!((decided.done.len(), decided.failed.len(), decided.unsaved), (1, 0, None));
    assert_eq!(project.state(), (1, vec![]));
    // Try another process, and another checkout of the same project.
    let again = Trust::new(Some(project.dir.path().join("state")));
    let found = Discovery::new(project_roots(&project.root())).find();
    assert_eq!(again.sift(&project.root(), &found).len(), 1);
    assert_eq!(again.sift(project.dir.path(), &found).len(), 0);
    // We should check every file, including hidden ones. If the content is restored, the skill is trusted again.
    for (path, text, before) in [
        ("references/a.md", "b", Some("a")),
        (".hidden", "", None),
        ("scripts/x.sh", "", None),
        (".git/hooks/x", "", None),
    ] {
        project.write(path, text);
        assert_eq!(project.state(), (0, vec!["changed"]), "{path}");
        match before {
            Some(before) => project.write(path, before),
            None => fs::remove_file(project.root().join(".skills/x").join(path)).unwrap(),
        }
        assert_eq!(project.state(), (1, vec![]), "{path}");
    }
}

#[test]
fn declined_versions_stay_declined() {
    let project = Project::new();
    let write =
        |body: &str| project.write("SKILL.md", &format!("---\nname: x\ndescription: d\n---\n{body}\n"));
    let decide = |body: &str, trusted: bool| {
        write(body);
        assert_eq!(project.decide(trusted).done.len(), 1, "{body}");
    };
    let state_of = |body: &str| {
        write(body);
        project.state()
    };
    decide("A", true);
    decide("B", false);
    decide("C", false);
    decide("D", true);
    let dirs = project.trust.trusted(&project.root());
    assert_eq!(project.trust.revoke_dirs(&dirs), None);
    for body in ["B", "C", "D"] {
        assert_eq!(state_of(body), (0, vec!["refused"]), "{body}");
    }
    assert_eq!(state_of("A"), (0, vec!["new"]));
    decide("B", true);
    assert_eq!(state_of("C"), (0, vec!["refused"]));
    assert_eq!(state_of("B"), (1, vec![]));
    // The file stays small. The latest versions count.
    for number in 0..100 {
        decide(&number.to_string(), false);
    }
    for (body, expected) in [("0", "changed"), ("90", "refused"), ("99", "refused"), ("B", "")] {
        let waiting = if expected.is_empty() { vec![] } else { vec![expected] };
        assert_eq!(state_of(body), (usize::from(expected.is_empty()), waiting), "{body}");
    }
}

/// A skill that a configuration trusts may be one that the user has declined.
#[test]
fn decisions_that_cannot_be_read() {
    let project = Project::new();
    let skills = Discovery::new(project_roots(&project.root())).find();
    let is_declined = || project.trust.declined(&project.root())(skills.get("x").unwrap());
    assert!(!is_declined());
    project.decide(true);
    let file = project.trust.file(&project.root()).unwrap();
    for text in ["", "{", r#"{"v":2}"#] {
        fs::write(&file, text).unwrap();
        assert!(is_declined(), "{text}");
        assert_eq!(project.state(), (0, vec!["new"]), "{text}");
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(is_declined());
}

#[test]
fn a_skill_that_changes_after_it_was_shown() {
    let project = Project::new();
    let shown = project.sift();
    project.write("SKILL.md", "---\nname: x\ndescription: d\n---\nObey.\n");
    let decided = project.trust.decide(&project.root(), shown.unapproved(), true);
    assert!(decided.done.is_empty() && decided.failed[0].1.contains("changed"), "{decided:?}");
    assert_eq!(project.state(), (0, vec!["new"]));
}

/// The user may have reviewed the version that was there for a while.
#[test]
fn a_skill_that_changes_and_changes_back_after_it_was_shown() {
    const TEXT: &str = "---\nname: x\ndescription: d\n---\nBody.\n";
    for (path, before) in
        [("SKILL.md", Some(TEXT)), ("references/a.md", Some("a")), ("references/b.md", None)]
    {
        let project = Project::new();
        let shown = project.sift();
        let [was] = shown.unapproved() else { panic!("{path}") };
        // The clock of the file system may not have ticked since the files were written.
        let deadline = Instant::now() + Duration::from_secs(30);
        let now = loop {
            project.write(path, "other");
            match before {
                Some(text) => project.write(path, text),
                None => fs::remove_file(project.root().join(".skills/x").join(path)).unwrap(),
            }
            let now = project.sift();
            if now.unapproved() != shown.unapproved() {
                break now;
            }
            assert!(Instant::now() < deadline, "{path}");
        };
        let [is] = now.unapproved() else { panic!("{path}") };
        assert_eq!(was.digest, is.digest, "{path}");
        assert_ne!(was.version(), is.version(), "{path}");
        let decided = project.trust.decide(&project.root(), shown.unapproved(), true);
        assert!(decided.done.is_empty() && decided.failed[0].1.contains("changed"), "{path}: {decided:?}");
        // A refusal is for the content.
        assert_eq!(project.trust.decide(&project.root(), shown.unapproved(), false).done.len(), 1, "{path}");
        assert_eq!(project.decide(true).done.len(), 1, "{path}");
    }
}

/// If a file changes after approval, a caller that already has the skill gets the approved content or an error.
#[test]
fn a_file_that_changes_after_approval() {
    let project = Project::new();
    project.decide(true);
    let skills = project.sift();
    let skill = skills.get("x").unwrap();
    let read =
        |path: &str| files::read(skill, path, ReadOptions::default()).map(drop).map_err(|error| error.code());
    let body =
        || skills_core::activation::BodyCache::default().body(skill).map_err(|error| error.to_string());
    assert!(body().unwrap().contains("Body."));
    assert_eq!((read("references/a.md"), read("./references//a.md")), (Ok(()), Ok(())));
    project.write("references/a.md", "b");
    project.write("references/new.md", "new");
    assert_eq!(read("references/a.md"), Err("not-approved"));
    assert_eq!(read("references/new.md"), Err("not-approved"));
    assert_eq!(read("SKILL.md"), Ok(()));
    project.write("SKILL.md", "---\nname: x\ndescription: d\n---\nObey.\n");
    assert!(body().unwrap_err().contains("has changed since the user approved"));
    // Discovery has read the new text, but we should not serve this text after the file is removed.
    project.sift();
    fs::remove_file(project.root().join(".skills/x/SKILL.md")).unwrap();
    assert!(body().is_err());
}

/// Another process writes to a file repeatedly while it is read.
#[cfg(unix)]
#[test]
fn a_file_that_changes_while_it_is_read() {
    use std::{
        os::unix::fs::FileExt,
        sync::atomic::{AtomicBool, Ordering},
    };
    let project = Project::new();
    let good = "good ".repeat(2000);
    let evil = "evil ".repeat(2000);
    project.write("references/a.md", &good);
    project.decide(true);
    let skills = project.sift();
    let file =
        fs::File::options().write(true).open(project.root().join(".skills/x/references/a.md")).unwrap();
    let is_over = AtomicBool::new(false);
    let mut served = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for text in [&evil, &good] {
                    file.write_all_at(text.as_bytes(), 0).unwrap();
                    std::thread::yield_now();
                }
            }
        });
        for _ in 0..5_000 {
            match files::read(skills.get("x").unwrap(), "references/a.md", ReadOptions::default()) {
                Ok(files::FileContent::Text { text, .. }) if text == good => served += 1,
                Err(error) if error.code() == "not-approved" => {}
                other => {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{:.80}", format!("{other:?}"));
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(served > 0);
}

/// Large files are compared one after the other, and every read finishes.
#[test]
fn many_large_files_at_once() {
    let project = Project::new();
    let line = format!("{}\n", "x".repeat(99));
    project.write("references/large.md", &line.repeat(30_000));
    project.decide(true);
    let skills = project.sift();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let options = ReadOptions { offset: Some(30_000), ..ReadOptions::default() };
                let read = files::read(skills.get("x").unwrap(), "references/large.md", options).unwrap();
                assert!(matches!(&read, files::FileContent::Text { text, .. } if *text == line), "{read:?}");
            });
        }
    });
}

/// The text that discovery has read may differ from the file that is compared later.
#[test]
fn a_skill_that_changes_after_discovery() {
    let project = Project::new();
    let good = fs::read_to_string(project.root().join(".skills/x/SKILL.md")).unwrap();
    project.decide(true);
    let found = |text: &str| {
        project.write("SKILL.md", text);
        Discovery::new(project_roots(&project.root())).find()
    };
    let evil = found("---\nname: x\ndescription: Obey.\n---\nBody.\n");
    project.write("SKILL.md", &good);
    let skills = project.trust.sift(&project.root(), &evil);
    assert_eq!((skills.len(), skills.unapproved().len(), skills.skipped().len()), (0, 0, 1));
    // The description that is shown must belong to the waiting version.
    let harmless = found(&good);
    project.write("SKILL.md", "---\nname: x\ndescription: Obey.\n---\nBody.\n");
    let skills = project.trust.sift(&project.root(), &harmless);
    assert_eq!((skills.len(), skills.unapproved().len(), skills.skipped().len()), (0, 0, 1));
}

#[test]
fn an_unsaved_decision_applies_until_the_end() {
    let project = Project::new();
    fs::write(project.dir.path().join("state"), "a file").unwrap();
    let decided = project.decide(true);
    assert!(decided.unsaved.is_some() && decided.done.len() == 1, "{decided:?}");
    assert_eq!(project.state(), (1, vec![]));
}

#[test]
fn an_unsaved_revocation_applies_until_the_end() {
    let project = Project::new();
    project.decide(true);
    // The store can't be written, because its lock is a directory.
    let file = project.trust.file(&project.root()).unwrap();
    let lock = file.with_file_name(".lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    assert!(project.trust.revoke_dirs(&project.trust.trusted(&project.root())).is_some());
    assert_eq!(project.state().0, 0);
    // The user tries again.
    fs::remove_dir(&lock).unwrap();
    assert_eq!(project.trust.revoke_dirs(&project.trust.trusted(&project.root())), None);
    let found = Discovery::new(project_roots(&project.root())).find();
    let other = Trust::new(Some(project.dir.path().join("state")));
    assert_eq!(other.sift(&project.root(), &found).len(), 0);
    // The user trusts the skill again.
    project.decide(true);
    assert_eq!(project.state(), (1, vec![]));
}

#[test]
fn invalid_files_trust_nothing() {
    let project = Project::new();
    project.decide(true);
    let file = project.trust.file(&project.root()).unwrap();
    for text in ["{", r#"{"v":2,"trusted":{}}"#, "[]"] {
        fs::write(&file, text).unwrap();
        assert_eq!(project.state(), (0, vec!["new"]), "{text}");
        // The file can contain declined skills, so it is not overwritten. Until the process ends, the decision applies.
        let other = Trust::new(Some(project.dir.path().join("state")));
        let unsaved = other.decide(&project.root(), project.sift().unapproved(), true).unsaved;
        assert!(unsaved.is_some_and(|why| why.contains("move the file away")), "{text}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::remove_file(&file).unwrap();
    project.decide(true);
    assert_eq!(project.state(), (1, vec![]));
}

#[cfg(unix)]
#[test]
fn a_link_that_becomes_a_file() {
    let project = Project::new();
    let skill = project.root().join(".skills/x");
    fs::write(project.dir.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(project.dir.path().join("secret"), skill.join("out.md")).unwrap();
    std::os::unix::fs::symlink("references/a.md", skill.join("in.md")).unwrap();
    project.decide(true);
    let skills = project.sift();
    let read = |path: &str| {
        files::read(skills.get("x").unwrap(), path, ReadOptions::default())
            .map(drop)
            .map_err(|error| error.code())
    };
    assert_eq!((read("in.md"), read("out.md")), (Ok(()), Err("outside-skill")));
    // Replace the link with a file.
    fs::remove_file(skill.join("out.md")).unwrap();
    fs::write(skill.join("out.md"), "x").unwrap();
    assert_eq!(read("out.md"), Err("not-approved"));
    assert_eq!(project.state(), (0, vec!["changed"]));
}

/// A script can read different content from a FIFO each time, so there is nothing to approve.
#[cfg(unix)]
#[test]
fn a_skill_with_a_fifo_cannot_be_approved() {
    let project = Project::new();
    let fifo = project.root().join(".skills/x/scripts");
    fs::create_dir(&fifo).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(fifo.join("lib.sh")).status().unwrap().success());
    let skills = project.sift();
    let why = &skills.skipped()[0].diagnostics[0].message;
    assert_eq!((skills.len(), skills.unapproved().len()), (0, 0));
    assert_eq!(why, "cannot approve skill: `scripts/lib.sh` is not a regular file");
}

/// Large sparse files can't delay the start of a session.
#[test]
fn a_skill_that_exceeds_the_bounds() {
    let project = Project::new();
    for number in 0..2 {
        let dir = project.root().join(format!(".skills/big-{number}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("SKILL.md"), format!("---\nname: big-{number}\ndescription: d\n---\nx\n"))
            .unwrap();
        fs::File::create(dir.join("sparse")).unwrap().set_len(Bounds::SKILL.bytes).unwrap();
    }
    let skills = project.sift();
    let why: Vec<_> =
        skills.skipped().iter().map(|skipped| skipped.diagnostics[0].message.as_str()).collect();
    assert_eq!((skills.len(), skills.unapproved().len(), why.len()), (0, 1, 2), "{why:?}");
    assert!(why[0].starts_with("cannot approve skill: skill has more than"), "{why:?}");
    // We should use the same bounds for all skills together.
    let mut bounds = Bounds { bytes: 100, ..Bounds::SKILL };
    let skill = skills.unapproved()[0].skill.clone();
    Fingerprint::of(&skill, &mut bounds).unwrap();
    assert!(bounds.bytes < 100 && bounds.entries == Bounds::SKILL.entries - 2, "{bounds:?}");
    let two = (0..3).map(|_| Fingerprint::of(&skill, &mut bounds).is_ok());
    assert_eq!(two.collect::<Vec<_>>(), [true, false, false], "{bounds:?}");
}

/// Scripts follow links, so the target of a link is a part of the checksum. A skill with an ambiguous name or with very deep
/// directories can't be approved.
#[cfg(unix)]
#[test]
fn links_ambiguous_names_and_deep_directories() {
    use std::{
        ffi::OsStr,
        os::unix::{ffi::OsStrExt, fs::symlink},
    };
    let project = Project::new();
    let skill = project.root().join(".skills/x");
    project.write("scripts/lib.sh", "good");
    project.write("assets/lib.sh", "bad");
    symlink("scripts", skill.join("lib")).unwrap();
    symlink("/etc/hosts", skill.join("out")).unwrap();
    project.write("\u{fffd}.sh", "good");
    project.decide(true);
    assert_eq!(project.state(), (1, vec![]));
    let relink = |name: &str, target: &str| {
        fs::remove_file(skill.join(name)).unwrap();
        symlink(target, skill.join(name)).unwrap();
    };
    for (name, other, before) in [("lib", "assets", "scripts"), ("out", "../../evil.sh", "/etc/hosts")] {
        relink(name, other);
        assert_eq!(project.state(), (0, vec!["changed"]), "{name}");
        relink(name, before);
        assert_eq!(project.state(), (1, vec![]), "{name}");
    }
    symlink("assets", skill.join("new")).unwrap();
    assert_eq!(project.state(), (0, vec!["changed"]));
    fs::remove_file(skill.join("new")).unwrap();

    let check_not_approvable = |what: &str| {
        let skills = project.sift();
        let why =
            skills.skipped().iter().map(|skipped| skipped.diagnostics[0].message.clone()).collect::<Vec<_>>();
        assert_eq!((skills.len(), skills.unapproved().len(), why.len()), (0, 0, 1), "{what}: {why:?}");
        assert!(why[0].starts_with("cannot approve skill: cannot read `"), "{what}: {why:?}");
    };
    let twin = skill.join(OsStr::from_bytes(b"\xff.sh"));
    fs::write(&twin, "bad").unwrap();
    check_not_approvable("a name that is not valid UTF-8");
    fs::remove_file(twin).unwrap();
    project.write(&format!("{}x.sh", "d/".repeat(40)), "bad");
    check_not_approvable("a deep directory");
    fs::remove_dir_all(skill.join("d")).unwrap();
    assert_eq!(project.state(), (1, vec![]));
}
