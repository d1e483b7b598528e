//! [`Settings`]: the [environment variables](https://opentelemetry.io/docs/specs/otel/protocol/exporter/) of OpenTelemetry.

use std::{path::Path, time::Duration};

use percent_encoding::percent_decode_str;
use skills_core::fetch::{self, Authorities, AuthoritiesError};

use super::attributes::Attributes;

/// The kinds of telemetry in the order used for sending. Each kind has a name that is used in environment variables, and a URL path.
pub(super) const SIGNALS: [(&str, &str); 3] =
    [("TRACES", "v1/traces"), ("LOGS", "v1/logs"), ("METRICS", "v1/metrics")];

/// The default name of the service.
const SERVICE: &str = "acp-skills-proxy";
/// The headers to add to each request, in addition to the headers from the user.
const OWN_HEADERS: [(&str, &str); 2] = [
    ("Content-Type", "application/x-protobuf"),
    ("User-Agent", concat!("acp-skills-proxy/", env!("CARGO_PKG_VERSION"))),
];
/// The headers that describe the body or the connection. With another value, no request would arrive.
const FIXED_HEADERS: [&str; 8] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "transfer-encoding",
    "user-agent",
];
/// The maximum size of all headers from the user, in bytes. Collectors accept fewer.
const MAX_HEADERS: usize = 32 * 1024;
/// The default timeout for a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The default delay between the first buffered record and the request.
const DELAY: Duration = Duration::from_secs(5);

/// The longest delay and the shortest timeout of telemetry that is required, so that no variable keeps it from being sent.
const MAX_REQUIRED_DELAY: Duration = Duration::from_mins(1);
const MIN_REQUIRED_TIMEOUT: Duration = Duration::from_secs(1);
/// The variable with the address of the collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The reasons why one of the [`SIGNALS`] is off.
const SIGNAL_OFF: [&str; 3] = [
    "OTEL_TRACES_EXPORTER or a missing address turns traces off",
    "OTEL_LOGS_EXPORTER or a missing address turns logs off",
    "OTEL_METRICS_EXPORTER or a missing address turns metrics off",
];

/// The configuration of the exporter, from environment variables.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The collector for each of the [`SIGNALS`]. `None` if this kind of telemetry is off.
    pub(super) collectors: [Option<Collector>; 3],
    /// The attributes for the current process.
    pub(super) resource: Attributes,
    pub(super) delay: Duration,
    /// True if metrics should only include changes since the previous export.
    pub(super) is_delta: bool,
    /// True if spans are also sent if the editor or the agent doesn't sample their trace.
    pub(super) sends_unsampled: bool,
}

/// The collector for one kind of telemetry.
#[derive(Clone)]
pub(super) struct Collector {
    pub(super) url: String,
    /// The headers to send, which can contain secrets.
    pub(super) headers: Vec<(String, String)>,
    pub(super) timeout: Duration,
    /// The root certificates for `https`.
    pub(super) authorities: Option<Authorities>,
}

/// Doesn't print the URL or the headers, because both can contain secrets.
impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// An error while reading the environment variables. The message doesn't include any value except the path of a file, because values
/// can be secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// Telemetry is off.
    #[error("{0}")]
    Off(&'static str),
    /// An environment variable has an invalid value.
    #[error("{variable} is invalid: {expected}")]
    Invalid {
        /// The name of the variable.
        variable: String,
        /// The expected kind of value.
        expected: &'static str,
    },
    /// The file with root certificates can't be used.
    #[error(transparent)]
    Certificate(#[from] AuthoritiesError),
}

/// Returns the value of an environment variable.
type Get<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    /// Reads the environment variables. An empty value is ignored.
    ///
    /// # Errors
    /// - [`SettingsError::Off`] if no collector is set, or if telemetry is disabled by a variable.
    /// - [`SettingsError::Invalid`] if a value is invalid, or if the protocol is not supported.
    /// - [`SettingsError::Certificate`] if the file with root certificates can't be used.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::from(&|name| std::env::var(name).ok())
    }

    /// Reads the environment variables like [`from_env`](Self::from_env), for telemetry that an administrator requires. Spans, logs and
    /// metrics are all sent, also for traces that are not sampled, at least once a minute. If `collector` is set, all of them are sent to
    /// this address, and variables with other addresses are ignored.
    ///
    /// # Errors
    /// Returns the errors of [`from_env`](Self::from_env), and [`SettingsError::Off`] if a variable turns off one kind of telemetry.
    pub fn required_from_env(collector: Option<&str>) -> Result<Self, SettingsError> {
        Self::required_from(&|name| std::env::var(name).ok(), collector)
    }

    fn required_from(get: Get<'_>, collector: Option<&str>) -> Result<Self, SettingsError> {
        let mut settings = Self::from(&|name| match collector {
            Some(url) if name == ENDPOINT => Some(url.to_owned()),
            Some(_) if name.ends_with("_ENDPOINT") => None,
            _ => get(name),
        })?;
        for (collector, why) in settings.collectors.iter_mut().zip(SIGNAL_OFF) {
            let collector = collector.as_mut().ok_or(SettingsError::Off(why))?;
            collector.timeout = collector.timeout.max(MIN_REQUIRED_TIMEOUT);
        }
        settings.delay = settings.delay.min(MAX_REQUIRED_DELAY);
        settings.sends_unsampled = true;
        Ok(settings)
    }

    fn from(get: Get<'_>) -> Result<Self, SettingsError> {
        let get: Get<'_> = &|name| get(name).map(|value| value.trim().to_owned()).filter(|v| !v.is_empty());
        if get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(SettingsError::Off("OTEL_SDK_DISABLED is true"));
        }
        let mut collectors = [const { None }; 3];
        for (collector, signal) in collectors.iter_mut().zip(SIGNALS) {
            *collector = Collector::from(signal, get)?;
        }
        if collectors.iter().all(Option::is_none) {
            let why = match get(ENDPOINT) {
                None => "OTEL_EXPORTER_OTLP_ENDPOINT is not set",
                Some(_) => {
                    "OTEL_TRACES_EXPORTER, OTEL_LOGS_EXPORTER and OTEL_METRICS_EXPORTER turn all exporters off"
                }
            };
            return Err(SettingsError::Off(why));
        }
        let delay = milliseconds("OTEL_BSP_SCHEDULE_DELAY", get)?.unwrap_or(DELAY);
        let temporality = get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE").unwrap_or_default();
        let is_delta = ["delta", "lowmemory"].iter().any(|delta| temporality.eq_ignore_ascii_case(delta));
        Ok(Self { collectors, resource: resource(get)?, delay, is_delta, sends_unsampled: false })
    }
}

