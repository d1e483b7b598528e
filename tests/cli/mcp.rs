//! `mcp`: the server for clients without ACP, over stdin and stdout. `client` is a client that starts the server, `http` has the tests
//! over HTTP, and `servers` those with MCP servers behind skills.

mod client;
mod http;
#[cfg(unix)]
mod servers;

use std::{
    fs,
    io::{Read, Write},
    path::Path,
};

use serde_json::{Value, json};

use self::client::Client;
use crate::fixture::Fixture;

pub(crate) const CATALOG: &str = "<available_skills>";

#[test]
fn each_client_gets_the_catalog_where_its_model_sees_it() {
    let fixture = Fixture::new();
    for (client, flags, instructions, tool) in [
        ("claude-code", &[][..], true, false),
        ("codex-mcp-client", &[], true, false),
        ("some-client", &[], false, true),
        ("some-client", &["--catalog", "instructions"], true, false),
        ("claude-code", &["--catalog", "both"], true, true),
        ("claude-code", &["--catalog", "none"], false, false),
    ] {
        let mut server = Client::start(&fixture, &[&["--skills", "skills"], flags].concat());
        let found = server.initialize(client, json!({}));
        assert_eq!(found.contains(CATALOG), instructions, "{client} {flags:?}: {found}");
        assert_eq!(found.contains("<name>pdf</name>"), instructions, "{client} {flags:?}: {found}");
        let description = server.description();
        assert_eq!(description.contains(CATALOG), tool, "{client} {flags:?}: {description}");
        let activated = server.activate("pdf");
        assert!(activated["content"][0]["text"].as_str().unwrap().contains("Body"), "{activated}");
        assert_eq!(server.end(), (Some(0), String::new()), "{client} {flags:?}");
    }
}

#[test]
fn all_requests_are_answered_after_the_end_of_the_input() {
    let fixture = Fixture::new();
    let mut server = Client::start(&fixture, &["--skills", "skills"]);
    server.initialize("some-client", json!({}));
    for id in 0..50 {
        let params = json!({ "name": "activate_skill", "arguments": { "name": "docx" } });
        server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    }
    drop(server.stdin.take());
    let mut rest = String::new();
    server.stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.lines().count(), 50, "{rest}");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_empty_input_ends_the_server() {
    let fixture = Fixture::new();
    let server = Client::start(&fixture, &["--skills", "skills"]);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_failed_start_is_the_answer_to_the_first_request() {
    let fixture = Fixture::new();
    let mut server = Client::start(&fixture, &["--skill", "missing"]);
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} }));
    let answer = server.receive();
    assert!(answer["error"]["message"].as_str().unwrap().contains("missing"), "{answer}");
    assert_eq!(server.end().0, Some(2));
}

