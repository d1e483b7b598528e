//! [`Exporter`]: sends spans, log records and metrics to the collectors. It runs on the thread of the queue.
//!
//! If a collector doesn't respond, only this thread will be blocked. After a connection error, or a response with the status 429, 502,
//! 503 or 504, the request is retried. The delay between retries is doubled each time. When the buffer is full, additional records
//! are dropped and counted.

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

/// The maximum number of spans to buffer, and the maximum number of log records.
const MAX_KEPT: usize = 1024;
/// The maximum number of records in a request.
const MAX_IN_REQUEST: usize = 512;
/// The maximum number of bytes to read from a response.
const MAX_ANSWER: u64 = 16 * 1024;
/// The timeout for sending the remaining records when the program exits.
const LAST: Duration = Duration::from_millis(900);
/// The initial delay before a retry.
const PAUSE: Duration = Duration::from_secs(1);
/// The maximum delay before a retry.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Counters from which the number of lost records is computed.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// The number of items submitted to the queue.
    pub(super) submitted: AtomicU64,
    /// The number of items received from the queue.
    pub(super) taken: AtomicU64,
    /// The number of spans and log records created.
    made: AtomicU64,
    /// The number of spans and log records accepted by a collector.
    accepted: AtomicU64,
    /// The reason for the most recent failure.
    failure: Mutex<Option<String>>,
}

impl Counts {
    /// Returns the number of records that have not been sent.
    pub(super) fn lost(&self) -> u64 {
        let less = |all: &AtomicU64, done: &AtomicU64| {
            all.load(Ordering::Relaxed).saturating_sub(done.load(Ordering::Relaxed))
        };
        less(&self.submitted, &self.taken) + less(&self.made, &self.accepted)
    }

    /// Returns the reason for the most recent failure.
    pub(super) fn reason(&self) -> String {
        self.failure.lock().clone().unwrap_or_else(|| "the collector did not answer in time".to_owned())
    }
}

/// The state of the exporter's thread.
pub(super) struct Exporter {
    settings: Settings,
    resource: Vec<u8>,
    sessions: Sessions,
    collected: Collected,
    counts: Arc<Counts>,
    /// The time when the buffered records should be sent. `None` if the buffers are empty.
    due: Option<Instant>,
    /// The number of failures since the previous successful request.
    failures: u32,
    has_warned: bool,
}

/// The result of a request.
enum Sent {
    /// The request was accepted, except for this number of records.
    Accepted(u64),
    /// The request was refused, and should not be retried.
    Refused(String),
    /// The request can be retried, after this delay if the collector has provided one.
    Later(String, Option<Duration>),
}

impl Exporter {
    pub(super) fn new(settings: Settings, counts: Arc<Counts>) -> Self {
        let metrics = Metrics::new(settings.is_delta, nanoseconds_since_1970());
        let collected = Collected {
            spans: Vec::new(),
            logs: Vec::new(),
            metrics,
            takes_unsampled: settings.sends_unsampled,
        };
        let resource = Resource { attributes: settings.resource.0.clone() }.encode_to_vec();
        Self {
            settings,
            resource,
            sessions: Sessions::default(),
            collected,
            counts,
            due: None,
            failures: 0,
            has_warned: false,
        }
    }

    /// Handles a batch from the queue, and sends the buffered records when they are due. Returns the time to call this again.
    pub(super) fn work(&mut self, batch: Batch<Item>) -> Option<Instant> {
        let deadline = batch.is_last.then(|| Instant::now() + LAST);
        let taken = batch.items.len() as u64;
        self.collect(batch.items, deadline);
        self.counts.taken.fetch_add(taken, Ordering::Relaxed);
        self.lose(batch.dropped);
        if batch.is_last {
            let time = nanoseconds_since_1970();
            self.change(|exporter| exporter.sessions.end_all(time, &mut exporter.collected));
            self.send_all(deadline);
            return None;
        }
        let now = Instant::now();
        match self.due {
            Some(due) if now >= due => self.send_all(None),
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

    /// Returns true if the buffers contain a full request, and no request has to be retried.
    fn is_filling(&self) -> bool {
        let Collected { spans, logs, .. } = &self.collected;
        self.failures == 0 && spans.len().max(logs.len()) >= MAX_IN_REQUEST
    }

    /// Converts items to records. Sends the records early if there are many.
    fn collect(&mut self, items: Vec<Item>, deadline: Option<Instant>) {
        for Item { time, what } in items {
            self.change(|exporter| match &what {
                What::Recorded(record) => exporter.sessions.record(record, time, &mut exporter.collected),
                What::Session(key, step) => exporter.sessions.step(*key, step, time, &mut exporter.collected),
            });
            if self.is_filling() {
                self.send_all(deadline);
            }
        }
    }

    /// Calls `make`, which adds records to the buffers. Drops records without a collector, and records that exceed the buffer.
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

    /// Adds to the metric for lost records.
    fn lose(&mut self, count: u64) {
        if count > 0 {
            #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
            self.collected.metrics.add(&LOST, Attributes::default(), count as f64);
        }
    }

    /// Sends all buffered records before the deadline. If a request failed, sets the time of the retry.
    fn send_all(&mut self, deadline: Option<Instant>) {
        let pause = self.send_until_failure(deadline);
        self.due = pause.map(|pause| Instant::now() + pause);
    }

    /// Sends buffered records until a request fails. Returns the delay before the retry of this request.
    fn send_until_failure(&mut self, deadline: Option<Instant>) -> Option<Duration> {
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
                    // The collector can only make the pause longer, so that it doesn't receive requests without a pause.
                    return Some(after.map_or(pause, |after| after.clamp(pause, MAX_PAUSE)));
                }
            }
        }
        None
    }

    /// Returns the items for the next request, and the current time for metrics.
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

    /// Removes the items of a request from the buffer. `rejected` is the number of items not accepted by the collector.
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

    /// Stores the reason for a failure. Only the first failure is logged.
    fn failed(&mut self, reason: String) {
        if !self.has_warned {
            self.has_warned = true;
            tracing::warn!("cannot send telemetry: {reason}");
        }
        *self.counts.failure.lock() = Some(reason);
    }
}

/// Sends a request to a collector.
fn send(collector: &Collector, body: &[u8], deadline: Option<Instant>) -> Sent {
    let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let timeout = remaining.map_or(collector.timeout, |remaining| remaining.min(collector.timeout));
    if timeout.is_zero() {
        return Sent::Later("no time was left at the end".to_owned(), None);
    }
    let request = Request {
        method: "POST",
        url: &collector.url,
        host: Host::Chosen,
        authorities: collector.authorities.as_ref(),
        headers: &collector.headers,
        body,
        timeout,
        answer: None,
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