impl Collector {
    fn from((signal, path): (&str, &str), get: Get<'_>) -> Result<Option<Self>, SettingsError> {
        let exporters = get(&format!("OTEL_{signal}_EXPORTER"));
        if exporters.is_some_and(|names| !names.split(',').any(|name| name.trim() == "otlp")) {
            return Ok(None);
        }
        // A variable for one kind of telemetry comes first. Returns the name of the variable with its value.
        let either = |suffix: &str| {
            let names =
                [format!("OTEL_EXPORTER_OTLP_{signal}_{suffix}"), format!("OTEL_EXPORTER_OTLP_{suffix}")];
            names.into_iter().find_map(|name| get(&name).map(|value| (name, value)))
        };
        let Some((variable, url)) = either("ENDPOINT") else { return Ok(None) };
        let is_whole = variable != ENDPOINT;
        let url = if is_whole { url } else { format!("{}/{path}", url.trim_end_matches('/')) };
        if !fetch::is_web_url(&url) {
            return Err(invalid(variable, "expected a URL that begins with `https://` or `http://`"));
        }
        if let Some((variable, protocol)) = either("PROTOCOL")
            && protocol != "http/protobuf"
        {
            return Err(invalid(variable, "only `http/protobuf` is supported"));
        }
        if let Some((variable, compression)) = either("COMPRESSION")
            && compression != "none"
        {
            tracing::warn!("{variable} has no effect: telemetry is not compressed");
        }
        let mut headers = match either("HEADERS") {
            Some((variable, list)) => headers_of(variable, &list)?,
            None => Vec::new(),
        };
        headers.extend(OWN_HEADERS.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let timeout = match either("TIMEOUT") {
            Some((variable, _)) => milliseconds(&variable, get)?,
            None => None,
        };
        let authorities = either("CERTIFICATE")
            .map(|(variable, path)| Authorities::read(Path::new(&path), &variable))
            .transpose()?;
        Ok(Some(Self { url, headers, timeout: timeout.unwrap_or(TIMEOUT), authorities }))
    }
}

/// Returns the attributes for the current process.
fn resource(get: Get<'_>) -> Result<Attributes, SettingsError> {
    let mut resource = Attributes::default()
        .text("service.name", SERVICE)
        .text("service.version", env!("CARGO_PKG_VERSION"))
        .text("service.instance.id", crate::mcp::random_hex().unwrap_or_default())
        .text("telemetry.sdk.name", SERVICE)
        .text("telemetry.sdk.language", "rust")
        .text("telemetry.sdk.version", env!("CARGO_PKG_VERSION"));
    let variable = "OTEL_RESOURCE_ATTRIBUTES";
    let given = get(variable).map(|list| pairs(variable.to_owned(), &list)).transpose()?;
    let service = get("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name));
    for (key, value) in given.unwrap_or_default().into_iter().chain(service) {
        resource = resource.without(&key).text(&key, value);
    }
    Ok(resource)
}

/// Parses a list such as `a=1,b=2` with percent-encoded values.
fn pairs(variable: String, list: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((key.trim().to_owned(), value.into_owned())).filter(|(key, _)| !key.is_empty())
    };
    let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
    let parsed: Option<Vec<_>> = parts.map(pair).collect();
    parsed.ok_or_else(|| invalid(variable, "expected a list such as `key=value,key=value`"))
}

/// Parses a list of headers. With an invalid header, no request could be sent.
fn headers_of(variable: String, list: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let headers = pairs(variable.clone(), list)?;
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_in_value = |byte: u8| matches!(byte, b'\t' | b' '..=b'~');
    let is_valid =
        |(name, value): &(String, String)| name.bytes().all(is_in_name) && value.bytes().all(is_in_value);
    if list.len() > MAX_HEADERS || !headers.iter().all(is_valid) {
        let expected = "the headers are too long or have characters that are not allowed in headers";
        return Err(invalid(variable, expected));
    }
    let is_fixed =
        |(name, _): &(String, String)| FIXED_HEADERS.iter().any(|fixed| name.eq_ignore_ascii_case(fixed));
    if headers.iter().any(is_fixed) {
        return Err(invalid(variable, "headers about the body, the host or the connection cannot be set"));
    }
    Ok(headers)
}

fn milliseconds(variable: &str, get: Get<'_>) -> Result<Option<Duration>, SettingsError> {
    let Some(value) = get(variable) else { return Ok(None) };
    match value.parse() {
        Ok(number) => Ok(Some(Duration::from_millis(number))),
        Err(_) => Err(invalid(variable.to_owned(), "expected a number of milliseconds")),
    }
}

fn invalid(variable: String, expected: &'static str) -> SettingsError {
    SettingsError::Invalid { variable, expected }
}

#[cfg(test)]
mod tests;
