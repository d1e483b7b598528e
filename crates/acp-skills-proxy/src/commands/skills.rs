//! Loads the skills that the flags of a command select, and explains why there are none.

use std::{env, path::PathBuf};

use acp_skills::{
    config::{ConfigError, SkillSources},
    library::{DirectoryLibrary, Workspace},
};
use acp_skills_setup::shell::shell_word;
use skills_core::{
    SkillSet,
    set::{REFUSED_BY_POLICY, Skipped},
    text::{shown, shown_path},
};

use super::paths::Places;
use crate::{error::UsageError, progress::Progress, words::count};

/// Explains how to select skills.
pub(crate) const WHERE: &str = "use `--skill DIR` for one skill, `--skills DIR` for a directory of skills, or \
                                `--discover user` for your user directories";

/// The skills of a session in the working directory.
pub(crate) struct Loaded {
    /// The library that contains the skills.
    pub(crate) library: DirectoryLibrary,
    /// The skills at the time of loading.
    pub(crate) here: SkillSet,
    /// The directories of the session.
    workspace: Workspace,
}

/// Finds the skills of a session in the working directory. Shows progress if that takes long.
///
/// # Errors
/// Returns an error if a selected skill can't be loaded, or if a selected directory does not exist.
pub(crate) fn load(sources: SkillSources) -> Result<Loaded, ConfigError> {
    load_for(sources, Vec::new())
}

/// Finds the skills of a session in the working directory with these additional roots, which are absolute paths. Shows progress if
/// that takes long.
///
/// # Errors
/// Returns the errors of [`load`].
pub(crate) fn load_for(sources: SkillSources, additional: Vec<PathBuf>) -> Result<Loaded, ConfigError> {
    let workspace = Workspace { cwd: env::current_dir().ok(), ..Workspace::default() }.with(additional);
    let progress = Progress::spinner("looking for skills");
    if let Ok(program) = env::current_exe() {
        sources.guard_processes(&program);
    }
    let library = sources.load()?;
    // Fetch remote skills now, and not in the background, where the command could exit before they are done.
    let warnings = library.fetch();
    let here = library.at(&workspace);
    drop(progress);
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    Ok(Loaded { library, here, workspace })
}

impl Loaded {
    /// Explains in one or more sentences why there are no skills, or how to select some.
    pub(crate) fn why_none(&self) -> Vec<String> {
        let mut sentences = self.library.missing();
        let findings = self.here.skipped().iter().flat_map(|skipped| &skipped.diagnostics);
        let is_refused = |code| code == REFUSED_BY_POLICY;
        sentences.extend(
            findings.filter(|finding| is_refused(finding.code)).map(|finding| finding.message.clone()),
        );
        let is_source = |skipped: &&Skipped| {
            skipped.diagnostics.iter().any(|finding| finding.code == "source-unavailable")
        };
        let others = |skipped: &&Skipped| !skipped.diagnostics.iter().any(|finding| is_refused(finding.code));
        let (sources, skipped): (Vec<_>, Vec<_>) =
            self.here.skipped().iter().filter(others).partition(is_source);
        for source in sources {
            let address = source.path.to_string_lossy();
            sentences.push(format!(
                "the skills of `{}` are not available; the warning above explains why",
                shown(&address)
            ));
        }
        if let [first, ..] = skipped.as_slice() {
            let path = shown_path(first.path.parent().unwrap_or(&first.path));
            let count = count(skipped.len(), "skill");
            sentences.push(format!(
                "cannot load {count}; use `acp-skills-proxy check {}` for details",
                shell_word(&path)
            ));
        }
        let unapproved: Vec<_> =
            self.here.unapproved().iter().map(|unapproved| format!("`{}`", unapproved.skill.name)).collect();
        if !unapproved.is_empty() {
            sentences.push(format!(
                "some project skills are not trusted yet ({}); use `acp-skills-proxy trust` to review and trust them",
                unapproved.join(", ")
            ));
        }
        if sentences.is_empty() {
            let places = Places::new();
            let looked: Vec<_> = self.library.discovered(&self.workspace);
            let looked: Vec<_> = looked.iter().map(|place| places.short(place)).collect();
            sentences.push(if looked.is_empty() {
                WHERE.to_owned()
            } else {
                let looked = looked.join(", ");
                format!(
                    "no skills found in {looked}; use `--skill DIR` or `--skills DIR` for another directory"
                )
            });
        }
        sentences
    }

    /// Returns the error of a command that needs skills.
    pub(crate) fn none(&self) -> UsageError {
        UsageError::new("no skills found").hint(self.why_none().join("\n"))
    }
}
