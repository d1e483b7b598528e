//! Skills within the directories of other skills (`--nested`, and `nested: true` for a source).

use std::fs;

use serde_json::{Value, json};

use crate::{
    commands::names,
    fixture::{Fixture, MCP_2025, entry},
    repositories::{Home, Repository},
    roots::{Roots, activate},
};

crate::trials!(
    inner_skills_are_files_by_default,
    inner_skills_are_skills_if_wanted,
    inner_skills_of_a_source_need_an_approval,
    inner_skills_of_a_project_need_their_own_trust,
);

fn hub() -> Roots {
    let roots = Roots::new();
    roots.skill("kit/hub", "Knows everything.");
    roots.skill("kit/hub/debugging", "Debugs.");
    roots.skill("kit/hub/deep/setup", "Sets up.");
    roots
}

fn inner_skills_are_files_by_default() {
    let roots = hub();
    let mut fixture = Fixture::over_http(roots.home.proxy().flag("--skills", roots.path("kit")));
    let params = roots.open(&mut fixture, "kit", &[]);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "hub"]);
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let (text, is_error) = activate(&mut fixture, &connection, "hub");
    assert!(!is_error && text.contains("debugging/SKILL.md"), "{text}");
    let path = json!({ "skill": "hub", "path": "debugging/SKILL.md" });
    let (text, is_error) = fixture.call(&connection, "read_skill_file", path);
    assert!(!is_error && text.contains("Body of debugging"), "{text}");
    fixture.finish();
}

fn inner_skills_are_skills_if_wanted() {
    for flag in ["--skills", "--skill"] {
        let roots = hub();
        let dir = if flag == "--skill" { "kit/hub" } else { "kit" };
        let mut fixture = Fixture::over_http(roots.home.proxy().arg("--nested").flag(flag, roots.path(dir)));
        roots.open(&mut fixture, "kit", &[]);
        assert_eq!(names(&fixture.editor.menu()), ["skills", "hub", "debugging", "setup"], "{flag}");
        // A new one is noticed, also in a directory that had no skill before.
        roots.skill("kit/hub/more/late", "Late.");
        fixture.wait_for_command("late");
        fs::remove_dir_all(roots.path("kit/hub/debugging")).expect("a directory");
        while names(&fixture.editor.menu()).contains(&"debugging") {}
        fixture.finish();
    }
}

fn listed(home: &Home) -> Vec<Value> {
    let list = home.json(&["list", "--json"]);
    list["skills"].as_array().expect("skills").iter().map(|skill| skill["name"].clone()).collect()
}

fn inner_skills_of_a_source_need_an_approval() {
    let repository = Repository::review();
    repository.write("review/style/SKILL.md", "---\nname: style\ndescription: Checks style.\n---\nBody.\n");
    repository.commit();
    let source = repository.source("");
    let home = Home::new();
    let shown = home.printed(&["add", &source, "--yes"]);
    assert!(!shown.contains("+ style"), "{shown}");
    assert_eq!(listed(&home), ["review"]);
    let list = home.json(&["list", "--json"]);
    assert_eq!(list["skills"][0]["nested"].as_array().map(Vec::len), Some(1));
    // The new setting alone approves nothing.
    home.write(&home.config(), &format!("sources:\n  - {{ source: {}, nested: true }}\n", json!(source)));
    assert_eq!(listed(&home), ["review"]);
    let shown = home.printed(&["update", "--yes"]);
    assert!(shown.contains("style"), "{shown}");
    assert_eq!(listed(&home), ["review", "style"]);
    // `add --nested` approves both at once, and writes the setting.
    let home = Home::new();
    home.printed(&["add", &source, "--nested", "--yes"]);
    assert!(fs::read_to_string(home.config()).expect("a file").contains("nested: true"));
    assert_eq!(listed(&home), ["review", "style"]);
    assert!(
        home.printed(&["update"]).contains("up to date")
            || home.run(&["update", "--locked"]).status.success()
    );
}

fn inner_skills_of_a_project_need_their_own_trust() {
    let roots = Roots::new();
    roots.skill("a/.skills/hub", "Knows everything.");
    roots.skill("a/.skills/hub/inner", "Inner.");
    let mut fixture = Fixture::over_http(roots.home.proxy().flag("--discover", "project").arg("--nested"));
    roots.open(&mut fixture, "a", &[]);
    assert!(fixture.ask("/skills").contains("`inner`"));
    assert!(fixture.ask("/skills trust hub").starts_with("`hub` is trusted"));
    fixture.wait_for_command("hub");
    assert!(fixture.ask("/skills").contains("Waiting for your trust"));
    assert!(fixture.ask("/skills trust inner").starts_with("`inner` is trusted"));
    fixture.wait_for_command("inner");
    fixture.finish();
}
