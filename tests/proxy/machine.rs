//! A machine with a policy of an administrator: the proxy runs in its own mount namespace, with another `/etc`.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{editor::Proxy, repositories::Home};

/// The policy.
pub(crate) const FILE: &str = "/etc/acp-skills-proxy/policy.yaml";

/// Replaces `/etc` by a directory with the policy `$1`, changes it by the commands `$2`, and runs the rest.
const ENTER: &str = "set -e; mount -t tmpfs -o mode=755 tmpfs /etc; umask 022; mkdir /etc/acp-skills-proxy; \
                     cp \"$1\" /etc/acp-skills-proxy/policy.yaml; cd /etc/acp-skills-proxy; chmod 644 policy.yaml; eval \"$2\"; \
                     cd \"$3\"; shift 3; exec \"$@\"";

/// A machine with a policy.
pub(crate) struct Machine {
    dir: TempDir,
    pub(crate) home: Home,
    /// Commands that change the directory of the policy.
    pub(crate) setup: String,
}

impl Machine {
    /// Returns `None` with a message if there are no mount namespaces for this user.
    #[expect(clippy::print_stderr, reason = "message of a test")]
    pub(crate) fn new(policy: &str) -> Option<Self> {
        let machine =
            Self { dir: tempfile::tempdir().expect("a directory"), home: Home::new(), setup: String::new() };
        machine.write(policy);
        fs::create_dir_all(machine.home.path("home")).expect("a directory");
        let words = machine.words("true");
        let output = Command::new(&words[0]).args(&words[1..]).output();
        let is_possible = output.as_ref().is_ok_and(|output| output.status.success());
        if !is_possible {
            eprintln!("skipped: no mount namespace with another /etc: {output:?}");
        }
        is_possible.then_some(machine)
    }

    pub(crate) fn write(&self, policy: &str) {
        fs::write(self.dir.path().join("policy.yaml"), policy).expect("a file");
    }

    /// Returns the command line that runs `program` on this machine.
    fn words(&self, program: &str) -> Vec<String> {
        let policy = self.dir.path().join("policy.yaml");
        let home = self.home.path("home");
        let user: &[&str] = if rustix::process::geteuid().is_root() { &[] } else { &["-r"] };
        let enter = ["-m", "sh", "-c", ENTER, "sh", policy.to_str().expect("text"), &self.setup];
        let rest = [home.to_str().expect("text"), program];
        let words = [&["unshare"], user, &enter[..], &rest[..]].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    pub(crate) fn proxy(&self) -> Proxy {
        let words = self.words(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        let proxy = words[1..].iter().fold(Proxy::of(&words[0]), Proxy::arg);
        self.home.variables().into_iter().fold(proxy, |proxy, (name, value)| proxy.env(name, value))
    }

    pub(crate) fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let words = self.words(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(arguments).envs(self.home.variables()).stdin(Stdio::null());
        command.envs(variables.iter().copied()).output().expect("the program runs")
    }

    /// Runs a command. Returns the exit code and everything that it prints.
    pub(crate) fn says(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let Output { status, stdout, stderr } = self.run(arguments, &[]);
        (status.code(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
    }

    pub(crate) fn config(&self, text: &str) {
        self.home.write(&self.home.config(), text);
    }

    pub(crate) fn events(&self) -> PathBuf {
        self.home.path("events.jsonl")
    }

    /// Returns the reasons of all refusals in the record.
    pub(crate) fn recorded(&self) -> Vec<String> {
        let text = fs::read_to_string(self.events()).expect("a record");
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let refused = events.filter(|event| event["event"] == "refused");
        refused.map(|event| event["reason"].as_str().expect("text").to_owned()).collect()
    }
}

/// Asserts that a text contains a refusal by this rule.
pub(crate) fn assert_refused(text: &str, rule: &str) {
    assert!(
        text.contains("is refused by policy") && text.contains(rule) && text.contains(FILE),
        "{rule}: {text}"
    );
}
