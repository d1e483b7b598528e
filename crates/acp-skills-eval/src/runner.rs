//! Making the runs of an evaluation, some at a time.

use std::collections::HashSet;

use futures::StreamExt;
use tokio::sync::watch;

use super::{Evaluation, EvaluationError, Outcome, Report, RunId, Workspace, run};

/// What happens while runs are made.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// So many runs are left; the rest was done before.
    Planned {
        /// To be made.
        left: usize,
        /// Made before, and kept.
        done: usize,
    },
    /// A run began.
    Started(&'a RunId),
    /// A run is over.
    Finished(&'a Outcome),
}

impl Evaluation {
    /// Makes the runs that are not done yet, and tells `progress`. When `stop` resolves, agents are ended and what is done
    /// is kept. Needs a tokio runtime around it.
    ///
    /// # Errors
    /// A result cannot be written. What goes wrong with an agent is part of its run's outcome.
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
                    let (stopped, started) = (stopped.clone(), started.clone());
                    async move {
                        if *stopped.borrow() {
                            return Ok(None);
                        }
                        // Whoever listens goes with us.
                        drop(started.send(id.clone()));
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
                // Runs end by themselves then, and their agents with them.
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
                        // Others are ended in good order.
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
