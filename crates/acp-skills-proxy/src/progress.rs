//! [`Progress`]: what is shown on a terminal while work takes long, and cleared when it is done.
//!
//! Nothing is shown for work that is over at once, nor when stderr is no terminal.

use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that is over before is not worth a word.
const PATIENCE: Duration = Duration::from_millis(400);

/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// Work that may take long. It is over when this is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Closed when the work is over.
    over: Option<Sender<()>>,
    shows: Option<JoinHandle<()>>,
}

impl Progress {
    /// Work of unknown length: `reading skills`. The text is our own; what others wrote has no place here.
    pub(crate) fn spinner(what: &'static str) -> Self {
        Self::start(ProgressBar::no_length(), "{spinner} {msg} ({elapsed})", what)
    }

    /// Work of `length` steps.
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
        let (over, is_over) = mpsc::channel::<()>();
        let shown = bar.clone();
        let show = move || {
            if is_over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TURN);
            }
        };
        // Without the thread there is no progress to see, which is no reason not to work.
        let shows = thread::Builder::new().name("progress".to_owned()).spawn(show).ok();
        Self { bar, over: Some(over), shows }
    }

    /// One more step is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// What is being waited for now.
    pub(crate) fn message(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Has `print` print without getting in its way.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.over = None;
        if let Some(shows) = self.shows.take() {
            drop(shows.join());
        }
        self.bar.finish_and_clear();
    }
}
