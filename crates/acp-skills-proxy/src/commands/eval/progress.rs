//! Shows the progress of runs on stderr: a progress bar on a terminal, and a line for each run otherwise. Stdout contains only
//! the result.

use std::{fmt::Write, time::Duration};

use acp_skills_eval::{Evaluation, Outcome, Progress, Status};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{output, progress::Ticker};

/// The interval at which the elapsed time is updated.
const TICK: Duration = Duration::from_millis(500);

/// The progress of an evaluation.
pub(super) struct Bar<'a> {
    evaluation: &'a Evaluation,
    drawn: Option<(ProgressBar, Ticker)>,
    jobs: usize,
    running: usize,
    finished: usize,
    total: usize,
}

impl<'a> Bar<'a> {
    pub(super) fn new(evaluation: &'a Evaluation, is_terminal: bool) -> Self {
        let jobs = evaluation.options.jobs;
        let drawn = is_terminal.then(|| {
            let bar = ProgressBar::new(0);
            let style =
                ProgressStyle::with_template("{bar:24} {pos}/{len} runs, {msg} · {elapsed}, {eta} left");
            // This should never fail, because the template is a constant.
            if let Ok(style) = style {
                bar.set_style(style);
            }
            let ticker = Ticker::start(&bar, Duration::ZERO, TICK);
            (bar, ticker)
        });
        Self { evaluation, drawn, jobs, running: 0, finished: 0, total: 0 }
    }

    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Planned { left, done } => {
                self.total = *left;
                self.finished = 0;
                if *done > 0 {
                    self.line(&format!("{done} runs are already finished"));
                }
                if let Some((bar, _)) = &self.drawn {
                    bar.set_length(*left as u64);
                }
            }
            Progress::Started(run) => {
                self.running += 1;
                if self.jobs == 1
                    && let Some((bar, _)) = &self.drawn
                {
                    bar.set_message(run.to_string());
                }
            }
            Progress::Retrying { outcome, delay } => {
                let problem = problem_of(outcome);
                self.line(&format!(
                    "          {}{problem}; repeating in {} s",
                    outcome.run,
                    delay.as_secs_f64()
                ));
            }
            Progress::Finished(outcome) => {
                self.running = self.running.saturating_sub(1);
                self.finished += 1;
                // Only show that the run has ended, because the result of this query must not be used for tuning.
                let is_held_out =
                    self.evaluation.is_held_out(&outcome.run.case) && outcome.status != Status::Error;
                let line = format!("{:>4}/{} {}", self.finished, self.total, line_of(outcome, is_held_out));
                // If there is a bar, only print runs that failed. Otherwise, print all of them.
                if self.drawn.is_none() || outcome.status != Status::Passed && !is_held_out {
                    self.line(&line);
                }
                if let Some((bar, _)) = &self.drawn {
                    bar.inc(1);
                }
            }
            Progress::GivenUp { agent, failed } => self.line(&format!(
                "{agent} failed {failed} times in the same way, so its other runs are skipped; check it with `acp-skills-proxy doctor`, \
                 then continue with `--resume`"
            )),
            _ => {}
        }
        if self.jobs > 1
            && let Some((bar, _)) = &self.drawn
        {
            bar.set_message(format!("{} running", self.running));
        }
    }

    pub(super) fn finish(self) {
        if let Some((bar, ticker)) = self.drawn {
            drop(ticker);
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.drawn {
            Some((bar, _)) => bar.suspend(|| output::note(text)),
            None => output::note(text),
        }
    }
}

/// Returns the line of a run.
fn line_of(outcome: &Outcome, is_held_out: bool) -> String {
    if is_held_out {
        return format!("{:<13} {}", "held out", outcome.run);
    }
    let status = super::summary::word(outcome.status);
    let mut line = format!("{status:<13} {} ({:.1} s)", outcome.run, seconds(outcome.duration_ms));
    line.push_str(&problem_of(outcome));
    let refused = outcome.permissions.iter().filter(|request| !request.granted).count();
    if refused > 0 {
        let _ = write!(line, ", {refused} permissions refused");
    }
    line
}

/// Returns the agent's failure with the last line of its stderr, or an empty string if it did not fail.
fn problem_of(outcome: &Outcome) -> String {
    let Some(problem) = outcome.problem() else { return String::new() };
    let mut text = format!(": {problem}");
    if let Some(last) = outcome.stderr.lines().rev().find(|line| !line.trim().is_empty()) {
        let _ = write!(text, "; stderr: {}", last.trim());
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "durations are short")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
