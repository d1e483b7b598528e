//! Runs an evaluation with several runs at a time, and repeats runs in which the agent fails.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use skills_core::order;
use tokio::{
    sync::{mpsc::UnboundedSender, watch},
    time::timeout,
};

use super::{
    Case, Evaluation, EvaluationError, Failure, Outcome, Report, RunId, Status, Workspace, run, scratch,
};

/// The number of equal failures in a row after which the other runs of an agent are skipped. Only failures before the agent's first
/// message count.
const MAX_SAME_FAILURES: usize = 5;
/// The pause before a run is repeated for the first time. It is doubled for each further time.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The maximum pause before a run is repeated.
const MAX_DELAY: Duration = Duration::from_mins(1);

/// The progress of an evaluation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The evaluation starts.
    Planned {
        /// The number of runs that will be made.
        left: usize,
        /// The number of runs that have already finished in an earlier process.
        done: usize,
    },
    /// A run has started.
    Started(&'a RunId),
    /// The agent has failed in a run, and the run will be repeated after a pause.
    Retrying {
        /// The failed attempt.
        outcome: &'a Outcome,
        /// The pause.
        delay: Duration,
    },
    /// A run has finished.
    Finished(&'a Outcome),
    /// All other runs of an agent are skipped, because it failed in the same way several times in a row.
    GivenUp {
        /// The agent's name.
        agent: &'a str,
        /// The number of failures.
        failed: usize,
    },
}

impl Evaluation {
    /// Makes the runs that have no outcome yet, or in which the agent failed, and calls `progress` for each of them. If `stop`
    /// resolves, all agents are ended, and the outcomes so far are kept.
    ///
    /// A failure of an agent is part of the outcome of its run, not an error. If an agent fails in the same way five times in a
    /// row before it sends any message, its other runs are skipped and have no outcome. [`AgentReport::stopped`] has the
    /// reason.
    ///
    /// [`AgentReport::stopped`]: super::AgentReport::stopped
    ///
    /// # Errors
    /// - [`EvaluationError::NoCases`] if the skill has no cases.
    /// - [`EvaluationError::Unreadable`] if an outcome of an earlier process can't be read.
    /// - [`EvaluationError::Unwritable`] if a result can't be written.
    ///
    /// # Panics
    /// Panics if it is called outside of a tokio runtime.
    pub async fn run(
        &self,
        workspace: &Workspace,
        mut progress: impl FnMut(&Progress<'_>),
        stop: impl Future<Output = ()>,
    ) -> Result<Report, EvaluationError> {
        let plan = self.plan()?;
        scratch::remove_leftovers();
        let mut outcomes = workspace.outcomes(&plan.runs)?;
        outcomes.retain(|outcome| outcome.status != Status::Error);
        let done: HashSet<_> = outcomes.iter().map(|outcome| outcome.run.clone()).collect();
        let left: Vec<_> = plan.runs.into_iter().filter(|run| !done.contains(run)).collect();
        progress(&Progress::Planned { left: left.len(), done: outcomes.len() });
        let (stopper, stopped) = watch::channel(false);
        let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
        let attempts = Attempts {
            evaluation: self,
            workspace,
            stop: stopped,
            events: sender,
            given_up: Mutex::default(),
        };
        let attempts = &attempts;
        let mut running = std::pin::pin!(
            futures::stream::iter(left).map(|id| attempts.run(id)).buffer_unordered(self.options.jobs.max(1))
        );
        let mut stop = std::pin::pin!(stop);
        let mut streaks = Streaks::default();
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => match event {
                    Event::Started(id) => progress(&Progress::Started(&id)),
                    Event::Attempted { outcome, delay } => {
                        if let Some(delay) = delay {
                            progress(&Progress::Retrying { outcome: &outcome, delay });
                        }
                        let agent = &outcome.run.agent;
                        if !attempts.is_given_up(agent) && let Some((failed, reason)) = streaks.add(&outcome) {
                            attempts.given_up().insert(agent.clone(), reason);
                            progress(&Progress::GivenUp { agent, failed });
                        }
                    }
                },
                // Tell the runs to stop, so that they end their agents.
                () = &mut stop, if !*stopper.borrow() => {
                    stopper.send_replace(true);
                }
                outcome = running.next() => match outcome {
                    None => break,
                    Some(Ok(None)) => {}
                    Some(Ok(Some(outcome))) => {
                        progress(&Progress::Finished(&outcome));
                        outcomes.push(outcome);
                    }
                    Some(Err(error)) => {
                        // Wait for all other runs to end their agents.
                        stopper.send_replace(true);
                        while running.next().await.is_some() {}
                        return Err(error);
                    }
                },
            }
        }
        order::sort_by(&mut outcomes, |a, b| a.run.cmp(&b.run));
        let mut report = Report::new(self, outcomes);
        for agent in &mut report.agents {
            agent.stopped = attempts.given_up().remove(&agent.name);
        }
        workspace.write_report(self, &report)?;
        Ok(report)
    }
}