#[test]
fn changes_of_skills_are_announced() {
    let fixture = Fixture::new();
    let mut server = Client::start(&fixture, &["--skills", "skills"]);
    server.initialize("claude-code", json!({}));
    assert!(!server.description().contains(CATALOG));
    fixture.write("skills/late/SKILL.md", "---\nname: late\ndescription: Comes late.\n---\nLate\n");
    server.receive_until(|message| message["method"] == "notifications/tools/list_changed");
    // The instructions can't change any more, so the description has the catalog.
    assert!(server.description().contains("<name>late</name>"));
    let activated = server.activate("late");
    assert!(activated["content"][0]["text"].as_str().unwrap().contains("Late"), "{activated}");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn skills_that_the_client_loads_itself_are_left_out() {
    let fixture = Fixture::new();
    for name in ["claude", "agents"] {
        let text = format!("---\nname: of-{name}\ndescription: Does it.\n---\nBody\n");
        fixture.write(&format!("home/.{name}/skills/of-{name}/SKILL.md"), &text);
    }
    for (client, flags, expected) in [
        ("claude-code", &[][..], [true, true]),
        ("claude-code", &["--hide-native"], [false, true]),
        ("codex-mcp-client", &["--hide-native"], [true, false]),
        ("some-client", &["--hide-native"], [true, true]),
    ] {
        let mut server =
            Client::start(&fixture, &[&["--discover", "user", "--catalog", "tool"], flags].concat());
        server.initialize(client, json!({}));
        let description = server.description();
        let found = ["of-claude", "of-agents"].map(|name| description.contains(name));
        assert_eq!(found, expected, "{client} {flags:?}: {description}");
        assert_eq!(server.end().0, Some(0));
    }
}

/// Returns the URL of a directory.
fn url(path: &Path) -> String {
    let path = path.to_str().unwrap().replace('\\', "/");
    format!("file://{}{path}", if path.starts_with('/') { "" } else { "/" })
}

#[test]
fn roots_of_the_client_are_the_directories_of_the_session() {
    let fixture = Fixture::new();
    let text = "---\nname: of-project\ndescription: Does it.\n---\nBody\n";
    fixture.write("project/.agents/skills/of-project/SKILL.md", text);
    let flags = ["--discover", "project", "--trust", "project"];
    let mut server = Client::start(&fixture, &flags);
    server.initialize("some-client", json!({ "roots": {} }));
    let question = server.receive_until(|message| message["method"] == "roots/list");
    let roots = json!([{ "uri": url(&fixture.dir.join("project")) }]);
    server.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": roots } }));
    assert!(server.description().contains("<name>of-project</name>"));
    assert_eq!(server.end().0, Some(0));
}

/// A client that sends notifications faster than it answers is asked for its roots once at a time.
#[test]
fn notifications_about_roots_are_not_queued() {
    let fixture = Fixture::new();
    let mut server = Client::start(&fixture, &["--skills", "skills"]);
    server.initialize("some-client", json!({ "roots": {} }));
    for method in ["notifications/initialized", "notifications/roots/list_changed"] {
        for _ in 0..200 {
            server.send(&json!({ "jsonrpc": "2.0", "method": method }));
        }
    }
    server.request("ping", json!({}));
    // The request waits for the roots, but not for ever.
    server.description();
    let is_question = |message: &&Value| message["method"] == "roots/list";
    let questions: Vec<_> = server.notices.iter().filter(is_question).cloned().collect();
    assert_eq!(questions.len(), 1, "{questions:?}");
    let no_roots =
        |question: &Value| json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
    server.send(&no_roots(&questions[0]));
    // The roots have changed since.
    let question = server.receive_until(|message| message["method"] == "roots/list");
    server.send(&no_roots(&question));
    server.description();
    assert_eq!(server.notices.iter().filter(is_question).count(), 1);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn errors_carry_the_id_of_their_request() {
    let fixture = Fixture::new();
    let mut server = Client::start(&fixture, &["--skills", "skills"]);
    server.initialize("some-client", json!({}));
    let many = format!("[0{}]", ",0".repeat(300_000));
    for (number, (method, params, code)) in [
        ("tools/call", "5", -32600),
        ("tools/call", "[1]", -32600),
        ("tools/call", r#"{"name":"x","_meta":5}"#, -32600),
        ("tools/call", r#"{"name":5}"#, -32602),
        ("tools/list", "true", -32600),
        ("prompts/get", "{}", -32602),
        ("ping", r#"{"_meta":""}"#, -32600),
        ("unknown", "5", -32600),
        ("unknown", "{}", -32601),
        ("unknown", &many, -32600),
    ]
    .into_iter()
    .enumerate()
    {
        let stdin = server.stdin.as_mut().unwrap();
        writeln!(stdin, r#"{{"jsonrpc":"2.0","id":"{number}","method":"{method}","params":{params}}}"#)
            .unwrap();
        let answer = server.receive();
        assert_eq!(answer["id"], number.to_string(), "{method}: {answer}");
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn skills_of_a_project_wait_for_the_user() {
    let fixture = Fixture::new();
    let text = "---\nname: of-project\ndescription: Does it.\n---\nBody\n";
    fixture.write(".agents/skills/of-project/SKILL.md", text);
    // A client without forms.
    let mut server = Client::start(&fixture, &["--discover", "project"]);
    server.initialize("some-client", json!({}));
    assert_eq!(server.description(), "");
    let (code, stderr) = server.end();
    assert_eq!(code, Some(0));
    assert!(
        stderr.contains("`of-project`") && stderr.contains("`acp-skills-proxy trust of-project`"),
        "{stderr}"
    );
    // A closed form is no decision, and a trusted skill stays trusted.
    for (answer, has_skill) in [
        (Some(json!({ "action": "cancel" })), false),
        (Some(json!({ "action": "accept", "content": { "trust": true } })), true),
        (None, true),
    ] {
        let mut server = Client::start(&fixture, &["--discover", "project"]);
        server.initialize("some-client", json!({ "elicitation": {} }));
        if let Some(answer) = answer {
            let question = server.receive_until(|message| message["method"] == "elicitation/create");
            let message = question["params"]["message"].as_str().unwrap();
            assert!(message.contains("of-project") && !message.contains("/skills trust"), "{message}");
            server.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
            if has_skill {
                server.receive_until(|message| message["method"] == "notifications/tools/list_changed");
            }
        }
        assert_eq!(server.description().contains("of-project"), has_skill);
        assert_eq!(server.end().0, Some(0));
    }
}

/// While a form is open, the user may review another version than the one in the form.
#[test]
fn a_form_does_not_trust_files_that_were_restored() {
    let fixture = Fixture::new();
    let path = ".agents/skills/of-project/SKILL.md";
    let text = |body: &str| format!("---\nname: of-project\ndescription: Does it.\n---\n{body}\n");
    let is_form = |message: &Value| message["method"] == "elicitation/create";
    let accept = |form: &Value| {
        let result = json!({ "action": "accept", "content": { "trust": true } });
        json!({ "jsonrpc": "2.0", "id": form["id"], "result": result })
    };
    fixture.write(path, &text("Harmful"));
    let mut server = Client::start(&fixture, &["--discover", "project"]);
    server.initialize("some-client", json!({ "elicitation": {} }));
    let form = server.receive_until(is_form);
    fixture.write(path, &text("Harmless"));
    server.receive_until(is_form);
    fixture.write(path, &text("Harmful"));
    server.send(&accept(&form));
    // The user is asked again, and the new answer is valid.
    let form = server.receive_until(is_form);
    assert!(!server.description().contains("of-project"));
    server.send(&accept(&form));
    while !server.description().contains("of-project") {}
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn the_record_has_the_sessions_of_clients() {
    let fixture = Fixture::new();
    let mut server = Client::start(&fixture, &["--skills", "skills", "--events", "events.jsonl"]);
    server.initialize("claude-code", json!({}));
    server.activate("pdf");
    assert_eq!(server.end().0, Some(0));
    let record = fs::read_to_string(fixture.dir.join("events.jsonl")).unwrap();
    let events: Vec<Value> = record.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [started, activated] = &events[..] else { panic!("{record}") };
    assert_eq!((&started["event"], &started["agent"]), (&json!("session_started"), &json!("claude-code")));
    assert_eq!((&activated["event"], &activated["skill"]), (&json!("skill_activated"), &json!("pdf")));
    assert!(started["session"].is_string() && started["session"] == activated["session"], "{record}");
}

#[test]
fn garbage_and_long_messages_do_not_end_the_server() {
    let fixture = Fixture::new();
    let mut server = Client::start(&fixture, &["--skills", "skills"]);
    server.initialize("some-client", json!({}));
    let input = server.stdin.as_mut().unwrap();
    input.write_all(b"no json\n\n[1,2]\n{\"jsonrpc\":\"2.0\"}\n\xff\xfe\n").unwrap();
    let long = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping", "params": { "x": "x".repeat(5 << 20) } });
    server.send(&long);
    let answer = server.receive_until(|message| message["id"] == 9);
    assert!(answer["error"].is_object(), "{answer}");
    assert!(server.description().contains(CATALOG));
    assert_eq!(server.end().0, Some(0));
}

#[cfg(unix)]
#[test]
fn signals_end_the_server() {
    use std::process::Child;

    use rustix::process::{Pid, Signal, kill_process};

    use self::http::{Listening, TOKEN};

    let fixture = Fixture::new();
    let pid = |child: &Child| Pid::from_raw(child.id().cast_signed()).unwrap();
    let mut server = Client::start(&fixture, &["--skills", "skills"]);
    server.initialize("some-client", json!({}));
    kill_process(pid(&server.child), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(143));
    let mut server = Listening::start(&fixture, Some(TOKEN));
    kill_process(pid(&server.child), Signal::INT).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(130));
}
