//! A collector of OpenTelemetry, which decodes what it receives with the messages of `opentelemetry-proto`.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::{ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse},
        metrics::v1::ExportMetricsServiceRequest,
        trace::v1::ExportTraceServiceRequest,
    },
    common::v1::{AnyValue, KeyValue, any_value::Value as Any},
    logs::v1::LogRecord,
    metrics::v1::{Metric, metric::Data, number_data_point::Value as Number},
    trace::v1::Span,
};
use prost::Message;

use crate::editor::{DEADLINE, Proxy};

/// The way in which a collector answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Accepts,
    /// Accepts after this time.
    AcceptsAfter(Duration),
    /// Rejects one log record of each request.
    RejectsOne,
    /// Accepts connections, but never answers.
    Hangs,
    /// Answers all requests with this status and header.
    Fails(u16, &'static str),
    /// Answers the first request with this status, and accepts all others.
    FailsOnce(u16, &'static str),
    /// Answers with a body without end.
    Floods,
}

/// A request that the collector received.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// The headers, in lower case.
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Collector {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Request>>>,
}

impl Collector {
    pub(crate) fn start(mode: Mode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::<Mutex<Vec<Request>>>::default();
        let all = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let all = Arc::clone(&all);
                thread::spawn(move || serve(stream.expect("a connection"), mode, &all));
            }
        });
        Self { url, received }
    }

    /// Makes a proxy send its telemetry to this collector.
    pub(crate) fn of(&self, proxy: Proxy) -> Proxy {
        proxy.flag("--telemetry", "otlp").env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.url)
    }

    pub(crate) fn received(&self) -> Vec<Request> {
        self.received.lock().expect("no panic").clone()
    }

    /// Waits for this number of requests.
    pub(crate) fn wait_for(&self, count: usize) {
        let deadline = Instant::now() + DEADLINE;
        while self.received().len() < count {
            assert!(Instant::now() < deadline, "{} of {count} requests", self.received().len());
            thread::yield_now();
        }
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let all = self.decoded::<ExportTraceServiceRequest>("/v1/traces").into_iter();
        let resources = all.flat_map(|request| request.resource_spans);
        let scopes = resources.flat_map(|resource| {
            assert!(resource.resource.is_some_and(|resource| !resource.attributes.is_empty()));
            resource.scope_spans
        });
        scopes.flat_map(|scope| scope.spans).collect()
    }

    /// Returns the only span with this name.
    pub(crate) fn span(&self, name: &str) -> Span {
        let spans = self.spans();
        let named: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
        let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
        assert_eq!(named.len(), 1, "{name} in {names:?}");
        named[0].clone()
    }

    pub(crate) fn logs(&self) -> Vec<LogRecord> {
        let all = self.decoded::<ExportLogsServiceRequest>("/v1/logs").into_iter();
        let resources = all.flat_map(|request| request.resource_logs);
        resources.flat_map(|resource| resource.scope_logs).flat_map(|scope| scope.log_records).collect()
    }

    /// Returns the metrics of the last request.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let last = self.decoded::<ExportMetricsServiceRequest>("/v1/metrics").pop();
        let resources = last.into_iter().flat_map(|request| request.resource_metrics);
        resources.flat_map(|resource| resource.scope_metrics).flat_map(|scope| scope.metrics).collect()
    }

    /// Returns the sum of all series of a counter, or the number of all durations, that have these attributes.
    pub(crate) fn total(&self, name: &str, attributes: &[(&str, &str)]) -> i64 {
        let metrics = self.metrics();
        let metric = metrics.iter().find(|metric| metric.name == name);
        let fits =
            |of: &[KeyValue]| attributes.iter().all(|(key, value)| text(of, key).as_deref() == Some(*value));
        match metric.and_then(|metric| metric.data.as_ref()) {
            Some(Data::Sum(sum)) => {
                let points = sum.data_points.iter().filter(|point| fits(&point.attributes));
                let numbers = points.map(|point| match point.value {
                    Some(Number::AsInt(number)) => number,
                    _ => panic!("no whole number"),
                });
                numbers.sum()
            }
            Some(Data::Histogram(histogram)) => {
                let points = histogram.data_points.iter().filter(|point| fits(&point.attributes));
                points.map(|point| i64::try_from(point.count).expect("small")).sum()
            }
            _ => 0,
        }
    }

    fn decoded<T: Message + Default>(&self, path: &str) -> Vec<T> {
        let requests = self.received().into_iter().filter(|request| request.path == path);
        requests.map(|request| T::decode(&*request.body).expect("a message")).collect()
    }
}

/// Returns an attribute as text.
pub(crate) fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    Some(match found.value.as_ref()? {
        AnyValue { value: Some(Any::StringValue(text)) } => text.clone(),
        AnyValue { value: Some(Any::IntValue(number)) } => number.to_string(),
        AnyValue { value: Some(Any::DoubleValue(number)) } => number.to_string(),
        AnyValue { value: Some(Any::ArrayValue(list)) } => {
            let one = |value: &AnyValue| match &value.value {
                Some(Any::StringValue(text)) => text.clone(),
                other => panic!("{other:?}"),
            };
            list.values.iter().map(one).collect::<Vec<_>>().join(" ")
        }
        other => panic!("{other:?}"),
    })
}

fn serve(stream: TcpStream, mode: Mode, received: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a connection"));
    // A client that has sent its request closes the connection.
    while let Some(request) = read(&mut reader) {
        let mut all = received.lock().expect("no panic");
        let is_first = all.is_empty();
        let is_logs = request.path == "/v1/logs";
        all.push(request);
        drop(all);
        let answer = match mode {
            Mode::Fails(status, header) => failure(status, header),
            Mode::FailsOnce(status, header) if is_first => failure(status, header),
            Mode::Hangs => {
                // This ends when the client closes the connection.
                let _ = reader.read(&mut [0]);
                return;
            }
            Mode::AcceptsAfter(time) => {
                thread::park_timeout(time);
                success(&[])
            }
            Mode::RejectsOne if is_logs => success(&partial()),
            Mode::Floods => {
                let mut stream = &stream;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n\r\n");
                while stream.write_all(&[b'x'; 8192]).is_ok() {}
                return;
            }
            _ => success(&[]),
        };
        if (&stream).write_all(&answer).is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") {
        if reader.read_line(&mut headers).ok()? == 0 {
            return None;
        }
    }
    let path = headers.split(' ').nth(1)?.to_owned();
    assert!(headers.starts_with("POST "), "{headers}");
    let headers = headers.to_lowercase();
    let length = headers.split("content-length: ").nth(1)?.lines().next()?.trim().parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { path, headers, body })
}

fn success(body: &[u8]) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length:";
    [format!("{head} {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

fn failure(status: u16, header: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} x\r\n{header}Content-Length: 0\r\n\r\n").into_bytes()
}

fn partial() -> Vec<u8> {
    let partial = ExportLogsPartialSuccess { rejected_log_records: 1, error_message: "too many".to_owned() };
    ExportLogsServiceResponse { partial_success: Some(partial) }.encode_to_vec()
}
