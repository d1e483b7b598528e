//! [`Memory`]: facts that the interceptor has learned in this run, and that belong to no single session.

use std::collections::HashSet;

use crate::{early_lists::EarlyLists, trust::SkillVersion};

/// Facts that the interceptor has learned in this run.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// True if the agent refuses two servers of the same name, even in different sessions.
    pub(crate) needs_own_server_names: bool,
    /// True if the agent connects to the skills server by itself before the connect timeout. `None` until this was observed.
    pub(crate) agent_connects: Option<bool>,
    /// True if the agent has asked for a file of a skill with `fs/read_text_file`.
    pub(crate) reads_through_client: bool,
    /// The number of times that the skills of all sessions were refreshed.
    pub(crate) refreshes: u64,
    /// The agent's commands for sessions that are not set up yet.
    pub(crate) early_commands: EarlyLists,
    /// The agent's skills for sessions that are not set up yet.
    pub(crate) early_skills: EarlyLists,
    /// The versions of skills that the user has been asked about.
    pub(crate) asked_about: HashSet<SkillVersion>,
}
