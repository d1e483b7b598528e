//! [`Telemetry`]: sends the events of the record as spans, logs and metrics of OpenTelemetry.
//!
//! The data is sent over HTTP using [OTLP](https://opentelemetry.io/docs/specs/otlp/). A background thread is used for this, so a
//! slow collector doesn't affect the relay. Other threads only add an item to a bounded queue when a session, a turn or a call
//! starts or ends. Nothing is added for a chunk of the agent's response.
//!
//! A request never contains a prompt, an argument, the content of a file or a path. See `attributes` for a list of all fields.
//!
//! | file | responsible for |
//! |---|---|
//! | `settings` | the environment variables `OTEL_*` |
//! | `attributes` | the attributes for events, and which fields are private |
//! | `sessions` | spans, log records and metrics of sessions, turns and calls |
//! | `metrics` | counters and durations |
//! | `messages` | the messages of the protocol |
//! | `exporter` | sending requests, retries, and counting lost records |

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
    events::Event,
    worker::Worker,
};

/// The maximum number of items in the queue. When the queue is full, new items are dropped and counted.
const QUEUE_CAPACITY: usize = 1024;
/// The timeout for sending the remaining items when the program exits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends telemetry from a background thread. Dropping this blocks for up to a second to send the remaining items.
pub struct Telemetry {
    worker: Worker<Item>,
    counts: Arc<Counts>,
}

/// An item in the queue. `time` is in nanoseconds since the Unix epoch.
struct Item {
    time: u64,
    what: What,
}

enum What {
    Recorded(Arc<Event>),
    Session(SessionKey, SessionStep),
}

impl Telemetry {
    /// Starts the background thread. This doesn't connect to the collectors yet.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let counts = Arc::new(Counts::default());
        let mut exporter = Exporter::new(settings, Arc::clone(&counts));
        let worker = Worker::start_paced("telemetry", QUEUE_CAPACITY, move |batch| exporter.work(batch))?;
        Ok(Self { worker, counts })
    }

    /// Returns an observer that adds each event to the queue.
    pub fn observer(&self) -> Observer {
        let queue = self.worker.submitter();
        let counts = Arc::clone(&self.counts);
        Arc::new(move |activity| {
            let what = match activity {
                Activity::Recorded(event) => What::Recorded(Arc::clone(event)),
                Activity::Session(session, step) => What::Session(*session, step.clone()),
                _ => return,
            };
            counts.submitted.fetch_add(1, Ordering::Relaxed);
            queue.submit(Item { time: nanoseconds_since_1970(), what });
        })
    }

    /// Converts this into an observer. When the observer is dropped, the remaining items are sent.
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

/// Returns the current time in nanoseconds since the Unix epoch.
fn nanoseconds_since_1970() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
