//! Reads and edits a line of JSON-RPC in place, so that a proxy can forward the rest of the line unchanged.
//!
//! ACP over stdio is newline-delimited JSON-RPC 2.0
//! ([transports](https://agentclientprotocol.com/protocol/v1/transports)). A typed parse would lose the
//! fields that real peers send in addition to the schema, so this crate doesn't use ACP's types. [`Message`] finds the members of
//! the envelope, and [`Edit`] replaces spans of the line. A line without edits is never copied. Batches (arrays) are not parsed.

pub mod build;
pub mod bytes;
mod classifier;
mod codes;
mod edit;
pub mod json;
mod message;
mod skim;
pub mod successor;
mod text;

pub use self::{
    classifier::{Class, Classifier},
    codes::{
        AUTH_REQUIRED, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, NOT_STARTED, REQUEST_CANCELLED,
        RESOURCE_NOT_FOUND,
    },
    edit::Edit,
    json::Node,
    message::{Id, Kind, Message},
    skim::Skim,
};

/// Runs the example in the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
