//! The page, a new skill, and the whole flow on the built-in agent.

use std::{fs, process::Stdio};

use libtest_mimic::Trial;
use serde_json::json;

use super::{
    fixture::{Fixture, Run, program, repository},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("output::the_page_shows_everything_and_escapes_it", the_page_shows_everything_and_escapes_it),
        trial("output::the_page_opens_with_the_verdict", the_page_opens_with_the_verdict),
        trial("output::the_sample_skill_on_the_built_in_agent", the_sample_skill_on_the_built_in_agent),
        trial("output::results_stay_beside_the_skill", results_stay_beside_the_skill),
        #[cfg(unix)]
        trial("output::special_files_are_not_read", special_files_are_not_read),
        #[cfg(unix)]
        trial("output::an_iteration_with_links_is_not_resumed", an_iteration_with_links_is_not_resumed),
        trial("output::a_new_skill_follows_all_rules", a_new_skill_follows_all_rules),
    ]
}

fn the_page_shows_everything_and_escapes_it() {
    let evil = "<script>alert(1)</script><img src=x onerror=alert(2)>{{style}}</pre>";
    let query = json!([{ "query": format!("load demo; say {evil}"), "should_trigger": true }]);
    let eval = json!({
        "id": 1,
        "name": "it",
        "prompt": format!("with load demo; write a.txt {evil}; say {evil}"),
        "assertions": [{ "file_exists": "a.txt" }],
    });
    let fixture = Fixture::new(&query, &json!([eval]));
    let page = fixture.path("page.html");
    let run = fixture.eval(&["--runs", "2", "--html", page.to_str().unwrap()], "pass");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let html = fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("&lt;script&gt;alert(1)") && !html.contains("<script>alert") && !html.contains("<img")
    );
    assert!(html.contains("default-src 'none'; style-src 'sha256-"));
    for part in
        ["feedback.json", "data-case=\"eval-it\"", "Transcript", "a.txt", "without skill", "class=\"heat\""]
    {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(html.matches("<script>").count(), 1);
    for loaded in ["src=\"", "href=\"http", "url(", "@import"] {
        assert!(!html.contains(loaded), "{loaded}");
    }
}

/// The first section says what was measured, in a sentence, and then what to do next.
fn the_page_opens_with_the_verdict() {
    let query = |query: &str, should: bool| json!({ "query": query, "should_trigger": should });
    let loads = "load demo; say a";
    let stays = "say b";
    let all_wrong = "After a change, run the same command again";
    for (queries, expected) in [
        (
            json!([
                query(loads, true),
                query(stays, true),
                query("load demo; say c", false),
                query("say d", false)
            ]),
            &[
                "<p class=\"lead\">Loads in 1 of 2 cases where it should; loads in 1 of 2 where it should not.</p>",
                "The skill was not loaded in 1 case where it should be. Extend its description",
                "The skill was loaded in 1 case where it should not be. Narrow its description",
                all_wrong,
            ][..],
        ),
        (
            json!([query(stays, true)]),
            &["Loads in 0 of 1 case where it should.", "Extend its description", all_wrong],
        ),
        (
            json!([query(loads, true), query(stays, false)]),
            &[
                "Loads in 1 of 1 case where it should; loads in 0 of 1 where it should not.",
                "Everything passed.",
            ],
        ),
        (json!([query(stays, false)]), &["Loads in 0 of 1 case where it should not.", "Everything passed."]),
    ] {
        let fixture = Fixture::new(&queries, &json!([]));
        let page = fixture.path("page.html");
        fixture.eval(&["--runs", "3", "--html", page.to_str().unwrap()], "pass");
        let html = fs::read_to_string(&page).unwrap();
        let (_, sections) = html.split_once("</header>").unwrap();
        let (verdict, _) = sections.split_once("</section>").unwrap();
        assert!(verdict.trim_start().starts_with("<section"), "{verdict}");
        for part in expected {
            assert!(verdict.contains(part), "{part} is not in {verdict}");
        }
        assert_eq!(verdict.contains("Everything passed"), !expected.contains(&all_wrong), "{verdict}");
    }
}

fn the_sample_skill_on_the_built_in_agent() {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["eval", "examples/skills/code-review", "--runs", "1", "--jobs", "2"]).stdin(Stdio::null());
    command.arg("--workspace").arg(scratch.path().join("results")).current_dir(repository());
    let run = Run::of(&mut command);
    // Most likely, some of the cases fail, since the agent is built in and doesn't use a model.
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    for part in [
        "built-in, without a model",
        "Is the skill loaded for the right queries?",
        "Are results better with the skill?",
        "transfer",
    ] {
        assert!(run.stdout.contains(part), "{part} is not in {}", run.stdout);
    }
    assert!(!run.stdout.contains("the agent failed"), "{}", run.stdout);
    assert!(!repository().join("examples/skills/code-review-workspace").exists());
}

