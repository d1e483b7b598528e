//! Observations about the runs of a task.

use super::{
    super::{Outcome, OutputCase, Status},
    ConfigurationSummary, ran,
};

/// The minimum standard deviation of the pass rates of a flaky case.
const FLAKY: f64 = 0.3;
/// The factor by which a run has to exceed the median duration to be reported as slow.
const SLOW: f64 = 3.0;

/// Returns observations about the runs of a task.
pub(super) fn notes_on(case: &OutputCase, with: &[&Outcome], without: &[&Outcome]) -> Vec<String> {
    let name = &case.name;
    let mut notes = Vec::new();
    let ran_with: Vec<_> = ran(with).cloned().collect();
    let ran_without: Vec<_> = ran(without).cloned().collect();
    for (place, assertion) in case.assertions.iter().enumerate() {
        let all = |outcomes: &[Outcome], passed: bool| {
            let has_result = |outcome: &Outcome| {
                outcome.grades.get(place).is_some_and(|grade| !grade.ungraded && grade.passed == passed)
            };
            !outcomes.is_empty() && outcomes.iter().all(has_result)
        };
        let text = assertion.text();
        if all(&ran_with, true) && all(&ran_without, true) {
            notes.push(format!(
                "{name}: always holds in both configurations, so it does not show an effect: {text}"
            ));
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
    let not_loaded = with.iter().filter(|outcome| outcome.status == Status::NotActivated).count();
    if not_loaded > 0 {
        notes.push(format!(
            "{name}: the skill was not loaded in {not_loaded} of {} runs; improve its description, not its body",
            ran_with.len()
        ));
    }
    for (outcomes, configuration) in [(&ran_with, "with the skill"), (&ran_without, "without it")] {
        let references: Vec<_> = outcomes.iter().collect();
        let summary = ConfigurationSummary::of(&references);
        if let Some(spread) = summary.pass_rate.filter(|spread| spread.stddev >= FLAKY) {
            notes.push(format!(
                "{name}: pass rates {configuration} vary between runs (standard deviation {:.2}): the task is flaky, or the \
                 instructions are vague",
                spread.stddev
            ));
        }
        notes.extend(slow(name, configuration, outcomes));
    }
    notes
}

/// Returns a note for each run that took much longer than the others.
#[expect(clippy::cast_precision_loss, reason = "durations are small")]
fn slow(name: &str, configuration: &str, outcomes: &[Outcome]) -> Vec<String> {
    let mut times: Vec<_> = outcomes.iter().map(|outcome| outcome.duration_ms).collect();
    times.sort_unstable();
    let Some(&median) = times.get(times.len() / 2).filter(|_| times.len() > 2) else { return Vec::new() };
    let is_slow = |outcome: &&Outcome| {
        outcome.duration_ms as f64 >= SLOW * median as f64 && outcome.duration_ms > 1_000
    };
    let note = |outcome: &Outcome| {
        let times = outcome.duration_ms as f64 / median.max(1) as f64;
        let number = outcome.run.number;
        format!("{name}: run {number} {configuration} took {times:.0} times as long as the others")
    };
    outcomes.iter().filter(is_slow).map(note).collect()
}
