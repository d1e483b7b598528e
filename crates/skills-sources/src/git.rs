//! Fetches the skills of a git repository with the user's own `git`.
//!
//! | file | responsible for |
//! |---|---|
//! | `command` | running `git` isolated from what the repository says |
//! | `tree` | selecting the files to fetch |
//! | `paths` | paths that are safe on every operating system |
//! | `checkout` | writing the files |
//!
//! Each fetch uses a new repository that is deleted afterwards, so it can't become stale, be corrupted, or be shared by two
//! processes. First, one commit is fetched, without file contents if the server supports filters; then only the files of skills.

mod checkout;
mod command;
mod paths;
pub(super) mod tree;

use std::{
    collections::HashSet,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use skills_core::{exec::ProcessObserver, text::shown_lines};

use self::command::Git;
use super::address::GitPlace;

/// The timeout of a fetch.
pub(super) const TIMEOUT: Duration = Duration::from_mins(5);

/// The result of a fetch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    /// The hash of the commit.
    pub(super) commit: String,
    /// Notes for the user about files that were left out.
    pub(super) notes: Vec<String>,
}

/// An error of fetching a repository.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// `git` is not in `PATH`.
    #[error("`git` not found in PATH")]
    NoGit,
    /// The fetch timed out.
    #[error("git timed out after {} s", .0.as_secs())]
    TooLong(Duration),
    /// `git` exited with an error.
    #[error("`git {what}` failed: {}", error_lines(said))]
    Failed {
        /// The git command, such as `fetch`.
        what: String,
        /// The end of its stderr.
        said: String,
    },
    /// The repository has no such branch, tag or commit.
    #[error("no such branch, tag or commit: `{0}`")]
    NoReference(String),
    /// The repository has no such directory.
    #[error("no such directory in the repository: `{0}`")]
    NoDirectory(String),
    /// The repository exceeds a limit.
    #[error("repository is too large: {0}")]
    TooMuch(String),
    /// `git` can't be started, or its pipes fail.
    #[error("cannot run `git {what}`: {source}")]
    System {
        /// The git command, such as `fetch`.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A file can't be written.
    #[error("cannot write to {}: {source}", path.display())]
    Write {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl GitError {
    /// Returns a hint about how to resolve the problem.
    pub fn hint(&self) -> &'static str {
        let said = |words: &str| matches!(self, Self::Failed { said, .. } if said.contains(words));
        match self {
            Self::NoGit => "install git, or remove the source",
            Self::TooLong(_) => "check the network and retry",
            Self::NoReference(_) => {
                "check the name on the repository page; for a name with `/`, use `git+https://…#NAME:PATH`"
            }
            Self::NoDirectory(_) => "check the directory on the repository page",
            Self::TooMuch(_) => "add the directory that contains the skills: `github:OWNER/REPO/PATH`",
            Self::Failed { .. } if said("Could not resolve host") || said("unable to access") => {
                "check network and proxy settings (`git config http.proxy`)"
            }
            Self::Failed { .. } if said("No space left on device") || said("Disk quota exceeded") => {
                "check free disk space and permissions"
            }
            Self::Failed { .. } if said("dubious ownership") => {
                "repository belongs to another user; if you trust that user, run `git config --global --add safe.directory DIRECTORY`"
            }
            Self::Failed { .. } if said("mismatched algorithms") => {
                "repositories with SHA-256 objects are not supported; use SHA-1 objects instead"
            }
            Self::Failed { .. } => {
                "check if `git ls-remote URL` works without a prompt; private repositories need a key or credential \
                 helper"
            }
            Self::System { .. } | Self::Write { .. } => {
                "check free disk space and permissions"
            }
        }
    }
}

/// Returns the last lines of git's output that contain an error.
fn error_lines(said: &str) -> String {
    let lines: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let reasons: Vec<_> = lines
        .iter()
        .filter(|line| ["fatal: ", "error: ", "ERROR: "].iter().any(|prefix| line.starts_with(prefix)))
        .copied()
        .collect();
    let relevant = if reasons.is_empty() { lines } else { reasons };
    let text = relevant[relevant.len().saturating_sub(3)..].join("; ");
    shown_lines(if text.is_empty() { "no error message from git" } else { &text }).into_owned()
}

/// Fetches the skills below `place` and writes them to `directory`, which must be empty. Without a `commit`, the current commit of
/// the reference is fetched. `scratch` is an empty directory for git's own files.
///
/// Blocks until the fetch has finished, at most for `timeout`.
pub(super) fn fetch(
    place: &GitPlace,
    commit: Option<&str>,
    directory: &Path,
    scratch: &Path,
    observer: Option<Arc<dyn ProcessObserver>>,
    timeout: Duration,
) -> Result<Fetched, GitError> {
    let git = Git::new(scratch, place.transport, observer, timeout)?;
    git.run(&["init", "--quiet", "--bare", "--template="])?;
    git.run(&["config", "remote.origin.url", &place.url])?;
    let commit = match commit {
        Some(commit) => fetch_commit(&git, place, commit)?,
        None => fetch_reference(&git, place.reference.as_deref())?,
    };
    let at = format!("{commit}:{}", place.path);
    let entries = match git.talk(&["ls-tree", "-r", "-z", &at], Vec::new(), tree::read) {
        Err(GitError::Failed { .. }) => return Err(GitError::NoDirectory(place.path.clone())),
        entries => entries?,
    };
    let selection = tree::select(&entries)?;
    let mut objects: Vec<&str> = selection.wanted.iter().map(|file| file.object.as_str()).collect();
    let input = lines(&objects);
    objects.sort_unstable();
    objects.dedup();
    let missing = missing(&git, &commit)?;
    objects.retain(|object| missing.contains(*object));
    if !objects.is_empty() {
        fetch_objects(&git, &objects)?;
    }
    let wanted = &selection.wanted;
    git.talk(&["cat-file", "--batch", "--buffer"], input, |output| {
        checkout::write(output, wanted, directory)
    })?;
    Ok(Fetched { commit, notes: selection.notes })
}

const FETCH: [&str; 7] = [
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-recurse-submodules",
    "--no-auto-maintenance",
    "--filter=blob:none",
    "--update-shallow",
];

/// Fetches the current commit of a reference.
fn fetch_reference(git: &Git<'_>, reference: Option<&str>) -> Result<String, GitError> {
    let name = reference.unwrap_or("HEAD");
    match git.run(&[&FETCH[..], &["--depth=1", "--", "origin", name]].concat()) {
        Ok(()) => git.line(&["rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}"]),
        // Servers only accept full commit hashes, so we need to fetch all commits to find an abbreviated hash.
        Err(GitError::Failed { said, .. }) if is_commit(name) && is_unknown(&said) => {
            let all = ["--", "origin", "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];
            git.run(&[&FETCH[..], &all[..]].concat())?;
            git.line(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")])
                .map_err(|_| GitError::NoReference(name.to_owned()))
        }
        Err(GitError::Failed { said, .. }) if is_unknown(&said) => {
            Err(GitError::NoReference(name.to_owned()))
        }
        Err(error) => Err(error),
    }
}

/// Fetches one commit.
fn fetch_commit(git: &Git<'_>, place: &GitPlace, commit: &str) -> Result<String, GitError> {
    let gone = || GitError::NoReference(commit.to_owned());
    match git.run(&[&FETCH[..], &["--depth=1", "--", "origin", commit]].concat()) {
        Ok(()) => return Ok(commit.to_owned()),
        Err(GitError::Failed { .. }) => {}
        Err(error) => return Err(error),
    }
    // Some servers don't send a commit unless a reference points to it, so try the reference instead.
    let now = fetch_reference(git, place.reference.as_deref())?;
    if now == commit { Ok(now) } else { Err(gone()) }
}

fn is_commit(name: &str) -> bool {
    (7..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_unknown(said: &str) -> bool {
    ["couldn't find remote ref", "not our ref", "no such remote ref"].iter().any(|words| said.contains(words))
}

/// Returns the objects that the server has left out because of the filter.
fn missing(git: &Git<'_>, commit: &str) -> Result<HashSet<String>, GitError> {
    git.talk(
        &["rev-list", "--objects", "--missing=print", "--no-object-names", "-1", commit],
        Vec::new(),
        |output| {
            let lines = BufReader::new(output).lines();
            let objects =
                lines.map_while(Result::ok).filter_map(|line| Some(line.strip_prefix('?')?.to_owned()));
            Ok(objects.collect())
        },
    )
}

/// Fetches objects in one request. Otherwise git would request each object when it is read.
fn fetch_objects(git: &Git<'_>, objects: &[&str]) -> Result<(), GitError> {
    let arguments = [
        &["-c", "fetch.negotiationAlgorithm=noop"],
        &FETCH[..],
        &["--no-write-fetch-head", "--stdin", "origin"],
    ];
    git.talk(&arguments.concat(), lines(objects), |_output| Ok(()))
}

fn lines(words: &[&str]) -> Vec<u8> {
    words.iter().flat_map(|word| [word.as_bytes(), b"\n"].concat()).collect()
}

#[cfg(test)]
mod tests;
