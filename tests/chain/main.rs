//! Tests the proxy in proxy chains: under the SDK's conductor, and in front of an agent without a conductor. The agent and the
//! client use the SDK's types.
//!
//! | file | owns |
//! |---|---|
//! | `fixture` | the agent and the client, and connecting them |
//! | `drafts` | the draft extensions for skills, in the fields that the SDK forwards |
//! | `embedded` | [`acp_skills::SkillsProxy`] in chains within one process |
//! | `shutdown` | how such a component ends, and that it leaves nothing running |
//! | `program` | the binary as a component of a chain |
//! | `version2` | a chain with version 2 of the protocol |
//!
//! `tests/proxy/chain.rs` tests the binary under a scripted conductor, and under the published one.

mod drafts;
mod embedded;
mod fixture;
mod program;
mod shutdown;
mod version2;
