//! Loads the skills of a web site: those whose files are fetched when they are used, and those in archives.

use std::collections::HashMap;

use skills_core::{
    Diagnostic, Remote, SkillName, SkillSet, SkillSetBuilder,
    set::{Entry, SOURCE_ABSENT, Skipped},
    text::markdown_code,
};

use super::{
    super::{
        address::Address, approved, digest, lockfile::PinnedWeb, packed, site::RemoteIndex, store::Store,
    },
    Wanted, not_approved, refusal,
    repository::{Served, add_part},
};

/// An approved version of a web site.
pub(super) struct Site<'a> {
    pub(super) address: &'a Address,
    pub(super) url: &'a str,
    pub(super) store: &'a Store,
    pub(super) pinned: &'a PinnedWeb,
    pub(super) wanted: &'a Wanted<'a>,
}

impl Site<'_> {
    /// Loads the skills of a web site. `kept` has the indexes of skills that stay at another version, by checksum.
    pub(super) fn skills(&self, index: &RemoteIndex, kept: &HashMap<&str, RemoteIndex>) -> SkillSet {
        let Self { address, pinned, wanted, .. } = self;
        let mut skills = SkillSet::builder();
        let decisions = &pinned.decisions;
        let entries = index.skills().entries().iter();
        let own = entries.filter(|entry| !decisions.kept.contains_key(entry.skill.name.as_str()));
        let others = kept.iter().flat_map(|(digest, index)| {
            let is_kept = move |entry: &&Entry| {
                decisions.kept.get(entry.skill.name.as_str()).is_some_and(|kept| kept == digest)
            };
            index.skills().entries().iter().filter(is_kept)
        });
        for entry in own.chain(others).filter(|entry| wanted.takes(&entry.skill.name)).take(wanted.max_skills)
        {
            let skill = &entry.skill;
            let name = skill.name.as_str();
            if let Some(archive) = packed::of(skill) {
                self.add_packed(&mut skills, &skill.name, archive);
                continue;
            }
            let approved = pinned.skills.as_ref().map(|skills| skills.get(name));
            if approved
                .is_none_or(|approved| approved.is_some_and(|digest| *digest == digest::of_entry(skill)))
            {
                // The files of a web site are fetched when they are used, so they can't be scanned before.
                match refusal(skill, "", 0, wanted) {
                    Some(refusal) => skills.skip(refusal.skipped(address.as_str())),
                    None => drop(skills.add_shared(skill.clone(), entry.diagnostics.clone())),
                }
            } else if !decisions.declined.contains_key(name) {
                let why = not_approved(address, &skill.name, approved.flatten().is_some());
                skills.skip(Skipped::new(address.as_str(), vec![why]));
            }
        }
        let lost = decisions.kept.iter().filter(|(_, digest)| !kept.contains_key(digest.as_str()));
        let lost = lost.filter_map(|(name, _)| SkillName::new(name));
        for name in lost.filter(|name| wanted.takes(name)) {
            let why = format!(
                "skill {} from {address} stays at a version that is not in the cache anymore",
                markdown_code(name.as_str())
            );
            let help =
                format!("use `acp-skills-proxy update '{address}'` to review and approve the current one");
            let why = Diagnostic::error("not-approved", why).help(help);
            skills.skip(Skipped::new(address.as_str(), vec![why]));
        }
        for skipped in index.skills().skipped() {
            skills.skip(skipped.clone());
        }
        skills.build()
    }

    /// Adds a skill in an archive, whose files are in the store.
    fn add_packed(&self, skills: &mut SkillSetBuilder, name: &SkillName, archive: &Remote) {
        let Self { address, pinned, wanted, .. } = self;
        let skip = |why| Skipped::new(address.as_str(), vec![why]);
        let Some(files) = pinned.skills.as_ref().and_then(|skills| skills.get(name.as_str())) else {
            if !pinned.decisions.declined.contains_key(name.as_str()) {
                skills.skip(skip(not_approved(address, name, false)));
            }
            return;
        };
        let part = packed::version(files);
        let Some(root) = approved::served(self.store, &packed::place(self.url, name, archive), &part) else {
            let why = format!(
                "the archive of skill {} from {address} is not in the cache",
                markdown_code(name.as_str())
            );
            return skills.skip(skip(Diagnostic::error(SOURCE_ABSENT, why)));
        };
        let mut served = Vec::new();
        add_part(skills, &mut served, address, &root, &part, wanted);
        for Served { skill, diagnostics, .. } in served {
            skills.add(skill, diagnostics);
        }
    }
}
