//! The skills and the problems that the user sees of a server.

use std::{collections::BTreeSet, sync::Arc};

use skills_core::{
    Diagnostic, Scope, Skill, SkillName, SkillSet, Source, order,
    set::{SOURCE_FETCHING, Skipped},
    skill::{Remote, RemoteFile, Sha256},
};

use super::{
    super::entries::{Entry, SKILL_MD},
    Shared, State, Status,
    files::EntryFiles,
};

impl Shared {
    /// Returns the skills and the problems that follow from a state.
    pub(super) fn set(self: &Arc<Self>, state: &State) -> SkillSet {
        let mut skills = SkillSet::builder();
        let label = &self.label;
        let mut report = |code: &'static str, text: String| {
            skills.skip(Skipped::new(&**label, vec![Diagnostic::error(code, text)]));
        };
        match &state.status {
            Status::Asking => {
                report(SOURCE_FETCHING, format!("{label} is asked for skills in the background"));
            }
            Status::Failed(why) => {
                report("source-unavailable", format!("{label} cannot be asked for skills: {why}"));
            }
            Status::NotOffered if self.is_configured => {
                report("source-without-skills", format!("{label} offers no skills"));
            }
            Status::Listed | Status::NotOffered => {}
        }
        for problem in &state.problems {
            report("source-entry", format!("{label}: {problem}"));
        }
        let repeated = repeated(state.entries.iter().map(|entry| entry.frontmatter.name.as_str()));
        for entry in &state.entries {
            let is_repeated = repeated.contains(&entry.frontmatter.name.key());
            skills.add(self.skill(entry, is_repeated), Vec::new());
        }
        skills.build()
    }

    /// Returns the skill of an entry. If its name is repeated, the path of its URI comes first.
    fn skill(self: &Arc<Self>, entry: &Arc<Entry>, is_repeated: bool) -> Skill {
        let files = entry.files.iter().filter(|file| file.path != SKILL_MD);
        let files = files.map(|file| RemoteFile::new(&*file.path, file.size, file.sha256)).collect();
        let main = entry.files.iter().find(|file| file.path == SKILL_MD);
        // An entry without this file is not read.
        let sha256 = main.map_or_else(|| Sha256::of(&[]), |file| file.sha256);
        let service = Arc::new(EntryFiles {
            server: Arc::downgrade(self),
            label: Arc::clone(&self.label),
            namespace: self.namespace.clone(),
            identity: Arc::clone(&self.identity),
            entry: Arc::clone(entry),
        });
        let source = Source::Remote(Remote::of_service(&entry.uri, sha256, files, service));
        let mut skill = entry.frontmatter.clone().into_skill(source);
        skill.scope = Scope::Remote;
        // Neither the user nor the model should take it for a skill of the user.
        skill.description = format!("From {}: {}", self.label, skill.description);
        // A server must not widen what the agent may do.
        skill.properties.allowed_tools.clear();
        skill.properties.priority = skill.properties.priority.min(0);
        let prefix = entry.prefix().filter(|_| is_repeated);
        let name = prefix.and_then(|prefix| SkillName::new(&format!("{prefix}-{}", skill.name)));
        skill.name = name.unwrap_or(skill.name);
        skill
    }
}

/// Returns the names that occur more than once, by their keys.
fn repeated<'n>(names: impl Iterator<Item = &'n str>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let names = names.map(SkillName::key_of);
    order::set(names.filter(|key| !seen.insert(key.clone())))
}
