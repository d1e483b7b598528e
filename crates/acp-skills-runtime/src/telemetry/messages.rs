//! The messages of [OTLP](https://github.com/open-telemetry/opentelemetry-proto), version 1.10, as far as we send them.
//!
//! The numbers are those of the protocol. Requests for spans, logs and metrics have the same structure, so they share their types. A
//! span, a log record or a metric is encoded as soon as it is finished, and a [`Scope`] contains it as bytes, which is the same on
//! the wire.

use prost::{Message, Oneof};

/// An export request for one kind of items.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Export {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<ResourceItems>,
}

/// The items of a resource, which is this process.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceItems {
    /// A [`Resource`].
    #[prost(bytes = "vec", tag = "1")]
    pub(super) resource: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub(super) scope: Option<ScopeItems>,
}

/// The items of a scope, which is this program.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeItems {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    /// Each is a [`Span`], a [`LogRecord`] or a [`Metric`].
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(super) items: Vec<Vec<u8>>,
}

/// The attributes of this process.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

/// The name and version of this program.
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

/// A finished span. Times are nanoseconds since 1970.
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

/// The kind of a span whose work is done in this process.
pub(super) const KIND_INTERNAL: i32 = 1;
/// The kind of a span that waits for another process.
pub(super) const KIND_CLIENT: i32 = 3;

/// The status of a span. A span without errors has none.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(int32, tag = "3")]
    pub(super) code: i32,
}

/// The status code of an error.
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

/// The severity of an ordinary event.
pub(super) const SEVERITY_INFO: i32 = 9;
/// The severity of a failure.
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

/// A number that only grows.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub(super) points: Vec<NumberPoint>,
    #[prost(int32, tag = "2")]
    pub(super) temporality: i32,
    #[prost(bool, tag = "3")]
    pub(super) is_monotonic: bool,
}

/// A distribution of durations.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Histogram {
    #[prost(message, repeated, tag = "1")]
    pub(super) points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    pub(super) temporality: i32,
}

/// Each export has the changes since the last one.
pub(super) const DELTA: i32 = 1;
/// Each export has the totals since the start.
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

/// The answer to an export request.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Answer {
    #[prost(message, optional, tag = "1")]
    pub(super) partial: Option<Partial>,
}

/// The part of a request that the collector has not accepted.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Partial {
    #[prost(int64, tag = "1")]
    pub(super) rejected: i64,
}
