//! [`Git`]: runs the user's own `git`, isolated from what the repository says.
//!
//! Git uses the user's keys, proxies and credential helpers. Arguments are passed as a list, without a shell. Everything that a
//! repository, an address or the environment could trigger is turned off: hooks, submodules, other protocols (`ext::` runs a
//! program), prompts on the terminal and in a window, replacement objects, and variables that name a repository. The process group ends when this
//! process ends, or when a [limit](Limits) is reached.

#[cfg(unix)]
use std::os::unix::process::ExitStatusExt;
use std::{
    env,
    io::{self, PipeReader, Read, Write},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::Instant,
};

use skills_core::exec::{ProcessGroup, ProcessObserver, TOKEN_VARIABLE, probe_threads};
use tokio::process::Command;

use super::{
    super::address::Transport,
    Limits,
    error::GitError,
    ssh,
    watch::{self, Watch},
};

/// The maximum number of bytes of git's stderr to keep. We keep the end, because it contains the reason.
const MAX_STDERR_BYTES: usize = 16 * 1024;

/// The minimum of `GIT_ALLOC_LIMIT`, in bytes. Git itself has buffers of a few megabytes.
const MIN_ALLOC_LIMIT: u64 = 16 * 1024 * 1024;

/// The number of threads for git's stdin, stdout and stderr.
const THREADS: usize = 3;

/// Environment variables with a program that git or ssh starts to ask for a user name or a password.
const ASKING_VARIABLES: [&str; 2] = ["GIT_ASKPASS", "SSH_ASKPASS"];

/// Environment variables that name a repository or change what is read from it. A git hook sets some of them, for example.
const REPOSITORY_VARIABLES: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
];

/// Settings that override the user's configuration.
const SETTINGS: [&str; 14] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=",
    "core.askPass=",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    // There is nothing to negotiate, because the repository is new.
    "fetch.negotiationAlgorithm=noop",
    // Store everything that is received in a single pack file, and don't load large files into memory.
    "fetch.unpackLimit=1",
    "core.bigFileThreshold=16m",
    // Each thread that resolves deltas has a few objects in memory. The default is one thread per core.
    "pack.threads=2",
    "transfer.bundleURI=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The filter that leaves all files out.
pub(super) const NO_FILES: &str = "--filter=blob:none";
/// The filter that leaves out large files.
pub(super) const SMALL_FILES: &str = "--filter=blob:limit=128k";

/// Runs `git` in a temporary repository.
pub(super) struct Git<'a> {
    program: PathBuf,
    directory: &'a Path,
    transport: Transport,
    observer: Option<Arc<dyn ProcessObserver>>,
    limits: &'a Limits,
    /// The end of the timeout for all commands together.
    deadline: Instant,
    /// The value of `GIT_SSH_COMMAND`. `None` leaves the variable as it is.
    ssh: Option<String>,
    /// The objects that the host should leave out, as `--filter` names them. Hosts may ignore it.
    pub(super) filter: &'static str,
}

impl<'a> Git<'a> {
    /// Creates a runner for the repository in `directory`, which may only use this `transport`. [`Limits::total`] is
    /// for all commands together.
    ///
    /// # Errors
    /// Returns [`GitError::NoGit`] if `git` is not in `PATH`.
    pub(super) fn new(
        directory: &'a Path,
        transport: Transport,
        observer: Option<Arc<dyn ProcessObserver>>,
        limits: &'a Limits,
    ) -> Result<Self, GitError> {
        // Use the absolute path here, because Windows would search the working directory first.
        let program = which::which("git").map_err(|_| GitError::NoGit)?;
        let deadline = Instant::now() + limits.total;
        Ok(Self { program, directory, transport, observer, limits, deadline, ssh: None, filter: NO_FILES })
    }

    /// Reads the user's ssh command from the configuration. The repository must exist and have its remote, because the configuration
    /// can depend on it.
    ///
    /// # Errors
    /// Returns an error if git can't be run.
    pub(super) fn read_ssh_command(&mut self) -> Result<(), GitError> {
        if self.transport != Transport::Ssh {
            return Ok(());
        }
        let configured = match self.line(&["config", "--get", "core.sshCommand"]) {
            Ok(command) => Some(command).filter(|command| !command.is_empty()),
            // Git exits with an error if the setting is missing.
            Err(GitError::Failed { .. }) => None,
            Err(error) => return Err(error),
        };
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let command = variable("GIT_SSH_COMMAND");
        let command = command.as_ref().map(|command| command.to_string_lossy());
        self.ssh = ssh::command(command.as_deref(), configured.as_deref(), variable("GIT_SSH").is_some());
        Ok(())
    }

