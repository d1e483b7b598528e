//! [`Benchmark`]: the results of all tasks with and without the skill, as `benchmark.json`.
//!
//! The standard and its skill-creator both define this format. If they differ, we follow the standard; for example,
//! `delta` holds numbers.
//!
//! Viewers expect two configurations. If an older version of the skill is the baseline, its results are written as
//! `without_skill`, and `metadata.baseline` is `old_skill`.

mod notes;

use std::{collections::BTreeMap, path::PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use self::notes::notes_on;
use super::{
    Agreement, Case, Configuration, Effect, Evaluation, Grade, Grader, Outcome, OutputCase, Pair, Spread,
    Status, paired, statistics::rounded,
};

/// The results of all tasks on one agent.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Benchmark {
    /// The benchmark's setup.
    pub metadata: Metadata,
    /// All runs, ordered by task.
    pub runs: Vec<RunRow>,
    /// The statistics of both configurations.
    pub run_summary: RunSummary,
    /// Observations for the reader, such as flaky tasks.
    pub notes: Vec<String>,
    /// The statistics of each task, in the order of the file. They are not part of the JSON.
    #[serde(skip)]
    pub cases: Vec<CaseSummary>,
    /// The agreement of the two graders, if there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
}

/// The setup of a benchmark.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Metadata {
    /// The skill's name.
    pub skill_name: String,
    /// The skill's directory.
    pub skill_path: PathBuf,
    /// The agent's model, or the name of the agent if the model is not known.
    pub executor_model: Option<String>,
    /// The model or program of the grader. `None` if there was no grader.
    pub analyzer_model: Option<String>,
    /// The time at which the benchmark was computed.
    pub timestamp: Timestamp,
    /// The ids of the tasks.
    pub evals_run: Vec<Value>,
    /// The number of runs of each task and configuration.
    pub runs_per_configuration: u32,
    /// The configuration whose results are written as `without_skill`.
    pub baseline: Configuration,
}

/// The results of one run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunRow {
    /// The task's id.
    pub eval_id: Value,
    /// The task's name.
    pub eval_name: String,
    /// `with_skill` or `without_skill`.
    pub configuration: &'static str,
    /// The run's number, starting at 1.
    pub run_number: u32,
    /// The run's figures.
    pub result: RunResult,
    /// The grades of the assertions.
    pub expectations: Vec<Grade>,
    /// Observations for the reader, such as refused permissions.
    pub notes: Vec<String>,
}

/// The figures of one run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunResult {
    /// The share of assertions that passed, from 0 to 1. `None` if there is none to count.
    pub pass_rate: Option<f64>,
    /// The number of assertions that passed.
    pub passed: u64,
    /// The number of assertions that failed.
    pub failed: u64,
    /// The number of assertions.
    pub total: u64,
    /// The duration of the turn in seconds.
    pub time_seconds: f64,
    /// The number of tokens, if the agent reports it.
    pub tokens: Option<u64>,
    /// The number of tool calls.
    pub tool_calls: u64,
    /// The number of failed tool calls.
    pub errors: u64,
}

/// The statistics of both configurations, and the difference between them.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// The runs with the skill.
    pub with_skill: ConfigurationSummary,
    /// The runs without the skill, or with an older version.
    pub without_skill: ConfigurationSummary,
    /// The means with the skill minus the means without it.
    pub delta: Delta,
}

/// The statistics of one configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ConfigurationSummary {
    /// The share of assertions that passed in each run, from 0 to 1.
    pub pass_rate: Option<Spread>,
    /// The duration of the turns in seconds.
    pub time_seconds: Option<Spread>,
    /// The number of tokens, in runs in which the agent reports it.
    pub tokens: Option<Spread>,
    /// The time from the prompt to the agent's first message or tool call, in seconds.
    pub latency_seconds: Option<Spread>,
    /// The costs, in runs in which the agent reports them. `None` if they are in several currencies.
    pub cost: Option<Spread>,
}

/// The differences between means. A difference is `None` if one of the means is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Delta {
    /// The difference in pass rate.
    pub pass_rate: Option<f64>,
    /// The confidence interval (95 %) of the difference in pass rate, paired by task. `None` for fewer than two tasks.
    pub pass_rate_interval: Option<[f64; 2]>,
    /// The effect of the skill on the pass rate that the interval shows.
    pub effect: Effect,
    /// The difference in seconds.
    pub time_seconds: Option<f64>,
    /// The difference in tokens.
    pub tokens: Option<f64>,
}

/// The statistics of one task.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CaseSummary {
    /// The task's name.
    pub name: String,
    /// The runs with the skill.
    pub with_skill: ConfigurationSummary,
    /// The runs without the skill, or with an older version.
    pub without_skill: ConfigurationSummary,
    /// The number of runs with the skill for each status.
    pub statuses: BTreeMap<&'static str, u64>,
    /// True if there are runs with the skill and all of them passed. Runs in which the agent failed don't count.
    pub pass: bool,
    /// True if there is no run with the skill in which the agent did not fail.
    pub undecided: bool,
}

