//! The text of a stored skill: what is on disk, or the last good one while that cannot be used.

use std::{sync::Arc, time::SystemTime};

use super::error::ActivationError;
use crate::{
    diagnostic::Diagnostic,
    files::{FileError, SkillFiles},
    frontmatter::{self, MAX_FILE_BYTES, ParseContext, Parsed},
    last_good::{LastGood, is_unfinished},
    skill::{Skill, Stored},
};

/// The text of a `SKILL.md`, and where its body begins.
pub(super) struct Text {
    pub(super) whole: Arc<str>,
    parsed: Parsed,
    /// Why this is the last good text and not the one on disk.
    pub(super) outdated: Option<Diagnostic>,
}

/// What is on disk.
struct OnDisk {
    text: Arc<str>,
    stamp: u64,
    modified: Option<SystemTime>,
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

/// Reads the text of `skill`, which is stored there.
///
/// Discovery found the skill to be good, but by now anything may be on disk. The result is a text that discovery accepted,
/// or would accept, or else the last such text.
pub(super) fn read(skill: &Skill, stored: &Stored) -> Result<Text, ActivationError> {
    let on_disk = read_file(skill, stored);
    if !stored.was_found() {
        return on_disk.map(|file| Text::new(file.text, stored));
    }
    let kept = LastGood::of_found_skills();
    let error = match on_disk.and_then(|file| judge(file, stored, kept.get(&stored.dir).as_deref())) {
        Ok(text) => {
            if text.parsed.is_complete() {
                kept.used(&stored.dir, &text.whole);
            }
            return Ok(text);
        }
        // Whoever put a link there may want the skill to be another one.
        Err(error @ ActivationError::File(FileError::LinkInPath { .. })) => return Err(error),
        Err(error) => error,
    };
    let Some(last) = kept.get(&stored.dir) else { return Err(error) };
    let message = format!("these are the last good instructions of the skill: {error}");
    let outdated = Diagnostic::warning("instructions-outdated", message).help("save the file again");
    Ok(Text { outdated: Some(outdated), ..Text::new(last, stored) })
}

fn read_file(skill: &Skill, stored: &Stored) -> Result<OnDisk, ActivationError> {
    let head = SkillFiles::of(skill)?.head(stored.file_name, MAX_FILE_BYTES as u64)?;
    if !head.complete {
        return Err(ActivationError::TooLarge { path: stored.file() });
    }
    let text = frontmatter::decode(&head.bytes).into();
    Ok(OnDisk { text, stamp: head.stamp(), modified: head.modified })
}

/// The text of a file that was read, unless it is broken or only half saved.
fn judge(file: OnDisk, stored: &Stored, last: Option<&str>) -> Result<Text, ActivationError> {
    let text = Text::new(file.text, stored);
    if file.stamp == stored.stamp {
        return Ok(text);
    }
    let findings = &text.parsed.diagnostics;
    let is_flaw = |it: &&Diagnostic| it.is_error() || stored.is_complete && frontmatter::is_half_saved(it);
    let diagnostic = match findings.iter().find(is_flaw) {
        Some(finding) => finding.clone(),
        None if last.is_some_and(|last| is_unfinished(&text.whole, last, file.modified)) => {
            Diagnostic::error(
                "unfinished",
                "the file is the beginning of what it was, and just being written",
            )
        }
        None => return Ok(text),
    };
    Err(ActivationError::Broken { path: stored.file(), diagnostic })
}
