//! [`Executor`]: runs a program within limits of time, output and number; scripts and command tools are built on it.
//!
//! No shell anywhere: a program, its arguments as an array, and bytes on its standard input. What a program starts
//! ends with it, and everything ends when the future is dropped. On Unix two things get away: a descendant that leaves
//! the process group on purpose (`setsid`), and everything when this process is killed, unless a [`ProcessObserver`]
//! has told somebody. A [`Sandbox`] holds both. The functions that run programs need a tokio runtime with its time and
//! I/O drivers.

mod command;
#[cfg(target_os = "linux")]
mod descriptors;
mod interpreter;
mod output;
mod process;
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
use tokio::{io::AsyncWriteExt, sync::Semaphore, time::timeout};

pub use command::CommandTool;
use output::Capture;
pub use output::{CapturedText, TRUNCATED};
pub use process::{ProcessGroup, ProcessObserver};
pub use sandbox::{DirectoryProblem, Sandbox, SandboxError, SandboxWarning};
pub use script::{ScriptCall, ScriptCwd, ScriptError, ScriptOptions, ScriptResult, run_script};
pub use threads::probe_threads;

/// Default time limit of a program.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Default limit of each output stream, in bytes.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 20 * 1024;
/// How many programs run at once; others wait, and their time does not count before they start.
pub const DEFAULT_CONCURRENCY: usize = 4;
/// How long a program may take to end after it was asked to, before it is killed.
pub const TERMINATION_GRACE: Duration = Duration::from_secs(1);
/// How long the pipes of a dead group may stay open; a descendant that left the group can hold them.
const PIPE_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time and output limits of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// When to end the program.
    pub timeout: Duration,
    /// How much of each output stream is kept, in bytes.
    pub max_output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout: DEFAULT_TIMEOUT, max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES }
    }
}

/// Which variables of our own environment a program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Environment {
    /// All.
    #[default]
    Inherit,
    /// Only those that programs need to start: the search path, home, language and temporary directories.
    Clean,
}

/// What to run.
#[derive(Debug, Clone, Default)]
struct Invocation {
    program: PathBuf,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    environment: Environment,
    env: Vec<(OsString, OsString)>,
    /// Variables that it does not get, unless `env` sets them.
    unset: Vec<OsString>,
    stdin: Vec<u8>,
    /// What it finds open beside its standard streams; otherwise whatever we would pass on to any program.
    #[cfg(target_os = "linux")]
    descriptors: Option<descriptors::Descriptors>,
}

/// A program that is no longer running.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Completed {
    outcome: Outcome,
    stdout: CapturedText,
    stderr: CapturedText,
    duration: Duration,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Exit(i32),
    Signal(i32),
    Timeout(Duration),
}

/// Runs programs, at most a number at once. Cheap to clone; clones share the number.
#[derive(Debug, Clone)]
pub struct Executor {
    permits: Arc<Semaphore>,
    observer: Option<Arc<dyn ProcessObserver>>,
}

impl Default for Executor {
    /// The executor of this process, with [`DEFAULT_CONCURRENCY`].
    fn default() -> Self {
        static SHARED: LazyLock<Executor> = LazyLock::new(|| Executor::new(DEFAULT_CONCURRENCY));
        SHARED.clone()
    }
}

impl Executor {
    /// An executor of its own that runs at most `concurrency` programs at once (at least one).
    pub fn new(concurrency: usize) -> Self {
        let permits = Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        Self { permits, observer: None }
    }

    /// The same executor, sharing the number, for programs that `observer` is to know of.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn ProcessObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Runs a program to its end. Only a program that cannot be started is an error.
    async fn run(&self, invocation: Invocation, limits: Limits) -> io::Result<Completed> {
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        let started = Instant::now();
        let mut command = std_command(&invocation)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = ProcessGroup::spawn(command.into(), self.observer.clone())?;
        let (stdin, stdout, stderr) = group.pipes();
        let (mut out, mut err) =
            (Capture::new(limits.max_output_bytes), Capture::new(limits.max_output_bytes));
        let outcome = {
            let feed = async move {
                if let Some(mut pipe) = stdin {
                    // A program need not read what it is given: a broken pipe is no failure.
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

/// Waits for `main` while `side` makes progress.
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

/// The command without its standard streams.
#[cfg_attr(
    not(target_os = "linux"),
    expect(clippy::unnecessary_wraps, reason = "descriptors, which can run out, are passed on Linux only")
)]
fn std_command(invocation: &Invocation) -> io::Result<Command> {
    let mut command = Command::new(&invocation.program);
    #[cfg(target_os = "linux")]
    if let Some(descriptors) = &invocation.descriptors {
        descriptors.give(&mut command)?;
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

/// The program that would run for `name`: on the search path, or relative to `cwd` when it has a slash.
fn find_program(name: &Path, cwd: Option<&Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH");
    match cwd {
        Some(cwd) => which::which_in(name, path, cwd).ok(),
        None => which::which(name).ok(),
    }
}

#[cfg(all(test, unix))]
mod tests;
