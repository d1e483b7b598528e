//! A temporary home directory with skills, and the output of the program in it.

use std::{
    fs, io,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use expect_test::Expect;
use skills_sources::disk::error_text;
use tempfile::TempDir;

/// A home directory with one skill, a directory with two skills, and an empty directory.
pub(crate) struct Fixture {
    _root: TempDir,
    pub(crate) dir: PathBuf,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let fixture = Self { dir: dunce::canonicalize(root.path()).unwrap(), _root: root };
        for name in ["pdf", "docx"] {
            fixture.write(
                &format!("skills/{name}/SKILL.md"),
                &format!("---\nname: {name}\ndescription: Reads {name}.\n---\nBody\n"),
            );
        }
        fixture.write("home/skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nBody\n");
        fs::create_dir(fixture.dir.join("empty")).unwrap();
        fixture
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
            .args(arguments)
            .current_dir(&self.dir)
            .env("HOME", self.dir.join("home"))
            .env("USERPROFILE", self.dir.join("home"))
            .env("COLUMNS", "120")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("ACP_SKILLS_LOG")
            .env("XDG_CONFIG_HOME", "/nowhere")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs the program. Returns stdout, stderr and the exit code. `…` stands for the directory of the fixture.
    pub(crate) fn output(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let decode = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let text = format!("{}{}", decode(&output.stdout), decode(&output.stderr));
        let code = output.status.code().unwrap_or(-1);
        as_on_linux(&format!("{text}exit {code}\n").replace(self.dir.to_str().unwrap(), "…"))
    }

    pub(crate) fn check(&self, arguments: &[&str], expected: Expect) {
        expected.assert_eq(&self.output(arguments));
    }
}

/// Translates output on Windows to that on Linux: the separators and quotes of paths, and the error for a missing file.
pub(crate) fn as_on_linux(text: &str) -> String {
    if !cfg!(windows) {
        return text.to_owned();
    }
    let mut text = text.replace('\\', "/");
    // A missing directory in a path has an error of its own.
    for number in [2, 3] {
        let error = error_text(&io::Error::from_raw_os_error(number));
        text = text.replace(&error, "no such file or directory");
    }
    // Paths in commands are quoted because of their separators.
    let mut parts = text.split("'…");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "…" + &part.replacen('\'', "", 1))
}
