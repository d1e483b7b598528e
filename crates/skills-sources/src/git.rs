//! Fetches the skills of a git repository with the user's own `git`.
//!
//! | file | responsible for |
//! |---|---|
//! | `command` | running `git` isolated from what the repository says |
//! | `tree` | selecting the files to fetch |
//! | `checkout` | writing the files |
//! | `references` | finding the commit of a reference without fetching it |
//! | `signature` | checking the signature of a commit or a tag |
//! | `ssh` | the user's ssh command |
//! | `watch` | limits of time and size while `git` runs |
//! | `error` | errors of `git`, and hints |
//!
//! Each fetch uses a new repository that is deleted afterwards, so it can't become stale, be corrupted, or be shared by two
//! processes. First, one commit is fetched, without file contents if the server supports filters; then only the files of skills. If most
//! files of the repository belonged to skills at the last fetch, small files are fetched with the commit.

pub(super) mod checkout;
mod command;
mod error;
mod references;
mod signature;
mod ssh;
pub(super) mod tree;
mod watch;

use std::{
    collections::HashSet,
    fs,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    sync::Arc,
    time::Duration,
};

use skills_core::{exec::ProcessObserver, order};

use self::command::{Git, NO_FILES, SMALL_FILES};
pub use self::error::GitError;
pub(super) use self::error::{UNKNOWN_AUTHORITY, is_unknown_authority, mebibytes};
pub(super) use self::references::{Found, find_commit};
use super::address::GitPlace;

/// The disk space that an empty file or a directory needs, in bytes. This is an estimate for all file systems. The size of a file is
/// rounded up to a multiple of it.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// The limits of a fetch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The maximum number of bytes to receive, and the maximum size of the files of all skills.
    pub(super) bytes: u64,
    /// The timeout of the whole fetch.
    pub(super) total: Duration,
    /// The time within which a host must answer a request over https.
    pub(super) answer: Duration,
    /// The time within which a host must send a further 64 KiB, or finish.
    pub(super) stall: Duration,
}

impl Limits {
    /// Returns the limits for a maximum number of bytes.
    pub(super) fn of_bytes(bytes: Option<u64>) -> Self {
        let limits = Self::default();
        Self { bytes: bytes.unwrap_or(limits.bytes), ..limits }
    }

    /// Returns the maximum size of an object that git loads into memory, such as a commit or a directory. Large files are streamed.
    /// The default is 128 MiB. At least 64 MiB are allowed, because a file of a skill may have that size.
    fn object_bytes(&self) -> u64 {
        (self.bytes / 2).max(64 * 1024 * 1024)
    }

    /// Returns the maximum size of a list of references, and of git's trace, which has a line of about 130 bytes for each of them. Git needs
    /// about 700 bytes of memory for such a line in several processes. The default is 32 MiB.
    fn reference_bytes(&self) -> u64 {
        self.bytes / 8
    }

    /// Returns the maximum number of files in the repository, of which most are not fetched. The default is 524,288.
    pub(super) fn entries(&self) -> usize {
        usize::try_from(self.bytes / 512).unwrap_or(usize::MAX)
    }

    /// Returns the maximum size of the paths of these files. The default is 64 MiB.
    pub(super) fn path_bytes(&self) -> u64 {
        self.bytes / 4
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 256 * 1024 * 1024,
            total: Duration::from_mins(5),
            answer: Duration::from_secs(20),
            stall: Duration::from_mins(1),
        }
    }
}

/// The number of other files, besides a tenth of the files of skills, that a repository can have if it consists mostly of skills.
const MAX_OTHERS: usize = 16;

/// The result of a fetch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    /// The hash of the commit.
    pub(super) commit: String,
    /// The tag of the commit, if the place has a range of versions.
    pub(super) tag: Option<String>,
    /// The time of the commit in seconds since 1970, if versions need a signature and this one has one.
    pub(super) committed: Option<i64>,
    /// True if git accepted the signature of the tag. The host can't have invented its name then.
    pub(super) has_signed_tag: bool,
    /// The registry of a package.
    pub(super) registry: Option<String>,
    /// Notes for the user about files that were left out.
    pub(super) notes: Vec<String>,
    /// True if most files of the repository belong to skills, so that [`Targets::expects_skills`] should be set next time.
    pub(super) is_mostly_skills: bool,
}

