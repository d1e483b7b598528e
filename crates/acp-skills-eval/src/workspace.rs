//! [`Workspace`]: the files of an evaluation, in the layout of the standard and its skill-creator.
//!
//! ```text
//! code-review-workspace/iteration-1/
//!   evaluation.json                       the setup, for resuming and merging
//!   skill/NAME/  old-skill/NAME/          copies of the evaluated skill and of the older version
//!   eval-NAME/with_skill/run-1/           outputs/ transcript.md acp.jsonl answer.md timing.json grading.json run.json
//!   eval-NAME/without_skill/run-1/        or old_skill/
//!   triggers/query-01/with_skill/run-1/   transcript.md acp.jsonl run.json
//!   triggers.json  benchmark.json
//!   AGENT/…                               with several agents: all of the above except `evaluation.json`, for each agent
//!   comparison.json                       with several agents: their results side by side
//! ```

mod storage;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde_json::{Value, json};
use skills_core::{
    Skill,
    evaluation::{BENCHMARK, ITERATION_PREFIX, MANIFEST, TRIGGERS, WORKSPACE_SUFFIX},
    files::SKILL_FILE_NAMES,
};

use self::storage::{canonical_root, make, make_empty, make_new, read_text};
pub(super) use self::storage::{create, read_json, write, write_json};
use super::{
    AgentReport, Case, Evaluation, EvaluationError, Grader, Outcome, OutputCase, Report, RunId,
    directory::copy_all,
};

/// The file with the outcome of a run. It is written when the run has finished.
pub(super) const RUN: &str = "run.json";
/// The directories with the copies of the evaluated skill and of the older version.
pub(super) const SKILL: &str = "skill";
pub(super) const OLD_SKILL: &str = "old-skill";
/// The version of the files. It is incremented if an older version of the program could not resume with them.
const VERSION: u32 = 1;

/// The directory of one iteration.
#[derive(Debug, Clone)]
pub struct Workspace {
    iteration: PathBuf,
    /// True if there are several agents, each with its own directory.
    is_shared: bool,
}

impl Workspace {
    /// Returns the default directory of the workspace: next to the skill, with its name and the suffix `-workspace`.
    ///
    /// # Errors
    /// Returns [`EvaluationError::Link`] if there is a symbolic link. It could lead to any directory, and may come with the skill.
    pub fn beside(evaluation: &Evaluation) -> Result<PathBuf, EvaluationError> {
        let parent = evaluation.dir.parent().unwrap_or(&evaluation.dir);
        Self::in_directory(parent, evaluation)
    }

    /// Returns the default directory of the workspace in `parent`.
    ///
    /// # Errors
    /// Returns the errors of [`beside`](Self::beside).
    pub(super) fn in_directory(parent: &Path, evaluation: &Evaluation) -> Result<PathBuf, EvaluationError> {
        let name = evaluation.skill.name.as_str();
        // The author of the skill chooses the name, which could be a path.
        let name = if is_file_name(name) {
            name.into()
        } else {
            evaluation.dir.file_name().unwrap_or_default().to_string_lossy()
        };
        let root = parent.join(format!("{name}{WORKSPACE_SUFFIX}"));
        if root.is_symlink() {
            return Err(EvaluationError::Link(root));
        }
        // The author could choose a name with which it is the directory of another skill.
        if SKILL_FILE_NAMES.iter().any(|name| root.join(name).exists()) {
            return Err(EvaluationError::IsSkill(root));
        }
        Ok(root)
    }

