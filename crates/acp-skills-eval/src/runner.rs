//! Runs an evaluation with several runs at a time.

use std::collections::HashSet;

use futures::StreamExt;
use tokio::sync::watch;

use super::{Evaluation, EvaluationError, Outcome, Report, RunId, Workspace, run};

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
}

impl Evaluation {
    /// Makes the runs that have no outcome yet, and calls `progress` for each of them. If `stop` resolves, all agents are ended,
    /// and the outcomes so far are kept.
    ///
    /// A failure of an agent is part of the outcome of its run, not an error.
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
        let mut running = std::pin::pin!(
            futures::stream::iter(left)
                .map(|id| {
                    let stopped = stopped.clone();
                    let started = started.clone();
                    async move {
                        if *stopped.borrow() {
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
