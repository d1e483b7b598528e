//! The skills that wait for the user's trust.

use std::fmt::Write;

use skills_core::{set::Unapproved, text::markdown_code};

use super::{MAX_SHOWN, described_in, list, section};
use crate::session::{Session, unique_name};

/// Lists the skills that wait, and explains the command for them.
pub(super) fn write(text: &mut String, session: &Session) {
    let all = session.switches.all();
    section(
        text,
        "Waiting for your trust",
        MAX_SHOWN,
        all.unapproved().iter().map(|entry| unapproved(entry, session)),
    );
    if !all.unapproved().is_empty() {
        let is_of_server = all.unapproved().iter().any(|entry| entry.skill.service().is_some());
        let why = if is_of_server {
            "The proxy offers skills from MCP servers and from this project only after you trust them. Use"
        } else {
            "The proxy offers skills from this project only after you trust the files. Review the files first, and use"
        };
        let _ = writeln!(
            text,
            "\n{why} `/skills trust NAME` to trust a skill as it is listed here, or `/skills trust` to trust all listed here that you have not declined."
        );
    }
}

/// Returns the unapproved skills that a list shows.
pub(crate) fn first_unapproved(skills: &[Unapproved]) -> &[Unapproved] {
    &skills[..skills.len().min(MAX_SHOWN)]
}

/// Lists the skills that the user wants to approve, but whose current version was not shown to the user yet.
pub(crate) fn list_before_trust(session: &Session, skills: &[Unapproved]) -> String {
    let these = if skills.len() == 1 { "this skill" } else { "these skills" };
    let mut text =
        format!("Not trusted yet. Review the files of {these} first, and then repeat the command:\n\n");
    list(&mut text, MAX_SHOWN, skills.iter().map(|entry| unapproved(entry, session)));
    text
}

/// Returns the line about an unapproved skill. It says so if the user has declined this version, or was shown or has trusted another
/// one before.
fn unapproved(entry: &Unapproved, session: &Session) -> String {
    let all = session.switches.all().unapproved();
    let changed = if session.listed.has_other_version(entry, all) {
        " (changed since last listed)"
    } else if entry.is_refused {
        " (declined)"
    } else if entry.has_changed {
        " (changed since last trusted)"
    } else {
        ""
    };
    let name = unique_name(entry, all);
    format!("{}{changed}: {}", markdown_code(&name), described_in(session, &entry.skill))
}
