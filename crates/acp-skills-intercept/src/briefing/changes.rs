//! What the model is told when there are other skills: one line with the next ordinary prompt, on what differs from what it
//! was told last, however often the skills have changed in between. The system prompt stays as it was, and a catalog is
//! not repeated.

use std::sync::Arc;

use skills_core::{
    Difference, Skill, SkillSet,
    catalog::{self, CatalogOptions, Guide, Location},
};

use crate::session::Session;

/// How many skills are named in one list at most.
const MAX_NAMED: usize = 20;
/// How much of a description is repeated, in characters.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// What differs between `known` and the skills of the session, on one line; nothing when the model would not see it.
pub(super) fn line(
    session: &Session,
    known: &SkillSet,
    told: Guide,
    options: &CatalogOptions,
) -> Option<String> {
    let by_files = told == Guide::Files;
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
    let name = |skill: &Arc<Skill>| format!("`{}`", skill.name);
    // What it is described as is repeated only where it is not what it was.
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

/// `New: a; b; and 3 more.`
fn list(what: &str, skills: &[Arc<Skill>], tell: impl Fn(&Arc<Skill>) -> String) -> Option<String> {
    if skills.is_empty() {
        return None;
    }
    let mut items: Vec<_> = skills.iter().take(MAX_NAMED).map(tell).collect();
    if skills.len() > MAX_NAMED {
        items.push(format!("and {} more", skills.len() - MAX_NAMED));
    }
    Some(format!("{what}: {}.", items.join("; ")))
}
