//! [`ConfigError`]: errors in a configuration.

use std::{io, path::PathBuf};

use acp_skills_runtime::telemetry::SettingsError;
use skills_core::{Diagnostic, LoadError};
use skills_sources::{
    AddressError,
    disk::{error_text, shorten_home},
    policy::{PolicyError, Refusal},
};

use super::SyntaxError;

/// An error that occurs when a configuration is read or resolved. Use [`hint`](Self::hint) to show the user how to fix it.
///
/// A message begins with the reason and ends with the path, because editors show errors in narrow places.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that the configuration needs can't be read.
    #[error("{}: {}", error_text(source), shorten_home(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The text of the configuration file is invalid.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A value is out of range, or a glob is invalid.
    #[error("{0}")]
    Value(String),
    /// A skill in `skills` can't be loaded.
    #[error("{}", describe_load_error(source))]
    Skill {
        /// The skill's directory.
        path: PathBuf,
        /// The skill's problems.
        source: LoadError,
    },
    /// A virtual skill is invalid.
    #[error("{0}")]
    VirtualSkill(String),
    /// A directory in `roots` doesn't exist.
    #[error("no such directory of skills: {}", shorten_home(.0))]
    NoSuchRoot(PathBuf),
    /// The address of a source has an unknown format.
    #[error(transparent)]
    Source(#[from] AddressError),
    /// The policy of this machine can't be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy of this machine refuses to start.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The environment variables of telemetry are invalid.
    #[error(transparent)]
    Telemetry(#[from] SettingsError),
    /// The thread for telemetry can't be started.
    #[error("cannot start the thread for telemetry: {0}")]
    Unstartable(#[source] io::Error),
    /// The requested sandbox can't be used on this system.
    #[error("--sandbox bwrap: {0}")]
    Sandbox(String),
}

impl ConfigError {
    /// Returns a hint that tells the user how to fix the problem, if one is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Syntax(error) => error.help.as_deref(),
            Self::Source(error) => Some(error.hint()),
            Self::Policy(error) => Some(error.hint()),
            Self::Refused(_) => Some(Refusal::HINT),
            Self::Telemetry(_) => Some("correct the variable, or turn telemetry off"),
            Self::Sandbox(_) => {
                Some("install bubblewrap; unless a policy needs the sandbox, you can also remove `--sandbox`")
            }
            _ => None,
        }
    }
}

/// Describes why a skill can't be loaded: the first error and the path in one line, then all other errors without the path. Warnings are
/// listed only if there is no error.
pub fn describe_load_error(error: &LoadError) -> String {
    let has_errors = error.diagnostics.iter().any(Diagnostic::is_error);
    let mut findings = error.diagnostics.iter().filter(|finding| !has_errors || finding.is_error());
    let path = shorten_home(&error.path);
    let Some(first) = findings.next() else { return format!("cannot load skill: {path}") };
    let message = match first.code {
        "no-such-directory" => "no such skill directory",
        _ => first.message.trim_end_matches('.'),
    };
    let place = match (first.line, first.column) {
        (0, _) => String::new(),
        (line, 0) => format!(":{line}"),
        (line, column) => format!(":{line}:{column}"),
    };
    let rest = findings.map(|finding| match finding.line {
        0 => (finding.message.clone(), &finding.help),
        line => (format!("line {line}: {}", finding.message), &finding.help),
    });
    let lines = std::iter::once((format!("{message}: {path}{place}"), &first.help)).chain(rest);
    let lines =
        lines.flat_map(|(line, help)| [Some(line), help.as_ref().map(|help| format!("  help: {help}"))]);
    lines.flatten().collect::<Vec<_>>().join("\n")
}
