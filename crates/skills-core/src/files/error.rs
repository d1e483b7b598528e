//! [`FileError`]: why a file of a skill is not served, and what to ask for instead.

use std::{io, path::PathBuf};

use crate::{diagnostic::Diagnostic, name::SkillName, text::shown_path};

/// Why a file cannot be read. The texts are written for the model that asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The skill's own directory cannot be opened.
    #[error("cannot open the skill's directory {}: {source}", shown_path(dir))]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// There is a link in the path of the skill's directory, which had none when the skill was found.
    #[error(
        "cannot open the skill's directory {}: there is a link in its path now; look for the skills again",
        shown_path(dir)
    )]
    LinkInPath {
        /// The directory.
        dir: PathBuf,
    },
    /// The skill is virtual.
    #[error("skill `{0}` is defined in code or configuration and has no files")]
    NoFiles(SkillName),
    /// The path has a form that can never name a file of a skill.
    #[error("`{}` is not a path to a file of the skill: {reason}", path.escape_debug())]
    Invalid {
        /// The path as it was given.
        path: String,
        /// What is wrong with it, and what is right.
        reason: &'static str,
    },
    /// The path, or a symbolic link on it, leads out of the skill's directory; absolute links always count as such.
    #[error("`{}` leads outside of the skill's directory, and only files inside can be read", path.escape_debug())]
    Outside {
        /// The path as it was given.
        path: String,
    },
    /// It is not what the user approved: it has changed since, or is new.
    #[error("`{}` is not as the user approved it, so that it is not read; ask them to look at it", path.escape_debug())]
    NotApproved {
        /// The path as it was given.
        path: String,
    },
    /// There is no such file.
    #[error("the skill has no file `{}`{}", path.escape_debug(), did_you_mean(similar))]
    NotFound {
        /// The path as it was given.
        path: String,
        /// Files that were perhaps meant, best first.
        similar: Vec<String>,
    },
    /// The path names a directory.
    #[error("`{}` is a directory; {}", path.escape_debug(), contents(entries, *more))]
    IsDirectory {
        /// The path as it was given.
        path: String,
        /// Names of its entries, sorted; directories end with `/`.
        entries: Vec<String>,
        /// How many entries there are beyond these.
        more: usize,
    },
    /// The path names a FIFO, a device or a socket.
    #[error("`{}` is not a regular file", path.escape_debug())]
    NotAFile {
        /// The path as it was given.
        path: String,
    },
    /// The file is beyond the hard cap.
    #[error("`{}` has {size} bytes, more than the {cap} that can be read", path.escape_debug())]
    TooLarge {
        /// The path as it was given.
        path: String,
        /// Its size in bytes, as far as it is known.
        size: u64,
        /// The most that is read, in bytes.
        cap: u64,
    },
    /// The `offset` is beyond the last line.
    #[error("`{}` has {total_lines} lines, so nothing can be read from line {offset} on", path.escape_debug())]
    PastEnd {
        /// The path as it was given.
        path: String,
        /// The line that was asked for.
        offset: u64,
        /// How many lines there are.
        total_lines: u64,
    },
    /// A file of a remote skill cannot be fetched, or is not what its index says.
    #[error("cannot read `{}`: {source}", path.escape_debug())]
    Fetch {
        /// The path as it was given.
        path: String,
        /// Why; it names the address.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Opening or reading failed.
    #[error("cannot read `{}`: {source}", path.escape_debug())]
    Io {
        /// The path as it was given.
        path: String,
        /// What the operating system says.
        source: io::Error,
    },
}

impl FileError {
    /// A stable, kebab-case identifier such as `not-found`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "skill-directory-unreadable",
            Self::LinkInPath { .. } => "link-in-path",
            Self::NoFiles(_) => "no-files",
            Self::Invalid { .. } => "invalid-path",
            Self::Outside { .. } => "outside-skill",
            Self::NotApproved { .. } => "not-approved",
            Self::NotFound { .. } => "not-found",
            Self::IsDirectory { .. } => "is-directory",
            Self::NotAFile { .. } => "not-a-file",
            Self::TooLarge { .. } => "too-large",
            Self::PastEnd { .. } => "past-end",
            Self::Fetch { .. } => "not-fetched",
            Self::Io { .. } => "unreadable",
        }
    }

    /// The same as what is wrong with a skill, for people.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.code(), self.to_string());
        match self {
            Self::Outside { .. } => diagnostic.help("link the skill's directory instead of the file"),
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
        ([], _) => "it is empty".to_owned(),
        (entries, 0) => format!("it has {}", quoted(entries, ", ")),
        (entries, more) => format!("it has {} and {more} more", quoted(entries, ", ")),
    }
}

fn quoted(names: &[String], separator: &str) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
    quoted.join(separator)
}
