//! What a scan finds in skills before they are approved.

use skills_core::scan::{Finding, Rules, scan, scan_text};
use skills_sources::{OfferedSkill, SkillChange};

/// What is found in a skill. Of a web site's skill only the description is here.
pub(super) fn of(skill: &OfferedSkill) -> Vec<Finding> {
    let rules = Rules::built_in();
    match &skill.dir {
        // What cannot be opened was not fetched either.
        Some(dir) => scan(dir, rules).map(|report| report.findings).unwrap_or_default(),
        None => scan_text("description", &skill.description, rules).findings,
    }
}

/// What is found in a skill that was not found in the approved one.
pub(super) fn new_in(change: &SkillChange) -> Vec<Finding> {
    let known = change.before.as_ref().map(of).unwrap_or_default();
    let found = change.after.as_ref().map(of).unwrap_or_default();
    // Lines move.
    let is_same = |a: &Finding, b: &Finding| (&a.code, &a.file, &a.excerpt) == (&b.code, &b.file, &b.excerpt);
    found.into_iter().filter(|new| !known.iter().any(|old| is_same(old, new))).collect()
}
