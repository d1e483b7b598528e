//! Several models of an agent, parts of an evaluation that are merged, and the trend over iterations.

use std::{fs, path::PathBuf};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    agent,
    fixture::{Fixture, Run, program, this},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("scale::models_are_set_and_compared", models_are_set_and_compared),
        trial("scale::styles_of_the_catalog_are_compared", styles_of_the_catalog_are_compared),
        trial("scale::a_hint_helps_an_agent_that_follows_it", a_hint_helps_an_agent_that_follows_it),
        trial("scale::a_model_that_is_not_offered_is_named", a_model_that_is_not_offered_is_named),
        trial("scale::merged_parts_equal_the_whole", merged_parts_equal_the_whole),
        trial("scale::parts_must_fit_together", parts_must_fit_together),
        trial("scale::the_trend_shows_all_iterations", the_trend_shows_all_iterations),
        trial("scale::an_iteration_can_be_the_baseline", an_iteration_can_be_the_baseline),
    ]
}

fn cases() -> Fixture {
    let queries = json!([
        { "query": "load demo; hang", "should_trigger": true },
        { "query": "say yes", "should_trigger": true },
        { "query": "say no", "should_trigger": false },
    ]);
    let eval = |id: u32, file: &str| json!({ "id": id, "prompt": format!("with load demo; with write {file} x; say done"), "assertions": [{ "file_exists": "a.txt" }, "It is done"] });
    Fixture::new(&queries, &json!([eval(1, "a.txt"), eval(2, "b.txt")]))
}

fn models_are_set_and_compared() {
    let eval = json!({ "id": 1, "name": "it", "prompt": "with load demo; model", "assertions": [{ "answer_matches": "other-model" }] });
    let fixture = Fixture::new(&json!([]), &json!([eval]));
    let scripted = format!("'{}' {} pass", this().display(), agent::ARGUMENT);
    let mut command = program();
    command.arg("eval").arg(fixture.path("demo")).arg("--workspace").arg(fixture.path("results"));
    command.args(["--runs", "1", "--agent", &format!("a={scripted}"), "--agent", &format!("b={scripted}")]);
    let run = Run::of(command.args(["--models", "a=other,scripted-model"]));
    assert_eq!(run.code, Some(1), "{} {}", run.stdout, run.stderr);
    let benchmark = |agent: &str| fixture.json(&format!("iteration-1/{agent}/benchmark.json"));
    for (agent, model, rate) in [
        ("a-other", "other-model", 1.0),
        ("a-scripted-model", "scripted-model", 0.0),
        ("b", "scripted-model", 0.0),
    ] {
        let benchmark = benchmark(agent);
        assert_eq!(benchmark["metadata"]["executor_model"], model, "{agent}");
        assert_eq!(benchmark["run_summary"]["with_skill"]["pass_rate"]["mean"], rate, "{agent}");
    }
    assert_eq!(fixture.json("iteration-1/comparison.json")["agents"].as_array().unwrap().len(), 3);
}

/// Returns the number of runs in which each agent loaded the skill.
fn loaded(report: &Value) -> Vec<(&str, u64)> {
    let agents = report["agents"].as_array().expect("agents").iter();
    let row = |agent: &'_ Value| agent["triggers"]["results"][0]["triggers"].as_u64().expect("a number");
    agents.map(|agent| (agent["name"].as_str().expect("a name"), row(agent))).collect()
}

fn styles_of_the_catalog_are_compared() {
    let query = "if you must call `activate_skill` then demo; say done";
    let fixture = Fixture::new(&json!([{ "query": query, "should_trigger": true }]), &json!([]));
    let run = fixture.eval(&["--runs", "2", "--compare-styles", "--json"], "pass");
    let report = run.json();
    let found: Vec<_> =
        loaded(&report).into_iter().map(|(name, rate)| (name.rsplit('-').next(), rate)).collect();
    assert_eq!(found, [(Some("list"), 0), (Some("imperative"), 2), (Some("grouped"), 0)], "{report}");
}

