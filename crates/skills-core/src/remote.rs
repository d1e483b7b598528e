//! Reads the skills that a web site publishes: [`RemoteIndex`] lists them, [`Remote`] is the location of one of them.
//!
//! A site publishes its skills under a [well-known URL](https://agentskills.io/well-known-uri): an index with names and
//! descriptions, and the files, which we fetch on demand. All requests go through [`crate::fetch`]: only `https` (or `http`
//! on loopback), with limits on size and time, and with checked redirects. If the index has a SHA-256 for a file, content
//! with another checksum is rejected.
//!
//! The model can read the files that the index lists. If the index doesn't list the files of a skill, the model can read any
//! path under the skill's URL. Files are not stored on disk, and scripts are never run: install the skill first to run its
//! scripts, so that you can review them.

mod entry;
mod error;
mod index;

pub use error::RemoteError;
pub use index::{IndexText, MAX_INDEX_BYTES, RemoteIndex};

pub use crate::{
    files::MAX_REMOTE_FILE_BYTES as MAX_FILE_BYTES,
    skill::{Remote, RemoteFile, Sha256},
};

#[cfg(test)]
mod tests;