/// The author of a skill chooses its name, and a repository can contain links.
fn results_stay_beside_the_skill() {
    let queries = json!([{ "query": "load demo", "should_trigger": true }]);
    let absolute = std::env::temp_dir().join("acp-skills-planted");
    for name in ["../../planted", absolute.to_str().unwrap(), "a/../../planted", "..", ".agents"] {
        let fixture = Fixture::new(&queries, &json!([]));
        fixture.write("deep/skills/demo/evals/eval_queries.json", &queries.to_string());
        let text = format!("---\nname: {}\ndescription: Does demos.\n---\n\nDo it.\n", json!(name));
        fixture.write("deep/skills/demo/SKILL.md", &text);
        let eval = || {
            let mut command = program();
            command.arg("eval").arg(fixture.path("deep/skills/demo")).args(["--runs", "1"]);
            Run::of(command.stdin(Stdio::null()))
        };
        // The directory of results must not be another skill, which would get the files of this one.
        fixture.write(
            "deep/skills/demo-workspace/SKILL.md",
            "---\nname: demo-workspace\ndescription: Works.\n---\n",
        );
        let run = eval();
        assert!(
            run.code == Some(2) && run.stderr.contains("directory for results is a skill"),
            "{}",
            run.stderr
        );
        fs::remove_dir_all(fixture.path("deep/skills/demo-workspace")).unwrap();
        eval();
        assert!(fixture.path("deep/skills/demo-workspace/iteration-1").is_dir(), "{name}");
        let entries = |dir: &str| fs::read_dir(fixture.path(dir)).unwrap().count();
        assert_eq!((entries("deep"), entries("deep/skills"), entries(".")), (1, 2, 2), "{name}");
        #[cfg(unix)]
        {
            fs::remove_dir_all(fixture.path("deep/skills/demo-workspace")).unwrap();
            std::os::unix::fs::symlink("../..", fixture.path("deep/skills/demo-workspace")).unwrap();
            let run = eval();
            assert!(run.code == Some(2) && run.stderr.contains("is a symbolic link"), "{}", run.stderr);
            assert_eq!(entries("."), 2);
        }
    }
    assert!(!absolute.with_file_name("acp-skills-planted-workspace").exists());
}

/// A repository with a skill can contain the directory for its results.
#[cfg(unix)]
fn special_files_are_not_read() {
    let queries = json!([{ "query": "load demo", "should_trigger": true }]);
    let fixture = Fixture::new(&queries, &json!([]));
    assert_eq!(fixture.eval(&["--runs", "1"], "pass").code, Some(0));
    let run = "results/iteration-1/triggers/query-01/with_skill/run-1/run.json";
    for (file, flags) in [
        ("results/iteration-1/evaluation.json", ["--runs", "1", "--resume"]),
        (run, ["--runs", "1", "--resume"]),
    ] {
        let file = fixture.path(file);
        let before = fs::read(&file).unwrap();
        for (target, expected) in [
            ("/dev/zero", "not a regular file"),
            ("fifo", "not a regular file"),
            ("values", "the file has more than 524288 values"),
        ] {
            fs::remove_file(&file).unwrap();
            if target == "values" {
                fs::write(&file, format!("[{}0]", "0,".repeat(600_000))).unwrap();
            } else if target == "fifo" {
                assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
            } else {
                std::os::unix::fs::symlink(target, &file).unwrap();
            }
            let run = fixture.eval(&flags, "pass");
            assert_eq!(run.code, Some(2), "{}", run.stderr);
            assert!(run.stderr.contains(expected), "{}", run.stderr);
        }
        fs::remove_file(&file).unwrap();
        fs::write(&file, before).unwrap();
    }
}

/// Links that come with a skill must not lead the results, or the removal of incomplete ones, to other directories.
#[cfg(unix)]
fn an_iteration_with_links_is_not_resumed() {
    let queries = json!([{ "query": "load demo", "should_trigger": true }]);
    let fixture = Fixture::new(&queries, &json!([]));
    assert_eq!(fixture.eval(&["--runs", "1"], "pass").code, Some(0));
    let parts = ["iteration-1", "triggers", "query-01", "with_skill", "run-1"];
    for count in 1..=parts.len() {
        let dir = fixture.path(&format!("results/{}", parts[..count].join("/")));
        let aside = fixture.path("aside");
        fs::rename(&dir, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &dir).unwrap();
        let rest = parts[count..].iter().fold(aside.clone(), |dir, part| dir.join(part));
        let before = fs::read(rest.join("run.json")).unwrap();
        // The run counts as not finished.
        fs::write(rest.join("run.json"), "{").unwrap();
        let run = fixture.eval(&["--runs", "1", "--resume"], "pass");
        assert!(run.code != Some(0) && run.stderr.contains("is a symbolic link"), "{count}: {}", run.stderr);
        assert_eq!(fs::read(rest.join("run.json")).unwrap(), b"{");
        fs::write(rest.join("run.json"), before).unwrap();
        fs::remove_file(&dir).unwrap();
        fs::rename(&aside, &dir).unwrap();
    }
}

fn a_new_skill_follows_all_rules() {
    let scratch = tempfile::tempdir().unwrap();
    let run =
        |words: &[&str]| Run::of(program().args(words).current_dir(scratch.path()).stdin(Stdio::null()));
    let made = run(&["init", "pdf-forms"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let checked = run(&["check", "--reference", "pdf-forms"]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
    let plan = run(&["eval", "pdf-forms", "--dry-run", "--json", "--runs", "1"]);
    assert_eq!(plan.json()["runs"], 4 + 2 * 2, "{}", plan.stderr);
    assert_ne!(run(&["eval", "pdf-forms", "--runs", "1"]).code, Some(2));
    // `init` should never overwrite a skill, since it may have been edited by the user.
    fs::write(scratch.path().join("pdf-forms/SKILL.md"), "mine").unwrap();
    let again = run(&["init", "pdf-forms"]);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert_eq!(fs::read_to_string(scratch.path().join("pdf-forms/SKILL.md")).unwrap(), "mine");
    for name in ["PDF", "a--b", "../up", "-x", "", "a/b", "x y"] {
        let run = run(&["init", "--", name]);
        assert_eq!(run.code, Some(2), "{name}: {}", run.stderr);
        assert!(!scratch.path().join(name).join("SKILL.md").exists(), "{name}");
    }
    let described = run(&["init", "quoted", "--description", "Reads \"forms\": all of them.\nUse it."]);
    assert_eq!(described.code, Some(0), "{}", described.stderr);
    assert_eq!(run(&["check", "--reference", "quoted"]).code, Some(0));
}
