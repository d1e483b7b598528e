//! A message on the wire: one line of JSON-RPC, looked at where it lies, forwarded as its own bytes, edited in place.
//!
//! ACP over stdio is newline-delimited JSON-RPC 2.0
//! ([transports](https://agentclientprotocol.com/protocol/v1/transports)). A typed parse would lose what real peers
//! send beyond the schema, so nothing here knows ACP's types: [`Message`] finds the envelope's members, [`Edit`]
//! changes spans, and a line that nobody edits is never copied. Batches (arrays) are messages that we do not look into.

pub mod build;
pub mod bytes;
mod classifier;
mod codes;
mod edit;
pub mod json;
mod message;
pub mod successor;
mod text;

pub use self::{
    classifier::{Class, Classifier},
    codes::{AUTH_REQUIRED, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, NOT_STARTED, REQUEST_CANCELLED},
    edit::Edit,
    json::Node,
    message::{Id, Kind, Message},
};

/// The example in the README is true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
