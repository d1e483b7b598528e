//! Resolves a path on the command line to a skill or to a directory that contains skills.

use std::{
    env, fs, io, iter,
    path::{Component, Path, PathBuf},
};

use skills_core::{
    Diagnostic, Source,
    discovery::{Discovery, Root, skills_within},
    files::SKILL_FILE_NAMES,
    order,
    text::shown_path,
};
use skills_sources::Address;

use crate::{
    error::{UsageError, not_expanded},
    progress::Progress,
};

/// A path to check.
pub(crate) enum Candidate {
    /// A `SKILL.md`.
    File(PathBuf),
    /// A directory that can't be searched, and the reason.
    Unread(PathBuf, Vec<Diagnostic>),
}

impl Candidate {
    /// Returns the absolute path.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Unread(path, _) => path,
        }
    }
}

/// Returns the skills at a path: a skill's directory, a `SKILL.md`, or a directory to search for skills. Skills within the
/// directories of other skills are included.
///
/// # Errors
/// Returns an error if the path does not exist or contains no skill.
pub(crate) fn find(path: &Path) -> Result<Vec<Candidate>, UsageError> {
    let shown = shown_path(path);
    let path = match meaning(path, "check")? {
        Meaning::Skill(file) => {
            let within =
                fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()).then(|| skills_within(path));
            let within = within.into_iter().flatten().map(Candidate::File);
            return Ok(iter::once(Candidate::File(file)).chain(within).collect());
        }
        Meaning::Root(path) => path,
    };
    let skills = {
        let _progress = Progress::spinner("looking for skills");
        Discovery { nested: true, ..Discovery::new([Root::scanned(&path)]) }.find()
    };
    let stored = skills.iter().filter_map(|skill| match &skill.source {
        Source::Stored(stored) => Some(Candidate::File(stored.file())),
        _ => None,
    });
    let shadowed = skills.shadowed().iter().filter_map(|shadowed| shadowed.path.clone()).map(Candidate::File);
    let skipped = skills.skipped().iter().map(|skipped| {
        if skipped.path.is_file() {
            Candidate::File(skipped.path.clone())
        } else {
            Candidate::Unread(skipped.path.clone(), skipped.diagnostics.clone())
        }
    });
    let mut found: Vec<Candidate> = stored.chain(shadowed).chain(skipped).collect();
    if found.is_empty() {
        let hint = "a skill is a directory with a SKILL.md file";
        return Err(UsageError::new(format!("no skills found in `{shown}`")).hint(hint));
    }
    order::sort_by(&mut found, |a, b| a.path().cmp(b.path()));
    Ok(found)
}

/// The target of a path on the command line.
pub(crate) enum Meaning {
    /// A `SKILL.md`.
    Skill(PathBuf),
    /// A directory to search for skills.
    Root(PathBuf),
}

/// Resolves `path`. The result is an absolute path. `purpose` is a verb for the error, such as `check`.
///
/// # Errors
/// Returns an error if the path does not exist.
pub(crate) fn meaning(path: &Path, purpose: &str) -> Result<Meaning, UsageError> {
    let cannot = |error: io::Error| {
        let error = UsageError::at(format_args!("cannot {purpose}"), path, error);
        match not_expanded(path).or_else(|| not_a_path(path)) {
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

/// Returns a hint if a missing path is the address of a source.
fn not_a_path(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let prefixes = ["github:", "gitlab:", "git+", "git@", "https:", "http:"];
    prefixes.iter().any(|prefix| text.starts_with(prefix)).then(|| match Address::parse(text) {
        Ok(address) => format!(
            "this command reads directories; use `acp-skills-proxy list --source '{address}'` to list the skills of a source, or \
             `acp-skills-proxy add '{address}'` to see what a scan finds before you approve them"
        ),
        Err(error) => format!("this command reads directories, and this is not a source either: {error}"),
    })
}

/// Makes `path` absolute. Symbolic links are not resolved, because the name of the link is the name of the skill.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    // We need to resolve `..` here to get the name of the directory.
    if absolute.file_name().is_none() || absolute.components().any(|part| part == Component::ParentDir) {
        return dunce::canonicalize(absolute);
    }
    Ok(absolute)
}

/// Returns the `SKILL.md` in `dir`, in the spelling of the directory entry.
pub(crate) fn skill_file(dir: &Path) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.file_name()).collect();
    let name = SKILL_FILE_NAMES.into_iter().find(|name| entries.iter().any(|entry| entry == name))?;
    Some(dir.join(name)).filter(|path| path.is_file())
}

/// The working directory and the home directory, to shorten paths in output.
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

    /// Shortens `path`: relative to the working directory, or to `~`.
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
