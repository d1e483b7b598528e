//! A temporary home directory with skills, and the output of the program in it.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use expect_test::Expect;
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
        format!("{text}exit {code}\n").replace(self.dir.to_str().unwrap(), "…").replace('\\', "/")
    }

    pub(crate) fn check(&self, arguments: &[&str], expected: Expect) {
        expected.assert_eq(&self.output(arguments));
    }
}
