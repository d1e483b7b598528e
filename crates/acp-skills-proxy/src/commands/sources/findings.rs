//! Scans skills before they are approved.

use std::time::Duration;

use skills_core::{
    files::SkillFiles,
    scan::{Finding, Rules, scan_files_within, scan_text},
};
use skills_sources::{OfferedSkill, SkillChange};

use super::show::FindingsBySkill;

/// Returns the findings for a skill. For a skill of a web site, this scans only the name and the description, because its files are
/// fetched when they are used.
fn of(skill: &OfferedSkill) -> Vec<Finding> {
    let rules = Rules::built_in();
    let Some(dir) = &skill.dir else {
        let text = format!("{}\n{}", skill.name, skill.description);
        return scan_text("description", &text, rules).findings;
    };
    // If we can't open the directory, the skill was not fetched either, so there is nothing to scan.
    let Ok(files) = SkillFiles::open(dir) else { return Vec::new() };
    scan_files_within(&files, &skill.path, rules, &mut { Duration::MAX }).findings
}

/// Returns the new findings of all changed skills.
pub(super) fn by_skill(changes: &[SkillChange]) -> FindingsBySkill {
    changes.iter().map(|change| (change.path.clone(), new_in(change))).collect()
}

/// Returns the findings for the new version of a skill that the approved version does not have.
fn new_in(change: &SkillChange) -> Vec<Finding> {
    let known = change.before.as_ref().map(of).unwrap_or_default();
    let found = change.after.as_ref().map(of).unwrap_or_default();
    // Ignore line numbers, as they also change when a line is added above.
    let is_same = |a: &Finding, b: &Finding| (&a.code, &a.file, &a.excerpt) == (&b.code, &b.file, &b.excerpt);
    found.into_iter().filter(|new| !known.iter().any(|old| is_same(old, new))).collect()
}
