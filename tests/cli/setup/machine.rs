//! A temporary home directory, and the output of the program in it. The expected output is that of Linux. [`here`] translates
//! it for Windows.

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

/// The directory in which the user's programs keep their state.
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

    /// Writes a script that `node` would run.
    pub(super) fn script(&self, path: &str) {
        self.program(path, "#!/usr/bin/env node\n", "@node %~dpn0.js %*\r\n");
    }

    /// Writes a program: a script on Unix, a batch file on Windows.
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

    /// Returns a command with the environment of this machine.
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

    pub(super) fn output(&self, arguments: &[&str]) -> String {
        self.output_of(&mut self.command(arguments))
    }

    /// Returns the output and the exit code. `PROGRAM` stands for the program, and `…` for the directory of the machine.
    pub(super) fn output_of(&self, command: &mut Command) -> String {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let mut printed = format!("{}{}exit {}\n", text(stdout), text(stderr), status.code().unwrap_or(-1));
        let program = dunce::canonicalize(PROGRAM).unwrap();
        for (path, name) in [(&program, "PROGRAM"), (&self.dir, "…")] {
            let path = path.to_str().unwrap();
            // Replace the path, both as it is and as it's escaped in JSON.
            printed = printed.replace(&path.replace('\\', r"\\"), name).replace(path, name);
        }
        if cfg!(windows) {
            for path in printed.split('…').skip(1) {
                let path = path.split(['"', ' ', '\n', ',']).next().unwrap();
                assert!(
                    !(path.contains('/') && path.contains('\\')),
                    "two kinds of separators: …{path} in {printed}"
                );
            }
            printed = printed.replace(r"\\", "/").replace('\\', "/");
        }
        // Don't print how many agents we know, so that we can add more of them without changing the tests.
        let lines = printed.split_inclusive('\n').map(|line| match line.split_once(" known agents: ") {
            Some((_, rest)) => format!("To list all N known agents: {rest}"),
            None => line.to_owned(),
        });
        lines.collect()
    }

    pub(super) fn check(&self, arguments: &[&str], expected: Expect) {
        assert_output(&self.output(arguments), expected);
    }
}

fn assert_output(printed: &str, expected: Expect) {
    if cfg!(windows) {
        assert_eq!(squeezed(printed), squeezed(&here(&unindented(expected.data()))));
    } else {
        expected.assert_eq(printed);
    }
}

/// Translates the output on Linux to the output on this system.
pub(super) fn here(text: &str) -> String {
    if !cfg!(windows) {
        return text.to_owned();
    }
    let text = text
        .replace('\\', "/")
        // On Windows, these paths are different, and we don't use `~` for the home directory.
        .replace("…/home/", "~/")
        .replace("~/.config/zed/", "~/AppData/Roaming/Zed/")
        .replace("~/.config/goose/", "~/AppData/Roaming/Block/goose/config/")
        .replace("~/.config/", "~/AppData/Roaming/")
        .replace("~/AppData/Roaming/opencode/", "~/.config/opencode/")
        .replace("~/.local/state/", "~/AppData/Local/")
        .replace("~/", "…/home/")
        // This directory can only be changed by administrators.
        .replace("--prefix / ", "--prefix C:/Windows ")
        .replace("\"/\"", "\"C:/Windows\"")
        // On Windows, programs started from the desktop see the same `PATH` as those in a terminal, so the full path isn't
        // needed.
        .replace("\"…/bin/npx\"", "\"npx\"")
        .replace("No such file or directory (os error 2)", "program not found");
    let lines = text.split_inclusive('\n');
    let lines = lines.filter(|line| !line.contains("may not be in the PATH of your editor"));
    // The directories from which an agent loads skills itself have the same names everywhere.
    let own_skills =
        |line: &str| if line.contains(" itself") { line.replace("…/home/", "~/") } else { line.to_owned() };
    lines.map(own_skills).collect()
}

/// Removes the spaces between columns, because the widths of columns depend on paths.
fn squeezed(text: &str) -> String {
    let columns = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines()
        .map(|line| if line.starts_with(' ') { line.to_owned() } else { columns(line) } + "\n")
        .collect()
}

/// Removes the indentation of an expectation, as `expect_test` does.
fn unindented(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let indents = text.lines().filter(|line| !line.trim().is_empty());
    let indent = indents.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    text.split_inclusive('\n')
        .map(|line| line.get(indent..).unwrap_or(line.trim_start_matches(' ')))
        .collect()
}

/// Copies a program in another process. If this process wrote the file, a test that starts a process at the same time could
/// inherit the open file, and the program could not be started (`ETXTBSY`).
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

/// On Windows, files inherit the permissions of the home directory.
#[cfg(windows)]
pub(super) fn assert_private(_path: &Path) {}

/// Opens a terminal. Returns our end and the end for the program.
#[cfg(unix)]
pub(super) fn terminal() -> (fs::File, fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    (ours.into(), OpenOptions::new().read(true).write(true).open(name).unwrap())
}
