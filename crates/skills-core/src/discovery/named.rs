//! [`NamedSkill`]: a skill that the user named, whatever becomes of its file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{cache::half_saved, load::LoadError};
use crate::{
    diagnostic::Diagnostic,
    set::{SkillSetBuilder, Skipped},
    skill::Skill,
};

/// A skill that the user named. When it can no longer be loaded, it stays as it was; when its `SKILL.md` is gone, so is
/// the skill, until there is one again.
#[derive(Debug, Clone)]
pub struct NamedSkill {
    path: PathBuf,
    loaded: Option<(Arc<Skill>, Vec<Diagnostic>)>,
    broken: Option<LoadError>,
}

impl NamedSkill {
    /// The skill in the directory `path`, as it was loaded.
    pub fn new(path: impl Into<PathBuf>, skill: Skill, diagnostics: Vec<Diagnostic>) -> Self {
        Self { path: path.into(), loaded: Some((Arc::new(skill), diagnostics)), broken: None }
    }

    /// The directory, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes what came of loading it again.
    pub fn update(&mut self, result: Result<(Skill, Vec<Diagnostic>), LoadError>) {
        match self.judge(result) {
            Ok(loaded) => (self.loaded, self.broken) = (Some(loaded), None),
            Err(error) => {
                if error.is_gone() {
                    self.loaded = None;
                }
                self.broken = Some(error);
            }
        }
    }

    /// Shares the skill with the previous one when nothing changed; a half-saved file counts as broken.
    fn judge(
        &self,
        result: Result<(Skill, Vec<Diagnostic>), LoadError>,
    ) -> Result<(Arc<Skill>, Vec<Diagnostic>), LoadError> {
        let (skill, diagnostics) = result?;
        let Some((before, findings)) = &self.loaded else { return Ok((Arc::new(skill), diagnostics)) };
        if let Some(finding) = half_saved(&diagnostics, findings) {
            return Err(LoadError::new(&self.path, vec![finding]));
        }
        let skill = if before.is_same_as(&skill) { Arc::clone(before) } else { Arc::new(skill) };
        Ok((skill, diagnostics))
    }

    /// Adds the skill to a set, or says there why it is missing.
    pub fn add_to(&self, skills: &mut SkillSetBuilder) {
        let errors = || self.broken.iter().flat_map(|error| error.diagnostics.iter().cloned());
        match (&self.loaded, &self.broken) {
            (Some((skill, diagnostics)), _) => {
                let diagnostics = diagnostics.iter().cloned().chain(errors()).collect();
                skills.add_shared(Arc::clone(skill), diagnostics);
            }
            (None, Some(error)) => skills.skip(Skipped::new(&error.path, errors().collect())),
            (None, None) => {}
        }
    }
}
