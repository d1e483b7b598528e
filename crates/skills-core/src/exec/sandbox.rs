//! [`Sandbox`]: scripts inside [bubblewrap](https://github.com/containers/bubblewrap), which exists for Linux.
//!
//! What a script in it may do, whoever runs it and wherever it works:
//!
//! - It reads what its user may read, and writes its working directory and an empty `/tmp`. The skill is read-only, even
//!   below the working directory, where everything on the way to it is, from the first directory on.
//! - It has no capabilities and gains none, has processes, mounts, hostname and IPC of its own, and makes no further user
//!   namespaces. Where root runs it, it is root of a user namespace without capabilities, and cannot write to `/proc/sys`
//!   and `/sys`.
//! - It has no network unless it is allowed.
//! - It reaches no Unix socket of the host, by path or abstract, with the network or without: `/run`, `/tmp` and the
//!   user's runtime directory are empty, the variables that name sockets are gone, and the kernel refuses to make Unix
//!   sockets. Socket pairs work. Programs that talk to themselves over a named Unix socket do not (`multiprocessing` of
//!   Python with `forkserver`; `spawn` and `fork` do).
//! - It leaves no program that would run as somebody else: no file becomes set-user-ID or set-group-ID, and no directory
//!   set-group-ID.
//! - It cannot open the terminal that we were started from.
//! - Nothing survives the script, nor the process group that it was started in.
//!
//! What it does not do: hide files that the user may read, keep a script from FIFOs that the user may write and from locks
//! on files (read-only mounts do not), limit memory, or keep a script with the network from services that listen on this
//! machine. With a bubblewrap that takes no directory as a descriptor (before 0.10.0, apart from what
//! distributions have added), whoever can swap the working directory for a link while a script starts decides where it
//! writes.

#[cfg_attr(not(target_os = "linux"), path = "sandbox/unsupported.rs")]
mod bwrap;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod mounts;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::Invocation;
use bwrap::Bwrap;

/// A sandbox that is known to work here.
#[derive(Debug, Clone)]
pub struct Sandbox(Bwrap);

/// Why scripts cannot be run in a sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// There is no `bwrap`.
    #[error("bubblewrap (`bwrap`) is not installed; it exists for Linux, as the package `bubblewrap`")]
    NotFound,
    /// `bwrap` is there, but does not have what the sandbox needs. Its version.
    #[error("bubblewrap (`bwrap`) is too old here: it is {0}, and the sandbox needs 0.6.0 or newer")]
    TooOld(String),
    /// `bwrap` is there, but the system does not let it work.
    #[error(
        "bubblewrap (`bwrap`) does not work here: {0}; the system must allow user namespaces (see `sysctl \
         user.max_user_namespaces kernel.apparmor_restrict_unprivileged_userns`)"
    )]
    NotWorking(String),
    /// It would be no sandbox for the user root.
    #[error(
        "a sandbox that root runs needs a user namespace, and there is none here: {0}; run as another user, or allow user \
         namespaces (see `sysctl user.max_user_namespaces`, or the profile of the container)"
    )]
    Root(String),
    /// A program in it could still do more than it may.
    #[error("bubblewrap (`bwrap`) does not confine programs here: {0}; update it, or leave the sandbox out")]
    NotConfined(String),
    /// The filter of system calls does not know this kind of processor.
    #[error("the sandbox works on x86_64, aarch64 and riscv64, and this is {0}")]
    Architecture(&'static str),
    /// Scripts must not be given this working directory.
    #[error(
        "scripts in the sandbox may not work in {}: {problem}; work in the directory of a project, or let scripts run in the \
         directory of their skill", directory.display()
    )]
    Directory {
        /// The directory, links resolved.
        directory: PathBuf,
        /// What is wrong with it.
        problem: DirectoryProblem,
    },
    /// A directory that the sandbox needs cannot be looked at.
    #[error("cannot look at {}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
}

/// Why a working directory would undo the sandbox. Displays as a clause about the directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryProblem {
    /// It is one of the system's, or below one.
    #[error("it belongs to the system")]
    System,
    /// It contains something that scripts must not change, or that they must not see.
    #[error("it contains {}", .0.display())]
    Contains(PathBuf),
    /// It contains home directories.
    #[error("it contains your home directory {}", .0.display())]
    ContainsHome(PathBuf),
    /// It is the directory in which the skill lies, with others maybe.
    #[error("it is the directory of the skill `{0}`, whose neighbours could be rewritten")]
    DirectoryOfSkills(String),
    /// It is another name of a directory that it must not be: somebody has mounted that twice.
    #[error("it is {} under another name", .0.display())]
    OtherName(PathBuf),
}

/// What a person should know of a working directory that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxWarning {
    /// It is the home directory, so that scripts can change what runs at the next login.
    HomeDirectory(PathBuf),
}

impl std::fmt::Display for SandboxWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::HomeDirectory(directory) => write!(
                f,
                "the sandbox lets scripts change everything in your home directory {}, also what runs at your next \
                 login; work in the directory of a project instead",
                directory.display()
            ),
        }
    }
}

impl Sandbox {
    /// Checks that bubblewrap works here, by looking from inside at what a program may do. Blocks for some milliseconds.
    ///
    /// # Errors
    /// When it is not installed, not allowed to make namespaces, or does not keep what it promises.
    pub fn bwrap(network: bool) -> Result<Self, SandboxError> {
        Bwrap::find(network).map(Self)
    }

    /// Whether scripts may work in `directory`, as far as that does not depend on the skill, and what a person should
    /// know about it. For hosts, when a session begins; each run is checked again. Blocks on the file system.
    ///
    /// # Errors
    /// [`SandboxError::Directory`] when scripts will not be run there.
    pub fn check_directory(&self, directory: &Path) -> Result<Option<SandboxWarning>, SandboxError> {
        self.0.check_directory(directory)
    }

    /// The command line of a program inside the sandbox that is no script of a skill, such as an agent: it writes
    /// `directory`, where it works, and the home directory, where agents keep logins and sessions; it sees `readable`
    /// (canonical) wherever that lies. `/run`, `/tmp` and the runtime directory are empty, but unlike a script it may make
    /// Unix sockets, and reaches abstract ones where it has the network. Blocks on the file system.
    ///
    /// # Errors
    /// [`SandboxError::Directory`] when that directory would undo the sandbox, [`SandboxError::Io`] when it cannot be
    /// looked at.
    pub fn command(
        &self,
        command: &[OsString],
        directory: &Path,
        readable: &[PathBuf],
    ) -> Result<Vec<OsString>, SandboxError> {
        self.0.command(command, directory, readable)
    }

    /// The same invocation inside the sandbox; `skill_dir` must be canonical.
    pub(super) fn wrap(&self, invocation: Invocation, skill_dir: &Path) -> Result<Invocation, SandboxError> {
        self.0.wrap(invocation, skill_dir)
    }
}
