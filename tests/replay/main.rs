//! Conversations with real agents, played through the interceptor again.
//!
//! | file | owns |
//! |---|---|
//! | `direct` | `recordings/direct`, which were had without a proxy: with one in between, each side sees the same |
//! | `remembered` | `recordings/proxied`, in which agents remember text of ours: the client sees no word of it |
//! | `titles` | the same: what people see of calls of our tools |
//! | `clients` | `recordings/clients`: how clients put together what was typed and what goes with it |
//! | `generated` | what agents and clients might say besides, made from the schema |
//! | `play` | the interceptor that all of it is played through |
//! | `recording` | reading recordings |
//! | `ours` | what in a line is ours, and the line without it |
//!
//! A recording is a file of lines `{"dir":"client"|"agent","msg":…}`; every file that is there is played, and each
//! `initialize` begins a new process. Names, paths and tokens in them were replaced, long texts shortened.

mod clients;
mod direct;
mod generated;
mod ours;
mod play;
#[expect(clippy::disallowed_methods, reason = "recordings are files")]
mod recording;
mod remembered;
mod titles;
