//! Conversations with real agents, replayed through the interceptor.
//!
//! | file | contents |
//! |---|---|
//! | `direct` | `recordings/direct`, which were recorded without a proxy: with one in between, each side sees the same messages |
//! | `remembered` | `recordings/proxied`, in which agents repeat text of ours: the client never sees it |
//! | `titles` | the same recordings: the titles of calls of our tools |
//! | `clients` | `recordings/clients`: how clients arrange the typed text and attached files |
//! | `generated` | messages that agents and clients might send as well, generated from the schema |
//! | `play` | the interceptor that all conversations pass through |
//! | `recording` | reading recordings |
//! | `ours` | finds and removes our text in a line |
//!
//! A recording is a file of lines `{"dir":"client"|"agent","msg":…}`. All recordings are replayed, and each `initialize`
//! starts a new process. Names, paths and tokens in them were replaced, and long texts shortened.

mod clients;
mod direct;
mod generated;
mod ours;
mod play;
#[expect(clippy::disallowed_methods, reason = "recordings are files")]
mod recording;
mod remembered;
mod titles;
