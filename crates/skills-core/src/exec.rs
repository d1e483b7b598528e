//! Runs programs with a timeout, capped output and limited concurrency. Scripts and command tools are built on [`Executor`].
//!
//! No shell is involved: a run consists of a program, an array of arguments, and bytes on the program's standard input. When
//! the program ends, or when the future is dropped, all its child processes are killed, too. On Unix there are two
//! exceptions: a descendant that leaves the process group on purpose (`setsid`), and all children if this process itself is
//! killed. A [`Sandbox`] covers both; a [`ProcessObserver`] can handle the second.
//!
//! Functions that run programs need a tokio runtime with the time and I/O drivers enabled.

mod command;
#[cfg(target_os = "linux")]
mod descriptors;
mod interpreter;
mod output;
mod process;
mod queue;
mod sandbox;
mod script;
mod threads;

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    pin::pin,
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{FusedFuture, join3},
};
use tokio::{io::AsyncWriteExt, time::timeout};

pub use command::CommandTool;
use output::Capture;
pub use output::{CapturedText, TRUNCATED};
pub use process::{ProcessGroup, ProcessObserver};
use queue::{Permit, Queue};
pub use sandbox::{DirectoryProblem, Sandbox, SandboxError, SandboxWarning};
pub use script::{ScriptCall, ScriptCwd, ScriptError, ScriptOptions, ScriptResult, run_script};
pub use threads::probe_threads;

use crate::tool::Caller;

/// The default timeout of a program: 30 seconds.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The default limit of each output stream: 20 KiB.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 20 * 1024;
/// The default number of programs that run at the same time. Further programs wait; their timeout starts when they start.
pub const DEFAULT_CONCURRENCY: usize = 4;
/// The grace period between asking a program to terminate and killing it: 1 second.
pub const TERMINATION_GRACE: Duration = Duration::from_secs(1);
/// The time for which we keep reading the pipes of a killed group. A descendant that left the group can keep them open.
const PIPE_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The environment variable with the token of our own server. Programs that are run for skills do not inherit it.
pub const TOKEN_VARIABLE: &str = "ACP_SKILLS_MCP_TOKEN";

/// The timeout and the output limit of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time after which the program is terminated. The default is [`DEFAULT_TIMEOUT`].
    pub timeout: Duration,
    /// The number of bytes to keep of each output stream; the rest is discarded. The default is
    /// [`DEFAULT_MAX_OUTPUT_BYTES`].
    pub max_output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout: DEFAULT_TIMEOUT, max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES }
    }
}

/// The environment variables that a program inherits from this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Environment {
    /// All variables.
    #[default]
    Inherit,
    /// Only the variables that programs need to start, such as `PATH`, `HOME`, `LANG` and `TMPDIR`.
    Clean,
}

/// A program with its arguments, environment and input.
#[derive(Debug, Default)]
struct Invocation {
    program: PathBuf,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    environment: Environment,
    env: Vec<(OsString, OsString)>,
    /// Inherited variables to remove. A variable in `env` is set even if it is also in this list.
    unset: Vec<OsString>,
    stdin: Vec<u8>,
    /// The file descriptors to pass in addition to the standard streams. `None` passes everything that is inheritable.
    #[cfg(target_os = "linux")]
    descriptors: Option<descriptors::Descriptors>,
    /// Holds the program until its sandbox was checked.
    #[cfg(target_os = "linux")]
    gate: Option<sandbox::Gate>,
}

impl Invocation {
    /// Adds variables, which don't replace those in `env`. They are not among the arguments of a sandbox, because other users can see
    /// arguments, and are not variables of the sandbox itself, because its dynamic linker would use them before it confines anything.
    ///
    /// # Errors
    /// Returns an error if a variable contains a zero byte.
    fn add_variables(&mut self, variables: Vec<(String, String)>) -> io::Result<()> {
        if variables.iter().any(|(name, value)| name.contains('\0') || value.contains('\0')) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a variable contains a zero byte"));
        }
        #[cfg(target_os = "linux")]
        if let Some(descriptors) = &mut self.descriptors {
            let options = variables.iter().map(|(name, value)| format!("--setenv\0{name}\0{value}\0"));
            descriptors.add("--args", options.collect::<String>().into_bytes());
            return Ok(());
        }
        self.env.splice(0..0, variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        Ok(())
    }
}

/// The result of a finished program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Completed {
    outcome: Outcome,
    stdout: CapturedText,
    stderr: CapturedText,
    duration: Duration,
}

/// The way in which a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The exit code.
    Exit(i32),
    /// The number of the signal that ended the program.
    Signal(i32),
    /// The timeout that expired.
    Timeout(Duration),
}

/// Runs programs and limits how many run at the same time. Programs that have to wait start in turn for all
/// [callers](Caller).
///
/// An executor is cheap to clone, and all clones share one limit.
#[derive(Debug, Clone)]
pub struct Executor {
    queue: Arc<Queue>,
    observer: Option<Arc<dyn ProcessObserver>>,
}

impl Default for Executor {
    /// Returns the shared executor of this process, which runs [`DEFAULT_CONCURRENCY`] programs at the same time.
    fn default() -> Self {
        static SHARED: LazyLock<Executor> = LazyLock::new(|| Executor::new(DEFAULT_CONCURRENCY));
        SHARED.clone()
    }
}

