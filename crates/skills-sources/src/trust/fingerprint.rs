//! [`Fingerprint`]: what a skill is, to be compared with what it was.

use std::{collections::BTreeMap, io};

use skills_core::{Skill, SkillFiles, files::Bounds, remote::Sha256, skill::FileGuard};

/// All files of a skill by their hashes.
pub(super) struct Fingerprint {
    digest: String,
    /// By path; nothing for what is no file to read, and of a link that is none with what is written in it.
    files: BTreeMap<String, Option<Sha256>>,
}

impl Fingerprint {
    /// That of a skill as it is on disk: hidden files count, and so do links. What it costs is taken from `bounds`.
    ///
    /// # Errors
    /// Its files cannot be read, or are more than anybody can have looked at.
    pub(super) fn of(skill: &Skill, bounds: &mut Bounds) -> io::Result<Self> {
        let files = SkillFiles::of(skill).map_err(io::Error::other)?;
        let mut found = BTreeMap::new();
        files.visit(bounds, &mut |path, content| {
            let digest = content.map(Sha256::of_content).transpose()?;
            found.insert(path.to_owned(), digest);
            Ok(())
        })?;
        // A path cannot be taken for two lines: it stands behind its length.
        let mut text = String::new();
        for (path, digest) in &found {
            let digest = digest.map_or_else(|| "-".to_owned(), |digest| digest.to_string());
            text.extend([digest.as_str(), " ", &path.len().to_string(), " ", path, "\n"]);
        }
        Ok(Self { digest: Sha256::of(text.as_bytes()).to_string(), files: found })
    }

    /// The hash of it all.
    pub(super) fn digest(&self) -> &str {
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
}
