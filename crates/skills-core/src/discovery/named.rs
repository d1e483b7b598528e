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
    additions: Additions,
}

/// Properties from the configuration, which stay if the skill is loaded again.
#[derive(Debug, Clone, Default)]
struct Additions {
    /// The service that provides further tools of the skill.
    provider: Option<Arc<dyn ToolProvider>>,
    /// Additional environment variables for the scripts of the skill.
    variables: Option<Arc<dyn Variables>>,
    /// The globs that replace those of the skill. Empty keeps them.
    paths: Vec<String>,
}

impl Additions {
    fn apply(&self, skill: &mut Skill) {
        skill.provider.clone_from(&self.provider);
        skill.variables.clone_from(&self.variables);
        if !self.paths.is_empty() {
            skill.properties.paths.clone_from(&self.paths);
        }
    }
}

impl NamedSkill {
    /// Creates the record of a skill that was loaded from the directory `path`.
    pub fn new(path: impl Into<PathBuf>, skill: Skill, diagnostics: Vec<Diagnostic>) -> Self {
        let loaded = Some((Arc::new(skill), diagnostics));
        Self { path: path.into(), loaded, broken: None, additions: Additions::default() }
    }

    /// Sets the service that provides further tools of the skill. It stays if the skill is loaded again.
    #[must_use]
    pub fn with_provider(mut self, provider: Option<Arc<dyn ToolProvider>>) -> Self {
        self.additions.provider = provider;
        self.with_additions()
    }

    /// Sets the globs of files for which the skill is meant, instead of those in its `SKILL.md`; see [`paths`](crate::paths). They
    /// stay if the skill is loaded again. An empty list changes nothing.
    #[must_use]
    pub fn with_paths(mut self, globs: Vec<String>) -> Self {
        self.additions.paths = globs;
        self.with_additions()
    }

    /// Sets additional environment variables for the scripts of the skill. They stay if the skill is loaded again.
    #[must_use]
    pub fn with_variables(mut self, variables: Option<Arc<dyn Variables>>) -> Self {
        self.additions.variables = variables;
        self.with_additions()
    }

    fn with_additions(mut self) -> Self {
        if let Some((skill, _)) = &mut self.loaded {
            self.additions.apply(Arc::make_mut(skill));
        }
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
        self.additions.apply(&mut skill);
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
