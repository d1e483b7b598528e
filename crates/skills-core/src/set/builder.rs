//! [`SkillSetBuilder`]: adds skills and tools to a set, and records those that are left out.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use super::{Entry, Inner, Shadowed, SkillSet, Skipped, Unapproved};
use crate::{
    diagnostic::Diagnostic,
    name::{NameRule, SkillName},
    skill::{FileService, Skill, Source},
    text::shown,
    tool::{BUILT_IN_TOOLS, SkillTool},
};

/// The maximum length of a tool's name, in bytes.
///
/// Hosts add the name of the server before it, and some accept at most 63 bytes for both.
pub const MAX_TOOL_NAME_BYTES: usize = 40;

/// An error of [`SkillSetBuilder::add_tool`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolNameError {
    /// The name is too long or contains characters that some hosts reject.
    #[error("invalid tool name `{}`: use 1 to {MAX_TOOL_NAME_BYTES} of the characters a-z, A-Z, 0-9, `_` and `-`", shown(.0))]
    Invalid(String),
    /// A built-in tool, or another tool of the set, has this name.
    #[error("tool name `{0}` is already used")]
    Taken(String),
}

/// Builds a [`SkillSet`].
///
/// The first skill with a name wins. Skills that lose are recorded as [`Shadowed`].
#[derive(Debug, Default)]
pub struct SkillSetBuilder(Inner);

impl SkillSetBuilder {
    /// Adds a skill. Returns false if an earlier skill has the same name.
    pub fn add(&mut self, skill: Skill, diagnostics: Vec<Diagnostic>) -> bool {
        self.add_shared(Arc::new(skill), diagnostics)
    }

    /// Adds a skill that is shared with another set. Returns false if an earlier skill has the same name.
    ///
    /// A skill of a [service](crate::skill::FileService) gets a name in its namespace instead, such as `docs-review`, if this name is free.
    pub fn add_shared(&mut self, skill: Arc<Skill>, diagnostics: Vec<Diagnostic>) -> bool {
        let key = skill.name.key().into_boxed_str();
        if let Some(&index) = self.0.by_key.get(&key) {
            if let Some(alias) = self.alias(&skill, index) {
                return self.add_shared(Arc::new(alias), diagnostics);
            }
            let path = file(&skill);
            let by = file(&self.0.skills[index].skill);
            // If we find the same file through two roots, this is not a conflict.
            if path.is_none() || path != by {
                self.0.shadowed.push(Shadowed { name: skill.name.clone(), path, by });
            }
            return false;
        }
        self.0.by_key.insert(key, self.0.skills.len());
        self.0.skills.push(Entry { skill, diagnostics });
        true
    }

    /// Returns a skill of a service with a free name in its namespace. `taken_by` is the index of the skill that has its name.
    fn alias(&self, skill: &Skill, taken_by: usize) -> Option<Skill> {
        let service = skill.service()?;
        // The same server can be in the configuration and in the settings of the client.
        let other = self.0.skills[taken_by].skill.service();
        if other.map(FileService::identity) == Some(service.identity()) {
            return None;
        }
        let name = format!("{}-{}", service.namespace()?, skill.name);
        let is_free = !self.0.by_key.contains_key(&*SkillName::key_of(&name));
        let name = SkillName::new(&name)
            .filter(|name| is_free && NameRule::broken_by(name.as_str(), None).is_empty())?;
        Some(Skill { name, ..skill.clone() })
    }

    /// Adds a tool that belongs to no skill. The model sees it from the beginning, next to the built-in tools.
    ///
    /// # Errors
    /// Returns [`ToolNameError::Invalid`] if some host would reject the name, and [`ToolNameError::Taken`] if a built-in
    /// tool or an earlier tool has the name.
    pub fn add_tool(&mut self, tool: SkillTool) -> Result<(), ToolNameError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !(1..=MAX_TOOL_NAME_BYTES).contains(&tool.name.len()) || !tool.name.bytes().all(is_plain) {
            return Err(ToolNameError::Invalid(tool.name));
        }
        let is_taken = BUILT_IN_TOOLS.contains(&tool.name.as_str())
            || self.0.tools.iter().any(|other| other.name == tool.name);
        if is_taken {
            return Err(ToolNameError::Taken(tool.name));
        }
        self.0.tools.push(tool);
        Ok(())
    }

    /// Records a skill that could not be loaded.
    pub fn skip(&mut self, skipped: Skipped) {
        self.0.skipped.push(skipped);
    }

    /// Adds a sentence for the user, see [`SkillSet::notices`].
    pub fn notice(&mut self, sentence: impl Into<String>) {
        self.0.notices.push(sentence.into());
    }

    /// Records a skill that the user has not approved yet.
    pub fn add_unapproved(&mut self, unapproved: Unapproved) {
        self.0.unapproved.push(unapproved);
    }

    /// Appends the skills and tools of `set`, and its records of skills that were left out.
    pub fn extend(&mut self, set: &SkillSet) {
        self.add_tools(set);
        for entry in set.entries() {
            self.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
        }
        self.add_left_out(set);
    }

    /// Appends the tools of `set`, except those whose names are taken.
    pub(super) fn add_tools(&mut self, set: &SkillSet) {
        for tool in set.tools() {
            let _ = self.add_tool(tool.clone());
        }
    }

    /// Appends the records of `set` about skills that were left out.
    pub(super) fn add_left_out(&mut self, set: &SkillSet) {
        self.0.shadowed.extend_from_slice(set.shadowed());
        self.0.skipped.extend_from_slice(set.skipped());
        self.0.unapproved.extend_from_slice(set.unapproved());
        self.0.notices.extend_from_slice(set.notices());
    }

    /// Returns the number of skills that have been added.
    pub fn len(&self) -> usize {
        self.0.skills.len()
    }

    /// Returns true if no skill has been added.
    pub fn is_empty(&self) -> bool {
        self.0.skills.is_empty()
    }

    /// Returns the finished set.
    ///
    /// A skill that was added and also recorded as unapproved doesn't need approval, because the user named it.
    pub fn build(mut self) -> SkillSet {
        let Inner { skills, unapproved, .. } = &mut self.0;
        if !unapproved.is_empty() {
            let dirs: HashSet<_> = skills.iter().filter_map(|entry| entry.skill.dir()).collect();
            unapproved.retain(|entry| entry.skill.dir().is_none_or(|dir| !dirs.contains(dir)));
            // A link can lead to the skill of another root.
            let mut seen = HashSet::new();
            unapproved.retain(|entry| entry.skill.dir().is_none_or(|dir| seen.insert(dir.to_owned())));
        }
        SkillSet(Arc::new(self.0))
    }
}

/// Returns the path of a stored skill's file, or the URL of a remote skill.
fn file(skill: &Skill) -> Option<PathBuf> {
    match &skill.source {
        Source::Stored(stored) => Some(stored.file()),
        Source::Virtual(_) => None,
        #[cfg(feature = "fetch")]
        Source::Remote(remote) => Some(PathBuf::from(&*remote.place())),
    }
}
