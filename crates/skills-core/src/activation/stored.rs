//! Reads the text of a stored skill, or returns the last good one if the file on disk can't be used.

use std::{
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use super::error::ActivationError;
use crate::{
    diagnostic::Diagnostic,
    files::{FileError, SkillFiles},
    frontmatter::{self, MAX_FILE_BYTES, ParseContext, Parsed},
    last_good::{LastGood, is_recent, is_unfinished},
    skill::{Skill, Stored},
};

/// The maximum time between two writes of the same save.
const BETWEEN_PIECES: Duration = Duration::from_millis(20);

/// The text of a `SKILL.md`, with its parsed frontmatter.
pub(super) struct Text {
    pub(super) whole: Arc<str>,
    parsed: Parsed,
    /// The reason for using the last good text instead of the file on disk. `None` if the file was used.
    pub(super) outdated: Option<Diagnostic>,
}

impl Text {
    fn new(whole: Arc<str>, stored: &Stored) -> Self {
        let directory = stored.dir.file_name().map(|name| name.to_string_lossy());
        let context = ParseContext { directory: directory.as_deref(), ..ParseContext::default() };
        let parsed = frontmatter::parse(&whole, &context);
        Self { whole, parsed, outdated: None }
    }

    pub(super) fn body(&self) -> &str {
        self.parsed.body(&self.whole)
    }
}

/// A file as it was read from disk.
struct OnDisk {
    text: Arc<str>,
    state: State,
}

/// A fingerprint of a file, to notice changes between two reads.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    stamp: u64,
    modified: Option<SystemTime>,
}

/// Reads the text of a stored skill.
///
/// The file may have changed since discovery read it. If discovery would not accept the current text, the last accepted text
/// is returned.
pub(super) fn read(skill: &Skill, stored: &Stored) -> Result<Text, ActivationError> {
    let on_disk = read_file(skill, stored);
    if !stored.was_found() {
        return on_disk.map(|file| Text::new(file.text, stored));
    }
    let kept = LastGood::of_found_skills();
    let usable = on_disk.and_then(|file| {
        let state = file.state;
        let text = judge(file, stored, kept.get(&stored.dir).as_deref())?;
        settle(skill, stored, state).map(|()| text)
    });
    let error = match usable {
        Ok(text) => {
            if text.parsed.is_complete() {
                kept.used(&stored.dir, &text.whole);
            }
            return Ok(text);
        }
        // The directory was replaced by a link. The user may want to use another skill here, so we shouldn't fall back to the
        // old text.
        Err(error @ ActivationError::File(FileError::LinkInPath { .. })) => return Err(error),
        Err(error) => error,
    };
    // If there is a guard, we can't use the last good text either, because the user may not have approved it.
    let last = kept.get(&stored.dir).filter(|_| stored.guard.is_none());
    let Some(last) = last else { return Err(error) };
    let message = format!("using last good instructions: {error}");
    let outdated = Diagnostic::warning("instructions-outdated", message)
        .help("fix and save the file to use the new instructions");
    Ok(Text { outdated: Some(outdated), ..Text::new(last, stored) })
}

fn read_file(skill: &Skill, stored: &Stored) -> Result<OnDisk, ActivationError> {
    let head = SkillFiles::of(skill)?.head(stored.file_name, MAX_FILE_BYTES as u64)?;
    if !head.complete {
        return Err(ActivationError::TooLarge { path: stored.file() });
    }
    let text = frontmatter::decode(&head.bytes).into();
    Ok(OnDisk { text, state: State { stamp: head.stamp(), modified: head.modified } })
}

/// Parses a file. Returns an error if it is broken or incomplete.
fn judge(file: OnDisk, stored: &Stored, last: Option<&str>) -> Result<Text, ActivationError> {
    let text = Text::new(file.text, stored);
    if file.state.stamp == stored.stamp {
        return Ok(text);
    }
    let findings = &text.parsed.diagnostics;
    let is_flaw = |finding: &&Diagnostic| {
        finding.is_error() || stored.is_complete && frontmatter::is_half_saved(finding)
    };
    if let Some(finding) = findings.iter().find(is_flaw) {
        return Err(ActivationError::Broken { path: stored.file(), diagnostic: finding.clone() });
    }
    if last.is_some_and(|last| is_unfinished(&text.whole, last, file.state.modified)) {
        return Err(unfinished(stored));
    }
    Ok(text)
}

/// If the file was modified within the last second, waits a moment and checks that it doesn't change again, because editors
/// write long texts in several pieces.
fn settle(skill: &Skill, stored: &Stored, read: State) -> Result<(), ActivationError> {
    if read.stamp == stored.stamp || !is_recent(read.modified) {
        return Ok(());
    }
    thread::sleep(BETWEEN_PIECES);
    if read_file(skill, stored)?.state == read { Ok(()) } else { Err(unfinished(stored)) }
}

fn unfinished(stored: &Stored) -> ActivationError {
    let diagnostic = Diagnostic::error("unfinished", "file is still being written by another program");
    ActivationError::Broken { path: stored.file(), diagnostic }
}
