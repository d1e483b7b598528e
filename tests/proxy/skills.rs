//! The skills that the tests use, each set in a temporary directory.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use serde_json::json;
use tempfile::TempDir;

use crate::{
    agent,
    editor::{DEADLINE, Proxy},
};

/// The error code of Windows for a file or directory that another program has open.
const ERROR_SHARING_VIOLATION: i32 = 32;

/// A temporary directory with skills. It is removed when the value is dropped.
pub(crate) struct Skills(TempDir);

impl Skills {
    /// Creates a directory without skills.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    /// Creates the skill that most tests use: `review`, with a few files.
    pub(crate) fn review() -> Self {
        let skills = Self::new();
        skills.add(
            "review",
            "Reviews code. Use for <diffs> & \"patches\".",
            "# Review\n\nRead references/checklist.md.",
        );
        skills.write("review/references/checklist.md", "- [ ] names\n- [ ] tests\n");
        skills.write("review/assets/empty.txt", "");
        skills.write("review/scripts/count.sh", "#!/bin/sh\nwc -l\n");
        skills.write("review/assets/blob.bin", "\0\u{1}\u{2}\0binary");
        skills.write("secret.txt", "nobody may read this");
        skills
    }

    /// Adds a skill and returns the directory.
    pub(crate) fn add(&self, name: &str, description: &str, body: &str) -> PathBuf {
        let text = format!("---\nname: {name}\ndescription: {}\n---\n{body}\n", json!(description));
        self.write(&format!("{name}/SKILL.md"), &text);
        self.dir(name)
    }

    /// Writes a file and returns the path.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.dir(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, text).expect("a file");
        path
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the directory of a skill, with the platform's separators.
    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.0.path().join(name).components().collect()
    }

    /// Removes a directory. On Windows this fails while another program has it open, and the proxy opens it briefly after
    /// each change. So this retries, as programs on Windows do.
    pub(crate) fn remove(&self, name: &str) {
        let deadline = Instant::now() + DEADLINE;
        while let Err(error) = fs::remove_dir_all(self.dir(name)) {
            let is_held = cfg!(windows) && error.raw_os_error() == Some(ERROR_SHARING_VIOLATION);
            assert!(is_held && Instant::now() < deadline, "{name}: {error}");
            thread::yield_now();
        }
    }

    /// Writes a `skills.yaml` with the skill `review` and a virtual skill, `counter`, whose tool `echo` answers with its
    /// input.
    pub(crate) fn config(&self) -> PathBuf {
        let this = std::env::current_exe().expect("this program has a path");
        let mut environment = serde_json::Map::new();
        environment.insert(agent::SCRIPT.to_owned(), "echo".into());
        let config = json!({ "skills": ["review", {
            "name": "counter",
            "description": "Counts.",
            "body": "# Counting\nUse the tool `echo`.",
            "tools": [
                { "name": "echo", "description": "Says it again.", "command": [this], "env": environment },
                { "name": "missing", "description": "Is not there.", "command": ["no-such-program-anywhere"] },
            ],
        }] });
        // We can use JSON here, since it's valid YAML.
        self.write("skills.yaml", &config.to_string())
    }

    /// Returns a proxy that serves the skill `review`.
    pub(crate) fn proxy(&self) -> Proxy {
        Proxy::new().skill(&self.dir("review"))
    }
}
