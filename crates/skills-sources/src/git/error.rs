//! [`GitError`]: why a repository can't be fetched, with git's own last lines, and a hint that fits them.

use std::{io, path::PathBuf, time::Duration};

use skills_core::text::{shown, shown_lines};

use crate::lockfile::MAX_KEPT;
use crate::{disk::shorten_home, policy::Refusal};

/// The hint for a server whose certificate is from an authority that is not trusted.
pub(in super::super) const UNKNOWN_AUTHORITY: &str = "if the server has a private certificate authority, set `SSL_CERT_FILE` to a PEM file that contains its certificate, or for an npm \
     package, `cafile` in ~/.npmrc";

/// The maximum number of lines of git's output in a message.
const MAX_LINES: usize = 4;

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
    /// The host didn't answer.
    #[error("no answer from the host within {} s", .0.as_secs())]
    NoAnswer(Duration),
    /// The host stopped sending, or sends too slowly.
    #[error("host sent less than 64 KiB within {} s", .0.as_secs())]
    Stalled(Duration),
    /// `git` exited with an error.
    #[error("`git {what}` failed: {}", last_lines(said))]
    Failed {
        /// The git command, such as `fetch`.
        what: String,
        /// The end of its stderr.
        said: String,
    },
    /// The repository has no such branch, tag or commit.
    #[error("no such branch, tag or commit: `{0}`")]
    NoReference(String),
    /// No tag of the repository is a version in the range.
    #[error("no tag is a version in the range `{0}`")]
    NoVersion(String),
    /// Neither the commit nor its tag has a signature that git accepts.
    #[error("{}", why_unsigned(commit, said))]
    Unsigned {
        /// The commit.
        commit: String,
        /// The end of git's stderr.
        said: String,
    },
    /// The repository has no such directory.
    #[error("no such directory in the repository: `{0}`")]
    NoDirectory(String),
    /// The repository exceeds a limit.
    #[error("repository is too large: {0}")]
    TooMuch(String),
    /// The lock file names too many commits of the repository.
    #[error("skills stay at more than {MAX_KEPT} other commits")]
    TooManyCommits,
    /// The archive is invalid, or programs could read it in different ways.
    #[error("invalid archive: {0}")]
    Archive(String),
    /// The archive exceeds a limit.
    #[error("archive is too large: {0}")]
    LargeArchive(String),
    /// The archive has another checksum than expected.
    #[error("archive has another checksum than {expected}: {actual}")]
    Checksum {
        /// The expected checksum.
        expected: String,
        /// The checksum of the received archive.
        actual: String,
    },
    /// The archive has changed since its approval.
    #[error("archive has changed since its approval")]
    OtherArchive,
    /// The settings of npm name another registry than that of the approved version.
    #[error(
        "the approved version comes from {}, but the settings of npm lead to {}",
        shown(approved),
        shown(actual)
    )]
    OtherRegistry {
        /// The registry of the approved version.
        approved: String,
        /// The registry that the settings name.
        actual: String,
    },
    /// A request failed.
    #[error("cannot download from {host}: {why}")]
    Download {
        /// The host.
        host: String,
        /// The reason.
        why: String,
        /// The HTTP status code, if the server has answered.
        status: Option<u16>,
    },
    /// The package can't be found in its registry, or has an unusable version.
    #[error("{0}")]
    Package(String),
    /// The credentials for the source can't be read.
    #[error("cannot read the credentials: {0}")]
    Credentials(Box<dyn std::error::Error + Send + Sync>),
    /// The policy of an administrator doesn't allow the registry of a package.
    #[error(transparent)]
    Registry(Box<Refusal>),
    /// A file of a skill has more than 64 MiB.
    #[error("`{}` is larger than 64 MiB", shown(.0))]
    FileTooLarge(String),
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
    /// An older version of the program is running and uses the directory of the approved version.
    #[error("an older version of the program uses {}", shorten_home(path))]
    InUse {
        /// The directory.
        path: PathBuf,
    },
}

