//! The form in which an editor asks the user whether to trust the skills of a project.

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::Proxy,
    fixture::{Fixture, MCP_2025, entry},
    roots::Roots,
    trust::Project,
};

crate::trials!(
    an_editor_that_asks,
    an_editor_whose_user_says_no,
    the_question_under_a_conductor,
    each_project_has_its_own_question,
    an_answer_that_another_one_contradicts,
);

/// Starts a conversation with an editor that shows forms to its user.
fn with_forms(proxy: Proxy) -> Fixture {
    let mut fixture = Fixture::new(proxy);
    fixture.exchange(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } }),
        json!({ "result": { "protocolVersion": 1, "agentCapabilities": { "mcpCapabilities": { "http": true } } } }),
    );
    fixture
}

fn question(fixture: &mut Fixture) -> Value {
    fixture.editor.wait_for("a question", |message| message["method"] == "elicitation/create")
}

fn an_editor_that_asks() {
    let project = Project::new();
    let mut fixture = with_forms(project.proxy());
    let params = project.open(&mut fixture, "s");
    let asked = question(&mut fixture);
    let message = asked["params"]["message"].as_str().expect("text");
    assert!(message.contains("- `deploy` (") && message.contains("ZQ-description"), "{message}");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let answer = json!({ "action": "accept", "content": { "trust": true } });
    fixture.editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    fixture.wait_for_command("deploy");
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(!is_error && text.contains("ZQ-body"), "{text}");
    assert_eq!(fixture.received(), Vec::<Value>::new(), "the agent hears of neither question nor answer");
    // If the skill changes, we need to ask the user about it, even if they've trusted it before.
    project.write("Deploys. ZQ-description", "# Something else");
    let asked = question(&mut fixture);
    assert!(
        asked["params"]["message"].as_str().expect("text").contains("changed since last trusted"),
        "{asked}"
    );
    // The answer is only for the version that the user has seen. If the skill was changed while the question was open, don't
    // trust it.
    project.checkout.write(".skills/deploy/references/hosts.md", "evil\n");
    let answer = json!({ "action": "accept", "content": { "trust": true } });
    fixture.editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    fixture.editor.wait_for_log("Could not trust `deploy`: skill has changed in the meantime");
    fixture.editor.unread();
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(is_error, "{text}");
    fixture.editor.finish();
}

fn an_editor_whose_user_says_no() {
    let project = Project::new();
    let mut fixture = with_forms(project.proxy());
    project.open(&mut fixture, "s");
    let asked = question(&mut fixture);
    fixture.editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } }));
    assert!(fixture.ask("/skills").contains("Waiting for your trust"));
    fixture.finish();
    // This question must not be asked twice, not even after a restart.
    let mut fixture = with_forms(project.proxy());
    project.open(&mut fixture, "s");
    assert!(fixture.ask("/skills").contains("Waiting for your trust"));
    // The refusal holds until the user names the skill.
    assert!(fixture.ask("/skills trust").starts_with("Nothing was trusted, because you have declined"));
    assert!(fixture.ask("/skills trust deploy").starts_with("`deploy` is trusted"));
    fixture.finish();
}

/// The proxy's own question gets its answer, even if both sides share a connection.
fn the_question_under_a_conductor() {
    let project = Project::new();
    let mut conductor = project.proxy().flag("--mcp-wait", "0").start();
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } });
    let id = conductor.request("proxy/initialize", params);
    let inner = conductor.message();
    conductor.send(&json!({ "jsonrpc": "2.0", "id": inner["id"], "result": { "protocolVersion": 1, "agentCapabilities": {} } }));
    conductor.answer(&id);
    let params = json!({ "cwd": project.checkout.path(), "mcpServers": [] });
    let id = conductor.request("session/new", params);
    let inner = conductor.wait_for("the request", |message| message["params"]["method"] == "session/new");
    conductor.send(&json!({ "jsonrpc": "2.0", "id": inner["id"], "result": { "sessionId": "s" } }));
    conductor.answer(&id);
    let asked = conductor.wait_for("a question", |message| message["method"] == "elicitation/create");
    let answer = json!({ "action": "accept", "content": { "trust": true } });
    conductor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    loop {
        let menu = conductor.menu();
        if names(&menu).contains(&"deploy") {
            break;
        }
    }
    assert_eq!(conductor.finish().messages, Vec::<Value>::new(), "the successor did not get the answer");
}

fn each_project_has_its_own_question() {
    let roots = Roots::new();
    for root in ["a", "b"] {
        roots.skill(&format!("{root}/.skills/review"), &format!("Reviews {root}."));
    }
    let mut fixture = with_forms(roots.proxy());
    roots.open(&mut fixture, "a", &["b"]);
    for root in ["a", "b"] {
        let asked = question(&mut fixture);
        let message = asked["params"]["message"].as_str().expect("text");
        assert!(message.starts_with("This project contains a skill."), "{message}");
        assert!(message.contains(&format!("Reviews {root}.")), "{message}");
        let answer = json!({ "action": "accept", "content": { "trust": true } });
        fixture.editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    }
    crate::skill_server::ask_until(&mut fixture, "/skills", "is hidden by the skill from");
    fixture.editor.unread();
    fixture.editor.finish();
}

/// The user declines a version that another editor has been told to trust since the question.
fn an_answer_that_another_one_contradicts() {
    let project = Project::new();
    let mut fixture = with_forms(project.proxy());
    project.open(&mut fixture, "s");
    let asked = question(&mut fixture);
    let mut other = with_forms(project.proxy());
    project.open(&mut other, "s");
    assert!(other.ask("/skills").contains("Waiting for your trust"));
    assert!(other.ask("/skills trust deploy").starts_with("`deploy` is trusted"));
    other.finish();
    fixture.editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } }));
    fixture.editor.wait_for_log("Could not decline `deploy`: you have trusted this version in the meantime");
    fixture.editor.unread();
    fixture.editor.finish();
}
