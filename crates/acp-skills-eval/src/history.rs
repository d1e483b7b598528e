//! [`History`]: the results of all iterations in a workspace, to show how they change with the versions of the skill.
//!
//! Only the files for other tools are read, so iterations of the skill-creator are included.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;
use skills_core::evaluation::{BENCHMARK, ITERATION_PREFIX, MANIFEST, TRIGGERS};

use super::{
    EvaluationError,
    workspace::{iterations, read_json},
};

/// The results of all iterations in a workspace.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct History {
    /// The workspace.
    pub workspace: PathBuf,
    /// The results, in the order of the iterations.
    pub entries: Vec<Entry>,
}

/// The results of one agent in one iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// The number of the iteration.
    pub iteration: u64,
    /// The time at which the iteration was created, if it is known.
    pub created: Option<String>,
    /// The hash of the skill's `SKILL.md`, if it is known.
    pub skill_version: Option<String>,
    /// The skill's description, if it is known.
    pub description: Option<String>,
    /// The agent's name. Empty if it is not known.
    pub agent: String,
    /// The model, if the agent sends it.
    pub model: Option<String>,
    /// The number of queries that passed, and of all queries.
    pub queries: Option<[u64; 2]>,
    /// The share of runs of queries with the right result.
    pub accuracy: Option<f64>,
    /// The confidence interval (95 %) of the accuracy.
    pub accuracy_interval: Option<[f64; 2]>,
    /// The mean pass rate of tasks with the skill.
    pub with_skill: Option<f64>,
    /// The mean pass rate of tasks without the skill, or with an older version.
    pub without_skill: Option<f64>,
    /// The confidence interval (95 %) of the difference.
    pub difference_interval: Option<[f64; 2]>,
}

impl History {
    /// Reads the results in a workspace. Iterations without results are left out.
    ///
    /// # Errors
    /// Returns [`EvaluationError::Unreadable`] if the workspace can't be listed, or if a file in it is not valid.
    pub fn read(workspace: &Path) -> Result<Self, EvaluationError> {
        let mut entries = Vec::new();
        for number in iterations(workspace)? {
            let iteration = workspace.join(format!("{ITERATION_PREFIX}{number}"));
            let setup = read_if_there(&iteration.join(MANIFEST))?;
            for (dir, agent) in agents(&iteration, &setup) {
                let triggers = read_if_there(&dir.join(TRIGGERS))?;
                let benchmark = read_if_there(&dir.join(BENCHMARK))?;
                if !triggers.is_null() || !benchmark.is_null() {
                    entries.push(Entry::new(number, agent, &setup, &triggers, &benchmark));
                }
            }
        }
        Ok(Self { workspace: workspace.to_owned(), entries })
    }
}

impl Entry {
    fn new(iteration: u64, agent: String, setup: &Value, triggers: &Value, benchmark: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let interval = |value: &Value| Some([value[0].as_f64()?, value[1].as_f64()?]);
        let rates = &triggers["summary"];
        let all = &benchmark["run_summary"];
        let mean = |configuration: &str| all[configuration]["pass_rate"]["mean"].as_f64();
        Self {
            iteration,
            created: text(&setup["created"]).or_else(|| text(&benchmark["metadata"]["timestamp"])),
            skill_version: text(&setup["skill_version"]),
            description: text(&setup["description"]).or_else(|| text(&triggers["description"])),
            agent,
            model: text(&benchmark["metadata"]["executor_model"]),
            queries: Option::zip(rates["passed"].as_u64(), rates["total"].as_u64()).map(<[u64; 2]>::from),
            accuracy: rates["accuracy"].as_f64(),
            accuracy_interval: interval(&rates["interval"]),
            with_skill: mean("with_skill"),
            without_skill: mean("without_skill").or_else(|| mean("old_skill")),
            difference_interval: interval(&all["delta"]["pass_rate_interval"]),
        }
    }
}

/// Returns the directories with the results of the agents, and the names of the agents.
fn agents(iteration: &Path, setup: &Value) -> Vec<(PathBuf, String)> {
    let names: Vec<_> = setup["agents"].as_array().into_iter().flatten().collect();
    let name_of = |agent: &Value| agent["name"].as_str().unwrap_or_default().to_owned();
    match names.as_slice() {
        [] => vec![(iteration.to_owned(), String::new())],
        [only] => vec![(iteration.to_owned(), name_of(only))],
        several => several.iter().map(|agent| (iteration.join(name_of(agent)), name_of(agent))).collect(),
    }
}

/// Reads a JSON file. Returns null if it doesn't exist.
fn read_if_there(path: &Path) -> Result<Value, EvaluationError> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(Value::Null);
    }
    read_json(path)
}
