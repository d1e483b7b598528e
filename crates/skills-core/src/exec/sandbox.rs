//! [`Sandbox`]: runs scripts inside [bubblewrap](https://github.com/containers/bubblewrap), which exists only for Linux.
//!
//! The sandbox enforces these rules for every user, including root, and in every working directory:
//!
//! - **Files.** The script can read all files that its user can read. It can write only to its working directory and to an
//!   empty `/tmp`. The skill is read-only. If the skill is under the working directory, all directories on the path to the
//!   skill are read-only, too.
//! - **Privileges.** The script has no capabilities and cannot gain any. It has its own processes, mounts, hostname and IPC,
//!   and cannot create further user namespaces. If root runs it, it is root only in a user namespace without capabilities,
//!   and cannot write to `/proc/sys` or `/sys`.
//! - **Network.** The script has no network unless the sandbox was created with it.
//! - **Unix sockets.** The script cannot reach any Unix socket of the host, neither by path nor abstract, even with network
//!   access: `/run`, `/tmp` and the user's runtime directory are empty, variables that name sockets are removed, and the
//!   kernel refuses to create Unix sockets. Socket pairs work. Programs that connect to themselves over a named Unix socket
//!   don't, for example Python's `multiprocessing` with `forkserver` (`spawn` and `fork` work).
//! - **Set-user-ID.** The script cannot leave behind a program that runs as another user: no file can become set-user-ID or
//!   set-group-ID, and no directory set-group-ID.
//! - **Terminal.** The script cannot open the terminal from which this program was started.
//! - **Processes.** All processes of the script end when the script ends, or when the process group ends in which it was
//!   started.
//!
//! The sandbox does *not* hide files that the user can read, prevent writing to the user's FIFOs or locking files (read-only
//! mounts don't affect either), limit memory, or block services on this machine for a script with network access.
//!
//! Another process may replace a directory by a link while a script starts, for example a script of another skill in the same
//! project. Therefore, the mounts of the sandbox are checked before the script starts.

#[cfg_attr(not(target_os = "linux"), path = "sandbox/unsupported.rs")]
mod bwrap;
#[cfg(target_os = "linux")]
mod gate;
#[cfg(target_os = "linux")]
mod mounts;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::Invocation;
use bwrap::Bwrap;
#[cfg(not(target_os = "linux"))]
pub(super) use bwrap::Init;
#[cfg(target_os = "linux")]
pub(super) use gate::{Gate, Init};

/// A sandbox that has been tested on this machine.
#[derive(Debug, Clone)]
pub struct Sandbox(Bwrap);

/// The reason that scripts cannot run in a sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// `bwrap` is not installed, or this system is not Linux.
    #[error(
        "bubblewrap (`bwrap`) is not installed; to use the sandbox on Linux, install the package `bubblewrap`"
    )]
    NotFound,
    /// `bwrap` is installed, but lacks features that the sandbox needs. Contains its version.
    #[error("bubblewrap (`bwrap`) {0} is too old; at least version 0.6.0 is required")]
    TooOld(String),
    /// `bwrap` is installed, but fails to run. Contains its message.
    #[error(
        "failed to run bubblewrap (`bwrap`): {0}; check if user namespaces are allowed with `sysctl \
         user.max_user_namespaces kernel.apparmor_restrict_unprivileged_userns`"
    )]
    NotWorking(String),
    /// This process runs as root, and root can only be confined in a user namespace, which the system doesn't allow. Contains
    /// the message of `bwrap`.
    #[error(
        "failed to create a user namespace to sandbox scripts for root: {0}; run as another user, or allow user namespaces \
         (check `sysctl user.max_user_namespaces`, or the container profile)"
    )]
    Root(String),
    /// A test program in the sandbox had more privileges than it should. Contains the first unexpected privilege.
    #[error(
        "bubblewrap (`bwrap`) does not confine programs on this system: {0}; update bubblewrap, or disable the sandbox"
    )]
    NotConfined(String),
    /// The system call filter doesn't support this processor architecture. Contains its name.
    #[error("unsupported processor architecture {0}: the sandbox only supports x86_64, aarch64 and riscv64")]
    Architecture(&'static str),
    /// Write access to this working directory would defeat the sandbox.
    #[error(
        "working directory {} is not allowed for sandboxed scripts: {problem}; use a project directory, or run scripts \
         in the skill directory", directory.display()
    )]
    Directory {
        /// The directory, with links resolved.
        directory: PathBuf,
        /// The reason.
        problem: DirectoryProblem,
    },
    /// A directory that the sandbox needs can't be opened.
    #[error("failed to open directory {}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The reason that write access to a directory would defeat the sandbox. Displays as a clause about the directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryProblem {
    /// The directory is a system directory, such as `/etc`, or under one.
    #[error("this is a system directory")]
    System,
    /// The directory contains a path that scripts must not change or see. Contains that path.
    #[error("scripts must not access {}", .0.display())]
    Contains(PathBuf),
    /// The directory contains the user's home directory. Contains the path of that directory.
    #[error("this directory contains your home directory {}", .0.display())]
    ContainsHome(PathBuf),
    /// The directory is the parent of the skill, so it may contain other skills. Contains the name of the skill's directory.
    #[error("scripts could change other skills next to `{0}`")]
    DirectoryOfSkills(String),
    /// The directory is a second mount of a forbidden directory. Contains that directory.
    #[error("this directory is another mount of {}", .0.display())]
    OtherName(PathBuf),
    /// The path contains a link that a script could have made. Contains the link, and the directory to which the path leads.
    #[error("a script could have made the link {}; if you trust this link, start the session in {}", .0.display(), .1.display())]
    Link(PathBuf, PathBuf),
    /// The path of a configuration contains a link in the directory, which a script could replace. Contains the link.
    #[error("a script could replace the link {}, through which the configuration is found; use the path to which it leads", .0.display())]
    Configuration(PathBuf),
    /// The path led to another directory when it was first used, so a program may have replaced it by a link. Contains the directory to
    /// which the path leads now.
    #[error("it was replaced since a session first used it, and now leads to {}; if this is intended, restart this program", .0.display())]
    Replaced(PathBuf),
}

