//! [`Fingerprint`]: the checksums of a skill, to compare it with the approved version.

use std::{collections::BTreeMap, io, ops::Bound};

use skills_core::{Skill, SkillFiles, files::Bounds, remote::Sha256, skill::FileGuard};

/// A callback that receives the path of each entry and the content of each file, and returns the checksum of the content.
pub(crate) type DigestEntry<'a> =
    dyn FnMut(&str, Option<&mut dyn io::Read>) -> io::Result<Option<Sha256>> + 'a;

/// The checksums of all files of a skill.
pub(crate) struct Fingerprint {
    digest: String,
    /// The checksum of each file, by path. `None` for an entry without content; for a link, the target is a part of the path.
    files: BTreeMap<String, Option<Sha256>>,
}

impl Fingerprint {
    /// Reads the name and all files of a skill, including hidden files and links. The number of entries and bytes is subtracted from `bounds`.
    ///
    /// # Errors
    /// Returns an error if a file can't be read, or if the bounds are exceeded.
    pub(super) fn of(skill: &Skill, bounds: &mut Bounds) -> io::Result<Self> {
        Self::with(skill, bounds, &mut |_, content| content.map(Sha256::of_content).transpose())
    }

    /// Returns the same as [`of`](Self::of). `digest` returns the checksum of an entry, so that it can use the content, too.
    ///
    /// # Errors
    /// Returns the errors of [`of`](Self::of), and the errors of `digest`.
    pub(crate) fn with(skill: &Skill, bounds: &mut Bounds, digest: &mut DigestEntry<'_>) -> io::Result<Self> {
        let files = SkillFiles::of(skill).map_err(io::Error::other)?;
        let mut found = BTreeMap::new();
        files.visit(bounds, &mut |path, content| {
            found.insert(path.to_owned(), digest(path, content)?);
            Ok(())
        })?;
        // Without a `name` in its `SKILL.md`, a skill is named after the link or the directory that leads to it. A new name would
        // let it take the place of another skill.
        let mut text = format!("{}\n", skill.name);
        // Add the length before each path, so that a path with a line break can't look like two lines.
        for (path, digest) in &found {
            let digest = digest.map_or_else(|| "-".to_owned(), |digest| digest.to_string());
            text.extend([digest.as_str(), " ", &path.len().to_string(), " ", path, "\n"]);
        }
        Ok(Self { digest: Sha256::of(text.as_bytes()).to_string(), files: found })
    }

    /// Returns the checksum of the name and all files.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

impl FileGuard for Fingerprint {
    fn allows(&self, path: &str, content: Option<&mut dyn io::Read>) -> io::Result<bool> {
        let Some(known) = self.files.get(path) else { return Ok(false) };
        Ok(match content {
            Some(content) => known.is_some() && *known == Some(Sha256::of_content(content)?),
            None => known.is_none(),
        })
    }

    fn paths<'a>(&'a self, start: &str) -> Box<dyn Iterator<Item = &'a str> + 'a> {
        let rest = self.files.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        Box::new(rest.map(|(path, _)| path.as_str()))
    }
}
