//! [`Triggers`]: the results of all queries, as `triggers.json`.
//!
//! Fields that the skill-creator's own runner writes have the same names here. The others are additions.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    Case, Configuration, Confusion, Evaluation, Outcome, Part, Status, clustered,
    statistics::{pass_all, pass_at, rate, rounded, wilson},
};

/// The results of all queries on one agent and in one configuration.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Triggers {
    /// The skill's name.
    pub skill_name: String,
    /// The skill's description, which decides if models load it.
    pub description: String,
    /// The results of each query, in the order of the file. If the queries are split, only those for tuning: the others are part
    /// of the rates alone, so that the description is not tuned with them.
    #[serde(rename = "results")]
    pub queries: Vec<QueryResult>,
    /// The rates over all queries.
    pub summary: Rates,
    /// The rates over the queries for tuning. `None` if the queries are not split.
    pub train: Option<Rates>,
    /// The rates over the queries for validation. `None` if the queries are not split.
    pub validation: Option<Rates>,
    /// The results of the older version of the skill, if there is a baseline.
    pub old_skill: Option<Box<Triggers>>,
}

/// The results of one query.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct QueryResult {
    /// The prompt.
    pub query: String,
    /// True if the model should load the skill.
    pub should_trigger: bool,
    /// The share of runs in which the skill was loaded, from 0 to 1. `None` before the first run.
    pub trigger_rate: Option<f64>,
    /// The number of runs in which the skill was loaded.
    pub triggers: u64,
    /// The number of finished runs in which the agent did not fail.
    pub runs: u64,
    /// The number of runs in which the agent failed. They say nothing about the skill, so they don't count as runs.
    pub errors: u64,
    /// True if the trigger rate is on the right side of the threshold. False if there are no runs.
    pub pass: bool,
    /// The confidence interval (95 %) of the trigger rate.
    pub interval: Option<[f64; 2]>,
    /// The number of runs in which each other skill was loaded, by name.
    pub loaded_instead: BTreeMap<String, u64>,
    /// The part to which the query belongs. `None` if the queries are not split.
    pub split: Option<Part>,
}

/// The rates over several queries.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Rates {
    /// The number of queries.
    pub total: u64,
    /// The number of queries that passed.
    pub passed: u64,
    /// The number of queries that failed.
    pub failed: u64,
    /// The number of queries without a result, because there are no runs in which the agent did not fail.
    pub undecided: u64,
    /// The share of runs with the right result.
    pub accuracy: Option<f64>,
    /// The confidence interval (95 %) of the accuracy for other queries like these. It uses the spread between
    /// queries, because runs of one query are not independent. `None` for fewer than two queries.
    pub interval: Option<[f64; 2]>,
    /// The share of correct runs among those that loaded the skill.
    pub precision: Option<f64>,
    /// The share of runs that loaded the skill among those that should.
    pub recall: Option<f64>,
    /// The harmonic mean of precision and recall.
    pub f1: Option<f64>,
    /// The number of runs of a query in `pass_at_k` and `pass_all_k`.
    pub k: u64,
    /// The mean probability that at least one of k runs of a query is right (pass@k).
    pub pass_at_k: Option<f64>,
    /// The mean probability that all of k runs of a query are right (pass^k).
    pub pass_all_k: Option<f64>,
    /// The number of runs in which the agent failed.
    pub errors: u64,
    /// The number of runs by expected and actual result.
    pub confusion: Confusion,
}

impl Triggers {
    /// Computes the results of one agent from its outcomes. Returns `None` if there are no queries, or no baseline for
    /// [`Configuration::OldSkill`].
    pub(super) fn of(
        evaluation: &Evaluation,
        outcomes: &[&Outcome],
        configuration: Configuration,
    ) -> Option<Self> {
        let skill = match configuration {
            Configuration::OldSkill => evaluation.baseline.as_ref()?,
            _ => &evaluation.skill,
        };
        if evaluation.queries.is_empty() {
            return None;
        }
        let parts = evaluation.parts();
        let mut tallies = Vec::new();
        for (place, case) in evaluation.queries.iter().enumerate() {
            let is_of_case = |outcome: &&&Outcome| {
                outcome.run.case == Case::Query(place) && outcome.run.configuration == configuration
            };
            let of_case = outcomes.iter().filter(is_of_case);
            let part = parts.as_ref().map(|parts| parts[place]);
            let mut tally = Tally::new(&case.query, case.should_trigger, part);
            for outcome in of_case {
                tally.add(outcome, skill.name.as_str());
            }
            tally.finish(evaluation.options.threshold);
            tallies.push(tally);
        }
        let rates = |part: Option<Part>| {
            let some: Vec<_> =
                tallies.iter().filter(|tally| part.is_none() || tally.result.split == part).collect();
            Rates::of(&some, u64::from(evaluation.options.runs))
        };
        let summary = rates(None);
        let train = parts.is_some().then(|| rates(Some(Part::Train)));
        let validation = parts.is_some().then(|| rates(Some(Part::Validation)));
        let old_skill = match configuration {
            Configuration::WithSkill => Self::of(evaluation, outcomes, Configuration::OldSkill).map(Box::new),
            _ => None,
        };
        let results = tallies.into_iter().map(|tally| tally.result);
        let shown = results.filter(|result| result.split != Some(Part::Validation));
        Some(Self {
            skill_name: skill.name.to_string(),
            description: skill.description.clone(),
            queries: shown.collect(),
            summary,
            train,
            validation,
            old_skill,
        })
    }
}

