//! [`Outcome`]: the result of one run. Reports are computed from outcomes alone, and an interrupted evaluation resumes from
//! the stored ones.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    end::End,
    grade::Grade,
    permission::PermissionAnswer,
    statistics::rounded,
    transcript::Metrics,
    usage::{Cost, Tokens},
};

/// The case of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Case {
    /// A query, by its index in the file, starting at 0.
    Query(usize),
    /// A task, by its name.
    Eval(String),
}

/// The configuration of the agent in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Configuration {
    /// With the skill, behind the proxy.
    WithSkill,
    /// Without the skill and without the proxy.
    WithoutSkill,
    /// With an older version of the skill, behind the proxy.
    OldSkill,
}

impl Configuration {
    /// Returns the name of the configuration's directory, such as `with_skill`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WithSkill => "with_skill",
            Self::WithoutSkill => "without_skill",
            Self::OldSkill => "old_skill",
        }
    }
}

/// The identity of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunId {
    /// The agent's name.
    pub agent: String,
    /// The case.
    pub case: Case,
    /// The configuration.
    pub configuration: Configuration,
    /// The run's number, starting at 1.
    pub number: u32,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, case, configuration, number } = self;
        let configuration = configuration.as_str();
        match case {
            Case::Query(place) => write!(f, "{agent} query-{} {configuration} run-{number}", place + 1),
            Case::Eval(name) => write!(f, "{agent} eval-{name} {configuration} run-{number}"),
        }
    }
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// All expectations were met.
    Passed,
    /// An expectation was not met.
    Failed,
    /// The skill was not loaded although it should have been. The description of the skill is the cause, not its body.
    NotActivated,
    /// Some assertions could not be graded, and no other expectation was missed.
    Ungraded,
    /// The agent failed, so the run is not a result for the skill.
    Error,
}

/// The result of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The agent, the case, the configuration and the number of the run.
    pub run: RunId,
    /// The run's status.
    pub status: Status,
    /// The way in which the conversation ended.
    pub end: End,
    /// The names of the skills whose instructions the model received, in the order of their first load.
    pub loaded: Vec<String>,
    /// True if the evaluated skill was loaded.
    pub triggered: bool,
    /// The start time of the run.
    pub started: Timestamp,
    /// The duration of the turn in milliseconds.
    pub duration_ms: u64,
    /// The duration of the grading in milliseconds. `None` if the grader was not asked.
    pub grader_ms: Option<u64>,
    /// The used tokens, if the agent reports them.
    pub tokens: Option<Tokens>,
    /// The costs of the session, if the agent reports them.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// The time from the prompt to the agent's first message or tool call, in milliseconds.
    #[serde(default)]
    pub latency_ms: Option<u64>,
    /// Statistics about the conversation.
    pub metrics: Metrics,
    /// The agent's permission requests, with the answers.
    pub permissions: Vec<PermissionAnswer>,
    /// Files outside of the run's directory that tool calls report as changed.
    pub outside: Vec<String>,
    /// The files that were created or changed, relative to the run's directory.
    pub outputs: Vec<String>,
    /// The grade of each assertion. Empty for queries.
    pub grades: Vec<Grade>,
    /// The text of the agent's messages.
    pub answer: String,
    /// The name and version that the agent sends, if any.
    pub agent_info: Option<String>,
    /// The agent's model, if it sends it.
    pub model: Option<String>,
    /// The last part of the agent's standard error output. Empty if the agent did not fail.
    pub stderr: String,
    /// True if the prompt was sent.
    #[serde(default = "yes")]
    pub prompted: bool,
    /// The number of attempts. It is more than 1 if the agent failed first.
    #[serde(default = "one")]
    pub attempts: u32,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

impl Outcome {
    /// Returns the number of assertions that passed, and the number of all assertions.
    ///
    /// Assertions that were skipped don't count. Assertions that could not be graded count as failed.
    pub fn passed_of(&self) -> (u64, u64) {
        let counted = self.grades.iter().filter(|grade| !grade.skipped);
        let mut passed = 0;
        let mut total = 0;
        for grade in counted {
            passed += u64::from(grade.passed && !grade.ungraded);
            total += 1;
        }
        (passed, total)
    }

    /// Returns the share of assertions that passed, from 0 to 1, by their weights and scores. Returns `None` if the agent failed,
    /// or if there are no assertions to count.
    pub fn pass_rate(&self) -> Option<f64> {
        if self.status == Status::Error {
            return None;
        }
        let counted = || self.grades.iter().filter(|grade| !grade.skipped);
        let all: f64 = counted().map(|grade| grade.weight).sum();
        let passed: f64 = counted().map(|grade| grade.weight * grade.share()).sum();
        (all > 0.0).then(|| rounded(passed / all))
    }

    /// Returns true if the status is [`Status::Passed`].
    pub fn is_passed(&self) -> bool {
        self.status == Status::Passed
    }

    /// Returns the reason why the run has no valid result, or `None` if it has one.
    pub fn problem(&self) -> Option<String> {
        self.end.problem()
    }
}
