//! The skills that the flags of a command mean, and what to say when there are none.

use std::env;

use acp_skills::{
    config::{ConfigError, SkillSources},
    library::DirectoryLibrary,
};
use skills_core::{SkillSet, text::shown_path};

use super::paths::Places;
use crate::{error::UsageError, progress::Progress, words::count};

/// How skills are named.
pub(crate) const WHERE: &str = "name a skill with `--skill DIR`, a directory to look in with `--skills DIR`, or your own places \
                                with `--discover user`";

/// Skills, as a session in the working directory has them.
pub(crate) struct Loaded {
    /// Where they come from.
    pub(crate) library: DirectoryLibrary,
    /// What is there now.
    pub(crate) here: SkillSet,
}

/// Finds the skills, and shows that it does when that takes long.
///
/// # Errors
/// A skill that was named cannot be loaded, or a directory to look in does not exist.
pub(crate) fn load(sources: SkillSources) -> Result<Loaded, ConfigError> {
    let progress = Progress::spinner("looking for skills");
    let library = sources.load()?;
    // A command does not stay until they come.
    let warnings = library.fetch();
    let here = library.at(env::current_dir().ok().as_deref());
    drop(progress);
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    Ok(Loaded { library, here })
}

impl Loaded {
    /// Why there are no skills, or what to do about it, in sentences.
    pub(crate) fn why_none(&self) -> Vec<String> {
        let mut sentences = self.library.missing();
        let skipped = self.here.skipped();
        if let [first, ..] = skipped {
            let path = shown_path(first.path.parent().unwrap_or(&first.path));
            let count = count(skipped.len(), "skill");
            sentences.push(format!("{count} cannot be loaded: `acp-skills-proxy check {path}` says why"));
        }
        let waiting: Vec<_> =
            self.here.unapproved().iter().map(|it| format!("`{}`", it.skill.name)).collect();
        if !waiting.is_empty() {
            sentences.push(format!(
                "the project's own wait until you trust them ({}): `--trust project` uses them as they are",
                waiting.join(", ")
            ));
        }
        if sentences.is_empty() {
            let places = Places::new();
            let looked: Vec<_> = self.library.discovered(env::current_dir().ok().as_deref());
            let looked: Vec<_> = looked.iter().map(|place| places.short(place)).collect();
            sentences.push(if looked.is_empty() {
                WHERE.to_owned()
            } else {
                let looked = looked.join(", ");
                format!(
                    "there is none in {looked}: put one there, or name one with `--skill DIR`, or a directory to look in with \
                     `--skills DIR`"
                )
            });
        }
        sentences
    }

    /// The error of a command that can do nothing without skills: `there is no skill to try`.
    pub(crate) fn none(&self, purpose: &str) -> UsageError {
        UsageError::new(format!("there is no skill to {purpose}")).hint(self.why_none().join("\n"))
    }
}