impl ConfigurationSummary {
    #[expect(clippy::cast_precision_loss, reason = "durations and token counts are small")]
    fn of(outcomes: &[&Outcome]) -> Self {
        let times: Vec<f64> = ran(outcomes).map(|outcome| outcome.duration_ms as f64 / 1000.0).collect();
        let tokens = ran(outcomes).filter_map(|outcome| outcome.tokens);
        let tokens: Vec<f64> = tokens.map(|tokens| tokens.total as f64).collect();
        let rates = pass_rates(outcomes);
        let latencies = ran(outcomes).filter_map(|outcome| outcome.latency_ms);
        let latencies: Vec<f64> = latencies.map(|millis| millis as f64 / 1000.0).collect();
        let costs: Vec<_> = ran(outcomes).filter_map(|outcome| outcome.cost.as_ref()).collect();
        let is_one_currency = costs.windows(2).all(|pair| pair[0].currency == pair[1].currency);
        let amounts: Vec<f64> = costs.iter().map(|cost| cost.amount).collect();
        Self {
            pass_rate: Spread::of(&rates),
            time_seconds: Spread::of(&times),
            tokens: Spread::of(&tokens),
            latency_seconds: Spread::of(&latencies),
            cost: Spread::of(&amounts).filter(|_| is_one_currency),
        }
    }
}

/// Returns the runs in which the agent did not fail.
fn ran<'a>(outcomes: &'a [&'a Outcome]) -> impl Iterator<Item = &'a Outcome> {
    outcomes.iter().copied().filter(|outcome| outcome.status != Status::Error)
}

fn pass_rates(outcomes: &[&Outcome]) -> Vec<f64> {
    outcomes.iter().filter_map(|outcome| outcome.pass_rate()).collect()
}

impl Delta {
    fn between(with: &ConfigurationSummary, without: &ConfigurationSummary, cases: &[Pair]) -> Self {
        let interval = paired(cases).map(|(_, interval)| interval);
        let less =
            |a: &Option<Spread>, b: &Option<Spread>| Some(rounded(a.as_ref()?.mean - b.as_ref()?.mean));
        Self {
            pass_rate: less(&with.pass_rate, &without.pass_rate),
            pass_rate_interval: interval,
            effect: Effect::of(interval),
            time_seconds: less(&with.time_seconds, &without.time_seconds),
            tokens: less(&with.tokens, &without.tokens),
        }
    }
}

impl Benchmark {
    /// Computes the benchmark of one agent from its outcomes. Returns `None` if there are no tasks.
    pub(super) fn of(evaluation: &Evaluation, outcomes: &[&Outcome]) -> Option<Self> {
        if evaluation.evals.is_empty() {
            return None;
        }
        let compared = evaluation.compared_with();
        let of = |name: Option<&str>, configuration: Configuration| -> Vec<&Outcome> {
            let is_of = |outcome: &&&Outcome| {
                let is_case = match (&outcome.run.case, name) {
                    (Case::Eval(case), Some(name)) => case == name,
                    (Case::Eval(_), None) => true,
                    _ => false,
                };
                is_case && outcome.run.configuration == configuration
            };
            outcomes.iter().filter(is_of).copied().collect()
        };
        let with = of(None, Configuration::WithSkill);
        let without = of(None, compared);
        let with_skill = ConfigurationSummary::of(&with);
        let without_skill = ConfigurationSummary::of(&without);
        let mut pairs = Vec::new();
        let mut runs = Vec::new();
        let mut cases = Vec::new();
        let mut notes = Vec::new();
        for case in &evaluation.evals {
            let with = of(Some(&case.name), Configuration::WithSkill);
            let without = of(Some(&case.name), compared);
            // Viewers treat each row as a result, so leave out runs without one.
            runs.extend(ran(&with).map(|outcome| row(case, outcome, "with_skill")));
            runs.extend(ran(&without).map(|outcome| row(case, outcome, "without_skill")));
            pairs.push(Pair::new(pass_rates(&with), pass_rates(&without)));
            notes.extend(notes_on(case, &with, &without));
            cases.push(CaseSummary::of(&case.name, &with, &without));
        }
        let first = |field: fn(&Outcome) -> Option<&String>| {
            with.iter().chain(&without).find_map(|outcome| field(outcome)).cloned()
        };
        let executor_model =
            first(|outcome| outcome.model.as_ref()).or_else(|| first(|outcome| outcome.agent_info.as_ref()));
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
        let delta = Delta::between(&with_skill, &without_skill, &pairs);
        let run_summary = RunSummary { with_skill, without_skill, delta };
        let agreement = Agreement::of(outcomes.iter().flat_map(|outcome| &outcome.grades));
        Some(Self { metadata, runs, run_summary, notes, cases, agreement })
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
            pass: ran(with).next().is_some() && ran(with).all(Outcome::is_passed),
            undecided: ran(with).next().is_none(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "durations are small")]
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
        errors: outcome.metrics.errors_encountered,
    };
    let mut notes = Vec::new();
    if outcome.status == Status::NotActivated {
        notes.push("the skill was not loaded".to_owned());
    }
    let refused = outcome.permissions.iter().filter(|request| !request.granted);
    notes.extend(refused.map(|request| format!("refused: {} ({})", request.title, request.why)));
    notes.extend(outcome.outside.iter().map(|path| format!("changed outside the run directory: {path}")));
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
