//! [`Exporter`]: sends what was collected, on the thread of the queue.
//!
//! A collector that doesn't answer costs only this thread. If it may answer later (no connection, 429, 502, 503 or 504), the records
//! are kept and sent again, after a pause that doubles each time. Records that don't fit are dropped and counted.

use std::{
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use prost::Message;
use skills_core::fetch::{self, FetchError, Host, Interrupt, Request};

use super::{
    Item, What,
    attributes::Attributes,
    messages::{Answer, Export, Resource, ResourceItems, Scope, ScopeItems},
    metrics::{LOST, Metrics},
    nanoseconds_since_1970,
    sessions::{Collected, Sessions},
    settings::{Collector, Settings},
};
use crate::worker::Batch;

/// The maximum number of spans, and of log records, that wait for the collector.
const MAX_KEPT: usize = 1024;
/// The maximum number of records in a request.
const MAX_IN_REQUEST: usize = 512;
/// The maximum size of an answer that is read.
const MAX_ANSWER: u64 = 16 * 1024;
/// The time for everything that is sent at the end.
const LAST: Duration = Duration::from_millis(900);
/// The first pause after a failure, and the longest one.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Numbers that say how many records are lost.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// The items that were submitted to the queue, and those that were taken out of it.
    pub(super) submitted: AtomicU64,
    pub(super) taken: AtomicU64,
    /// The spans and log records that were made, and those that a collector has accepted.
    made: AtomicU64,
    accepted: AtomicU64,
    /// The last failure.
    failure: Mutex<Option<String>>,
}

impl Counts {
    /// Returns the number of records that were not sent.
    pub(super) fn lost(&self) -> u64 {
        let less = |all: &AtomicU64, done: &AtomicU64| {
            all.load(Ordering::Relaxed).saturating_sub(done.load(Ordering::Relaxed))
        };
        less(&self.submitted, &self.taken) + less(&self.made, &self.accepted)
    }

    /// Returns the reason of the last failure.
    pub(super) fn reason(&self) -> String {
        self.failure.lock().clone().unwrap_or_else(|| "the collector did not answer in time".to_owned())
    }
}

/// The state of the thread.
pub(super) struct Exporter {
    settings: Settings,
    resource: Vec<u8>,
    sessions: Sessions,
    collected: Collected,
    counts: Arc<Counts>,
    /// The time at which records are sent, if there are any.
    due: Option<Instant>,
    /// The number of failures since the last success.
    failures: u32,
    has_warned: bool,
}

/// The result of a request.
enum Sent {
    /// The collector has accepted all but this number of records.
    Accepted(u64),
    /// The collector doesn't want these records.
    Refused(String),
    /// The collector may want them later, maybe at a time that it has told.
    Later(String, Option<Duration>),
}

impl Exporter {
    pub(super) fn new(settings: Settings, counts: Arc<Counts>) -> Self {
        let metrics = Metrics::new(settings.is_delta, nanoseconds_since_1970());
        let resource = Resource { attributes: settings.resource.0.clone() }.encode_to_vec();
        Self {
            settings,
            resource,
            sessions: Sessions::default(),
            collected: Collected { spans: Vec::new(), logs: Vec::new(), metrics },
            counts,
            due: None,
            failures: 0,
            has_warned: false,
        }
    }

    /// Handles what has happened, and sends it if it is time. Returns the time of the next call, if there is something to send.
    pub(super) fn work(&mut self, batch: Batch<Item>) -> Option<Instant> {
        let taken = batch.items.len() as u64;
        self.collect(batch.items);
        self.counts.taken.fetch_add(taken, Ordering::Relaxed);
        self.lose(batch.dropped);
        let now = Instant::now();
        if batch.is_last {
            let time = nanoseconds_since_1970();
            self.change(|exporter| exporter.sessions.end_all(time, &mut exporter.collected));
            self.send_all(Some(now + LAST));
            return None;
        }
        match self.due {
            Some(due) if now >= due => {
                let pause = self.send_all(None);
                self.due = pause.map(|pause| Instant::now() + pause);
            }
            None if self.has_records() => self.due = Some(now + self.settings.delay),
            _ => {}
        }
        self.due
    }

    fn has_records(&self) -> bool {
        !self.collected.spans.is_empty()
            || !self.collected.logs.is_empty()
            || self.collected.metrics.has_changes()
    }

    fn collect(&mut self, items: Vec<Item>) {
        for Item { time, what } in items {
            self.change(|exporter| match &what {
                What::Recorded(record) => exporter.sessions.record(record, time, &mut exporter.collected),
                What::Session(key, step) => exporter.sessions.step(*key, step, time, &mut exporter.collected),
            });
        }
    }

    /// Makes records, and drops those that don't fit or that no collector receives.
    fn change(&mut self, make: impl FnOnce(&mut Self)) {
        let before = self.collected.spans.len() + self.collected.logs.len();
        make(self);
        let [traces, logs, _] = &self.settings.collectors;
        if traces.is_none() {
            self.collected.spans.clear();
        }
        if logs.is_none() {
            self.collected.logs.clear();
        }
        let made = (self.collected.spans.len() + self.collected.logs.len()).saturating_sub(before);
        self.counts.made.fetch_add(made as u64, Ordering::Relaxed);
        let kept = &mut self.collected;
        let too_many = kept.spans.len().saturating_sub(MAX_KEPT) + kept.logs.len().saturating_sub(MAX_KEPT);
        kept.spans.truncate(MAX_KEPT);
        kept.logs.truncate(MAX_KEPT);
        self.lose(too_many as u64);
    }

