//! Commands that wait: they say what they wait for, and give up after a while.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

/// A home directory with a configuration file that has two sources.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::write(home.path("skills.yaml"), "sources:\n  - github:acme/one\n  - github:acme/two\n").unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Starts a command. Stderr is a pipe.
    fn start(&self, arguments: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
            .args(arguments)
            .current_dir(self.0.path())
            .env("HOME", self.0.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env_remove("ACP_SKILLS_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Takes all locks of the cache, as a process that is stopped while it changes a file. They are released on drop.
    fn take_locks(&self) -> Vec<File> {
        let locks = self.path("cache/acp-skills-proxy/locks");
        let entries = fs::read_dir(locks).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "lock"));
        files
            .map(|path| {
                fs::write(&path, "4194304").unwrap();
                let file = File::options().append(true).open(path).unwrap();
                file.lock().unwrap();
                file
            })
            .collect()
    }
}

#[test]
fn a_lock_that_another_process_holds() {
    let home = Home::new();
    // The first change creates the lock.
    assert!(home.start(&["remove", "github:acme/one", "--config", "skills.yaml"]).wait().unwrap().success());
    let held = home.take_locks();
    assert!(!held.is_empty());
    let remove = ["remove", "github:acme/two", "--config", "skills.yaml"];
    let mut command = home.start(&remove);
    let mut said = BufReader::new(command.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.starts_with(" WARN waiting for process 4194304, which holds "), "{line}");
    // The lock is never released, so the command gives up and prints a hint.
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(!command.wait().unwrap().success());
    assert!(rest.contains("process 4194304 has held ") && rest.contains(" for 15 seconds"), "{rest}");
    assert!(rest.contains("hint: wait for that process to end, or end it"), "{rest}");
    // If the other process releases the lock, the command continues.
    let mut command = home.start(&remove);
    let mut said = BufReader::new(command.stderr.take().unwrap());
    said.read_line(&mut line).unwrap();
    drop(held);
    assert!(command.wait().unwrap().success());
    assert!(!fs::read_to_string(home.path("skills.yaml")).unwrap().contains("acme"));
}

/// Creates a FIFO that no process writes to.
fn fifo(home: &Home) -> PathBuf {
    let fifo = home.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    fifo
}

#[test]
fn a_configuration_that_nobody_writes() {
    let home = Home::new();
    let fifo = fifo(&home);
    let arguments = ["list", "--config", "fifo"];
    let mut command = home.start(&arguments);
    let mut said = BufReader::new(command.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.starts_with(" WARN waiting for a process that writes to "), "{line}");
    fs::write(&fifo, "skills: []\n").unwrap();
    assert!(command.wait().unwrap().success());
    // This time, no process writes to the FIFO.
    let output = home.start(&arguments).wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no process has written the file to its end in 30 seconds: fifo"), "{said}");
}

#[test]
fn endless_files() {
    let home = Home::new();
    write_skill(&home);
    for (arguments, reason) in [
        (["report", "/dev/zero"].as_slice(), "the file is a device, so reading it may never end"),
        (&["list", "--config", "/dev/zero"], "the file is larger than 16 MiB"),
        (&["check", "skill", "--security", "--rules", "/dev/zero"], "the file is larger than 16 MiB"),
        (
            &["eval", "skill", "--queries", "/dev/zero", "--dry-run", "--", "agent"],
            "the file is larger than 64 MiB",
        ),
    ] {
        let output = home.start(arguments).wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(reason), "{said}");
    }
    assert!(home.start(&["list", "--config", "/dev/null"]).wait().unwrap().success());
}

fn write_skill(home: &Home) {
    fs::create_dir(home.path("skill")).unwrap();
    fs::write(home.path("skill/SKILL.md"), "---\nname: skill\ndescription: Reads files.\n---\nBody\n")
        .unwrap();
}

/// Output that is written to a FIFO waits for a reader, and says so.
#[test]
fn output_that_is_not_read() {
    let home = Home::new();
    write_skill(&home);
    fs::write(home.path("events"), "").unwrap();
    let fifo = fifo(&home);
    for arguments in
        [["check", "skill", "--sarif", "fifo"].as_slice(), &["report", "events", "--html", "fifo"]]
    {
        let mut command = home.start(arguments);
        let mut said = BufReader::new(command.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.starts_with(" WARN waiting for a process that reads "), "{line}");
        assert!(!fs::read_to_string(&fifo).unwrap().is_empty());
        assert!(command.wait().unwrap().success());
    }
}

#[test]
fn a_record_that_nobody_writes() {
    let home = Home::new();
    let fifo = fifo(&home);
    let mut command = home.start(&["report", "fifo"]);
    let mut said = BufReader::new(command.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.starts_with(" WARN waiting for a process that writes to "), "{line}");
    fs::write(&fifo, "").unwrap();
    assert!(command.wait().unwrap().success());
    // This time, a process has opened the FIFO, and does not write to it.
    let held = File::options().read(true).write(true).open(&fifo).unwrap();
    let output = home.start(&["report", "fifo"]).wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with(" WARN waiting for a process that writes to "), "{said}");
    assert!(said.contains("no process has written the file to its end in 30 seconds: fifo"), "{said}");
    drop(held);
}

#[test]
fn queries_that_nobody_writes() {
    let home = Home::new();
    write_skill(&home);
    let fifo = fifo(&home);
    let mut command = home.start(&["eval", "skill", "--queries", "fifo", "--dry-run", "--", "agent"]);
    let mut said = BufReader::new(command.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.starts_with(" WARN waiting for a process that writes to "), "{line}");
    fs::write(&fifo, "[]").unwrap();
    command.wait().unwrap();
}
