//! Creates the skills and files of an offer.

use std::{fs, path::Path};

use skills_core::{Skill, Source};

use super::{
    super::{digest, system},
    OfferedFile, OfferedSkill,
    text::is_offered_as_script,
};

/// Converts a skill of an index.
pub(super) fn listed(skill: &Skill) -> Option<OfferedSkill> {
    let Source::Remote(remote) = &skill.source else { return None };
    let files = remote.files.iter().flat_map(|files| files.iter());
    let files = files.map(|file| OfferedFile {
        path: file.path.clone(),
        size: file.size,
        // The content is only fetched for the review.
        is_script: is_offered_as_script(&file.path, b""),
    });
    let name = skill.name.to_string();
    let description = skill.description.clone();
    let sha256 = digest::of_entry(skill);
    let files = files.collect();
    let remote = Some(remote.clone());
    Some(OfferedSkill { path: name.clone(), name, description, sha256, files, dir: None, remote })
}

pub(super) fn offered_file(dir: &Path, path: String) -> OfferedFile {
    let file = dir.join(&path);
    let metadata = fs::metadata(&file).ok();
    let size = metadata.as_ref().map(fs::Metadata::len);
    let begins = || -> Option<bool> {
        let mut start = [0; 2];
        std::io::Read::read_exact(&mut fs::File::open(&file).ok()?, &mut start).ok()?;
        Some(is_offered_as_script(&path, &start))
    };
    let is_script = is_offered_as_script(&path, b"")
        || metadata.is_some_and(|metadata| system::is_executable(&metadata))
        || begins().unwrap_or(false);
    OfferedFile { path, size, is_script }
}
