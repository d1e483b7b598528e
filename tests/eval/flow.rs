//! Several agents, iterations and how to resume them, interrupts, and invalid input.

use std::fs;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    agent,
    fixture::{Fixture, Run, program, this},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    let trials = [
        trial("flow::agents_are_compared", agents_are_compared),
        trial("flow::a_dry_run_runs_nothing", a_dry_run_runs_nothing),
        trial("flow::resuming_runs_only_missing_runs", resuming_runs_only_missing_runs),
        trial("flow::each_evaluation_is_a_new_iteration", each_evaluation_is_a_new_iteration),
        trial("flow::results_are_never_skills", results_are_never_skills),
        trial("flow::fail_under_sets_the_exit_code", fail_under_sets_the_exit_code),
        trial("flow::invalid_input_fails_before_the_first_run", invalid_input_fails_before_the_first_run),
        trial("flow::a_missing_agent_fails_the_runs", a_missing_agent_fails_the_runs),
        trial(
            "flow::identical_failures_end_the_runs_of_an_agent",
            identical_failures_end_the_runs_of_an_agent,
        ),
        trial("flow::a_separate_grader", a_separate_grader),
        trial("flow::failed_runs_are_repeated", failed_runs_are_repeated),
        trial("flow::resuming_repeats_failed_runs", resuming_repeats_failed_runs),
        trial(
            "flow::an_agent_that_never_starts_stops_the_evaluation",
            an_agent_that_never_starts_stops_the_evaluation,
        ),
        #[cfg(unix)]
        trial("flow::an_interrupt_keeps_finished_runs", an_interrupt_keeps_finished_runs),
        #[cfg(target_os = "linux")]
        trial("flow::a_sandbox_confines_the_agent", a_sandbox_confines_the_agent),
    ];
    trials.into()
}

fn simple() -> Fixture {
    let queries = json!([
        { "query": "load demo; hang", "should_trigger": true },
        { "query": "say no", "should_trigger": false },
    ]);
    let eval =
        json!({ "id": 1, "name": "it", "prompt": "with load demo; say done", "assertions": ["It is done"] });
    Fixture::new(&queries, &json!([eval]))
}

/// Returns the command of the scripted agent as one string.
fn scripted(grades: &str) -> String {
    format!("'{}' {} {grades}", this().display(), agent::ARGUMENT)
}

