//! Queries: is the skill loaded when it should be, and how early does the turn end?

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{fixture::Fixture, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("triggers::tools_and_resources_load_the_skill", tools_and_resources_load_the_skill),
        trial("triggers::reading_the_file_loads_the_skill", reading_the_file_loads_the_skill),
        trial(
            "triggers::a_turn_ends_as_soon_as_its_outcome_is_known",
            a_turn_ends_as_soon_as_its_outcome_is_known,
        ),
        trial("triggers::an_agent_that_fails_is_never_right", an_agent_that_fails_is_never_right),
        trial("triggers::another_skill_is_loaded_instead", another_skill_is_loaded_instead),
        trial("triggers::an_older_version_runs_the_same_queries", an_older_version_runs_the_same_queries),
        trial("triggers::a_split_is_reproducible", a_split_is_reproducible),
        trial("triggers::nothing_of_the_held_out_part_is_shown", nothing_of_the_held_out_part_is_shown),
        trial("triggers::rates_have_intervals", rates_have_intervals),
    ]
}

fn queries(cases: &[(&str, bool)]) -> Value {
    cases.iter().map(|(query, should)| json!({ "query": query, "should_trigger": should })).collect()
}

/// Returns the results of the queries, in order.
fn results(report: &Value) -> &Vec<Value> {
    report["agents"][0]["triggers"]["results"].as_array().expect("results")
}

fn tools_and_resources_load_the_skill() {
    let fixture = Fixture::new(&json!([]), &json!([]));
    let cases = [
        ("load demo; say loaded", true, 1),
        ("resource demo; say loaded", true, 1),
        ("say I would rather not", true, 0),
        ("load nonsense; say there is none", true, 0),
        ("say no demo here", false, 0),
        ("load demo", false, 1),
    ];
    let listed: Vec<_> = cases.iter().map(|(query, should, _)| (*query, *should)).collect();
    fixture.write("demo/evals/trigger-evals.json", &queries(&listed).to_string());
    let run = fixture.eval(&["--runs", "1", "--json"], "pass");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let report = run.json();
    for ((query, should, triggers), result) in cases.iter().zip(results(&report)) {
        assert_eq!(
            (&result["triggers"], &result["errors"]),
            (&json!(triggers), &json!(0)),
            "{query}: {result}"
        );
        assert_eq!(result["pass"], (*triggers == 1) == *should, "{query}");
    }
    let summary = &report["agents"][0]["triggers"]["summary"];
    assert_eq!(
        summary["confusion"],
        json!({ "true_positives": 2, "false_positives": 1, "true_negatives": 1, "false_negatives": 2 })
    );
    assert_eq!(
        (&summary["precision"], &summary["recall"], &summary["f1"]),
        (&json!(0.6667), &json!(0.5), &json!(0.5714))
    );
    assert_eq!(
        (&summary["passed"], &summary["failed"], &summary["total"]),
        (&json!(3), &json!(3), &json!(6))
    );
}

fn reading_the_file_loads_the_skill() {
    let cases = queries(&[("file SKILL.md; hang", true), ("file LICENSE; say done", false)]);
    let fixture = Fixture::new(&cases, &json!([]));
    let run = fixture.eval(&["--runs", "1", "--json", "--mcp", "off"], "pass");
    assert_eq!(run.code, Some(0), "{} {}", run.stdout, run.stderr);
}

