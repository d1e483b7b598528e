//! Reads and writes the files of a workspace. No link in a path is followed, because a script of a session can make one at any time.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::Value;
use skills_core::json::has_more_values_than;
use skills_sources::disk::{HeldDirectory, patient, without_links};

use super::super::{EvaluationError, cases::MAX_FILE_VALUES};

/// The maximum size of a file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Follows the links in the path of the directory above a workspace, which the user chose.
///
/// # Errors
/// Returns [`EvaluationError::Link`] if the workspace itself is a symbolic link.
pub(super) fn canonical_root(root: &Path) -> Result<PathBuf, EvaluationError> {
    let Some(name) = root.file_name() else { return Ok(without_links(root)) };
    if root.is_symlink() {
        return Err(EvaluationError::Link(root.to_owned()));
    }
    let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(without_links(parent).join(name))
}

/// Opens the directory of a file or directory. Returns it with a path that leads through it.
fn held(path: &Path) -> io::Result<(HeldDirectory, PathBuf)> {
    let directory = HeldDirectory::open(path.parent().unwrap_or(Path::new(".")))?;
    let path = directory.file(path.file_name().unwrap_or_default());
    Ok((directory, path))
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> EvaluationError {
    |source| EvaluationError::Unwritable { path: path.to_owned(), source }
}

/// Creates a directory that doesn't exist yet.
pub(super) fn make_new(path: &Path) -> Result<(), EvaluationError> {
    held(path).and_then(|(_held, path)| fs::create_dir(path)).map_err(unwritable(path))
}

/// Creates a directory, or removes all of its contents.
pub(super) fn make_empty(path: &Path) -> Result<(), EvaluationError> {
    match held(path).and_then(|(_held, path)| fs::remove_dir_all(path)) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(unwritable(path)(source)),
        _ => make(path),
    }
}

/// Creates a directory and those above it, unless they exist.
pub(super) fn make(path: &Path) -> Result<(), EvaluationError> {
    HeldDirectory::create(path).map(drop).map_err(unwritable(path))
}

/// Writes a file atomically, because the process can be killed at any time. A link is replaced and not followed, because a script of
/// another session could have made it.
pub(in super::super) fn write(path: &Path, text: &str) -> Result<(), EvaluationError> {
    let written = held(path).and_then(|(directory, path)| {
        let mut file = tempfile::NamedTempFile::new_in(directory.path())?;
        file.write_all(text.as_bytes())?;
        // Temporary files are only readable by the owner, so we need to set the usual permissions.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        }
        file.persist(path).map_err(|error| error.error).map(drop)
    });
    written.map_err(unwritable(path))
}

/// Creates a file, in place of a file or a link with the same path.
pub(in super::super) fn create(path: &Path) -> io::Result<File> {
    let (_held, path) = held(path)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

pub(in super::super) fn write_json(path: &Path, value: &Value) -> Result<(), EvaluationError> {
    write(path, &format!("{value:#}\n"))
}

/// Reads a file of a workspace. It can come from the author of the skill, so it could also be a FIFO or a link to a device.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let text = patient::read_text(path, MAX_FILE_BYTES)?;
    if has_more_values_than(text.as_bytes(), MAX_FILE_VALUES) {
        let why = format!("the file has more than {MAX_FILE_VALUES} values");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(text)
}

pub(in super::super) fn read_json(path: &Path) -> Result<Value, EvaluationError> {
    let unreadable = |source| EvaluationError::Unreadable { path: path.to_owned(), source };
    let text = read_text(path).map_err(unreadable)?;
    serde_json::from_str(&text).map_err(|error| unreadable(error.into()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::{
        super::super::{Case, Configuration, RunId, directory::copy_all, workspace::Workspace},
        *,
    };

    #[cfg(target_os = "linux")]
    #[test]
    fn links_in_a_path_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let mine = dir.join("mine");
        fs::create_dir_all(mine.join("demo")).unwrap();
        fs::write(mine.join("demo/kept"), "").unwrap();
        let skill = dir.join("skills/demo");
        fs::create_dir_all(&skill).unwrap();
        fs::write(skill.join("SKILL.md"), "x").unwrap();
        let link = dir.join("iteration-1");
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        let root = canonical_root(&link);
        assert!(matches!(root, Err(EvaluationError::Link(_))), "{root:?}");
        // This directory was checked before the link appeared.
        let workspace = Workspace { iteration: dir.clone(), is_shared: false };
        let id = RunId {
            agent: String::new(),
            case: Case::Eval("x".to_owned()),
            configuration: Configuration::WithSkill,
            number: 1,
        };
        std::os::unix::fs::symlink(&mine, dir.join("eval-x")).unwrap();
        assert!(workspace.fresh_run(&id).is_err());
        assert!(copy_all(&skill, &link.join("demo")).is_err());
        assert!(make(&link.join("new")).is_err());
        assert!(write(&link.join("new"), "x").is_err());
        assert!(create(&link.join("demo/kept")).is_err());
        let left: Vec<_> = fs::read_dir(&mine).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["demo"]);
        assert_eq!(fs::read_dir(mine.join("demo")).unwrap().count(), 1);
    }

    /// A script that runs beside the evaluation can make links in its directory.
    #[test]
    fn links_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let mine = dir.join("mine");
        let link = dir.join("transcript.md");
        let writes: [&dyn Fn(); 2] = [&|| write(&link, "new").unwrap(), &|| drop(create(&link).unwrap())];
        for write in writes {
            fs::write(&mine, "old").unwrap();
            std::os::unix::fs::symlink(&mine, &link).unwrap();
            write();
            assert_eq!(fs::read_to_string(&mine).unwrap(), "old");
            fs::remove_file(&link).unwrap();
        }
    }
}
