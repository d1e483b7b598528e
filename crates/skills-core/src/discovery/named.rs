//! [`NamedSkill`]: a skill that the user named, which survives while its file is broken.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{cache::half_saved, load::LoadError};
use crate::{
    diagnostic::Diagnostic,
    set::{SkillSetBuilder, Skipped},
    skill::Skill,
    tool::{ToolProvider, Variables},
};

/// A skill that the user named.
///
/// If the skill can no longer be loaded, the previous version is kept. If the `SKILL.md` is removed, the skill is removed too,
/// until the file exists again.
#[derive(Debug, Clone)]
pub struct NamedSkill {
    path: PathBuf,
    loaded: Option<(Arc<Skill>, Vec<Diagnostic>)>,
    broken: Option<LoadError>,
    /// The service that provides further tools of the skill.
    provider: Option<Arc<dyn ToolProvider>>,
    /// Additional environment variables for the scripts of the skill.
    variables: Option<Arc<dyn Variables>>,
}

impl NamedSkill {
    /// Creates the record of a skill that was loaded from the directory `path`.
    pub fn new(path: impl Into<PathBuf>, skill: Skill, diagnostics: Vec<Diagnostic>) -> Self {
        let loaded = Some((Arc::new(skill), diagnostics));
        Self { path: path.into(), loaded, broken: None, provider: None, variables: None }
    }

    /// Sets the service that provides further tools of the skill. It stays if the skill is loaded again.
    #[must_use]
    pub fn with_provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        if let Some((skill, _)) = &mut self.loaded {
            Arc::make_mut(skill).provider = Some(Arc::clone(&provider));
        }
        self.provider = Some(provider);
        self
    }

    /// Sets additional environment variables for the scripts of the skill. They stay if the skill is loaded again.
    #[must_use]
    pub fn with_variables(mut self, variables: Arc<dyn Variables>) -> Self {
        if let Some((skill, _)) = &mut self.loaded {
            Arc::make_mut(skill).variables = Some(Arc::clone(&variables));
        }
        self.variables = Some(variables);
        self
    }

    /// Returns the path of the directory, as the user wrote it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Updates the skill with the result of loading it again.
    pub fn update(&mut self, result: Result<(Skill, Vec<Diagnostic>), LoadError>) {
        match self.judge(result) {
            Ok(loaded) => {
                self.loaded = Some(loaded);
                self.broken = None;
            }
            Err(error) => {
                if error.is_gone() {
                    self.loaded = None;
                }
                self.broken = Some(error);
            }
        }
    }

    /// Returns the previous skill if nothing changed, and an error if the file was read in the middle of a save.
    fn judge(
        &self,
        result: Result<(Skill, Vec<Diagnostic>), LoadError>,
    ) -> Result<(Arc<Skill>, Vec<Diagnostic>), LoadError> {
        let (mut skill, diagnostics) = result?;
        skill.provider.clone_from(&self.provider);
        skill.variables.clone_from(&self.variables);
        let Some((before, findings)) = &self.loaded else { return Ok((Arc::new(skill), diagnostics)) };
        if let Some(finding) = half_saved(&diagnostics, findings) {
            return Err(LoadError::new(&self.path, vec![finding]));
        }
        let skill = if before.is_same_as(&skill) { Arc::clone(before) } else { Arc::new(skill) };
        Ok((skill, diagnostics))
    }

    /// Adds the skill to a set. If it is missing, the reason is recorded in the set instead.
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
