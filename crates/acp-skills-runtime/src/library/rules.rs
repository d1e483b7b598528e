//! [`Rules`]: the rules of an administrator about skills on disk.

use std::sync::Arc;

use skills_core::{Skill, SkillSet, set::Skipped};
use skills_sources::{
    Sources,
    policy::{Policy, Refusal},
};

/// The rules of an administrator for a library. The default has none.
#[derive(Default)]
pub struct Rules {
    /// The policy that decides about skills that don't come from a source.
    pub policy: Option<Arc<Policy>>,
    /// The sources that each session uses. No setting of the user leaves them out, and their skills take precedence.
    pub required: Sources,
    /// The parts of the configuration that the policy has refused.
    pub refused: Vec<Skipped>,
}

impl Rules {
    /// Returns true if the rules change the skills of no session.
    pub(super) fn is_silent(&self) -> bool {
        self.required.is_empty() && self.refused.is_empty()
    }

    /// Returns the skills that the policy allows, with a record for each of the others.
    pub(super) fn permitted(&self, skills: SkillSet) -> SkillSet {
        let Some(policy) = self.policy.as_deref().filter(|policy| policy.restricts_local_skills()) else {
            return skills;
        };
        let unapproved = skills.unapproved().iter().map(|unapproved| &unapproved.skill);
        if skills.iter().chain(unapproved).all(|skill| refusal(policy, skill).is_none()) {
            return skills;
        }
        let mut permitted = SkillSet::builder();
        for entry in skills.entries() {
            match refusal(policy, &entry.skill) {
                Some(refusal) => permitted.skip(refusal.skipped(place(&entry.skill))),
                None => drop(permitted.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone())),
            }
        }
        for unapproved in skills.unapproved() {
            match refusal(policy, &unapproved.skill) {
                Some(refusal) => permitted.skip(refusal.skipped(place(&unapproved.skill))),
                None => permitted.add_unapproved(unapproved.clone()),
            }
        }
        for skipped in skills.skipped() {
            permitted.skip(skipped.clone());
        }
        for notice in skills.notices() {
            permitted.notice(notice);
        }
        permitted.build()
    }
}

/// Decides about a skill by the directory from which its files are read. This path was canonical when the skill was loaded. It must not be
/// resolved again: its user could replace a part of it by a link to an allowed directory, and then put it back.
fn refusal(policy: &Policy, skill: &Skill) -> Option<Refusal> {
    policy.skill(skill.name.as_str(), skill.scope, skill.dir()).err()
}

/// Returns the path of a skill, or its name if it has none.
fn place(skill: &Skill) -> std::path::PathBuf {
    skill.dir().map_or_else(|| skill.name.as_str().into(), std::path::Path::to_owned)
}
