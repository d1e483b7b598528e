//! Whether results are better with the skill: `benchmark.json`, as the standard and its skill-creator have it. Where the two
//! differ the standard wins: `delta` holds numbers.
//!
//! Viewers know two configurations. An older version of the skill takes the place of `without_skill` there, and
//! `metadata.baseline` says so.

use std::{collections::BTreeMap, path::PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{
    Case, Configuration, Evaluation, Grade, Grader, Outcome, OutputCase, Spread, Status, statistics::rounded,
};

/// From which deviation of its pass rates on a case is called flaky.
const FLAKY: f64 = 0.3;
/// How many times as long as the median a run takes that is worth a look.
const SLOW: f64 = 3.0;

/// What the runs of all tasks come to, on one agent.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Benchmark {
    /// What was run.
    pub metadata: Metadata,
    /// Each run.
    pub runs: Vec<RunRow>,
    /// All runs of a configuration.
    pub run_summary: RunSummary,
    /// What is worth a look.
    pub notes: Vec<String>,
    /// Each task.
    #[serde(skip)]
    pub cases: Vec<CaseSummary>,
}

/// What was run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Metadata {
    /// The skill.
    pub skill_name: String,
    /// Its directory.
    pub skill_path: PathBuf,
    /// The model of the agent, else the agent, as far as it says.
    pub executor_model: Option<String>,
    /// Who graded.
    pub analyzer_model: Option<String>,
    /// When this was written.
    pub timestamp: Timestamp,
    /// The ids of the tasks.
    pub evals_run: Vec<Value>,
    /// How often each was run.
    pub runs_per_configuration: u32,
    /// What stands under `without_skill`: that, or `old_skill`.
    pub baseline: Configuration,
}

/// One run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunRow {
    /// The id of its task.
    pub eval_id: Value,
    /// Its name.
    pub eval_name: String,
    /// `with_skill` or `without_skill`.
    pub configuration: &'static str,
    /// From 1.
    pub run_number: u32,
    /// Its figures.
    pub result: RunResult,
    /// Its assertions.
    pub expectations: Vec<Grade>,
    /// What is worth a look.
    pub notes: Vec<String>,
}

/// The figures of one run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunResult {
    /// The share of assertions that hold.
    pub pass_rate: Option<f64>,
    /// How many hold.
    pub passed: u64,
    /// How many do not.
    pub failed: u64,
    /// How many there are.
    pub total: u64,
    /// How long the turn took.
    pub time_seconds: f64,
    /// What the agent reports.
    pub tokens: Option<u64>,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Those that failed, and one more when the run did.
    pub errors: u64,
}

/// All runs, and the difference that the skill makes.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// With the skill.
    pub with_skill: ConfigurationSummary,
    /// Without it, or with an older version.
    pub without_skill: ConfigurationSummary,
    /// With it, less without it.
    pub delta: Delta,
}

/// All runs of one configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ConfigurationSummary {
    /// The share of assertions that hold.
    pub pass_rate: Option<Spread>,
    /// How long turns took.
    pub time_seconds: Option<Spread>,
    /// What the agent reports.
    pub tokens: Option<Spread>,
}

/// Differences of means; unknown where one of them is.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Delta {
    /// Of pass rates.
    pub pass_rate: Option<f64>,
    /// Of times.
    pub time_seconds: Option<f64>,
    /// Of tokens.
    pub tokens: Option<f64>,
}

/// One task.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CaseSummary {
    /// Its name.
    pub name: String,
    /// With the skill.
    pub with_skill: ConfigurationSummary,
    /// Without it, or with an older version.
    pub without_skill: ConfigurationSummary,
    /// How many runs with the skill ended in which way.
    pub statuses: BTreeMap<&'static str, u64>,
    /// Whether every run with the skill passed.
    pub pass: bool,
}

impl ConfigurationSummary {
    #[expect(clippy::cast_precision_loss, reason = "times and tokens are not that many")]
    fn of(outcomes: &[&Outcome]) -> Self {
        let ran = || outcomes.iter().filter(|it| it.status != Status::Error);
        let rates: Vec<f64> = outcomes.iter().filter_map(|it| it.pass_rate()).collect();
        let times: Vec<f64> = ran().map(|it| it.duration_ms as f64 / 1000.0).collect();
        let tokens: Vec<f64> = ran().filter_map(|it| it.tokens).map(|it| it.total as f64).collect();
        Self { pass_rate: Spread::of(&rates), time_seconds: Spread::of(&times), tokens: Spread::of(&tokens) }
    }
}

