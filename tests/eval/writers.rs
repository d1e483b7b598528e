//! Descriptions and cases that an agent writes.

use std::{fs, process::Command};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    agent,
    fixture::{Fixture, Run, program, repository, this},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("writers::the_sample_skill_is_improved", the_sample_skill_is_improved),
        trial("writers::the_best_description_is_written", the_best_description_is_written),
        trial("writers::held_out_queries_are_never_shown", held_out_queries_are_never_shown),
        trial("writers::rounds_and_turns_are_limited", rounds_and_turns_are_limited),
        trial("writers::a_dry_run_counts_turns", a_dry_run_counts_turns),
        #[cfg(unix)]
        trial("writers::the_question_can_be_interrupted", the_question_can_be_interrupted),
        trial("writers::an_invalid_answer_changes_nothing", an_invalid_answer_changes_nothing),
        trial("writers::drafted_cases_are_marked", drafted_cases_are_marked),
        trial("writers::existing_cases_are_kept", existing_cases_are_kept),
    ]
}

/// Returns a skill whose description shares a word with only some of the queries that should load it.
fn poor() -> Fixture {
    let query = |text: &str, should: bool| json!({ "query": text, "should_trigger": should });
    let queries = json!([
        query("Find the defects in parser.ts", true),
        query("Find defects in my function", true),
        query("Are there defects somewhere", true),
        query("Look for defects", true),
        query("Any defects left", true),
        query("Cook some dinner", false),
        query("Tell me a joke", false),
        query("Write a poem", false),
        query("Play chess", false),
        query("Sing along", false),
    ]);
    let fixture = Fixture::new(&queries, &json!([]));
    fixture.write_skill("demo", "Checks quality.");
    fixture
}

/// Runs `eval improve` on the built-in agent.
fn improve(fixture: &Fixture, flags: &[&str]) -> Run {
    let mut command = program();
    command
        .args(["eval", "improve"])
        .arg(fixture.path("demo"))
        .arg("--workspace")
        .arg(fixture.path("results"));
    Run::of(command.args(["--runs", "1", "--jobs", "4"]).args(flags).stdin(std::process::Stdio::null()))
}

fn copied_sample() -> (tempfile::TempDir, std::path::PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let skill = root.path().join("code-review");
    fs::create_dir_all(skill.join("evals")).unwrap();
    let sample = repository().join("examples/skills/code-review");
    for file in ["SKILL.md", "evals/eval_queries.json"] {
        fs::copy(sample.join(file), skill.join(file)).unwrap();
    }
    (root, skill)
}

fn the_sample_skill_is_improved() {
    let (root, skill) = copied_sample();
    let before = fs::read_to_string(skill.join("SKILL.md")).unwrap();
    let mut command = program();
    command
        .args(["eval", "improve"])
        .arg(&skill)
        .args(["--runs", "1", "--jobs", "2", "--rounds", "1", "--json"]);
    let run = Run::of(&mut command);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let rounds = run.json()["rounds"].clone();
    assert!(rounds.as_array().unwrap().len() > 1, "{rounds}");
    assert!(rounds[1]["train"].as_f64() > rounds[0]["train"].as_f64(), "{rounds}");
    // Without a confirmation, nothing is written.
    assert_eq!(fs::read_to_string(skill.join("SKILL.md")).unwrap(), before);
    assert!(root.path().join("code-review-workspace/iteration-2/triggers.json").exists());
}

fn the_best_description_is_written() {
    let fixture = poor();
    let before = fs::read_to_string(fixture.path("demo/SKILL.md")).unwrap();
    let asked = improve(&fixture, &[]);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    assert!(asked.stdout.contains("- Checks quality.\n+ Checks quality. Use it for: "), "{}", asked.stdout);
    assert_eq!(fs::read_to_string(fixture.path("demo/SKILL.md")).unwrap(), before);
    let run = improve(&fixture, &["--yes"]);
    assert!(run.stdout.contains("Wrote the description of demo."), "{} {}", run.stdout, run.stderr);
    let after = fs::read_to_string(fixture.path("demo/SKILL.md")).unwrap();
    assert!(after.contains("Use it for: "), "{after}");
    assert_eq!(after.split_once("\n---\n").unwrap().1, before.split_once("\n---\n").unwrap().1);
    assert!(fixture.path("demo/evals/eval_queries.json").exists());
    let again = improve(&fixture, &["--json"]).json();
    assert_eq!((&again["stopped"], &again["best"]), (&json!("no_failures"), &json!(0)), "{again}");
}

