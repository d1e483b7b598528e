//! Cases about the working directory of the script.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use skills_core::exec::{Sandbox, SandboxError, SandboxWarning, ScriptResult};

use crate::{
    cases::{skipped, snapshot, text},
    fixture::Fixture,
};

/// Checks that no script runs in `cwd`, and returns the message.
fn rejection(fixture: &Fixture, cwd: &Path) -> String {
    let result = write_in(fixture, cwd);
    assert_eq!((result.exit_code, result.stdout.as_str()), (None, ""), "{} {result:?}", cwd.display());
    let message = result.message.unwrap();
    assert!(message.contains("use a project directory"), "the hint is missing: {message}");
    message
}

fn write_in(fixture: &Fixture, cwd: &Path) -> ScriptResult {
    fixture.script_in(cwd, Some(Sandbox::bwrap(false).unwrap()), "write", &["attack"])
}

pub(crate) fn directories_that_would_defeat_the_sandbox_are_rejected() {
    let fixture = Fixture::new();
    let sandbox = Sandbox::bwrap(false).unwrap();
    for cwd in ["/", "/proc", "/proc/self/root", "/sys", "/dev", "/etc", "/usr", "/run", "/tmp", "/var"] {
        rejection(&fixture, Path::new(cwd));
        let error = sandbox.check_directory(Path::new(cwd)).unwrap_err();
        assert!(matches!(error, SandboxError::Directory { .. }), "{cwd}: {error}");
    }
    let above_home = fixture.path("");
    let message = rejection(&fixture, &above_home);
    assert!(message.contains("this directory contains your home directory"), "{message}");
    let message = rejection(&fixture, fixture.skill().parent().unwrap());
    assert!(message.contains("scripts could change other skills next to `kit`"), "{message}");
    assert!(!Path::new("/tmp/attack").exists());
}

pub(crate) fn links_to_such_directories_are_rejected() {
    let fixture = Fixture::new();
    for (number, target) in [Path::new("/"), Path::new("/proc"), &fixture.path(""), &fixture.path("skills")]
        .into_iter()
        .enumerate()
    {
        let link = fixture.path(&format!("home/link{number}"));
        symlink(target, &link).unwrap();
        rejection(&fixture, &link);
        rejection(&fixture, &link.join("."));
        rejection(&fixture, &fixture.path(&format!("home/project/../link{number}")));
    }
    let link = fixture.path("home/project-link");
    symlink(fixture.path("home/project"), &link).unwrap();
    let result = write_in(&fixture, &link);
    assert!(result.success, "{result:?}");
    assert!(fixture.path("home/project/attack").exists());
}

/// A script of a session in `home/work` could have made the link.
pub(crate) fn links_that_a_script_could_have_made_are_rejected() {
    let fixture = Fixture::new();
    for dir in ["home/work/sub", "home/.config/autostart"] {
        fs::create_dir_all(fixture.path(dir)).unwrap();
    }
    let target = fixture.path("home/.config");
    for (link, path) in [("home/work/w", "home/work/w"), ("home/work/sub/w", "home/work/sub/w/autostart/..")]
    {
        symlink(&target, fixture.path(link)).unwrap();
        let message = rejection(&fixture, &fixture.path(path));
        assert!(message.contains("a script could have made the link"), "{message}");
        assert!(message.contains(target.to_str().unwrap()) && message.contains(link), "{message}");
    }
    // The user has decided about the directory itself.
    assert!(write_in(&fixture, &target).success);
    let protected = Sandbox::bwrap(false).unwrap().protecting([target.join("autostart")]);
    for dir in ["home/.config", "home/.config/autostart"] {
        let error = protected.check_directory(&fixture.path(dir)).unwrap_err().to_string();
        assert!(error.contains("scripts must not access"), "{error}");
    }
    assert!(protected.check_directory(&fixture.path("home")).unwrap().is_some());
}

