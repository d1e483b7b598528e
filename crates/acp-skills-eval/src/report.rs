//! [`Report`]: the results of an evaluation, for each agent.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Benchmark, Case, Configuration, Evaluation, Failure, Outcome, Triggers, statistics::rate};

/// The results of an evaluation.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The skill's name.
    pub skill_name: String,
    /// True if all planned runs have an outcome.
    pub complete: bool,
    /// The results of each agent.
    pub agents: Vec<AgentReport>,
    /// The outcome of each run. They are not part of the JSON.
    #[serde(skip)]
    pub outcomes: Vec<Outcome>,
}

/// The results of an evaluation on one agent.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct AgentReport {
    /// The agent's name.
    pub name: String,
    /// The name and version that the agent sends, if any.
    pub agent_info: Option<String>,
    /// The results of the queries. `None` if there are no queries.
    pub triggers: Option<Triggers>,
    /// The results of the tasks. `None` if there are no tasks.
    pub benchmark: Option<Benchmark>,
    /// The number of runs in which the agent failed.
    pub errors: u64,
    /// The number of runs for each kind of failure of the agent.
    pub failures: BTreeMap<Failure, u64>,
    /// The time until the agent's first message or tool call. `None` if there are no runs with one.
    pub latency: Option<Latency>,
    /// The costs of all runs by currency, if the agent reports them. The costs of graders are not included.
    pub costs: BTreeMap<String, f64>,
    /// The reason why the agent's other runs were skipped, if it failed in the same way several times in a row.
    pub stopped: Option<String>,
}

/// The time from the prompt to the agent's first message or tool call, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Latency {
    /// The median over all runs.
    pub median: f64,
    /// The time within which 90 % of all runs have a first message or tool call.
    pub p90: f64,
}

impl Latency {
    #[expect(clippy::cast_precision_loss, reason = "durations are small")]
    fn of(outcomes: &[&Outcome]) -> Option<Self> {
        let mut times: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.latency_ms).collect();
        times.sort_unstable();
        let at = |place: usize| times.get(place).map(|millis| *millis as f64 / 1000.0);
        let last = times.len().checked_sub(1)?;
        Some(Self { median: at(last / 2)?, p90: at((times.len() * 9).div_ceil(10).saturating_sub(1))? })
    }
}

fn costs(outcomes: &[&Outcome]) -> BTreeMap<String, f64> {
    let mut costs = BTreeMap::new();
    for cost in outcomes.iter().filter_map(|outcome| outcome.cost.as_ref()) {
        *costs.entry(cost.currency.clone()).or_default() += cost.amount;
    }
    costs
}

fn failures(outcomes: &[&Outcome]) -> BTreeMap<Failure, u64> {
    let mut failures = BTreeMap::new();
    for failure in outcomes.iter().filter_map(|outcome| outcome.end.failure()) {
        *failures.entry(failure).or_default() += 1;
    }
    failures
}

impl Report {
    /// Computes the report from outcomes.
    pub fn new(evaluation: &Evaluation, outcomes: Vec<Outcome>) -> Self {
        let planned = evaluation.plan().map_or(0, |plan| plan.runs.len());
        let agents = evaluation.agents.iter().map(|agent| {
            let of: Vec<_> = outcomes.iter().filter(|outcome| outcome.run.agent == agent.name).collect();
            AgentReport {
                name: agent.name.clone(),
                agent_info: of.iter().find_map(|outcome| outcome.agent_info.clone()),
                triggers: Triggers::of(evaluation, &of, Configuration::WithSkill),
                benchmark: Benchmark::of(evaluation, &of),
                failures: failures(&of),
                latency: Latency::of(&of),
                costs: costs(&of),
                stopped: None,
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

    /// Returns true if all runs are done, and all queries and all runs of tasks with the skill passed on all agents.
    pub fn is_passed(&self) -> bool {
        self.complete && self.agents.iter().all(AgentReport::is_passed)
    }

    /// Returns the lowest rate of any agent, from 0 to 1: the share of queries that passed, or the share of assertions that
    /// passed with the skill. Returns `None` if there are no rates.
    pub fn least_rate(&self) -> Option<f64> {
        self.agents.iter().flat_map(AgentReport::rates).reduce(f64::min)
    }

    /// Returns the contents of `comparison.json`, which compares the agents.
    pub fn comparison(&self) -> Value {
        let agents = self.agents.iter().map(|agent| {
            json!({
                "name": agent.name,
                "agent": agent.agent_info,
                "triggers": agent.triggers.as_ref().map(|triggers| &triggers.summary),
                "run_summary": agent.benchmark.as_ref().map(|benchmark| &benchmark.run_summary),
                "errors": agent.errors,
                "failures": agent.failures,
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
        let agents: Vec<_> = agents.collect();
        let queries: Vec<_> = queries.collect();
        let cases: Vec<_> = cases.collect();
        json!({ "skill_name": self.skill_name, "agents": agents, "queries": queries, "evals": cases })
    }

    /// Returns the outcomes of a case on an agent.
    pub fn outcomes_of<'a>(&'a self, agent: &'a str, case: &'a Case) -> impl Iterator<Item = &'a Outcome> {
        self.outcomes.iter().filter(move |outcome| outcome.run.agent == agent && outcome.run.case == *case)
    }
}

impl AgentReport {
    /// Returns true if all queries and all runs of tasks with the skill passed. Runs in which the agent failed don't count, but
    /// each case needs at least one run.
    pub fn is_passed(&self) -> bool {
        let queries =
            self.triggers.as_ref().is_none_or(|triggers| triggers.summary.passed == triggers.summary.total);
        queries
            && self.benchmark.as_ref().is_none_or(|benchmark| benchmark.cases.iter().all(|case| case.pass))
    }

    /// Returns the number of queries and tasks without a result, because the agent failed in all of their runs.
    pub fn undecided(&self) -> u64 {
        let queries = self.triggers.as_ref().map_or(0, |triggers| triggers.summary.undecided);
        let cases = self.benchmark.iter().flat_map(|benchmark| &benchmark.cases);
        queries + cases.filter(|case| case.undecided).count() as u64
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        let queries = self.triggers.as_ref().and_then(|triggers| {
            rate(triggers.summary.passed, triggers.summary.total - triggers.summary.undecided)
        });
        let evals = self
            .benchmark
            .as_ref()
            .and_then(|benchmark| Some(benchmark.run_summary.with_skill.pass_rate?.mean));
        queries.into_iter().chain(evals)
    }
}
