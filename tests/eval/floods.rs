//! Agents that send more than is kept: the run ends with a reason, and the memory is bounded.

use std::{fs, path::Path};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{fixture::Fixture, trial};

/// The maximum peak memory of the program in KiB. A flood is twice as long.
const MAX_PEAK_KIB: u64 = 100 * 1024;

pub(crate) fn trials() -> Vec<Trial> {
    let trials = [
        trial("floods::a_line_without_an_end", a_line_without_an_end),
        trial("floods::a_message_with_too_many_values", a_message_with_too_many_values),
        trial("floods::updates_meet_back_pressure", updates_meet_back_pressure),
        trial("floods::an_agent_that_does_not_read_answers", an_agent_that_does_not_read_answers),
        trial("floods::tool_calls_have_a_limit", tool_calls_have_a_limit),
    ];
    trials.into()
}

/// Makes a query and a task with the same prompt, so that there are runs with and without the proxy. Returns the outcomes.
fn outcomes(prompt: &str, flags: &[&str]) -> Vec<Value> {
    let query = json!([{ "query": prompt, "should_trigger": true }]);
    let eval = json!([{ "id": 1, "name": "it", "prompt": prompt, "assertions": ["It is done"] }]);
    let fixture = Fixture::new(&query, &eval);
    let flags = [&["--runs", "1", "--retries", "0", "--jobs", "1", "--no-grader", "--json"], flags].concat();
    let run = fixture.eval(&flags, "pass");
    let mut directories = vec![fixture.path("results/iteration-1")];
    let mut outcomes = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.ends_with("run.json") {
                outcomes.push(serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON"));
            }
        }
    }
    assert!(!outcomes.is_empty(), "{} {}", run.stdout, run.stderr);
    outcomes
}

fn a_line_without_an_end() {
    for outcome in outcomes("endless", &["--timeout", "100"]) {
        let end = json!({ "how": "crashed", "why": "sent a message of more than 256 MiB" });
        assert_eq!((&outcome["status"], &outcome["end"]), (&json!("error"), &end), "{outcome:#}");
    }
}

fn a_message_with_too_many_values() {
    for outcome in outcomes("values; say done", &["--timeout", "100"]) {
        let end = json!({ "how": "crashed", "why": "sent a message with more than 262144 values" });
        assert_eq!((&outcome["status"], &outcome["end"]), (&json!("error"), &end), "{outcome:#}");
    }
}

fn updates_meet_back_pressure() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("peak");
    let prompt = format!("with load demo; flood {}", file.display());
    for outcome in outcomes(&prompt, &["--timeout", "100", "--only", "tasks"]) {
        assert_eq!(outcome["end"]["how"], "finished", "{outcome:#}");
    }
    assert_bounded(&file);
}

fn an_agent_that_does_not_read_answers() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("peak");
    for outcome in outcomes(&format!("deaf {}; hang", file.display()), &["--timeout", "4"]) {
        assert_eq!(outcome["end"]["how"], "timed_out", "{outcome:#}");
    }
    assert_bounded(&file);
}

fn tool_calls_have_a_limit() {
    let why = "sent more than 64 MiB of tool calls and permission requests";
    for outcome in outcomes("calls; say done", &["--timeout", "100", "--only", "queries"]) {
        assert_eq!(outcome["end"], json!({ "how": "crashed", "why": why }), "{outcome:#}");
    }
}

fn assert_bounded(file: &Path) {
    let peak = fs::read_to_string(file).expect("the agent has recorded the peak");
    let peak = peak.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
    assert!(peak < MAX_PEAK_KIB, "{peak} KiB");
}
