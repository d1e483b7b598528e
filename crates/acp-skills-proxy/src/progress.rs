//! [`Progress`]: a progress bar on stderr, which is cleared when the work is done.
//!
//! The bar is only shown if the work takes more than 0.4 seconds and stderr is a terminal.

use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The delay before the bar is shown.
const DELAY: Duration = Duration::from_millis(400);

/// The interval between two frames of the spinner.
const FRAME: Duration = Duration::from_millis(120);

/// The progress of work that may take long. Dropping it ends the work and clears the bar.
pub(crate) struct Progress {
    bar: ProgressBar,
    ticker: Option<Ticker>,
}

impl Progress {
    /// Starts work of unknown length. `what` is printed without escaping, so it must be our own text, such as `reading skills`.
    pub(crate) fn spinner(what: &'static str) -> Self {
        Self::start(ProgressBar::no_length(), "{spinner} {msg} ({elapsed})", what)
    }

    /// Starts work of `length` steps.
    pub(crate) fn steps(what: &'static str, length: usize) -> Self {
        let bar = ProgressBar::new(length as u64);
        Self::start(bar, "{spinner} {msg} {bar:24} {pos} of {len}", what)
    }

    fn start(bar: ProgressBar, template: &str, what: &'static str) -> Self {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        let ticker = Ticker::start(&bar, DELAY, FRAME);
        Self { bar, ticker: Some(ticker) }
    }

    /// Counts one more step as done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Replaces the text of the bar.
    pub(crate) fn message(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Hides the bar while `print` runs, so that its output is not overwritten.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // Stop the thread first, because it could draw the bar again.
        self.ticker = None;
        self.bar.finish_and_clear();
    }
}

/// A thread that shows a progress bar on stderr and redraws it at an interval. Dropping it ends the thread.
///
/// This is used instead of [`ProgressBar::enable_steady_tick`], which panics if the system refuses a thread. Then there is no bar.
pub(crate) struct Ticker {
    /// Closed when the work is done.
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Shows `bar` after `delay`, if stderr is a terminal.
    pub(crate) fn start(bar: &ProgressBar, delay: Duration, interval: Duration) -> Self {
        let (done, is_done) = mpsc::channel::<()>();
        let bar = bar.clone();
        let show = move || {
            let is_over = |time| is_done.recv_timeout(time) != Err(RecvTimeoutError::Timeout);
            if is_over(delay) {
                return;
            }
            bar.set_draw_target(ProgressDrawTarget::stderr());
            while !bar.is_hidden() {
                bar.tick();
                if is_over(interval) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(show).ok();
        Self { done: Some(done), thread }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.done = None;
        if let Some(thread) = self.thread.take() {
            // This fails if the thread has panicked. The bar is not important enough to fail with it.
            let _ = thread.join();
        }
    }
}
