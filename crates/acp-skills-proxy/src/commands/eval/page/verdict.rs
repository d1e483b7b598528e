//! The verdict: the result of each agent in sentences, and what to do next.

use std::collections::BTreeSet;

use askama::Template;

use acp_skills_eval::{AgentReport, Configuration, Effect, Evaluation, QueryResult, Report, Status};
use skills_core::order;

use super::percent;
use crate::words::count;

/// The number of runs of a query from which its rate says something about a model.
const FEW_RUNS: u64 = 3;

/// The first section of the page.
#[derive(Debug, Template)]
#[template(path = "commands/eval/page/verdict.html")]
pub(super) struct Verdict<'a> {
    /// The result of each agent, with its name if there are several agents.
    sentences: Vec<(Option<&'a str>, String)>,
    steps: Vec<String>,
}

impl<'a> Verdict<'a> {
    pub(super) fn new(evaluation: &Evaluation, report: &'a Report) -> Self {
        let are_named = report.agents.len() > 1;
        let compared = match evaluation.compared_with() {
            Configuration::OldSkill => "with the older version",
            _ => "without it",
        };
        let sentence =
            |agent: &'a AgentReport| (are_named.then_some(agent.name.as_str()), sentence(agent, compared));
        Self { sentences: report.agents.iter().map(sentence).collect(), steps: steps(report) }
    }
}

/// The queries of an agent that have been run.
fn queries(agent: &AgentReport) -> impl Iterator<Item = &QueryResult> {
    agent.triggers.iter().flat_map(|triggers| &triggers.queries).filter(|query| query.runs > 0)
}

/// Returns the result of an agent: `Loads in 7 of 10 cases where it should; loads in 4 of 10 where it should not.`
fn sentence(agent: &AgentReport, compared: &str) -> String {
    let of = |should: bool| queries(agent).filter(move |query| query.should_trigger == should);
    let mut parts = Vec::new();
    let all = of(true).count();
    if all > 0 {
        let right = of(true).filter(|query| query.pass).count();
        parts.push(format!("loads in {right} of {} where it should", count(all, "case")));
    }
    let all_not = of(false).count();
    if all_not > 0 {
        let wrong = of(false).filter(|query| !query.pass).count();
        let cases = if all > 0 { all_not.to_string() } else { count(all_not, "case") };
        parts.push(format!("loads in {wrong} of {cases} where it should not"));
    }
    if let Some(benchmark) = &agent.benchmark {
        let rates = [&benchmark.run_summary.with_skill, &benchmark.run_summary.without_skill];
        let [with, without] = rates.map(|summary| summary.pass_rate.map(|rate| percent(rate.mean)));
        match (with, without) {
            (Some(with), Some(without)) => {
                let effect = match benchmark.run_summary.delta.effect {
                    Effect::NotShown => ", which shows no difference",
                    _ => "",
                };
                parts.push(format!(
                    "{with} of assertions hold with the skill, and {without} {compared}{effect}"
                ));
            }
            (Some(with), None) => parts.push(format!("{with} of assertions hold with the skill")),
            _ => {}
        }
    }
    if agent.errors > 0 {
        parts.push(format!("the agent failed in {}", count(agent.errors, "run")));
    }
    if parts.is_empty() {
        parts.push("nothing was measured".to_owned());
    }
    let text = parts.join("; ") + ".";
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Returns what to do next, the most urgent first. Queries count once, no matter how many agents were wrong.
fn steps(report: &Report) -> Vec<String> {
    let mut steps = Vec::new();
    let errors: u64 = report.agents.iter().map(|agent| agent.errors).sum();
    if errors > 0 {
        steps.push(format!(
            "Find out why the agent failed in {}: select the status “agent failed” below. These runs don't count, because they \
             say nothing about the skill.",
            count(errors, "run")
        ));
    }
    if !report.complete {
        steps.push(
            "Repeat the command with `--resume`. Some runs are missing, so the numbers may change."
                .to_owned(),
        );
    }
    let wrong = |should: bool| -> BTreeSet<&str> {
        let all = report.agents.iter().flat_map(queries);
        let wrong = all.filter(|query| query.should_trigger == should && !query.pass);
        order::set(wrong.map(|query| query.query.as_str()))
    };
    let missed = wrong(true).len();
    if missed > 0 {
        steps.push(format!(
            "The skill was not loaded in {} where it should be. Extend its description: say when to use the skill, in the words \
             that users type.",
            count(missed, "case")
        ));
    }
    let extra = wrong(false).len();
    if extra > 0 {
        steps.push(format!(
            "The skill was loaded in {} where it should not be. Narrow its description: say what the skill is not for.",
            count(extra, "case")
        ));
    }
    let benchmarks = || report.agents.iter().filter_map(|agent| agent.benchmark.as_ref());
    if benchmarks().any(|benchmark| benchmark.run_summary.delta.pass_rate.is_some_and(|delta| delta <= 0.0)) {
        steps.push(
            "Find out why results are not better with the skill: read the transcripts of failed runs, and see which \
             instructions the model did not follow, or which assertions never hold."
                .to_owned(),
        );
    } else if benchmarks().any(|benchmark| benchmark.cases.iter().any(|case| !case.pass && !case.undecided)) {
        steps.push(
            "Read the transcripts of the tasks that failed, and make the instructions clearer.".to_owned(),
        );
    }
    if report.outcomes.iter().any(|outcome| outcome.status == Status::Ungraded) {
        steps.push("Grade the assertions that need a judgement: add --grader COMMAND.".to_owned());
    }
    let is_rare = |query: &QueryResult| query.runs < FEW_RUNS;
    if report.agents.iter().flat_map(queries).any(is_rare) {
        steps.push(format!(
            "Use --runs {FEW_RUNS} or more before you trust the rates: models don't decide the same way each time."
        ));
    }
    let last = match steps.len() {
        0 => "Everything passed. Add harder cases, or try another agent with --agent.",
        _ => "After a change, run the same command again, and compare.",
    };
    steps.push(last.to_owned());
    steps
}