    /// Creates the next iteration in `root`. The directory is created if it doesn't exist.
    ///
    /// # Errors
    /// Returns [`EvaluationError::Link`] if `root` is a symbolic link, [`EvaluationError::Unreadable`] if it can't be listed, and
    /// [`EvaluationError::Unwritable`] if a file or directory can't be written.
    pub fn create(root: &Path, evaluation: &Evaluation) -> Result<Self, EvaluationError> {
        let root = &canonical_root(root)?;
        if !root.exists() {
            make(root)?;
            // Since the workspace can be in a repository, make sure that files from agents are not committed.
            write(&root.join(".gitignore"), "*\n")?;
        }
        let number = iterations(root)?.last().map_or(1, |last| last.saturating_add(1));
        let iteration = root.join(format!("{ITERATION_PREFIX}{number}"));
        make_new(&iteration)?;
        keep_skill(&evaluation.skill, &iteration.join(SKILL))?;
        if let Some(baseline) = &evaluation.baseline {
            keep_skill(baseline, &iteration.join(OLD_SKILL))?;
        }
        write_json(&iteration.join(MANIFEST), &manifest(evaluation))?;
        Ok(Self { iteration, is_shared: evaluation.agents.len() > 1 })
    }

    /// Opens the iteration in a directory that has the setup of this evaluation.
    pub(super) fn at(iteration: &Path, evaluation: &Evaluation) -> Self {
        Self { iteration: iteration.to_owned(), is_shared: evaluation.agents.len() > 1 }
    }

    /// Opens the last iteration in `root` to resume it. If there is none, a new one is created.
    ///
    /// # Errors
    /// Returns [`EvaluationError::Link`] if `root` is a symbolic link, [`EvaluationError::Resume`] if the iteration has another skill, other
    /// cases, other agents or other options, and [`EvaluationError::Unreadable`] if it can't be read.
    pub fn resume(root: &Path, evaluation: &Evaluation) -> Result<Self, EvaluationError> {
        let root = &canonical_root(root)?;
        let last = if root.exists() { iterations(root)?.last().copied() } else { None };
        let Some(number) = last else { return Self::create(root, evaluation) };
        let iteration = root.join(format!("{ITERATION_PREFIX}{number}"));
        let found = read_json(&iteration.join(MANIFEST))?;
        let wanted = manifest(evaluation);
        let different = ["version", "skill_name", "agents", "shard", "fingerprint"]
            .into_iter()
            .find(|key| found[*key] != wanted[*key]);
        if let Some(key) = different {
            let reason = match key {
                "agents" => "agents are different",
                "shard" => "created for another part of the runs",
                "skill_name" => "created for another skill",
                "version" => "created by another version of this program",
                _ => "skill, cases or options have changed",
            };
            return Err(EvaluationError::Resume { path: iteration, reason: reason.to_owned() });
        }
        let workspace = Self { iteration, is_shared: evaluation.agents.len() > 1 };
        workspace.check_links(&workspace.iteration)?;
        Ok(workspace)
    }

    /// Returns the iteration's directory.
    pub fn iteration(&self) -> &Path {
        &self.iteration
    }

    /// Returns the directory with the results of an agent. It is the iteration itself if there is only one agent.
    pub fn of_agent(&self, agent: &str) -> PathBuf {
        if self.is_shared { self.iteration.join(agent) } else { self.iteration.clone() }
    }

    /// Returns the directory of a run.
    pub fn of_run(&self, id: &RunId) -> PathBuf {
        let case = match &id.case {
            Case::Query(place) => format!("triggers/query-{:02}", place + 1),
            Case::Eval(name) => format!("eval-{name}"),
        };
        let run = format!("run-{}", id.number);
        self.of_agent(&id.agent).join(case).join(id.configuration.as_str()).join(run)
    }

    /// Creates the directory of a run. If it exists, its contents are removed.
    pub(super) fn fresh_run(&self, id: &RunId) -> Result<PathBuf, EvaluationError> {
        let place = self.of_run(id);
        self.check_links(&place)?;
        make_empty(&place)?;
        Ok(place)
    }

    /// Checks a directory of this iteration, and those above it. The author of the skill may have made them, if the iteration is resumed.
    ///
    /// # Errors
    /// Returns [`EvaluationError::Link`] if one of them is a symbolic link.
    fn check_links(&self, dir: &Path) -> Result<(), EvaluationError> {
        let root = self.iteration.parent().unwrap_or(Path::new(""));
        match dir.ancestors().take_while(|dir| *dir != root).find(|dir| dir.is_symlink()) {
            Some(link) => Err(EvaluationError::Link(link.to_owned())),
            None => Ok(()),
        }
    }

