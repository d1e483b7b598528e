//! Real `SKILL.md` files, measured against what a YAML 1.2 parser and the reference validator say of them.
//!
//! The files are not part of this repository. `SKILLS_CORPUS` names a directory with them and with `expected.jsonl`:
//! one line a file with `path`, `strict_valid`, `strict_errors`, `yaml_ok`, `name` and `description`. Without it the test skips.

#![expect(clippy::print_stderr, reason = "a test that skips or measures says so")]

use std::path::PathBuf;

use serde_json::Value;
use skills_core::frontmatter::{ParseContext, Verdict, parse_bytes, validate_bytes};

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

#[test]
fn agrees_with_the_reference_validator() {
    let Some(cases) = corpus() else { return };
    let (mut same_verdict, mut same_words) = (0, 0);
    for case in &cases {
        let context = ParseContext::in_directory(&case.directory);
        let found = validate_bytes(&case.bytes, &context, Verdict::Reference);
        let found: Vec<&str> = found.iter().map(|it| first_words(&it.message)).collect();
        let expected = case.expected["strict_errors"].as_array().expect("a list of errors");
        let expected: Vec<&str> = expected.iter().filter_map(Value::as_str).map(first_words).collect();
        let agrees = found.is_empty() == (case.expected["strict_valid"] == true);
        same_verdict += usize::from(agrees);
        same_words += usize::from(found == expected);
        if !agrees || found != expected {
            eprintln!("{}:\n  here {found:?}\n  reference {expected:?}", case.path);
        }
    }
    eprintln!("{same_verdict} of {} have the verdict of the reference, {same_words} its words", cases.len());
    assert!(cases.len() - same_verdict <= 7);
    assert!(cases.len() - same_words <= 7);
}

/// The message; of one about YAML only what does not depend on the parser.
fn first_words(message: &str) -> &str {
    let yaml = "Invalid YAML in frontmatter";
    if message.starts_with(yaml) { yaml } else { message }
}

/// Skills that people curate are rarely accused: a scan that cries wolf is turned off.
#[test]
fn curated_skills_are_rarely_accused() {
    use skills_core::scan::{Risk, Rules, scan};
    use std::collections::BTreeMap;
    /// How many findings and skills there are of each code, by risk.
    type Counts = BTreeMap<(Risk, String), (usize, usize)>;
    let Some(cases) = corpus() else { return };
    let root = PathBuf::from(std::env::var_os("SKILLS_CORPUS").expect("a corpus"));
    let (mut by_code, mut skills): (Counts, [usize; 3]) = Default::default();
    let start = std::time::Instant::now();
    let (mut bytes, mut found) = (0, 0);
    for case in &cases {
        let dir = root.join(&case.path);
        let report =
            scan(dir.parent().expect("a directory"), Rules::built_in()).expect("a directory of the corpus");
        bytes += report.bytes;
        found += report.findings.len();
        let mut codes: Vec<_> = report.findings.iter().map(|it| (it.risk, it.code.clone())).collect();
        for code in &codes {
            by_code.entry(code.clone()).or_default().0 += 1;
        }
        codes.sort();
        codes.dedup();
        for code in codes {
            by_code.entry(code).or_default().1 += 1;
        }
        if let Some(risk) = report.risk() {
            skills[risk as usize] += 1;
        }
        if std::env::var_os("SKILLS_CORPUS_SHOW").is_some() {
            for it in &report.findings {
                eprintln!(
                    "{} {} {}:{}:{}: {:?} {}",
                    it.risk, it.code, case.path, it.line, it.file, it.detail, it.excerpt
                );
            }
        }
    }
    eprintln!(
        "{found} findings in {} skills, {bytes} bytes in {:?}; skills by greatest risk: {} high, {} medium, {} low",
        cases.len(),
        start.elapsed(),
        skills[2],
        skills[1],
        skills[0],
    );
    for ((risk, code), (findings, skills)) in by_code {
        eprintln!("  {risk} {code}: {findings} in {skills} skills");
    }
    assert!(skills[2] * 50 <= cases.len(), "more than one in fifty is called dangerous");
    assert!((skills[2] + skills[1]) * 20 <= cases.len(), "more than one in twenty deserves a look");
}