/// A warning about a working directory that is allowed. Displays as a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxWarning {
    /// The directory is the user's home directory, so scripts can change programs that run at the next login.
    HomeDirectory(PathBuf),
}

impl std::fmt::Display for SandboxWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::HomeDirectory(directory) => write!(
                f,
                "sandboxed scripts can change all files in your home directory {}, including programs that run at \
                 your next login; use a project directory instead",
                directory.display()
            ),
        }
    }
}

impl Sandbox {
    /// Creates a sandbox with or without network access, and tests it by running a program inside. Blocks for some
    /// milliseconds.
    ///
    /// # Errors
    /// - [`SandboxError::NotFound`] if `bwrap` is not installed.
    /// - [`SandboxError::TooOld`] if the test fails and `bwrap` is older than 0.6.0.
    /// - [`SandboxError::NotWorking`] (or [`SandboxError::Root`] for root) if the test program doesn't start, for example
    ///   because the system doesn't allow user namespaces.
    /// - [`SandboxError::NotConfined`] if the test program has privileges that it should not have.
    /// - [`SandboxError::Architecture`] on an unsupported processor.
    pub fn bwrap(network: bool) -> Result<Self, SandboxError> {
        Bwrap::find(network).map(Self)
    }

    /// Protects directories, which need not exist: a working directory must not be one of them, or below or above one, apart from the home
    /// directory. The paths must be canonical.
    #[must_use]
    pub fn protecting(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.0.protect(directories);
        self
    }

    /// Makes files read-only that are in the working directory of a script. Links are followed. A file that doesn't exist can't be
    /// protected.
    #[must_use]
    pub fn with_read_only(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.0.set_read_only(files.into_iter().collect());
        self
    }

    /// Checks `directory` as a working directory, and returns a warning for the user if there is one.
    ///
    /// Hosts can call this when a session starts. Each run checks its directory again, and also checks its relation to the
    /// skill. A path that was checked must still lead to the same directory then. Blocks on the file system.
    ///
    /// # Errors
    /// Returns [`SandboxError::Directory`] if scripts may not use the directory, and [`SandboxError::Io`] if it can't be
    /// opened.
    pub fn check_directory(&self, directory: &Path) -> Result<Option<SandboxWarning>, SandboxError> {
        self.0.check_directory(directory)
    }

    /// Returns a command line that runs `command` in a sandbox for programs other than scripts, such as an agent.
    ///
    /// The program can write to `directory`, which is its working directory, and to the home directory, where agents store
    /// logins and sessions. The paths in `readable` must be canonical; they are visible and read-only, even inside
    /// directories that are otherwise empty. `/run`, `/tmp` and the runtime directory are empty. Unlike a script, the program
    /// can create Unix sockets, and can reach abstract ones if it has network access. Blocks on the file system.
    ///
    /// # Errors
    /// Returns [`SandboxError::Directory`] if write access to `directory` would defeat the sandbox, and [`SandboxError::Io`]
    /// if it can't be opened.
    pub fn command(
        &self,
        command: &[OsString],
        directory: &Path,
        readable: &[PathBuf],
    ) -> Result<Vec<OsString>, SandboxError> {
        self.0.command(command, directory, readable)
    }

    /// Returns the path of `bwrap`, without links.
    pub fn program(&self) -> &Path {
        self.0.program()
    }

    /// Wraps an invocation so that it runs inside the sandbox. `skill_dir` must be canonical.
    pub(super) fn wrap(&self, invocation: Invocation, skill_dir: &Path) -> Result<Invocation, SandboxError> {
        self.0.wrap(invocation, skill_dir)
    }
}
