//! Shows skills and changes before they are approved.

use std::fmt::Write;

use skills_core::scan::{Finding, Risk};
use skills_sources::{FileChangeKind, Offer, OfferedSkill, SkillChange};

use super::{findings, shadowed::Shadowed};
use crate::words::count;

/// The maximum number of scripts to list for a new skill.
const MAX_FILES: usize = 20;
/// The maximum number of findings to show for a skill.
const MAX_FINDINGS: usize = 10;

/// Renders the skills of a new source. Those in `shadowed` will not be used.
pub(super) fn offer(offer: &Offer, shadowed: &[Shadowed]) -> String {
    let mut text = String::new();
    for skill in &offer.skills {
        new_skill(&mut text, ' ', skill);
        if let Some(shadowed) = shadowed.iter().find(|shadowed| shadowed.name == skill.name) {
            let _ = writeln!(text, "  !  not used, because {} has a skill with the same name", shadowed.by);
        }
        found(&mut text, &findings::of(skill));
    }
    notes(&mut text, &offer.notes);
    let _ = writeln!(text, "{}", count(offer.skills.len(), "skill"));
    text
}

/// Renders the changes since the approved version.
pub(super) fn changes(changes: &[SkillChange], new_notes: &[String]) -> String {
    let mut text = String::new();
    for change in changes {
        match (&change.before, &change.after) {
            (Some(before), Some(after)) => changed_skill(&mut text, before, after, change),
            (None, Some(after)) => new_skill(&mut text, '+', after),
            (Some(before), None) => {
                let _ = writeln!(text, "- {} ({})", before.name, before.path);
            }
            (None, None) => {}
        }
        found(&mut text, &findings::new_in(change));
    }
    notes(&mut text, new_notes);
    text
}

fn new_skill(text: &mut String, sign: char, skill: &OfferedSkill) {
    let size: u64 = skill.files.iter().filter_map(|file| file.size).sum();
    let scripts = skill.files.iter().filter(|file| file.is_script).count();
    let scripts = if scripts == 0 { String::new() } else { format!(", {}", count(scripts, "script")) };
    let files = count(skill.files.len(), "file");
    let _ = writeln!(text, "{sign} {} ({}; {files}{scripts}, {})", skill.name, skill.path, bytes(size));
    for line in skill.description.lines() {
        let _ = writeln!(text, "{sign}   {}", line.trim());
    }
    for file in skill.files.iter().filter(|file| file.is_script).take(MAX_FILES) {
        let _ = writeln!(text, "{sign}   script: {}", file.path);
    }
}

fn changed_skill(text: &mut String, before: &OfferedSkill, after: &OfferedSkill, change: &SkillChange) {
    let _ = writeln!(text, "~ {} ({})", after.name, after.path);
    for (what, old, new) in
        [("name", &before.name, &after.name), ("description", &before.description, &after.description)]
    {
        if old != new {
            let _ = writeln!(text, "    {what}:");
            lines(text, "- ", old);
            lines(text, "+ ", new);
        }
    }
    for file in &change.files {
        let kind = match file.kind {
            FileChangeKind::Added => "new file",
            FileChangeKind::Removed => "removed file",
            FileChangeKind::Changed => "changed",
        };
        match &file.diff {
            Some(diff) => {
                let _ = writeln!(text, "    {kind}: {}", file.path);
                // Skip the header, which is two lines with the name of the file.
                let rest = diff.splitn(3, '\n').nth(2).unwrap_or_default();
                lines(text, "", rest);
            }
            None => {
                let _ = writeln!(text, "    {kind}: {} (binary, or too long to show)", file.path);
            }
        }
    }
    if change.files.is_empty() && before.dir.is_none() {
        let _ = writeln!(text, "skill address or file checksum has changed");
    }
}

/// Adds lines from the source. They are indented, so that they can't imitate our own output.
fn lines(text: &mut String, sign: &str, lines: &str) {
    for line in lines.lines() {
        let _ = writeln!(text, "    {sign}{line}");
    }
}

/// Adds the findings of a scan, the highest risk first.
fn found(text: &mut String, findings: &[Finding]) {
    let mut findings: Vec<_> = findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.risk));
    for finding in findings.iter().take(MAX_FINDINGS) {
        let sign = if finding.risk == Risk::High { "!!" } else { "! " };
        let place = match (finding.file.as_str(), finding.line) {
            ("", _) => String::new(),
            (file, 0) => format!(" {file}:"),
            (file, line) => format!(" {file}:{line}:"),
        };
        let _ =
            writeln!(text, "  {sign} {} risk[{}]:{place} {}", finding.risk, finding.code, finding.message());
        if !finding.excerpt.is_empty() {
            let _ = writeln!(text, "       {}", finding.excerpt);
        }
    }
    if findings.len() > MAX_FINDINGS {
        let _ = writeln!(
            text,
            "  !  and {} more: use `acp-skills-proxy check --security` to list all",
            findings.len() - MAX_FINDINGS
        );
    }
}

fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        let _ = writeln!(text, "! {note}");
    }
}

fn bytes(size: u64) -> String {
    match size {
        0..1_024 => format!("{size} bytes"),
        1_024..1_048_576 => format!("{} KiB", size.div_ceil(1_024)),
        _ => format!("{} MiB", size.div_ceil(1_048_576)),
    }
}