/// The scripted agent as the writer logs each prompt.
fn writer(fixture: &Fixture, answer: &str) -> String {
    let log = fixture.path("prompts");
    format!("'{}' {} 'writer:{}:{answer}'", this().display(), agent::ARGUMENT, log.display())
}

fn held_out_queries_are_never_shown() {
    let fixture = poor();
    let run =
        improve(&fixture, &["--rounds", "2", "--json", "--writer", &writer(&fixture, "Finds defects.")]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let result = run.json();
    assert_eq!(result["rounds"][1]["description"], "Finds defects.", "{result}");
    assert_eq!(result["rounds"][1]["validation"], 1.0, "{result}");
    let prompts = fs::read_to_string(fixture.path("prompts")).unwrap();
    let shown = fixture.json("iteration-1/triggers.json")["results"].clone();
    let shown: Vec<_> = shown.as_array().unwrap().iter().map(|result| result["query"].clone()).collect();
    let all: Value =
        serde_json::from_str(&fs::read_to_string(fixture.path("demo/evals/eval_queries.json")).unwrap())
            .unwrap();
    let held_out = all.as_array().unwrap().iter().map(|query| &query["query"]);
    let held_out: Vec<_> = held_out.filter(|query| !shown.contains(query)).collect();
    assert_eq!(held_out.len(), 4, "{held_out:?}");
    for query in held_out {
        assert!(!prompts.contains(query.as_str().unwrap()), "{query}");
        assert!(
            !run.stdout.contains(query.as_str().unwrap()) && !run.stderr.contains(query.as_str().unwrap())
        );
    }
    assert!(prompts.contains("Checks quality."), "{prompts}");
}

fn rounds_and_turns_are_limited() {
    let fixture = poor();
    let useless = writer(&fixture, "Something else COUNT.");
    let run = improve(&fixture, &["--rounds", "2", "--json", "--writer", &useless]).json();
    assert_eq!((&run["stopped"], &run["best"]), (&json!("rounds"), &json!(0)), "{run}");
    assert_eq!(run["rounds"].as_array().unwrap().len(), 3);
    assert_eq!(run["turns"], 3 * 10 + 2);
    let run =
        improve(&fixture, &["--rounds", "5", "--max-turns", "25", "--json", "--writer", &useless]).json();
    assert_eq!((&run["stopped"], &run["turns"]), (&json!("max_turns"), &json!(21)), "{run}");
    let run =
        improve(&fixture, &["--max-cost", "0.5", "--json", "--writer", &writer(&fixture, "COST COUNT.")])
            .json();
    assert_eq!((&run["stopped"], &run["costs"]["USD"]), (&json!("max_cost"), &json!(0.5)), "{run}");
    let run =
        improve(&fixture, &["--rounds", "5", "--json", "--writer", &writer(&fixture, "Something else.")]);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert_eq!(
        (&run.json()["stopped"], run.json()["rounds"].as_array().map(Vec::len)),
        (&json!("repeated"), Some(2))
    );
    let dry = improve(&fixture, &["--dry-run"]);
    assert!(dry.stdout.contains("10 queries, at most 3 rounds and 46 turns"), "{}", dry.stdout);
}

fn an_invalid_answer_changes_nothing() {
    let fixture = poor();
    let before = fs::read_to_string(fixture.path("demo/SKILL.md")).unwrap();
    for (answer, why) in
        [("<b>", "contains `<`"), ("Checks quality.", "already tried"), ("LONG", "the limit is 1024")]
    {
        let run = improve(&fixture, &["--yes", "--writer", &writer(&fixture, answer)]);
        assert_eq!(run.code, Some(1), "{} {}", run.stdout, run.stderr);
        assert!(run.stdout.contains(why), "{why}: {}", run.stdout);
        assert_eq!(fs::read_to_string(fixture.path("demo/SKILL.md")).unwrap(), before);
    }
    // The description of a skill with unusual frontmatter can't be replaced, which is found out before the first run.
    fixture.write("demo/SKILL.md", "---\n{name: demo, description: Checks quality.}\n---\n\nDo it.\n");
    let run = improve(&fixture, &["--yes"]);
    assert_eq!(run.code, Some(2), "{}", run.stdout);
    assert!(run.stderr.contains("cannot replace the description"), "{}", run.stderr);
    let fixture = Fixture::new(&json!([{ "query": "say a", "should_trigger": true }]), &json!([]));
    let run = improve(&fixture, &[]);
    assert_eq!(run.code, Some(2), "{}", run.stdout);
    assert!(run.stderr.contains("too few queries"), "{}", run.stderr);
}

fn cases(fixture: &Fixture) -> Run {
    let mut command: Command = program();
    Run::of(command.args(["eval", "cases"]).arg(fixture.path("demo")))
}

fn drafted_cases_are_marked() {
    let fixture = Fixture::new(&json!([]), &json!([]));
    fixture.write_skill("demo", "Reviews source code for bugs.");
    let run = cases(&fixture);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.contains("Drafted 4 queries in ") && run.stdout.contains("remove its `drafted` key"),
        "{}",
        run.stdout
    );
    for file in ["evals/eval_queries.json", "evals/evals.json"] {
        let text = fs::read_to_string(fixture.path("demo").join(file)).unwrap();
        assert!(text.contains("\"drafted\": true"), "{text}");
    }
    let mut command = program();
    command.args(["eval"]).arg(fixture.path("demo")).arg("--workspace").arg(fixture.path("results"));
    let run = Run::of(command.args(["--runs", "1"]));
    assert!(run.stdout.contains("5 cases drafted by an agent"), "{} {}", run.stdout, run.stderr);
}

