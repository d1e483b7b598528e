//! Tasks: assertions, graders, permissions, and the files of the standard.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{fixture::Fixture, trial};

const RUN: &str = "iteration-1/eval-it/with_skill/run-1";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("tasks::files_follow_the_standard", files_follow_the_standard),
        trial("tasks::the_program_checks_files_and_answers", the_program_checks_files_and_answers),
        trial("tasks::an_invalid_verdict_is_never_a_pass", an_invalid_verdict_is_never_a_pass),
        trial(
            "tasks::without_a_grader_prose_assertions_do_not_count",
            without_a_grader_prose_assertions_do_not_count,
        ),
        trial("tasks::refused_permissions_are_reported", refused_permissions_are_reported),
        trial("tasks::edits_outside_are_always_refused", edits_outside_are_always_refused),
        trial("tasks::an_unrequested_edit_outside_fails_the_run", an_unrequested_edit_outside_fails_the_run),
        trial("tasks::runs_without_the_skill_are_not_activated", runs_without_the_skill_are_not_activated),
        trial("tasks::a_crash_keeps_other_results", a_crash_keeps_other_results),
        trial("tasks::a_difference_needs_evidence", a_difference_needs_evidence),
        trial("tasks::the_baseline_can_be_an_older_version", the_baseline_can_be_an_older_version),
        trial("tasks::commands_of_assertions_need_permission", commands_of_assertions_need_permission),
    ]
}

/// Returns a skill with one task called `it`.
fn task(prompt: &str, assertions: Value) -> Fixture {
    let eval = json!({ "id": 7, "name": "it", "prompt": prompt, "expected_output": "good work", "assertions": assertions });
    Fixture::new(&json!([]), &json!([eval]))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn files_follow_the_standard() {
    let fixture = task(
        "with load demo; with write out.txt good work; say done; tokens 42",
        json!([
            { "file_exists": "out.txt" },
            "It is good work",
        ]),
    );
    let run = fixture.eval(&["--runs", "2", "--json", "--jobs", "2"], "quality");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(fixture.text(&format!("{RUN}/outputs/out.txt")), "good work");
    assert!(fixture.text(&format!("{RUN}/transcript.md")).contains("loaded skill `demo`"));
    for line in fixture.text(&format!("{RUN}/acp.jsonl")).lines() {
        let line: Value = serde_json::from_str(line).expect("a line is a message");
        assert!(line["dir"] == "client" || line["dir"] == "agent", "{line}");
        assert_eq!(line["msg"]["jsonrpc"], "2.0");
    }

    let timing = fixture.json(&format!("{RUN}/timing.json"));
    assert_eq!(timing["total_tokens"], 42);
    assert!(timing["duration_ms"].is_u64() && timing["total_duration_seconds"].is_f64(), "{timing}");
    assert!(timing["executor_start"].is_string() && timing["executor_end"].is_string(), "{timing}");
    assert!(
        timing["executor_duration_seconds"].is_f64() && timing["grader_duration_seconds"].is_f64(),
        "{timing}"
    );

    let grading = fixture.json(&format!("{RUN}/grading.json"));
    assert_eq!(grading["assertion_results"], grading["expectations"]);
    for result in grading["expectations"].as_array().unwrap() {
        assert_eq!(keys(result), ["text", "passed", "evidence"], "{result}");
        assert!(result["passed"] == true && !result["evidence"].as_str().unwrap().is_empty(), "{result}");
    }
    let summary = json!({ "passed": 2, "failed": 0, "total": 2, "pass_rate": 1.0, "ungraded": 0 });
    assert_eq!(grading["summary"], summary);
    let metrics = &grading["execution_metrics"];
    for field in ["total_tool_calls", "total_steps", "errors_encountered", "output_chars", "transcript_chars"]
    {
        assert!(metrics[field].is_u64(), "{field} in {metrics}");
    }
    assert!(metrics["tool_calls"].is_object());
    assert_benchmark(&fixture.json("iteration-1/benchmark.json"));
    let with = fixture.text(&format!("{RUN}/acp.jsonl"));
    assert!(!with.contains("evals.json"), "the model must not see the assertions: {with}");
    let without = fixture.text("iteration-1/eval-it/without_skill/run-1/acp.jsonl");
    assert!(without.contains("\"mcpServers\":[]") && !without.contains("activate_skill"), "{without}");
}

/// Checks `benchmark.json` of two runs of the task in each configuration.
fn assert_benchmark(benchmark: &Value) {
    let metadata = &benchmark["metadata"];
    assert_eq!(
        (&metadata["skill_name"], &metadata["executor_model"]),
        (&json!("demo"), &json!("scripted-model"))
    );
    assert_eq!((&metadata["evals_run"], &metadata["runs_per_configuration"]), (&json!([7]), &json!(2)));
    for field in ["skill_path", "analyzer_model", "timestamp"] {
        assert!(metadata[field].is_string(), "{field} in {metadata}");
    }
    let runs = benchmark["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        assert_eq!(
            keys(run),
            ["eval_id", "eval_name", "configuration", "run_number", "result", "expectations", "notes"]
        );
        assert_eq!(
            keys(&run["result"]),
            ["pass_rate", "passed", "failed", "total", "time_seconds", "tokens", "tool_calls", "errors"]
        );
        assert!(run["configuration"] == "with_skill" || run["configuration"] == "without_skill");
        assert_eq!(
            (&run["eval_id"], &run["eval_name"], &run["result"]["tokens"]),
            (&json!(7), &json!("it"), &json!(42))
        );
    }
    let summary = &benchmark["run_summary"];
    assert_eq!(keys(summary), ["with_skill", "without_skill", "delta"]);
    for configuration in ["with_skill", "without_skill"] {
        for figure in ["pass_rate", "time_seconds", "tokens"] {
            assert_eq!(keys(&summary[configuration][figure]), ["mean", "stddev", "min", "max"]);
        }
    }
    assert_eq!(summary["with_skill"]["pass_rate"]["mean"], 1.0);
    assert_eq!((&summary["delta"]["pass_rate"], &summary["delta"]["tokens"]), (&json!(1.0), &json!(0.0)));
    let notes = benchmark["notes"].to_string();
    assert!(notes.contains("holds only with the skill: file `out.txt` exists"), "{notes}");
}

