//! [`Executor`]: runs a program within limits of time, output and number; scripts and command tools are built on it.
//!
//! No shell anywhere: a program, its arguments as an array, and bytes on its standard input. What a program starts
//! dies with it, and everything dies when the future is dropped; on Unix a descendant that leaves the process group on
//! purpose (`setsid`) gets away, and only a [`Sandbox`] holds it. The functions that run programs need a tokio runtime
//! with its time and I/O drivers.

mod command;
mod interpreter;
mod output;
mod platform;
mod sandbox;
mod script;

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    pin::pin,
    process::{ExitStatus, Stdio},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{FusedFuture, join3},
};
use tokio::{io::AsyncWriteExt, process::Command, sync::Semaphore, time::timeout};

pub use command::CommandTool;
use output::Capture;
pub use output::{TRUNCATED, Text};
use platform::Group;
pub use sandbox::{Sandbox, SandboxError};
pub use script::{ScriptCall, ScriptCwd, ScriptError, ScriptOptions, ScriptResult, run_script};

/// Default time limit of a program.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Default limit of each output stream, in bytes.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 20 * 1024;
/// How many programs run at once; others wait, and their time does not count before they start.
pub const DEFAULT_CONCURRENCY: usize = 4;
/// How long a program may take to end after it was asked to, before it is killed.
pub const GRACE: Duration = Duration::from_secs(1);
/// How long the pipes of a dead group may stay open; a descendant that left the group can hold them.
const DRAIN: Duration = Duration::from_secs(1);

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
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
pub(crate) struct Invocation {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) environment: Environment,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) stdin: Vec<u8>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) end: End,
    pub(crate) stdout: Text,
    pub(crate) stderr: Text,
    pub(crate) duration: Duration,
}

/// Why a program is no longer running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exit(i32),
    Signal(i32),
    Timeout(Duration),
}

/// Runs programs, at most a number at once. Cheap to clone; clones share the number.
#[derive(Debug, Clone)]
pub struct Executor {
    permits: Arc<Semaphore>,
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
        Self { permits: Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS))) }
    }

    /// Runs a program to its end. Only a program that cannot be started is an error.
    pub(crate) async fn run(&self, invocation: Invocation, limits: Limits) -> io::Result<Finished> {
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        let started = Instant::now();
        let mut group = Group::spawn(command(&invocation))?;
        let (stdin, stdout, stderr) = group.pipes();
        let (mut out, mut err) =
            (Capture::new(limits.max_output_bytes), Capture::new(limits.max_output_bytes));
        let end = {
            let feed = async move {
                if let Some(mut pipe) = stdin {
                    // A program need not read what it is given: a broken pipe is no failure.
                    let _ = pipe.write_all(&invocation.stdin).await;
                }
            };
            let mut streams = pin!(join3(feed, out.drain(stdout), err.drain(stderr)).map(drop).fuse());
            let run = timeout(limits.timeout, alongside(group.exited(), &mut streams)).await;
            let end = if let Ok(status) = run {
                end_of(status?)
            } else {
                if group.terminate() {
                    let _ = timeout(GRACE, alongside(group.exited(), &mut streams)).await;
                }
                End::Timeout(limits.timeout)
            };
            group.kill();
            let _ = timeout(DRAIN, async {
                let _ = alongside(group.exited(), &mut streams).await;
                if !streams.is_terminated() {
                    streams.await;
                }
            })
            .await;
            end
        };
        Ok(Finished { end, stdout: out.into_text(), stderr: err.into_text(), duration: started.elapsed() })
    }
}

/// Waits for `main` while `side` makes progress.
async fn alongside<T>(
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

fn command(invocation: &Invocation) -> Command {
    let mut command = Command::new(&invocation.program);
    command.args(&invocation.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = &invocation.cwd {
        command.current_dir(cwd);
    }
    if invocation.environment == Environment::Clean {
        command.env_clear();
        for name in platform::ESSENTIAL_VARIABLES {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
    }
    command.envs(invocation.env.iter().map(|(name, value)| (name, value)));
    command
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), platform::signal(status)) {
        (Some(code), _) => End::Exit(code),
        (None, signal) => End::Signal(signal.unwrap_or_default()),
    }
}

/// The program that would run for `name`: on the search path, or relative to `cwd` when it has a slash.
pub(crate) fn find_program(name: &Path, cwd: Option<&Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH");
    match cwd {
        Some(cwd) => which::which_in(name, path, cwd).ok(),
        None => which::which(name).ok(),
    }
}

#[cfg(all(test, unix))]
mod tests;
