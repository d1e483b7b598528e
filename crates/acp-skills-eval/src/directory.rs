//! The directory of a run: fresh, with the files of its case, and afterwards what was made or changed in it.
//!
//! Files are reached through handles that keep to a directory, because the names of a case are a skill's and the links in a
//! run's directory an agent's.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};
use skills_core::remote::Sha256;
use tempfile::TempDir;

/// How much of what a run makes is kept.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// How much of a file is shown.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// How deep directories are looked into.
const MAX_DEPTH: usize = 32;

/// A file that was made or changed in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    /// Relative to the run's directory, with `/`.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// Its beginning, when it is text.
    pub(super) text: Option<String>,
}

/// A directory that goes with the run. It is no part of any project, so that an agent that looks around finds neither the
/// skill nor its cases.
pub(super) struct RunDirectory {
    /// Canonical.
    pub(super) path: PathBuf,
    before: HashMap<PathBuf, Sha256>,
    _scratch: TempDir,
}

impl RunDirectory {
    /// A fresh one with `files` of the skill in `skill`.
    pub(super) fn new(skill: &Path, files: &[String]) -> io::Result<Self> {
        let scratch = tempfile::Builder::new().prefix("skill-eval-").tempdir()?;
        // Agents compare paths, and on some systems the directory for temporary files is a link.
        let path = dunce::canonicalize(scratch.path())?;
        let to = Dir::open_ambient_dir(&path, ambient_authority())?;
        let from = Dir::open_ambient_dir(skill, ambient_authority())?;
        for file in files {
            let name = Path::new(file);
            let name = name.strip_prefix("evals/files").or(name.strip_prefix("evals")).unwrap_or(name);
            let is_copied =
                from.metadata(file).and_then(|it| Ok(it.is_file() || from.symlink_metadata(file)?.is_dir()));
            if !is_copied.map_err(|error| io::Error::new(error.kind(), format!("`{file}`: {error}")))? {
                return Err(io::Error::other(format!("`{file}` is no regular file and no directory")));
            }
            copy(&from, Path::new(file), &to, name, 0)
                .map_err(|error| io::Error::new(error.kind(), format!("`{file}`: {error}")))?;
        }
        let mut before = HashMap::new();
        walk(&to, Path::new(""), 0, &mut |dir, name| {
            before.insert(name.to_owned(), Sha256::of(&dir.read(name)?));
            Ok(true)
        })?;
        Ok(Self { path, before, _scratch: scratch })
    }

    /// Copies what was made or changed into `outputs`. Links are not followed: they may lead anywhere.
    pub(super) fn keep(&self, outputs: &Path) -> io::Result<Vec<Made>> {
        fs::create_dir_all(outputs)?;
        let to = Dir::open_ambient_dir(outputs, ambient_authority())?;
        let dir = Dir::open_ambient_dir(&self.path, ambient_authority())?;
        let (mut made, mut total) = (Vec::new(), 0);
        walk(&dir, Path::new(""), 0, &mut |dir, name| {
            let size = dir.metadata(name)?.len();
            if made.len() >= MAX_FILES || total + size > MAX_BYTES {
                return Ok(false);
            }
            let bytes = dir.read(name)?;
            if self.before.get(name).is_some_and(|before| *before == Sha256::of(&bytes)) {
                return Ok(true);
            }
            total += size;
            if let Some(parent) = name.parent() {
                to.create_dir_all(parent)?;
            }
            to.write(name, &bytes)?;
            let path =
                name.components().map(|it| it.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
            made.push(Made { path, bytes: size, text: text(&bytes) });
            Ok(true)
        })?;
        made.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(made)
    }
}

/// The beginning of a text; `None` for anything else.
fn text(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(MAX_TEXT_BYTES)];
    match str::from_utf8(head) {
        Ok(text) if !text.contains('\0') => Some(text.to_owned()),
        // It was cut in the middle of a character.
        Err(error) if error.error_len().is_none() && bytes.len() > head.len() => {
            str::from_utf8(&head[..error.valid_up_to()]).ok().map(str::to_owned)
        }
        _ => None,
    }
}

/// A copy of the skill in `skill` without its cases, below a directory that goes with it: a model that finds the assertions
/// among the skill's files is told how it will be judged.
pub(super) fn without_cases(skill: &Path) -> io::Result<(TempDir, PathBuf)> {
    let scratch = tempfile::Builder::new().prefix("skill-").tempdir()?;
    let name = skill.file_name().unwrap_or_default();
    let path = dunce::canonicalize(scratch.path())?.join(name);
    fs::create_dir(&path)?;
    let to = Dir::open_ambient_dir(&path, ambient_authority())?;
    let from = Dir::open_ambient_dir(skill, ambient_authority())?;
    for entry in from.read_dir(".")? {
        let name = entry?.file_name();
        if name == "evals" || name == ".git" {
            continue;
        }
        copy(&from, Path::new(&name), &to, Path::new(&name), 0)?;
    }
    Ok((scratch, path))
}

