//! The proxy among proxies: under the SDK's conductor and in front of agents without one, with the SDK's own agent and
//! client types at the two ends.
//!
//! | file | owns |
//! |---|---|
//! | `cast` | the agent and the client, and how they are put together |
//! | `drafts` | the drafts about skills, through what the SDK passes on |
//! | `embedded` | [`acp_skills::SkillsProxy`] in chains within one process |
//! | `ends` | how such a component ends, and that nothing of it is left then |
//! | `program` | the binary as a component of such a chain |
//! | `version2` | a chain that speaks version 2 of the protocol |
//!
//! The binary under a conductor that is played line by line, and under the published one: `tests/proxy/chain.rs`.

mod cast;
mod drafts;
mod embedded;
mod ends;
mod program;
mod version2;
