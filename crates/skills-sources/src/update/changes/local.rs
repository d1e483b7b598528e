//! Shows a skill of a project that waits for approval, with all of its files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use skills_core::{files::Bounds, set::Unapproved, skill::Sha256};

use super::{
    super::{OfferedSkill, offered_file},
    FileChange, FileChangeKind, SkillChange, sort,
};
use crate::trust::Fingerprint;

/// The mark between the path of a link and its target, in the paths of a [`Fingerprint`].
const ARROW: &str = " -> ";

impl SkillChange {
    /// Returns a skill that waits for approval, with all of its files, as if it were new. The files are those of the checksum that will
    /// be approved. They include hidden files and links. A link that leads out of the skill is [`unseen`](FileChange::unseen).
    ///
    /// # Errors
    /// Returns an error if a file can't be read, if the skill has changed since it was found, or if it has no directory.
    pub fn of_unapproved(unapproved: &Unapproved) -> io::Result<Self> {
        let skill = &unapproved.skill;
        let dir = skill.dir().ok_or_else(|| io::Error::other("skill has no directory"))?;
        let mut files = Vec::new();
        let mut offered = Vec::new();
        let shown = Fingerprint::with(skill, &mut { Bounds::SKILL }, &mut |path, content| {
            let Some(content) = content else {
                files.push(link(dir, path));
                return Ok(None);
            };
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            files.push(FileChange::between(path, None, &bytes, &mut 0));
            offered.push(offered_file(dir, path.to_owned()));
            Ok(Some(Sha256::of(&bytes)))
        })?;
        if shown.digest() != unapproved.digest {
            return Err(io::Error::other("skill has changed while reading"));
        }
        sort(&mut files);
        let after = OfferedSkill {
            path: dir.display().to_string(),
            name: skill.name.to_string(),
            description: skill.description.clone(),
            sha256: unapproved.digest.clone(),
            files: offered,
            dir: Some(dir.to_owned()),
            remote: None,
        };
        Ok(Self { path: after.path.clone(), before: None, after: Some(after), files })
    }
}

/// Returns a link as a new entry. `entry` contains its path and its target.
fn link(dir: &Path, entry: &str) -> FileChange {
    let mut link = FileChange::new(entry, FileChangeKind::Added);
    if !leads_inside(dir, entry) {
        link.unseen = Some("link that leads out of the skill".to_owned());
    }
    link
}

/// Returns true if a link leads to a directory of the skill, whose files are shown anyway. A link that has changed meanwhile doesn't count.
#[expect(clippy::unnecessary_debug_formatting, reason = "this is the format of a link in a fingerprint")]
fn leads_inside(dir: &Path, entry: &str) -> bool {
    // The path and the target can contain an arrow, too.
    let paths = entry.match_indices(ARROW).map(|(at, _)| (&entry[..at], &entry[at + ARROW.len()..]));
    let is_link = |(path, target): &(&str, &str)| {
        fs::read_link(dir.join(path)).is_ok_and(|found: PathBuf| format!("{found:?}") == *target)
    };
    let path = paths.into_iter().find(is_link).map(|(path, _)| dir.join(path));
    let real = path.and_then(|path| dunce::canonicalize(path).ok());
    real.zip(dunce::canonicalize(dir).ok()).is_some_and(|(real, dir)| real.starts_with(dir))
}