fn agents_are_compared() {
    let fixture = simple();
    let mut command = program();
    command.arg("eval").arg(fixture.path("demo")).arg("--workspace").arg(fixture.path("results"));
    command.args(["--runs", "2", "--jobs", "4", "--agent", &format!("good={}", scripted("pass"))]);
    command.args(["--agent", &format!("bad={}", scripted("nonsense"))]);
    let run = Run::of(&mut command);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let comparison = fixture.json("iteration-1/comparison.json");
    let names: Vec<_> =
        comparison["agents"].as_array().unwrap().iter().map(|agent| agent["name"].clone()).collect();
    assert_eq!(names, ["good", "bad"]);
    assert_eq!(
        (&comparison["agents"][0]["passed"], &comparison["agents"][1]["passed"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(comparison["queries"][0]["agents"]["bad"]["pass"], true);
    assert_eq!(comparison["evals"][0]["agents"]["good"]["with_skill"]["pass_rate"]["mean"], 1.0);
    for agent in ["good", "bad"] {
        assert_eq!(
            fixture.json(&format!("iteration-1/{agent}/benchmark.json"))["runs"].as_array().unwrap().len(),
            4
        );
        assert!(
            fixture.path(&format!("results/iteration-1/{agent}/eval-it/with_skill/run-2/outputs")).is_dir()
        );
    }
    let line =
        |name: &str| run.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("good").contains("2/2") && line("bad").contains("2/2"), "{}", run.stdout);
}

fn a_dry_run_runs_nothing() {
    let fixture = simple();
    let run = fixture.eval(&["--dry-run", "--runs", "3"], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    // We expect 12 runs: 2 queries, and 1 task in 2 configurations, with 3 runs for each. Each run of the task also has a turn
    // for the grader.
    assert!(run.stdout.contains("12 runs, at most 18 turns"), "{}", run.stdout);
    assert!(!fixture.path("results").exists());
    let plan = fixture.eval(&["--dry-run", "--json", "--no-grader"], "pass").json();
    assert_eq!((&plan["runs"], &plan["turns"]), (&json!(12), &json!(12)));
}

fn resuming_runs_only_missing_runs() {
    let fixture = simple();
    assert_eq!(fixture.eval(&["--runs", "1"], "pass").code, Some(0));
    let kept = "iteration-1/triggers/query-02/with_skill/run-1/run.json";
    let lost = "iteration-1/eval-it/with_skill/run-1/run.json";
    let started = fixture.json(kept)["started"].clone();
    fs::write(fixture.path("results").join(lost), "{\"half").unwrap();
    // If a file is truncated, we should only have to repeat this run, but none of the others.
    let run = fixture.eval(&["--runs", "1", "--resume"], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("3 runs are already finished") && run.stderr.contains("1/1 passed"),
        "{}",
        run.stderr
    );
    assert_eq!(fixture.json(kept)["started"], started);
    assert_eq!(fixture.json(lost)["status"], "passed");
    for (flags, why) in [
        (&["--runs", "2"][..], "options have changed"),
        (&["--runs", "1", "--allow", "all"][..], "have changed"),
    ] {
        let run = fixture.eval(&[flags, &["--resume"]].concat(), "pass");
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains(why), "{}", run.stderr);
    }
    fixture.write("demo/references/more.md", "A reference changes results, too.");
    let run = fixture.eval(&["--runs", "1", "--resume"], "pass");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    fs::remove_dir_all(fixture.path("demo/references")).unwrap();
    assert_eq!(fixture.eval(&["--runs", "1", "--resume"], "pass").code, Some(0));
    fixture.write_skill("demo", "Does something else now.");
    let run = fixture.eval(&["--runs", "1", "--resume"], "pass");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(!fixture.path("results/iteration-2").exists());
}

fn each_evaluation_is_a_new_iteration() {
    let fixture = simple();
    for number in 1..=2 {
        assert_eq!(fixture.eval(&["--runs", "1", "--only", "queries"], "pass").code, Some(0));
        assert!(fixture.path(&format!("results/iteration-{number}/triggers.json")).exists());
    }
    assert_eq!(fixture.text(".gitignore"), "*\n");
}

fn results_are_never_skills() {
    let eval = json!({ "id": 1, "name": "it", "prompt": "write SKILL.md ---\nname: planted\ndescription: Planted.\n---\n\nDo.", "assertions": [] });
    let fixture = Fixture::new(&json!([{ "query": "say a", "should_trigger": false }]), &json!([eval]));
    let run = |workspace: &str| {
        let mut command = program();
        command.arg("eval").arg(fixture.path("demo")).args(["--runs", "1", "--no-grader", "--workspace"]);
        command.arg(fixture.path(workspace)).arg("--").arg(this()).args([agent::ARGUMENT, "pass"]);
        Run::of(&mut command)
    };
    // The second name is not that of a workspace, so it is recognized by its files.
    for workspace in ["skills/demo-workspace", "skills/elsewhere"] {
        run(workspace);
        let made = format!("{workspace}/iteration-1/eval-it/with_skill/run-1/outputs/SKILL.md");
        assert!(fixture.path(&made).exists(), "{made}");
    }
    fixture.write_skill("skills/other-workspace/skill-snapshot", "An older version.");
    fixture.write("skills/other-workspace/iteration-2/notes.md", "");
    fixture.write_skill("skills/my-workspace/real", "In a directory that only has a similar name.");
    let listed = Run::of(
        program()
            .args(["list", "--json", "--skills"])
            .arg(fixture.path("skills"))
            .current_dir(fixture.path("demo")),
    );
    assert!(listed.stdout.contains("real"), "{} {}", listed.stdout, listed.stderr);
    assert!(!listed.stdout.contains("planted") && !listed.stdout.contains("snapshot"), "{}", listed.stdout);
}

fn fail_under_sets_the_exit_code() {
    let queries = json!([
        { "query": "load demo; hang", "should_trigger": true },
        { "query": "say no", "should_trigger": true },
    ]);
    let fixture = Fixture::new(&queries, &json!([]));
    for (flags, code) in [(&["--fail-under", "0.5"][..], 0), (&["--fail-under", "0.6"][..], 1), (&[][..], 1)]
    {
        let run = fixture.eval(&[&["--runs", "1"], flags].concat(), "pass");
        assert_eq!(run.code, Some(code), "{flags:?} {}", run.stdout);
    }
    assert_eq!(fixture.eval(&["--fail-under", "2"], "pass").code, Some(2));
}

fn invalid_input_fails_before_the_first_run() {
    let empty = Fixture::new(&json!([]), &json!([]));
    let run = empty.eval(&[], "pass");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no cases to evaluate") && run.stderr.contains("hint: "), "{}", run.stderr);
    for (evals, message) in [
        (json!({ "evals": [{ "id": 1 }] }), "missing field `prompt`"),
        (
            json!({ "evals": [{ "id": 1, "prompt": "x", "assertions": [{ "file_exits": "x" }] }] }),
            "evals[0]: ",
        ),
        (
            json!({ "evals": [{ "id": 1, "prompt": "x", "files": ["../../etc/passwd"] }] }),
            "is outside the directory",
        ),
        (
            json!({ "evals": [{ "id": 1, "prompt": "x" }, { "id": "1", "prompt": "y" }] }),
            "duplicate case name `1`",
        ),
        (json!([]), "evals.json"),
    ] {
        empty.write("demo/evals/evals.json", &evals.to_string());
        let run = empty.eval(&[], "pass");
        assert_eq!(run.code, Some(2), "{evals}");
        assert!(run.stderr.contains(message), "{evals}: {}", run.stderr);
    }
    assert!(!empty.path("results").exists());
    let fixture = simple();
    for flags in [
        &["--agent", "nameless"][..],
        &["--agent", "a/b=true"],
        &["--agent", "a=true", "--agent", "A=true"],
        &["--agent", "a='open"],
        &["--agent", "eval-it=true"],
        &["--queries", "no-such-file.json"],
        &["--runs", "0"],
    ] {
        let mut command = program();
        command
            .arg("eval")
            .arg(fixture.path("demo"))
            .arg("--workspace")
            .arg(fixture.path("results"))
            .args(flags);
        let run = Run::of(&mut command);
        assert_eq!(run.code, Some(2), "{flags:?} {}", run.stderr);
    }
    assert!(!fixture.path("results").exists());
}

fn a_missing_agent_fails_the_runs() {
    let fixture = simple();
    let mut command = program();
    command.arg("eval").arg(fixture.path("demo")).arg("--workspace").arg(fixture.path("results"));
    let run = Run::of(command.args(["--runs", "1", "--", "no-such-agent-anywhere"]));
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("agent not found: no-such-agent-anywhere"), "{}", run.stderr);
}

/// An agent that never starts is not asked again and again. An agent that works is not affected.
fn identical_failures_end_the_runs_of_an_agent() {
    let fixture = simple();
    let works = format!("works={}", scripted("pass"));
    let flags = ["--runs", "4", "--agent", "gone=no-such-agent-anywhere", "--agent", &works, "--json"];
    let mut command = program();
    command.arg("eval").arg(fixture.path("demo")).arg("--workspace").arg(fixture.path("results"));
    let run = Run::of(command.args(flags));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let lines_of = |name: &str| run.stderr.lines().filter(|line| line.contains(&format!(" {name} "))).count();
    assert_eq!(lines_of("gone"), 5, "{}", run.stderr);
    assert!(lines_of("works") > 5, "{}", run.stderr);
    let said = "gone failed 5 times in the same way, so its other runs are skipped";
    assert_eq!(run.stderr.matches(said).count(), 1, "{}", run.stderr);
}

fn a_separate_grader() {
    let fixture = simple();
    let run = fixture.eval(&["--runs", "1", "--only", "tasks", "--grader", &scripted("pass")], "nonsense");
    assert_eq!(run.code, Some(0), "{} {}", run.stdout, run.stderr);
    let plan = fixture.eval(&["--dry-run", "--json", "--grader", "x"], "pass").json();
    let turns: Vec<_> =
        plan["agents"].as_array().unwrap().iter().map(|agent| agent["turns"].clone()).collect();
    assert_eq!(turns, [Value::from(6), Value::from(12)]);
}

/// Returns a query for which the agent crashes until it has been asked `times` times.
fn crashes_first(fixture: &Fixture, times: u32) -> Value {
    let file = fixture.path("attempts");
    json!([{ "query": format!("fail {times} {}; say fine", file.display()), "should_trigger": false }])
}

fn failed_runs_are_repeated() {
    for (retries, passes, attempts) in [("1", false, 2), ("2", true, 3)] {
        let fixture = Fixture::new(&json!([]), &json!([]));
        fixture.write("queries.json", &crashes_first(&fixture, 2).to_string());
        let queries = fixture.path("queries.json");
        let flags = ["--runs", "1", "--retries", retries, "--queries", queries.to_str().unwrap()];
        let run = fixture.eval(&flags, "pass");
        assert_eq!(run.code, Some(i32::from(!passes)), "{} {}", run.stdout, run.stderr);
        assert!(run.stderr.contains("repeating in 1 s"), "{}", run.stderr);
        let made = fixture.json("iteration-1/triggers/query-01/with_skill/run-1/run.json");
        assert_eq!(made["attempts"], attempts, "{made}");
        assert_eq!(made["status"] == "passed", passes, "{made}");
    }
}

fn resuming_repeats_failed_runs() {
    let fixture = Fixture::new(&json!([]), &json!([]));
    fixture.write("queries.json", &crashes_first(&fixture, 1).to_string());
    let queries = fixture.path("queries.json");
    let flags = ["--runs", "1", "--retries", "0", "--queries", queries.to_str().unwrap()];
    let run = fixture.eval(&flags, "pass");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("1 case has no result"), "{}", run.stdout);
    assert!(!run.stdout.contains("0/1"), "a query without a result did not fail: {}", run.stdout);
    let run = fixture.eval(&[&flags[..], &["--resume"]].concat(), "pass");
    assert_eq!(run.code, Some(0), "{} {}", run.stdout, run.stderr);
    assert!(run.stderr.contains("1/1 passed"), "{}", run.stderr);
}

