//! [`Sandbox`]: scripts inside [bubblewrap](https://github.com/containers/bubblewrap).
//!
//! Everything is read-only, the skill too, except the working directory and an empty `/tmp`; no network unless it is
//! allowed; nothing survives the script.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Invocation, find_program};

const BWRAP: &str = "bwrap";

/// A sandbox that is known to work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    bwrap: PathBuf,
    network: bool,
}

/// Why scripts cannot be run in a sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// There is no `bwrap`.
    #[error("bubblewrap (`bwrap`) is not installed; it exists for Linux")]
    NotFound,
    /// `bwrap` is there, but the system does not let it work.
    #[error("bubblewrap (`bwrap`) does not work here: {0}")]
    NotWorking(String),
}

impl Sandbox {
    /// Checks that bubblewrap works here, by running a program in it that does nothing. Blocks for some milliseconds.
    ///
    /// # Errors
    /// When it is not installed, or not allowed to make namespaces.
    pub fn bwrap(network: bool) -> Result<Self, SandboxError> {
        let bwrap = find_program(Path::new(BWRAP), None).ok_or(SandboxError::NotFound)?;
        let sandbox = Self { bwrap, network };
        let output = Command::new(&sandbox.bwrap)
            .args(sandbox.base())
            .args(["--", "true"])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| SandboxError::NotWorking(error.to_string()))?;
        if output.status.success() {
            return Ok(sandbox);
        }
        Err(SandboxError::NotWorking(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }

    /// The same invocation inside the sandbox, with `skill_dir` read-only even below the working directory.
    pub(super) fn wrap(&self, invocation: Invocation, skill_dir: &Path) -> Invocation {
        let mut args = self.base();
        if let Some(cwd) = &invocation.cwd {
            args.extend(["--bind".into(), cwd.into(), cwd.into()]);
        }
        args.extend(["--ro-bind".into(), skill_dir.into(), skill_dir.into()]);
        if let Some(cwd) = &invocation.cwd {
            args.extend(["--chdir".into(), cwd.into()]);
        }
        args.extend(["--".into(), invocation.program.into()]);
        args.extend(invocation.args);
        Invocation { program: self.bwrap.clone(), args, ..invocation }
    }

    fn base(&self) -> Vec<OsString> {
        let mut args = vec!["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"];
        args.extend(["--setenv", "TMPDIR", "/tmp", "--unshare-all", "--die-with-parent", "--new-session"]);
        if self.network {
            args.push("--share-net");
        }
        args.into_iter().map(Into::into).collect()
    }
}
