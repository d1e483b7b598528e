//! Fetches small texts and files from the web, within limits of size and time.
//!
//! Only `https` URLs are allowed, and `http` URLs on loopback. Each redirect is checked like the first URL, and a server on the
//! network cannot redirect us to a service on this machine, however its address is spelled or resolved. [`Authorities`] says which
//! servers are trusted. All functions block, so don't call them on the threads of an async runtime.

mod authorities;
mod error;
mod exchange;
mod loopback;

use std::{
    io,
    time::{Duration, Instant},
};

use ureq::{
    http::{StatusCode, Uri, header},
    tls::TlsConfig,
    unversioned::{resolver::DefaultResolver, transport::DefaultConnector},
};

use self::loopback::{Checked, ThisMachine, is_disguised, is_plain};

use crate::skill::Sha256;

pub use self::{
    authorities::{Authorities, AuthoritiesError},
    error::FetchError,
    exchange::{Exchange, Host, Interrupt, Request, exchange, is_web_url},
};

/// The default maximum size of the content: 1 MiB.
pub const MAX_BODY_BYTES: u64 = 1024 * 1024;

/// The default timeout of a fetch, including redirects: 10 seconds.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum time until a connection is established.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// The limits of a fetch. The default is [`MAX_BODY_BYTES`] and [`TIMEOUT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of the content in bytes.
    pub max_bytes: u64,
    /// The time limit for all requests and redirects together.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: MAX_BODY_BYTES, timeout: TIMEOUT }
    }
}

/// A successful response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The content.
    pub bytes: Vec<u8>,
    /// The `ETag` of the content, if the server sent one
    /// ([RFC 9110 §8.8.3](https://www.rfc-editor.org/rfc/rfc9110#section-8.8.3)).
    pub etag: Option<String>,
}

/// Fetches the content of `url`.
///
/// # Errors
/// - [`FetchError::Refused`] if the URL is not allowed.
/// - [`FetchError::Redirect`] if a redirect is not allowed, or after too many redirects.
/// - [`FetchError::ThisMachine`] if the name of the host resolves to this machine.
/// - [`FetchError::Status`] if the server doesn't answer with success.
/// - [`FetchError::TooLarge`] if the content exceeds `limits`.
/// - [`FetchError::Transport`] if the request fails, or exceeds the timeout.
pub fn get(url: &str, limits: Limits) -> Result<Vec<u8>, FetchError> {
    match get_if_changed(url, None, limits)? {
        Some(answer) => Ok(answer.bytes),
        // This should never happen: the server answered 304, but the request had no condition.
        None => Err(FetchError::Status { url: url.to_owned(), status: StatusCode::NOT_MODIFIED.as_u16() }),
    }
}

/// Fetches the content of `url` and its `ETag`. Returns `None` if the content still has the given `etag`.
///
/// # Errors
/// Returns the errors of [`get`].
pub fn get_if_changed(url: &str, etag: Option<&str>, limits: Limits) -> Result<Option<Response>, FetchError> {
    get_with(url, etag, &[], limits)
}