/// An event of a run.
enum Event {
    Started(RunId),
    /// An attempt has ended. If the run will be repeated, `delay` is the pause before it.
    Attempted {
        outcome: Box<Outcome>,
        delay: Option<Duration>,
    },
}

/// Makes runs, and repeats them if the agent fails.
struct Attempts<'a> {
    evaluation: &'a Evaluation,
    workspace: &'a Workspace,
    stop: watch::Receiver<bool>,
    events: UnboundedSender<Event>,
    /// Guards the agents whose other runs are skipped, with the reason. It is only held to add or to find an agent.
    given_up: Mutex<BTreeMap<String, String>>,
}

impl Attempts<'_> {
    /// Makes a run until the agent does not fail in it, or there are no retries left. Returns `None` if the run was skipped, or if the
    /// evaluation was stopped before the first attempt ended.
    async fn run(&self, id: RunId) -> Result<Option<Outcome>, EvaluationError> {
        let mut stop = self.stop.clone();
        if *stop.borrow() || self.is_given_up(&id.agent) {
            return Ok(None);
        }
        self.send(Event::Started(id.clone()));
        let mut last = None;
        for attempt in 1.. {
            let outcome = run::run(self.evaluation, self.workspace, id.clone(), attempt, &stop).await?;
            // If the attempt was interrupted, the run has no outcome and is repeated by `--resume`.
            let Some(outcome) = outcome else { break };
            let delay = self.delay(&outcome);
            self.send(Event::Attempted { outcome: Box::new(outcome.clone()), delay });
            last = Some(outcome);
            let Some(delay) = delay else { break };
            // The timeout passes unless the evaluation is stopped during the pause.
            if timeout(delay, stop.wait_for(|stop| *stop)).await.is_ok() || self.is_given_up(&id.agent) {
                break;
            }
        }
        Ok(last)
    }

    /// Returns the pause before the run is repeated, or `None` if it is not.
    fn delay(&self, outcome: &Outcome) -> Option<Duration> {
        let options = &self.evaluation.options;
        let failure = outcome.end.failure()?;
        let made = outcome.attempts;
        // A program that doesn't start is missing or not executable, so it won't start the next time either.
        if failure == Failure::NotStarted || made > options.retries {
            return None;
        }
        Some(RETRY_DELAY.saturating_mul(1 << (made - 1).min(16)).min(MAX_DELAY))
    }

    fn is_given_up(&self, agent: &str) -> bool {
        self.given_up().contains_key(agent)
    }

    fn given_up(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, event: Event) {
        // This should never fail, because the receiver lives longer than the runs.
        let _ = self.events.send(event);
    }
}

/// The failures of each agent in a row.
#[derive(Default)]
struct Streaks {
    by_agent: BTreeMap<String, Streak>,
}

/// Equal failures of an agent in a row.
struct Streak {
    problem: String,
    count: usize,
    /// The case of the first failure.
    case: Case,
    /// True if the prompt may be the cause: all failures are from the same case, after the prompt was sent.
    may_be_prompt: bool,
}

impl Streaks {
    /// Counts an attempt. If the agent has failed too often, returns the number of failures in a row and the reason to stop.
    fn add(&mut self, outcome: &Outcome) -> Option<(usize, String)> {
        let RunId { agent, case, .. } = &outcome.run;
        let is_start = match outcome.end.failure() {
            None | Some(Failure::Refusal | Failure::EndedEarly) => false,
            Some(_) => outcome.metrics.total_steps == 0,
        };
        let Some(problem) = outcome.problem().filter(|_| is_start) else {
            self.by_agent.remove(agent);
            return None;
        };
        if self.by_agent.get(agent).is_some_and(|streak| streak.problem != problem) {
            self.by_agent.remove(agent);
        }
        let streak = self.by_agent.entry(agent.clone()).or_insert_with(|| Streak {
            problem,
            count: 0,
            case: case.clone(),
            may_be_prompt: true,
        });
        streak.count += 1;
        streak.may_be_prompt &= outcome.prompted && streak.case == *case;
        let Streak { problem, count, may_be_prompt, .. } = streak;
        (*count >= MAX_SAME_FAILURES && !*may_be_prompt)
            .then(|| (*count, format!("failed {count} times in a row: {problem}")))
    }
}
