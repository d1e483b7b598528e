//! [`Options`]: the agents, the graders and the other options of an evaluation.

use std::{ffi::OsString, time::Duration};

use acp_skills::intercept::Policy;
use skills_core::{catalog::Style, exec::Sandbox};

use super::{Allow, Shard};

/// The name of the built-in agent, which is used if no agent is given.
pub const EMBEDDED: &str = "embedded";

/// An agent to evaluate on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentCommand {
    /// The name in reports and directories.
    pub name: String,
    /// The program and its arguments, which are run without a shell. If it is empty, the built-in agent is used.
    pub command: Vec<OsString>,
    /// The model to set in each session. `None` keeps the agent's own choice.
    pub model: Option<String>,
    /// The style of the catalog. `None` uses that of [`Options::policy`].
    pub catalog_style: Option<Style>,
}

impl AgentCommand {
    /// Creates an agent that chooses its model itself.
    pub fn new(name: impl Into<String>, command: Vec<OsString>) -> Self {
        Self { name: name.into(), command, model: None, catalog_style: None }
    }
}

/// The grader for assertions that are sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grader {
    /// The evaluated agent itself, in a new session without skills.
    #[default]
    Same,
    /// Another agent: its program and arguments.
    Command(Vec<OsString>),
    /// No grader. Sentences are skipped.
    Nobody,
}

/// The options of an evaluation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The number of runs of each case in each configuration. The default is 3.
    pub runs: u32,
    /// The maximum number of concurrent runs. The default is 1.
    pub jobs: usize,
    /// The timeout of a run, from the start of its agent. The default is 5 minutes.
    pub timeout: Duration,
    /// The maximum number of times that a run is repeated if the agent fails in it. The default is 2.
    pub retries: u32,
    /// The minimum share of runs that have to load the skill, from 0 to 1, so that a query counts as loading it. The default
    /// is 0.5.
    pub threshold: f64,
    /// The permissions of agents. The default allows nothing.
    pub allow: Allow,
    /// The grader for assertions that are sentences. The default is the evaluated agent.
    pub grader: Grader,
    /// A second grader, whose verdicts don't count: they only show how far two graders agree. By default, there is none.
    pub second_grader: Option<Vec<OsString>>,
    /// The part of the runs to make. By default, all runs are made.
    pub shard: Option<Shard>,
    /// The share of the queries for tuning, from 0 to 1. By default, the queries are not split.
    pub split: Option<f64>,
    /// The seed for selecting the queries for tuning. The default is 0.
    pub seed: u64,
    /// True if each agent process gets a home directory of its own, with the agent's login but without the skills that are
    /// installed for it. The default is false.
    pub isolate: bool,
    /// The proxy's policy.
    pub policy: Policy,
    /// The sandbox in which agents run. It has to allow the network, because agents need it to reach their model. By default,
    /// there is no sandbox.
    pub sandbox: Option<Sandbox>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            runs: 3,
            jobs: 1,
            timeout: Duration::from_mins(5),
            retries: 2,
            threshold: 0.5,
            allow: Allow::default(),
            grader: Grader::Same,
            second_grader: None,
            shard: None,
            split: None,
            seed: 0,
            isolate: false,
            policy: Policy::default(),
            sandbox: None,
        }
    }
}