/// A query while its runs are being counted.
struct Tally {
    result: QueryResult,
    right: u64,
    confusion: Confusion,
}

impl Tally {
    fn new(query: &str, should_trigger: bool, split: Option<Part>) -> Self {
        let result = QueryResult {
            query: query.to_owned(),
            should_trigger,
            trigger_rate: None,
            triggers: 0,
            runs: 0,
            errors: 0,
            pass: false,
            interval: None,
            loaded_instead: BTreeMap::new(),
            split,
        };
        Self { result, right: 0, confusion: Confusion::default() }
    }

    fn add(&mut self, outcome: &Outcome, skill: &str) {
        let result = &mut self.result;
        if outcome.status == Status::Error {
            result.errors += 1;
            return;
        }
        result.runs += 1;
        for other in outcome.loaded.iter().filter(|other| *other != skill) {
            *result.loaded_instead.entry(other.clone()).or_default() += 1;
        }
        result.triggers += u64::from(outcome.triggered);
        self.right += u64::from(outcome.triggered == result.should_trigger);
        self.confusion.add(result.should_trigger, outcome.triggered);
    }

    fn finish(&mut self, threshold: f64) {
        let result = &mut self.result;
        result.trigger_rate = rate(result.triggers, result.runs);
        result.interval = wilson(result.triggers, result.runs);
        result.pass = match result.trigger_rate {
            Some(rate) if result.should_trigger => rate >= threshold,
            Some(rate) => rate < threshold,
            None => false,
        };
    }
}

impl Rates {
    /// Returns the number of queries with a result.
    pub fn decided(&self) -> u64 {
        self.total - self.undecided
    }

    #[expect(clippy::cast_precision_loss, reason = "query counts are small")]
    fn of(tallies: &[&Tally], k: u64) -> Self {
        let sum = |of: fn(&Tally) -> u64| tallies.iter().map(|tally| of(tally)).sum::<u64>();
        let runs = sum(|tally| tally.result.runs);
        let right = sum(|tally| tally.right);
        let total = tallies.len() as u64;
        let passed = sum(|tally| u64::from(tally.result.pass));
        let undecided = sum(|tally| u64::from(tally.result.runs == 0));
        let cases: Vec<_> = tallies.iter().map(|tally| (tally.right, tally.result.runs)).collect();
        let mut confusion = Confusion::default();
        for tally in tallies {
            let one = tally.confusion;
            confusion.true_positives += one.true_positives;
            confusion.false_positives += one.false_positives;
            confusion.true_negatives += one.true_negatives;
            confusion.false_negatives += one.false_negatives;
        }
        let mean = |of: fn(u64, u64, u64) -> Option<f64>| {
            // A query in which the agent has failed has fewer than k runs, so it has no estimate.
            let chances = tallies.iter().filter_map(|tally| of(k, tally.right, tally.result.runs));
            let chances: Vec<_> = chances.collect();
            (!chances.is_empty()).then(|| rounded(chances.iter().sum::<f64>() / chances.len() as f64))
        };
        Self {
            total,
            passed,
            failed: total - passed - undecided,
            undecided,
            accuracy: rate(right, runs),
            interval: clustered(&cases),
            precision: confusion.precision(),
            recall: confusion.recall(),
            f1: confusion.f1(),
            k,
            pass_at_k: mean(pass_at),
            pass_all_k: mean(pass_all),
            errors: sum(|tally| tally.result.errors),
            confusion,
        }
    }
}
