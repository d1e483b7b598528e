//! [`Fingerprint`]: the checksums of a skill, to compare it with the approved version.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    hash::{DefaultHasher, Hash, Hasher},
    io, iter,
    ops::Bound,
    path::Path,
};

use skills_core::{
    Skill, SkillFiles,
    files::Bounds,
    skill::{FileGuard, Sha256},
};

/// A callback that receives the path of each entry and the content of each file, and returns the checksum of the content.
pub(crate) type DigestEntry<'a> =
    dyn FnMut(&str, Option<&mut dyn io::Read>) -> io::Result<Option<Sha256>> + 'a;

/// The checksums of all files of a skill.
pub(crate) struct Fingerprint {
    digest: String,
    /// The checksum of each file, by path. `None` for an entry without content; for a link, the target is a part of the path.
    files: BTreeMap<String, Option<Sha256>>,
}

/// The maximum number of directories above a skill that count if the skill is not in its project.
const MAX_ABOVE: usize = 64;

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

    /// Returns a hash of the times of the last change to each file and directory of the skill, and to each directory above the skill
    /// up to the root of the project. If one of these directories is replaced and restored, the files don't change, but the user may
    /// have reviewed other files in between. 0 if the skill has no directory.
    pub(super) fn stamp(&self, project: &Path, skill: &Skill) -> u64 {
        let Some(dir) = skill.dir() else { return 0 };
        let mut hasher = DefaultHasher::new();
        let mut add = |path: &Path| {
            path.symlink_metadata().map(|metadata| changed_at(&metadata)).ok().hash(&mut hasher);
        };
        if dir.starts_with(project) {
            dir.ancestors().skip(1).take_while(|above| above.starts_with(project)).for_each(&mut add);
        } else {
            // A link of the project leads to another directory of the session.
            let mut is_below = true;
            let below = |above: &&Path| std::mem::replace(&mut is_below, !above.join(".git").exists());
            dir.ancestors().skip(1).take(MAX_ABOVE).take_while(below).for_each(&mut add);
        }
        let mut parent_before = None;
        for entry in self.files.keys().map(Path::new) {
            let parent = entry.parent();
            // Entries of the same directory follow each other.
            let above = parent.into_iter().flat_map(Path::ancestors).filter(|_| parent != parent_before);
            for path in iter::once(entry).chain(above) {
                // The path of a link also contains its target, so it can't be found. A link changes together with its directory.
                add(&dir.join(path));
            }
            parent_before = parent;
        }
        hasher.finish()
    }

    /// Returns the checksum of the name and all files.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

/// Returns the time of a change to the content, the name or the attributes. No program can set it.
#[cfg(unix)]
fn changed_at(metadata: &Metadata) -> (i64, i64) {
    use std::os::unix::fs::MetadataExt;

    (metadata.ctime(), metadata.ctime_nsec())
}

/// Returns the time of a change to the content.
#[cfg(not(unix))]
fn changed_at(metadata: &Metadata) -> Option<std::time::SystemTime> {
    metadata.modified().ok()
}

impl FileGuard for Fingerprint {
    fn allows(&self, path: &str, content: Option<&mut dyn io::Read>) -> io::Result<bool> {
        let Some(known) = self.files.get(path) else { return Ok(false) };
        Ok(match content {
            Some(content) => known.is_some() && *known == Some(Sha256::of_content(content)?),
            None => known.is_none(),
        })
    }

    fn checks_activation(&self) -> bool {
        true
    }

    fn paths<'a>(&'a self, start: &str) -> Box<dyn Iterator<Item = &'a str> + 'a> {
        let rest = self.files.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        Box::new(rest.map(|(path, _)| path.as_str()))
    }
}
