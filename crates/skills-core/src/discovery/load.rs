//! Loads the skill of a directory.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Root, names::may_have_skills};
use crate::{
    diagnostic::Diagnostic,
    evaluation::{BENCHMARK, ITERATION_PREFIX, MANIFEST, TRIGGERS, WORKSPACE_SUFFIX},
    files::{FileError, SKILL_FILE_NAMES, SkillFiles},
    frontmatter::{self, ParseContext},
    last_good::LastGood,
    order,
    skill::{Scope, Skill, Source},
};

/// The error of a skill that can't be loaded. At least one of the diagnostics is an error.
///
/// This error is displayed as `failed to load skill …/SKILL.md:1:1: error[…]: …`, with a line and a hint for each problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to load skill {}", errors(path, diagnostics))]
#[non_exhaustive]
pub struct LoadError {
    /// The path of the `SKILL.md`, or of the directory that should contain one.
    pub path: PathBuf,
    /// The problems.
    pub diagnostics: Vec<Diagnostic>,
}

fn errors(path: &Path, diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    errors.map(|error| error.in_file(path)).collect::<Vec<_>>().join("\n")
}

impl LoadError {
    /// Creates an error for the skill at `path`.
    pub fn new(path: impl Into<PathBuf>, diagnostics: Vec<Diagnostic>) -> Self {
        Self { path: path.into(), diagnostics }
    }

    /// Returns true if the directory or its `SKILL.md` doesn't exist.
    pub fn is_gone(&self) -> bool {
        let gone = ["no-skill-md", "no-such-directory", "not-a-directory"];
        self.diagnostics.iter().any(|finding| gone.contains(&finding.code))
    }
}

/// The result of reading a directory.
#[derive(Debug)]
pub(super) enum Visit {
    /// The directory is a skill.
    Skill {
        skill: Arc<Skill>,
        diagnostics: Vec<Diagnostic>,
        /// The error, if the file can no longer be loaded and `skill` is a previous version.
        broken: Option<LoadError>,
        /// The subdirectories, if skills within a skill are searched for.
        children: Option<Vec<Child>>,
    },
    /// The directory is not a skill, but its subdirectories may be. The error is set if it has a `SKILL.md` that can't be
    /// loaded.
    Plain(Option<LoadError>, Vec<Child>),
}

impl Visit {
    /// Returns the path of the directory, or `None` if this is not a skill.
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

/// A subdirectory that may have skills.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) name: OsString,
    pub(super) is_link: bool,
}

/// Loads the skill in `dir`, which can also be the path of its `SKILL.md`. Returns the skill and its diagnostics.
///
/// # Errors
/// Returns [`LoadError`] if the directory can't be read, if it has no `SKILL.md`, or if the file has no frontmatter or no
/// description. Other problems are diagnostics.
pub fn load_dir(dir: &Path) -> Result<(Skill, Vec<Diagnostic>), LoadError> {
    let fail = |diagnostic| LoadError { path: dir.to_owned(), diagnostics: vec![diagnostic] };
    let real = dunce::canonicalize(dir).map_err(|error| fail(unreadable(&error)))?;
    // If `dir` is a link, we use the name of the link instead of its target's name.
    let (real, dir_name) = match real.parent() {
        Some(parent) if real.is_file() && skill_file_name(real.file_name()).is_some() => {
            (parent.to_owned(), None)
        }
        _ => (real, dir.file_name().map(ToOwned::to_owned)),
    };
    let dir_name = dir_name.or_else(|| real.file_name().map(ToOwned::to_owned)).unwrap_or_default();
    match visit(&real, &dir_name, &Root::new(Scope::Named, dir), false) {
        // This doesn't need to clone the skill, since it's not shared yet.
        Ok(Visit::Skill { skill, diagnostics, .. }) => Ok((Arc::unwrap_or_clone(skill), diagnostics)),
        Ok(Visit::Plain(Some(error), _)) => Err(error),
        Ok(Visit::Plain(None, _)) => {
            let diagnostic = Diagnostic::error("no-skill-md", "directory has no SKILL.md");
            Err(fail(diagnostic.help(
                "use a directory that contains a SKILL.md, or scan the directory to load several skills",
            )))
        }
        Err(error) => Err(fail(unreadable(&error))),
    }
}

