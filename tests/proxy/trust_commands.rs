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
    files_that_were_restored_are_not_trusted,
    #[cfg(unix)]
    every_file_is_shown_before_trust,
    untrust_reaches_versions_that_are_not_checked_out,
    untrust_in_a_session,
    untrust_in_a_session_reaches_changed_skills,
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
        (&report["skills"][0]["name"], &report["skills"][0]["declined"], &report["trusted"]),
        (&json!("deploy"), &json!(false), &json!(true)),
        "{report}"
    );
    // The report contains the text and the checksum of the trusted skill.
    let sha256 = &report["skills"][0]["sha256"];
    assert!(sha256.as_str().is_some_and(|sha256| sha256.len() == 64), "{report}");
    assert_eq!(&report["changes"][0]["after"]["sha256"], sha256, "{report}");
    let changes = report["changes"].to_string();
    assert!(changes.contains("+# ZQ-body") && changes.contains("+ZQ-hosts"), "{report}");
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
    assert!(errors.contains("you have declined `deploy` before"), "{errors}");
    assert!(output.status.code() == Some(2) && errors.contains("stdin is not a terminal"), "{errors}");
    let errors = home.fails(&["trust", "other", "--dir", &dir], 2);
    assert!(errors.contains("no skill `other` of the project waits for your trust"), "{errors}");
    let report: Value = home.json(&["untrust", "--dir", &dir, "--json"]);
    assert_eq!(report["skills"], json!([]), "{report}");
}

/// A link or an odd file name does not hide the other files of a skill.
#[cfg(unix)]
fn every_file_is_shown_before_trust() {
    use std::os::unix::fs::symlink;
    let home = Home::new();
    let checkout = crate::skills::Skills::new();
    let dir = checkout.path().to_str().expect("text");
    checkout.write(".claude/skills/evil/SKILL.md", "---\nname: evil\ndescription: d\n---\n# ZQ-body\n");
    let skill = checkout.dir(".claude/skills/evil");
    fs::write(skill.join("tool"), [&b"\x7fELF\x02\x01\x01"[..], &[0; 100]].concat()).expect("a file");
    checkout.write(".claude/skills/evil/.hidden", "ZQ-hidden\n");
    checkout.write(".claude/skills/evil/a/lib.sh", "ZQ-lib\n");
    checkout.write(".claude/skills/evil/x\ny", "ZQ-odd\n");
    symlink("SKILL.md", skill.join("b.md")).expect("a link");
    symlink("a", skill.join("in")).expect("a link");
    symlink("../../../outside.sh", skill.join("out.sh")).expect("a link");
    let output = home.run(&["trust", "evil", "--dir", dir]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    for shown in
        ["+# ZQ-body", "+ZQ-hidden", "+ZQ-lib", "+ZQ-odd", "new file: b.md", "new file: in -> \"a\"\n"]
    {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    let out = "out.sh -> \"../../../outside.sh\" (cannot be shown: link that leads out of the skill)";
    for unseen in ["tool (cannot be shown: application/x-executable, 107 bytes)", out] {
        assert!(text.contains(unseen) && errors.contains(unseen), "{unseen}: {text}{errors}");
    }
    assert!(!errors.contains("in -> "), "{errors}");
    assert!(output.status.code() == Some(2) && errors.contains("use `--yes --unseen`"), "{errors}");
    for (flags, code) in [(&["--yes"][..], 1), (&["--yes", "--json"], 1), (&["--yes", "--unseen"], 0)] {
        let output = home.run(&[&["trust", "evil", "--dir", dir][..], flags].concat());
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {output:?}");
    }
}

/// The project returns to a version that was trusted before, or to a branch that has the skill.
fn untrust_reaches_versions_that_are_not_checked_out() {
    let project = Project::new();
    let dir = project.checkout.path().to_str().expect("text").to_owned();
    let home = project.home();
    let waits = |what: &str| {
        let output = home.run(&["trust", "--dir", &dir]);
        assert_eq!(output.status.code(), Some(2), "{what}: {output:?}");
    };
    let skill = project.checkout.dir(".skills/deploy");
    let aside = project.checkout.path().join("aside");
    for name in [None, Some("deploy")] {
        let names: Vec<_> = name.into_iter().collect();
        let untrust = || home.printed(&[&["untrust", "--dir", &dir][..], &names].concat());
        for is_gone in [false, true] {
            home.printed(&["trust", "--dir", &dir, "--yes"]);
            if is_gone {
                fs::rename(&skill, &aside).expect("a directory");
            } else {
                project.write("Deploys. ZQ-description", "# Second");
            }
            assert_eq!(untrust(), "No longer trusted: `deploy`.\n", "{names:?} {is_gone}");
            if is_gone {
                fs::rename(&aside, &skill).expect("a directory");
            } else {
                project.write("Deploys. ZQ-description", "# ZQ-body");
            }
            waits(&format!("{names:?} {is_gone}"));
        }
    }
    let text = home.printed(&["untrust", "--dir", &dir]);
    assert_eq!(text, "No skill of the project is trusted.\n");
}

fn untrust_in_a_session_reaches_changed_skills() {
    let project = Project::new();
    let mut fixture = Fixture::over_http(project.proxy().arg("--no-watch"));
    project.open(&mut fixture, "s");
    fixture.ask("/skills");
    assert!(fixture.ask("/skills trust deploy").starts_with("`deploy` is trusted"));
    project.write("Deploys. ZQ-description", "# Second");
    fixture.ask("/skills reload");
    let said = fixture.ask("/skills untrust deploy");
    assert!(said.starts_with("`deploy` is no longer trusted."), "{said}");
    project.write("Deploys. ZQ-description", "# ZQ-body");
    fixture.ask("/skills reload");
    assert!(fixture.ask("/skills").contains("**Waiting for your trust**"));
    fixture.finish();
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
