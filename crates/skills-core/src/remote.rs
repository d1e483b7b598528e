//! Skills that a web site offers: [`RemoteIndex`] lists them, [`Remote`] is where one of them is.
//!
//! Sites publish skills below a [well-known address](https://agentskills.io/well-known-uri): an index with names and
//! descriptions, and the files, which are fetched when they are asked for. Everything goes through [`crate::fetch`]:
//! `https` or loopback, limits of size and time, redirects checked. Where the index gives a SHA-256, only content that
//! matches it is used.
//!
//! A model reads what the index names; where the index does not say which files a skill has, whatever is below the
//! skill's address. Nothing is stored, and scripts are never run: install a skill first to run its scripts, so that you
//! can read them.

pub(crate) mod error;
mod index;

pub use error::RemoteError;
pub use index::{IndexText, MAX_INDEX_BYTES, RemoteIndex};

pub use crate::{
    files::MAX_REMOTE_FILE_BYTES as MAX_FILE_BYTES,
    skill::{Remote, RemoteFile, Sha256},
};

#[cfg(test)]
mod tests;
