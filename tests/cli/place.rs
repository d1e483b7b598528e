//! A temporary home directory for tests of messages.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use expect_test::Expect;
use tempfile::TempDir;

/// A home directory with a skill, a directory with skills, and an empty one.
pub(crate) struct Place {
    _root: TempDir,
    pub(crate) dir: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let place = Self { dir: dunce::canonicalize(root.path()).unwrap(), _root: root };
        for name in ["pdf", "docx"] {
            place.write(
                &format!("skills/{name}/SKILL.md"),
                &format!("---\nname: {name}\ndescription: Reads {name}.\n---\nBody\n"),
            );
        }
        place.write("home/skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nBody\n");
        fs::create_dir(place.dir.join("empty")).unwrap();
        place
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

    /// Returns stdout, stderr and the exit code.
    pub(crate) fn said(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        let code = output.status.code().unwrap_or(-1);
        format!("{said}exit {code}\n").replace(self.dir.to_str().unwrap(), "…").replace('\\', "/")
    }

    pub(crate) fn check(&self, arguments: &[&str], expected: Expect) {
        expected.assert_eq(&self.said(arguments));
    }
}
