//! [`Git`]: the user's own `git`, run so that a repository decides nothing.
//!
//! It has the user's keys, proxies and credential helpers. Arguments are a list, and no shell is in between. Whatever a
//! repository, an address or our environment could make it do is off: hooks, submodules, other protocols (`ext::` runs a
//! program), questions on a terminal, replaced objects, a repository that the environment names. It runs in a process
//! group that ends with us, and within a time.

#[cfg(unix)]
use std::os::unix::process::ExitStatusExt;
use std::{
    ffi::OsStr,
    io::{self, PipeReader, Read, Write},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use skills_core::exec::{ProcessGroup, ProcessObserver, probe_threads};
use tokio::process::Command;

use super::{super::address::Transport, GitError};

/// What is kept of what git says on stderr, in bytes: the end, where the reason is.
const MAX_SAID_BYTES: usize = 16 * 1024;

/// How many threads talk to it: to its stdin, from its stdout, from its stderr.
const THREADS: usize = 3;

/// Variables that name a repository or change what is read from one. A hook of git's, for example, sets some of them.
const OF_A_REPOSITORY: [&str; 14] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
];

/// What is set whatever the user's configuration says.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "transfer.bundleURI=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Runs `git` in one repository of ours.
pub(super) struct Git<'a> {
    program: PathBuf,
    directory: &'a Path,
    transport: Transport,
    observer: Option<Arc<dyn ProcessObserver>>,
    /// All of it has to be done by then.
    deadline: Instant,
    timeout: Duration,
}

impl<'a> Git<'a> {
    /// For a repository in `directory`, which may reach others by `transport` alone, and for `timeout` in all.
    ///
    /// # Errors
    /// There is no git.
    pub(super) fn new(
        directory: &'a Path,
        transport: Transport,
        observer: Option<Arc<dyn ProcessObserver>>,
        timeout: Duration,
    ) -> Result<Self, GitError> {
        // By its path: Windows would look for it in the working directory first.
        let program = which::which("git").map_err(|_| GitError::NoGit)?;
        Ok(Self { program, directory, transport, observer, deadline: Instant::now() + timeout, timeout })
    }

    /// Runs a command, of which only the success counts.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<(), GitError> {
        self.talk(arguments, Vec::new(), |_output| Ok(()))
    }

    /// Runs a command that answers with a line.
    pub(super) fn line(&self, arguments: &[&str]) -> Result<String, GitError> {
        self.talk(arguments, Vec::new(), |output| {
            let mut line = String::new();
            let read = output.take(4096).read_to_string(&mut line);
            read.map_err(|source| GitError::System { what: "rev-parse".to_owned(), source })?;
            Ok(line.trim().to_owned())
        })
    }

    /// Runs a command with `input` on its stdin, and has `read` read its stdout. What `read` leaves is thrown away; when it
    /// fails, that is the error.
    pub(super) fn talk<T: Send>(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
        read: impl FnOnce(&mut dyn Read) -> Result<T, GitError> + Send,
    ) -> Result<T, GitError> {
        let what = arguments.first().copied().unwrap_or_default().to_owned();
        let system = |source| GitError::System { what: what.clone(), source };
        let (stdin, to_git) = io::pipe().map_err(system)?;
        let (from_git, stdout) = io::pipe().map_err(system)?;
        let (errors, stderr) = io::pipe().map_err(system)?;
        let mut command = self.command(arguments);
        command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
        // Those below; once git runs, it would wait for them.
        probe_threads(THREADS).map_err(system)?;
        let entered = runtime.enter();
        let mut group = ProcessGroup::spawn(command, self.observer.clone()).map_err(system)?;
        drop(entered);
        let left = self.deadline.saturating_duration_since(Instant::now());
        thread::scope(|scope| {
            let writes = move || {
                let mut to_git = to_git;
                // Git says itself why it reads no further.
                drop(to_git.write_all(&input));
            };
            scope.spawn(writes);
            let said = scope.spawn(move || end_of(errors));
            let reads = move || {
                let mut from_git = from_git;
                let read = read(&mut from_git)?;
                // Whoever is not read from does not end.
                drop(io::copy(&mut from_git, &mut io::sink()));
                Ok(read)
            };
            let read = scope.spawn(reads);
            let ended = runtime.block_on(async { tokio::time::timeout(left, group.exited()).await });
            // Closes the pipes as well, whoever else has them.
            group.kill();
            let (said, read) = (join(said), join(read));
            let read = read?;
            match ended {
                Err(_) => Err(GitError::TooLong(self.timeout)),
                Ok(Err(source)) => Err(system(source)),
                Ok(Ok(status)) if status.success() => Ok(read),
                Ok(Ok(status)) => Err(match limit(status) {
                    Some(source) => system(source),
                    None => GitError::Failed { what: what.clone(), said },
                }),
            }
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        for variable in OF_A_REPOSITORY {
            command.env_remove(variable);
        }
        let protocol = match self.transport {
            Transport::Https => "https",
            Transport::Ssh => "ssh",
            Transport::File => "file",
        };
        command
            .current_dir(self.directory)
            // Also decides about addresses that the user's configuration rewrites.
            .env("GIT_ALLOW_PROTOCOL", protocol)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GCM_INTERACTIVE", "never")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("LC_ALL", "C");
        command.arg("--git-dir").arg(self.directory).arg("--literal-pathspecs");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        if self.transport == Transport::Ssh && !asks_with_own_ssh() {
            // Or it would ask for passwords on the terminal of whoever started us. A program of the user's own, from
            // his configuration, is given the same by the next line's variable.
            command.env("SSH_ASKPASS_REQUIRE", "never").args(["-c", "core.sshCommand=ssh -oBatchMode=yes"]);
        }
        command.args(arguments);
        command
    }
}

/// Whether the environment says which program is ssh.
fn asks_with_own_ssh() -> bool {
    ["GIT_SSH_COMMAND", "GIT_SSH"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|it| it != *OsStr::new("")))
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The error behind the end of a process that a limit of the system has ended, so that it could not say so itself.
#[cfg(unix)]
fn limit(status: ExitStatus) -> Option<io::Error> {
    let is_too_large = status.signal() == Some(rustix::process::Signal::XFSZ.as_raw());
    is_too_large.then(|| io::ErrorKind::FileTooLarge.into())
}

/// Nothing: no limit ends a process.
#[cfg(windows)]
fn limit(_status: ExitStatus) -> Option<io::Error> {
    None
}

/// The end of what is said, as text.
fn end_of(mut errors: PipeReader) -> String {
    let (mut said, mut some) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = errors.read(&mut some) {
        said.extend_from_slice(&some[..count]);
        let beyond = said.len().saturating_sub(MAX_SAID_BYTES);
        said.drain(..beyond);
    }
    String::from_utf8_lossy(&said).into_owned()
}
