#![doc = include_str!("events/schema.md")]
//!
//! # In Rust
//!
//! [`Record`] is one line; an [`Observer`](crate::activity::Observer) gets each as
//! [`Activity::Recorded`](crate::activity::Activity::Recorded), whether or not it is written anywhere. [`EventFile`]
//! writes them ([`activity::record_to`](crate::activity::record_to) connects the two), [`read`] reads them.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | what an event says |
//! | `schema.md` | the same for people; a test compares both |
//! | `file` | writing, in the background |
//! | `read` | reading, whatever is in the file |

mod file;
pub mod read;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::file::{Appender, EventFile};
pub use acp_skills_intercept::events::*;

/// The version of the schema. It grows when a field changes its meaning or goes; not for new fields and new events.
pub const VERSION: u32 = 1;

/// One event, as it is written: one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// [`VERSION`].
    pub v: u32,
    /// When it happened, or was over.
    pub time: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub what: EventKind,
    /// The agent's id of the session, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl Record {
    /// Something that happens now.
    pub fn now(session: Option<String>, what: EventKind) -> Self {
        let now = Timestamp::now();
        // Milliseconds are precise enough, and short.
        let time = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
        Self { v: VERSION, time, what, session }
    }
}
