//! [`RunDirectory`]: the working directory of a run, with copies of the files of its task.
//!
//! All files are opened through directory handles, because the skill chooses the names of the files, and the agent can create
//! links in the directory.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};
use skills_core::{
    files::{self, Bounds},
    order,
    skill::Sha256,
};
use skills_sources::disk::HeldDirectory;

use super::{
    scratch::Scratch,
    settings::{is_of_tools, is_settings},
};

/// The maximum number and total size of the kept files of a run.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The maximum length of the text of a file for the grader.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The maximum depth of directories.
const MAX_DEPTH: usize = 32;

/// A file that was created or changed in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    /// The path relative to the run's directory, with `/` as separator.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// The beginning of the file. `None` if it is not text.
    pub(super) text: Option<String>,
}

/// A temporary directory for one run. It is outside of any project, so that the agent finds neither the skill nor its cases
/// near it. Dropping it removes the directory.
pub(super) struct RunDirectory {
    /// The canonical path.
    pub(super) path: PathBuf,
    /// The hashes of the files at the start.
    before: HashMap<PathBuf, Sha256>,
    /// True if files can be settings.
    with_settings: bool,
    _scratch: Scratch,
}

impl RunDirectory {
    /// Creates a directory with copies of `files` from the skill in the directory `skill`.
    ///
    /// # Errors
    /// Returns an error with the name of the file if a file is missing, is not regular, or is outside of the skill. Also, if
    /// `with_settings` is false and the file could be settings of the agent.
    pub(super) fn new(skill: &Path, files: &[String], with_settings: bool) -> io::Result<Self> {
        let scratch = Scratch::new()?;
        // Resolve the path, because the temporary directory is a link on some systems, and agents compare paths.
        let path = dunce::canonicalize(scratch.path())?;
        let to = Dir::open_ambient_dir(&path, ambient_authority())?;
        let from = Dir::open_ambient_dir(skill, ambient_authority())?;
        let mut left = Bounds::SKILL;
        for file in files {
            let name = Path::new(file);
            let name = name.strip_prefix("evals/files").or(name.strip_prefix("evals")).unwrap_or(name);
            let is_copied = files::metadata(&from, file).and_then(|metadata| {
                Ok(metadata.is_file() || files::symlink_metadata(&from, file)?.is_dir())
            });
            if !is_copied.map_err(|error| io::Error::new(error.kind(), format!("`{file}`: {error}")))? {
                return Err(io::Error::other(format!("`{file}` is not a regular file or directory")));
            }
            copy(&from, Path::new(file), &to, name, (name.components().count(), &mut left))
                .map_err(|error| io::Error::new(error.kind(), format!("`{file}`: {error}")))?;
        }
        let mut before = HashMap::new();
        walk(&to, Path::new(""), 0, &mut |dir, name| {
            if !with_settings && is_settings(name) {
                let why = "could be settings of the agent, which can run programs; put it into a subdirectory of the task or, if you trust the author of the skill, use `--allow settings`";
                return Err(io::Error::other(format!("`{}` {why}", name.display())));
            }
            before.insert(name.to_owned(), Sha256::of(&dir.read(name)?));
            Ok(true)
        })?;
        Ok(Self { path, before, with_settings, _scratch: scratch })
    }

    /// Copies the created and changed files into `outputs`, and returns them sorted by path. Links are not followed, because they
    /// can lead out of the directory. Files that tools of the user could read as settings are returned, but not copied, because the results
    /// stay in the user's directories.
    pub(super) fn keep(&self, outputs: &Path) -> io::Result<Vec<Made>> {
        let outputs = HeldDirectory::create(outputs)?;
        let to = Dir::open_ambient_dir(outputs.path(), ambient_authority())?;
        let dir = Dir::open_ambient_dir(&self.path, ambient_authority())?;
        let mut made = Vec::new();
        let mut total = 0;
        walk(&dir, Path::new(""), 0, &mut |dir, name| {
            let size = files::metadata(dir, name)?.len();
            if made.len() >= MAX_FILES || total + size > MAX_BYTES {
                return Ok(false);
            }
            let bytes = dir.read(name)?;
            if self.before.get(name).is_some_and(|before| *before == Sha256::of(&bytes)) {
                return Ok(true);
            }
            total += size;
            if self.with_settings || !is_of_tools(name) {
                if let Some(parent) = name.parent() {
                    to.create_dir_all(parent)?;
                }
                to.write(name, &bytes)?;
            }
            let parts: Vec<_> = name.components().map(|part| part.as_os_str().to_string_lossy()).collect();
            let path = parts.join("/");
            made.push(Made { path, bytes: size, text: text(&bytes) });
            Ok(true)
        })?;
        order::sort_by(&mut made, |a, b| a.path.cmp(&b.path));
        Ok(made)
    }
}