    /// Runs a command and ignores its output.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<(), GitError> {
        self.talk(arguments, Vec::new(), |_output| Ok(()))
    }

    /// Runs a command and returns its output, which is one line. Of a longer output, returns the first 4096 bytes.
    pub(super) fn line(&self, arguments: &[&str]) -> Result<String, GitError> {
        self.talk(arguments, Vec::new(), |output| {
            let mut line = Vec::new();
            let read = output.take(4096).read_to_end(&mut line);
            read.map_err(|source| GitError::System { what: arguments[0].to_owned(), source })?;
            Ok(String::from_utf8_lossy(&line).trim().to_owned())
        })
    }

    /// Runs a command with `input` on stdin, and passes its stdout to `read`. Output that `read` leaves is discarded. A limit
    /// takes precedence over an error of `read`, which takes precedence over git's exit status.
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
        // We need to check this before we start git, since we can't read its output without the threads below.
        probe_threads(THREADS).map_err(system)?;
        let entered = runtime.enter();
        let is_remote = matches!(what.as_str(), "fetch" | "ls-remote");
        // The repository decides how long a local command takes, and a command notices that its pipe is closed only when it writes.
        let observer = self.observer.clone();
        let mut group = ProcessGroup::spawn_without_terminal(command, observer).map_err(system)?;
        drop(entered);
        let mut watch = if is_remote {
            Watch::of_fetch(self.directory, self.limits, self.transport == Transport::Https)
        } else {
            Watch::local(self.directory, self.limits)
        };
        thread::scope(|scope| {
            let writes = move || {
                let mut to_git = to_git;
                // If git stops reading, we can ignore this error, since its exit status and stderr will give the reason.
                let _ = to_git.write_all(&input);
            };
            // Other commands can use up the threads after the check, and then `Scope::spawn` would panic.
            let writing = thread::Builder::new().spawn_scoped(scope, writes);
            let saying = thread::Builder::new().spawn_scoped(scope, move || end_of(errors));
            let reads = move || {
                let mut from_git = from_git;
                let read = read(&mut from_git)?;
                // We need to read the rest of the output, because git doesn't exit until we do.
                let _ = io::copy(&mut from_git, &mut io::sink());
                Ok(read)
            };
            let reading = thread::Builder::new().spawn_scoped(scope, reads);
            let ((_, said), read) = match writing.and_then(|writing| Ok(((writing, saying?), reading?))) {
                Ok(threads) => threads,
                Err(refused) => {
                    group.kill();
                    return Err(system(refused));
                }
            };
            let ended = runtime.block_on(self.exited(&mut group, &mut watch));
            // This also closes pipes that git's children have inherited, so that the threads can end.
            group.kill();
            let said = join(said);
            let read = join(read);
            let status = ended?.map_err(system)?;
            let read = read?;
            if status.success() {
                return Ok(read);
            }
            Err(match limit(status) {
                Some(source) => system(source),
                None => GitError::Failed { what: what.clone(), said },
            })
        })
    }

    /// Waits until git exits. Returns an error if a limit is reached before.
    async fn exited(
        &self,
        group: &mut ProcessGroup,
        watch: &mut Watch<'_>,
    ) -> Result<io::Result<ExitStatus>, GitError> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(GitError::TooLong(self.limits.total));
            }
            if let Ok(status) = tokio::time::timeout(watch.interval().min(left), group.exited()).await {
                // Check once more, because a fast host can exceed the limit between two checks.
                return watch.look().map(|()| status);
            }
            watch.look()?;
        }
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        for variable in REPOSITORY_VARIABLES.iter().chain(&ASKING_VARIABLES).chain([&TOKEN_VARIABLE]) {
            command.env_remove(variable);
        }
        let protocol = match self.transport {
            Transport::Https => "https",
            Transport::Ssh => "ssh",
            Transport::File => "file",
            // There is no such repository.
            Transport::Archive | Transport::Npm => "none",
        };
        // Without git's own protocol, the references arrive as one text, of which there is no trace.
        let object_bytes = match arguments.first() {
            Some(&"ls-remote") => self.limits.reference_bytes().max(MIN_ALLOC_LIMIT),
            _ => self.limits.object_bytes(),
        };
        command
            .current_dir(self.directory)
            // Note that this also applies to addresses that the user's configuration rewrites (`url.*.insteadOf`).
            .env("GIT_ALLOW_PROTOCOL", protocol)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOC_LIMIT", object_bytes.to_string())
            .env("GCM_INTERACTIVE", "never")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            // Without this, a command that reads objects would fetch each missing object in a separate request.
            .env("GIT_NO_LAZY_FETCH", "1")
            // `Watch` reads this trace and removes it after the command. It doesn't contain file contents. Git redacts
            // passwords, but not the headers in the user's `http.extraHeader`, which may be secret.
            .env("GIT_TRACE_CURL", watch::trace(self.directory))
            .env("GIT_TRACE_PACKET", watch::trace(self.directory))
            .env("GIT_TRACE_CURL_NO_DATA", "1")
            .env("GIT_TRACE_REDACT", "1")
            .env("LC_ALL", "C");
        command.arg("--git-dir").arg(self.directory).arg("--literal-pathspecs");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        if self.transport == Transport::Ssh {
            // Otherwise ssh could open a window that asks for a password.
            command.env("SSH_ASKPASS_REQUIRE", "never");
            command.envs(self.ssh.iter().map(|ssh| ("GIT_SSH_COMMAND", ssh)));
        }
        command.args(arguments);
        command
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the error if a system limit ended the process before it could report the error itself.
#[cfg(unix)]
fn limit(status: ExitStatus) -> Option<io::Error> {
    let is_too_large = status.signal() == Some(rustix::process::Signal::XFSZ.as_raw());
    is_too_large.then(|| io::ErrorKind::FileTooLarge.into())
}

/// Returns `None`, because no limit ends a process on Windows.
#[cfg(windows)]
fn limit(_status: ExitStatus) -> Option<io::Error> {
    None
}

/// Reads stderr and returns its last [`MAX_STDERR_BYTES`] bytes as text.
fn end_of(mut errors: PipeReader) -> String {
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut buffer) {
        said.extend_from_slice(&buffer[..count]);
        let beyond = said.len().saturating_sub(MAX_STDERR_BYTES);
        said.drain(..beyond);
    }
    String::from_utf8_lossy(&said).into_owned()
}
