//! [`exchange`]: one HTTP request with any method, without redirects.

use std::{
    io::Read,
    sync::{Arc, OnceLock},
    time::Duration,
};

use ureq::{
    Body,
    http::{self, header},
};

use super::{Authorities, FetchError, agent, allowed, check_headers, is_this_machine, redirect};

/// A request of [`exchange`].
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method, for example `POST`.
    pub method: &'a str,
    /// The URL: `https`, or `http` on loopback, unless [`host`](Self::host) allows more.
    pub url: &'a str,
    /// Restricts the URL to certain hosts.
    pub host: Host,
    /// The root certificates that are trusted. With `None`, those of the user's environment or of Mozilla are used.
    pub authorities: Option<&'a Authorities>,
    /// The headers.
    pub headers: &'a [(String, String)],
    /// The body, which may be empty.
    pub body: &'a [u8],
    /// The time limit for the request and for reading the response.
    pub timeout: Duration,
    /// The time limit for the headers of the response, if it is another one.
    pub answer: Option<Duration>,
}

/// The hosts that can be used in a [`Request`].
#[derive(Debug, Clone, Copy, Default)]
pub enum Host {
    /// Allows any host with `https`, and only loopback with `http`. Refuses a URL that uses this machine under another name.
    #[default]
    Checked,
    /// Allows any host with `https` or `http`. This should only be used if the URL was provided by the user or an administrator.
    Chosen,
}

/// Interrupts one [`exchange`] from another thread. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<OnceLock<ureq::Agent>>);

impl Interrupt {
    /// Closes the connection. The request fails, and so does reading the response. A request that has not begun fails when it begins.
    pub fn interrupt(&self) {
        self.0.get_or_init(ureq::Agent::new_with_defaults).clone().shutdown();
    }
}

/// The response to a [`Request`], with any status except a redirect.
#[derive(Debug)]
pub struct Exchange {
    /// The HTTP status code.
    pub status: u16,
    headers: http::HeaderMap,
    body: Body,
}

impl Exchange {
    /// Returns a header if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the body, which is read from the network. Its length is not limited.
    pub fn into_reader(self) -> impl Read + Send {
        self.body.into_reader()
    }
}

/// Returns true if the URL can be used with [`Host::Chosen`].
pub fn is_web_url(url: &str) -> bool {
    chosen(url).is_some()
}

/// Parses a URL. Returns `None` if the scheme is not `https` or `http`, or if there is no host.
fn chosen(url: &str) -> Option<http::Uri> {
    let uri: http::Uri = url.trim().parse().ok()?;
    let is_web = matches!(uri.scheme_str(), Some("https" | "http"));
    Some(uri).filter(|uri| is_web && uri.host().is_some_and(|host| !host.is_empty()))
}

/// Sends a request. Redirects are not followed, because the headers and the body are meant for this URL only. Blocks until the
/// headers of the response have arrived. `interrupt` is for this request only.
///
/// # Errors
/// - [`FetchError::Refused`] if the URL, the method or a header is not allowed.
/// - [`FetchError::HostHeader`] if a header chooses the host.
/// - [`FetchError::Redirect`] if the server redirects.
/// - [`FetchError::ThisMachine`] if the name of the host resolves to this machine.
/// - [`FetchError::Transport`] if the request fails, or exceeds the timeout.
pub fn exchange(request: &Request<'_>, interrupt: &Interrupt) -> Result<Exchange, FetchError> {
    let url = request.url;
    let refused = || FetchError::Refused { url: url.to_owned() };
    let uri = match request.host {
        Host::Checked => allowed(url),
        Host::Chosen => chosen(url),
    };
    let uri = uri.ok_or_else(refused)?;
    check_headers(url, request.headers)?;
    let mut builder = http::Request::builder().method(request.method).uri(uri.clone());
    for (name, value) in request.headers {
        builder = builder.header(name, value);
    }
    let transport = |error: ureq::Error| match &error {
        ureq::Error::Io(error) if is_this_machine(error) => {
            FetchError::ThisMachine { url: url.to_owned(), host: url.to_owned() }
        }
        _ => FetchError::Transport { url: url.to_owned(), source: error.into() },
    };
    let agent = if let Some(agent) = interrupt.0.get() {
        agent.clone()
    } else {
        let agent = agent(&uri, (request.timeout, request.answer), request.host, request.authorities)
            .map_err(|error| FetchError::Transport { url: url.to_owned(), source: error.into() })?;
        interrupt.0.get_or_init(|| agent).clone()
    };
    let response = if request.body.is_empty() {
        agent.run(builder.body(()).map_err(|_| refused())?)
    } else {
        agent.run(builder.body(request.body).map_err(|_| refused())?)
    };
    let response = response.map_err(transport)?;
    let status = response.status();
    if let Some(to) = redirect(status, response.headers().get(header::LOCATION)) {
        return Err(FetchError::Redirect { url: url.to_owned(), to });
    }
    let (parts, body) = response.into_parts();
    Ok(Exchange { status: parts.status.as_u16(), headers: parts.headers, body })
}
