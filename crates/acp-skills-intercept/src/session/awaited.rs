//! [`Awaited`]: the skills of a session that join the catalog when a file comes up for which they are meant.

use std::path::{Component, Path, PathBuf};

use skills_core::{SkillName, SkillSet, paths::PathGlobs};

use crate::workspace::Workspace;

/// The skills that wait for a file, and the directories to which their globs are relative.
#[derive(Debug, Clone, Default)]
pub(crate) struct Awaited {
    /// The globs of the skills that wait, and the skills from which they were read. `None` before the first use.
    globs: Option<(SkillSet, Option<PathGlobs>)>,
    /// The directories of the session without links.
    real: Workspace,
}

impl Awaited {
    /// Sets the directories of the session without links. Agents and clients use either.
    pub(crate) fn set_real(&mut self, real: Workspace) {
        self.real = real;
    }

    /// Returns true if one of these skills waits for a file.
    pub(crate) fn is_any(&mut self, skills: &SkillSet) -> bool {
        self.globs(skills).is_some()
    }

    /// Returns the names of the skills that are meant for one of these files.
    pub(crate) fn matching(
        &mut self,
        skills: &SkillSet,
        workspace: &Workspace,
        paths: &[String],
    ) -> Vec<SkillName> {
        let real = self.real.clone();
        let Some(globs) = self.globs(skills) else { return Vec::new() };
        let mut names: Vec<SkillName> = Vec::new();
        for path in paths {
            for path in relative(path, workspace.roots().chain(real.roots())) {
                let new = globs.matching(&path).into_iter().filter(|name| !names.contains(name));
                let new: Vec<_> = new.collect();
                names.extend(new);
            }
        }
        names
    }

    fn globs(&mut self, skills: &SkillSet) -> Option<&PathGlobs> {
        if self.globs.as_ref().is_none_or(|(known, _)| !known.ptr_eq(skills)) {
            self.globs = Some((skills.clone(), PathGlobs::of(skills)));
        }
        self.globs.as_ref()?.1.as_ref()
    }
}

/// Returns a path relative to each root that contains it. A relative path is relative to the working directory.
fn relative<'r>(path: &str, roots: impl Iterator<Item = &'r Path>) -> Vec<PathBuf> {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let path = Path::new(&path);
    // We can't resolve these paths here, because that would require the file system.
    if path.components().any(|part| part == Component::ParentDir) {
        return Vec::new();
    }
    if path.is_relative() {
        return vec![path.components().filter(|part| *part != Component::CurDir).collect()];
    }
    let mut found: Vec<PathBuf> = Vec::new();
    for below in roots.filter_map(|root| path.strip_prefix(root).ok()) {
        if !below.as_os_str().is_empty() && !found.iter().any(|known| known == below) {
            found.push(below.to_owned());
        }
    }
    found
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_every_root_that_contains_them() {
        let roots = ["/work/api", "/lib", "/work"];
        for (path, expected) in [
            ("/work/api/src/a", &["src/a", "api/src/a"][..]),
            ("/lib/a", &["a"]),
            ("/lib", &[]),
            ("/library/a", &[]),
            ("/lib/../etc/passwd", &[]),
            ("/etc/passwd", &[]),
            ("src/./a", &["src/a"]),
            ("./a", &["a"]),
            ("../a", &[]),
        ] {
            let found = relative(path, roots.iter().map(Path::new));
            let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
