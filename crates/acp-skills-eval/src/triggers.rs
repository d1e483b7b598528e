//! Whether the skill is loaded when it should be: `triggers.json`. What the skill-creator's own runner writes has the same
//! names; there is more beside.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    Case, Configuration, Confusion, Evaluation, Outcome, Part, Status,
    statistics::{pass_all, pass_at, rate, rounded, split, wilson},
};

/// What the runs of all queries come to, on one agent and in one configuration.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Triggers {
    /// The skill.
    pub skill_name: String,
    /// Its description: what is evaluated here.
    pub description: String,
    /// Each query.
    #[serde(rename = "results")]
    pub queries: Vec<QueryResult>,
    /// All queries.
    pub summary: Rates,
    /// Those to train with, if they are split.
    pub train: Option<Rates>,
    /// The others.
    pub validation: Option<Rates>,
    /// The same of the older version, if there is one.
    pub old_skill: Option<Box<Triggers>>,
}

/// What the runs of one query come to.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct QueryResult {
    /// What the user said.
    pub query: String,
    /// Whether the skill should be loaded.
    pub should_trigger: bool,
    /// The share of runs in which it was loaded.
    pub trigger_rate: Option<f64>,
    /// How many that are.
    pub triggers: u64,
    /// Runs that are done.
    pub runs: u64,
    /// Runs in which the agent failed; they count as wrong.
    pub errors: u64,
    /// Whether enough runs were right.
    pub pass: bool,
    /// The interval of the rate, with a confidence of 95 %.
    pub interval: Option<[f64; 2]>,
    /// Other skills that were loaded, and in how many runs.
    pub loaded_instead: BTreeMap<String, u64>,
    /// Train or validation.
    pub split: Option<Part>,
}

/// What several queries come to.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Rates {
    /// Queries.
    pub total: u64,
    /// Those that pass.
    pub passed: u64,
    /// Those that do not.
    pub failed: u64,
    /// The share of right runs.
    pub accuracy: Option<f64>,
    /// Its interval, with a confidence of 95 %.
    pub interval: Option<[f64; 2]>,
    /// Of the runs that loaded the skill, the share of those that should.
    pub precision: Option<f64>,
    /// Of the runs that should load the skill, the share of those that did.
    pub recall: Option<f64>,
    /// Both in one figure.
    pub f1: Option<f64>,
    /// How many runs of a query `pass_at_k` and `pass_all_k` speak of.
    pub k: u64,
    /// The chance that at least one of k runs of a query is right (pass@k).
    pub pass_at_k: Option<f64>,
    /// The chance that all of k runs of a query are right (pass^k).
    pub pass_all_k: Option<f64>,
    /// Runs in which the agent failed.
    pub errors: u64,
    /// The runs.
    pub confusion: Confusion,
}

impl Triggers {
    /// Of one agent; `None` without queries.
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
        let parts = evaluation.options.split.map(|share| {
            let cases: Vec<_> =
                evaluation.queries.iter().map(|case| (case.query.as_str(), case.should_trigger)).collect();
            split(&cases, share, evaluation.options.seed)
        });
        let mut tallies = Vec::new();
        for (place, case) in evaluation.queries.iter().enumerate() {
            let of_case = outcomes
                .iter()
                .filter(|it| it.run.case == Case::Query(place) && it.run.configuration == configuration);
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
                tallies.iter().filter(|it| part.is_none() || it.result.split == part).collect();
            Rates::of(&some, u64::from(evaluation.options.runs))
        };
        let (summary, train, validation) = (
            rates(None),
            parts.is_some().then(|| rates(Some(Part::Train))),
            parts.is_some().then(|| rates(Some(Part::Validation))),
        );
        let old_skill = match configuration {
            Configuration::WithSkill => Self::of(evaluation, outcomes, Configuration::OldSkill).map(Box::new),
            _ => None,
        };
        Some(Self {
            skill_name: skill.name.to_string(),
            description: skill.description.clone(),
            queries: tallies.into_iter().map(|tally| tally.result).collect(),
            summary,
            train,
            validation,
            old_skill,
        })
    }
}

/// A query while its runs are counted.
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
        result.runs += 1;
        for other in outcome.loaded.iter().filter(|other| *other != skill) {
            *result.loaded_instead.entry(other.clone()).or_default() += 1;
        }
        if outcome.status == Status::Error {
            result.errors += 1;
            // An agent that failed before it could load the skill is no reason to believe that it would not have.
            if result.should_trigger {
                self.confusion.add(true, false);
            }
            return;
        }
        result.triggers += u64::from(outcome.triggered);
        self.right += u64::from(outcome.triggered == result.should_trigger);
        self.confusion.add(result.should_trigger, outcome.triggered);
    }

    fn finish(&mut self, threshold: f64) {
        let result = &mut self.result;
        result.trigger_rate = rate(result.triggers, result.runs);
        result.interval = wilson(result.triggers, result.runs);
        // A run in which the agent failed is on the wrong side, whichever that is.
        result.pass =
            match (rate(result.triggers, result.runs), rate(result.triggers + result.errors, result.runs)) {
                (Some(rate), _) if result.should_trigger => rate >= threshold,
                (_, Some(rate)) => rate < threshold,
                _ => false,
            };
    }
}

impl Rates {
    #[expect(clippy::cast_precision_loss, reason = "there are never that many queries")]
    fn of(tallies: &[&Tally], k: u64) -> Self {
        let sum = |of: fn(&Tally) -> u64| tallies.iter().map(|it| of(it)).sum::<u64>();
        let (runs, right) = (sum(|it| it.result.runs), sum(|it| it.right));
        let (total, passed) = (tallies.len() as u64, sum(|it| u64::from(it.result.pass)));
        let mut confusion = Confusion::default();
        for tally in tallies {
            let one = tally.confusion;
            confusion.true_positives += one.true_positives;
            confusion.false_positives += one.false_positives;
            confusion.true_negatives += one.true_negatives;
            confusion.false_negatives += one.false_negatives;
        }
        let mean = |of: fn(u64, u64, u64) -> Option<f64>| {
            let chances: Option<Vec<_>> = tallies.iter().map(|it| of(k, it.right, it.result.runs)).collect();
            chances.filter(|it| !it.is_empty()).map(|it| rounded(it.iter().sum::<f64>() / it.len() as f64))
        };
        Self {
            total,
            passed,
            failed: total - passed,
            accuracy: rate(right, runs),
            interval: wilson(right, runs),
            precision: confusion.precision(),
            recall: confusion.recall(),
            f1: confusion.f1(),
            k,
            pass_at_k: mean(pass_at),
            pass_all_k: mean(pass_all),
            errors: sum(|it| it.result.errors),
            confusion,
        }
    }
}
