//! The embedded agent as a grader: an assertion holds when enough of its words stand together in what is to be judged. That
//! is no judgement, but it is a verdict with evidence, and shows what becomes of one.

use serde_json::json;

use super::catalog::words;
use super::wording::{ASSERTION, OPENING, WORK};

/// Which share of the words of an assertion must stand in one line.
const ENOUGH: f64 = 0.5;

/// The answer to a request that is one for a grader.
pub(super) fn verdicts(request: &str) -> Option<String> {
    let request = request.strip_prefix(OPENING)?;
    let numbered = |line: &str| {
        let (number, text) = line.strip_prefix(ASSERTION)?.split_once(": ")?;
        Some((number.parse::<usize>().ok()?, text.to_owned()))
    };
    let (_, material) = request.split_once(WORK).unwrap_or_default();
    let material = material.split(ASSERTION).next().unwrap_or_default();
    // What the user asked for shows nothing.
    let (_, material) = material.split_once("## Agent").unwrap_or_default();
    let verdict = |(number, text): (usize, String)| {
        let (share, line) = best_line(&words(&text), material);
        let passed = share >= ENOUGH;
        let evidence = match (passed, line) {
            (true, line) => format!("it says: {line}"),
            (false, "") => "nothing in it speaks of that".to_owned(),
            (false, line) => format!("the nearest is: {line}"),
        };
        json!({ "assertion": number, "passed": passed, "evidence": evidence })
    };
    let verdicts: Vec<_> = request.lines().filter_map(numbered).map(verdict).collect();
    Some(json!({ "verdicts": verdicts }).to_string())
}

/// The line with most of these words, and which share of them it has.
#[expect(clippy::cast_precision_loss, reason = "sentences are not that long")]
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
