//! [`FetchError`]: the reasons why a URL can't be fetched, in words that models may see.

use crate::skill::Sha256;

/// The maximum length of the reason of an error, in characters.
pub(super) const MAX_CAUSE_CHARS: usize = 200;

/// An error while fetching a URL. Each message contains the URL, without parts that can be secret: a user, a password, and a query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL is neither `https://…` nor `http://…` on loopback.
    #[error("failed to fetch {}: use https, or http for a loopback address", shown(url))]
    Refused {
        /// The URL.
        url: String,
    },
    /// The server redirected to a URL that is not allowed, or redirected more than 5 times. The message doesn't contain the target,
    /// because models see it, and the server can write any text there.
    #[error("failed to fetch {}: server redirected to a URL that is not allowed, or too often", shown(url))]
    Redirect {
        /// The requested URL.
        url: String,
        /// The target of the redirect.
        to: String,
    },
    /// The host is this machine, but the URL doesn't name it in a plain form: `localhost`, `127.0.0.1` or `[::1]`. The message doesn't
    /// contain the target of a redirect.
    #[error(
        "failed to fetch {}: {} is this machine; use `localhost`, `127.0.0.1` or `[::1]` for it",
        shown(url),
        if host == url { "the host" } else { "the target of a redirect" }
    )]
    ThisMachine {
        /// The requested URL.
        url: String,
        /// The URL whose host is this machine: the same one, or the target of a redirect.
        host: String,
    },
    /// A header would choose another host than the URL.
    #[error("failed to fetch {}: header `Host` is not allowed, because the URL names the host", shown(url))]
    HostHeader {
        /// The requested URL.
        url: String,
    },
    /// The server answered with a status other than success.
    #[error("failed to fetch {}: server returned status {status}", shown(url))]
    Status {
        /// The requested URL.
        url: String,
        /// The HTTP status code.
        status: u16,
    },
    /// The content is larger than [`Limits::max_bytes`](super::Limits::max_bytes).
    #[error("failed to fetch {}: content is larger than {max_bytes} bytes", shown(url))]
    TooLarge {
        /// The requested URL.
        url: String,
        /// The limit in bytes.
        max_bytes: u64,
    },
    /// The content is not UTF-8 text.
    #[error("failed to fetch {}: content is not valid UTF-8", shown(url))]
    NotText {
        /// The requested URL.
        url: String,
    },
    /// The checksum of the content doesn't match the expected one.
    #[error(
        "failed to fetch {}: checksum mismatch: expected SHA-256 {expected}, but got {actual}",
        shown(url)
    )]
    ChecksumMismatch {
        /// The requested URL.
        url: String,
        /// The SHA-256 that the caller passed.
        expected: Sha256,
        /// The SHA-256 of the received content.
        actual: Sha256,
    },
    /// The request failed, for example because of the network, TLS, or the timeout.
    #[error("failed to fetch {}: {}", shown(url), cause(&**source))]
    Transport {
        /// The requested URL.
        url: String,
        /// The error of the HTTP client.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl FetchError {
    /// Returns the reason of a [`Transport`](Self::Transport) error without the URL.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Transport { source, .. } => Some(cause(&**source)),
            _ => None,
        }
    }
}

/// Returns the text of the HTTP client's error. Models see it, so it must not contain text of the server, or of a host between: TLS lists
/// all names in the certificate of another host.
fn cause(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    const NAMES: &str = "; certificate is only valid for";
    let text = error.to_string();
    let text = text.split_once(NAMES).map_or(&*text, |(before, _)| before);
    let end = text.char_indices().nth(MAX_CAUSE_CHARS).map_or(text.len(), |(end, _)| end);
    crate::text::shown(&text[..end]).into_owned()
}

/// Returns a URL for messages.
fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (place, query) = rest.split_once(['?', '#']).map_or((rest, ""), |(place, _)| (place, "?…"));
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let separator = if scheme.is_empty() { "" } else { "://" };
    crate::text::shown(&format!("{scheme}{separator}{host}{path}{query}")).into_owned()
}
