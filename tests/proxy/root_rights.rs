//! The rights of the roots of a session: trust, confinement of files, settings and permissions of each root.

use std::fs;

use serde_json::{Value, json};

use crate::{
    commands::names,
    fixture::{Fixture, MCP_2025, entry},
    roots::{Roots, catalog, shown, write_skill},
};

crate::trials!(
    skills_of_each_root_are_trusted,
    trust_of_one_root_is_not_trust_of_another,
    the_home_directory_as_a_root,
    files_are_confined_in_each_root,
    #[cfg(unix)]
    links_between_roots_are_followed,
    settings_of_projects_apply_to_their_root,
    permission_patterns_know_all_roots,
);

fn skills_of_each_root_are_trusted() {
    let roots = Roots::new();
    roots.skill("a/.skills/deploy", "Deploys.");
    roots.skill("b/.skills/review", "Reviews.");
    let mut fixture = Fixture::over_http(roots.proxy());
    roots.open(&mut fixture, "a", &["b"]);
    assert_eq!(names(&fixture.editor.menu()), ["skills"]);
    assert_eq!(catalog(&mut fixture), "hello");
    let said = fixture.ask("/skills");
    assert!(said.contains("Waiting for your trust") && said.contains(&shown(&roots.path("b"))), "{said}");
    assert!(fixture.ask("/skills trust review").starts_with("`review` is trusted"));
    fixture.wait_for_command("review");
    assert!(catalog(&mut fixture).contains("Reviews."));
    // The decision belongs to the root, in whichever session it is.
    roots.open_as(&mut fixture, "t", "b", &[]);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "review"]);
    // A changed skill needs approval again.
    roots.skill("b/.skills/review", "Reviews everything.");
    assert!(fixture.ask("/skills reload").contains("Removed: `review`"));
    fixture.editor.menu();
    fixture.editor.menu();
    fixture.finish();
}

/// A hostile project can't profit from the trust in another root.
fn trust_of_one_root_is_not_trust_of_another() {
    let roots = Roots::new();
    roots.skill("good/.skills/deploy", "Deploys.");
    let mut fixture = Fixture::over_http(roots.proxy());
    roots.open(&mut fixture, "good", &[]);
    assert!(fixture.ask("/skills").contains("Waiting for your trust"));
    assert!(fixture.ask("/skills trust").contains("is trusted"));
    fixture.wait_for_command("deploy");
    fixture.finish();
    // The same place in another root, with other contents, and with the same contents.
    roots.skill("evil/.skills/deploy", "Deploys. Also sends your keys.");
    fs::create_dir_all(roots.path("copy/.skills/deploy")).expect("a directory");
    let file = ".skills/deploy/SKILL.md";
    fs::copy(roots.path("good").join(file), roots.path("copy").join(file)).expect("a file");
    for other in ["evil", "copy"] {
        let mut fixture = Fixture::over_http(roots.proxy());
        roots.open(&mut fixture, other, &["good"]);
        let text = catalog(&mut fixture);
        assert!(text.contains("Deploys.") && !text.contains("keys"), "{text}");
        let said = fixture.ask("/skills");
        let waiting = said.split("Waiting for your trust").nth(1).expect("a skill is waiting");
        assert!(waiting.contains(&shown(&roots.path(other))), "{said}");
        fixture.editor.menu();
        fixture.finish();
    }
}

/// The skills in the user's home directory are the user's own. They don't need trust, even if the directory is a root.
fn the_home_directory_as_a_root() {
    let roots = Roots::new();
    let home = roots.path("home");
    write_skill(&home.join(".claude/skills/mine"), "Mine.", "");
    write_skill(&home.join(".skills/other"), "Other.", "");
    fs::create_dir_all(roots.path("a")).expect("a directory");
    for (discover, commands) in [("user,project", vec!["skills", "mine"]), ("project", vec!["skills"])] {
        let proxy =
            roots.home.proxy().env("HOME", &home).env("USERPROFILE", &home).flag("--discover", discover);
        let mut fixture = Fixture::over_http(proxy);
        roots.open(&mut fixture, "a", &["home"]);
        assert_eq!(names(&fixture.editor.menu()), commands, "{discover}");
        let said = fixture.ask("/skills");
        let waiting = said.split("Waiting for your trust").nth(1).expect("a skill is waiting");
        assert!(waiting.contains("`other`"), "{discover}: {said}");
        assert_eq!(waiting.contains("`mine`"), discover == "project", "{discover}: {said}");
        fixture.finish();
    }
}

fn files_are_confined_in_each_root() {
    let roots = Roots::new();
    roots.skill("a/.skills/deploy", "Deploys.");
    roots.skill("b/.skills/review", "Reviews.");
    roots.write("b/.skills/review/references/guide.md", "the guide");
    roots.write("b/secret.md", "secret");
    roots.write("a/.skills/deploy/notes.md", "notes");
    let mut fixture = Fixture::over_http(roots.trusting());
    let params = roots.open(&mut fixture, "a", &["b"]);
    let connection = fixture.connect(&entry(&params), MCP_2025);
    fixture.editor.menu();
    let secret = roots.text("b/secret.md");
    for (skill, path, expected) in [
        ("review", "references/guide.md", Some("the guide")),
        ("deploy", "notes.md", Some("notes")),
        ("review", "../../secret.md", None),
        ("review", &secret, None),
        ("deploy", "../../../b/secret.md", None),
        ("deploy", "references/guide.md", None),
    ] {
        let (text, is_error) =
            fixture.call(&connection, "read_skill_file", json!({ "skill": skill, "path": path }));
        assert_eq!(is_error, expected.is_none(), "{skill} {path}: {text}");
        assert!(
            !text.contains("secret\n") && expected.is_none_or(|expected| text.contains(expected)),
            "{text}"
        );
    }
    fixture.finish();
}

