//! [`EvaluationError`]: errors that stop an evaluation. A failure of one run is part of its [`Outcome`](super::Outcome) and
//! doesn't stop other runs.

use std::{io, path::PathBuf};

use serde_json::Value;
use skills_core::{LoadError, exec::SandboxError};
use skills_sources::policy::{PolicyError, Refusal};

/// The maximum number of runs, with and without the skill. All of them are listed before the first one starts.
pub(super) const MAX_RUNS: u64 = 1_000_000;
/// The maximum number of files, and of assertions, of a task. They are copied and checked for each run, which can't be interrupted.
pub(super) const MAX_ENTRIES: usize = 1_000;

/// An error that stops an evaluation, or that occurs when its results are stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A skill can't be loaded.
    #[error("{source}")]
    Skill {
        /// The skill's directory.
        path: PathBuf,
        /// The skill's problems.
        source: LoadError,
    },
    /// The policy of this machine doesn't allow the skill.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The policy of this machine can't be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A file or directory can't be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file of cases is invalid.
    #[error("{}: {problem}", path.display())]
    Cases {
        /// The file.
        path: PathBuf,
        /// The problem and its place in the file.
        problem: CaseError,
    },
    /// The skill has neither queries nor tasks. The path is its directory.
    #[error("no cases to evaluate in {}", .0.display())]
    NoCases(PathBuf),
    /// There are more runs than can be planned.
    #[error("{0} runs are planned, and the maximum is {MAX_RUNS}")]
    TooManyRuns(u64),
    /// The queries can't be split into two parts. The path is the skill's directory.
    #[error("too few queries for a training part and a validation part in {}", .0.display())]
    TooFewQueries(PathBuf),
    /// The description can't be replaced, because the frontmatter is unusual. The path is the skill's directory.
    #[error("cannot replace the description: {}", .0.join("SKILL.md").display())]
    Description(PathBuf),
    /// A writer returned no usable answer.
    #[error("no usable answer from the writer: {0}")]
    Writer(String),
    /// Two agents have the same name.
    #[error("duplicate agent name `{0}`")]
    SameName(String),
    /// The name of an agent can't be used for a directory.
    #[error(
        "invalid agent name `{0}`: use letters, digits, `-`, `_` and `.`, but not `triggers` or a name starting with `.` or `eval-`"
    )]
    AgentName(String),
    /// A directory for results is a symbolic link.
    #[error("directory for results is a symbolic link: {}", .0.display())]
    Link(PathBuf),
    /// A directory for results is a skill. The results would become files of this skill.
    #[error("directory for results is a skill: {}", .0.display())]
    IsSkill(PathBuf),
    /// The workspace contains an evaluation with another skill, other cases or other options.
    #[error("cannot resume {}: {reason}", path.display())]
    Resume {
        /// The iteration's directory.
        path: PathBuf,
        /// The difference.
        reason: String,
    },
    /// Results can't be merged.
    #[error("cannot merge: {reason}: {}", path.display())]
    Merge {
        /// The directory of the part.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A result can't be written.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The requested sandbox can't be used on this system.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// An error that occurs when a file of cases is read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The file is not JSON, or a field is missing or has the wrong type.
    #[error(transparent)]
    Json(#[from] serde_path_to_error::Error<serde_json::Error>),
    /// A query has no text.
    #[error("query is empty")]
    EmptyQuery,
    /// Two queries have the same text.
    #[error("duplicate query {0:?}")]
    DuplicateQuery(String),
    /// Two tasks have the same name.
    #[error("duplicate case name `{0}`")]
    DuplicateName(String),
    /// A task is invalid. The number is its index, starting at 0.
    #[error("evals[{0}]: {1}")]
    Task(usize, #[source] TaskError),
}

/// An error in a task.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The id is neither a number nor a string with text.
    #[error("`id` must be a number or string")]
    Id,
    /// Neither the name nor the id contains a character that directory names can have.
    #[error("name or `id` must contain at least one letter or digit")]
    Name,
    /// There is neither `prompt` nor `turns`.
    #[error("missing field `prompt`")]
    NoPrompt,
    /// The weight is not a number, or it is not positive.
    #[error("`weight` must be a number above 0")]
    Weight,
    /// A prompt has no text.
    #[error("`prompt` is empty")]
    EmptyPrompt,
    /// The path of a file is absolute or contains `..`.
    #[error("`{0}` is outside the directory")]
    Outside(String),
    /// A regular expression is invalid.
    #[error("`{pattern}`: {source}")]
    Pattern {
        /// The expression.
        pattern: String,
        /// The problem.
        source: regex::Error,
    },
    /// A value is neither a sentence nor a known check.
    #[error("invalid assertion {0}: use a sentence, or an object with a known check")]
    Assertion(Value),
    /// There are more files or assertions than a task can have.
    #[error("more than {MAX_ENTRIES} `files` or `assertions`")]
    TooMany,
    /// The exit code of a command is not a number in range.
    #[error("`exit` must be a valid exit code")]
    ExitCode,
}
