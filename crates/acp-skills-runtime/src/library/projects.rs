//! [`ProjectSkills`]: what the configuration adds and takes away for sessions in some directories.

use std::{path::Path, sync::Arc};

use globset::GlobSet;
use skills_core::{
    Diagnostic, Skill, SkillSet, SkillSetBuilder,
    discovery::{Discovery, Filter},
};

use super::scan::Scan;
use skills_sources::Sources;

/// An entry of `projects`.
pub struct ProjectSkills {
    /// The directories.
    pub paths: GlobSet,
    /// Skills that are defined in the configuration.
    pub fixed: Vec<(Arc<Skill>, Vec<Diagnostic>)>,
    /// What is found. It runs when a session in one of the directories needs it.
    pub scan: Scan,
    /// What comes from elsewhere.
    pub sources: Sources,
    /// Finds the skills of the session's own project, where the configuration asks for these here.
    pub project: Option<Discovery>,
    /// Those need no approval here.
    pub is_trusted: bool,
    /// What is taken of all skills.
    pub filter: Filter,
}

impl ProjectSkills {
    /// Whether it is about a session that works in `cwd`.
    pub(super) fn is_about(&self, cwd: &Path) -> bool {
        self.paths.is_match(cwd) || dunce::canonicalize(cwd).is_ok_and(|real| self.paths.is_match(real))
    }

    pub(super) fn add_fixed(&self, skills: &mut SkillSetBuilder) {
        for (skill, diagnostics) in &self.fixed {
            skills.add_shared(Arc::clone(skill), diagnostics.clone());
        }
    }
}

/// What all of these take of a set.
pub(super) fn filtered(skills: SkillSet, projects: &[&ProjectSkills]) -> SkillSet {
    let takes = |skill: &Skill| projects.iter().all(|project| project.filter.takes(&skill.name));
    if skills.iter().chain(skills.unapproved().iter().map(|it| &it.skill)).all(|skill| takes(skill)) {
        return skills;
    }
    let mut left = SkillSet::builder();
    for entry in skills.entries().iter().filter(|entry| takes(&entry.skill)) {
        left.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
    }
    for skipped in skills.skipped() {
        left.skip(skipped.clone());
    }
    for waiting in skills.unapproved().iter().filter(|it| takes(&it.skill)) {
        left.add_unapproved(waiting.clone());
    }
    left.build()
}
