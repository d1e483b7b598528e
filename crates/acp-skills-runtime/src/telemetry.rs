//! [`Telemetry`]: sends the events of the record as spans, logs and metrics of OpenTelemetry.
//!
//! They are sent with [OTLP](https://opentelemetry.io/docs/specs/otlp/) over HTTP, by a thread of its own. The threads that move
//! messages only put an item into a bounded queue, and do so for sessions, turns and calls, but not for chunks of the agent's answer.
//!
//! No payload contains prompts, arguments, contents or paths: `attributes` has the table of what is sent.
//!
//! | file | responsible for |
//! |---|---|
//! | `settings` | the environment variables `OTEL_*` |
//! | `attributes` | the fields of events that are sent |
//! | `sessions` | spans, log records and metrics of sessions, turns and calls |
//! | `metrics` | counters and durations |
//! | `messages` | the messages of the protocol |
//! | `exporter` | sending, trying again, and counting what is lost |

mod attributes;
mod exporter;
mod messages;
mod metrics;
mod sessions;
mod settings;
#[cfg(test)]
mod tests;

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use acp_skills_intercept::SessionKey;

use self::exporter::{Counts, Exporter};
pub use self::settings::{Settings, SettingsError};
use crate::{
    activity::{Activity, Observer, SessionStep},
    events::Record,
    worker::Worker,
};

/// The maximum number of items that wait for the thread. Further ones are dropped and counted.
const MAX_WAITING: usize = 1024;
/// The maximum time that the end of the program waits for the collectors.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends telemetry. Dropping it sends everything that is left, for up to a second.
pub struct Telemetry {
    worker: Worker<Item>,
    counts: Arc<Counts>,
}

/// Something that has happened, and its time in nanoseconds since 1970.
struct Item {
    time: u64,
    what: What,
}

enum What {
    Recorded(Arc<Record>),
    Session(SessionKey, SessionStep),
}

impl Telemetry {
    /// Starts the thread. It connects to the collectors when there is something to send.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let counts = Arc::new(Counts::default());
        let mut exporter = Exporter::new(settings, Arc::clone(&counts));
        let worker = Worker::start_paced("telemetry", MAX_WAITING, move |batch| exporter.work(batch))?;
        Ok(Self { worker, counts })
    }

    /// Returns the observer whose activities are sent.
    pub fn observer(&self) -> Observer {
        let queue = self.worker.submitter();
        let counts = Arc::clone(&self.counts);
        Arc::new(move |activity| {
            let what = match activity {
                Activity::Recorded(record) => What::Recorded(Arc::clone(record)),
                Activity::Session(session, step) => What::Session(*session, step.clone()),
                _ => return,
            };
            counts.submitted.fetch_add(1, Ordering::Relaxed);
            queue.submit(Item { time: nanoseconds_since_1970(), what });
        })
    }

    /// Returns an observer that owns the telemetry: everything that is left is sent when the observer is dropped.
    pub fn into_observer(self) -> Observer {
        let observer = self.observer();
        Arc::new(move |activity| {
            let _owned = &self;
            observer(activity);
        })
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.worker.finish_within(FLUSH_TIMEOUT);
        let lost = self.counts.lost();
        if lost > 0 {
            tracing::warn!("{lost} records of telemetry were not sent: {}", self.counts.reason());
        }
    }
}

/// Returns the current time.
fn nanoseconds_since_1970() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
