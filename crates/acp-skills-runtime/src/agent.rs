//! [`Agent`]: the agent's process, and how it is started, signalled and ended with all of its children.
//!
//! Agents are often started through `npx` or `uvx` and start servers of their own. If we only sent a signal to the
//! process that we started, the others would keep running. To avoid this, each agent runs in a separate process group
//! (Unix) or job object (Windows).

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, PipeReader, PipeWriter},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use skills_sources::disk::{error_text, shorten_home};

use acp_skills_servers::processes::Processes;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub use platform::{code, signals};

/// A signal that was sent to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The terminal was closed (`SIGHUP`, or a console close event).
    Hangup,
    /// Ctrl-C (`SIGINT`).
    Interrupt,
    /// A request to end (`SIGTERM`, or Ctrl-Break).
    Terminate,
}

impl Signal {
    /// Returns the exit code of a program that this signal ended: 128 + the number of the signal.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Hangup => 128 + 1,
            Self::Interrupt => 128 + 2,
            Self::Terminate => 128 + 15,
        }
    }
}

/// A running agent.
///
/// If this is dropped before [`reap`](Self::reap) is called, the agent and all of its children are killed.
pub struct Agent {
    child: Box<dyn ChildWrapper>,
    group: platform::Group,
    /// The registry that holds the agent's groups, until the agent was reaped.
    registered: Option<Processes>,
}

/// The agent could not be started. The message contains the reason, and ends with the program.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.text())]
pub struct StartError {
    /// The program of the agent's command.
    pub program: OsString,
    /// The error of the operating system.
    pub source: io::Error,
}

impl StartError {
    fn text(&self) -> String {
        let program = shorten_home(Path::new(&self.program));
        match self.source.kind() {
            _ if self.program.is_empty() => "agent command is empty".to_owned(),
            io::ErrorKind::NotFound => format!("agent not found: {program}"),
            io::ErrorKind::PermissionDenied => format!("agent is not executable: {program}"),
            _ => format!("cannot start agent: {}: {program}", error_text(&self.source)),
        }
    }

    /// Returns the exit code for this error, which is the same as for GNU `env`: 127 if the program was not found,
    /// 126 if it is not executable, and 125 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self.source.kind() {
            io::ErrorKind::NotFound => 127,
            io::ErrorKind::PermissionDenied => 126,
            _ => 125,
        }
    }
}

/// A directory that exists and that only administrators can write to. With `--prefix`, `npx` looks here for an installed package, and not in
/// the working directory, where a project could have another program under the name of the package.
pub const ROOT: &str = if cfg!(windows) { "C:\\Windows" } else { "/" };

impl Agent {
    /// Starts `command`, which is a program and its arguments, without a shell. Stdin and stdout are pipes. Stderr,
    /// the working directory and the environment are inherited, with two changes. If the program has an absolute path,
    /// its directory is appended to `PATH`. This is needed for scripts such as `npx`, where the interpreter is
    /// usually in the same directory. And `npx --prefix /` starts in the user's home directory. The agent is registered in `processes`
    /// until it was reaped.
    ///
    /// # Errors
    /// Returns an error if a pipe cannot be created or the program cannot be started.
    pub fn start(
        command: &[OsString],
        processes: Processes,
    ) -> Result<(Self, PipeWriter, PipeReader), StartError> {
        Self::start_with(command, processes, |_process| ())
    }

