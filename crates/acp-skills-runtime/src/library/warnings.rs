//! Warnings and notes about the skills of sessions, as lines for the log.

use std::path::PathBuf;

use skills_core::{Diagnostic, SkillSet};
use skills_sources::trust;

/// The maximum number of problems of skipped skills that are logged for a set.
const MAX_LOGGED_SKIPPED: usize = 20;

/// The maximum number of unapproved skills that are logged by name.
const MAX_LOGGED_UNAPPROVED: usize = 10;

/// Returns warnings about the skills of a set.
pub(super) fn warnings(skills: &SkillSet) -> Vec<String> {
    let mut lines = Vec::new();
    for skipped in skills.skipped() {
        // Skip problems of sources, which have already been logged when the source was loaded.
        let is_new = |finding: &&Diagnostic| finding.is_error() && !finding.code.starts_with("source-");
        for finding in skipped.diagnostics.iter().filter(is_new) {
            let hint = hint(finding);
            lines.push(format!("skipped {}: {}{hint}", skipped.path.display(), finding.message));
        }
    }
    let more = lines.len().saturating_sub(MAX_LOGGED_SKIPPED);
    if more > 0 {
        lines.truncate(MAX_LOGGED_SKIPPED);
        lines.push(format!("{more} more problems with skills; `acp-skills-proxy list` shows all"));
    }
    let new = || skills.unapproved().iter().filter(|skill| !skill.is_refused);
    let more = new().count().saturating_sub(MAX_LOGGED_UNAPPROVED);
    if more > 0 {
        lines.push(format!(
            "{more} more project skills are not trusted yet; `acp-skills-proxy trust` lists all"
        ));
    }
    for unapproved in new().take(MAX_LOGGED_UNAPPROVED) {
        let name = &unapproved.skill.name;
        let changed = if unapproved.has_changed { ", because the files have changed" } else { " yet" };
        if let Some(service) = unapproved.skill.service() {
            lines.push(format!(
                "skill `{name}` of {} is not trusted{changed}; to trust the skill, use `/skills trust {name}` in a session over ACP",
                service.label()
            ));
            continue;
        }
        let place = unapproved.skill.dir().map(|dir| dir.display().to_string()).unwrap_or_default();
        lines.push(format!(
            "project skill `{name}` in {place} is not trusted{changed}; to review and trust the skill, use `/skills trust \
             {name}` in a session over ACP, or run `{}` in the project",
            trust::command(name.as_str())
        ));
    }
    for entry in skills.entries() {
        for finding in entry.diagnostics.iter().filter(|finding| finding.is_error()) {
            let name = &entry.skill.name;
            lines.push(format!(
                "cannot reload skill `{name}`, using the previous version instead: {}{}",
                finding.message,
                hint(finding)
            ));
        }
    }
    lines
}

/// Returns notes for which the user doesn't have to do anything, such as skills that are hidden by another one.
pub(super) fn notes(skills: &SkillSet) -> Vec<String> {
    let mut lines = Vec::new();
    for shadowed in skills.shadowed() {
        let place = |path: &Option<PathBuf>| match path {
            Some(path) => path.display().to_string(),
            None => "the configuration".to_owned(),
        };
        let loser = place(&shadowed.path);
        let winner = place(&shadowed.by);
        lines.push(format!("skill `{}` in {loser} is shadowed by {winner}", shadowed.name));
    }
    lines
}

/// Returns the hint of a finding. It belongs to the same line, because some clients show each line as a separate
/// error.
fn hint(finding: &Diagnostic) -> String {
    finding.help.as_ref().map_or_else(String::new, |help| format!("; {help}"))
}
