//! Reads the skills that a web site publishes: [`RemoteIndex`] lists them.
//!
//! A site publishes its skills under a [well-known URL](https://agentskills.io/well-known-uri): an index with names and
//! descriptions, and the files, which are fetched on demand. All requests go through [`skills_core::fetch`]: only `https` (or
//! `http` on loopback), with limits on size and time, and with checked redirects. If the index has a SHA-256 for a file, content
//! with another checksum is rejected.
//!
//! The model can read the files that the index lists. If the index doesn't list the files of a skill, the model can read any
//! path under the skill's URL. This module stores no files on disk, and scripts are never run from a web site: install the skill
//! first to run its scripts, so that you can review them.

mod entry;
mod error;
mod index;

pub(crate) use self::entry::base_of;
pub use self::{
    error::RemoteError,
    index::{IndexText, MAX_INDEX_BYTES, RemoteIndex},
};

#[cfg(test)]
mod tests;
