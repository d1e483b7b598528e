//! [`Metrics`]: counters, and histograms of durations.

use std::mem;

use prost::Message;

use super::{
    attributes::Attributes,
    messages::{CUMULATIVE, DELTA, Histogram, HistogramPoint, Metric, NumberPoint, Sum},
};

/// The maximum number of series. When this is exceeded, new series are ignored.
const MAX_SERIES: usize = 1000;

/// The bucket boundaries in seconds, as recommended by the semantic conventions.
const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The name and unit of a metric. A metric with the unit `s` is a histogram, and any other metric is a counter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind(&'static str, &'static str);

/// The number of opened sessions.
pub(super) const SESSIONS: Kind = Kind("acp_skills.sessions", "{session}");
/// The number of activations, including failed activations.
pub(super) const ACTIVATIONS: Kind = Kind("acp_skills.activations", "{activation}");
/// The number of tokens used by activated skills.
pub(super) const TOKENS: Kind = Kind("acp_skills.activation.tokens", "{token}");
/// The number of permission requests.
pub(super) const PERMISSIONS: Kind = Kind("acp_skills.permissions", "{request}");
/// The number of events in the record.
pub(super) const EVENTS: Kind = Kind("acp_skills.events", "{event}");
/// The number of dropped records.
pub(super) const LOST: Kind = Kind("acp_skills.telemetry.lost", "{record}");
/// The duration of a tool call.
pub(super) const CALLS: Kind = Kind("gen_ai.execute_tool.duration", "s");
/// The duration of a turn.
pub(super) const TURNS: Kind = Kind("gen_ai.client.operation.duration", "s");

const ALL: [&Kind; 8] = [&SESSIONS, &ACTIVATIONS, &TOKENS, &PERMISSIONS, &EVENTS, &LOST, &CALLS, &TURNS];

/// The values of all metrics.
pub(super) struct Metrics {
    series: Vec<Series>,
    /// The start time for all values, in nanoseconds since the Unix epoch.
    start: u64,
    is_delta: bool,
    has_changes: bool,
}

/// The values of a metric for a single set of attributes.
struct Series {
    kind: &'static Kind,
    attributes: Attributes,
    count: u64,
    sum: f64,
    buckets: Vec<u64>,
}

impl Metrics {
    pub(super) fn new(is_delta: bool, start: u64) -> Self {
        Self { series: Vec::new(), start, is_delta, has_changes: false }
    }

    /// Returns true if a value was added since the previous export.
    pub(super) fn has_changes(&self) -> bool {
        self.has_changes
    }

    /// Adds a number to a counter, or a duration in seconds to a distribution.
    pub(super) fn add(&mut self, kind: &'static Kind, attributes: Attributes, value: f64) {
        let found =
            self.series.iter().position(|series| series.kind == kind && series.attributes == attributes);
        let number = found.unwrap_or_else(|| {
            let buckets = if kind.is_duration() { vec![0; BOUNDS.len() + 1] } else { Vec::new() };
            self.series.push(Series { kind, attributes, count: 0, sum: 0.0, buckets });
            self.series.len() - 1
        });
        if number >= MAX_SERIES {
            self.series.truncate(MAX_SERIES);
            return;
        }
        let series = &mut self.series[number];
        series.count += 1;
        series.sum += value;
        let bucket = BOUNDS.iter().position(|bound| value <= *bound).unwrap_or(BOUNDS.len());
        if let Some(bucket) = series.buckets.get_mut(bucket) {
            *bucket += 1;
        }
        self.has_changes = true;
    }

    /// Returns all metrics with values as encoded messages.
    pub(super) fn encode(&self, time: u64) -> Vec<Vec<u8>> {
        let metrics = ALL.iter().filter_map(|kind| {
            let series: Vec<_> = self.series.iter().filter(|series| *series.kind == **kind).collect();
            (!series.is_empty()).then(|| self.metric(kind, &series, time).encode_to_vec())
        });
        metrics.collect()
    }

    /// Must be called when the metrics were exported. Resets the values if only changes should be sent.
    pub(super) fn sent(&mut self, time: u64) {
        self.has_changes = false;
        if self.is_delta {
            drop(mem::take(&mut self.series));
            self.start = time;
        }
    }

    fn metric(&self, kind: &Kind, series: &[&Series], time: u64) -> Metric {
        let temporality = if self.is_delta { DELTA } else { CUMULATIVE };
        let mut metric =
            Metric { name: kind.0.to_owned(), unit: kind.1.to_owned(), sum: None, histogram: None };
        if kind.is_duration() {
            let points = series.iter().map(|series| HistogramPoint {
                start: self.start,
                time,
                count: series.count,
                sum: Some(series.sum),
                bucket_counts: series.buckets.clone(),
                bounds: BOUNDS.to_vec(),
                attributes: series.attributes.0.clone(),
            });
            metric.histogram = Some(Histogram { points: points.collect(), temporality });
        } else {
            let points = series.iter().map(|series| NumberPoint {
                start: self.start,
                time,
                #[expect(clippy::cast_possible_truncation, reason = "exact up to 2^53")]
                value: Some(series.sum as i64),
                attributes: series.attributes.0.clone(),
            });
            metric.sum = Some(Sum { points: points.collect(), temporality, is_monotonic: true });
        }
        metric
    }
}

impl Kind {
    fn is_duration(&self) -> bool {
        self.1 == "s"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(metrics: &Metrics) -> Vec<Metric> {
        metrics.encode(9).iter().map(|metric| Metric::decode(&**metric).expect("a metric")).collect()
    }

    fn named(name: &str) -> Attributes {
        Attributes::default().text("name", name)
    }

    #[test]
    fn durations_are_sorted_into_buckets() {
        let mut metrics = Metrics::new(false, 1);
        for seconds in [0.001, 0.01, 0.011, 100.0] {
            metrics.add(&CALLS, named("a"), seconds);
        }
        let [Metric { histogram: Some(histogram), .. }] = &decoded(&metrics)[..] else { panic!("no metric") };
        let point = &histogram.points[0];
        assert_eq!((point.count, point.bucket_counts[0], point.bucket_counts[1]), (4, 2, 1));
        assert_eq!((point.bucket_counts[14], point.bounds.len(), point.bucket_counts.len()), (1, 14, 15));
        assert_eq!((point.start, point.time), (1, 9));
    }

    #[test]
    fn totals_are_kept_and_changes_are_reset() {
        for (is_delta, expected) in [(false, (5, 1)), (true, (2, 9))] {
            let mut metrics = Metrics::new(is_delta, 1);
            metrics.add(&EVENTS, named("a"), 3.0);
            metrics.add(&EVENTS, named("b"), 1.0);
            assert_eq!(decoded(&metrics)[0].sum.as_ref().map(|sum| sum.points.len()), Some(2));
            metrics.sent(9);
            assert!(!metrics.has_changes());
            metrics.add(&EVENTS, named("a"), 2.0);
            let sum = decoded(&metrics)[0].sum.clone().expect("a sum");
            assert_eq!((sum.points[0].value, sum.points[0].start), (Some(expected.0), expected.1));
        }
    }

    #[test]
    fn series_are_limited() {
        let mut metrics = Metrics::new(false, 1);
        for number in 0..MAX_SERIES + 10 {
            metrics.add(&EVENTS, named(&number.to_string()), 1.0);
        }
        assert_eq!(metrics.series.len(), MAX_SERIES);
        metrics.add(&EVENTS, named("0"), 1.0);
        assert_eq!(metrics.series[0].count, 2);
    }
}