/// Returns the beginning of a text file, or `None` for other files.
fn text(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(MAX_TEXT_BYTES)];
    match str::from_utf8(head) {
        Ok(text) if !text.contains('\0') => Some(text.to_owned()),
        // Ignore a character that is cut off by the limit.
        Err(error) if error.error_len().is_none() && bytes.len() > head.len() => {
            str::from_utf8(&head[..error.valid_up_to()]).ok().map(str::to_owned)
        }
        _ => None,
    }
}

/// Copies the skill in the directory `skill` without its cases. If the model could read the assertions, it would know how it is
/// graded.
///
/// Returns the temporary directory, which is removed when it is dropped, and the path of the copy in it.
pub(super) fn copy_without_cases(skill: &Path) -> io::Result<(Scratch, PathBuf)> {
    let scratch = Scratch::new()?;
    let name = skill.file_name().unwrap_or_default();
    let path = dunce::canonicalize(scratch.path())?.join(name);
    fs::create_dir(&path)?;
    let to = Dir::open_ambient_dir(&path, ambient_authority())?;
    let from = Dir::open_ambient_dir(skill, ambient_authority())?;
    let mut left = Bounds::SKILL;
    for entry in from.read_dir(".")? {
        let name = entry?.file_name();
        if name == "evals" || name == ".git" {
            continue;
        }
        copy(&from, Path::new(&name), &to, Path::new(&name), (0, &mut left))?;
    }
    Ok((scratch, path))
}

/// Copies the contents of a directory into another one with a canonical path, without the repository of a skill.
pub(super) fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    let from = Dir::open_ambient_dir(from, ambient_authority())?;
    let to = HeldDirectory::create(to)?;
    let to = Dir::open_ambient_dir(to.path(), ambient_authority())?;
    let mut left = Bounds::SKILL;
    for entry in from.read_dir(".")? {
        let name = entry?.file_name();
        if name != ".git" {
            copy(&from, Path::new(&name), &to, Path::new(&name), (0, &mut left))?;
        }
    }
    Ok(())
}

/// Copies a file, or a directory with its contents.
///
/// Files that the proxy doesn't serve are skipped: links that are dangling or lead out of the skill, links to directories,
/// because they can form loops, and special files, because opening a FIFO can block.
///
/// The number and the size of the files are subtracted from `left`, because many links to one file become as many files.
fn copy(
    from: &Dir,
    source: &Path,
    to: &Dir,
    target: &Path,
    (depth, left): (usize, &mut Bounds),
) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other("directories are nested too deeply"));
    }
    let too_many = || {
        let Bounds { entries, bytes, .. } = Bounds::SKILL;
        io::Error::other(format!("there are more than {entries} files, or more than {} MiB", bytes >> 20))
    };
    left.entries = left.entries.checked_sub(1).ok_or_else(too_many)?;
    let kind = files::symlink_metadata(from, source)?;
    if kind.is_dir() {
        to.create_dir_all(target)?;
        for entry in from.read_dir(source)? {
            let name = entry?.file_name();
            copy(from, &source.join(&name), to, &target.join(&name), (depth + 1, left))?;
        }
        return Ok(());
    }
    let is_file = kind.is_file()
        || kind.is_symlink() && files::metadata(from, source).is_ok_and(|target| target.is_file());
    if !is_file {
        return Ok(());
    }
    if let Some(parent) = target.parent() {
        to.create_dir_all(parent)?;
    }
    left.bytes = left.bytes.checked_sub(files::metadata(from, source)?.len()).ok_or_else(too_many)?;
    from.copy(source, to, target).map(drop)
}