/// Hints for errors of git, ssh and servers, by the words that they contain. The first match counts, so a cause comes before the
/// more general errors that git adds to it.
const HINTS: [(&[&str], &str); 13] = [
    (
        // `GIT_ALLOC_LIMIT` was reached.
        &["attempting to allocate"],
        "the references, a commit, a directory or a file of the repository need too much memory: if you trust the repository, raise the limit \
         with `--max-fetch MIB`",
    ),
    (
        &["HOST IDENTIFICATION HAS CHANGED", "Host key for"],
        "the key of the host has changed: compare the new fingerprint with the published one, then remove the old key with \
         `ssh-keygen -R HOST`",
    ),
    (
        &["Host key verification failed", "host key is known for"],
        "the key of the host is unknown: run `ssh HOST` once, compare the fingerprint with the published one, and accept it",
    ),
    (
        &["Permission denied (", "Too many authentication failures", "no such identity", "Load key "],
        "the host accepts none of your ssh keys: check that `ssh -T HOST` works, and that your agent has the key (`ssh-add -l`)",
    ),
    (
        &["ssh variant "],
        "run `git config --global ssh.variant ssh` if your `core.sshCommand` takes the arguments of OpenSSH",
    ),
    (
        &["Problem with the SSL CA cert", "error setting certificate", "error reading ca cert"],
        "git cannot read its file of certificates: check `git config http.sslCAInfo` and GIT_SSL_CAINFO",
    ),
    (
        &["certificate", "self-signed", "self signed"],
        "git doesn't trust the certificate of the host: if your organisation has its own certificate authority, run \
         `git config --global http.sslCAInfo FILE` with the file of its certificate",
    ),
    (&["No space left on device", "Disk quota exceeded"], "check free disk space and permissions"),
    (
        &["dubious ownership"],
        "repository belongs to another user; if you trust that user, run `git config --global --add safe.directory DIRECTORY`",
    ),
    (
        &["mismatched algorithms"],
        "repositories with SHA-256 objects are not supported; use SHA-1 objects instead",
    ),
    (
        &[
            "Authentication failed",
            "could not read Username",
            "could not read Password",
            "terminal prompts disabled",
            "returned error: 401",
            "returned error: 403",
            "Access denied",
        ],
        "the repository is private or does not exist: check the address, and that `git ls-remote URL` works without a prompt, with \
         a credential helper or an ssh key",
    ),
    (
        &[
            "epository not found",
            "' not found",
            "returned error: 404",
            "does not appear to be a git repository",
            "could not be found",
            "does not exist",
        ],
        "check the address; a private repository looks missing to users without access, so check that `git ls-remote URL` works",
    ),
    (
        &[
            "Could not resolve host",
            "unable to access",
            "Connection refused",
            "Connection timed out",
            "Connection reset",
            "Connection closed",
            "No route to host",
            "Network is unreachable",
            "early EOF",
        ],
        "check the network and proxy settings (`git config http.proxy`)",
    ),
];

impl GitError {
    /// Returns a hint about how to resolve the problem.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoGit => "install git, or remove the source",
            Self::TooLong(_) => "check the network and retry",
            Self::NoAnswer(_) | Self::Stalled(_) => {
                "check the network and the proxy settings (`git config http.proxy`), and try again"
            }
            Self::NoReference(_) => {
                "check the name on the repository page; for a name with `/`, use `git+https://…#NAME:PATH`"
            }
            Self::NoVersion(_) => "check the tags on the repository page; versions are tags such as `v2.1.0`",
            Self::Unsigned { .. } => "if you trust the signer, add the key to the file of `git config gpg.ssh.allowedSignersFile`, or to your GPG keys with `gpg --edit-key KEY trust`; otherwise, ask the maintainers for a signed version",
            Self::NoDirectory(_) => "check the directory on the repository page",
            Self::TooMuch(_) => {
                "add the directory that contains the skills, as in `github:OWNER/REPO/PATH`, or raise `--max-fetch`"
            }
            Self::TooManyCommits => "run `acp-skills-proxy update` to approve the current version of these skills",
            Self::Archive(_) => "ask the publisher for an archive that contains each file once, as a regular file",
            Self::LargeArchive(_) => "if you trust the publisher, raise the limit with `--max-fetch MIB`",
            Self::Checksum { .. } => "check the address, and ask the publisher for the current checksum",
            Self::OtherArchive => "run `acp-skills-proxy update` to review and approve the current version",
            Self::OtherRegistry { .. } => {
                "name the approved registry in your `.npmrc`; to change the registry, run `acp-skills-proxy remove SOURCE`, and add \
                 the source again"
            }
            Self::Download { status: Some(401 | 403 | 404), .. } => {
                "check the address; for a private source, add the host to `.netrc` in your home directory, or set `headers` for the source in the configuration \
                 file, or for an npm package, add its token to `.npmrc`"
            }
            Self::Download { why, .. } if is_unknown_authority(why) => UNKNOWN_AUTHORITY,
            Self::Download { .. } => "check the network and the address, and try again",
            Self::Package(_) => "check the name, the version and the registry of the package with `npm view PACKAGE`",
            Self::Credentials(_) => "check `headers` and `secrets` of the source in the configuration file",
            Self::Registry(_) => Refusal::HINT,
            Self::FileTooLarge(_) => "add a directory without this file, as in `github:OWNER/REPO/PATH`",
            Self::Failed { said, .. } => HINTS
                .iter()
                .find(|(causes, _)| causes.iter().any(|cause| said.contains(cause)))
                .map_or(
                    "check if `git ls-remote URL` works without a prompt; private repositories need a key or credential helper",
                    |(_, hint)| hint,
                ),
            Self::System { .. } | Self::Write { .. } => {
                "check free disk space and permissions"
            }
            Self::InUse { .. } => "close the older version of acp-skills-proxy, and retry",
        }
    }
}

