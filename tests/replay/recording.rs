//! Reads recorded conversations from their files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use acp_skills_wire::Node;

/// The author of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Agent,
}

/// A conversation.
pub(super) struct Recording {
    /// The name of the agent or the client: the file name without its extension.
    pub(super) name: String,
    /// The exact lines, each with its author.
    pub(super) lines: Vec<(Side, String)>,
}

/// Reads all recordings in the directory `kind`.
pub(super) fn recordings(kind: &str) -> Vec<Recording> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings").join(kind);
    let mut files: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: &PathBuf| Recording {
        name: file.file_stem().unwrap().to_string_lossy().into_owned(),
        lines: fs::read_to_string(file).unwrap().lines().map(entry).collect(),
    };
    files.iter().map(read).collect()
}

fn entry(line: &str) -> (Side, String) {
    let entry = Node::parse(line.as_bytes()).unwrap_or_else(|| panic!("not JSON: {line}"));
    let side = match entry.str("dir").as_deref() {
        Some("client") => Side::Client,
        Some("agent") => Side::Agent,
        other => panic!("unknown side {other:?}"),
    };
    // Don't parse the message here, since we need the exact bytes.
    (side, String::from_utf8(entry.get("msg").unwrap().raw().to_vec()).unwrap())
}