    /// Starts `command` like [`start`](Self::start). `configure` can change the process before it starts, for example
    /// its stderr or its working directory.
    ///
    /// # Errors
    /// Returns an error if a pipe cannot be created or the program cannot be started.
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
            if let Some(directory) = directory_for_npx(command) {
                process.current_dir(&directory).env("PWD", directory);
            }
            configure(process);
        });
        let prepared = processes.agent_group();
        platform::group(&mut wrap, prepared);
        let child = wrap.spawn().map_err(failed)?;
        let group = platform::Group::new(child.id(), prepared);
        processes.agent_started(prepared, child.id());
        Ok((Self { child, group, registered: Some(processes) }, to_agent, from_agent))
    }

    /// Waits for the agent to exit. This is cancel safe, so it can be called again.
    ///
    /// # Errors
    /// Returns an error if the operating system doesn't provide the exit status.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        // Use the inner child here. The wrapper's `wait` also waits for orphans of the group if they are our
        // children.
        self.child.inner_mut().wait().await
    }

    /// Forwards a signal to the agent and all of its children.
    pub fn forward(&mut self, signal: Signal) {
        self.group.forward(signal);
    }

    /// Asks the agent and all of its children to terminate. On Windows, this kills them instead.
    pub fn terminate(&mut self) {
        self.group.terminate(&mut *self.child);
    }

    /// Kills the agent and all of its children.
    pub fn kill(&mut self) {
        self.group.kill(&mut *self.child);
    }

    /// Kills the remaining children after the agent exited, and removes the agent from the registry.
    pub fn reap(&mut self) {
        if let Some(processes) = self.registered.take() {
            self.kill();
            processes.agent_ended(self.group.prepared, self.group.id);
        }
    }

    /// Returns true if the agent or one of its children still runs.
    pub fn is_alive(&self) -> bool {
        self.group.is_alive()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.reap();
    }
}

/// Runs `command` in this terminal, for a login that a client starts in a terminal. On Unix, the command replaces
/// this process. On Windows, returns its exit code.
///
/// # Errors
/// Returns an error if the program cannot be started.
pub fn run_in_terminal(command: &[OsString]) -> Result<i32, StartError> {
    let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let failed = |source| StartError { program: program.to_owned(), source };
    platform::run_in_terminal(program, &command[1..], directory_for_npx(command)).map_err(failed)
}

/// Returns the directory in which to start `command` if it is `npx` with `--prefix` and [`ROOT`]. `npx` puts the `node_modules/.bin` of
/// the working directory, and of each directory above, in front of `PATH`, so a project could have another `node`. Agents take the
/// directory of a session from `session/new`.
fn directory_for_npx(command: &[OsString]) -> Option<PathBuf> {
    // The interpreter can come first.
    let is_npx = |word: &OsString| Path::new(word).file_stem().is_some_and(|name| name == "npx");
    let npx = command.iter().take(2).position(is_npx)?;
    let is_outside = command.get(npx + 1..npx + 3).is_some_and(|words| words == ["--prefix", ROOT]);
    let home = || env::home_dir().filter(|home| home.is_absolute() && home.is_dir());
    is_outside.then(|| home().unwrap_or_else(|| ROOT.into()))
}

/// Returns `PATH` with the directory of a program that has an absolute path, or `None` if `PATH` contains it already.
///
/// If an editor is started from a desktop, `PATH` will not include the directories of nvm or Homebrew. Without this,
/// `/…/bin/npx` would fail to find `node`.
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
    // This fails if a path contains a separator, and then `PATH` is not changed.
    env::join_paths(dirs).ok()
}

/// Describes an exit status, for example `exited with code 3` or `was killed by signal 9 (SIGKILL)`.
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
    fn the_directory_of_the_program_is_added_to_path() {
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

    #[test]
    fn npx_takes_no_program_of_the_project() {
        for (command, is_home) in [
            (&["npx", "--prefix", ROOT, "-y", "x"][..], true),
            (&["/nvm/bin/npx", "--prefix", ROOT, "-y", "x", "--acp"], true),
            (&["/nvm/bin/node", "/nvm/bin/npx", "--prefix", ROOT, "-y", "x"], true),
            // Commands of the user stay in the directory that the editor has chosen.
            (&["npx", "-y", "x"], false),
            (&["npx", "--prefix", "/project", "x"], false),
            (&["npx", "-y", "x", "--prefix", ROOT], false),
            (&["uvx", "--prefix", ROOT], false),
            (&["npx", "--prefix"], false),
            (&[], false),
        ] {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            let directory = directory_for_npx(&command);
            let home = env::home_dir().filter(|home| home.is_absolute() && home.is_dir());
            let expected = is_home.then(|| home.unwrap_or_else(|| ROOT.into()));
            assert_eq!(directory, expected, "{command:?}");
        }
    }
}