/// Copies a file, or a directory with everything in it, but for what is not served either: links that lead out of the skill or
/// nowhere, links to directories (two that lead upwards would have no end), and what is no regular file (whoever opens a FIFO
/// may wait for ever).
fn copy(from: &Dir, source: &Path, to: &Dir, target: &Path, depth: usize) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other("directories in directories without end"));
    }
    let kind = from.symlink_metadata(source)?;
    if kind.is_dir() {
        to.create_dir_all(target)?;
        for entry in from.read_dir(source)? {
            let name = entry?.file_name();
            copy(from, &source.join(&name), to, &target.join(&name), depth + 1)?;
        }
        return Ok(());
    }
    let is_file = kind.is_file() || kind.is_symlink() && from.metadata(source).is_ok_and(|it| it.is_file());
    if !is_file {
        return Ok(());
    }
    if let Some(parent) = target.parent() {
        to.create_dir_all(parent)?;
    }
    from.copy(source, to, target).map(drop)
}

/// Visits each regular file below `at`, until `visit` says that it is enough.
fn walk(
    dir: &Dir,
    at: &Path,
    depth: usize,
    visit: &mut dyn FnMut(&Dir, &Path) -> io::Result<bool>,
) -> io::Result<bool> {
    let here = if at.as_os_str().is_empty() { Path::new(".") } else { at };
    let mut names: Vec<_> =
        dir.read_dir(here)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    for name in names {
        let path = at.join(name);
        let metadata = dir.symlink_metadata(&path)?;
        let goes_on = if metadata.is_dir() && depth < MAX_DEPTH {
            walk(dir, &path, depth + 1, visit)?
        } else if metadata.is_file() {
            visit(dir, &path)?
        } else {
            true
        };
        if !goes_on {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn fifo(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    #[test]
    fn keeps_what_was_made_or_changed() {
        let skill = tempfile::tempdir().unwrap();
        fs::create_dir_all(skill.path().join("evals/files/sub")).unwrap();
        for (name, text) in [("a.txt", "a"), ("b.txt", "b"), ("sub/c.txt", "c")] {
            fs::write(skill.path().join("evals/files").join(name), text).unwrap();
        }
        let files = ["evals/files/a.txt", "evals/files/b.txt", "evals/files/sub"].map(str::to_owned);
        let run = RunDirectory::new(skill.path(), &files).unwrap();
        assert_eq!(fs::read_to_string(run.path.join("sub/c.txt")).unwrap(), "c");
        fs::write(run.path.join("a.txt"), "changed").unwrap();
        fs::create_dir(run.path.join("new")).unwrap();
        fs::write(run.path.join("new/d.bin"), [0, 159, 146]).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/passwd", run.path.join("link")).unwrap();
        let outputs = tempfile::tempdir().unwrap();
        let made = run.keep(outputs.path()).unwrap();
        let names: Vec<_> = made.iter().map(|made| (made.path.as_str(), made.text.as_deref())).collect();
        assert_eq!(names, [("a.txt", Some("changed")), ("new/d.bin", None)]);
        assert_eq!(fs::read(outputs.path().join("new/d.bin")).unwrap(), [0, 159, 146]);
        assert!(!outputs.path().join("link").exists());
    }

    #[test]
    fn agents_get_a_skill_without_its_cases() {
        let skill = tempfile::tempdir().unwrap();
        fs::create_dir_all(skill.path().join("evals/files")).unwrap();
        fs::create_dir_all(skill.path().join("references")).unwrap();
        for name in ["SKILL.md", "evals/evals.json", "references/evals.md"] {
            fs::write(skill.path().join(name), name).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/passwd", skill.path().join("link")).unwrap();
        // Links in circles, and links that lead nowhere.
        #[cfg(unix)]
        for (link, target) in
            [("one", "."), ("two", "."), ("references/up", ".."), ("none", "x"), ("self", "self")]
        {
            std::os::unix::fs::symlink(target, skill.path().join(link)).unwrap();
        }
        // Whoever opens it waits for somebody who writes.
        #[cfg(unix)]
        fifo(&skill.path().join("references/fifo"));
        let (_scratch, copy) = without_cases(skill.path()).unwrap();
        #[cfg(unix)]
        for name in ["one", "two", "references/up", "references/fifo", "none", "self"] {
            assert!(copy.join(name).symlink_metadata().is_err(), "{name}");
        }
        assert_eq!(copy.file_name(), skill.path().file_name());
        assert!(copy.join("SKILL.md").exists() && copy.join("references/evals.md").exists());
        assert!(!copy.join("evals").exists() && !copy.join("link").exists());
    }

    #[test]
    fn files_of_a_case_are_the_skills_own() {
        let skill = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        assert!(RunDirectory::new(skill.path(), &["../x".to_owned()]).is_err());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outside.path(), skill.path().join("x")).unwrap();
            assert!(RunDirectory::new(skill.path(), &["x".to_owned()]).is_err());
            fifo(&skill.path().join("fifo"));
            assert!(RunDirectory::new(skill.path(), &["fifo".to_owned()]).is_err());
        }
        drop(outside);
    }
}
