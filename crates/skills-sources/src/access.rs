//! Requests to the servers of sources, with the user's credentials.
//!
//! | file | responsible for |
//! |---|---|
//! | `netrc` | the user's `.netrc` file |
//!
//! Credentials are only sent to the server of the source itself: after a redirect to another scheme, host or port, the request has none.
//! They are not part of any message.

mod netrc;

use std::{
    fmt,
    fs::File,
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use skills_core::fetch::{self, Authorities, Exchange, FetchError, Host, Interrupt, Request};

use super::git::{GitError, is_unknown_authority, mebibytes};

/// The maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// The time within which a server must answer a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the user's settings for the servers of sources.
pub trait Credentials: fmt::Debug + Send + Sync {
    /// Returns the settings for a source. `url` is the URL of an archive or a web site, or an npm package such as `npm:@acme/skills`. Blocks.
    ///
    /// # Errors
    /// Returns an error if a secret is not available. Its message must not contain a secret.
    fn access(&self, url: &str) -> Result<Access, Box<dyn std::error::Error + Send + Sync>>;
}

/// The user's settings for the server of a source.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Access {
    /// The headers of each request. If there are none, the `.netrc` file of the user is used.
    pub headers: Vec<(String, String)>,
    /// The directory of the configuration file that contains the source. Its `.npmrc` may name the registries of packages.
    pub directory: Option<PathBuf>,
}

