//! Real `SKILL.md` files, measured against what a YAML 1.2 parser and the reference validator say of them.
//!
//! The files are not part of this repository. `SKILLS_CORPUS` names a directory with them and with `expected.jsonl`:
//! one line a file with `path`, `strict_valid`, `yaml_ok`, `name` and `description`. Without it the test skips.

#![expect(clippy::print_stderr, reason = "a test that skips or measures says so")]

use std::path::PathBuf;

use serde_json::Value;
use skills_core::frontmatter::{ParseContext, parse_bytes};

struct Case {
    path: String,
    directory: String,
    bytes: Vec<u8>,
    expected: Value,
}

fn corpus() -> Option<Vec<Case>> {
    let Some(root) = std::env::var_os("SKILLS_CORPUS").map(PathBuf::from) else {
        eprintln!("skipped: SKILLS_CORPUS is not set");
        return None;
    };
    let lines =
        std::fs::read_to_string(root.join("expected.jsonl")).expect("expected.jsonl in SKILLS_CORPUS");
    let case = |line: &str| {
        let expected: Value = serde_json::from_str(line).expect("a line of JSON");
        let path = expected["path"].as_str().expect("a path").to_owned();
        let file = root.join(&path);
        let directory = file
            .parent()
            .and_then(|dir| dir.file_name())
            .expect("a directory")
            .to_string_lossy()
            .into_owned();
        Case { directory, bytes: std::fs::read(&file).expect("a file of the corpus"), path, expected }
    };
    Some(lines.lines().map(case).collect())
}

#[test]
fn loads_what_exists_and_reads_what_yaml_reads() {
    let Some(cases) = corpus() else { return };
    let (mut loaded, mut different) = (0, Vec::new());
    for case in &cases {
        let parsed = parse_bytes(&case.bytes, &ParseContext::in_directory(&case.directory));
        let Some(frontmatter) = parsed.frontmatter else {
            eprintln!("not loaded: {}: {:?}", case.path, parsed.diagnostics);
            continue;
        };
        loaded += 1;
        let text = |field: &str| case.expected[field].as_str().map(str::trim);
        if case.expected["yaml_ok"] == true
            && (text("name") != Some(frontmatter.name.as_str())
                || text("description") != Some(frontmatter.description.as_str()))
        {
            different.push((case, frontmatter));
        }
    }
    for (case, frontmatter) in &different {
        eprintln!("{}: {:?} {:?}", case.path, frontmatter.name, frontmatter.description);
    }
    eprintln!("{loaded} of {} load, {} differ from YAML 1.2", cases.len(), different.len());
    assert!(different.is_empty());
    assert!(cases.len() - loaded <= 2);
}
