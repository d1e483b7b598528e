//! [`Outcome`]: what is known of one run. It is all that reports are made from, and what is kept of a run to go on later.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    end::End,
    grading::Grade,
    permission::PermissionAnswer,
    transcript::{Metrics, Tokens},
};

/// Which case a run is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Case {
    /// A query, by its place in the file, from 0.
    Query(usize),
    /// A task, by its name.
    Eval(String),
}

/// What the agent has in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Configuration {
    /// The skill.
    WithSkill,
    /// Neither the skill nor the proxy.
    WithoutSkill,
    /// An older version of the skill.
    OldSkill,
}

impl Configuration {
    /// The name of its directory.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WithSkill => "with_skill",
            Self::WithoutSkill => "without_skill",
            Self::OldSkill => "old_skill",
        }
    }
}

/// Which run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunId {
    /// The name of the agent.
    pub agent: String,
    /// The case.
    pub case: Case,
    /// What the agent has.
    pub configuration: Configuration,
    /// From 1.
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

/// What became of a run, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// Everything is as it should be.
    Passed,
    /// It is not.
    Failed,
    /// It is not, and the skill was not loaded although it should have been: the description is to blame, not the body.
    NotActivated,
    /// Something could not be judged.
    Ungraded,
    /// The run says nothing about the skill: the agent failed.
    Error,
}

/// What is known of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Which run.
    pub run: RunId,
    /// In a word.
    pub status: Status,
    /// How it ended.
    pub end: End,
    /// The skills whose instructions the model was given, in that order.
    pub loaded: Vec<String>,
    /// Whether the evaluated skill is among them.
    pub triggered: bool,
    /// When it began.
    pub started: Timestamp,
    /// How long the turn took, in milliseconds.
    pub duration_ms: u64,
    /// How long the grader took, in milliseconds.
    pub grader_ms: Option<u64>,
    /// What the agent reports.
    pub tokens: Option<Tokens>,
    /// Figures about the conversation.
    pub metrics: Metrics,
    /// What the agent asked for.
    pub permissions: Vec<PermissionAnswer>,
    /// Files outside of the run's directory that a tool call says it changed, with or without asking.
    pub outside: Vec<String>,
    /// The files that were made or changed.
    pub outputs: Vec<String>,
    /// What became of each assertion.
    pub grades: Vec<Grade>,
    /// What the agent said.
    pub answer: String,
    /// The agent, as it calls itself.
    pub agent_info: Option<String>,
    /// Its model, where it says.
    pub model: Option<String>,
    /// The end of what it wrote to stderr; kept when it failed.
    pub stderr: String,
}

impl Outcome {
    /// How many assertions hold, and of how many. Those that nobody was to grade do not count; those that nobody could
    /// grade do not hold.
    pub fn passed_of(&self) -> (u64, u64) {
        let counted = self.grades.iter().filter(|grade| !grade.skipped);
        let (mut passed, mut total) = (0, 0);
        for grade in counted {
            passed += u64::from(grade.passed && !grade.ungraded);
            total += 1;
        }
        (passed, total)
    }

    /// The share of assertions that hold; none when the agent failed, unknown when there is none to count.
    pub fn pass_rate(&self) -> Option<f64> {
        if self.status == Status::Error {
            return Some(0.0);
        }
        let (passed, total) = self.passed_of();
        super::statistics::rate(passed, total)
    }

    /// Whether nothing fell short.
    pub fn is_passed(&self) -> bool {
        self.status == Status::Passed
    }

    /// What went wrong with the run itself.
    pub fn problem(&self) -> Option<String> {
        super::run::problem_of(&self.end, matches!(self.run.case, Case::Eval(_)))
    }
}