impl Delta {
    fn between(with: &ConfigurationSummary, without: &ConfigurationSummary) -> Self {
        let less =
            |a: &Option<Spread>, b: &Option<Spread>| Some(rounded(a.as_ref()?.mean - b.as_ref()?.mean));
        Self {
            pass_rate: less(&with.pass_rate, &without.pass_rate),
            time_seconds: less(&with.time_seconds, &without.time_seconds),
            tokens: less(&with.tokens, &without.tokens),
        }
    }
}

impl Benchmark {
    /// Of one agent; `None` without tasks.
    pub(super) fn of(evaluation: &Evaluation, outcomes: &[&Outcome]) -> Option<Self> {
        if evaluation.evals.is_empty() {
            return None;
        }
        let compared = evaluation.compared_with();
        let of = |name: Option<&str>, configuration: Configuration| -> Vec<&Outcome> {
            let is_of = |it: &&&Outcome| {
                let is_case = match (&it.run.case, name) {
                    (Case::Eval(case), Some(name)) => case == name,
                    (Case::Eval(_), None) => true,
                    _ => false,
                };
                is_case && it.run.configuration == configuration
            };
            outcomes.iter().filter(is_of).copied().collect()
        };
        let (with, without) = (of(None, Configuration::WithSkill), of(None, compared));
        let (with_skill, without_skill) =
            (ConfigurationSummary::of(&with), ConfigurationSummary::of(&without));
        let delta = Delta::between(&with_skill, &without_skill);
        let (mut runs, mut cases, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for case in &evaluation.evals {
            let (with, without) =
                (of(Some(&case.name), Configuration::WithSkill), of(Some(&case.name), compared));
            runs.extend(with.iter().map(|outcome| row(case, outcome, "with_skill")));
            runs.extend(without.iter().map(|outcome| row(case, outcome, "without_skill")));
            notes.extend(notes_on(case, &with, &without));
            cases.push(CaseSummary::of(&case.name, &with, &without));
        }
        let said =
            |of: fn(&Outcome) -> Option<&String>| with.iter().chain(&without).find_map(|it| of(it)).cloned();
        let executor_model = said(|it| it.model.as_ref()).or_else(|| said(|it| it.agent_info.as_ref()));
        let analyzer_model = match &evaluation.options.grader {
            Grader::Same => executor_model.clone(),
            Grader::Command(words) => words.first().map(|word| word.to_string_lossy().into_owned()),
            Grader::Nobody => None,
        };
        let metadata = Metadata {
            skill_name: evaluation.skill.name.to_string(),
            skill_path: evaluation.dir.clone(),
            executor_model,
            analyzer_model,
            timestamp: Timestamp::now(),
            evals_run: evaluation.evals.iter().map(|case| case.id.clone()).collect(),
            runs_per_configuration: evaluation.options.runs,
            baseline: compared,
        };
        let run_summary = RunSummary { with_skill, without_skill, delta };
        Some(Self { metadata, runs, run_summary, notes, cases })
    }
}

impl CaseSummary {
    fn of(name: &str, with: &[&Outcome], without: &[&Outcome]) -> Self {
        let mut statuses = BTreeMap::new();
        for outcome in with {
            let word = match outcome.status {
                Status::Passed => "passed",
                Status::Failed => "failed",
                Status::NotActivated => "not_activated",
                Status::Ungraded => "ungraded",
                Status::Error => "error",
            };
            *statuses.entry(word).or_default() += 1;
        }
        Self {
            name: name.to_owned(),
            with_skill: ConfigurationSummary::of(with),
            without_skill: ConfigurationSummary::of(without),
            statuses,
            pass: !with.is_empty() && with.iter().all(|outcome| outcome.is_passed()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "times are not that long")]
fn row(case: &OutputCase, outcome: &Outcome, configuration: &'static str) -> RunRow {
    let (passed, total) = outcome.passed_of();
    let result = RunResult {
        pass_rate: outcome.pass_rate(),
        passed,
        failed: total - passed,
        total,
        time_seconds: outcome.duration_ms as f64 / 1000.0,
        tokens: outcome.tokens.map(|tokens| tokens.total),
        tool_calls: outcome.metrics.total_tool_calls,
        errors: outcome.metrics.errors_encountered + u64::from(outcome.status == Status::Error),
    };
    let mut notes: Vec<_> = outcome.problem().into_iter().collect();
    if outcome.status == Status::NotActivated {
        notes.push("the skill was not loaded".to_owned());
    }
    let refused = outcome.permissions.iter().filter(|request| !request.granted);
    notes.extend(refused.map(|request| format!("refused: {} ({})", request.title, request.why)));
    notes
        .extend(outcome.outside.iter().map(|path| format!("changed outside of the run's directory: {path}")));
    RunRow {
        eval_id: case.id.clone(),
        eval_name: case.name.clone(),
        configuration,
        run_number: outcome.run.number,
        result,
        expectations: outcome.grades.clone(),
        notes,
    }
}

/// What a reader should look at in the runs of a case.
fn notes_on(case: &OutputCase, with: &[&Outcome], without: &[&Outcome]) -> Vec<String> {
    let name = &case.name;
    let mut notes = Vec::new();
    let ran = |outcomes: &[&Outcome]| -> Vec<Outcome> {
        outcomes.iter().filter(|it| it.status != Status::Error).map(|it| (*it).clone()).collect()
    };
    let (ran_with, ran_without) = (ran(with), ran(without));
    for (place, assertion) in case.assertions.iter().enumerate() {
        let all = |outcomes: &[Outcome], passed: bool| {
            let told = |it: &Outcome| {
                it.grades.get(place).is_some_and(|grade| !grade.ungraded && grade.passed == passed)
            };
            !outcomes.is_empty() && outcomes.iter().all(told)
        };
        let text = assertion.text();
        if all(&ran_with, true) && all(&ran_without, true) {
            notes.push(format!("{name}: always holds in both configurations, so it says nothing: {text}"));
        } else if all(&ran_with, false) && all(&ran_without, false) {
            notes.push(format!(
                "{name}: never holds in either configuration; it may be wrong or too hard: {text}"
            ));
        } else if all(&ran_with, true) && all(&ran_without, false) {
            notes.push(format!("{name}: holds only with the skill: {text}"));
        } else if all(&ran_with, false) && all(&ran_without, true) {
            notes.push(format!("{name}: holds only without the skill: {text}"));
        }
    }
    let not_loaded = with.iter().filter(|it| it.status == Status::NotActivated).count();
    if not_loaded > 0 {
        notes.push(format!(
            "{name}: the skill was not loaded in {not_loaded} of {} runs; its description is to blame, not its body",
            with.len()
        ));
    }
    for (outcomes, configuration) in [(&ran_with, "with the skill"), (&ran_without, "without it")] {
        let references: Vec<_> = outcomes.iter().collect();
        let summary = ConfigurationSummary::of(&references);
        if let Some(spread) = summary.pass_rate.filter(|spread| spread.stddev >= FLAKY) {
            notes.push(format!(
                "{name}: pass rates {configuration} differ from run to run (deviation {:.2}): the case is flaky, or the \
                 instructions are vague",
                spread.stddev
            ));
        }
        notes.extend(slow(name, configuration, outcomes));
    }
    notes
}

/// Runs that took much longer than the others.
#[expect(clippy::cast_precision_loss, reason = "times are not that long")]
fn slow(name: &str, configuration: &str, outcomes: &[Outcome]) -> Vec<String> {
    let mut times: Vec<_> = outcomes.iter().map(|it| it.duration_ms).collect();
    times.sort_unstable();
    let Some(&median) = times.get(times.len() / 2).filter(|_| times.len() > 2) else { return Vec::new() };
    let is_slow = |it: &&Outcome| it.duration_ms as f64 >= SLOW * median as f64 && it.duration_ms > 1_000;
    let note = |it: &Outcome| {
        let times = it.duration_ms as f64 / median.max(1) as f64;
        format!("{name}: run {} {configuration} took {times:.0} times as long as the others", it.run.number)
    };
    outcomes.iter().filter(is_slow).map(note).collect()
}
