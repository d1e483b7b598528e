//! [`Report`]: outcomes, added up for each agent.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Benchmark, Case, Configuration, Evaluation, Outcome, Triggers};

/// What an evaluation comes to.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The skill.
    pub skill_name: String,
    /// Whether every run is done.
    pub complete: bool,
    /// Each agent.
    pub agents: Vec<AgentReport>,
    /// Each run.
    #[serde(skip)]
    pub outcomes: Vec<Outcome>,
}

/// What an evaluation comes to on one agent.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct AgentReport {
    /// Its name.
    pub name: String,
    /// As it calls itself.
    pub agent_info: Option<String>,
    /// How the queries went, if there are some.
    pub triggers: Option<Triggers>,
    /// How the tasks went, if there are some.
    pub benchmark: Option<Benchmark>,
    /// Runs in which the agent failed.
    pub errors: u64,
}

impl Report {
    /// Adds up.
    pub fn new(evaluation: &Evaluation, outcomes: Vec<Outcome>) -> Self {
        let planned = evaluation.plan().map_or(0, |plan| plan.runs.len());
        let agents = evaluation.agents.iter().map(|agent| {
            let of: Vec<_> = outcomes.iter().filter(|it| it.run.agent == agent.name).collect();
            AgentReport {
                name: agent.name.clone(),
                agent_info: of.iter().find_map(|outcome| outcome.agent_info.clone()),
                triggers: Triggers::of(evaluation, &of, Configuration::WithSkill),
                benchmark: Benchmark::of(evaluation, &of),
                errors: of.iter().filter(|outcome| outcome.problem().is_some()).count() as u64,
            }
        });
        Self {
            skill_name: evaluation.skill.name.to_string(),
            complete: outcomes.len() == planned,
            agents: agents.collect(),
            outcomes,
        }
    }

    /// Whether every query and every run of a task with the skill passed, on every agent, and none is missing.
    pub fn is_passed(&self) -> bool {
        self.complete && self.agents.iter().all(AgentReport::is_passed)
    }

    /// The least of all rates: of the queries that pass and of the assertions that hold with the skill, on any agent. `None`
    /// when nothing was measured.
    pub fn least_rate(&self) -> Option<f64> {
        self.agents.iter().flat_map(AgentReport::rates).reduce(f64::min)
    }

    /// All agents beside each other: `comparison.json`.
    pub fn comparison(&self) -> Value {
        let agents = self.agents.iter().map(|agent| {
            json!({
                "name": agent.name,
                "agent": agent.agent_info,
                "triggers": agent.triggers.as_ref().map(|triggers| &triggers.summary),
                "run_summary": agent.benchmark.as_ref().map(|benchmark| &benchmark.run_summary),
                "errors": agent.errors,
                "passed": agent.is_passed(),
            })
        });
        let queries = self.agents.iter().find_map(|agent| agent.triggers.as_ref());
        let queries = queries.into_iter().flat_map(|triggers| triggers.queries.iter().enumerate()).map(
            |(place, query)| {
                let of = |agent: &AgentReport| {
                    let result = agent.triggers.as_ref()?.queries.get(place)?;
                    Some((
                        agent.name.clone(),
                        json!({ "trigger_rate": result.trigger_rate, "pass": result.pass }),
                    ))
                };
                let agents: serde_json::Map<_, _> = self.agents.iter().filter_map(of).collect();
                json!({ "query": query.query, "should_trigger": query.should_trigger, "agents": agents })
            },
        );
        let cases = self.agents.iter().find_map(|agent| agent.benchmark.as_ref());
        let cases = cases.into_iter().flat_map(|benchmark| benchmark.cases.iter().enumerate()).map(
            |(place, case)| {
                let of = |agent: &AgentReport| {
                    let case = agent.benchmark.as_ref()?.cases.get(place)?;
                    Some((agent.name.clone(), json!(case)))
                };
                let agents: serde_json::Map<_, _> = self.agents.iter().filter_map(of).collect();
                json!({ "eval_name": case.name, "agents": agents })
            },
        );
        let (queries, cases): (Vec<_>, Vec<_>) = (queries.collect(), cases.collect());
        let agents: Vec<_> = agents.collect();
        json!({ "skill_name": self.skill_name, "agents": agents, "queries": queries, "evals": cases })
    }

    /// The outcomes of a case on an agent.
    pub fn outcomes_of<'a>(&'a self, agent: &'a str, case: &'a Case) -> impl Iterator<Item = &'a Outcome> {
        self.outcomes.iter().filter(move |it| it.run.agent == agent && it.run.case == *case)
    }
}

impl AgentReport {
    /// Whether every query and every run of a task with the skill passed.
    pub fn is_passed(&self) -> bool {
        let queries = self.triggers.as_ref().is_none_or(|triggers| triggers.summary.failed == 0);
        queries
            && self.benchmark.as_ref().is_none_or(|benchmark| benchmark.cases.iter().all(|case| case.pass))
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        let queries = self
            .triggers
            .as_ref()
            .and_then(|triggers| super::statistics::rate(triggers.summary.passed, triggers.summary.total));
        let evals = self.benchmark.as_ref().and_then(|it| Some(it.run_summary.with_skill.pass_rate?.mean));
        queries.into_iter().chain(evals)
    }
}
