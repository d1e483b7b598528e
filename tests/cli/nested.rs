//! The output of `list` and `check` about skills within other skills, skills for certain files, and additional directories.

use std::{path::Path, process::Command};

use expect_test::expect;
use serde_json::Value;
use tempfile::TempDir;

use crate::check::{GOOD, check, run, skills};

fn hub() -> TempDir {
    let inner = GOOD.replace("good", "inner");
    skills(&[("good/SKILL.md", GOOD), ("good/inner/SKILL.md", &inner), ("good/deep/bad/SKILL.md", "nothing")])
}

fn list(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .args(["list", "--no-config"])
        .args(arguments)
        .current_dir(dir)
        .env_remove("COLUMNS")
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// An entry with properties finds the same skills as one without.
#[test]
fn entries_of_the_configuration() {
    let dir = hub();
    for entry in ["good", "{ skill: good, paths: [infra/**] }"] {
        for (nested, expected) in [(false, 1), (true, 2)] {
            let text = format!("nested: {nested}\nskills: [{entry}]\ndiscover: []\n");
            std::fs::write(dir.path().join("skills.yaml"), text).expect("a file");
            let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
                .args(["list", "--config", "skills.yaml", "--json"])
                .current_dir(dir.path())
                .output()
                .expect("the program runs");
            let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let skills = list["skills"].as_array().expect("skills");
            assert_eq!(skills.len(), expected, "{entry} {nested}: {list}");
        }
    }
}

#[test]
fn inner_skills_are_always_checked() {
    let dir = hub();
    for path in [".", "good", "good/../good"] {
        let (code, stdout, _) = run(dir.path(), &[path]);
        assert_eq!(code, Some(1), "{path}");
        assert!(stdout.contains("3 skills checked") && stdout.contains("[nested-skill]"), "{path}: {stdout}");
    }
    // A file is only itself, and an inner skill alone is not within another one.
    for path in ["good/SKILL.md", "good/inner"] {
        let (code, stdout, _) = run(dir.path(), &[path]);
        assert_eq!((code, stdout.as_str()), (Some(0), "1 skill checked: 0 errors, 0 warnings\n"), "{path}");
    }
}

#[test]
fn check_explains_inner_skills() {
    let inner = GOOD.replace("good", "inner");
    let dir = skills(&[("good/SKILL.md", GOOD), ("good/inner/SKILL.md", &inner)]);
    check(
        &dir,
        &["good"],
        expect![[r#"
        warning[nested-skill]: this file is inside the directory of skill `good`, so it is not a separate skill
        --> good/inner/SKILL.md
         = help: use `--nested` to load it as a skill, or move its directory out of the other skill

        2 skills checked: 0 errors, 1 warning
        exit 0
    "#]],
    );
}

#[test]
fn list_mentions_inner_skills() {
    let dir = hub();
    let text = list(dir.path(), &["good"]);
    assert!(text.contains("nested: good contains 2 more SKILL.md files, for example "), "{text}");
    let report: Value = serde_json::from_str(&list(dir.path(), &["good", "--json"])).expect("JSON");
    assert_eq!(report["skills"][0]["nested"].as_array().map(Vec::len), Some(2));
    let text = list(dir.path(), &["good", "--nested"]);
    assert!(text.contains("inner") && !text.contains("nested: "), "{text}");
}

#[test]
fn list_shows_the_files_for_which_a_skill_waits() {
    let dir = skills(&[(
        "good/SKILL.md",
        "---\nname: good\ndescription: Reads CSV files with prices.\nmetadata:\n  paths: \"src/**, *.{rs,toml}\"\n---\nBody\n",
    )]);
    let text = list(dir.path(), &["good"]);
    assert!(
        text.contains("waiting for files: good: joins the catalog when a file matches src/**, *.{rs,toml}"),
        "{text}"
    );
    let report: Value = serde_json::from_str(&list(dir.path(), &["good", "--json"])).expect("JSON");
    assert_eq!(report["skills"][0]["paths"], serde_json::json!(["src/**", "*.{rs,toml}"]));
    assert_eq!(report["skills"][0]["catalogTokens"], 0);
    assert_eq!(run(dir.path(), &["good"]).0, Some(0));
}

#[test]
fn list_takes_additional_directories() {
    let other = GOOD.replace("good", "other");
    let dir = skills(&[("a/.skills/good/SKILL.md", GOOD), ("b/.skills/other/SKILL.md", &other)]);
    let here = dunce::canonicalize(dir.path()).expect("a directory");
    let arguments =
        ["--discover", "project", "--trust", "project", "--add-dir", "../b", "--add-dir", "../missing"];
    let report: Value =
        serde_json::from_str(&list(&here.join("a"), &[&arguments[..], &["--json"]].concat())).expect("JSON");
    let roots: Vec<_> =
        report["skills"].as_array().expect("skills").iter().map(|skill| &skill["root"]).collect();
    assert_eq!(roots.len(), 2, "{report}");
    assert!(roots[0].as_str().is_some_and(|root| root.ends_with('a')), "{report}");
    assert!(roots[1].as_str().is_some_and(|root| root.ends_with('b')), "{report}");
}