fn a_hint_helps_an_agent_that_follows_it() {
    let query = "if Skill `demo` may fit this task. then demo; say merge invoices into ledgers";
    let fixture = Fixture::new(&json!([{ "query": query, "should_trigger": true }]), &json!([]));
    fixture.write_skill("demo", "Merges invoices into ledgers. Use for bookkeeping.");
    for (flags, rate) in [(&["--runs", "2", "--json"][..], 0), (&["--runs", "2", "--json", "--hint"], 2)] {
        let run = fixture.eval(flags, "pass");
        let report = run.json();
        assert_eq!(loaded(&report)[0].1, rate, "{flags:?} {report}");
    }
}

fn a_model_that_is_not_offered_is_named() {
    let fixture = Fixture::new(&json!([{ "query": "say a", "should_trigger": false }]), &json!([]));
    let run = fixture.eval(&["--runs", "1", "--models", "opus", "--json"], "pass");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    let outcome =
        fs::read_to_string(fixture.path("results/iteration-1/triggers/query-01/with_skill/run-1/run.json"));
    let why = "does not offer the model `opus`: choose one of scripted-model, other-model";
    assert!(outcome.unwrap().contains(why));
    let mut command = program();
    command.arg("eval").arg(fixture.path("demo")).args(["--models", "opus", "--dry-run"]);
    let run = Run::of(&mut command);
    assert_eq!(run.code, Some(2), "{}", run.stdout);
    assert!(run.stderr.contains("--models needs an agent"), "{}", run.stderr);
}

/// Returns a result without what differs from run to run.
fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Object(object) => {
            object.retain(|key, _| {
                ![
                    "time_seconds",
                    "latency_seconds",
                    "latency",
                    "timestamp",
                    "workspace",
                    "skill_path",
                    "notes",
                    "delta",
                ]
                .contains(&key.as_str())
            });
            for member in object.values_mut() {
                *member = timeless(member.take());
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = timeless(item.take());
            }
        }
        _ => {}
    }
    value
}

/// Makes a part of the runs. Returns its workspace.
fn part(fixture: &Fixture, shard: &str, flags: &[&str]) -> PathBuf {
    let workspace = fixture.path(&format!("parts/{}", shard.replace('/', "-")));
    let mut command = program();
    command.arg("eval").arg(fixture.path("demo")).args(["--runs", "2", "--jobs", "2", "--shard", shard]);
    command.args(flags).arg("--workspace").arg(&workspace);
    let run = Run::of(command.arg("--").arg(this()).args([agent::ARGUMENT, "pass"]));
    assert_eq!(run.code, Some(0), "{} {}", run.stdout, run.stderr);
    workspace
}

fn merge(fixture: &Fixture, parts: &[PathBuf]) -> Run {
    let merged = fixture.path("merged");
    Run::of(program().args(["eval", "merge", "--json", "--workspace"]).arg(merged).args(parts))
}

fn merged_parts_equal_the_whole() {
    let fixture = cases();
    let whole = fixture.eval(&["--runs", "2", "--split", "0.5", "--json"], "pass");
    let parts = ["1/3", "2/3", "3/3"].map(|shard| part(&fixture, shard, &["--split", "0.5"]));
    // The order of the parts does not matter, and a directory can contain all of them.
    let reversed: Vec<_> = parts.iter().rev().cloned().collect();
    for given in [parts.to_vec(), reversed, vec![fixture.path("parts")]] {
        let merged = merge(&fixture, &given);
        assert_eq!((merged.code, whole.code), (Some(1), Some(1)), "{}", merged.stderr);
        let [merged, whole] = [merged.json(), whole.json()].map(timeless);
        assert_eq!(merged["complete"], true);
        assert_eq!(merged["agents"], whole["agents"]);
        assert_eq!(merged["least_rate"], whole["least_rate"]);
    }
    let run = "iteration-1/eval-1/with_skill/run-2";
    for file in
        ["run.json", "transcript.md", "outputs/a.txt", "eval_metadata.json", "../../eval_metadata.json"]
    {
        assert!(fixture.path("merged").join(run).join(file).exists(), "{file}");
    }
    let missing = merge(&fixture, &parts[..2]);
    assert_eq!((missing.code, &missing.json()["complete"]), (Some(1), &json!(false)));
}

