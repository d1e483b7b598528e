//! The skill of an evaluation with another description.

use std::fs;

use skills_core::{Source, discovery::load_dir};

use super::{Evaluation, EvaluationError, description::replaced, directory::copy_without_cases};

impl Evaluation {
    /// Returns the same evaluation of a copy of the skill with another description.
    ///
    /// # Errors
    /// Returns [`EvaluationError::Description`] if the description can't be replaced, and another error if the skill can't be
    /// copied.
    pub(super) fn with_description(&self, description: &str) -> Result<Self, EvaluationError> {
        let unreadable = |source| EvaluationError::Unreadable { path: self.dir.clone(), source };
        let (copy, path) = copy_without_cases(&self.dir).map_err(unreadable)?;
        let text = self.file_text();
        let is_same = self.skill.description == description;
        let new = if is_same { text } else { self.replace_description(&text, description)? };
        fs::write(path.join(self.file_name()), new).map_err(unreadable)?;
        let (skill, _diagnostics) =
            load_dir(&path).map_err(|source| EvaluationError::Skill { path: self.dir.clone(), source })?;
        Ok(self.variant(skill, copy))
    }

    /// Returns `text`, which is that of the skill's `SKILL.md`, with another description.
    ///
    /// # Errors
    /// Returns [`EvaluationError::Description`] if the description can't be replaced without changing something else.
    pub fn replace_description(&self, text: &str, description: &str) -> Result<String, EvaluationError> {
        replaced(text, self.skill.name.as_str(), description)
            .ok_or_else(|| EvaluationError::Description(self.dir.clone()))
    }

    /// Returns the text of the skill's `SKILL.md` at the start of the evaluation.
    pub fn file_text(&self) -> String {
        match &self.skill.source {
            Source::Stored(stored) => fs::read_to_string(stored.file()).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// Returns the name of the skill's instruction file, which is usually `SKILL.md`.
    pub fn file_name(&self) -> String {
        let name = match &self.skill.source {
            Source::Stored(stored) => {
                stored.file().file_name().map(|name| name.to_string_lossy().into_owned())
            }
            _ => None,
        };
        name.unwrap_or_else(|| "SKILL.md".to_owned())
    }

    /// Returns the instructions of the skill, without the frontmatter.
    pub(super) fn instructions(&self) -> String {
        skills_core::frontmatter::body(&self.file_text()).to_owned()
    }
}
