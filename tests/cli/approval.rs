//! The questions of `add` and `update` on a terminal: what they show, and what it takes to approve it.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    process::{Child, Command},
};

use crate::progress::{read_until, terminal};

/// A directory with a git repository that contains a skill, and with the directories of a user.
struct Fixture(tempfile::TempDir);

impl Fixture {
    fn new() -> Self {
        let fixture = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(fixture.path().join("repository/review")).unwrap();
        fixture.git(&["init", "--quiet", "--initial-branch=main"]);
        fixture.write("SKILL.md", b"---\nname: review\ndescription: d\n---\nZQ-body\n");
        fixture
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(arguments);
        command.current_dir(self.path().join("repository")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(command.status().unwrap().success());
    }

    /// Writes a file of the skill and commits it.
    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join("repository/review").join(name), bytes).unwrap();
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=m"]);
    }

    /// Starts a command with stdin, stdout and stderr on a terminal.
    fn start(&self, arguments: &[&str], pager: &str) -> (Child, File) {
        let (ours, theirs) = terminal();
        let stream = || theirs.try_clone().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
            .args(arguments)
            .current_dir(self.path())
            .env("PAGER", pager)
            .env("HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .env("XDG_STATE_HOME", self.path().join("state"))
            .stdin(stream())
            .stdout(stream())
            .stderr(stream())
            .spawn()
            .unwrap();
        (child, ours)
    }

    /// Runs `add` in a terminal, and types `answer` at the question. Returns what the terminal showed, and the exit code.
    fn add(&self, pager: &str, answer: &str) -> (String, Option<i32>) {
        let source = format!("git+file://{}/repository", self.path().display());
        let (mut child, mut terminal) = self.start(&["add", &source], pager);
        let mut shown = read_until(&mut terminal, "Add `");
        writeln!(terminal, "{answer}").unwrap();
        shown += &read_until(&mut terminal, "dded");
        let code = child.wait().unwrap().code();
        (shown, code)
    }
}

#[test]
fn a_plain_yes_approves_what_was_shown() {
    let fixture = Fixture::new();
    let (shown, code) = fixture.add("", "n");
    assert!(shown.contains("+ZQ-body") && code == Some(1), "{shown}");
    let (shown, code) = fixture.add("", "y");
    assert!(shown.contains("+ZQ-body") && code == Some(0), "{shown}");
}

#[test]
fn files_that_cannot_be_shown_take_a_word() {
    let fixture = Fixture::new();
    fixture.write("logo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    for answer in ["y", "yes", ""] {
        let (shown, code) = fixture.add("", answer);
        assert!(shown.contains("review: logo.png (cannot be shown: image/png, 16 bytes)"), "{shown}");
        assert!(
            shown.contains("1 file cannot be shown or pinned (see above). To approve, type `unseen`:"),
            "{shown}"
        );
        assert!(shown.contains("Nothing was added") && code == Some(1), "{shown}");
    }
    let (shown, code) = fixture.add("", "unseen");
    assert!(code == Some(0) && !shown.contains("Nothing was added"), "{shown}");
}

/// The pager gets the escaped text. If it fails, the text is printed.
#[test]
fn a_long_text_is_shown_with_the_pager() {
    let fixture = Fixture::new();
    fixture.write("notes.md", b"ZQ-notes \x1b[2J\n");
    let pager = fixture.path().join("pager");
    fs::write(&pager, "#!/bin/sh\ncat > paged\necho PAGED $1\n").unwrap();
    fs::set_permissions(&pager, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (shown, _) = fixture.add(&format!("{} -x", pager.display()), "n");
    assert!(shown.contains("PAGED -x") && !shown.contains("ZQ-body"), "{shown}");
    let paged = fs::read_to_string(fixture.path().join("paged")).unwrap();
    assert!(paged.contains("+ZQ-body") && paged.contains("ZQ-notes \\u{1b}[2J"), "{paged}");
    for pager in ["false", "/nowhere/pager"] {
        let (shown, _) = fixture.add(pager, "n");
        assert!(shown.contains("+ZQ-body"), "{pager}: {shown}");
    }
}

/// While the user thinks about a version, a newer one is approved elsewhere. The answer must not bring the older one back.
#[test]
fn an_old_question_changes_nothing() {
    let fixture = Fixture::new();
    assert_eq!(fixture.add("", "y").1, Some(0));
    fixture.write("notes.md", b"Two\n");
    let (mut waiting, mut terminal) = fixture.start(&["update"], "");
    let mut shown = read_until(&mut terminal, "Approve");
    fixture.write("notes.md", b"Three\n");
    let (mut other, mut seen) = fixture.start(&["update", "--yes"], "");
    read_until(&mut seen, "pproved");
    assert!(other.wait().unwrap().success());
    let lock = || fs::read_to_string(fixture.path().join("config/acp-skills-proxy/skills.lock")).unwrap();
    let newer = lock();
    writeln!(terminal, "y").unwrap();
    shown += &read_until(&mut terminal, "was not changed");
    assert!(!waiting.wait().unwrap().success(), "{shown}");
    assert!(shown.contains("was approved in the meantime"), "{shown}");
    assert_eq!(lock(), newer);
}

/// While the user thinks about a version, it is approved elsewhere. A "no" takes nothing back, so it must not look as if it did.
#[test]
fn a_no_to_an_approved_version_is_an_error() {
    let fixture = Fixture::new();
    assert_eq!(fixture.add("", "y").1, Some(0));
    fixture.write("notes.md", b"Two\n");
    let (mut waiting, mut terminal) = fixture.start(&["update"], "");
    let mut shown = read_until(&mut terminal, "Approve");
    let (mut other, mut seen) = fixture.start(&["update", "--yes"], "");
    read_until(&mut seen, "pproved");
    assert!(other.wait().unwrap().success());
    writeln!(terminal, "n").unwrap();
    shown += &read_until(&mut terminal, "was not changed");
    assert!(!waiting.wait().unwrap().success(), "{shown}");
    assert!(shown.contains("was approved in the meantime") && !shown.contains("Declined"), "{shown}");
}