/// Reads the directory with the canonical path `real` and the name `dir_name`. Its skill gets the scope and the session root of
/// `root`.
///
/// The directory is listed only if it has no `SKILL.md`, because most visited directories are skills. With `nested`, the directory
/// of a skill is listed too.
pub(super) fn visit(real: &Path, dir_name: &OsStr, root: &Root, nested: bool) -> io::Result<Visit> {
    let files = match SkillFiles::open_canonical(real) {
        Ok(files) => files,
        Err(FileError::Directory { source, .. }) => return Err(source),
        Err(error) => return Err(io::Error::other(error)),
    };
    let found = |mut skill: Box<Skill>, diagnostics, children| {
        skill.scope = root.scope;
        skill.session_root.clone_from(&root.session_root);
        Visit::Skill { skill: Arc::from(skill), diagnostics, broken: None, children }
    };
    let mut loaded = load(&files, real, dir_name, SKILL_FILE_NAMES[0]);
    if !nested && let Some(Ok((skill, diagnostics))) = loaded {
        return Ok(found(skill, diagnostics, None));
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
            // We always prefer `skill.md` to `Skill.md`, no matter which one is listed first.
            other_spelling = other_spelling.max(skill_file_name(Some(&entry.file_name())));
        }
    }
    if is_workspace(real, dir_name, &children) {
        children.clear();
    }
    order::sort_by(&mut children, |a, b| a.name.cmp(&b.name));
    if loaded.is_none() {
        loaded = other_spelling.and_then(|name| load(&files, real, dir_name, name));
    }
    Ok(match loaded {
        Some(Ok((skill, diagnostics))) => found(skill, diagnostics, nested.then_some(children)),
        Some(Err(error)) => Visit::Plain(Some(error), children),
        None => Visit::Plain(None, children),
    })
}

/// Returns true if a directory has the results of evaluations: it has directories `iteration-N`, and is called
/// `NAME-workspace`, or has the setup of an evaluation or its results in an iteration. The files in it are from agents, and
/// must not become skills. A `SKILL.md` in the directory itself is a skill.
fn is_workspace(real: &Path, dir_name: &OsStr, children: &[Child]) -> bool {
    let is_iteration = |child: &&Child| {
        let number = child.name.to_str().and_then(|name| name.strip_prefix(ITERATION_PREFIX));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut iterations = children.iter().filter(is_iteration).peekable();
    if iterations.peek().is_none() {
        return false;
    }
    let has_results = |child: &Child| {
        let results = [MANIFEST, BENCHMARK, TRIGGERS];
        results.iter().any(|file| real.join(&child.name).join(file).is_file())
    };
    let is_named =
        |name: Option<&OsStr>| name.is_some_and(|name| name.to_string_lossy().ends_with(WORKSPACE_SUFFIX));
    is_named(Some(dir_name)) || is_named(real.file_name()) || iterations.any(has_results)
}

/// Loads the skill from the file with this name. Returns `None` if the file doesn't exist.
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
        let message = format!("file is named {}, but most agents only find SKILL.md", spelled.display());
        diagnostics.push(Diagnostic::warning("file-name", message).help("rename the file to SKILL.md"));
    }
    order::sort_by_key(&mut diagnostics, |diagnostic| (diagnostic.line, diagnostic.column));
    match skill {
        Some(mut skill) => {
            if let Source::Stored(stored) = &mut skill.source {
                stored.stamp = head.stamp();
                stored.is_complete = is_complete;
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

/// Returns the accepted spelling of `SKILL.md` that is equal to `name`, if there is one.
pub(super) fn skill_file_name(name: Option<&OsStr>) -> Option<&'static str> {
    SKILL_FILE_NAMES.into_iter().find(|known| name.is_some_and(|name| name == *known))
}

pub(super) fn unreadable(error: &io::Error) -> Diagnostic {
    match error.kind() {
        io::ErrorKind::NotFound => Diagnostic::error("no-such-directory", "directory does not exist"),
        io::ErrorKind::NotADirectory => Diagnostic::error("not-a-directory", "not a directory"),
        _ => Diagnostic::error("unreadable-directory", format!("failed to read directory: {error}"))
            .caused_by(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The results of an evaluation are not skills. A skill beside them is one.
    #[test]
    fn a_workspace_has_no_skills_below_it() {
        const GOOD: &str = "---\nname: x-workspace\ndescription: d\n---\n";
        for (file, text, expected) in [
            ("SKILL.md", GOOD, "skill"),
            ("skill.md", GOOD, "skill"),
            ("SKILL.md", "no frontmatter", "error"),
            ("skill.md", "no frontmatter", "error"),
            ("notes.md", GOOD, "plain"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let workspace = dir.path().join("x-workspace");
            fs::create_dir_all(workspace.join("iteration-1")).unwrap();
            fs::write(workspace.join(file), text).unwrap();
            let real = dunce::canonicalize(&workspace).unwrap();
            let found = match visit(&real, OsStr::new("x-workspace"), &Root::new(Scope::Named, &real), false)
                .unwrap()
            {
                Visit::Skill { .. } => "skill",
                Visit::Plain(error, children) => {
                    assert!(children.is_empty(), "{file}");
                    if error.is_some() { "error" } else { "plain" }
                }
            };
            assert_eq!(found, expected, "{file}: {text}");
        }
    }
}
