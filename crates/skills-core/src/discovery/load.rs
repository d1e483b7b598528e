//! One directory: is it a skill, and which?

use std::{
    ffi::{OsStr, OsString},
    fmt, fs, io,
    path::{Path, PathBuf},
};

use crate::{
    Diagnostic, FileError, Skill, SkillFiles,
    files::SKILL_FILE_NAMES,
    frontmatter::{self, ParseContext},
};

/// A skill that somebody named and that cannot be loaded. One of the diagnostics is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadError {
    /// The `SKILL.md`, or the directory that should have one.
    pub path: PathBuf,
    /// Why.
    pub diagnostics: Vec<Diagnostic>,
}

/// `cannot load the skill …/SKILL.md:1:1: error[…]: …`, one line and its remedy for each error.
impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.diagnostics.iter().filter(|it| it.is_error());
        for (index, diagnostic) in errors.enumerate() {
            let start = if index == 0 { "cannot load the skill " } else { "\n" };
            let separator = if diagnostic.line == 0 { ": " } else { ":" };
            write!(f, "{start}{}{separator}{diagnostic}", self.path.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

/// What a directory is.
#[derive(Debug)]
pub(super) enum Visit {
    /// A skill.
    Skill(Box<Skill>, Vec<Diagnostic>),
    /// No skill, but perhaps there are some in the directories in it. When it has a `SKILL.md` that cannot be loaded,
    /// the error says why.
    Plain(Option<LoadError>, Vec<Child>),
}

type Loaded = Result<(Box<Skill>, Vec<Diagnostic>), LoadError>;

/// A directory in a directory.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) name: OsString,
    pub(super) is_link: bool,
}

/// Loads the skill in `dir`; the path of its `SKILL.md` will do as well.
///
/// # Errors
/// When there is nothing that can be loaded: no such directory, no `SKILL.md` in it, no frontmatter, or no
/// description. Everything else is a diagnostic beside the skill.
pub fn load_dir(dir: &Path) -> Result<(Skill, Vec<Diagnostic>), LoadError> {
    let fail = |diagnostic| LoadError { path: dir.to_owned(), diagnostics: vec![diagnostic] };
    let real = dunce::canonicalize(dir).map_err(|error| fail(unreadable(&error)))?;
    // A link may have another name than its target, and the skill is known by the former.
    let (real, dir_name) = match real.parent() {
        Some(parent) if real.is_file() && skill_file_name(real.file_name()).is_some() => {
            (parent.to_owned(), None)
        }
        _ => (real, dir.file_name().map(ToOwned::to_owned)),
    };
    let dir_name = dir_name.or_else(|| real.file_name().map(ToOwned::to_owned)).unwrap_or_default();
    match visit(&real, &dir_name) {
        Ok(Visit::Skill(skill, diagnostics)) => Ok((*skill, diagnostics)),
        Ok(Visit::Plain(Some(error), _)) => Err(error),
        Ok(Visit::Plain(None, _)) => {
            let diagnostic = Diagnostic::error("no-skill-md", "there is no SKILL.md in this directory");
            Err(fail(
                diagnostic.help("name the directory of one skill; a directory with many has to be scanned"),
            ))
        }
        Err(error) => Err(fail(unreadable(&error))),
    }
}

/// Looks into the directory `real` (canonical), which is known as `dir_name`.
///
/// The directory is listed only when it has no `SKILL.md`: most directories that are visited are skills.
pub(super) fn visit(real: &Path, dir_name: &OsStr) -> io::Result<Visit> {
    let files = match SkillFiles::open(real) {
        Ok(files) => files,
        Err(FileError::Directory { source, .. }) => return Err(source),
        Err(error) => return Err(io::Error::other(error)),
    };
    let mut loaded = load(&files, real, dir_name, SKILL_FILE_NAMES[0]);
    if let Some(Ok((skill, diagnostics))) = loaded {
        return Ok(Visit::Skill(skill, diagnostics));
    }
    let mut children = Vec::new();
    let mut other_spelling = None;
    for entry in fs::read_dir(real)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() || kind.is_symlink() {
            children.push(Child { name: entry.file_name(), is_link: kind.is_symlink() });
        }
        if !kind.is_dir() {
            // `skill.md` before `Skill.md`, whatever the order of the directory.
            other_spelling = other_spelling.max(skill_file_name(Some(&entry.file_name())));
        }
    }
    if loaded.is_none() {
        loaded = other_spelling.and_then(|name| load(&files, real, dir_name, name));
    }
    Ok(match loaded {
        Some(Ok((skill, diagnostics))) => Visit::Skill(skill, diagnostics),
        Some(Err(error)) => Visit::Plain(Some(error), children),
        None => Visit::Plain(None, children),
    })
}

/// Loads the skill from the file with this name; `None` when there is no such file.
fn load(files: &SkillFiles, real: &Path, dir_name: &OsStr, file_name: &'static str) -> Option<Loaded> {
    let broken = |diagnostics| Some(Err(LoadError { path: real.join(file_name), diagnostics }));
    let head = match files.head_if_exists(file_name, frontmatter::MAX_FRONTMATTER_BYTES as u64) {
        Ok(head) => head?,
        Err(error) => {
            let diagnostic = Diagnostic::error(error.code(), error.to_string());
            return broken(vec![match error {
                FileError::Outside { .. } => {
                    diagnostic.help("link the skill's directory instead of the file")
                }
                _ => diagnostic,
            }]);
        }
    };
    let directory = dir_name.to_string_lossy();
    let context = ParseContext { directory: Some(&directory), file_bytes: Some(head.size) };
    let (skill, mut diagnostics) =
        frontmatter::parse_bytes(&head.bytes, &context).into_stored(real, file_name);
    if file_name != SKILL_FILE_NAMES[0] {
        let message = format!("the file is named {file_name}, and most agents will not find it");
        diagnostics.push(Diagnostic::warning("file-name", message).help("rename it to SKILL.md"));
    }
    diagnostics.sort_by_key(|it| (it.line, it.column));
    match skill {
        Some(skill) => Some(Ok((Box::new(skill), diagnostics))),
        None => broken(diagnostics),
    }
}

/// The name of a skill's file that `name` is.
fn skill_file_name(name: Option<&OsStr>) -> Option<&'static str> {
    SKILL_FILE_NAMES.into_iter().find(|known| name.is_some_and(|name| name == *known))
}

pub(super) fn unreadable(error: &io::Error) -> Diagnostic {
    match error.kind() {
        io::ErrorKind::NotFound => Diagnostic::error("no-such-directory", "there is no such directory"),
        io::ErrorKind::NotADirectory => Diagnostic::error("not-a-directory", "this is not a directory"),
        _ => Diagnostic::error("unreadable-directory", format!("cannot read the directory: {error}")),
    }
}
