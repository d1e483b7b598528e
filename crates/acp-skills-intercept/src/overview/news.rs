//! The part of the answer to `/skills` about new versions of sources.

use skills_core::{SkillSet, text::markdown_message};

use super::{MAX_PROBLEMS, section};

/// Writes the new versions that were found in the background.
pub(super) fn write(text: &mut String, skills: &SkillSet) {
    section(
        text,
        "New versions",
        MAX_PROBLEMS,
        skills.notices().iter().map(|notice| markdown_message(notice)),
    );
    if !skills.notices().is_empty() {
        text.push_str("\nRun `acp-skills-proxy update` in a terminal to review them.\n");
    }
}