/// The directories of a fetch, and how it is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Targets<'a> {
    /// The directory for the files of the skills. It must be empty.
    pub(super) directory: &'a Path,
    /// An empty directory for git's own files.
    pub(super) scratch: &'a Path,
    /// True if the signature of a current version is checked.
    pub(super) verify: bool,
    /// True if most files probably belong to skills. They are then requested with the commit, which saves a connection.
    pub(super) expects_skills: bool,
}

/// Fetches the skills below `place` and writes them to a directory. Without a `version`, the current commit of the reference is fetched.
///
/// Blocks until the fetch has finished or a limit is reached.
pub(super) fn fetch(
    place: &GitPlace,
    version: Option<&Found>,
    targets: Targets<'_>,
    observer: Option<Arc<dyn ProcessObserver>>,
    limits: &Limits,
) -> Result<Fetched, GitError> {
    let Targets { directory, scratch, verify, expects_skills } = targets;
    let mut git = repository(place, scratch, observer, limits)?;
    if expects_skills {
        git.filter = SMALL_FILES;
    }
    let is_current = version.is_none();
    let Found { commit, tag } = match version {
        Some(Found { commit, tag }) => Found { commit: fetch_commit(&git, place, commit)?, tag: tag.clone() },
        None => fetch_current(&git, place)?,
    };
    let name = tag.as_deref().or(place.reference.as_deref());
    let has_signed_tag = verify && is_current && signature::verify(&git, &commit, name)?;
    // Of an older version, only a signature says that its time was not made up.
    let is_known = verify && (is_current || signature::verify(&git, &commit, None).is_ok());
    let committed = if is_known { signature::commit_time(&git, &commit)? } else { None };
    let at = format!("{commit}:{}", place.path);
    let read = |output: &mut dyn Read| tree::read(output, limits);
    let entries = match git.talk(&["ls-tree", "-r", "-t", "-z", &at], Vec::new(), read) {
        Err(GitError::Failed { said, .. }) if is_no_directory(&said) => {
            return Err(GitError::NoDirectory(place.path.clone()));
        }
        entries => entries?,
    };
    let selection = tree::select(&entries, limits)?;
    // Of the rest of the repository, nothing is known if the place is a directory in it.
    let others = entries.len().saturating_sub(selection.wanted.len());
    let is_mostly_skills = place.path.is_empty() && others <= MAX_OTHERS + selection.wanted.len() / 10;
    let mut objects: Vec<&str> = selection.wanted.iter().map(|file| file.object.as_str()).collect();
    let input = lines(&objects);
    order::sort(&mut objects);
    objects.dedup();
    let missing = missing(&git, &at, &objects.iter().copied().collect())?;
    objects.retain(|object| missing.contains(*object));
    if !objects.is_empty() {
        fetch_objects(&git, &objects)?;
    }
    let pointers = git.talk(&["cat-file", "--batch", "--buffer"], input, |output| {
        checkout::write(output, &selection, directory, limits.bytes)
    })?;
    let notes = [selection.notes, tree::notes_on_pointers(&selection.wanted, &pointers)].concat();
    Ok(Fetched { commit, tag, committed, has_signed_tag, registry: None, notes, is_mostly_skills })
}

/// Creates an empty repository in `scratch`, which has the place as its remote.
fn repository<'a>(
    place: &GitPlace,
    scratch: &'a Path,
    observer: Option<Arc<dyn ProcessObserver>>,
    limits: &'a Limits,
) -> Result<Git<'a>, GitError> {
    let mut git = Git::new(scratch, place.transport, observer, limits)?;
    create(scratch, &place.url).map_err(|source| GitError::Write { path: scratch.to_owned(), source })?;
    git.read_ssh_command()?;
    Ok(git)
}

