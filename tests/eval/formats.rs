//! Files for other tools: those of other tools that are read, and those that other tools read.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    fixture::{Fixture, Run, repository},
    trial,
};

/// The variable with the directory of the skill-creator.
const SKILL_CREATOR: &str = "SKILL_CREATOR";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("formats::published_tasks_are_read", published_tasks_are_read),
        trial("formats::junit_has_a_case_for_each_query_and_task", junit_has_a_case_for_each_query_and_task),
        trial("formats::the_summary_is_added_to_the_job", the_summary_is_added_to_the_job),
        trial("formats::viewers_find_prompts_and_answers", viewers_find_prompts_and_answers),
        trial("formats::the_skill_creator_reads_the_results", the_skill_creator_reads_the_results),
    ]
}

/// Returns a skill with a query that passes, a query that fails, and a task with a partial failure.
fn mixed() -> Fixture {
    let queries = json!([
        { "query": "load demo; say <b> & \"c\"", "should_trigger": true },
        { "query": "say | no", "should_trigger": true },
    ]);
    let eval = json!({
        "id": 7,
        "name": "it",
        "prompt": "with load demo; say done; tokens 1000",
        "assertions": [{ "answer_matches": "done" }, { "file_exists": "missing.txt" }],
    });
    Fixture::new(&queries, &json!([eval]))
}

fn published_tasks_are_read() {
    let task = |id: &str, prompt: &str, skill: Value| json!({ "id": id, "question": prompt, "expected_skill": skill, "expected_script": null, "ground_truth": "It is done.", "expected_behavior": ["The agent did it"] });
    let good = task("good", "with load demo; say done", json!("demo"));
    let silent = task("silent", "say done", Value::Null);
    for file in [json!([good, silent]), json!({ "skill": "demo", "cases": [good, silent] })] {
        let fixture = Fixture::new(&json!([]), &json!([]));
        fixture.write("demo/evals/evals.json", &file.to_string());
        let run = fixture.eval(&["--runs", "1", "--json"], "pass");
        assert_eq!(run.code, Some(0), "{} {}", run.stdout, run.stderr);
        let summary = fixture.json("iteration-1/eval-good/with_skill/run-1/grading.json")["summary"].clone();
        assert_eq!((&summary["passed"], &summary["total"]), (&json!(1), &json!(1)), "{file}");
    }
}

fn junit_has_a_case_for_each_query_and_task() {
    let fixture = mixed();
    let file = fixture.path("junit.xml");
    let run = fixture.eval(&["--runs", "1", "--junit", file.to_str().unwrap()], "pass");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let xml = fs::read_to_string(&file).unwrap();
    for part in [
        "<testsuites name=\"demo\" tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\"",
        "name=\"load demo; say &lt;b&gt; &amp; &quot;c&quot; (should load)\"",
        "<failure message=\"should load, but loaded in 0 of 1 run\">",
        "<failure message=\"1 of 1 run failed\">run 1: file `missing.txt` exists",
    ] {
        assert!(xml.contains(part), "{part} is not in {xml}");
    }
    if let Some(output) = python(&["-c", "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])"], &[&file])
    {
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
}

fn the_summary_is_added_to_the_job() {
    let fixture = mixed();
    let [own, job] = ["own.md", "job.md"].map(|name| fixture.path(name));
    fs::write(&job, "# Before\n").unwrap();
    let mut command = fixture.command(&["--runs", "1", "--summary", own.to_str().unwrap()], "pass");
    let run = Run::of(command.env("GITHUB_STEP_SUMMARY", &job));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let own = fs::read_to_string(own).unwrap();
    for part in ["## Evaluation of demo", "| 1/2 |", "| say \\| no | should load, loaded in 0 of 1 run |"] {
        assert!(own.contains(part), "{part} is not in {own}");
    }
    assert_eq!(fs::read_to_string(job).unwrap(), format!("# Before\n{own}"));
}

/// The viewer shows the files in `outputs`, and the prompt in `eval_metadata.json`, whose id must be a number.
fn viewers_find_prompts_and_answers() {
    let eval = |id: Value, name: &str, prompt: &str| json!({ "id": id, "name": name, "prompt": prompt, "assertions": [{ "answer_matches": "done" }] });
    let evals = json!([
        eval(json!("a"), "one", "with load demo; say done"),
        eval(json!("b"), "two", "with load demo; write answer.md mine; say done"),
    ]);
    let fixture = Fixture::new(&json!([]), &evals);
    let run = fixture.eval(&["--runs", "1"], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for (case, number, answer) in [("one", 1, "done"), ("two", 2, "mine")] {
        let place = format!("iteration-1/eval-{case}/with_skill/run-1");
        let metadata = fixture.json(&format!("{place}/eval_metadata.json"));
        assert_eq!(metadata, fixture.json(&format!("iteration-1/eval-{case}/eval_metadata.json")));
        assert_eq!((&metadata["eval_id"], &metadata["eval_name"]), (&json!(number), &json!(case)));
        assert!(metadata["prompt"].as_str().unwrap().starts_with("with load demo"), "{metadata}");
        assert_eq!(fixture.text(&format!("{place}/outputs/answer.md")).trim(), answer);
        let outputs = &fixture.json(&format!("{place}/run.json"))["outputs"];
        assert_eq!(outputs.as_array().unwrap().len(), number - 1, "{outputs}");
    }
}

/// The skill-creator's own scripts open the results: its viewer shows prompts and answers, and its aggregate has the agent's
/// tokens and time.
fn the_skill_creator_reads_the_results() {
    let Some(creator) = env::var_os(SKILL_CREATOR).map(PathBuf::from) else {
        eprintln!("skipped: {SKILL_CREATOR} is not set to the directory of the skill-creator");
        return;
    };
    let fixture = mixed();
    fixture.eval(&["--runs", "2", "--only", "tasks"], "pass");
    let results = fixture.path("results/iteration-1");
    let [aggregate, page] = ["aggregate.json", "page.html"].map(|name| fixture.path(name));
    let script = creator.join("scripts/aggregate_benchmark.py");
    let Some(run) = python(&[], &[&script, &results, Path::new("--output"), &aggregate]) else { return };
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let found: Value = serde_json::from_str(&fs::read_to_string(&aggregate).unwrap()).unwrap();
    for configuration in ["with_skill", "without_skill"] {
        let summary = &found["run_summary"][configuration];
        assert_eq!(summary["tokens"]["mean"], 1000.0, "{found}");
        assert_eq!(summary["pass_rate"]["mean"], 0.5, "{found}");
    }
    let timing = fixture.json("iteration-1/eval-it/with_skill/run-1/timing.json");
    assert_eq!(found["runs"][0]["result"]["time_seconds"], timing["executor_duration_seconds"], "{found}");
    assert_eq!(found["metadata"]["evals_run"], json!([7]), "{found}");
    let script = creator.join("eval-viewer/generate_review.py");
    let run = python(&[], &[&script, &results, Path::new("--static"), &page]).unwrap();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let html = fs::read_to_string(&page).unwrap();
    assert!(!html.contains("(No prompt found)") && html.contains("with load demo; say done"), "no prompt");
    assert!(html.contains("\"name\": \"answer.md\", \"type\": \"text\", \"content\": \"done"), "no answer");
}

/// Runs Python 3. Returns `None` with a message if it is not installed.
fn python(flags: &[&str], arguments: &[&Path]) -> Option<Run> {
    let is_installed = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    if !is_installed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: python3 is not installed");
        return None;
    }
    Some(Run::of(Command::new("python3").args(flags).args(arguments).current_dir(repository())))
}