impl Executor {
    /// Creates an independent executor that runs at most `concurrency` programs at the same time. Zero counts as one.
    pub fn new(concurrency: usize) -> Self {
        Self { queue: Arc::new(Queue::new(concurrency)), observer: None }
    }

    /// Returns an executor that reports its programs to `observer`. It still shares the limit with `self`.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn ProcessObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Waits until a program may start. Everything that decides if and how it runs has to be checked after that, because the call
    /// can wait for a long time. Returns an error if the caller leaves.
    async fn permit(&self, caller: &Caller) -> io::Result<Permit> {
        tokio::select! {
            biased;
            () = caller.left() => Err(has_left()),
            permit = self.queue.acquire(caller) => Ok(permit),
        }
    }

    /// Runs a program until it ends or its timeout expires. Returns an error only if the program can't be started, or if
    /// the caller has left.
    async fn run(
        &self,
        _permit: Permit,
        mut invocation: Invocation,
        limits: Limits,
        caller: &Caller,
    ) -> io::Result<Completed> {
        if caller.has_left() {
            return Err(has_left());
        }
        let started = Instant::now();
        let mut command = std_command(&invocation)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = ProcessGroup::spawn(command.into(), self.observer.clone())?;
        // Take these first, because waiting for a process closes its stdin.
        let (stdin, stdout, stderr) = group.pipes();
        let inside = tokio::select! {
            biased;
            released = release(&mut invocation, self.observer.clone()) => released?,
            // The sandbox has failed, and writes the reason to stderr.
            _ = group.exited() => None,
        };
        let mut out = Capture::new(limits.max_output_bytes);
        let mut err = Capture::new(limits.max_output_bytes);
        let outcome = {
            let feed = async move {
                if let Some(mut pipe) = stdin {
                    // Programs don't need to read all of their input, so we don't treat a broken pipe as a failure.
                    let _ = pipe.write_all(&invocation.stdin).await;
                }
            };
            let mut streams = pin!(join3(feed, out.drain(stdout), err.drain(stderr)).map(drop).fuse());
            let run = timeout(limits.timeout, wait_while_running(group.exited(), &mut streams)).await;
            let outcome = if let Ok(status) = run {
                outcome_of(status?)
            } else {
                if group.terminate() {
                    let _ =
                        timeout(TERMINATION_GRACE, wait_while_running(group.exited(), &mut streams)).await;
                }
                Outcome::Timeout(limits.timeout)
            };
            group.kill();
            drop(inside);
            let _ = timeout(PIPE_DRAIN_TIMEOUT, async {
                let _ = wait_while_running(group.exited(), &mut streams).await;
                if !streams.is_terminated() {
                    streams.await;
                }
            })
            .await;
            outcome
        };
        Ok(Completed {
            outcome,
            stdout: out.into_text(),
            stderr: err.into_text(),
            duration: started.elapsed(),
        })
    }
}

fn has_left() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "call was cancelled, or its skill was removed")
}

/// Waits for `main`, and polls `side` in the meantime.
async fn wait_while_running<T>(
    main: impl Future<Output = T>,
    side: &mut (impl FusedFuture<Output = ()> + Unpin),
) -> T {
    let mut main = pin!(main);
    loop {
        tokio::select! {
            biased;
            value = &mut main => return value,
            () = &mut *side, if !side.is_terminated() => {}
        }
    }
}

/// Waits until a sandbox was checked, if the program runs in one, and lets the program start. Returns a value that ends all processes of
/// the sandbox when it is dropped.
#[cfg_attr(not(target_os = "linux"), expect(clippy::unused_async, reason = "only Linux has a sandbox"))]
async fn release(
    invocation: &mut Invocation,
    observer: Option<Arc<dyn ProcessObserver>>,
) -> io::Result<Option<sandbox::Init>> {
    #[cfg(target_os = "linux")]
    {
        // Close our copies of the descriptors.
        invocation.descriptors = None;
        if let Some(gate) = invocation.gate.take() {
            return gate.open(observer).await;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (invocation, observer);
    Ok(None)
}

/// Builds the command. The caller sets the standard streams.
#[cfg_attr(
    not(target_os = "linux"),
    expect(
        clippy::unnecessary_wraps,
        reason = "only passing descriptors can fail, which happens only on Linux"
    )
)]
fn std_command(invocation: &Invocation) -> io::Result<Command> {
    let mut command = Command::new(&invocation.program);
    #[cfg(target_os = "linux")]
    if let Some(descriptors) = &invocation.descriptors {
        descriptors.apply(&mut command)?;
    }
    command.args(&invocation.args);
    if let Some(cwd) = &invocation.cwd {
        command.current_dir(cwd);
    }
    if invocation.environment == Environment::Clean {
        command.env_clear();
        for name in process::ESSENTIAL_VARIABLES {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
    }
    command.env_remove(TOKEN_VARIABLE);
    for name in &invocation.unset {
        command.env_remove(name);
    }
    command.envs(invocation.env.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

fn outcome_of(status: ExitStatus) -> Outcome {
    match (status.code(), process::signal(status)) {
        (Some(code), _) => Outcome::Exit(code),
        (None, signal) => Outcome::Signal(signal.unwrap_or_default()),
    }
}

/// Finds the program `name` on the search path or, if `name` contains a slash, relative to `cwd`.
pub fn find_program(name: &Path, cwd: Option<&Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH");
    match cwd {
        Some(cwd) => which::which_in(name, path, cwd).ok(),
        None => which::which(name).ok(),
    }
}

#[cfg(all(test, unix))]
mod tests;