/// Fetches the content of `url` like [`get_if_changed`], with more headers. These are meant for the server of `url`: after a redirect to
/// another scheme, host or port, they are not sent.
///
/// # Errors
/// Returns the errors of [`get`], and [`FetchError::HostHeader`]. A header that is not valid is a [`FetchError::Transport`].
pub fn get_with(
    url: &str,
    etag: Option<&str>,
    headers: &[(String, String)],
    limits: Limits,
) -> Result<Option<Response>, FetchError> {
    let deadline = Instant::now() + limits.timeout;
    let mut uri = allowed(url).ok_or_else(|| FetchError::Refused { url: url.to_owned() })?;
    let first = uri.clone();
    check_headers(url, headers)?;
    for _ in 0..=MAX_REDIRECTS {
        let transport = |error: ureq::Error| match &error {
            ureq::Error::Io(error) if is_this_machine(error) => {
                let host = if uri == first { url.to_owned() } else { uri.to_string() };
                FetchError::ThisMachine { url: url.to_owned(), host }
            }
            _ => FetchError::Transport { url: url.to_owned(), source: error.into() },
        };
        let remaining = deadline.saturating_duration_since(Instant::now());
        let agent = agent(&uri, (remaining, None), Host::Checked, None)
            .map_err(|error| FetchError::Transport { url: url.to_owned(), source: error.into() })?;
        let mut request = agent.get(uri.clone());
        if let Some(etag) = etag {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        if uri.scheme() == first.scheme() && uri.authority() == first.authority() {
            for (name, value) in headers {
                request = request.header(name, value);
            }
        }
        let mut response = request.call().map_err(transport)?;
        let status = response.status();
        if let Some(location) = redirect(status, response.headers().get(header::LOCATION)) {
            let refused = || FetchError::Redirect { url: url.to_owned(), to: location.clone() };
            uri = redirect_target(&uri, &location).ok_or_else(refused)?;
            continue;
        }
        if status == StatusCode::NOT_MODIFIED && etag.is_some() {
            return Ok(None);
        }
        if !status.is_success() {
            return Err(FetchError::Status { url: url.to_owned(), status: status.as_u16() });
        }
        let etag =
            response.headers().get(header::ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        // Read one more byte than allowed, to distinguish content of exactly this size from larger content.
        return match response.body_mut().with_config().limit(limits.max_bytes + 1).read_to_vec() {
            Ok(bytes) if bytes.len() as u64 <= limits.max_bytes => Ok(Some(Response { bytes, etag })),
            Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => {
                Err(FetchError::TooLarge { url: url.to_owned(), max_bytes: limits.max_bytes })
            }
            Err(error) => Err(transport(error)),
        };
    }
    Err(FetchError::Redirect { url: url.to_owned(), to: "more than 5 URLs in a row".to_owned() })
}

/// Fetches `url` and compares the content with its expected checksum.
///
/// If `expected` is `None`, the content isn't checked, as with [`get`]. Blocks.
///
/// # Errors
/// Returns [`FetchError::ChecksumMismatch`] if the content has another SHA-256, and otherwise the errors of [`get`].
pub fn get_verified(url: &str, expected: Option<Sha256>, limits: Limits) -> Result<Vec<u8>, FetchError> {
    verified(url, get(url, limits)?, expected)
}

/// Returns the content of `url` if it has the expected checksum.
pub(crate) fn verified(url: &str, bytes: Vec<u8>, expected: Option<Sha256>) -> Result<Vec<u8>, FetchError> {
    match expected {
        Some(expected) if Sha256::of(&bytes) != expected => {
            let actual = Sha256::of(&bytes);
            Err(FetchError::ChecksumMismatch { url: url.to_owned(), expected, actual })
        }
        _ => Ok(bytes),
    }
}

/// Fetches the text of `url`, without a byte order mark.
///
/// # Errors
/// Returns [`FetchError::NotText`] if the content is not UTF-8, and otherwise the errors of [`get`].
pub fn get_text(url: &str, limits: Limits) -> Result<String, FetchError> {
    text_of(url, get(url, limits)?)
}

/// Decodes content as UTF-8 and removes a byte order mark. `url` is only used in the error.
///
/// # Errors
/// Returns [`FetchError::NotText`] if the content is not UTF-8.
pub fn text_of(url: &str, bytes: Vec<u8>) -> Result<String, FetchError> {
    let text = String::from_utf8(bytes).map_err(|_| FetchError::NotText { url: url.to_owned() })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Returns true if [`get`] accepts `url`. Use it to check a configuration without a request.
pub fn is_allowed(url: &str) -> bool {
    allowed(url).is_some()
}

/// Resolves `reference` in a document at `base`. Returns `None` if a redirect from `base` to the result would not be allowed.
pub fn resolve(base: &str, reference: &str) -> Option<String> {
    Some(redirect_target(&allowed(base)?, reference)?.to_string())
}

/// Percent-encodes a relative path for a URL ([RFC 3986 §2](https://www.rfc-editor.org/rfc/rfc3986#section-2)). Everything
/// except unreserved characters and `/` is encoded, including `%` itself.
pub fn percent_encoded(path: &str) -> String {
    use std::fmt::Write;
    path.bytes().fold(String::with_capacity(path.len()), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

/// Resolves `location` against `uri`. Returns `None` if it is not allowed. A server on the network must not redirect to a
/// service on this machine.
fn redirect_target(uri: &Uri, location: &str) -> Option<Uri> {
    allowed(&join(uri, location)).filter(|next| is_plain(uri) || !is_plain(next))
}

fn allowed(url: &str) -> Option<Uri> {
    let uri: Uri = url.trim().parse().ok()?;
    let allowed = match uri.scheme_str()? {
        "https" => !uri.host()?.is_empty() && !is_disguised(&uri),
        "http" => is_plain(&uri),
        _ => false,
    };
    allowed.then_some(uri)
}

/// Checks that no header chooses another host than the URL. Servers with several hosts would obey it, and what may be done with a URL
/// is decided by its host.
fn check_headers(url: &str, headers: &[(String, String)]) -> Result<(), FetchError> {
    let is_host = |(name, _): &(String, String)| name.trim().eq_ignore_ascii_case(header::HOST.as_str());
    if headers.iter().any(is_host) {
        return Err(FetchError::HostHeader { url: url.to_owned() });
    }
    Ok(())
}

fn is_this_machine(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(error) if error.is::<ThisMachine>())
}

/// Creates the client for requests to `uri`. The limits are for the whole request, and for the headers of the response.
///
/// # Errors
/// Returns an error if the user has set root certificates that can't be read.
fn agent(
    uri: &Uri,
    (timeout, answer): (Duration, Option<Duration>),
    host: Host,
    authorities: Option<&Authorities>,
) -> Result<ureq::Agent, AuthoritiesError> {
    let mut config = ureq::Agent::config_builder()
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_global(Some(timeout.max(Duration::from_millis(1))))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(answer)
        .user_agent(concat!("skills-core/", env!("CARGO_PKG_VERSION")));
    if is_plain(uri) {
        config = config.proxy(None);
    }
    let of_user = match authorities {
        None if uri.scheme_str() == Some("https") => Authorities::of_environment()?,
        _ => None,
    };
    if let Some(authorities) = authorities.or(of_user.as_ref()) {
        config = config.tls_config(TlsConfig::builder().root_certs(authorities.0.clone()).build());
    }
    let connector = DefaultConnector::default();
    Ok(match host {
        Host::Checked => ureq::Agent::with_parts(config.build(), connector, Checked { uri: uri.clone() }),
        Host::Chosen => ureq::Agent::with_parts(config.build(), connector, DefaultResolver::default()),
    })
}

fn redirect(status: StatusCode, location: Option<&header::HeaderValue>) -> Option<String> {
    let moved = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    location.filter(|_| moved)?.to_str().ok().map(str::to_owned)
}

/// Resolves `location` against `base` ([RFC 3986 §5.2](https://www.rfc-editor.org/rfc/rfc3986#section-5.2)). Dot segments are
/// left in place, because servers resolve them.
fn join(base: &Uri, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let scheme = base.scheme_str().unwrap_or("https");
    if let Some(rest) = location.strip_prefix("//") {
        return format!("{scheme}://{rest}");
    }
    let authority = base.authority().map_or("", |authority| authority.as_str());
    if location.starts_with('/') {
        return format!("{scheme}://{authority}{location}");
    }
    let parent = base.path().rsplit_once('/').map_or("", |(parent, _)| parent);
    format!("{scheme}://{authority}{parent}/{location}")
}

#[cfg(test)]
mod tests;
