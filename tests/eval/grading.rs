//! Weights and scores of assertions, two graders, tasks with several turns, costs and latency.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{agent, fixture::Fixture, fixture::this, trial};

const RUN: &str = "iteration-1/eval-it/with_skill/run-1";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("grading::weights_and_scores_count", weights_and_scores_count),
        trial("grading::a_second_grader_shows_the_agreement", a_second_grader_shows_the_agreement),
        trial("grading::a_task_can_have_several_turns", a_task_can_have_several_turns),
        trial("grading::costs_and_latency_are_reported", costs_and_latency_are_reported),
        trial("grading::drafted_cases_are_marked", drafted_cases_are_marked),
        #[cfg(unix)]
        trial("grading::an_interrupt_ends_a_check", an_interrupt_ends_a_check),
    ]
}

fn task(case: &Value) -> Fixture {
    let mut case = case.clone();
    case["id"] = json!(1);
    case["name"] = json!("it");
    Fixture::new(&json!([]), &json!([case]))
}

/// The remaining checks are not started, and no process of the check is left.
#[cfg(unix)]
fn an_interrupt_ends_a_check() {
    use std::{io::Read, process::Stdio};
    // The paths are known before the tasks.
    let fixture = Fixture::new(&json!([]), &json!([]));
    let (fifo, later) = (fixture.path("fifo"), fixture.path("later"));
    let holds = format!("exec 3>'{}'; sleep 60 & wait", fifo.display());
    let checks = [holds, format!("touch '{}'", later.display())];
    let checks = checks.map(|script| json!({ "command": ["sh", "-c", script] }));
    let task = json!({ "id": 1, "name": "it", "prompt": "say done", "assertions": checks });
    fixture.write("demo/evals/evals.json", &json!({ "skill_name": "demo", "evals": [task] }).to_string());
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = fixture.command(&["--runs", "1", "--allow", "checks"], "pass");
    let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    // Waits for the check.
    let mut held = std::fs::File::open(&fifo).unwrap();
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(held.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!later.exists());
}

fn weights_and_scores_count() {
    let done = json!({ "answer_matches": "done", "weight": 3 });
    let missing = json!({ "file_exists": "missing.txt" });
    let partial = json!({ "text": "It is good.", "partial": true, "weight": 2 });
    for (assertions, rate) in [
        (json!([done, missing]), 0.75),
        (json!([partial]), 0.25),
        // The score counts only if the assertion asks for it.
        (json!([{ "text": "It is good.", "weight": 2 }]), 0.0),
        (json!([partial, { "answer_matches": "done", "weight": 6 }]), 0.8125),
    ] {
        let fixture = task(&json!({ "prompt": "with load demo; say done", "assertions": assertions }));
        let run = fixture.eval(&["--runs", "1", "--json"], "score");
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let grading = fixture.json(&format!("{RUN}/grading.json"));
        assert_eq!(grading["summary"]["pass_rate"], rate, "{grading}");
        let result = &run.json()["agents"][0]["benchmark"]["runs"][0]["result"];
        assert_eq!(result["pass_rate"], rate, "{result}");
    }
    for weight in [json!(0), json!(-1), json!("2")] {
        let fixture = task(&json!({ "prompt": "x", "assertions": [{ "text": "y", "weight": weight }] }));
        let run = fixture.eval(&[], "pass");
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains("`weight` must be a number above 0"), "{}", run.stderr);
    }
}

fn a_second_grader_shows_the_agreement() {
    let fixture =
        task(&json!({ "prompt": "with load demo; say done", "assertions": ["It is done", "It is good"] }));
    let strict = format!("'{}' {} strict", this().display(), agent::ARGUMENT);
    let run = fixture.eval(&["--runs", "1", "--second-grader", &strict], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("the graders agree about 0 of 4 sentences (kappa 0.00)"), "{}", run.stdout);
    assert!(run.stdout.contains("The agent graded its own work"), "{}", run.stdout);
    let agreement = &fixture.json("iteration-1/benchmark.json")["agreement"];
    assert_eq!((&agreement["graded"], &agreement["agreed"]), (&json!(4), &json!(0)), "{agreement}");
    let grades = &fixture.json(&format!("{RUN}/grading.json"))["expectations"];
    assert_eq!((&grades[0]["passed"], &grades[0]["second"]), (&json!(true), &json!(false)), "{grades}");
    let plan = fixture.eval(&["--runs", "1", "--second-grader", &strict, "--dry-run", "--json"], "pass");
    assert_eq!((&plan.json()["runs"], &plan.json()["turns"]), (&json!(2), &json!(6)));
    let run = fixture.eval(&["--runs", "1", "--grader", &strict, "--json"], "pass");
    assert!(!run.stdout.contains("agreement"), "{}", run.stdout);
}

fn a_task_can_have_several_turns() {
    let assertions = json!([{ "answer_matches": "one[^a-z]*two" }, { "file_exists": "b.txt" }]);
    let fixture = task(&json!({
        "prompt": "with load demo; say one; write a.txt x",
        "turns": ["say two", "write b.txt y"],
        "assertions": assertions,
    }));
    let run = fixture.eval(&["--runs", "1"], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    let transcript = fixture.text(&format!("{RUN}/transcript.md"));
    assert_eq!(transcript.matches("## User").count(), 3, "{transcript}");
    let plan = fixture.eval(&["--runs", "1", "--dry-run", "--json"], "pass").json();
    assert_eq!((&plan["runs"], &plan["turns"]), (&json!(2), &json!(6)));
    // A turn that ends early ends the run.
    let fixture = task(&json!({ "turns": ["say one; stop refusal", "say two"], "assertions": [] }));
    let run = fixture.eval(&["--runs", "1", "--retries", "0"], "pass");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(!fixture.text(&format!("{RUN}/transcript.md")).contains("say two"));
}

fn costs_and_latency_are_reported() {
    let fixture = task(&json!({
        "turns": ["with load demo; say one; cost 0.25", "cost 0.5"],
        "assertions": [{ "answer_matches": "one" }],
    }));
    let run = fixture.eval(&["--runs", "2"], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    // The agent reports the costs of the session, so those of its turns are not added up.
    assert!(run.stdout.contains("USD 2.00 in all"), "{}", run.stdout);
    assert!(run.stdout.contains("first answer after "), "{}", run.stdout);
    let summary = &fixture.json("iteration-1/benchmark.json")["run_summary"]["with_skill"];
    assert_eq!(summary["cost"]["mean"], 0.5, "{summary}");
    assert!(summary["latency_seconds"]["mean"].is_f64(), "{summary}");
    let run = fixture.json(&format!("{RUN}/run.json"));
    assert_eq!(run["cost"], json!({ "amount": 0.5, "currency": "USD" }));
    assert!(run["latency_ms"].as_u64().unwrap() <= run["duration_ms"].as_u64().unwrap());
}

fn drafted_cases_are_marked() {
    let queries = json!([
        { "query": "load demo; hang", "should_trigger": true, "drafted": true },
        { "query": "say no", "should_trigger": false },
    ]);
    let run = Fixture::new(&queries, &json!([])).eval(&["--runs", "1"], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("1 case drafted by an agent"), "{}", run.stdout);
}
