//! Finds skills of a new source that will not be used, because a skill with the same name takes precedence.

use std::{collections::HashMap, mem};

use acp_skills::{
    config::{Config, Settings, SourceEntry},
    library::Workspace,
};
use serde::Serialize;
use skills_core::{SkillName, Source, text::shown_path};
use skills_sources::{Address, LockFile, Offer, Updater};

use super::Target;

/// A skill that will not be used. Scripts can rely on the JSON: later versions only add fields.
#[derive(Debug, Serialize)]
pub(super) struct Shadowed {
    /// The name of the skill.
    pub(super) name: String,
    /// The skill that is used instead: its path, or its source.
    pub(super) by: String,
}

/// Returns the skills of `offer` that will not be used with `config`, the contents of the configuration file. Skills that only some
/// projects use are not considered, and flags are not known here.
pub(super) fn shadowed(
    target: &Target,
    mut config: Config,
    updater: &Updater,
    offer: &Offer,
) -> Vec<Shadowed> {
    let sources = mem::take(&mut config.sources);
    // New sources are added at the end, where they have the lowest precedence.
    let mut used = of_directories(target, config).unwrap_or_else(|error| {
        tracing::warn!("cannot compare the skills with those of the configuration: {error:#}");
        HashMap::new()
    });
    for (name, source) in of_sources(target, &sources, updater) {
        used.entry(name).or_insert(source);
    }
    let shadowed = offer.skills.iter().filter_map(|skill| {
        Some(Shadowed { name: skill.name.clone(), by: used.get(&SkillName::key_of(&skill.name))?.clone() })
    });
    shadowed.collect()
}

/// Returns the skills of a configuration without sources: the key of each name, and a description of where the skill is.
fn of_directories(target: &Target, mut config: Config) -> anyhow::Result<HashMap<String, String>> {
    if target.text.is_empty() {
        return Ok(HashMap::new());
    }
    config.projects.clear();
    let skills = Settings::resolve(config)?.skills.load()?.at(&Workspace::default());
    let place = |source: &Source| match source {
        Source::Stored(stored) => shown_path(&stored.dir),
        _ => format!("a skill in {}", shown_path(&target.path)),
    };
    Ok(skills.iter().map(|skill| (skill.name.key(), place(&skill.source))).collect())
}

/// Returns the approved skills of `sources`, in the order of the sources. Each has the key of its name,
/// and a source.
fn of_sources(target: &Target, sources: &[SourceEntry], updater: &Updater) -> Vec<(String, String)> {
    let locked = LockFile::read(&target.lock()).unwrap_or_default();
    let mut skills = Vec::new();
    for entry in sources {
        let approved = locked.get(&entry.source).zip(Address::parse(&entry.source).ok());
        let approved = approved.and_then(|(pinned, address)| updater.approved(&address, pinned));
        for skill in approved.into_iter().flat_map(|offer| offer.skills) {
            skills.push((SkillName::key_of(&skill.name), entry.source.clone()));
        }
    }
    skills
}
