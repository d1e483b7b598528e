//! What a path on the command line means: a skill, or a directory with skills.

use std::{
    env, fs, io,
    path::{Component, Path, PathBuf},
};

use skills_core::{
    Diagnostic, Source,
    discovery::{Discovery, Root},
    files::SKILL_FILE_NAMES,
    text::shown_path,
};

use crate::{
    error::{UsageError, not_expanded},
    progress::Progress,
};

/// Something to say a verdict about.
pub(crate) enum Candidate {
    /// A `SKILL.md`.
    File(PathBuf),
    /// What kept the search from looking into a path.
    Unread(PathBuf, Vec<Diagnostic>),
}

impl Candidate {
    /// Where it is, from the root on.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Unread(path, _) => path,
        }
    }
}

/// What a path means: the directory of a skill, a `SKILL.md`, or a directory to look for skills in.
///
/// # Errors
/// It does not exist, or there is no skill in it.
pub(crate) fn find(path: &Path) -> Result<Vec<Candidate>, UsageError> {
    let shown = shown_path(path);
    let path = match meaning(path, "check")? {
        Meaning::Skill(file) => return Ok(vec![Candidate::File(file)]),
        Meaning::Root(path) => path,
    };
    let skills = {
        let _progress = Progress::spinner("looking for skills");
        Discovery::new([Root::scanned(&path)]).find()
    };
    let stored = skills.iter().filter_map(|skill| match &skill.source {
        Source::Stored(stored) => Some(Candidate::File(stored.file())),
        _ => None,
    });
    let shadowed = skills.shadowed().iter().filter_map(|it| it.path.clone()).map(Candidate::File);
    let skipped = skills.skipped().iter().map(|it| {
        if it.path.is_file() {
            Candidate::File(it.path.clone())
        } else {
            Candidate::Unread(it.path.clone(), it.diagnostics.clone())
        }
    });
    let mut found: Vec<Candidate> = stored.chain(shadowed).chain(skipped).collect();
    if found.is_empty() {
        let hint = "a skill is a directory with a file named SKILL.md";
        return Err(UsageError::new(format!("there is no skill in `{shown}`")).hint(hint));
    }
    found.sort_by(|a, b| a.path().cmp(b.path()));
    Ok(found)
}

/// What a path can mean.
pub(crate) enum Meaning {
    /// This `SKILL.md`.
    Skill(PathBuf),
    /// A directory to look for skills in.
    Root(PathBuf),
}

/// What `path` means; the answer has it from the root on. `purpose` is what is to be done with it.
///
/// # Errors
/// It does not exist.
pub(crate) fn meaning(path: &Path, purpose: &str) -> Result<Meaning, UsageError> {
    let cannot = |error: io::Error| {
        let error = UsageError::failed(format_args!("cannot {purpose} `{}`", shown_path(path)), error);
        match not_expanded(path) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    };
    let metadata = fs::metadata(path).map_err(cannot)?;
    let path = absolute(path).map_err(cannot)?;
    if metadata.is_file() {
        return Ok(Meaning::Skill(path));
    }
    Ok(skill_file(&path).map_or(Meaning::Root(path), Meaning::Skill))
}

/// `path` from the root on. Links stay, because a skill is known by the name of its link.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    // `..` would leave the skill's directory without a name.
    if absolute.file_name().is_none() || absolute.components().any(|it| it == Component::ParentDir) {
        return dunce::canonicalize(absolute);
    }
    Ok(absolute)
}

/// The `SKILL.md` in `dir`, as the directory spells it.
pub(crate) fn skill_file(dir: &Path) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.file_name()).collect();
    let name = SKILL_FILE_NAMES.into_iter().find(|name| entries.iter().any(|entry| entry == name))?;
    Some(dir.join(name)).filter(|path| path.is_file())
}

/// Where we are and where home is, for paths that people read.
pub(crate) struct Places {
    here: Option<PathBuf>,
    home: Option<PathBuf>,
}

impl Places {
    pub(crate) fn new() -> Self {
        let real = |path: PathBuf| dunce::canonicalize(&path).unwrap_or(path);
        let home = env::home_dir().filter(|home| home.is_absolute());
        Self { here: env::current_dir().ok().map(real), home: home.map(real) }
    }

    /// `path` as a person would write it: from the working directory on, or from `~`.
    pub(crate) fn short(&self, path: &Path) -> String {
        let below = |dir: &Option<PathBuf>| Some(path.strip_prefix(dir.as_ref()?).ok()?.to_owned());
        let short = match below(&self.here) {
            Some(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
            Some(rest) => rest,
            None => below(&self.home).map_or_else(|| path.to_owned(), |rest| Path::new("~").join(rest)),
        };
        shown_path(&short)
    }
}
