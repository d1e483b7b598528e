//! The contents of the files of a task and of its runs, as the standard and the skill-creator define them.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Assertion, Evaluation, Outcome, OutputCase, transcript::Metrics};

/// The file with the prompt of a task, for viewers of other tools.
pub(super) const METADATA: &str = "eval_metadata.json";

/// Returns the contents of `eval_metadata.json`, from which the skill-creator's viewer takes the prompt. Its scripts sort by
/// `eval_id`, so this is always a number: the task's own id if all tasks have one, or else its place in the file.
pub(super) fn metadata(evaluation: &Evaluation, case: &OutputCase) -> Value {
    let have_numbers = evaluation.evals.iter().all(|case| case.id.is_number());
    let place = evaluation.evals.iter().position(|other| other.name == case.name);
    let number = place.map(|place| json!(place + 1));
    let prompts: Vec<_> = std::iter::once(&case.prompt).chain(&case.turns).map(String::as_str).collect();
    json!({
        "eval_id": if have_numbers { Some(case.id.clone()) } else { number },
        "eval_name": case.name,
        "prompt": prompts.join("\n\n"),
        "assertions": case.assertions.iter().map(Assertion::text).collect::<Vec<_>>(),
    })
}

/// Returns milliseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "durations are small")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

/// Returns the contents of `timing.json`. The total duration is that of the agent, with the field names of the standard and of the skill-creator.
pub(super) fn timing(outcome: &Outcome) -> Value {
    let end = outcome.started + Duration::from_millis(outcome.duration_ms);
    json!({
        "total_tokens": outcome.tokens.map(|tokens| tokens.total),
        "duration_ms": outcome.duration_ms,
        "total_duration_seconds": seconds(outcome.duration_ms),
        "executor_start": outcome.started,
        "executor_end": end,
        "executor_duration_seconds": seconds(outcome.duration_ms),
        "grader_duration_seconds": outcome.grader_ms.map(seconds),
    })
}

/// Returns the contents of `grading.json`. It has no total duration: with one, the skill-creator's scripts don't read
/// `timing.json`, and show the number of characters as the number of tokens. The grades have two names, because the standard and the skill-creator differ.
pub(super) fn grading(outcome: &Outcome) -> Value {
    let (passed, total) = outcome.passed_of();
    let ungraded = outcome.grades.iter().filter(|grade| grade.ungraded).count();
    let metrics: &Metrics = &outcome.metrics;
    json!({
        "assertion_results": outcome.grades,
        "expectations": outcome.grades,
        "summary": {
            "passed": passed,
            "failed": total - passed,
            "total": total,
            "pass_rate": outcome.pass_rate().unwrap_or(0.0),
            "ungraded": ungraded,
        },
        "execution_metrics": metrics,
        "timing": {
            "executor_duration_seconds": seconds(outcome.duration_ms),
            "grader_duration_seconds": outcome.grader_ms.map(seconds),
        },
    })
}
