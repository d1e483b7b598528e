//! Servers that are programs. The program and all of its children are registered, so that none of them outlives the proxy.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use skills_core::exec::{ProcessGroup, TOKEN_VARIABLE};
use tokio::{
    process::{ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::{ServerError, hidden::Hidden, stderr::Stderr, values::Secrets};
use crate::processes::Processes;

/// The time for a program to end by itself after its input was closed.
const GRACE: Duration = Duration::from_millis(500);

/// A program to start.
pub(super) struct Program<'a> {
    pub(super) name: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: &'a [(String, String)],
    pub(super) secrets: &'a Secrets,
    /// The working directory.
    pub(super) cwd: Option<&'a Path>,
    /// The time limit for commands that print secrets.
    pub(super) limit: Duration,
}

/// A running program. It is ended when this value is dropped.
#[derive(Debug)]
pub(super) struct Process(Option<ProcessGroup>);

/// A program that was started, and its pipes.
pub(super) struct Started {
    pub(super) process: Process,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: Stderr,
    /// The values of the configuration that are not shown.
    pub(super) hidden: Arc<Hidden>,
}

impl Program<'_> {
    /// Starts the program.
    pub(super) async fn start(&self, processes: &Processes) -> Result<Started, ServerError> {
        let program = self.find()?;
        let env = self.secrets.resolve(self.env, processes, self.limit).await?;
        let mut command = Command::new(program);
        command.args(self.args).env_remove(TOKEN_VARIABLE);
        command.envs(env.values.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = self.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let observer = Arc::new(processes.clone());
        let not_started = |error: std::io::Error| ServerError::NotStarted {
            program: self.name.to_owned(),
            reason: error.to_string(),
        };
        let mut group = ProcessGroup::spawn_without_terminal(command, Some(observer)).map_err(not_started)?;
        match group.pipes() {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                let hidden = Arc::new(Hidden::of(&env));
                let stderr = Stderr::read(stderr, Arc::clone(&hidden));
                Ok(Started { process: Process(Some(group)), stdin, stdout, stderr, hidden })
            }
            _ => Err(ServerError::Ended),
        }
    }

    /// Finds the program in `PATH` or, if its name contains a slash, in the working directory.
    fn find(&self) -> Result<PathBuf, ServerError> {
        let cwd = self.cwd.unwrap_or(Path::new("."));
        let found = which::which_in(self.name, std::env::var_os("PATH"), cwd);
        found.map_err(|_| ServerError::NotFound(self.name.to_owned()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut group) = self.0.take() else { return };
        // Well-behaved servers end when their input is closed, which has happened already, and can then save their state.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let ended = timeout(GRACE, group.exited()).await;
            if ended.is_err() && group.terminate() {
                let _ = timeout(GRACE, group.exited()).await;
            }
            group.kill();
        });
    }
}
