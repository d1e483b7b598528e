//! Skills of git repositories, fetched by the user's own `git`.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | what is fetched, in which steps |
//! | `command` | running git so that a repository decides nothing |
//! | `tree` | which files are wanted |
//! | `paths` | which paths can be written on any system |
//! | `checkout` | writing them |
//!
//! A repository of ours is made for one fetch and thrown away: nothing in it can grow old, be broken, or be shared by two
//! processes. It gets one commit, without its files where the server can leave them out; then the files of skills alone.

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

/// How long a fetch may take.
pub(super) const TIMEOUT: Duration = Duration::from_mins(5);

/// What was fetched.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    /// The commit's name.
    pub(super) commit: String,
    /// What somebody should know of what was left out.
    pub(super) notes: Vec<String>,
}

/// Why a repository cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no git on this machine.
    #[error("there is no `git` in PATH")]
    NoGit,
    /// Git does not answer.
    #[error("git was not done after {} s", .0.as_secs())]
    TooLong(Duration),
    /// Git says no.
    #[error("`git {what}` failed: {}", last_words(said))]
    Failed {
        /// The command.
        what: String,
        /// What it said on stderr.
        said: String,
    },
    /// The repository has no such branch, tag or commit.
    #[error("the repository has no branch, tag or commit `{0}`")]
    NoReference(String),
    /// The repository has no such directory.
    #[error("the repository has no directory `{0}`")]
    NoDirectory(String),
    /// The repository is larger than we take.
    #[error("the repository is too large: {0}")]
    TooMuch(String),
    /// Git cannot be started or talked to.
    #[error("cannot run `git {what}`: {source}")]
    System {
        /// The command.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write below {}: {source}", path.display())]
    Write {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl GitError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        let said = |words: &str| matches!(self, Self::Failed { said, .. } if said.contains(words));
        match self {
            Self::NoGit => "install git, or leave the source out",
            Self::TooLong(_) => "look at the network, and try again",
            Self::NoReference(_) => {
                "look for the name on the repository's page; one with a `/` is written `git+https://…#NAME:PATH`"
            }
            Self::NoDirectory(_) => "look for the directory on the repository's page",
            Self::TooMuch(_) => "name the directory of the skills: `github:OWNER/REPO/PATH`",
            Self::Failed { .. } if said("Could not resolve host") || said("unable to access") => {
                "look at the network and the proxy's settings (`git config http.proxy`)"
            }
            Self::Failed { .. } if said("No space left on device") || said("Disk quota exceeded") => {
                "look at the disk's space and rights"
            }
            Self::Failed { .. } if said("dubious ownership") => {
                "it belongs to another user; where you trust them, `git config --global --add safe.directory DIRECTORY`"
            }
            Self::Failed { .. } if said("mismatched algorithms") => {
                "it names its objects by SHA-256, which is not supported; take a repository with SHA-1"
            }
            Self::Failed { .. } => {
                "make sure that `git ls-remote URL` works without asking for anything: for a private repository it needs a \
                 key or a credential helper"
            }
            Self::System { .. } | Self::Write { .. } => "look at the disk's space and rights",
        }
    }
}

/// The lines that say why, of all that git says.
fn last_words(said: &str) -> String {
    let lines: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let reasons: Vec<_> = lines
        .iter()
        .filter(|line| ["fatal: ", "error: ", "ERROR: "].iter().any(|it| line.starts_with(it)))
        .copied()
        .collect();
    let told = if reasons.is_empty() { lines } else { reasons };
    let told = told[told.len().saturating_sub(3)..].join("; ");
    shown_lines(if told.is_empty() { "it does not say why" } else { &told }).into_owned()
}

/// Fetches the skills below `place` and writes them into `directory`, which is empty: those of `commit`, or of whatever its
/// reference leads to now. `scratch` is an empty directory on a disk with space.
///
/// Blocks for as long as the network takes, at most `timeout`.
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

/// Fetches what a reference leads to now.
fn fetch_reference(git: &Git<'_>, reference: Option<&str>) -> Result<String, GitError> {
    let name = reference.unwrap_or("HEAD");
    match git.run(&[&FETCH[..], &["--depth=1", "--", "origin", name]].concat()) {
        Ok(()) => git.line(&["rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}"]),
        // A server knows a commit by its whole name only; a shorter one is found among all of them.
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

/// Fetches this commit and no other.
fn fetch_commit(git: &Git<'_>, place: &GitPlace, commit: &str) -> Result<String, GitError> {
    let gone = || GitError::NoReference(commit.to_owned());
    match git.run(&[&FETCH[..], &["--depth=1", "--", "origin", commit]].concat()) {
        Ok(()) => return Ok(commit.to_owned()),
        Err(GitError::Failed { .. }) => {}
        Err(error) => return Err(error),
    }
    // Some servers give only what a reference leads to.
    let now = fetch_reference(git, place.reference.as_deref())?;
    if now == commit { Ok(now) } else { Err(gone()) }
}

fn is_commit(name: &str) -> bool {
    (7..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_unknown(said: &str) -> bool {
    ["couldn't find remote ref", "not our ref", "no such remote ref"].iter().any(|words| said.contains(words))
}

/// The files that the server has left out.
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

/// Fetches these files at once; git would ask for each when it is read.
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