    /// Counts records that are lost.
    fn lose(&mut self, count: u64) {
        if count > 0 {
            #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
            self.collected.metrics.add(&LOST, Attributes::default(), count as f64);
        }
    }

    /// Sends all records, until `deadline` if there is one. Returns the pause after which the rest can be sent, if there is a rest.
    fn send_all(&mut self, deadline: Option<Instant>) -> Option<Duration> {
        let collectors = self.settings.collectors.clone();
        for (signal, collector) in collectors.iter().enumerate() {
            let Some(collector) = collector else { continue };
            while let Some((items, time)) = self.next_request(signal) {
                let count = items.len();
                let body = self.body(items);
                let later = match send(collector, &body, deadline) {
                    Sent::Accepted(rejected) => {
                        self.failures = 0;
                        self.done(signal, count, rejected, time);
                        None
                    }
                    Sent::Refused(reason) => {
                        self.failed(reason);
                        self.done(signal, count, count as u64, time);
                        None
                    }
                    Sent::Later(reason, after) => {
                        self.failed(reason);
                        Some(after)
                    }
                };
                if let Some(after) = later {
                    self.failures += 1;
                    let pause = PAUSE.saturating_mul(1 << self.failures.min(7).saturating_sub(1));
                    return Some(after.unwrap_or(pause).min(MAX_PAUSE));
                }
            }
        }
        None
    }

    /// Returns the items of the next request, and the time of metrics.
    fn next_request(&self, signal: usize) -> Option<(Vec<Vec<u8>>, u64)> {
        let time = nanoseconds_since_1970();
        let kept = &self.collected;
        let items = match signal {
            0 => kept.spans.iter().take(MAX_IN_REQUEST).cloned().collect(),
            1 => kept.logs.iter().take(MAX_IN_REQUEST).cloned().collect(),
            _ if kept.metrics.has_changes() => kept.metrics.encode(time),
            _ => Vec::new(),
        };
        (!items.is_empty()).then_some((items, time))
    }

    /// Removes the items of a request. The collector has rejected some of them.
    fn done(&mut self, signal: usize, count: usize, rejected: u64, time: u64) {
        match signal {
            0 => drop(self.collected.spans.drain(..count)),
            1 => drop(self.collected.logs.drain(..count)),
            _ => return self.collected.metrics.sent(time),
        }
        self.counts.accepted.fetch_add((count as u64).saturating_sub(rejected), Ordering::Relaxed);
        self.lose(rejected);
    }

    fn body(&self, items: Vec<Vec<u8>>) -> Vec<u8> {
        let scope =
            Scope { name: env!("CARGO_PKG_NAME").to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let scope = ScopeItems { scope: Some(scope), items };
        let resource = ResourceItems { resource: self.resource.clone(), scope: Some(scope) };
        Export { resource: Some(resource) }.encode_to_vec()
    }

    /// Remembers a failure, and logs the first one.
    fn failed(&mut self, reason: String) {
        if !self.has_warned {
            self.has_warned = true;
            tracing::warn!("cannot send telemetry: {reason}");
        }
        *self.counts.failure.lock() = Some(reason);
    }
}

/// Sends a request.
fn send(collector: &Collector, body: &[u8], deadline: Option<Instant>) -> Sent {
    let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let timeout = remaining.map_or(collector.timeout, |remaining| remaining.min(collector.timeout));
    if timeout.is_zero() {
        return Sent::Later("no time was left at the end".to_owned(), None);
    }
    let request = Request {
        method: "POST",
        url: &collector.url,
        host: Host::Chosen(collector.authorities.as_deref()),
        headers: &collector.headers,
        body,
        timeout,
    };
    // The messages of these errors have the URL, which can have a secret.
    let answer = match fetch::exchange(&request, &Interrupt::default()) {
        Ok(answer) => answer,
        Err(FetchError::Transport { source, .. }) => return Sent::Later(source.to_string(), None),
        Err(FetchError::Redirect { .. }) => return Sent::Refused("the collector redirects".to_owned()),
        Err(_) => return Sent::Refused("a header or the URL is invalid".to_owned()),
    };
    let status = answer.status;
    let reason = || format!("the collector returned status {status}");
    match status {
        200..300 => {
            let mut bytes = Vec::new();
            // The records are accepted, whether the answer is complete or not.
            let _ = answer.into_reader().take(MAX_ANSWER).read_to_end(&mut bytes);
            let partial = Answer::decode(&*bytes).ok().and_then(|answer| answer.partial);
            Sent::Accepted(partial.map_or(0, |partial| u64::try_from(partial.rejected).unwrap_or(0)))
        }
        429 | 502..=504 => {
            let after = answer.header("Retry-After").and_then(|seconds| seconds.trim().parse().ok());
            Sent::Later(reason(), after.map(Duration::from_secs))
        }
        _ => Sent::Refused(reason()),
    }
}
