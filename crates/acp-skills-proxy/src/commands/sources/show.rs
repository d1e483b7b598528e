//! Shows skills and changes before they are approved.
//!
//! The text is written piece by piece, because indentation and escapes can make it many times larger than the files.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use skills_core::{
    order,
    scan::{Finding, Risk},
    text::{shown, shown_line, shown_path},
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

/// Writes the skills of a new source, with all of their files. Those in `shadowed` will not be used.
pub(super) fn offer(
    text: &mut dyn Write,
    skills: &[SkillChange],
    findings: &FindingsBySkill,
    shadowed: &[Shadowed],
    new_notes: &[String],
) -> fmt::Result {
    for change in skills {
        let Some(skill) = &change.after else { continue };
        new_skill(text, ' ', skill)?;
        if let Some(shadowed) = shadowed.iter().find(|shadowed| shadowed.name == skill.name) {
            let by = shown(&shadowed.by);
            writeln!(text, "  !  not used, because {by} has a skill with the same name")?;
        }
        found(text, findings.get(&change.path))?;
        files(text, change)?;
    }
    notes(text, new_notes)?;
    writeln!(text, "{}", count(skills.len(), "skill"))
}

/// Writes the changes since the approved version, with all files that are new or have changed.
pub(super) fn changes(
    text: &mut dyn Write,
    changes: &[SkillChange],
    findings: &FindingsBySkill,
    new_notes: &[String],
) -> fmt::Result {
    for change in changes {
        match (&change.before, &change.after) {
            // The approved version is not in the cache.
            (Some(before), Some(after)) if before.description.is_empty() => new_skill(text, '~', after)?,
            (Some(before), Some(after)) => changed_skill(text, before, after)?,
            (None, Some(after)) => new_skill(text, '+', after)?,
            (Some(before), None) => {
                writeln!(text, "- {} ({})", shown(&before.name), shown(&before.path))?;
            }
            (None, None) => {}
        }
        found(text, findings.get(&change.path))?;
        files(text, change)?;
    }
    notes(text, new_notes)
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

fn new_skill(text: &mut dyn Write, sign: char, skill: &OfferedSkill) -> fmt::Result {
    let size: u64 = skill.files.iter().filter_map(|file| file.size).sum();
    let scripts = skill.files.iter().filter(|file| file.is_script).count();
    let scripts = if scripts == 0 { String::new() } else { format!(", {}", count(scripts, "script")) };
    let files = count(skill.files.len(), "file");
    let (name, path) = (shown(&skill.name), shown(&skill.path));
    writeln!(text, "{sign} {name} ({path}; {files}{scripts}, {})", bytes(size))?;
    if let Some(url) = skill.url() {
        writeln!(text, "{sign}   from {}", shown(url))?;
    }
    lines(text, &format!("{sign}   | "), &skill.description, Ending::Lf)?;
    for file in skill.files.iter().filter(|file| file.is_script).take(MAX_FILES) {
        writeln!(text, "{sign}   script: {}", shown(&file.path))?;
    }
    Ok(())
}

fn changed_skill<'a>(text: &mut dyn Write, before: &'a OfferedSkill, after: &'a OfferedSkill) -> fmt::Result {
    writeln!(text, "~ {} ({})", shown(&after.name), shown(&after.path))?;
    let url = |skill: &'a OfferedSkill| skill.url().unwrap_or_default();
    for (what, old, new) in [
        ("name", &*before.name, &*after.name),
        ("description", &before.description, &after.description),
        ("address", url(before), url(after)),
    ] {
        if old != new {
            writeln!(text, "    {what}:")?;
            lines(text, "    - ", old, Ending::Lf)?;
            lines(text, "    + ", new, Ending::Lf)?;
        }
    }
    Ok(())
}

