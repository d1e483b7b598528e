//! Git repositories, and users with their own cache and configuration, for the tests of sources.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::editor::Proxy;

/// A git repository, created with `git`.
pub(crate) struct Repository(TempDir);

impl Repository {
    /// Creates a repository with one commit, which contains the skill `review`.
    pub(crate) fn review() -> Self {
        let repository = Self(tempfile::tempdir().expect("a directory"));
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.git(&["config", "user.name", "t"]);
        repository.git(&["config", "user.email", "t@example.com"]);
        repository.skill("review", "Reviews code.", "# Review one");
        repository.commit();
        repository
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.run(Command::new("git").args(arguments))
    }

    /// Runs git. Its commits have this time, in seconds since 1970.
    pub(crate) fn git_at(&self, time: u64, arguments: &[&str]) -> String {
        self.run(Command::new("git").args(arguments).env("GIT_COMMITTER_DATE", format!("{time} +0000")))
    }

    fn run(&self, command: &mut Command) -> String {
        let output = command
            .current_dir(self.path())
            .env("GIT_CONFIG_GLOBAL", if cfg!(windows) { "NUL" } else { "/dev/null" })
            .output()
            .expect("git");
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn skill(&self, name: &str, description: &str, body: &str) {
        let text = format!("---\nname: {name}\ndescription: {}\n---\n{body}\n", json!(description));
        self.write(&format!("{name}/SKILL.md"), &text);
    }

    /// Commits all changes and returns the commit's hash.
    pub(crate) fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=m"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Returns the repository's address as a source. `fragment` is appended.
    pub(crate) fn source(&self, fragment: &str) -> String {
        let path = self.path().to_str().expect("text").replace('\\', "/");
        format!("git+file://{}{path}{fragment}", if path.starts_with('/') { "" } else { "/" })
    }

    /// Deletes the repository and returns the address as a source.
    pub(crate) fn delete(self) -> String {
        let source = self.source("");
        // Just move the directory, because Wine can't remove read-only files, and the objects of git are read-only.
        let elsewhere = tempfile::tempdir().expect("a directory");
        fs::rename(self.path(), elsewhere.path().join("repository")).expect("the path exists");
        source
    }
}

/// The directories of a user: configuration, cache, state.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// Returns the lock file that is used without a configuration file.
    pub(crate) fn lock(&self) -> PathBuf {
        self.path("state/acp-skills-proxy/skills.lock")
    }

    /// Returns the path where the configuration is found by default.
    pub(crate) fn config(&self) -> PathBuf {
        self.path("config/acp-skills-proxy/skills.yaml")
    }

    #[expect(clippy::unused_self, reason = "callers show whose file it is")]
    pub(crate) fn write(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn variables(&self) -> [(&'static str, PathBuf); 6] {
        [
            ("HOME", self.path("home")),
            ("USERPROFILE", self.path("home")),
            ("XDG_CONFIG_HOME", self.path("config")),
            ("XDG_CACHE_HOME", self.path("cache")),
            ("XDG_STATE_HOME", self.path("state")),
            // The settings of this machine can name another registry, or certificates.
            ("NPM_CONFIG_GLOBALCONFIG", self.path("npmrc")),
        ]
    }

    /// Returns a proxy that runs as this user.
    pub(crate) fn proxy(&self) -> Proxy {
        self.variables().into_iter().fold(Proxy::new(), |proxy, (name, value)| proxy.env(name, value))
    }

    /// Runs a command as this user, with an empty stdin.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, &[])
    }

    /// Runs a command like [`run`](Self::run), with more environment variables.
    pub(crate) fn run_with(&self, arguments: &[&str], variables: &[(&str, &OsStr)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        command.args(arguments).envs(self.variables()).env_remove("ACP_SKILLS_LOG").env_remove("COLUMNS");
        for variable in ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"] {
            command.env_remove(variable);
        }
        command.envs(variables.iter().copied());
        command.stdin(Stdio::null()).current_dir(self.0.path()).output().expect("the program runs")
    }

    /// Runs a command that must succeed, and returns stdout.
    pub(crate) fn printed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}\n{errors}");
        text.into_owned()
    }

    /// Runs a command that must succeed, and returns stdout, parsed as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.printed(arguments)).expect("JSON")
    }

    /// Runs a command that must exit with `code`, and returns stderr.
    pub(crate) fn fails(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}\n{errors}");
        errors.into_owned()
    }

    /// Returns the commit that a source is pinned to.
    #[expect(clippy::unused_self, reason = "callers show whose lock it is")]
    pub(crate) fn pinned(&self, lock: &Path, source: &str) -> Option<String> {
        let lock: Value = serde_json::from_slice(&fs::read(lock).ok()?).expect("JSON");
        Some(lock["sources"][source]["commit"].as_str()?.to_owned())
    }
}