/// Visits the regular files below `at` in the order of their names. Stops and returns false if `visit` returns false.
fn walk(
    dir: &Dir,
    at: &Path,
    depth: usize,
    visit: &mut dyn FnMut(&Dir, &Path) -> io::Result<bool>,
) -> io::Result<bool> {
    let here = if at.as_os_str().is_empty() { Path::new(".") } else { at };
    let mut names: Vec<_> =
        dir.read_dir(here)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    order::sort(&mut names);
    for name in names {
        let path = at.join(name);
        let metadata = files::symlink_metadata(dir, &path)?;
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

    /// A git repository or settings of an editor in the results could run programs later.
    #[test]
    fn settings_of_tools_are_not_kept() {
        let skill = tempfile::tempdir().unwrap();
        let files =
            ["a.md", "settings.json", "a/.git/config", ".vscode/tasks.json", "b/HEAD", "node_modules/.bin/x"];
        for (with_settings, kept) in [(false, 2), (true, files.len())] {
            let run = RunDirectory::new(skill.path(), &[], with_settings).unwrap();
            for file in files {
                let path = run.path.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "x").unwrap();
            }
            let outputs = tempfile::tempdir().unwrap();
            assert_eq!(run.keep(outputs.path()).unwrap().len(), files.len());
            let exist = files.iter().filter(|file| outputs.path().join(file).exists());
            assert_eq!(exist.count(), kept);
        }
    }

    #[cfg(unix)]
    fn fifo(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    #[test]
    fn created_and_changed_files_are_kept() {
        let skill = tempfile::tempdir().unwrap();
        fs::create_dir_all(skill.path().join("evals/files/sub")).unwrap();
        for (name, text) in [("a.txt", "a"), ("b.txt", "b"), ("sub/c.txt", "c")] {
            fs::write(skill.path().join("evals/files").join(name), text).unwrap();
        }
        let files = ["evals/files/a.txt", "evals/files/b.txt", "evals/files/sub"].map(str::to_owned);
        let run = RunDirectory::new(skill.path(), &files, false).unwrap();
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
    fn settings_of_agents_are_only_copied_if_allowed() {
        let skill = tempfile::tempdir().unwrap();
        for (path, is_refused) in [
            ("evals/files/.opencode/plugin/p.js", true),
            ("evals/files/sub/.mcp.json", true),
            ("evals/files/OpenCode.json", true),
            (".envrc", true),
            ("evals/files/sub/HEAD", true),
            ("evals/files/sub/opencode.json", false),
            ("evals/files/a.json", false),
        ] {
            let file = skill.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "x").unwrap();
            let files = [path.to_owned()];
            let error = RunDirectory::new(skill.path(), &files, false).err();
            assert_eq!(
                error.is_some_and(|error| error.to_string().contains("--allow settings")),
                is_refused,
                "{path}"
            );
            assert!(RunDirectory::new(skill.path(), &files, true).is_ok(), "{path}");
        }
    }

    #[test]
    fn agents_receive_the_skill_without_its_cases() {
        let skill = tempfile::tempdir().unwrap();
        fs::create_dir_all(skill.path().join("evals/files")).unwrap();
        fs::create_dir_all(skill.path().join("references")).unwrap();
        for name in ["SKILL.md", "evals/evals.json", "references/evals.md"] {
            fs::write(skill.path().join(name), name).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/passwd", skill.path().join("link")).unwrap();
        // Links that form a loop, and links to files that don't exist.
        #[cfg(unix)]
        for (link, target) in
            [("one", "."), ("two", "."), ("references/up", ".."), ("none", "x"), ("self", "self")]
        {
            std::os::unix::fs::symlink(target, skill.path().join(link)).unwrap();
        }
        // We must not open a FIFO here, or we would block until something is written to it.
        #[cfg(unix)]
        fifo(&skill.path().join("references/fifo"));
        let (_scratch, copy) = copy_without_cases(skill.path()).unwrap();
        #[cfg(unix)]
        for name in ["one", "two", "references/up", "references/fifo", "none", "self"] {
            assert!(copy.join(name).symlink_metadata().is_err(), "{name}");
        }
        assert_eq!(copy.file_name(), skill.path().file_name());
        assert!(copy.join("SKILL.md").exists() && copy.join("references/evals.md").exists());
        assert!(!copy.join("evals").exists() && !copy.join("link").exists());
    }

    #[test]
    fn files_of_a_task_must_be_inside_the_skill() {
        let skill = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        assert!(RunDirectory::new(skill.path(), &["../x".to_owned()], true).is_err());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outside.path(), skill.path().join("x")).unwrap();
            assert!(RunDirectory::new(skill.path(), &["x".to_owned()], true).is_err());
            fifo(&skill.path().join("fifo"));
            assert!(RunDirectory::new(skill.path(), &["fifo".to_owned()], true).is_err());
        }
        drop(outside);
    }

    /// Each link becomes a file.
    #[cfg(unix)]
    #[test]
    fn links_do_not_multiply_a_file() {
        let skill = tempfile::tempdir().unwrap();
        fs::File::create(skill.path().join("large")).unwrap().set_len(64 * 1024 * 1024).unwrap();
        for number in 0..5 {
            std::os::unix::fs::symlink("large", skill.path().join(format!("link{number}"))).unwrap();
        }
        let error = copy_without_cases(skill.path()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("more than 256 MiB"), "{error}");
    }
}
