//! A skill with cases in a temporary directory, and runs of the program on it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::agent;

/// A skill `demo`, and a directory for results.
pub(crate) struct Fixture {
    root: TempDir,
}

impl Fixture {
    /// Creates a skill with these queries and these tasks.
    pub(crate) fn new(queries: &Value, evals: &Value) -> Self {
        let fixture = Self { root: tempfile::tempdir().expect("a directory") };
        fixture.write_skill("demo", "Does demos. Use for demos.");
        if queries.as_array().is_some_and(|queries| !queries.is_empty()) {
            fixture.write("demo/evals/eval_queries.json", &queries.to_string());
        }
        if evals.as_array().is_some_and(|evals| !evals.is_empty()) {
            fixture
                .write("demo/evals/evals.json", &json!({ "skill_name": "demo", "evals": evals }).to_string());
        }
        fixture
    }

    pub(crate) fn write_skill(&self, dir: &str, description: &str) {
        let name = dir.rsplit('/').next().expect("a name");
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n\n# Demo\n\nDo it well.\n");
        self.write(&format!("{dir}/SKILL.md"), &text);
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.root.path().join(file)
    }

    /// Returns a command that runs `eval` with the scripted agent. `grades` selects the grades of the agent.
    pub(crate) fn command(&self, flags: &[&str], grades: &str) -> Command {
        let mut command = program();
        command.arg("eval").arg(self.path("demo")).arg("--workspace").arg(self.path("results"));
        command.args(flags).arg("--").arg(this()).args([agent::ARGUMENT, grades]);
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn eval(&self, flags: &[&str], grades: &str) -> Run {
        Run::of(&mut self.command(flags, grades))
    }

    /// Reads a JSON file of the results.
    pub(crate) fn json(&self, file: &str) -> Value {
        let path = self.path("results").join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).expect("JSON")
    }

    pub(crate) fn text(&self, file: &str) -> String {
        let path = self.path("results").join(file);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// The output and the exit code of the program.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.stdout, self.stderr))
    }
}

/// Returns a command that runs the program.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    command.env_remove("ACP_SKILLS_LOG").env_remove("GITHUB_STEP_SUMMARY").env("NO_COLOR", "1");
    command
}

/// Returns the path of this test program, which is also the scripted agent.
pub(crate) fn this() -> PathBuf {
    env::current_exe().expect("this program has a path")
}

/// Returns the root of the repository.
pub(crate) fn repository() -> PathBuf {
    dunce::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).expect("a repository")
}