/// With its configuration, a script could make the proxy run other programs at the next start.
pub(crate) fn files_of_the_proxy_are_read_only() {
    let fixture = Fixture::new();
    let at = |path: &str| fixture.cwd.join(path);
    fs::create_dir_all(at("sub")).unwrap();
    for file in ["skills.yaml", "sub/skills.yaml", "other"] {
        fs::write(at(file), "old\n").unwrap();
    }
    let files = ["skills.yaml", "sub/skills.yaml", "missing"].map(at);
    let sandbox = Sandbox::bwrap(false).unwrap().with_read_only(files);
    let result = fixture.script(Some(sandbox), "write", &["skills.yaml", "sub/skills.yaml", "sub", "other"]);
    let done: Vec<_> = result.stdout.lines().filter(|line| line.ends_with("done")).collect();
    assert_eq!(done, ["other: done"], "{}", result.stdout);
    for file in ["skills.yaml", "sub/skills.yaml"] {
        assert_eq!(fs::read_to_string(at(file)).unwrap(), "old\n");
    }
}

/// A script could replace a link in its working directory, and so the configuration of the next session.
pub(crate) fn links_to_the_configuration_are_rejected() {
    let fixture = Fixture::new();
    let shared = fixture.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("skills.yaml"), "old\n").unwrap();
    std::os::unix::fs::symlink(&shared, fixture.cwd.join("conf")).unwrap();
    std::os::unix::fs::symlink(shared.join("skills.yaml"), fixture.cwd.join("link.yaml")).unwrap();
    for file in ["conf/skills.yaml", "link.yaml"] {
        let sandbox = Sandbox::bwrap(false).unwrap().with_read_only([fixture.cwd.join(file)]);
        let error = sandbox.check_directory(&fixture.cwd).unwrap_err().to_string();
        assert!(error.contains("a script could replace the link"), "{error}");
        let result = fixture.script(Some(sandbox), "status", &[]);
        assert!(!result.success && result.stdout.is_empty(), "{result:?}");
    }
    let sandbox = Sandbox::bwrap(false).unwrap().with_read_only([shared.join("skills.yaml")]);
    sandbox.check_directory(&fixture.cwd).unwrap();
}

/// A bind mount that is unmounted on drop.
struct Mounted(PathBuf);

