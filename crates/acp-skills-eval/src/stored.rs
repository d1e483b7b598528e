//! Evaluations that are stored in a workspace: reading their setup, and merging the results of parts.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::Value;
use skills_core::{
    Skill,
    discovery::load_dir,
    evaluation::{ITERATION_PREFIX, MANIFEST},
    order,
};

use super::{
    AgentCommand, Evaluation, EvaluationError, Grader, Options, Report, TriggerCase, Workspace, cases,
    directory::copy_all,
    files,
    workspace::{self, OLD_SKILL, SKILL, iterations, read_json},
};

/// The setup of a stored evaluation, as far as it is needed to compute a report.
#[derive(Deserialize)]
struct Setup {
    skill_path: PathBuf,
    agents: Vec<StoredAgent>,
    runs_per_configuration: u32,
    options: StoredOptions,
    queries: Vec<TriggerCase>,
    evals: Value,
    fingerprint: String,
}

#[derive(Deserialize)]
struct StoredAgent {
    name: String,
    command: Vec<String>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct StoredOptions {
    threshold: f64,
    split: Option<f64>,
    seed: u64,
    grader: Value,
}

/// Returns the copy of the skill in an iteration's directory, or `None` if there is none, because it was made by another tool.
pub fn kept_skill(iteration: &Path) -> Option<PathBuf> {
    only_child(&iteration.join(SKILL))
}

/// Merges the results of parts of an evaluation (`shard`) into a new iteration in `root`. Each part is the directory of an
/// iteration, of a workspace, of which the last iteration is used, or a directory with several of them. The result is the same as
/// if one process had made all runs. Runs that are in no part are missing in the report.
///
/// # Errors
/// - [`EvaluationError::Merge`] if there are no parts, if two parts are not of the same evaluation, or if both have the same run.
/// - [`EvaluationError::Unreadable`] or [`EvaluationError::Skill`] if a part can't be read.
/// - [`EvaluationError::Unwritable`] if the results can't be written.
pub fn merge(
    parts: &[PathBuf],
    root: Option<&Path>,
) -> Result<(Evaluation, Workspace, Report), EvaluationError> {
    let parts = find_parts(parts)?;
    let (evaluation, fingerprint) = read(&parts[0])?;
    for part in &parts[1..] {
        let (_, other) = read(part)?;
        if other != fingerprint {
            return Err(unmergeable(part, format!("not the same evaluation as {}", parts[0].display())));
        }
    }
    let plan = evaluation.plan()?;
    let mut found = Vec::new();
    for run in &plan.runs {
        let mut of_run = None;
        for part in &parts {
            let place = Workspace::at(part, &evaluation).of_run(run);
            if !place.join(workspace::RUN).exists() {
                continue;
            }
            if of_run.is_some() {
                return Err(unmergeable(part, format!("another part also has the run {run}")));
            }
            of_run = Some(place);
        }
        found.extend(of_run.map(|place| (run, place)));
    }
    let root = match root {
        Some(root) => root.to_owned(),
        None => Workspace::in_directory(Path::new(""), &evaluation)?,
    };
    let merged = Workspace::create(&root, &evaluation)?;
    for (run, place) in found {
        let to = merged.fresh_run(run)?;
        copy_all(&place, &to).map_err(|source| EvaluationError::Unwritable { path: to.clone(), source })?;
        if let (Some(case), Some(of_case)) = (evaluation.task(&run.case), to.parent().and_then(Path::parent))
        {
            workspace::write_json(&of_case.join(files::METADATA), &files::metadata(&evaluation, case))?;
        }
    }
    let mut outcomes = merged.outcomes(&plan.runs)?;
    order::sort_by(&mut outcomes, |a, b| a.run.cmp(&b.run));
    let report = Report::new(&evaluation, outcomes);
    merged.write_report(&evaluation, &report)?;
    Ok((evaluation, merged, report))
}

/// Returns the directories of the iterations.
fn find_parts(given: &[PathBuf]) -> Result<Vec<PathBuf>, EvaluationError> {
    let mut parts = Vec::new();
    for dir in given {
        let mut found: Vec<_> = iteration_in(dir)?.into_iter().collect();
        if found.is_empty() {
            for child in children(dir)? {
                found.extend(iteration_in(&child)?);
            }
        }
        if found.is_empty() {
            return Err(unmergeable(dir, "no results found".to_owned()));
        }
        parts.extend(found);
    }
    if parts.is_empty() {
        return Err(unmergeable(Path::new("."), "no results found".to_owned()));
    }
    Ok(parts)
}

/// Returns the directory itself if it is an iteration, or the last iteration in it.
fn iteration_in(dir: &Path) -> Result<Option<PathBuf>, EvaluationError> {
    if dir.join(MANIFEST).is_file() {
        return Ok(Some(dir.to_owned()));
    }
    if !dir.is_dir() {
        return Ok(None);
    }
    let last = iterations(dir)?.last().map(|number| dir.join(format!("{ITERATION_PREFIX}{number}")));
    Ok(last.filter(|iteration| iteration.join(MANIFEST).is_file()))
}

/// Reads the setup of an iteration. Returns the evaluation, and the hash of everything that its runs depend on.
fn read(iteration: &Path) -> Result<(Evaluation, String), EvaluationError> {
    let path = iteration.join(MANIFEST);
    let setup: Setup = serde_json::from_value(read_json(&path)?)
        .map_err(|error| EvaluationError::Unreadable { path: path.clone(), source: error.into() })?;
    let Some(skill) = kept_skill(iteration) else {
        return Err(unmergeable(iteration, "copy of the skill is missing".to_owned()));
    };
    let baseline = only_child(&iteration.join(OLD_SKILL));
    let agents = setup.agents.into_iter().map(|agent| AgentCommand {
        name: agent.name,
        command: agent.command.into_iter().map(Into::into).collect(),
        model: agent.model,
        catalog_style: None,
    });
    let options = Options {
        runs: setup.runs_per_configuration,
        threshold: setup.options.threshold,
        split: setup.options.split,
        seed: setup.options.seed,
        grader: match setup.options.grader {
            Value::Array(words) => {
                Grader::Command(words.iter().filter_map(|word| Some(word.as_str()?.into())).collect())
            }
            Value::Null => Grader::Nobody,
            _ => Grader::Same,
        },
        ..Options::default()
    };
    let evals = cases::read_output_cases(&path, &setup.evals)?;
    let baseline = baseline.map(|dir| load(&dir)).transpose()?;
    let evaluation = Evaluation::stored(load(&skill)?, setup.skill_path, baseline)
        .with_cases(setup.queries, evals)
        .on(agents)?
        .options(options);
    Ok((evaluation, setup.fingerprint))
}

fn load(dir: &Path) -> Result<Arc<Skill>, EvaluationError> {
    let failed = |source| EvaluationError::Skill { path: dir.to_owned(), source };
    let absolute = std::path::absolute(dir)
        .map_err(|source| EvaluationError::Unreadable { path: dir.to_owned(), source })?;
    let (skill, _diagnostics) = load_dir(&absolute).map_err(failed)?;
    Ok(Arc::new(skill))
}

/// Returns the only directory in `dir`.
fn only_child(dir: &Path) -> Option<PathBuf> {
    let children = children(dir).ok()?;
    children.into_iter().next()
}

/// Returns the directories in `dir`, sorted by name.
fn children(dir: &Path) -> Result<Vec<PathBuf>, EvaluationError> {
    let unreadable = |source| EvaluationError::Unreadable { path: dir.to_owned(), source };
    let mut children = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            children.push(path);
        }
    }
    order::sort(&mut children);
    Ok(children)
}

fn unmergeable(path: &Path, reason: String) -> EvaluationError {
    EvaluationError::Merge { path: path.to_owned(), reason }
}