fn the_program_checks_files_and_answers() {
    let eval = json!({
        "id": "it",
        "prompt": "with load demo; write notes.md # Notes; say The answer is 42.",
        "files": ["evals/files/given.txt"],
        "assertions": [
            { "file_exists": "given.txt" },
            { "file_exists": "missing.txt" },
            { "file_matches": ["notes.md", "^# "] },
            { "file_matches": ["notes.md", "^## "] },
            { "answer_matches": "\\b42\\b" },
            { "answer_matches": "43" },
        ],
    });
    let fixture = Fixture::new(&json!([]), &json!([eval]));
    fixture.write("demo/evals/files/given.txt", "given");
    let run = fixture.eval(&["--runs", "1", "--json"], "pass");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let grading = fixture.json(&format!("{RUN}/grading.json"));
    let passed: Vec<_> =
        grading["expectations"].as_array().unwrap().iter().map(|result| result["passed"] == true).collect();
    assert_eq!(passed, [true, false, true, false, true, false]);
    let made = fixture.json(&format!("{RUN}/run.json"));
    assert_eq!(made["outputs"], json!(["notes.md"]));
}

fn an_invalid_verdict_is_never_a_pass() {
    for (grades, why) in [
        ("nonsense", "no JSON found"),
        ("no-evidence", "without evidence"),
        ("other-type", "invalid type"),
        ("twice", "more than one verdict"),
        ("crash", "exited with code 4"),
    ] {
        let fixture = task("with load demo; say done", json!(["It is good", { "answer_matches": "done" }]));
        let run = fixture.eval(&["--runs", "1", "--json"], grades);
        assert_eq!(run.code, Some(1), "{grades}: {}", run.stdout);
        let grading = fixture.json(&format!("{RUN}/grading.json"));
        let result = &grading["expectations"][0];
        assert_eq!(
            (&result["passed"], &result["ungraded"]),
            (&json!(false), &json!(true)),
            "{grades}: {result}"
        );
        assert!(result["evidence"].as_str().unwrap().contains(why), "{grades}: {result}");
        let summary = json!({ "passed": 1, "failed": 1, "total": 2, "pass_rate": 0.5, "ungraded": 1 });
        assert_eq!(grading["summary"], summary, "{grades}");
        assert_eq!(fixture.json(&format!("{RUN}/run.json"))["status"], "ungraded", "{grades}");
    }
}

