//! Compares our results for real `SKILL.md` files with those of a YAML 1.2 parser and of the reference validator.
//!
//! The files are not part of this repository. Set `SKILLS_CORPUS` to a directory that contains them and an `expected.jsonl`, which
//! has a line for each file with `path`, `strict_valid`, `strict_errors`, `yaml_ok`, `name` and `description`. If the variable is
//! not set, the tests are skipped.

#![expect(clippy::print_stderr, reason = "prints that a test was skipped, or the results")]

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
fn nearly_all_files_are_loaded_with_the_values_of_the_yaml_parser() {
    let Some(cases) = corpus() else { return };
    let mut loaded = 0;
    let mut different = Vec::new();
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
fn results_agree_with_the_reference_validator() {
    let Some(cases) = corpus() else { return };
    let mut same_verdict = 0;
    let mut same_messages = 0;
    for case in &cases {
        let context = ParseContext::in_directory(&case.directory);
        let found = validate_bytes(&case.bytes, &context, Verdict::Reference);
        let found: Vec<&str> = found.iter().map(|finding| first_words(&finding.message)).collect();
        let expected = case.expected["strict_errors"].as_array().expect("a list of errors");
        let expected: Vec<&str> = expected.iter().filter_map(Value::as_str).map(first_words).collect();
        let agrees = found.is_empty() == (case.expected["strict_valid"] == true);
        same_verdict += usize::from(agrees);
        same_messages += usize::from(found == expected);
        if !agrees || found != expected {
            eprintln!("{}:\n  ours      {found:?}\n  reference {expected:?}", case.path);
        }
    }
    eprintln!(
        "{same_verdict} of {} have the same verdict as the reference, {same_messages} the same messages",
        cases.len()
    );
    assert!(cases.len() - same_verdict <= 7);
    assert!(cases.len() - same_messages <= 7);
}

/// Returns the message, or only its beginning if the rest depends on the YAML parser.
fn first_words(message: &str) -> &str {
    let yaml = "Invalid YAML in frontmatter";
    if message.starts_with(yaml) { yaml } else { message }
}

/// The scan must have few false positives for curated skills, because users would disable it otherwise.
#[test]
fn the_scan_has_few_findings_in_curated_skills() {
    use skills_core::scan::{Risk, Rules, scan};
    use std::collections::BTreeMap;
    /// The number of findings and of skills by risk and code.
    type Counts = BTreeMap<(Risk, String), (usize, usize)>;
    let Some(cases) = corpus() else { return };
    let root = PathBuf::from(std::env::var_os("SKILLS_CORPUS").expect("a corpus"));
    let mut by_code = Counts::default();
    let mut skills = [0; 3];
    let start = std::time::Instant::now();
    let mut bytes = 0;
    let mut found = 0;
    for case in &cases {
        let dir = root.join(&case.path);
        let report =
            scan(dir.parent().expect("a directory"), Rules::built_in()).expect("a directory of the corpus");
        bytes += report.bytes;
        found += report.findings.len();
        let mut codes: Vec<_> =
            report.findings.iter().map(|finding| (finding.risk, finding.code.clone())).collect();
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
            for finding in &report.findings {
                eprintln!(
                    "{} {} {}:{}:{}: {:?} {}",
                    finding.risk,
                    finding.code,
                    case.path,
                    finding.line,
                    finding.file,
                    finding.detail,
                    finding.excerpt
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
    assert!(skills[2] * 50 <= cases.len(), "more than 2% of the skills have a high risk");
    assert!(
        (skills[2] + skills[1]) * 20 <= cases.len(),
        "more than 5% of the skills have a high or medium risk"
    );
}