impl Access {
    /// Creates settings with headers.
    pub fn new(headers: Vec<(String, String)>, directory: Option<PathBuf>) -> Self {
        Self { headers, directory }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers = self.headers.iter().map(|(name, _)| name);
        f.debug_struct("Access").field("headers", &headers.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// A server, and the headers that only this server may receive.
#[derive(Default)]
pub(super) struct Server {
    origin: String,
    headers: Vec<(String, String)>,
    trust: Trust,
}

/// The root certificates that are trusted in addition to the usual ones, or instead of them.
#[derive(Default)]
pub(super) struct Trust {
    /// The certificates that replace the usual ones.
    pub(super) only: Option<Authorities>,
    /// The certificates for servers that the usual ones don't know.
    pub(super) more: Option<Authorities>,
}

impl Server {
    /// Returns the server of `url`. Without headers, the user's `.netrc` file is used.
    pub(super) fn new(url: &str, mut headers: Vec<(String, String)>) -> Self {
        let origin = origin(url);
        if headers.is_empty() {
            headers.extend(netrc::login(host(&origin)).map(|login| basic(&login)));
        }
        Self { origin, headers, trust: Trust::default() }
    }

    /// Sets the root certificates.
    pub(super) fn trusting(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// Returns the headers for a request to `url`.
    pub(super) fn headers_for(&self, url: &str) -> &[(String, String)] {
        if origin(url) == self.origin { &self.headers } else { &[] }
    }

    /// Sends a GET request, and follows redirects. The time limit is for all of them, and for reading the content. Returns `None` if the
    /// content is not newer than `known`.
    ///
    /// # Errors
    /// Returns [`GitError::Download`] if the request fails, or if the server answers with an error.
    pub(super) fn get(
        &self,
        url: &str,
        accept: &str,
        known: Option<&Validator>,
        timeout: Duration,
    ) -> Result<Option<Exchange>, GitError> {
        let mut next = url.to_owned();
        let deadline = Instant::now() + timeout;
        for _ in 0..=MAX_REDIRECTS {
            let mut headers = self.headers_for(&next).to_vec();
            headers.push(("accept".to_owned(), accept.to_owned()));
            headers.extend(known.map(Validator::header));
            let send = |authorities| {
                let request = Request {
                    method: "GET",
                    url: &next,
                    host: Host::Checked,
                    authorities,
                    headers: &headers,
                    body: &[],
                    timeout: deadline.saturating_duration_since(Instant::now()),
                    answer: Some(ANSWER_TIMEOUT),
                };
                fetch::exchange(&request, &Interrupt::default())
            };
            let answer = match (send(self.trust.only.as_ref()), &self.trust.more) {
                // The request was not sent, because the certificate is checked before.
                (Err(error), Some(more)) if is_unknown_authority(&why(&error)) => send(Some(more)),
                (answer, _) => answer,
            };
            let answer = match answer {
                Err(FetchError::Redirect { to, .. }) => {
                    let target = fetch::resolve(&next, &to);
                    next = target.ok_or_else(|| failed(&next, "a redirect is not allowed"))?;
                    continue;
                }
                answer => answer.map_err(|error| failed(&next, why(&error)))?,
            };
            return match answer.status {
                200 => Ok(Some(answer)),
                304 if known.is_some() => Ok(None),
                status => {
                    let why = format!("server returned status {status}");
                    Err(GitError::Download {
                        host: host(&origin(&next)).to_owned(),
                        why,
                        status: Some(status),
                    })
                }
            };
        }
        Err(failed(url, "too many redirects"))
    }

    /// Downloads the content of `url` to `file`. Returns what the server needs to know to say that the content has not changed.
    ///
    /// # Errors
    /// Returns the errors of [`get`](Self::get), [`GitError::LargeArchive`] if the content has more than `max` bytes, and an error if
    /// the file can't be written.
    pub(super) fn download(
        &self,
        url: &str,
        file: &mut File,
        max: u64,
        timeout: Duration,
    ) -> Result<Option<Validator>, GitError> {
        let Some(answer) = self.get(url, "*/*", None, timeout)? else {
            return Err(failed(url, "server returned status 304"));
        };
        let validator = Validator::of(&answer);
        let received = read_to(answer, file, max).map_err(|error| failed(url, error.to_string()))?;
        if received > max {
            return Err(GitError::LargeArchive(format!("it has more than {}", mebibytes(max))));
        }
        Ok(validator)
    }
}

/// Reads the body of an answer, at most one byte more than `max`. Returns the number of bytes.
pub(super) fn read_to(answer: Exchange, target: &mut dyn io::Write, max: u64) -> io::Result<u64> {
    let mut body: Box<dyn io::Read> = Box::new(answer.into_reader());
    let mut target = target;
    io::copy(&mut io::Read::take(&mut body, max + 1), &mut target)
}

/// The `ETag` or the date of a content, with which a server can say that it has not changed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Validator {
    is_date: bool,
    value: String,
}

impl Validator {
    /// Returns the validator of an answer, if the server sent one.
    pub(super) fn of(answer: &Exchange) -> Option<Self> {
        let of = |name: &str, is_date| Some(Self { is_date, value: answer.header(name)?.to_owned() });
        of("etag", false).or_else(|| of("last-modified", true))
    }

    fn header(&self) -> (String, String) {
        let name = if self.is_date { "if-modified-since" } else { "if-none-match" };
        (name.to_owned(), self.value.clone())
    }
}

/// Returns the header for a user and a password.
pub(super) fn basic((user, password): &(String, String)) -> (String, String) {
    let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
    ("authorization".to_owned(), format!("Basic {encoded}"))
}

/// Returns the scheme, the host and the port of a URL.
pub(super) fn origin(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let default = if scheme == "https" { ":443" } else { ":80" };
    format!("{scheme}://{}", authority.strip_suffix(default).unwrap_or(&authority))
}

/// Returns the host of an origin, without the port.
fn host(origin: &str) -> &str {
    let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Returns the error of a request. The URL is not part of the message, because the target of a redirect can contain a signature.
pub(super) fn failed(url: &str, why: impl Into<String>) -> GitError {
    GitError::Download { host: host(&origin(url)).to_owned(), why: why.into(), status: None }
}

/// Returns the reason of an error without the URL.
fn why(error: &FetchError) -> String {
    match error {
        FetchError::Refused { .. } => "the URL or a header is not allowed".to_owned(),
        FetchError::ThisMachine { .. } => "its address is that of this machine".to_owned(),
        error => error.cause().unwrap_or_else(|| "the request failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_server_of_the_source_gets_the_headers() {
        let headers = vec![("authorization".to_owned(), "secret".to_owned())];
        let server = Server::new("https://Example.com/a.zip", headers.clone());
        for (url, expected) in [
            ("https://example.com/other?x", true),
            ("https://example.com:443/", true),
            ("https://example.com:444/", false),
            ("http://example.com/a.zip", false),
            ("https://example.com.evil.example/", false),
            ("https://evil.example/example.com", false),
            ("https://sub.example.com/", false),
        ] {
            assert_eq!(!server.headers_for(url).is_empty(), expected, "{url}");
        }
        let access = Access::new(headers, None);
        assert!(!format!("{access:?}").contains("secret"));
    }
}
