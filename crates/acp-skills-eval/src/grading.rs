//! Grades the assertions of a task. The program performs checks itself and asks a grader about sentences. A second grader can
//! judge the same sentences, to measure how far both agree.
//!
//! | file | owns |
//! |---|---|
//! | `check` | performing checks |
//! | `judge` | asking a grader |

mod check;
mod judge;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use tokio::sync::watch;

use self::{
    check::checked,
    judge::{Judged, Judgement, judge},
};
use super::{AgentCommand, Assertion, Evaluation, Grade, OutputCase, Statement, directory::Made};

/// The results of a run, for grading.
pub(super) struct Work<'a> {
    pub(super) directory: &'a Path,
    pub(super) made: &'a [Made],
    pub(super) answer: &'a str,
    pub(super) transcript: &'a str,
}

/// Grades all assertions of a task. Returns the grades and the grader's duration, or `None` if the evaluation was stopped.
pub(super) async fn grade(
    evaluation: &Evaluation,
    agent: &AgentCommand,
    case: &OutputCase,
    work: &Work<'_>,
    stop: &watch::Receiver<bool>,
) -> Option<(Vec<Grade>, Option<Duration>)> {
    let is_sentence = |assertion: &&Assertion| matches!(assertion.statement, Statement::Sentence(_));
    let sentences: Vec<_> = case.assertions.iter().filter(is_sentence).collect();
    let started = Instant::now();
    let grader = evaluation.grader_of(agent).filter(|_| !sentences.is_empty());
    let mut verdicts = Vec::new();
    let mut second = Vec::new();
    if let Some(grader) = &grader {
        verdicts = judge(evaluation, grader, case, &sentences, work, stop).await?;
        if let Some(grader) = evaluation.second_grader() {
            second = judge(evaluation, &grader, case, &sentences, work, stop).await?;
        }
    }
    let took = grader.is_some().then(|| started.elapsed());
    let mut verdicts = verdicts.into_iter();
    let mut second = second.into_iter();
    let mut grades = Vec::new();
    let mut stopped = stop.clone();
    for assertion in &case.assertions {
        let grade = match &assertion.statement {
            Statement::Check(check) => tokio::select! {
                biased;
                Ok(_) = stopped.wait_for(|is_stopped| *is_stopped) => return None,
                grade = checked(check, work, evaluation.options.allow) => grade,
            },
            Statement::Sentence(text) if grader.is_none() => {
                Grade { skipped: true, ..Grade::ungraded(text.clone(), "no grader available") }
            }
            Statement::Sentence(text) => {
                let second = second.next().and_then(Result::ok).map(|verdict| verdict.passed);
                Grade { second, ..judged(text, assertion.partial, verdicts.next()) }
            }
        };
        grades.push(Grade { weight: assertion.weight, ..grade });
    }
    (!*stop.borrow()).then_some((grades, took))
}

/// Returns the grade of a sentence.
fn judged(text: &str, partial: bool, verdict: Option<Judged>) -> Grade {
    let text = text.to_owned();
    match verdict {
        Some(Ok(Judgement { passed, evidence, score })) => {
            let score = score.filter(|_| partial);
            Grade { score, ..Grade::new(text, passed, evidence) }
        }
        Some(Err(error)) => Grade::ungraded(text, error.to_string()),
        None => Grade::ungraded(text, "grader returned no verdict"),
    }
}
