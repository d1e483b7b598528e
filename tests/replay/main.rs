//! Replays recorded conversations with real agents through the interceptor.
//!
//! | file | owns |
//! |---|---|
//! | `direct` | `recordings/direct`, made without the proxy: with the proxy, both sides must see the same messages |
//! | `remembered` | `recordings/proxied`, in which the agent's history holds text of ours: none of it may reach the client |
//! | `titles` | the titles of calls of our tools in `recordings/proxied` |
//! | `compaction` | `recordings/compacted`, in which the agent compacts the conversation; all others restore nothing, such as `recordings/uncompacted`, in which a compaction fails |
//! | `clients` | `recordings/clients`: the content blocks that clients send for commands and shared files |
//! | `generated` | conversations with every message of the schema |
//! | `families` | valid messages from the schema |
//! | `play` | the interceptor through which all conversations are replayed |
//! | `recording` | reading recordings |
//! | `ours` | finding and removing text of ours in a line |
//!
//! A recording is a file with lines `{"dir":"client"|"agent","msg":…}`. All files in a directory are replayed, and each
//! `initialize` starts a new proxy. Names, paths and tokens in recordings are replaced, and long texts are shortened.

mod clients;
mod compaction;
mod direct;
mod families;
mod generated;
mod ours;
mod play;
#[expect(clippy::disallowed_methods, reason = "recordings are files")]
mod recording;
mod remembered;
mod titles;