fn without_a_grader_prose_assertions_do_not_count() {
    let fixture = task("with load demo; say done", json!(["It is good", { "answer_matches": "done" }]));
    let run = fixture.eval(&["--runs", "1", "--json", "--no-grader"], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let grading = fixture.json(&format!("{RUN}/grading.json"));
    assert_eq!(grading["expectations"][0]["passed"], false);
    assert_eq!(
        grading["summary"],
        json!({ "passed": 1, "failed": 0, "total": 1, "pass_rate": 1.0, "ungraded": 1 })
    );
}

fn refused_permissions_are_reported() {
    for (flags, granted) in [
        (&["--allow", "edits"][..], true),
        (&["--allow", "all"][..], true),
        (&["--allow", "commands"][..], false),
        (&[][..], false),
    ] {
        let fixture = task("with load demo; ask edit made.txt", json!([{ "file_exists": "made.txt" }]));
        let run = fixture.eval(&[&["--runs", "1", "--json"], flags].concat(), "pass");
        assert_eq!(run.code, Some(i32::from(!granted)), "{flags:?}");
        let made = fixture.json(&format!("{RUN}/run.json"));
        assert_eq!(made["permissions"][0]["granted"], granted, "{flags:?}");
        assert_eq!(run.stderr.contains("1 permissions refused"), !granted, "{}", run.stderr);
        let line = if granted { "Permission granted: edit" } else { "Permission refused: edit" };
        assert!(fixture.text(&format!("{RUN}/transcript.md")).contains(line));
    }
}

fn edits_outside_are_always_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("made.txt");
    for path in [target.to_str().unwrap(), "../made.txt"] {
        let prompt = format!("with load demo; ask edit {path}; ask delete {path}");
        let fixture = task(&prompt, json!([{ "answer_matches": "The answer was no" }]));
        let run = fixture.eval(&["--runs", "1", "--json", "--allow", "all"], "pass");
        assert_eq!(run.code, Some(0), "{}", run.stdout);
        let requests = fixture.json(&format!("{RUN}/run.json"))["permissions"].clone();
        assert_eq!(requests.as_array().unwrap().len(), 2);
        assert!(requests[0]["why"].as_str().unwrap().contains("outside the run directory"), "{requests}");
        assert!(!target.exists());
    }
}

fn an_unrequested_edit_outside_fails_the_run() {
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("made.txt");
    let fixture = task(
        &format!("with load demo; with edit {}; say done", target.display()),
        json!([{ "answer_matches": "done" }]),
    );
    let run = fixture.eval(&["--runs", "1", "--json"], "pass");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    let made = fixture.json(&format!("{RUN}/run.json"));
    assert_eq!((&made["status"], &made["outside"]), (&json!("failed"), &json!([target])));
}

fn runs_without_the_skill_are_not_activated() {
    let evals = json!([
        { "id": 1, "name": "it", "prompt": "say bad", "assertions": [{ "answer_matches": "good" }] },
        { "id": 2, "name": "that", "prompt": "with load demo; say bad", "assertions": [{ "answer_matches": "good" }] },
        { "id": 3, "name": "never", "prompt": "with load demo; say good", "should_trigger": false, "assertions": [{ "answer_matches": "good" }] },
    ]);
    let fixture = Fixture::new(&json!([]), &evals);
    let run = fixture.eval(&["--runs", "1", "--json"], "pass");
    assert_eq!(run.code, Some(1));
    let status = |case: &str| {
        fixture.json(&format!("iteration-1/eval-{case}/with_skill/run-1/run.json"))["status"].clone()
    };
    assert_eq!([status("it"), status("that"), status("never")], ["not_activated", "failed", "failed"]);
    let notes = fixture.json("iteration-1/benchmark.json")["notes"].to_string();
    assert!(notes.contains("it: the skill was not loaded in 1 of 1 runs"), "{notes}");
}

