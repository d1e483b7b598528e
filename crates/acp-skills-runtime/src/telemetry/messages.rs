//! The subset of the [OTLP messages](https://github.com/open-telemetry/opentelemetry-proto) used by the exporter.
//!
//! Each tag is defined by version 1.10 of the protocol. Export requests for spans, logs and metrics use the same structure, so a single
//! type is sufficient. When a span, log record or metric is complete, it will be encoded to bytes. This makes it possible to
//! use [`ScopeItems`] for any kind of item, because a nested message is encoded like a byte string.

use prost::{Message, Oneof};

/// A request to export spans, log records or metrics.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Export {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<ResourceItems>,
}

/// The items from a resource. There is only one resource, which is the current process.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceItems {
    /// A [`Resource`].
    #[prost(bytes = "vec", tag = "1")]
    pub(super) resource: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub(super) scope: Option<ScopeItems>,
}

/// The items from an instrumentation scope. There is only one scope, which is this crate.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeItems {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    /// A list of encoded [`Span`], [`LogRecord`] or [`Metric`] messages.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(super) items: Vec<Vec<u8>>,
}

/// The attributes for the current process.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

/// The name and version of an instrumentation scope.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// An attribute.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3, 4, 5")]
    pub(super) value: Option<Value>,
}

/// The types of values.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    List(ArrayValue),
}

/// A list of values.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<AnyValue>,
}

/// A completed span. Times are in nanoseconds since the Unix epoch.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(super) state: String,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(int32, tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub(super) flags: u32,
}

/// The span kind for work done in this process.
pub(super) const KIND_INTERNAL: i32 = 1;
/// The span kind for a request to another process.
pub(super) const KIND_CLIENT: i32 = 3;

/// The status of a span. This is only used for errors.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(int32, tag = "3")]
    pub(super) code: i32,
}

/// The status code for an error.
pub(super) const STATUS_ERROR: i32 = 2;

/// A log record. It has no body.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LogRecord {
    #[prost(fixed64, tag = "1")]
    pub(super) time: u64,
    #[prost(int32, tag = "2")]
    pub(super) severity: i32,
    #[prost(message, repeated, tag = "6")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(fixed32, tag = "8")]
    pub(super) flags: u32,
    #[prost(bytes = "vec", tag = "9")]
    pub(super) trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "10")]
    pub(super) span: Vec<u8>,
    #[prost(fixed64, tag = "11")]
    pub(super) observed: u64,
    #[prost(string, tag = "12")]
    pub(super) event_name: String,
}

/// The severity used for most events.
pub(super) const SEVERITY_INFO: i32 = 9;
/// The severity used for failures.
pub(super) const SEVERITY_WARN: i32 = 13;

/// A metric with its data: either a sum or a histogram.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Metric {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) unit: String,
    #[prost(message, optional, tag = "7")]
    pub(super) sum: Option<Sum>,
    #[prost(message, optional, tag = "9")]
    pub(super) histogram: Option<Histogram>,
}

/// A monotonic counter.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub(super) points: Vec<NumberPoint>,
    #[prost(int32, tag = "2")]
    pub(super) temporality: i32,
    #[prost(bool, tag = "3")]
    pub(super) is_monotonic: bool,
}

/// A histogram of durations.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Histogram {
    #[prost(message, repeated, tag = "1")]
    pub(super) points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    pub(super) temporality: i32,
}

/// The temporality for values counted from the previous export.
pub(super) const DELTA: i32 = 1;
/// The temporality for values counted from the start of the process.
pub(super) const CUMULATIVE: i32 = 2;

/// One series of a sum.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NumberPoint {
    #[prost(fixed64, tag = "2")]
    pub(super) start: u64,
    #[prost(fixed64, tag = "3")]
    pub(super) time: u64,
    #[prost(sfixed64, optional, tag = "6")]
    pub(super) value: Option<i64>,
    #[prost(message, repeated, tag = "7")]
    pub(super) attributes: Vec<KeyValue>,
}

/// One series of a histogram.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HistogramPoint {
    #[prost(fixed64, tag = "2")]
    pub(super) start: u64,
    #[prost(fixed64, tag = "3")]
    pub(super) time: u64,
    #[prost(fixed64, tag = "4")]
    pub(super) count: u64,
    #[prost(double, optional, tag = "5")]
    pub(super) sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    pub(super) bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    pub(super) bounds: Vec<f64>,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
}

/// The response to an export request.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Answer {
    #[prost(message, optional, tag = "1")]
    pub(super) partial: Option<Partial>,
}

/// Returned by a collector when only some items were accepted.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Partial {
    #[prost(int64, tag = "1")]
    pub(super) rejected: i64,
}