fn existing_cases_are_kept() {
    let fixture = Fixture::new(&json!([{ "query": "say a", "should_trigger": true }]), &json!([]));
    fixture.write_skill("demo", "Reviews source code for bugs.");
    let before = fs::read_to_string(fixture.path("demo/evals/eval_queries.json")).unwrap();
    let run = cases(&fixture);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("Kept ") && run.stdout.contains("Drafted 1 task in "), "{}", run.stdout);
    assert_eq!(fs::read_to_string(fixture.path("demo/evals/eval_queries.json")).unwrap(), before);
    let again = cases(&fixture);
    assert_eq!(again.code, Some(2), "{}", again.stdout);
    assert!(again.stderr.contains("already has cases"), "{}", again.stderr);
}

/// The handlers for signals are installed during the rounds, and must not swallow an interrupt at the question.
#[cfg(unix)]
fn the_question_can_be_interrupted() {
    use std::{io::Read, process::Stdio};

    let fixture = poor();
    let mut command = program();
    command.args(["eval", "improve", "--runs", "1", "--jobs", "4", "--workspace"]);
    command.arg(fixture.path("results")).arg(fixture.path("demo"));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    // The end of the input would be an answer.
    let stdin = child.stdin.take();
    let mut text = Vec::new();
    while !text.ends_with(b"[y/N] ") {
        let mut byte = [0];
        stderr.read_exact(&mut byte).unwrap();
        text.extend(byte);
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdin);
}

fn a_dry_run_counts_turns() {
    let fixture = poor();
    let run = improve(&fixture, &["--dry-run", "--json", "--max-turns", "3"]);
    assert_eq!(run.json()["turns"], 3, "{}", run.stderr);
    assert!(!fixture.path("results").exists());
}
