//! Lets the scripted agent act as a grader. An assertion passes if a single line of the transcript contains enough of
//! its words. This is no real judgement, but it produces verdicts with evidence for demos and tests.

use serde_json::json;

use super::catalog::words;
use super::wording::{ASSERTION, OPENING, WORK};

/// The share of an assertion's words that must occur in one line.
const ENOUGH: f64 = 0.5;

/// Returns the verdicts for a request, or `None` if the request is not meant for a grader.
pub(super) fn verdicts(request: &str) -> Option<String> {
    let request = request.strip_prefix(OPENING)?;
    let numbered = |line: &str| {
        let (number, text) = line.strip_prefix(ASSERTION)?.split_once(": ")?;
        Some((number.parse::<usize>().ok()?, text.to_owned()))
    };
    let (_, material) = request.split_once(WORK).unwrap_or_default();
    let material = material.split(ASSERTION).next().unwrap_or_default();
    // Skip the user's prompt, which must not be used as evidence.
    let (_, material) = material.split_once("## Agent").unwrap_or_default();
    let verdict = |(number, text): (usize, String)| {
        let (share, line) = best_line(&words(&text), material);
        let passed = share >= ENOUGH;
        let evidence = match (passed, line) {
            (true, line) => format!("it says: {line}"),
            (false, "") => "no matching text found".to_owned(),
            (false, line) => format!("closest match: {line}"),
        };
        json!({ "assertion": number, "passed": passed, "evidence": evidence })
    };
    let verdicts: Vec<_> = request.lines().filter_map(numbered).map(verdict).collect();
    Some(json!({ "verdicts": verdicts }).to_string())
}

/// Returns the line that contains the largest share of these words, and the share.
#[expect(clippy::cast_precision_loss, reason = "a sentence has few words")]
fn best_line<'a>(wanted: &[String], material: &'a str) -> (f64, &'a str) {
    let share = |line: &&str| {
        let said = words(line);
        let found = wanted.iter().filter(|word| said.contains(word)).count();
        found as f64 / wanted.len().max(1) as f64
    };
    let lines = material.lines().map(str::trim).filter(|line| !line.is_empty());
    let best = lines.map(|line| (share(&line), line)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(share, _)| *share > 0.0).unwrap_or_default()
}
