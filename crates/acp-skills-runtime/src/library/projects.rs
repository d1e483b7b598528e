//! [`ProjectSkills`]: additional skills and filters for sessions in certain directories.

use std::{path::Path, sync::Arc};

use globset::GlobSet;
use skills_core::{
    Diagnostic, Skill, SkillSet, SkillSetBuilder,
    discovery::{Discovery, Filter},
};
use skills_sources::Sources;

use super::scan::Scan;

/// An entry of `projects` in the configuration.
pub struct ProjectSkills {
    /// The working directories to which the entry applies.
    pub paths: GlobSet,
    /// Skills that are defined in the configuration itself.
    pub fixed: Vec<(Arc<Skill>, Vec<Diagnostic>)>,
    /// A search below directories. It runs when a session in one of the working directories needs it.
    pub scan: Scan,
    /// The sources of the entry.
    pub sources: Sources,
    /// The search for skills of the session's own project, if the entry enables it.
    pub project: Option<Discovery>,
    /// True if the subdirectories of the session's directories are searched, too.
    pub tree: bool,
    /// True if the skills of the project need no approval.
    pub is_trusted: bool,
    /// The filter for all skills of the session.
    pub filter: Filter,
}

impl ProjectSkills {
    /// Returns true if the entry applies to a session in `cwd`.
    pub(super) fn is_about(&self, cwd: &Path) -> bool {
        self.paths.is_match(cwd) || dunce::canonicalize(cwd).is_ok_and(|real| self.paths.is_match(real))
    }

    pub(super) fn add_fixed(&self, skills: &mut SkillSetBuilder) {
        for (skill, diagnostics) in &self.fixed {
            skills.add_shared(Arc::clone(skill), diagnostics.clone());
        }
    }
}

/// Returns the skills that pass the filters of all these entries.
pub(super) fn filtered(skills: SkillSet, projects: &[&ProjectSkills]) -> SkillSet {
    let takes = |skill: &Skill| projects.iter().all(|project| project.filter.takes(&skill.name));
    if skills
        .iter()
        .chain(skills.unapproved().iter().map(|unapproved| &unapproved.skill))
        .all(|skill| takes(skill))
    {
        return skills;
    }
    let mut left = SkillSet::builder();
    for entry in skills.entries().iter().filter(|entry| takes(&entry.skill)) {
        left.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
    }
    for skipped in skills.skipped() {
        left.skip(skipped.clone());
    }
    for notice in skills.notices() {
        left.notice(notice);
    }
    for unapproved in skills.unapproved().iter().filter(|unapproved| takes(&unapproved.skill)) {
        left.add_unapproved(unapproved.clone());
    }
    left.build()
}
