//! [`FileError`]: the errors of reading a file of a skill.

use std::{io, path::PathBuf};

use crate::{diagnostic::Diagnostic, name::SkillName, text::shown_path};

/// An error while reading a file of a skill. The messages are written for the model that requested the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The skill's own directory can't be opened.
    #[error("failed to open skill directory {}: {source}", shown_path(dir))]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path of the skill's directory now contains a link, but contained none when discovery found the skill.
    #[error(
        "failed to open skill directory {}: path now contains a link; reload the skills",
        shown_path(dir)
    )]
    LinkInPath {
        /// The directory.
        dir: PathBuf,
    },
    /// The skill is not stored in a directory.
    #[error("skill `{0}` is defined in code or configuration and has no files")]
    NoFiles(SkillName),
    /// The path can never name a file of a skill, for example because it is absolute.
    #[error("invalid path `{}`: {reason}", path.escape_debug())]
    Invalid {
        /// The requested path.
        path: String,
        /// The problem, and what to use instead.
        reason: &'static str,
    },
    /// The path, or a symbolic link on it, leads out of the skill's directory. Absolute links always count as leading out.
    #[error("`{}` is outside of the skill directory, but only files inside can be read", path.escape_debug())]
    Outside {
        /// The requested path.
        path: String,
    },
    /// The file has changed since the user approved the skill, or is new. Before a script runs or a
    /// skill of a project is activated: the file has changed or is missing.
    #[error(
        "`{}` has changed since the user approved the skill; ask the user to review the changes",
        path.escape_debug()
    )]
    NotApproved {
        /// The requested path.
        path: String,
    },
    /// There is an entry that was not there when the user approved the skill. The message doesn't contain its name, because the
    /// name is not approved either.
    #[error(
        "skill contains a file that is new since the user approved it; ask the user to review the changes"
    )]
    NewEntry,
    /// A script of the skill could read content through this entry that the user has not approved: a link that leads out of the
    /// skill, a FIFO, a socket or a device.
    #[error(
        "`{}` leads to content that the user has not approved, so scripts of the skill cannot run; ask the user to replace it with a file",
        path.escape_debug()
    )]
    Unseen {
        /// The path of the entry.
        path: String,
    },
    /// The file doesn't exist.
    #[error("could not find file `{}` in the skill{}", path.escape_debug(), did_you_mean(similar))]
    NotFound {
        /// The requested path.
        path: String,
        /// Existing files with a similar path, best match first. May be empty.
        similar: Vec<String>,
    },
    /// The path names a directory.
    #[error("`{}` is a directory {}", path.escape_debug(), contents(entries, *more))]
    IsDirectory {
        /// The requested path.
        path: String,
        /// The sorted names of its entries. Names of directories end with `/`.
        entries: Vec<String>,
        /// The number of further entries that are not in `entries`.
        more: usize,
    },
    /// The path names a FIFO, a device or a socket.
    #[error("`{}` is not a regular file, but only regular files can be read", path.escape_debug())]
    NotAFile {
        /// The requested path.
        path: String,
    },
    /// The file is larger than the hard cap.
    #[error("`{}` has {size} bytes, but at most {cap} can be read", path.escape_debug())]
    TooLarge {
        /// The requested path.
        path: String,
        /// The size of the file in bytes. A lower bound if the file is still growing.
        size: u64,
        /// The maximum size in bytes.
        cap: u64,
    },
    /// The `offset` is after the last line.
    #[error("`offset` is {offset}, but `{}` has only {total_lines} lines", path.escape_debug())]
    PastEnd {
        /// The requested path.
        path: String,
        /// The requested line, starting at 1.
        offset: u64,
        /// The number of lines in the file.
        total_lines: u64,
    },
    /// A file of a remote skill can't be fetched, or its checksum doesn't match the index.
    #[error("failed to read `{}`: {source}", path.escape_debug())]
    Fetch {
        /// The requested path.
        path: String,
        /// The reason; its message contains the URL.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Opening or reading the file failed.
    #[error("failed to read `{}`: {source}", path.escape_debug())]
    Io {
        /// The requested path.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

impl FileError {
    /// Returns a stable identifier in kebab case, such as `not-found`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "skill-directory-unreadable",
            Self::LinkInPath { .. } => "link-in-path",
            Self::NoFiles(_) => "no-files",
            Self::Invalid { .. } => "invalid-path",
            Self::Outside { .. } => "outside-skill",
            Self::NotApproved { .. } => "not-approved",
            Self::NewEntry => "new-entry",
            Self::Unseen { .. } => "unseen-content",
            Self::NotFound { .. } => "not-found",
            Self::IsDirectory { .. } => "is-directory",
            Self::NotAFile { .. } => "not-a-file",
            Self::TooLarge { .. } => "too-large",
            Self::PastEnd { .. } => "past-end",
            Self::Fetch { .. } => "not-fetched",
            Self::Io { .. } => "unreadable",
        }
    }

    /// Converts the error to a diagnostic, for tools that check skills.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.code(), self.to_string());
        match self {
            Self::Outside { .. } => diagnostic.help("link the skill directory instead of the file"),
            Self::Directory { source, .. } | Self::Io { source, .. } => diagnostic.caused_by(source),
            _ => diagnostic,
        }
    }
}

fn did_you_mean(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        similar => format!("; did you mean {}?", quoted(similar, " or ")),
    }
}

fn contents(entries: &[String], more: usize) -> String {
    match (entries, more) {
        ([], _) => "without files".to_owned(),
        (entries, 0) => format!("with {}", quoted(entries, ", ")),
        (entries, more) => format!("with {} and {more} more", quoted(entries, ", ")),
    }
}

fn quoted(names: &[String], separator: &str) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
    quoted.join(separator)
}
