//! `trust`, `untrust` and `/skills untrust` for the skills of a project, and `why`.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    commands::names,
    fixture::{Fixture, MCP_2025, entry},
    repositories::{Home, Repository},
    trust::Project,
};

crate::trials!(
    trust_in_a_terminal_and_back,
    untrust_in_a_session,
    files_that_were_restored_are_not_trusted,
    why_a_skill_is_used,
);

/// Waits until the menu of the editor has no command with this name.
fn wait_until_gone(fixture: &mut Fixture, name: &str) {
    while names(&fixture.editor.menu()).contains(&name) {}
}

fn trust_in_a_terminal_and_back() {
    let project = Project::new();
    let dir = project.checkout.path().to_str().expect("text").to_owned();
    let home = project.home();
    let (mut fixture, _) = project.start();
    let report = home.json(&["trust", "--dir", &dir, "--json", "--yes"]);
    assert_eq!(
        (&report["skills"][0]["name"], &report["trusted"]),
        (&json!("deploy"), &json!(true)),
        "{report}"
    );
    fixture.wait_for_command("deploy");
    let text = home.printed(&["trust", "--dir", &dir]);
    assert!(text.contains("No skill of the project waits"), "{text}");
    let text = home.printed(&["untrust", "deploy", "--dir", &dir]);
    assert!(text.contains("No longer trusted: `deploy`."), "{text}");
    wait_until_gone(&mut fixture, "deploy");
    fixture.finish();
    // The whole text is shown before the question.
    let output = home.run(&["trust", "deploy", "--dir", &dir]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("+# ZQ-body") && text.contains("+ZQ-hosts"), "{text}");
    assert!(output.status.code() == Some(2) && errors.contains("stdin is not a terminal"), "{errors}");
    let errors = home.fails(&["trust", "other", "--dir", &dir], 2);
    assert!(errors.contains("no skill `other` of the project waits for your trust"), "{errors}");
    let report: Value = home.json(&["untrust", "--dir", &dir, "--json"]);
    assert_eq!(report["skills"], json!([]), "{report}");
}

fn untrust_in_a_session() {
    let project = Project::new();
    let (mut fixture, params) = project.start();
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let said = fixture.ask("/skills untrust deploy");
    assert!(said.contains("is not a trusted skill of this project. Trusted: none."), "{said}");
    fixture.ask("/skills");
    assert!(fixture.ask("/skills trust deploy").starts_with("`deploy` is trusted"));
    fixture.wait_for_command("deploy");
    let said = fixture.ask("/skills untrust deploy");
    assert!(said.starts_with("`deploy` is no longer trusted."), "{said}");
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(is_error && !text.contains("ZQ"), "{text}");
    assert!(fixture.ask("/skills").contains("**Waiting for your trust**"));
    // A user's own skill needs no trust.
    let said = fixture.ask("/skills untrust review");
    assert!(said.contains("is not a trusted skill"), "{said}");
    fixture.finish();
}

/// Writes a file, and makes sure that the time of the change is another one.
fn change(file: &Path, text: &str) {
    let modified = || fs::metadata(file).and_then(|metadata| metadata.modified()).expect("a file");
    let before = modified();
    while modified() == before {
        fs::write(file, text).expect("a file");
    }
}

/// The user reviews another version than the one that the proxy has read, and that is on disk in the end.
fn files_that_were_restored_are_not_trusted() {
    let project = Project::new();
    let (mut fixture, params) = project.start();
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let hosts = project.checkout.dir(".skills/deploy").join("references/hosts.md");
    change(&hosts, "harmless\n");
    assert!(fixture.ask("/skills").contains("**Waiting for your trust**"));
    change(&hosts, "ZQ-hosts\n");
    let said = fixture.ask("/skills trust deploy");
    assert!(said.contains("Could not trust `deploy`: skill has changed in the meantime"), "{said}");
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(is_error && !text.contains("ZQ"), "{text}");
    assert!(fixture.ask("/skills trust deploy").starts_with("Not trusted yet."));
    assert!(fixture.ask("/skills trust deploy").starts_with("`deploy` is trusted"));
    fixture.finish();
}

fn why_a_skill_is_used() {
    let repository = Repository::review();
    repository.skill("greet", "Greets.", "one");
    let commit = repository.commit();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["add", &source, "--yes", "--approved-by", "Ada"]);
    home.printed(&["sources", "pin", "greet"]);
    let report = home.json(&["why", "greet", "--json"]);
    let approval = &report["approvals"][0];
    assert_eq!(
        (&report["used"]["source"], &approval["version"]),
        (&json!(source), &json!(commit)),
        "{report}"
    );
    assert_eq!((&approval["approvedBy"], &approval["pinned"]), (&json!("Ada"), &json!(true)), "{report}");
    let text = home.printed(&["why", "Greet"]);
    assert!(text.contains(&format!("from {source}")) && text.contains(" by Ada, in "), "{text}");
    // The user's own skill has precedence.
    let own = home.path("own");
    home.write(&own.join("review/SKILL.md"), "---\nname: review\ndescription: Mine.\n---\nx\n");
    let own = own.to_str().expect("text");
    let report = home.json(&["why", "review", "--json", "--skills", own]);
    assert_eq!((&report["used"]["source"], &report["shadows"]), (&json!(null), &json!([source])), "{report}");
    // A skill that is left out.
    let output = home.run(&["why", "greet", "--exclude", "gr*"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.code() == Some(1) && text.contains("`include` or `exclude` leaves it out"),
        "{text}"
    );
    let errors = home.fails(&["why", "nothing"], 2);
    assert!(errors.contains("no skill `nothing`"), "{errors}");
}
