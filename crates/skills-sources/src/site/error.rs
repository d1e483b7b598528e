//! [`RemoteError`]: the reason that the index of a site is not available.

use skills_core::{fetch::FetchError, text::shown};

/// An error while fetching or parsing the index of a site. Each message contains the URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// A request failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Each URL at which the site may have an index answered 404.
    #[error("no skill index found at {}; tried {}", shown(url), shown(&tried.join(" and ")))]
    NoIndex {
        /// The URL that the caller passed.
        url: String,
        /// The URLs that answered 404, in the order in which they were tried.
        tried: Vec<String>,
    },
    /// The text is not an index.
    #[error("failed to parse skill index from {}: {}", shown(url), shown(message))]
    Index {
        /// The URL of the text.
        url: String,
        /// The parser's message, with line and column.
        message: String,
    },
}