impl GitError {
    /// Returns the error for skills that are larger than `max_bytes` because they contain each other.
    pub(in super::super) fn overlap(max_bytes: u64) -> Self {
        Self::TooMuch(format!("skills that contain each other are larger than {}", mebibytes(max_bytes)))
    }
}

/// Explains why a signature was not accepted.
fn why_unsigned(commit: &str, said: &str) -> String {
    if said.trim().is_empty() {
        return format!("commit {commit:.12} is not signed");
    }
    format!("git does not accept the signature of commit {commit:.12}: {}", last_lines(said))
}

/// Returns true if a request failed because the certificate of the server is from an authority that is not trusted.
pub(in super::super) fn is_unknown_authority(why: &str) -> bool {
    why.contains("UnknownIssuer")
}

/// Returns a number of bytes in words.
pub(in super::super) fn mebibytes(bytes: u64) -> String {
    const MEBIBYTE: u64 = 1024 * 1024;
    if bytes.is_multiple_of(MEBIBYTE) {
        format!("{} MiB", bytes / MEBIBYTE)
    } else {
        format!("{bytes} bytes")
    }
}

/// Returns the last lines of git's output. The cause can be a line of ssh or of the server, so only lines that never contain one are
/// left out.
fn last_lines(said: &str) -> String {
    let is_noise = |line: &str| {
        line.chars().all(|c| !c.is_alphanumeric())
            || line.starts_with("warning: ")
            || line.starts_with("hint: ")
            || line.starts_with("Warning: Permanently added ")
            || matches!(
                line,
                "Please make sure you have the correct access rights"
                    | "and the repository exists."
                    | "remote:"
            )
    };
    // Git overwrites a line of progress after a carriage return, so only keep the text after the last one.
    let lines = said.lines().map(|line| line.trim().rsplit('\r').next().unwrap_or_default().trim());
    let mut lines: Vec<_> = lines.filter(|line| !is_noise(line)).collect();
    lines.dedup();
    let text = lines[lines.len().saturating_sub(MAX_LINES)..].join("; ");
    let text = without_secrets(&text);
    shown_lines(if text.is_empty() { "no error message from git" } else { &text }).into_owned()
}

/// Removes the user and the password of each URL in a text, and its query. Git redacts them in most messages, but not in those about
/// redirects, and `url.*.insteadOf` adds a password to each URL in many CI systems.
fn without_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        clean.push_str(before);
        clean.push_str("://");
        let is_end = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '<' | '>');
        let url = &after[..after.find(is_end).unwrap_or(after.len())];
        let authority = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let path = &url[authority.len()..];
        let (path, query) = path.split_once('?').map_or((path, ""), |(path, _)| (path, "?…"));
        clean.extend([host, path, query]);
        rest = &after[url.len()..];
    }
    clean + rest
}

#[cfg(test)]
mod tests;
