//! The agent's process: how it is started, told to end, and made sure to be gone with all its children.
//!
//! Agents are often started through `npx` or `uvx` and start servers of their own, so a signal to the one process that
//! we know would leave the rest alive: the agent is in a process group (Unix) or a job object (Windows) of its own.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, PipeReader, PipeWriter},
    path::Path,
    process::{ExitStatus, Stdio},
};

use process_wrap::tokio::{ChildWrapper, CommandWrap};

use crate::processes::Processes;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub use platform::{code, signals};

/// A signal that this process got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The terminal went away.
    Hangup,
    /// Ctrl-C.
    Interrupt,
    /// Please end.
    Terminate,
}

/// A running agent.
///
/// Dropping it before it was reaped kills it, with all its children.
pub struct Agent {
    child: Box<dyn ChildWrapper>,
    group: platform::Group,
    /// Where the group is registered until the agent was reaped.
    registered: Option<Processes>,
}

/// Why an agent did not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the agent `{}`", program.to_string_lossy())]
pub struct StartError {
    /// The program.
    pub program: OsString,
    /// What the system says.
    pub source: io::Error,
}

impl StartError {
    /// The exit code that GNU `env` has for this: 127 not found, 126 not executable, 125 anything else.
    pub fn exit_code(&self) -> u8 {
        match self.source.kind() {
            io::ErrorKind::NotFound => 127,
            io::ErrorKind::PermissionDenied => 126,
            _ => 125,
        }
    }
}

impl Agent {
    /// Starts `command` (a program and its arguments, no shell) with pipes for its stdin and stdout; stderr, working
    /// directory and environment are ours, but that the directory of a program with an absolute path is in PATH, behind
    /// all others: what runs scripts such as `npx` lies beside them. It is one of `processes` until it was reaped.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(
        command: &[OsString],
        processes: Processes,
    ) -> Result<(Self, PipeWriter, PipeReader), StartError> {
        Self::start_with(command, processes, |_process| ())
    }

    /// The same with something changed by `configure`: where stderr goes, or the working directory.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start_with(
        command: &[OsString],
        processes: Processes,
        configure: impl FnOnce(&mut tokio::process::Command),
    ) -> Result<(Self, PipeWriter, PipeReader), StartError> {
        let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
        let failed = |source| StartError { program: program.to_owned(), source };
        let (stdin, to_agent) = io::pipe().map_err(failed)?;
        let (from_agent, stdout) = io::pipe().map_err(failed)?;
        let mut wrap = CommandWrap::with_new(platform::resolve(program), |process| {
            process.args(&command[1..]).stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout));
            process.envs(search_path(program).map(|path| ("PATH", path)));
            configure(process);
        });
        let prepared = processes.agent_group();
        platform::group(&mut wrap, prepared);
        let child = wrap.spawn().map_err(failed)?;
        let group = platform::Group::new(child.id(), prepared);
        processes.agent_started(prepared, child.id());
        Ok((Self { child, group, registered: Some(processes) }, to_agent, from_agent))
    }

    /// Waits for the agent to end. May be given up and called again.
    ///
    /// # Errors
    /// The system does not tell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        // The wrapper's own `wait` waits for the whole group, where we are the parent of its orphans.
        self.child.inner_mut().wait().await
    }

    /// Passes on a signal that this process got, to the agent and all its children.
    pub fn forward(&mut self, signal: Signal) {
        self.group.forward(signal);
    }

    /// Asks the agent and all its children to end; where there is no way to ask, ends them.
    pub fn terminate(&mut self) {
        self.group.terminate(&mut *self.child);
    }

    /// Ends the agent and all its children at once.
    pub fn kill(&mut self) {
        self.group.kill(&mut *self.child);
    }

    /// Ends the children that are left of an agent that has ended.
    pub fn reap(&mut self) {
        if let Some(processes) = self.registered.take() {
            self.kill();
            processes.agent_ended(self.group.prepared, self.group.id);
        }
    }

    /// Whether a process of the agent's is still there.
    pub fn is_alive(&self) -> bool {
        self.group.is_alive()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.reap();
    }
}

/// Runs `command` in our place, with our terminal: for a login that a client starts in a terminal.
///
/// # Errors
/// The program cannot be started.
pub fn run_in_terminal(command: &[OsString]) -> Result<i32, StartError> {
    let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let failed = |source| StartError { program: program.to_owned(), source };
    platform::run_in_terminal(program, &command[1..]).map_err(failed)
}

/// PATH with the directory of a program that has an absolute path, when it is not in there.
///
/// An editor that is started from a desktop knows nothing of nvm or Homebrew. Whoever gives it `/…/bin/npx` would be told
/// that there is no `node`.
fn search_path(program: &OsStr) -> Option<OsString> {
    with_directory(Path::new(program), &env::var_os("PATH")?)
}

fn with_directory(program: &Path, path: &OsStr) -> Option<OsString> {
    let dir = program.parent().filter(|_| program.is_absolute())?;
    let mut dirs: Vec<_> = env::split_paths(path).collect();
    if dirs.iter().any(|known| known == dir) {
        return None;
    }
    dirs.push(dir.to_owned());
    // A directory with a separator in its name cannot be in PATH.
    env::join_paths(dirs).ok()
}

/// What an exit status is in words: `exited with code 3`, `was killed by signal 9 (SIGKILL)`.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), platform::signal_of(status)) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was killed by {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_runs_a_script_lies_beside_it() {
        for (program, path, expected) in [
            ("/nvm/bin/npx", "/usr/bin:/bin", Some("/usr/bin:/bin:/nvm/bin")),
            ("/usr/bin/npx", "/usr/bin:/bin", None),
            ("npx", "/usr/bin", None),
            ("./npx", "/usr/bin", None),
            ("/a:b/npx", "/usr/bin", None),
        ] {
            let found = with_directory(Path::new(program), path.as_ref());
            assert_eq!(found.as_deref(), expected.map(OsStr::new), "{program}");
        }
    }
}