fn parts_must_fit_together() {
    let fixture = cases();
    let first = part(&fixture, "1/3", &[]);
    let copy = fixture.path("copy");
    fs::create_dir(&copy).unwrap();
    fs::rename(first.join("iteration-1"), copy.join("iteration-1")).unwrap();
    let again = part(&fixture, "1/3", &[]);
    fixture.write_skill("demo", "Does something else now.");
    let other = part(&fixture, "2/3", &[]);
    let empty = fixture.path("empty");
    fs::create_dir(&empty).unwrap();
    for (parts, why) in [
        (vec![copy.clone(), again], "another part also has the run"),
        (vec![copy, other], "not the same evaluation"),
        (vec![empty], "no results found"),
        (vec![fixture.path("nowhere")], "cannot read"),
    ] {
        let run = merge(&fixture, &parts);
        assert_eq!(run.code, Some(2), "{}", run.stdout);
        assert!(run.stderr.contains(why), "{why}: {}", run.stderr);
    }
    assert!(!fixture.path("merged").exists(), "nothing is written if the parts don't fit");
    let run = fixture.eval(&["--shard", "3/2"], "pass");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("for example 2/8"), "{}", run.stderr);
}

fn the_trend_shows_all_iterations() {
    let fixture = cases();
    fixture.eval(&["--runs", "1"], "pass");
    fixture.write_skill("demo", "Does <b>other</b> demos.");
    fixture.eval(&["--runs", "1", "--only", "queries"], "pass");
    // Iterations of other tools have no setup.
    fixture.write(
        "results/iteration-3/benchmark.json",
        r#"{"run_summary": {"with_skill": {"pass_rate": {"mean": 0.5}}, "without_skill": {"pass_rate": {"mean": 0.25}}}}"#,
    );
    fixture.write("results/iteration-4/notes.md", "no results");
    let page = fixture.path("history.html");
    let history = |flags: &[&str]| {
        let mut command = program();
        command.args(["eval", "history", "--workspace"]).arg(fixture.path("results"));
        Run::of(command.args(flags))
    };
    let run = history(&["--html", page.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout.lines().filter(|line| line.contains(" %")).count(), 3, "{}", run.stdout);
    let entries = history(&["--json"]).json()["entries"].clone();
    let of = |place: usize, key: &str| entries[place][key].clone();
    assert_eq!([of(0, "iteration"), of(1, "iteration"), of(2, "iteration")], [1, 2, 3]);
    assert_eq!([of(0, "queries"), of(1, "queries")], [json!([2, 3]), json!([2, 3])]);
    assert_eq!(
        [of(0, "with_skill"), of(1, "with_skill"), of(2, "with_skill")],
        [json!(0.75), Value::Null, json!(0.5)]
    );
    assert_ne!(of(0, "skill_version"), of(1, "skill_version"));
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("<polyline class=\"trend c1\"") && !html.contains("<b>other"), "{html}");
    let mut command = program();
    let run = Run::of(command.args(["eval", "history"]).arg(fixture.path("demo")));
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no results: "), "{}", run.stderr);
}

fn an_iteration_can_be_the_baseline() {
    let fixture = cases();
    fixture.eval(&["--runs", "1"], "pass");
    fixture.write_skill("demo", "Does better demos.");
    for (number, baseline) in
        [(2, "1".to_owned()), (3, fixture.path("results/iteration-1").display().to_string())]
    {
        let run = fixture.eval(&["--runs", "1", "--baseline", &baseline, "--json"], "pass");
        let old = &run.json()["agents"][0]["triggers"]["old_skill"];
        assert_eq!(old["description"], "Does demos. Use for demos.", "{}", run.stderr);
        assert!(fixture.path(&format!("results/iteration-{number}/eval-1/old_skill/run-1")).is_dir());
    }
    let run = fixture.eval(&["--baseline", "9"], "pass");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no copy of the skill: "), "{}", run.stderr);
}
