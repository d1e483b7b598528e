//! The text for the model after skills have changed: one line in the next ordinary prompt.
//!
//! The line has the difference between the skills now and those that the model knows, even if the skills have changed several
//! times in between. The system prompt stays the same, and the catalog is not repeated.

use std::sync::Arc;

use skills_core::{
    Skill, SkillSet,
    catalog::{self, CatalogOptions, Guide, Location},
    text::markdown_code,
};

use crate::{difference::Difference, session::Session};

/// The maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// Describes the difference between `known` and the skills of the session on one line. Returns `None` if the difference is
/// invisible to the model.
pub(super) fn line(
    session: &Session,
    known: &SkillSet,
    known_guide: Guide,
    options: &CatalogOptions,
) -> Option<String> {
    let by_files = known_guide == Guide::Files;
    let Difference { mut added, mut removed, changed, .. } = Difference::between(known, &session.skills);
    let is_shown = |skill: &Skill| skill.is_listed() && (!by_files || skill.dir().is_some());
    added.retain(|skill| is_shown(skill));
    removed.retain(|skill| is_shown(skill));
    let mut others = Vec::new();
    for skill in changed {
        let before = known.get(skill.name.as_str());
        match (before.is_some_and(|before| is_shown(before)), is_shown(&skill)) {
            (true, true) => others.push(skill),
            (true, false) => removed.push(skill),
            (false, true) => added.push(skill),
            (false, false) => {}
        }
    }
    let mut options = options.clone();
    if by_files && options.location == Location::None {
        options.location = Location::Absolute;
    }
    let whole = |skill: &Arc<Skill>| catalog::line(skill, &options, MAX_DESCRIPTION_CHARS);
    let name = |skill: &Arc<Skill>| markdown_code(skill.name.as_str());
    // We don't need to repeat a description if it hasn't changed.
    let as_needed = |skill: &Arc<Skill>| {
        let before = known.get(skill.name.as_str());
        let is_same = before
            .is_some_and(|before| before.description == skill.description && before.dir() == skill.dir());
        if is_same { name(skill) } else { whole(skill) }
    };
    let mut parts = Vec::new();
    parts.extend(list("New", &added, whole));
    parts.extend(list("Removed", &removed, name));
    parts.extend(list("Changed", &others, as_needed));
    if parts.is_empty() {
        return None;
    }
    if others.iter().any(|skill| session.activations.is_active(&skill.name)) {
        parts.push("Instructions that you got before a change may be out of date.".to_owned());
    }
    Some(format!("The skills have changed. {}", parts.join(" ")))
}

/// Writes a list such as `New: a; b; and 3 more.` Returns `None` if there are no skills.
fn list(what: &str, skills: &[Arc<Skill>], tell: impl Fn(&Arc<Skill>) -> String) -> Option<String> {
    if skills.is_empty() {
        return None;
    }
    Some(format!("{what}: {}.", super::first(skills, tell).join("; ")))
}
