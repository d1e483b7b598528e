//! Loads the skills that a configuration names or defines.

use std::{path::PathBuf, sync::Arc};

use acp_skills_runtime::library::{Named, load_named};
use acp_skills_servers::processes::Processes;
use skills_core::{diagnostic::Diagnostic, discovery::NamedSkill, skill::Skill};

use super::{ConfigError, SkillEntry, Validation, VirtualSkill};

/// Loads a named skill, and adds its directory to `directories` if it has one.
pub(super) fn load_entry(
    entry: SkillEntry,
    strict: bool,
    validation: Validation,
    processes: &Processes,
    directories: &mut Vec<PathBuf>,
) -> Result<Named, ConfigError> {
    Ok(match entry {
        SkillEntry::Directory(path) => {
            let path = std::path::absolute(&path)
                .map_err(|source| ConfigError::Unreadable { path: path.clone(), source })?;
            let (skill, diagnostics) = load_named(&path, strict)
                .map_err(|source| ConfigError::Skill { path: path.clone(), source })?;
            directories.push(path.clone());
            Named::Stored(NamedSkill::new(path, skill, diagnostics))
        }
        SkillEntry::Stored(entry) => {
            directories.push(entry.skill.clone());
            Named::Stored(entry.load(strict, processes)?)
        }
        SkillEntry::Virtual(skill) => {
            let (skill, warnings) = fixed(*skill, validation, processes)?;
            Named::Fixed(skill, warnings)
        }
    })
}

/// Builds a virtual skill. Returns it with its warnings.
pub(super) fn fixed(
    skill: VirtualSkill,
    validation: Validation,
    processes: &Processes,
) -> Result<(Arc<Skill>, Vec<Diagnostic>), ConfigError> {
    let (skill, warnings) = skill.build_with(validation, processes)?;
    let warnings = warnings.into_iter().map(|text| Diagnostic::warning("missing-program", text));
    Ok((Arc::new(skill), warnings.collect()))
}