/// Adds the files of a skill that are new or have changed, with their whole text or a diff.
fn files(text: &mut dyn Write, change: &SkillChange) -> fmt::Result {
    for file in &change.files {
        let kind = match file.kind {
            FileChangeKind::Added => "new file",
            FileChangeKind::Removed => "removed file",
            FileChangeKind::Changed => "changed",
        };
        write!(text, "    {kind}: {}", shown(&file.path))?;
        match (&file.diff, &file.text) {
            (Some(diff), _) => {
                // Skip the header, which is two lines with the name of the file.
                let rest = diff.splitn(3, '\n').nth(2).unwrap_or_default();
                let ending = Ending::of(rest.split_inclusive('\n').filter(|line| sign(line).is_some()));
                writeln!(text, "{}", ending.note())?;
                diff_lines(text, rest, ending)?;
            }
            (None, Some(whole)) => {
                let why = file.unseen.as_ref().map_or_else(String::new, |_| format!(" {}", why_unseen(file)));
                let ending = Ending::of(whole.split_inclusive('\n'));
                writeln!(text, " (the whole text){}{why}", ending.note())?;
                lines(text, "    +", whole, ending)?;
            }
            (None, None) if file.unseen.is_some() => {
                writeln!(text, " {}", why_unseen(file))?;
            }
            (None, None) => text.write_char('\n')?,
        }
    }
    Ok(())
}

/// The line breaks of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// LF, or a mixture. A CR is shown as an escape.
    Lf,
    /// All lines end with CRLF.
    CrLf,
}

impl Ending {
    fn of<'l>(lines: impl Iterator<Item = &'l str>) -> Self {
        let mut lines = lines.filter(|line| line.ends_with('\n')).peekable();
        let is_crlf = lines.peek().is_some() && lines.all(|line| line.ends_with("\r\n"));
        if is_crlf { Self::CrLf } else { Self::Lf }
    }

    fn note(self) -> &'static str {
        if self == Self::CrLf { " (with CRLF line breaks)" } else { "" }
    }
}

/// Adds lines from the source. They are indented, so that they can't imitate our own output. Each line of the file is one line, because
/// other characters that look like a line break can be part of a comment.
fn lines(text: &mut dyn Write, indent: &str, lines: &str, ending: Ending) -> fmt::Result {
    // One line at a time, because escapes of a large text need a lot of memory.
    for line in lines.split_inclusive('\n') {
        let line = match ending {
            Ending::Lf => line.strip_suffix('\n'),
            Ending::CrLf => line.strip_suffix("\r\n"),
        }
        .unwrap_or(line);
        writeln!(text, "{indent}{}", shown_line(line))?;
    }
    Ok(())
}

/// Adds the lines of a diff.
fn diff_lines(text: &mut dyn Write, diff: &str, ending: Ending) -> fmt::Result {
    for line in diff.split_inclusive('\n') {
        match sign(line) {
            Some(sign) => lines(text, &format!("    {sign}"), &line[1..], ending)?,
            None => lines(text, "    ", line, Ending::Lf)?,
        }
    }
    Ok(())
}

/// Returns the sign of a line of a diff, which is followed by a line of the file.
fn sign(line: &str) -> Option<char> {
    line.chars().next().filter(|sign| matches!(sign, '+' | '-' | ' '))
}

/// Adds the findings of a scan, the highest risk first.
fn found(text: &mut dyn Write, findings: Option<&Vec<Finding>>) -> fmt::Result {
    let mut findings: Vec<_> = findings.into_iter().flatten().collect();
    order::sort_by_key(&mut findings, |finding| std::cmp::Reverse(finding.risk));
    for finding in findings.iter().take(MAX_FINDINGS) {
        let sign = if finding.risk == Risk::High { "!!" } else { "! " };
        let place = match (finding.file.as_str(), finding.line) {
            ("", _) => String::new(),
            (file, 0) => format!(" {file}:"),
            (file, line) => format!(" {file}:{line}:"),
        };
        writeln!(text, "  {sign} {} risk[{}]:{place} {}", finding.risk, finding.code, finding.message())?;
        if !finding.excerpt.is_empty() {
            writeln!(text, "       {}", finding.excerpt)?;
        }
    }
    if findings.len() > MAX_FINDINGS {
        writeln!(
            text,
            "  !  and {} more: use `acp-skills-proxy check --security` to list all",
            findings.len() - MAX_FINDINGS
        )?;
    }
    Ok(())
}

/// Writes the notes about a source.
pub(super) fn notes(text: &mut dyn Write, notes: &[String]) -> fmt::Result {
    for note in notes {
        writeln!(text, "! {}", shown(note))?;
    }
    Ok(())
}

fn bytes(size: u64) -> String {
    match size {
        0..1_024 => format!("{size} bytes"),
        1_024..1_048_576 => format!("{} KiB", size.div_ceil(1_024)),
        _ => format!("{} MiB", size.div_ceil(1_048_576)),
    }
}
