//! Constructions that make doc comments hard to read. They open with a verb or a noun instead, and name who acts.

use crate::{assert_none, files, read};

/// Words that a doc comment must not open with.
const OPENINGS: [&str; 10] =
    ["What", "Whether", "How", "Nothing", "Who", "These", "Those", "Nobody", "Somebody", "Whoever"];

/// Words that a doc comment must not contain.
const WORDS: [&str; 3] = ["nobody", "whoever", "somebody"];

/// Good uses: the path of a file, and a part of the line.
const ALLOWED: [(&str, &str); 1] = [("crates/skills-core/src/builder.rs", "BuildError::NoBody")];

/// Returns the line number and the complaint for each finding in the text of a file.
fn findings(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(doc) = doc.filter(|doc| !doc.starts_with('/')) else {
            is_inside = false;
            continue;
        };
        let first =
            doc.trim_start().split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        if !is_inside && OPENINGS.contains(&first) {
            found.push((number + 1, format!("opens with \"{first}\": {}", line.trim_end())));
        }
        is_inside = true;
        let words = doc.split(|letter: char| !letter.is_alphanumeric());
        let lower: Vec<_> = words.map(str::to_lowercase).collect();
        for word in WORDS {
            if lower.iter().any(|found| found == word) {
                found.push((number + 1, format!("contains \"{word}\": {}", line.trim_end())));
            }
        }
    }
    found
}

#[test]
fn doc_comments_open_with_a_verb_or_a_noun() {
    let mut all = Vec::new();
    for dir in ["crates", "tests", "examples"] {
        for path in files(dir, ".rs") {
            if path.starts_with("tests/repository/") {
                continue;
            }
            for (line, complaint) in findings(&read(&path)) {
                if !ALLOWED.iter().any(|(file, part)| *file == path && complaint.contains(part)) {
                    all.push(format!("{path}:{line}: {complaint}"));
                }
            }
        }
    }
    assert_none(
        &all,
        "Open with a verb (\"Returns\", \"Parses\"), with a noun (\"A skill on disk\"), or with \"True if\". Name who \
         acts: the agent, the client, the model, the user. A good use can go into ALLOWED in tests/repository/wording.rs.",
    );
}

#[test]
fn every_allowed_use_exists() {
    for (path, part) in ALLOWED {
        assert!(
            findings(&read(path)).iter().any(|(_, complaint)| complaint.contains(part)),
            "{path}: {part}"
        );
    }
}

#[test]
fn findings_are_of_doc_comments_alone() {
    let text = "//! Whether it works.\n//! What goes on.\n\n/// Returns it.\n/// Nobody knows.\nfn f() {}\n// What?\n    /// How, now?\n//// Who\n/// Whatever\n";
    let lines: Vec<_> = findings(text).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [1, 5, 8]);
}