fn an_agent_that_never_starts_stops_the_evaluation() {
    let queries: Value =
        (0..9).map(|number| json!({ "query": format!("say {number}"), "should_trigger": false })).collect();
    let fixture = Fixture::new(&queries, &json!([]));
    for jobs in ["1", "3"] {
        let run = fixture.eval(&["--runs", "1", "--json", "--retries", "0", "--jobs", jobs], "no-session");
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let reason = run.json()["agents"][0]["stopped"].as_str().expect("a reason").to_owned();
        assert!(reason.contains("5 times in a row") && reason.contains("not logged in"), "{reason}");
        assert!(run.stderr.contains("its other runs are skipped"), "{}", run.stderr);
        assert_eq!(run.json()["complete"], false);
    }
    // A prompt that the agent never answers is no reason to stop.
    let queries = json!([{ "query": "refuse", "should_trigger": false }, { "query": "say fine", "should_trigger": false }]);
    let fixture = Fixture::new(&queries, &json!([]));
    let report = fixture.eval(&["--runs", "6", "--json", "--retries", "0"], "pass").json();
    assert_eq!((&report["agents"][0]["stopped"], &report["complete"]), (&Value::Null, &json!(true)));
    assert_eq!(report["agents"][0]["errors"], 6);
}

#[cfg(unix)]
fn an_interrupt_keeps_finished_runs() {
    use std::{
        io::{BufRead, BufReader, Read},
        process::Stdio,
    };

    let queries = json!([
        { "query": "say first", "should_trigger": false },
        { "query": "say I am here; hang", "should_trigger": false },
        { "query": "say last", "should_trigger": false },
    ]);
    let fixture = Fixture::new(&queries, &json!([]));
    let mut command = fixture.command(&["--runs", "1", "--timeout", "300"], "pass");
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    // Wait for the first run to be finished.
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("passed"), "{line}");
    // Then wait for the second one to be started.
    let record = fixture.path("results/iteration-1/triggers/query-02/with_skill/run-1/acp.jsonl");
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while !record.exists() {
        assert!(std::time::Instant::now() < deadline, "the second run does not start");
        std::thread::yield_now();
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(130), "{rest}");
    assert!(rest.contains("interrupted") && rest.contains("--resume"), "{rest}");
    let run = |number: u8| {
        fixture.path(&format!("results/iteration-1/triggers/query-0{number}/with_skill/run-1/run.json"))
    };
    assert!(run(1).exists() && !run(2).exists() && !run(3).exists());
    // Since we've reached the end of stderr, which is shared with the agent, we know that none of its processes are running.
    let again = fixture.eval(&["--runs", "1", "--timeout", "300", "--resume", "--dry-run"], "pass");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

