//! One directory: is it a skill, and which?

use std::{
    ffi::{OsStr, OsString},
    fmt,
    hash::{DefaultHasher, Hasher},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Diagnostic, FileError, Scope, Skill, SkillFiles, Source,
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
    /// No skill, but perhaps there are some in the directories in it. When it has a `SKILL.md` that cannot be loaded,
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
    match visit(&real, &dir_name, Scope::Named) {
        // Nobody else has it yet.
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
        if (kind.is_dir() || kind.is_symlink()) && is_searched(&entry.file_name()) {
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
    let (skill, mut diagnostics) =
        frontmatter::parse_bytes(&head.bytes, &context).into_stored(real, file_name);
    if spelled != SKILL_FILE_NAMES[0] {
        let message = format!("the file is named {}, and most agents will not find it", spelled.display());
        diagnostics.push(Diagnostic::warning("file-name", message).help("rename it to SKILL.md"));
    }
    diagnostics.sort_by_key(|it| (it.line, it.column));
    match skill {
        Some(mut skill) => {
            if let Source::Stored(stored) = &mut skill.source {
                stored.stamp = stamp(&head.bytes, head.size);
            }
            Some(Ok((Box::new(skill), diagnostics)))
        }
        None => broken(diagnostics),
    }
}

/// Tells one text from another: by its beginning, which is all of it for nearly every skill, and by its size.
fn stamp(beginning: &[u8], size: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(beginning);
    hasher.write_u64(size);
    hasher.finish()
}

/// The name of a skill's file that `name` is.
pub(super) fn skill_file_name(name: Option<&OsStr>) -> Option<&'static str> {
    SKILL_FILE_NAMES.into_iter().find(|known| name.is_some_and(|name| name == *known))
}

pub(super) fn unreadable(error: &io::Error) -> Diagnostic {
    match error.kind() {
        io::ErrorKind::NotFound => Diagnostic::error("no-such-directory", "there is no such directory"),
        io::ErrorKind::NotADirectory => Diagnostic::error("not-a-directory", "this is not a directory"),
        _ => Diagnostic::error("unreadable-directory", format!("cannot read the directory: {error}")),
    }
}

/// Whether a directory with this name may have skills.
fn is_searched(name: &OsString) -> bool {
    let bytes = name.as_encoded_bytes();
    match bytes {
        [b'.', ..] => matches!(bytes, b".skills" | b".agents" | b".claude"),
        _ => !matches!(bytes, b"node_modules" | b"target"),
    }
}