fn a_crash_keeps_other_results() {
    let evals = json!([
        { "id": 1, "name": "it", "prompt": "with load demo; say good; crash", "assertions": [{ "answer_matches": "good" }] },
        { "id": 2, "name": "that", "prompt": "with load demo; say good", "assertions": [{ "answer_matches": "good" }] },
    ]);
    let fixture = Fixture::new(&json!([]), &evals);
    let run = fixture.eval(&["--runs", "1", "--retries", "0"], "pass");
    assert_eq!(run.code, Some(1));
    let made = fixture.json(&format!("{RUN}/run.json"));
    assert_eq!(
        (&made["status"], &made["end"]),
        (&json!("error"), &json!({ "how": "crashed", "why": "exited with code 3" }))
    );
    assert!(made["stderr"].as_str().unwrap().contains("boom"));
    assert!(fixture.text(&format!("{RUN}/transcript.md")).contains("good"));
    // Other tools would count these files as a failed run.
    for file in ["grading.json", "timing.json"] {
        assert!(!fixture.path(&format!("results/{RUN}/{file}")).exists(), "{file}");
    }
    assert_eq!(fixture.json("iteration-1/eval-that/with_skill/run-1/run.json")["status"], "passed");
    assert!(run.stdout.contains("The agent failed in 2 runs (2 crashed)"), "{}", run.stdout);
    let benchmark = fixture.json("iteration-1/benchmark.json");
    let names: Vec<_> = benchmark["runs"].as_array().unwrap().iter().map(|run| &run["eval_name"]).collect();
    assert_eq!(names, ["that", "that"]);
    assert_eq!(benchmark["run_summary"]["with_skill"]["pass_rate"]["mean"], 1.0);
    assert_eq!(benchmark["runs"][0]["result"]["tokens"], Value::Null);
}

fn a_difference_needs_evidence() {
    let tasks = |count: usize| -> Value {
        let good = json!([{ "answer_matches": "good" }]);
        (1..=count)
            .map(|id| json!({ "id": id, "prompt": "with load demo; with say good", "assertions": good }))
            .collect()
    };
    for (count, shown) in [(1, false), (2, false), (4, true)] {
        let fixture = Fixture::new(&json!([]), &tasks(count));
        let run = fixture.eval(&["--runs", "3", "--jobs", "4"], "pass");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let line =
            if shown { "Better with the skill: +100 points" } else { "No difference shown: +100 points" };
        assert!(run.stdout.contains(line), "{count}: {}", run.stdout);
        let delta = &fixture.json("iteration-1/benchmark.json")["run_summary"]["delta"];
        assert_eq!((&delta["pass_rate"], delta["effect"] == "better"), (&json!(1.0), shown), "{delta}");
        assert_eq!(delta["pass_rate_interval"].is_array(), count > 1, "{delta}");
    }
}

fn the_baseline_can_be_an_older_version() {
    let fixture = task("load demo; say done", json!([{ "answer_matches": "done" }]));
    fixture.write_skill("old/demo", "Did demos.");
    let old = fixture.path("old/demo");
    let run = fixture.eval(&["--runs", "1", "--json", "--baseline", old.to_str().unwrap()], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(fixture.json("iteration-1/eval-it/old_skill/run-1/run.json")["triggered"], true);
    let benchmark = fixture.json("iteration-1/benchmark.json");
    // This is the only name that viewers of this format know. The metadata shows which configuration was used.
    assert_eq!(benchmark["runs"][1]["configuration"], "without_skill");
    assert_eq!(benchmark["metadata"]["baseline"], "old_skill");
}

fn commands_of_assertions_need_permission() {
    let assertion = json!({ "command": [super::fixture::this(), "--list"], "exit": 0 });
    for (flags, code, word) in
        [(&[][..], 1, "--allow checks"), (&["--allow", "checks"][..], 0, "exited with code 0")]
    {
        let fixture = task("with load demo; say done", json!([assertion.clone()]));
        let run = fixture.eval(&[&["--runs", "1", "--json"], flags].concat(), "pass");
        assert_eq!(run.code, Some(code), "{}", run.stdout);
        let grading = fixture.json(&format!("{RUN}/grading.json"));
        assert!(grading["expectations"][0]["evidence"].as_str().unwrap().contains(word), "{grading}");
    }
}