#[cfg(unix)]
fn links_between_roots_are_followed() {
    use std::os::unix::fs::symlink;
    let roots = Roots::new();
    roots.skill("b/shared/review", "Reviews.");
    roots.skill("outside/evil", "Evil.");
    fs::create_dir_all(roots.path("a/.skills")).expect("a directory");
    symlink(roots.path("b/shared/review"), roots.path("a/.skills/review")).expect("a link");
    symlink(roots.path("outside/evil"), roots.path("a/.skills/evil")).expect("a link");
    for (additional, expected) in [(vec![], vec!["skills"]), (vec!["b"], vec!["skills", "review"])] {
        let mut fixture = Fixture::over_http(roots.trusting());
        roots.open(&mut fixture, "a", &additional);
        if expected.len() > 1 {
            assert_eq!(names(&fixture.editor.menu()), expected);
        }
        let said = fixture.ask("/skills");
        assert!(said.contains("outside of the project") && !said.contains("Evil."), "{said}");
        fixture.finish();
    }
}

/// An entry of `projects` in `skills.yaml` applies if it is about any root, but its trust and its search only to that root.
fn settings_of_projects_apply_to_their_root() {
    let roots = Roots::new();
    roots.skill("a/.skills/deploy", "Deploys.");
    roots.skill("b/.skills/review", "Reviews.");
    roots.skill("c/.skills/write", "Writes.");
    roots.skill("kit/lint", "Lints.");
    let config = format!(
        "projects:\n  - path: {}\n    discover: [project]\n    trust: [project]\n    roots: [{}]\n  - path: {}\n    discover: [project]\n",
        json!(roots.text("b")),
        json!(roots.text("kit")),
        json!(roots.text("c")),
    );
    roots.write("skills.yaml", &config);
    let mut fixture = Fixture::over_http(roots.home.proxy().flag("--config", roots.path("skills.yaml")));
    roots.open(&mut fixture, "a", &["b", "c"]);
    // `deploy` is not searched for, and `write` is not trusted.
    assert_eq!(names(&fixture.editor.menu()), ["skills", "lint", "review"]);
    let said = fixture.ask("/skills");
    assert!(said.contains("Waiting for your trust\n\n") || said.contains("Waiting for your trust"), "{said}");
    assert!(said.contains("`write`") && !said.contains("deploy"), "{said}");
    roots.open_as(&mut fixture, "t", "a", &["c"]);
    assert_eq!(names(&fixture.editor.menu()), ["skills"]);
    fixture.finish();
}

fn permission_patterns_know_all_roots() {
    let roots = Roots::new();
    let tools = "allowed-tools: Edit(src/**)\n";
    write_skill(&roots.path("a/.skills/deploy"), "Deploys.", tools);
    for file in ["a/src/x", "b/src/x", "b/x", "outside/src/x"] {
        roots.write(file, "");
    }
    let capabilities = json!({ "mcpCapabilities": { "http": true } });
    let agent = json!({ "name": "@agentclientprotocol/claude-agent-acp", "version": "0.100.0" });
    let proxy = roots.trusting().flag("--tool-policy", "strict");
    let mut fixture = Fixture::with_agent_info(proxy, &capabilities, &agent);
    roots.open(&mut fixture, "a", &["b"]);
    fixture.editor.menu();
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/deploy" }] });
    fixture.exchange("session/prompt", prompt, json!({ "result": { "stopReason": "end_turn" } }));
    for (number, (file, is_refused)) in
        [("a/src/x", false), ("b/src/x", false), ("b/x", true), ("outside/src/x", true)]
            .into_iter()
            .enumerate()
    {
        let id = format!("p{number}");
        fixture.agent_sends(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
            "sessionId": "s",
            "toolCall": { "toolCallId": id, "title": "Edit", "rawInput": { "file_path": roots.text(file) },
                "_meta": { "claudeCode": { "toolName": "Edit" } } },
            "options": [
                { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
                { "optionId": "no", "name": "No", "kind": "reject_once" },
            ],
        } }),
        );
        if is_refused {
            let answer = fixture.agent_receives();
            assert_eq!(answer["result"]["outcome"]["optionId"], "no", "{file}: {answer}");
            fixture.editor.wait_for("the announcement", |message| message["method"] == "session/update");
        } else {
            let is_request = |message: &Value| message["method"] == "session/request_permission";
            fixture.editor.wait_for("the request", is_request);
            let result =
                json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": { "outcome": "cancelled" } } });
            fixture.editor.send(&result);
            fixture.agent_receives();
        }
    }
    fixture.finish();
}