/// Creates an empty repository with a remote, as `git init --bare` and `git config` do. These would start two processes.
fn create(directory: &Path, url: &str) -> io::Result<()> {
    fs::create_dir_all(directory.join("objects"))?;
    fs::create_dir_all(directory.join("refs"))?;
    fs::write(directory.join("HEAD"), "ref: refs/heads/main\n")?;
    let url = url.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[remote \"origin\"]\n\turl = \"{url}\"\n"
    );
    fs::write(directory.join("config"), config)
}

/// Fetches the current commit of a place: of its reference, or of the highest version in its range.
fn fetch_current(git: &Git<'_>, place: &GitPlace) -> Result<Found, GitError> {
    match references::find_version(git, place)? {
        Some(Found { tag, .. }) => {
            let name = format!("refs/tags/{}", tag.as_deref().unwrap_or_default());
            Ok(Found { commit: fetch_reference(git, Some(&name))?, tag })
        }
        None => Ok(Found { commit: fetch_reference(git, place.reference.as_deref())?, tag: None }),
    }
}

const FETCH: [&str; 6] =
    ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--update-shallow"];

/// Runs `git fetch` with these arguments.
fn run_fetch(git: &Git<'_>, arguments: &[&str]) -> Result<(), GitError> {
    git.run(&[&FETCH[..], &[git.filter], arguments].concat())
}

/// Fetches the current commit of a reference.
fn fetch_reference(git: &Git<'_>, reference: Option<&str>) -> Result<String, GitError> {
    let name = reference.unwrap_or("HEAD");
    match run_fetch(git, &["--depth=1", "--", "origin", name]) {
        Ok(()) => git.line(&["rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}"]),
        // Servers only accept full commit hashes, so we need to fetch all commits to find an abbreviated hash.
        Err(GitError::Failed { said, .. }) if is_commit(name) && is_unknown(&said) => {
            let all =
                [NO_FILES, "--", "origin", "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];
            git.run(&[&FETCH[..], &all[..]].concat())?;
            let found = git.line(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]);
            // A branch or a tag with this name would have been found before.
            let is_named = |commit: &String| commit.starts_with(&name.to_ascii_lowercase());
            found.ok().filter(is_named).ok_or_else(|| GitError::NoReference(name.to_owned()))
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
    match run_fetch(git, &["--depth=1", "--", "origin", commit]) {
        Ok(()) => return Ok(commit.to_owned()),
        Err(GitError::Failed { .. }) => {}
        Err(error) => return Err(error),
    }
    // Some servers don't send a commit unless a reference points to it, so try the reference instead.
    let now = fetch_current(git, place)?.commit;
    if now == commit { Ok(now) } else { Err(gone()) }
}

fn is_commit(name: &str) -> bool {
    (7..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_no_directory(said: &str) -> bool {
    ["Not a valid object name", "not a tree object"].iter().any(|words| said.contains(words))
}

fn is_unknown(said: &str) -> bool {
    ["couldn't find remote ref", "not our ref", "no such remote ref"].iter().any(|words| said.contains(words))
}

/// Returns the `wanted` objects of a tree that the server has left out because of the filter. The entries of the tree were counted
/// before, but those of other trees of the commit were not.
fn missing(git: &Git<'_>, tree: &str, wanted: &HashSet<&str>) -> Result<HashSet<String>, GitError> {
    git.talk(&["rev-list", "--objects", "--missing=print", "--no-object-names", tree], Vec::new(), |output| {
        let lines = BufReader::new(output).lines();
        let missing =
            |line: String| line.strip_prefix('?').filter(|name| wanted.contains(name)).map(str::to_owned);
        Ok(lines.map_while(Result::ok).filter_map(missing).collect())
    })
}

/// Fetches objects in one request. Otherwise git would request each object when it is read.
fn fetch_objects(git: &Git<'_>, objects: &[&str]) -> Result<(), GitError> {
    let arguments = [&FETCH[..], &[NO_FILES, "--no-write-fetch-head", "--stdin", "origin"]];
    git.talk(&arguments.concat(), lines(objects), |_output| Ok(()))
}

fn lines(words: &[&str]) -> Vec<u8> {
    words.iter().flat_map(|word| [word.as_bytes(), b"\n"].concat()).collect()
}

#[cfg(test)]
mod tests;
