//! One directory: is it a skill, and which?

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::names::may_have_skills;
use crate::{
    diagnostic::Diagnostic,
    files::{FileError, SKILL_FILE_NAMES, SkillFiles},
    frontmatter::{self, ParseContext},
    last_good::LastGood,
    skill::{Scope, Skill, Source},
};

/// A skill that the user named and that cannot be loaded. At least one of the diagnostics is an error; its code says why.
///
/// Displays as `cannot load the skill …/SKILL.md:1:1: error[…]: …`, one line and its remedy for each error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot load the skill {}", errors(path, diagnostics))]
#[non_exhaustive]
pub struct LoadError {
    /// The `SKILL.md`, or the directory that should have one.
    pub path: PathBuf,
    /// Why.
    pub diagnostics: Vec<Diagnostic>,
}

fn errors(path: &Path, diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|it| it.is_error());
    errors.map(|error| error.in_file(path)).collect::<Vec<_>>().join("\n")
}

impl LoadError {
    /// A skill that cannot be loaded from `path`, and why.
    pub fn new(path: impl Into<PathBuf>, diagnostics: Vec<Diagnostic>) -> Self {
        Self { path: path.into(), diagnostics }
    }

    /// Whether there is no skill at all, not even a broken one.
    pub fn is_gone(&self) -> bool {
        let gone = ["no-skill-md", "no-such-directory", "not-a-directory"];
        self.diagnostics.iter().any(|finding| gone.contains(&finding.code))
    }
}

/// What a directory is.
#[derive(Debug)]
pub(super) enum Visit {
    /// A skill.
    Skill {
        skill: Arc<Skill>,
        diagnostics: Vec<Diagnostic>,
        /// Why the file cannot be loaded any more; the skill is as it was before that.
        broken: Option<LoadError>,
    },
    /// Not a skill, but its subdirectories may have some. When it has a `SKILL.md` that cannot be loaded,
    /// the error says why.
    Plain(Option<LoadError>, Vec<Child>),
}

impl Visit {
    /// The directory of a skill.
    pub(super) fn dir(&self) -> Option<&Arc<Path>> {
        match self {
            Self::Skill { skill, .. } => match &skill.source {
                Source::Stored(stored) => Some(&stored.dir),
                _ => None,
            },
            Self::Plain(..) => None,
        }
    }
}

type Loaded = Result<(Box<Skill>, Vec<Diagnostic>), LoadError>;

/// A directory in a directory, where there may be skills.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) name: OsString,
    pub(super) is_link: bool,
}

/// Loads the skill in `dir`, which may also be the path of its `SKILL.md`.
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
    match visit(&real, &dir_name, Scope::Named) {
        // Nothing else holds it yet.
        Ok(Visit::Skill { skill, diagnostics, .. }) => Ok((Arc::unwrap_or_clone(skill), diagnostics)),
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

/// Looks into the directory `real` (canonical), which is known as `dir_name`, for a skill of this scope.
///
/// The directory is listed only when it has no `SKILL.md`: most directories that are visited are skills.
pub(super) fn visit(real: &Path, dir_name: &OsStr, scope: Scope) -> io::Result<Visit> {
    let files = match SkillFiles::open_canonical(real) {
        Ok(files) => files,
        Err(FileError::Directory { source, .. }) => return Err(source),
        Err(error) => return Err(io::Error::other(error)),
    };
    let found = |mut skill: Box<Skill>, diagnostics| {
        skill.scope = scope;
        Visit::Skill { skill: Arc::from(skill), diagnostics, broken: None }
    };
    let mut loaded = load(&files, real, dir_name, SKILL_FILE_NAMES[0]);
    if let Some(Ok((skill, diagnostics))) = loaded {
        return Ok(found(skill, diagnostics));
    }
    let mut children = Vec::new();
    let mut other_spelling = None;
    for entry in files.entries()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if (kind.is_dir() || kind.is_symlink()) && may_have_skills(&entry.file_name()) {
            children.push(Child { name: entry.file_name(), is_link: kind.is_symlink() });
        }
        if !kind.is_dir() {
            // `skill.md` before `Skill.md`, whatever the order of the directory.
            other_spelling = other_spelling.max(skill_file_name(Some(&entry.file_name())));
        }
    }
    children.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    if loaded.is_none() {
        loaded = other_spelling.and_then(|name| load(&files, real, dir_name, name));
    }
    Ok(match loaded {
        Some(Ok((skill, diagnostics))) => found(skill, diagnostics),
        Some(Err(error)) => Visit::Plain(Some(error), children),
        None => Visit::Plain(None, children),
    })
}

/// Loads the skill from the file with this name; `None` when there is no such file.
fn load(files: &SkillFiles, real: &Path, dir_name: &OsStr, file_name: &'static str) -> Option<Loaded> {
    let broken = |diagnostics| Some(Err(LoadError { path: real.join(file_name), diagnostics }));
    let head = match files.head_if_exists(file_name.as_ref(), frontmatter::MAX_FRONTMATTER_BYTES as u64) {
        Ok(head) => head?,
        Err(error) => return broken(vec![error.to_diagnostic()]),
    };
    let other_spelling = files.other_spelling(file_name.as_ref());
    let spelled = other_spelling.as_deref().unwrap_or(file_name.as_ref());
    let file_name = skill_file_name(Some(spelled)).unwrap_or(file_name);
    let directory = dir_name.to_string_lossy();
    let context = ParseContext { directory: Some(&directory), file_bytes: Some(head.size) };
    let parsed = frontmatter::parse_bytes(&head.bytes, &context);
    let is_complete = parsed.is_complete();
    let (skill, mut diagnostics) = parsed.into_stored(real, file_name);
    if spelled != SKILL_FILE_NAMES[0] {
        let message = format!("the file is named {}, and most agents will not find it", spelled.display());
        diagnostics.push(Diagnostic::warning("file-name", message).help("rename it to SKILL.md"));
    }
    diagnostics.sort_by_key(|it| (it.line, it.column));
    match skill {
        Some(mut skill) => {
            if let Source::Stored(stored) = &mut skill.source {
                (stored.stamp, stored.is_complete) = (head.stamp(), is_complete);
                if is_complete && head.complete {
                    let text = frontmatter::decode(&head.bytes);
                    LastGood::of_found_skills().found(&stored.dir, &text, head.modified);
                }
            }
            Some(Ok((Box::new(skill), diagnostics)))
        }
        None => broken(diagnostics),
    }
}

/// The name of a skill's file that `name` is.
pub(super) fn skill_file_name(name: Option<&OsStr>) -> Option<&'static str> {
    SKILL_FILE_NAMES.into_iter().find(|known| name.is_some_and(|name| name == *known))
}

pub(super) fn unreadable(error: &io::Error) -> Diagnostic {
    match error.kind() {
        io::ErrorKind::NotFound => Diagnostic::error("no-such-directory", "there is no such directory"),
        io::ErrorKind::NotADirectory => Diagnostic::error("not-a-directory", "this is not a directory"),
        _ => Diagnostic::error("unreadable-directory", format!("cannot read the directory: {error}"))
            .caused_by(error),
    }
}
