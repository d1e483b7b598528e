//! [`Skills`]: the skills of a session, and which of them the client gets.

use std::collections::HashSet;

use acp_skills_intercept::Workspace;
use skills_core::{Skill, SkillSet};

use super::own_skills::OwnSkills;

/// The skills of a session.
#[derive(Clone, Default)]
pub(super) struct Skills {
    /// The directories of the session.
    pub(super) workspace: Workspace,
    /// All skills of the workspace.
    pub(super) library: SkillSet,
    /// The keys of the skills that are off in the working directory.
    pub(super) off: HashSet<String>,
    /// The skills that the client loads itself, if these are left out.
    pub(super) own: OwnSkills,
}

impl Skills {
    /// Returns the skills that the client gets. May read the disk.
    pub(super) fn visible(&self) -> SkillSet {
        let is_visible = |skill: &Skill| !self.off.contains(&skill.name.key()) && !self.own.has(skill);
        // A client doesn't tell us which files come up, so skills that are meant for certain files are always listed.
        self.library.filtered(is_visible).joined(|_| true)
    }
}
