//! Links in Markdown: between the guides, from the README into the manual, and in the manual's table of contents.

use std::{collections::BTreeSet, path::Path};

use crate::{assert_none, files, read, root};

const MANUAL: &str = "crates/acp-skills-proxy/manual/src";

/// A link with the number of its line.
struct Link {
    line: usize,
    target: String,
}

/// Returns the inline links and images of a text, outside of code.
fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code || line.starts_with("    ") {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect();
        for part in prose.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            found.push(Link { line: number + 1, target: target.to_owned() });
        }
    }
    found
}

/// Returns the anchors of the headings of a text, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if !is_code && line.starts_with('#') {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            found.insert(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect());
        }
    }
    found
}

/// Returns what is wrong with a link in the file `path`.
fn complaint(path: &str, target: &str) -> Option<String> {
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let dir = root().join(Path::new(path).parent().unwrap_or(Path::new("")));
    let file = if file.is_empty() { root().join(path) } else { dir.join(file) };
    if !file.exists() {
        return Some(format!("{target} does not exist"));
    }
    let is_markdown = file.extension().is_some_and(|extension| extension == "md");
    let text = if is_markdown { std::fs::read_to_string(&file).unwrap() } else { String::new() };
    (is_markdown && !anchor.is_empty() && !anchors(&text).contains(anchor))
        .then(|| format!("{target}: there is no such heading"))
}

#[test]
fn links_lead_somewhere() {
    let mut findings = Vec::new();
    for path in files("", ".md") {
        // Ignore the skills that are used in tests, because some of their links are broken on purpose.
        if path.starts_with("tests/skills/") || path.starts_with("tests/skills_core/") {
            continue;
        }
        for link in links(&read(&path)) {
            if let Some(complaint) = complaint(&path, &link.target) {
                findings.push(format!("{path}:{}: {complaint}", link.line));
            }
        }
    }
    assert_none(&findings, "Correct the links, or restore what they lead to.");
}

#[test]
fn the_manual_lists_every_page() {
    let summary = read(&format!("{MANUAL}/SUMMARY.md"));
    let listed: BTreeSet<_> =
        links(&summary).into_iter().map(|link| format!("{MANUAL}/{}", link.target)).collect();
    let missing: Vec<_> = files(MANUAL, ".md")
        .into_iter()
        .filter(|path| !path.ends_with("/SUMMARY.md") && !listed.contains(path))
        .map(|path| format!("{path}: not in {MANUAL}/SUMMARY.md"))
        .collect();
    assert_none(&missing, "Readers only find pages that the table of contents lists.");
}

#[test]
fn links_in_code_do_not_count() {
    let found: Vec<_> = links("[a](b.md) ![c](d.svg \"e\")\n`[f](g)`\n```\n[h](i)\n```\n    [j](k)\n[l](#m)")
        .into_iter()
        .map(|link| format!("{}:{}", link.line, link.target))
        .collect();
    assert_eq!(found, ["1:b.md", "1:d.svg", "7:#m"]);
}
