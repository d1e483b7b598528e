//! [`RemoteError`]: why the skills of a site, or one of their files, cannot be had.

use crate::{fetch::FetchError, skill::Sha256, text::shown};

/// Why a site's skills, or one of their files, cannot be had. Every message names the address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// It cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// No address at which an index may be has one.
    #[error("there is no index of skills at {}: neither {}", shown(url), shown(&tried.join(" nor ")))]
    NoIndex {
        /// The address that was given.
        url: String,
        /// The addresses that answered 404.
        tried: Vec<String>,
    },
    /// What is at the address is not an index.
    #[error("the index of skills at {} cannot be read: {}", shown(url), shown(message))]
    Index {
        /// The address.
        url: String,
        /// What is wrong.
        message: String,
    },
    /// The content is not what the index promised.
    #[error("{} is not what its index says: its SHA-256 is {actual} instead of {expected}", shown(url))]
    Changed {
        /// The address.
        url: String,
        /// By the index.
        expected: Sha256,
        /// Of what came.
        actual: Sha256,
    },
}
