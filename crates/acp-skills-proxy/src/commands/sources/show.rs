//! Shows skills and changes before they are approved.

use std::{collections::BTreeMap, fmt::Write};

use skills_core::{
    scan::{Finding, Risk},
    text::{shown, shown_lines, shown_path},
};
use skills_sources::{FileChange, FileChangeKind, OfferedSkill, SkillChange};

use super::shadowed::Shadowed;
use crate::words::count;

/// The maximum number of scripts to list for a new skill.
const MAX_FILES: usize = 20;
/// The maximum number of findings to show for a skill.
const MAX_FINDINGS: usize = 10;

/// The findings of a scan, by the path of the skill.
pub(super) type FindingsBySkill = BTreeMap<String, Vec<Finding>>;

/// Renders the skills of a new source, with all of their files. Those in `shadowed` will not be used.
pub(super) fn offer(
    skills: &[SkillChange],
    findings: &FindingsBySkill,
    shadowed: &[Shadowed],
    new_notes: &[String],
) -> String {
    let mut text = String::new();
    for change in skills {
        let Some(skill) = &change.after else { continue };
        new_skill(&mut text, ' ', skill);
        if let Some(shadowed) = shadowed.iter().find(|shadowed| shadowed.name == skill.name) {
            let by = shown(&shadowed.by);
            let _ = writeln!(text, "  !  not used, because {by} has a skill with the same name");
        }
        found(&mut text, findings.get(&change.path));
        files(&mut text, change);
    }
    notes(&mut text, new_notes);
    let _ = writeln!(text, "{}", count(skills.len(), "skill"));
    text
}

/// Renders the changes since the approved version, with all files that are new or have changed.
pub(super) fn changes(changes: &[SkillChange], findings: &FindingsBySkill, new_notes: &[String]) -> String {
    let mut text = String::new();
    for change in changes {
        match (&change.before, &change.after) {
            (Some(before), Some(after)) => changed_skill(&mut text, before, after),
            (None, Some(after)) => new_skill(&mut text, '+', after),
            (Some(before), None) => {
                let _ = writeln!(text, "- {} ({})", shown(&before.name), shown(&before.path));
            }
            (None, None) => {}
        }
        found(&mut text, findings.get(&change.path));
        files(&mut text, change);
    }
    notes(&mut text, new_notes);
    text
}

/// Returns a line for each file that cannot be shown, or that can change later. The line contains the reason, the size
/// and the local path of the file.
pub(super) fn unseen(changes: &[SkillChange]) -> Vec<String> {
    let mut lines = Vec::new();
    for change in changes {
        let dir = change.after.as_ref().and_then(|skill| skill.dir.as_ref());
        for file in change.files.iter().filter(|file| file.unseen.is_some()) {
            let place =
                dir.map_or_else(String::new, |dir| format!(": {}", shown_path(&dir.join(&file.path))));
            let path = shown(&file.path);
            lines.push(format!("{}: {path} {}{place}", shown(&change.path), why_unseen(file)));
        }
    }
    lines
}

fn why_unseen(file: &FileChange) -> String {
    let why = file.unseen.as_deref().unwrap_or("unknown");
    let size = file.size.map_or_else(String::new, |size| format!(", {}", bytes(size)));
    let what = if file.text.is_some() { "cannot be pinned" } else { "cannot be shown" };
    format!("({what}: {}{size})", shown(why))
}

fn new_skill(text: &mut String, sign: char, skill: &OfferedSkill) {
    let size: u64 = skill.files.iter().filter_map(|file| file.size).sum();
    let scripts = skill.files.iter().filter(|file| file.is_script).count();
    let scripts = if scripts == 0 { String::new() } else { format!(", {}", count(scripts, "script")) };
    let files = count(skill.files.len(), "file");
    let (name, path) = (shown(&skill.name), shown(&skill.path));
    let _ = writeln!(text, "{sign} {name} ({path}; {files}{scripts}, {})", bytes(size));
    lines(text, &format!("{sign}   "), &skill.description);
    for file in skill.files.iter().filter(|file| file.is_script).take(MAX_FILES) {
        let _ = writeln!(text, "{sign}   script: {}", shown(&file.path));
    }
}

fn changed_skill(text: &mut String, before: &OfferedSkill, after: &OfferedSkill) {
    let _ = writeln!(text, "~ {} ({})", shown(&after.name), shown(&after.path));
    for (what, old, new) in
        [("name", &before.name, &after.name), ("description", &before.description, &after.description)]
    {
        if old != new {
            let _ = writeln!(text, "    {what}:");
            lines(text, "    - ", old);
            lines(text, "    + ", new);
        }
    }
}

/// Adds the files of a skill that are new or have changed, with their whole text or a diff.
fn files(text: &mut String, change: &SkillChange) {
    for file in &change.files {
        let kind = match file.kind {
            FileChangeKind::Added => "new file",
            FileChangeKind::Removed => "removed file",
            FileChangeKind::Changed => "changed",
        };
        let _ = write!(text, "    {kind}: {}", shown(&file.path));
        match (&file.diff, &file.text) {
            (Some(diff), _) => {
                text.push('\n');
                // Skip the header, which is two lines with the name of the file.
                let rest = diff.splitn(3, '\n').nth(2).unwrap_or_default();
                lines(text, "    ", rest);
            }
            (None, Some(whole)) => {
                let why = file.unseen.as_ref().map_or_else(String::new, |_| format!(" {}", why_unseen(file)));
                let _ = writeln!(text, " (the whole text){why}");
                lines(text, "    +", whole);
            }
            (None, None) if file.unseen.is_some() => {
                let _ = writeln!(text, " {}", why_unseen(file));
            }
            (None, None) => text.push('\n'),
        }
    }
}

/// Adds lines from the source. They are indented, so that they can't imitate our own output. Characters that a terminal shows as
/// a line break are treated as line breaks.
fn lines(text: &mut String, indent: &str, lines: &str) {
    for line in shown_lines(lines).lines() {
        let _ = writeln!(text, "{indent}{line}");
    }
}

/// Adds the findings of a scan, the highest risk first.
fn found(text: &mut String, findings: Option<&Vec<Finding>>) {
    let mut findings: Vec<_> = findings.into_iter().flatten().collect();
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
        let _ = writeln!(text, "! {}", shown(note));
    }
}

fn bytes(size: u64) -> String {
    match size {
        0..1_024 => format!("{size} bytes"),
        1_024..1_048_576 => format!("{} KiB", size.div_ceil(1_024)),
        _ => format!("{} MiB", size.div_ceil(1_048_576)),
    }
}
