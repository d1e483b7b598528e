//! Tests of the proxy in chains: under the SDK's conductor, and in front of agents without a conductor. The agents and
//! clients are built with the SDK's types.
//!
//! | file | contents |
//! |---|---|
//! | `fixture` | the agent and the client, and functions that connect them |
//! | `drafts` | the drafts about skills, as far as the SDK forwards them |
//! | `embedded` | [`acp_skills::SkillsProxy`] in chains within one process |
//! | `ends` | the end of such a component, and that it leaves nothing behind |
//! | `program` | the binary as a component of such a chain |
//! | `version2` | a chain that speaks version 2 of the protocol |
//!
//! `tests/proxy/chain.rs` tests the binary under a conductor that is played line by line, and under the published
//! conductor.

mod drafts;
mod embedded;
mod ends;
mod fixture;
mod program;
mod version2;