impl Mounted {
    fn new(source: &Path, target: PathBuf) -> Option<Self> {
        fs::create_dir_all(&target).unwrap();
        let mounted = Command::new("mount").arg("--bind").arg(source).arg(&target).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(target))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A second mount of a forbidden directory must be rejected like the directory itself.
pub(crate) fn second_mounts_of_forbidden_directories_are_rejected() {
    let fixture = Fixture::with_skill("home/project/.agent/skills/kit");
    let mount =
        |source: &Path, number: usize| Mounted::new(source, fixture.path(&format!("mounted{number}")));
    let Some(project) = mount(&fixture.path("home/project"), 0) else {
        return skipped("this user cannot mount directories");
    };
    let before = snapshot(fixture.skill());
    let mut all = vec![project];
    // Make sure to only mount directories of this test, since all of them will be removed with their contents at the end.
    let others = [fixture.path("home/project/.agent"), fixture.skill().to_owned(), fixture.path("")];
    all.extend(others.iter().zip(1..).map(|(source, number)| mount(source, number).unwrap()));
    for mounted in &all {
        let message = rejection(&fixture, &mounted.0);
        assert!(message.contains("this directory is another mount of"), "{message}");
    }
    let above_home = Sandbox::bwrap(false).unwrap().check_directory(&all[3].0).unwrap_err();
    assert!(above_home.to_string().contains("this directory is another mount of"), "{above_home}");
    assert_eq!(snapshot(fixture.skill()), before);
    // However, a second mount of any other directory is allowed.
    let beside = fixture.path("home/beside");
    fs::create_dir(&beside).unwrap();
    let mounted = mount(&beside, 4).unwrap();
    assert!(write_in(&fixture, &mounted.0).success);
}

/// Replaces the working directory by a link to a forbidden directory, and back, while scripts are started.
pub(crate) fn a_directory_replaced_by_a_link_gives_no_access() {
    const RUNS: usize = 200;
    let fixture = Fixture::new();
    let link = fixture.path("home/link");
    symlink(fixture.path(""), &link).unwrap();
    let sandbox = Sandbox::bwrap(false).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &link, CWD, &fixture.cwd, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..RUNS {
            fixture.script(Some(sandbox.clone()), "write", &["attack"]);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(!fixture.path("attack").exists(), "a script wrote through the link");
    if fixture.cwd.is_symlink() {
        renameat_with(CWD, &link, CWD, &fixture.cwd, RenameFlags::EXCHANGE).unwrap();
    }
    // On a busy machine, it can happen that no script ran in the directory itself until now.
    let result = fixture.script(Some(sandbox), "write", &["attack"]);
    assert_eq!(result.stdout, "attack: done\n");
}

/// A script of a session in the directory above can replace the directory by a link, while no program runs in it.
pub(crate) fn a_directory_that_was_replaced_is_rejected() {
    let fixture = Fixture::new();
    let sandbox = Sandbox::bwrap(false).unwrap();
    sandbox.check_directory(&fixture.cwd).unwrap();
    let result = fixture.script(Some(sandbox.clone()), "write", &["attack"]);
    assert_eq!(result.stdout, "attack: done\n");
    let (moved, other) = (fixture.path("home/moved"), fixture.path("home/other"));
    fs::rename(&fixture.cwd, &moved).unwrap();
    fs::create_dir(&other).unwrap();
    symlink(&other, &fixture.cwd).unwrap();
    let result = fixture.script(Some(sandbox.clone()), "write", &["attack"]);
    assert!(result.message.is_some_and(|message| message.contains("it was replaced")), "{}", result.stdout);
    assert!(!other.join("attack").exists());
    fs::remove_file(&fixture.cwd).unwrap();
    fs::rename(&moved, &fixture.cwd).unwrap();
    assert_eq!(fixture.script(Some(sandbox), "write", &["attack"]).stdout, "attack: done\n");
}

pub(crate) fn the_home_directory_causes_a_warning() {
    let mut fixture = Fixture::with_skill("home/.agent/skills/kit");
    let home = fixture.path("home");
    let sandbox = Sandbox::bwrap(false).unwrap();
    let warning = sandbox.check_directory(&home).unwrap().unwrap();
    assert!(
        matches!(&warning, SandboxWarning::HomeDirectory(directory) if *directory == home),
        "{warning:?}"
    );
    assert!(warning.to_string().contains("use a project directory"), "{warning}");
    assert_eq!(sandbox.check_directory(&fixture.cwd).unwrap(), None);
    fixture.cwd = home;
    let before = snapshot(&fixture.path("home/.agent/skills"));
    fixture.all_succeed("write", &[text(&fixture.path("home"))]);
    fixture.all_fail("change", &[text(fixture.skill())]);
    fixture.all_fail("replace", &[text(&fixture.cwd), text(fixture.skill())]);
    assert_eq!(snapshot(&fixture.path("home/.agent/skills")), before);
}

pub(crate) fn a_skill_below_the_working_directory_cannot_be_changed() {
    let fixture = Fixture::with_skill("home/project/.agent/more/skills/kit");
    let skills = fixture.path("home/project/.agent/more/skills");
    let before = snapshot(&skills);
    fixture.all_fail("replace", &[text(&fixture.cwd), text(fixture.skill())]);
    fixture.all_fail("change", &[text(fixture.skill())]);
    assert_eq!(snapshot(&skills), before);
    // We only make the directories above the skill read-only, so it should be possible to write to the rest of the project.
    let beside = fixture.path("home/project/source");
    fs::create_dir(&beside).unwrap();
    let on_the_way = ["home/project/.agent", "home/project/.agent/more"].map(|path| fixture.path(path));
    fixture.all_fail("write", &on_the_way.each_ref().map(|path| text(path)));
    fixture.all_succeed("write", &[text(&fixture.cwd), text(&beside)]);
}

pub(crate) fn a_skill_around_the_working_directory_cannot_be_changed() {
    let mut fixture = Fixture::new();
    fixture.cwd = fixture.skill().join("scripts");
    let before = snapshot(fixture.skill());
    fixture.all_fail("write", &[text(&fixture.cwd), text(fixture.skill())]);
    assert_eq!(snapshot(fixture.skill()), before);
    // A script could write to the files of the system relative to a descriptor of its working directory.
    for cwd in [fixture.skill().to_owned(), fixture.skill().join("scripts"), fixture.path("home/project")] {
        fixture.cwd = cwd;
        let inside = fixture.inside("descriptors", &[]);
        assert!(!inside.contains(text(&fixture.path(""))), "{}: {inside}", fixture.cwd.display());
    }
}
