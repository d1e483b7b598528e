//! The agent itself inside [bubblewrap](https://github.com/containers/bubblewrap): the run's directory can be written, the
//! home directory too, because agents keep their logins and sessions there; the rest of the disk cannot. The network stays:
//! without it no model answers.

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, Stdio},
};

use super::EvaluationError;

/// A sandbox that is known to work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    home: Option<OsString>,
}

const BWRAP: &str = "bwrap";

impl Sandbox {
    /// Checks that bubblewrap works here, by running a program in it that does nothing. Blocks for some milliseconds.
    ///
    /// # Errors
    /// [`EvaluationError::Sandbox`] when it is not installed, or not allowed to make namespaces.
    pub fn bwrap() -> Result<Self, EvaluationError> {
        let home = std::env::home_dir().filter(|home| home.is_dir()).map(Into::into);
        let sandbox = Self { home };
        let words = sandbox.wrap(&["true".into()], &std::env::temp_dir());
        let output = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => Ok(sandbox),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr);
                Err(EvaluationError::Sandbox(format!("bubblewrap does not work here: {}", why.trim())))
            }
            Err(error) => Err(EvaluationError::Sandbox(format!(
                "bubblewrap (`bwrap`), which exists for Linux, cannot be run: {error}"
            ))),
        }
    }

    /// The same command inside the sandbox, in `directory`.
    pub(super) fn wrap(&self, command: &[OsString], directory: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            [BWRAP, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
                .map(OsString::from)
                .to_vec();
        let mut bind = |path: &OsString| words.extend(["--bind".into(), path.clone(), path.clone()]);
        if let Some(home) = &self.home {
            bind(home);
        }
        bind(&directory.as_os_str().to_owned());
        words.extend(["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--chdir"].map(OsString::from));
        words.push(directory.into());
        words.push("--".into());
        words.extend(command.iter().cloned());
        words
    }
}
