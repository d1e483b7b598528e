//! What becomes of sessions when there are other skills, and what the model is told of it.
//!
//! Servers and menus change at once. The model hears of it with the next ordinary prompt: one line on what is other
//! than what it was told last, however often the skills have changed in between. The system prompt stays as it was, and
//! a catalog is not repeated.

use std::{sync::Arc, time::Duration};

use skills_core::{
    Difference, Skill, SkillSet,
    catalog::{self, CatalogOptions, Location},
};

use super::{Actions, Effect, Interceptor, Level, Purpose, overview};
use crate::{
    events::EventKind,
    session::{Session, SessionKey, Told},
};

/// How many skills are named in one list at most.
const MAX_NAMED: usize = 20;
/// How much of a description is repeated, in characters.
const MAX_DESCRIPTION_CHARS: usize = 200;

impl Interceptor {
    /// Looks for skills again, for every session. Returns what changed in this one, for its user.
    pub(super) fn reload(&mut self, asked: SessionKey, actions: &mut Actions) -> String {
        let took = self.host.reload();
        let before = self.sessions.get(asked).map(|session| session.skills.clone()).unwrap_or_default();
        self.reloaded(took, actions);
        actions.effects.push(Effect::Log(Level::Info, "the skills were loaded again".to_owned()));
        let Some(session) = self.sessions.get(asked) else { return String::new() };
        let difference = Difference::between(&before, &session.skills);
        // Whoever asked is told that nothing has changed, too.
        if difference.is_empty() {
            actions.effects.push(record(session, &difference, took));
        }
        overview::reloaded(&difference, &session.skills)
    }

    /// There may be other skills; it `took` so long to find out. Sessions in which nothing is other notice nothing.
    pub(super) fn reloaded(&mut self, took: Duration, actions: &mut Actions) {
        let mut with_menu = Vec::new();
        for session in self.sessions.iter_mut() {
            let skills = self.host.skills(session.cwd.as_deref());
            if skills.is(&session.skills) {
                continue;
            }
            let difference = Difference::between(&session.skills, &skills);
            session.skills = skills;
            self.host.serve(session.key, &session.skills, &session.unlocked(), session.cwd.as_deref());
            if !difference.is_empty() {
                actions.effects.push(record(session, &difference, took));
            }
            if !difference.is_only_inside() {
                with_menu.push(session.key);
            }
        }
        // A session that is being set up gets its menu after the response.
        let open = self.open.values().filter_map(|open| match open.purpose {
            Purpose::Name { session, .. } | Purpose::Enter { session, .. } => Some(session),
            _ => None,
        });
        let setting_up: Vec<_> = open.collect();
        with_menu.retain(|key| !setting_up.contains(key));
        with_menu.sort_unstable();
        for key in with_menu {
            self.menu_changed(key, actions);
        }
    }
}

/// What a new look brought a session, for the record.
fn record(session: &Session, difference: &Difference, took: Duration) -> Effect {
    let names = |skills: &[Arc<Skill>]| skills.iter().map(|skill| skill.name.to_string()).collect();
    let what = EventKind::Reload {
        skills: session.skills.len() as u64,
        skipped: session.skills.skipped().len() as u64,
        added: names(&difference.added),
        removed: names(&difference.removed),
        changed: names(&difference.changed),
        ms: took.into(),
    };
    Effect::Record { session: session.id.clone(), what }
}

/// What is other than what the model was told last, on one line; it counts as told from now on.
pub(super) fn change(session: &mut Session, options: &CatalogOptions) -> Option<String> {
    let known = session.known.as_ref().filter(|known| !known.is(&session.skills))?;
    let text = tell(session, known, options);
    session.known = Some(session.skills.clone());
    text
}

fn tell(session: &Session, known: &SkillSet, options: &CatalogOptions) -> Option<String> {
    let Difference { mut added, mut removed, changed, .. } = Difference::between(known, &session.skills);
    let is_shown =
        |skill: &Skill| skill.is_listed() && (session.told != Told::Files || skill.dir().is_some());
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
    if session.told == Told::Files && options.location == Location::None {
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
    let is_active =
        |skill: &Arc<Skill>| session.active.iter().any(|(name, _)| name.key() == skill.name.key());
    if others.iter().any(is_active) {
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