    /// Stores the outcome of a run, which marks the run as finished.
    pub(super) fn keep(&self, outcome: &Outcome) -> Result<(), EvaluationError> {
        write_json(&self.of_run(&outcome.run).join(RUN), &json!(outcome))
    }

    /// Reads the outcomes of the runs that have finished.
    pub(super) fn outcomes(&self, runs: &[RunId]) -> Result<Vec<Outcome>, EvaluationError> {
        let mut outcomes = Vec::new();
        for id in runs {
            let path = self.of_run(id).join(RUN);
            let text = match read_text(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                text => text.map_err(|source| EvaluationError::Unreadable { path, source })?,
            };
            // If the file is incomplete, treat the run as not finished.
            if let Ok(outcome) = serde_json::from_str::<Outcome>(&text)
                && outcome.run == *id
            {
                outcomes.push(outcome);
            }
        }
        Ok(outcomes)
    }

    /// Writes the results of all runs.
    pub(super) fn write_report(
        &self,
        evaluation: &Evaluation,
        report: &Report,
    ) -> Result<(), EvaluationError> {
        for agent in &report.agents {
            let AgentReport { name, triggers, benchmark, .. } = agent;
            let place = self.of_agent(name);
            self.check_links(&place)?;
            if let Some(triggers) = triggers {
                write_json(&place.join(TRIGGERS), &json!(triggers))?;
            }
            if let Some(benchmark) = benchmark {
                write_json(&place.join(BENCHMARK), &json!(benchmark))?;
            }
        }
        if evaluation.agents.len() > 1 {
            write_json(&self.iteration.join("comparison.json"), &report.comparison())?;
        }
        Ok(())
    }
}

/// Returns true if a name is that of a visible file on all systems, and not a path.
fn is_file_name(name: &str) -> bool {
    !name.starts_with('.') && !name.contains(['/', '\\', ':'])
}

/// Returns the numbers of the iterations in a workspace in ascending order.
pub(super) fn iterations(root: &Path) -> Result<Vec<u64>, EvaluationError> {
    let unreadable = |source| EvaluationError::Unreadable { path: root.to_owned(), source };
    let mut numbers = Vec::new();
    for entry in fs::read_dir(root).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(ITERATION_PREFIX)?.parse::<u64>().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn manifest(evaluation: &Evaluation) -> Value {
    let agents = evaluation.agents.iter().map(|agent| {
        let command: Vec<_> = agent.command.iter().map(|word| word.to_string_lossy()).collect();
        let mut row = json!({ "name": agent.name, "command": command });
        if let Some(model) = &agent.model {
            row["model"] = json!(model);
        }
        row
    });
    let options = &evaluation.options;
    let grader = match &options.grader {
        Grader::Same => json!("same"),
        Grader::Command(words) => json!(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>()),
        Grader::Nobody => Value::Null,
    };
    json!({
        "version": VERSION,
        "skill_name": evaluation.skill.name,
        "skill_path": evaluation.dir,
        "skill_version": evaluation.skill_version(),
        "description": evaluation.skill.description,
        "created": Timestamp::now(),
        "agents": agents.collect::<Vec<_>>(),
        "runs_per_configuration": options.runs,
        "shard": options.shard,
        "options": {
            "threshold": options.threshold,
            "split": options.split,
            "seed": options.seed,
            "grader": grader,
        },
        "queries": evaluation.queries,
        "evals": evaluation.evals.iter().map(OutputCase::to_json).collect::<Vec<_>>(),
        "fingerprint": evaluation.fingerprint(),
    })
}

/// Copies a skill into the directory `to`, in a directory with the skill's name.
fn keep_skill(skill: &Skill, to: &Path) -> Result<(), EvaluationError> {
    let Some(from) = skill.dir() else { return Ok(()) };
    let to = to.join(from.file_name().unwrap_or_default());
    copy_all(from, &to).map_err(|source| EvaluationError::Unwritable { path: to, source })
}
