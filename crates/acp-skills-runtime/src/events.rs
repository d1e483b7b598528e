#![doc = include_str!("events/schema.md")]
//!
//! # In Rust
//!
//! An [`Event`] is one line. An [`Observer`](crate::activity::Observer) receives each event as
//! [`Activity::Recorded`](crate::activity::Activity::Recorded), even if no file is written. [`EventFile`] writes
//! records, and [`activity::record_to`](crate::activity::record_to) creates an observer that does so. The module
//! [`read`] reads them.
//!
//! | file | owns |
//! |---|---|
//! | `schema.md` | the documentation of all events; a test compares it with the events that are written |
//! | `file` | writing a record in the background |
//! | `read` | reading a record |

mod file;
pub mod read;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::file::{Appender, EventFile};
pub use acp_skills_intercept::events::*;

/// The version of the schema. It is incremented if a field is removed or changes its meaning, but not for new fields
/// or events.
pub const VERSION: u32 = 1;
/// The maximum length of the id of a session in bytes.
const MAX_ID: usize = 256;

/// One event of the record, which is one line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// The version of the schema: [`VERSION`].
    pub v: u32,
    /// The time of the event, or the end of the call that it reports. The precision is one millisecond.
    pub time: Timestamp,
    /// The kind of the event and its fields.
    #[serde(flatten)]
    pub what: EventKind,
    /// The agent's id of the session, if the event belongs to one. It is cut at 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl Event {
    /// Creates a record with the current time.
    pub fn now(session: Option<String>, what: EventKind) -> Self {
        let now = Timestamp::now();
        // Round the time to milliseconds to keep the lines short.
        let time = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
        Self { v: VERSION, time, what, session: session.map(short_id) }
    }
}

/// Cuts the id of a session. Each event has a copy of it, so an agent could fill the memory and the disk with a few short calls in a
/// session with a long id.
pub(crate) fn short_id(mut id: String) -> String {
    if id.len() > MAX_ID {
        id.truncate(id.floor_char_boundary(MAX_ID));
        id.shrink_to_fit();
    }
    id
}