fn a_turn_ends_as_soon_as_its_outcome_is_known() {
    // Most of these would hang if we didn't end the turn early.
    let fixture = Fixture::new(
        &queries(&[
            ("load demo; hang", true),
            ("command; hang", false),
            ("ask edit made.txt; hang", false),
            ("say I think about it", false),
        ]),
        &json!([]),
    );
    let run = fixture.eval(&["--runs", "1", "--json", "--timeout", "8", "--jobs", "3"], "pass");
    let report = run.json();
    let ends: Vec<_> = (1..=4)
        .map(|number| {
            fixture.json(&format!("iteration-1/triggers/query-0{number}/with_skill/run-1/run.json"))
        })
        .map(|run| run["end"]["how"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ends, ["triggered", "worked_without", "worked_without", "finished"]);
    assert_eq!(run.code, Some(0), "{report:#}");
}

fn an_agent_that_fails_is_never_right() {
    // For all of these queries, it would be right not to load the skill. But if the agent has failed, we don't know what it
    // would have done, so none of them should pass.
    let fixture = Fixture::new(
        &queries(&[
            ("crash", false),
            ("refuse", false),
            ("hang", false),
            ("stop refusal", false),
            ("say I think about it; hang", false),
            ("say fine", false),
        ]),
        &json!([]),
    );
    let run =
        fixture.eval(&["--runs", "1", "--json", "--timeout", "8", "--jobs", "6", "--retries", "0"], "pass");
    assert_eq!(run.code, Some(1));
    let report = run.json();
    let passes: Vec<_> = results(&report).iter().map(|result| result["pass"].as_bool().unwrap()).collect();
    assert_eq!(passes, [false, false, false, false, false, true]);
    let agent = &report["agents"][0];
    let summary = &agent["triggers"]["summary"];
    let none =
        json!({ "true_positives": 0, "false_positives": 0, "true_negatives": 1, "false_negatives": 0 });
    assert_eq!(summary["confusion"], none, "a failure of the agent is not a result");
    assert_eq!(
        [&summary["passed"], &summary["failed"], &summary["undecided"], &summary["errors"]],
        [&json!(1), &json!(0), &json!(5), &json!(5)]
    );
    assert_eq!((&summary["accuracy"], &results(&report)[0]["trigger_rate"]), (&json!(1.0), &Value::Null));
    assert_eq!(agent["failures"], json!({ "crashed": 1, "timed_out": 2, "error": 1, "refusal": 1 }));
    let crash = fixture.json("iteration-1/triggers/query-01/with_skill/run-1/run.json");
    assert_eq!((&crash["status"], &crash["end"]["why"]), (&json!("error"), &json!("exited with code 3")));
    assert!(crash["stderr"].as_str().unwrap().contains("the disk is on fire"), "{crash}");
    assert!(run.stderr.contains("exited with code 3; stderr: boom: the disk is on fire"), "{}", run.stderr);
    let refusal = fixture.json("iteration-1/triggers/query-02/with_skill/run-1/run.json");
    assert!(refusal["end"]["why"].as_str().unwrap().contains("no credit"), "{refusal}");
}

fn another_skill_is_loaded_instead() {
    let fixture = Fixture::new(
        &queries(&[("load rival; say done", true), ("load rival; load demo; hang", true)]),
        &json!([]),
    );
    fixture.write_skill("others/rival", "Does demos too.");
    fixture.write_skill("others/demo", "The skill itself, installed elsewhere.");
    let others = fixture.path("others");
    let run = fixture.eval(&["--runs", "2", "--json", "--among", others.to_str().unwrap()], "pass");
    let report = run.json();
    let [first, second] = results(&report).as_slice() else { panic!("two results") };
    assert_eq!((&first["pass"], &first["loaded_instead"]), (&json!(false), &json!({ "rival": 2 })));
    assert_eq!((&second["pass"], &second["triggers"]), (&json!(true), &json!(2)));
}

fn an_older_version_runs_the_same_queries() {
    let fixture = Fixture::new(&queries(&[("load demo; hang", true)]), &json!([]));
    fixture.write_skill("old/demo", "Did demos.");
    let old = fixture.path("old/demo");
    let run = fixture.eval(&["--runs", "2", "--json", "--baseline", old.to_str().unwrap()], "pass");
    let triggers = &run.json()["agents"][0]["triggers"];
    assert_eq!(triggers["results"][0]["runs"], 2);
    assert_eq!(triggers["old_skill"]["results"][0]["trigger_rate"], 1.0);
    assert_eq!(triggers["old_skill"]["description"], "Did demos.");
}

fn a_split_is_reproducible() {
    let cases: Vec<_> = (0..10).map(|number| (format!("say {number}"), number < 5)).collect();
    let cases: Vec<_> = cases.iter().map(|(query, should)| (query.as_str(), *should)).collect();
    let fixture = Fixture::new(&queries(&cases), &json!([]));
    let split = |seed: &str| {
        let run =
            fixture.eval(&["--runs", "1", "--json", "--split", "0.6", "--seed", seed, "--jobs", "4"], "pass");
        let report = run.json();
        let triggers = &report["agents"][0]["triggers"];
        assert_eq!((&triggers["train"]["total"], &triggers["validation"]["total"]), (&json!(6), &json!(4)));
        let loaded = results(&report).iter().filter(|result| result["should_trigger"] == true).count();
        assert_eq!(loaded, 3);
        assert!(results(&report).iter().all(|result| result["split"] == "train"));
        results(&report).iter().map(|result| result["query"].clone()).collect::<Vec<_>>()
    };
    let first = split("1");
    assert_eq!(first, split("1"));
    assert_ne!(first, split("7"));
    assert_eq!(first.len(), 6, "only the part for tuning is listed");
}

fn nothing_of_the_held_out_part_is_shown() {
    // All of these queries fail.
    let cases: Vec<_> = (0..10).map(|number| (format!("say secret-{number}-"), true)).collect();
    let cases: Vec<_> = cases.iter().map(|(query, should)| (query.as_str(), *should)).collect();
    let fixture = Fixture::new(&queries(&cases), &json!([]));
    let page = fixture.path("page.html");
    for flags in [&["--json"][..], &["--html", page.to_str().unwrap()], &[]] {
        let run = fixture.eval(&[&["--runs", "1", "--split", "0.6", "--jobs", "4"], flags].concat(), "pass");
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert_eq!(run.stderr.matches("held out").count(), 4, "{}", run.stderr);
        let mut shown = run.stdout.clone();
        if flags.contains(&"--html") {
            shown += &std::fs::read_to_string(&page).unwrap();
        }
        let names = |text: &str| (0..10).filter(|number| text.contains(&format!("secret-{number}-"))).count();
        assert_eq!(names(&shown), 6, "{shown}");
        assert_eq!(names(&run.stderr), 0, "{}", run.stderr);
    }
    let written = fixture.json("iteration-1/triggers.json");
    assert_eq!((&written["validation"]["failed"], &written["train"]["failed"]), (&json!(4), &json!(6)));
    let transcripts = (1..=10)
        .map(|number| {
            fixture.path(&format!("results/iteration-1/triggers/query-{number:02}/with_skill/run-1"))
        })
        .filter(|run| run.join("transcript.md").exists() && run.join("acp.jsonl").exists());
    assert_eq!(transcripts.count(), 6);
}

fn rates_have_intervals() {
    let fixture = Fixture::new(&queries(&[("load demo; hang", true)]), &json!([]));
    let run = fixture.eval(&["--runs", "3", "--jobs", "3"], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert!(run.stdout.contains("100 %") && run.stdout.contains("Everything passed."), "{}", run.stdout);
    let written = fixture.json("iteration-1/triggers.json");
    let result = &written["results"][0];
    assert_eq!((&result["trigger_rate"], &result["interval"]), (&json!(1.0), &json!([0.4385, 1.0])));
    assert_eq!((&written["summary"]["k"], &written["summary"]["pass_all_k"]), (&json!(3), &json!(1.0)));
}
