//! A machine of the test's own, and what is said on it. The texts of the tests are those of Linux; what differs on Windows
//! stands in [`here`].

#[cfg(unix)]
use std::fs::OpenOptions;
use std::{
    fs::{self, Permissions},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use expect_test::Expect;
use tempfile::TempDir;

pub(super) const PROGRAM: &str = env!("CARGO_BIN_EXE_acp-skills-proxy");

pub(super) const ZED_FILE: &str =
    if cfg!(windows) { "home/AppData/Roaming/Zed/settings.json" } else { "home/.config/zed/settings.json" };

/// Where a user's programs keep what they remember.
pub(super) const STATE: &str = if cfg!(windows) { "home/AppData/Local" } else { "home/.local/state" };

/// A machine: a home directory with a skill, and a PATH with `npx`.
pub(super) struct Machine {
    _root: TempDir,
    dir: PathBuf,
}

impl Machine {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let machine = Self { dir: dunce::canonicalize(root.path()).unwrap(), _root: root };
        machine.write(
            "home/.agents/skills/greet/SKILL.md",
            "---\nname: greet\ndescription: Greets.\n---\nBody\n",
        );
        machine.script("bin/npx");
        machine
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program that `node` would run.
    pub(super) fn script(&self, path: &str) {
        self.program(path, "#!/usr/bin/env node\n", "@node %~dpn0.js %*\r\n");
    }

    /// A program: a script on Unix, a batch file on Windows.
    pub(super) fn program(&self, path: &str, script: &str, batch: &str) {
        let (path, text) =
            if cfg!(windows) { (format!("{path}.cmd"), batch) } else { (path.to_owned(), script) };
        self.write(&path, text);
        #[cfg(unix)]
        set_mode(&self.path(&path), 0o755);
    }

    pub(super) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// A program with the environment of this machine.
    pub(super) fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.dir)
            .env("HOME", self.path("home"))
            .env("USERPROFILE", self.path("home"))
            .env("APPDATA", self.path("home/AppData/Roaming"))
            .env("LOCALAPPDATA", self.path("home/AppData/Local"))
            .env("PATH", self.path("bin"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("ACP_SKILLS_LOG")
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
        command
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(Path::new(PROGRAM), arguments)
    }

    pub(super) fn said(&self, arguments: &[&str]) -> String {
        self.said_by(&mut self.command(arguments))
    }

    /// What is printed, and the exit code; `PROGRAM` and `…` stand for us and the directory of the machine.
    pub(super) fn said_by(&self, command: &mut Command) -> String {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let mut said = format!("{}{}exit {}\n", text(stdout), text(stderr), status.code().unwrap_or(-1));
        let program = dunce::canonicalize(PROGRAM).unwrap();
        for (path, name) in [(&program, "PROGRAM"), (&self.dir, "…")] {
            let path = path.to_str().unwrap();
            // As it is, and as JSON writes it.
            said = said.replace(&path.replace('\\', r"\\"), name).replace(path, name);
        }
        if cfg!(windows) {
            for path in said.split('…').skip(1) {
                let path = path.split(['"', ' ', '\n', ',']).next().unwrap();
                assert!(
                    !(path.contains('/') && path.contains('\\')),
                    "two kinds of separators: …{path} in {said}"
                );
            }
            said = said.replace(r"\\", "/").replace('\\', "/");
        }
        // How many there are is the table's affair.
        let lines =
            said.split_inclusive('\n').map(|line| match line.split_once(" agents are known by name") {
                Some((_, rest)) => format!("N agents are known by name{rest}"),
                None => line.to_owned(),
            });
        lines.collect()
    }

    pub(super) fn check(&self, arguments: &[&str], expected: Expect) {
        assert_said(&self.said(arguments), expected);
    }
}

fn assert_said(said: &str, expected: Expect) {
    if cfg!(windows) {
        assert_eq!(squeezed(said), squeezed(&here(&unindented(expected.data()))));
    } else {
        expected.assert_eq(said);
    }
}

/// What is said here, where `text` is what is said on Linux.
pub(super) fn here(text: &str) -> String {
    if !cfg!(windows) {
        return text.to_owned();
    }
    let text = text
        .replace('\\', "/")
        // Paths are not cut short, and are others.
        .replace("…/home/", "~/")
        .replace("~/.config/zed/", "~/AppData/Roaming/Zed/")
        .replace("~/.config/", "~/AppData/Roaming/")
        .replace("~/.local/state/", "~/AppData/Local/")
        .replace("~/", "…/home/")
        // Desktop and terminal have the same PATH.
        .replace("\"…/bin/npx\"", "\"npx\"")
        .replace("No such file or directory (os error 2)", "program not found");
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.starts_with("note: an editor may not have")).collect()
}

/// Without the spaces that make columns, whose widths depend on paths.
fn squeezed(text: &str) -> String {
    let columns = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines()
        .map(|line| if line.starts_with(' ') { line.to_owned() } else { columns(line) } + "\n")
        .collect()
}

/// An expectation without the indentation of the test, as it is compared elsewhere.
fn unindented(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let indents = text.lines().filter(|line| !line.trim().is_empty());
    let indent = indents.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    text.split_inclusive('\n')
        .map(|line| line.get(indent..).unwrap_or(line.trim_start_matches(' ')))
        .collect()
}

/// Copies a program by another process: what this one has open for writing while a test beside it starts something would be
/// too busy to be started.
#[cfg(unix)]
pub(super) fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-p").args([from, to]).status().unwrap().success());
}

#[cfg(windows)]
pub(super) fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap();
}

pub(super) fn set_read_only(path: &Path) {
    let mut permissions: Permissions = fs::metadata(path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path, permissions).unwrap();
}

#[cfg(unix)]
pub(super) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
pub(super) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
pub(super) fn assert_private(path: &Path) {
    assert_eq!(mode(path), 0o700);
}

/// The rights are those of the home directory there.
#[cfg(windows)]
pub(super) fn assert_private(_path: &Path) {}

/// Both ends of a terminal.
#[cfg(unix)]
pub(super) fn terminal() -> (fs::File, fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    (ours.into(), OpenOptions::new().read(true).write(true).open(name).unwrap())
}
