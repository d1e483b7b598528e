//! Runs an evaluation with several runs at a time.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use futures::StreamExt;
use tokio::sync::watch;

use super::{End, Evaluation, EvaluationError, Outcome, Report, RunId, Workspace, run};

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
    /// A run has finished.
    Finished(&'a Outcome),
    /// All other runs of an agent are skipped, because its first runs failed in the same way.
    GivenUp {
        /// The agent's name.
        agent: &'a str,
        /// The number of runs that failed.
        failed: usize,
    },
}

/// The number of runs of an agent that may fail in the same way before one succeeds. After that, its other runs are skipped.
const MAX_SAME_FAILURES: usize = 5;

/// The agents whose runs have all failed so far, with the last reason and the number of times that it came in a row. `None` stands
/// for an agent that works.
#[derive(Default)]
struct Failures(HashMap<String, Option<(String, usize)>>);

impl Failures {
    /// Counts an outcome. Returns true if the agent should be given up.
    fn count(&mut self, outcome: &Outcome) -> bool {
        let is_failure =
            matches!(outcome.end, End::Crashed { .. } | End::Refused { .. } | End::NotStarted { .. });
        let so_far = self.0.entry(outcome.run.agent.clone()).or_insert_with(|| Some((String::new(), 0)));
        match (so_far.as_mut(), outcome.problem().filter(|_| is_failure)) {
            (_, None) => *so_far = None,
            (None, Some(_)) => {}
            (Some((reason, times)), Some(problem)) => {
                *times = if *reason == problem { *times + 1 } else { 1 };
                *reason = problem;
                return *times == MAX_SAME_FAILURES;
            }
        }
        false
    }
}

impl Evaluation {
    /// Makes the runs that have no outcome yet, and calls `progress` for each of them. If `stop` resolves, all agents are ended,
    /// and the outcomes so far are kept.
    ///
    /// A failure of an agent is part of the outcome of its run, not an error. If the first 5 runs of an agent fail in the same way, its
    /// other runs are skipped and have no outcome.
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
        let mut outcomes = workspace.outcomes(&plan.runs)?;
        let done: HashSet<_> = outcomes.iter().map(|outcome| outcome.run.clone()).collect();
        let left: Vec<_> = plan.runs.into_iter().filter(|run| !done.contains(run)).collect();
        progress(&Progress::Planned { left: left.len(), done: outcomes.len() });
        let (stopper, stopped) = watch::channel(false);
        let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
        let mut failures = Failures::default();
        let given_up: Mutex<HashSet<String>> = Mutex::default();
        let given_up = &given_up;
        let mut running = std::pin::pin!(
            futures::stream::iter(left)
                .map(|id| {
                    let stopped = stopped.clone();
                    let started = started.clone();
                    async move {
                        let is_given_up =
                            given_up.lock().unwrap_or_else(PoisonError::into_inner).contains(&id.agent);
                        if *stopped.borrow() || is_given_up {
                            return Ok(None);
                        }
                        // This should never fail, because the receiver lives longer than this stream.
                        let _ = started.send(id.clone());
                        run::run(self, workspace, id, &stopped).await
                    }
                })
                .buffer_unordered(self.options.jobs.max(1))
        );
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                biased;
                Some(id) = starts.recv() => progress(&Progress::Started(&id)),
                // Tell the runs to stop, so that they end their agents.
                () = &mut stop, if !*stopped.borrow() => {
                    stopper.send_replace(true);
                }
                outcome = running.next() => match outcome {
                    None => break,
                    Some(Ok(None)) => {}
                    Some(Ok(Some(outcome))) => {
                        progress(&Progress::Finished(&outcome));
                        let agent = &outcome.run.agent;
                        if failures.count(&outcome) {
                            given_up.lock().unwrap_or_else(PoisonError::into_inner).insert(agent.clone());
                            progress(&Progress::GivenUp { agent, failed: MAX_SAME_FAILURES });
                        }
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
        outcomes.sort_by(|a, b| a.run.cmp(&b.run));
        let report = Report::new(self, outcomes);
        workspace.write_report(self, &report)?;
        Ok(report)
    }
}