#[cfg(target_os = "linux")]
fn a_sandbox_confines_the_agent() {
    let works = std::process::Command::new("bwrap")
        .args(["--ro-bind", "/", "/", "--unshare-pid", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    // The sandbox has an empty `/tmp`, so the agent of this test, which is this program, must be in another place.
    let is_hidden = std::env::current_exe().is_ok_and(|program| program.starts_with("/tmp"));
    if !works || is_hidden {
        let why = if works { "this program is in /tmp" } else { "bubblewrap does not work here" };
        std::io::Write::write_all(&mut std::io::stderr(), format!("skipped: {why}\n").as_bytes()).unwrap();
        return;
    }
    let elsewhere = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let target = elsewhere.path().join("made.txt");
    let prompt = format!("with load demo; with write in.txt here; with edit {}; say done", target.display());
    let eval =
        json!({ "id": 1, "name": "it", "prompt": prompt, "assertions": [{ "file_exists": "in.txt" }] });
    let fixture = Fixture::new(&json!([]), &json!([eval]));
    let run = fixture.eval(&["--runs", "1", "--sandbox", "bwrap"], "pass");
    assert_eq!(run.code, Some(1), "{} {}", run.stdout, run.stderr);
    assert!(!target.exists());
    let made = fixture.json("iteration-1/eval-it/with_skill/run-1/run.json");
    assert_eq!((&made["outputs"], &made["status"]), (&json!(["in.txt"]), &json!("error")), "{made:#}");
}
