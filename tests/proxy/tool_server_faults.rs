//! MCP servers behind skills that misbehave, and a proxy that is killed while servers run.

use std::{
    io::Read,
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    agent::{self, tool_server},
    editor::{DEADLINE, KILLED, Proxy},
    fixture::{Fixture, MCP_2025, entry},
    skills::Skills,
    tool_servers::{connected, trusted},
};

crate::trials!(
    hostile_servers_cost_an_error_only,
    servers_that_do_not_start,
    servers_end_with_the_proxy,
    servers_end_with_their_session,
    servers_end_with_their_skill,
    nothing_is_left_of_a_killed_proxy,
);

fn hostile_servers_cost_an_error_only() {
    let skills = Skills::new();
    let (mut fixture, connection) = connected(&skills, "", &json!({ "ask": "never", "timeout": 60 }));
    assert_eq!(fixture.run(&connection, "flood"), ("flooded".to_owned(), false));
    for (tool, words) in [
        ("bomb", "server sent an invalid answer: it is not valid JSON"),
        ("nonsense", "server sent an invalid answer: result has no content"),
        ("[]", "server sent an invalid answer: result is not an object"),
        ("5", "server sent an invalid answer: result is not an object"),
        ("true", "server sent an invalid answer: result is not an object"),
        ("hidden", "server has ended"),
    ] {
        let (text, failed) = fixture.run(&connection, tool);
        assert!(failed && text.contains(words), "{tool}: {text}");
    }
    // A tool with the name of one of ours is only a tool of the skill.
    assert_eq!(fixture.run(&connection, "activate_skill").0, "seen");
    fixture.finish();
    let (mut fixture, connection) = trusted(&skills, "many");
    let text = fixture.call(&connection, "activate_skill", json!({ "name": "kit" })).0;
    let tools = text.matches("<tool name=").count();
    assert!((100..=500).contains(&tools) && text.len() < 700_000, "{tools} tools, {} bytes", text.len());
    fixture.editor.unread();
    fixture.editor.finish();
}

fn servers_that_do_not_start() {
    let skills = Skills::new();
    let more = json!({ "ask": "never", "start_timeout": 0.3 });
    let (mut fixture, connection) = connected(&skills, "silent", &more);
    let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "kit" }));
    let words = "The server with tools of this skill is not available: server did not start within 0.3 s.";
    assert!(!failed && text.contains(words), "{text}");
    fixture.finish();
    let (mut fixture, connection) = connected(&skills, "strange", &json!({ "ask": "never" }));
    let text = fixture.call(&connection, "activate_skill", json!({ "name": "kit" })).0;
    let words = "server sent an invalid answer: `protocolVersion` is not a revision of MCP";
    assert!(text.contains(words) && !text.contains("X: y"), "{text}");
    fixture.finish();
    for (key, value, words) in [
        ("command", json!("no-such-program-anywhere"), "program `no-such-program-anywhere` not found"),
        ("start_timeout", json!(30), "server has ended"),
    ] {
        let mut more = json!({ "ask": "never" });
        more[key] = value;
        let mode = if key == "command" { "" } else { "no such mode" };
        let mut env = json!({});
        if !mode.is_empty() {
            // The program ends at once.
            env[agent::SCRIPT] = "script where".into();
        }
        more["env"] = env;
        let (mut fixture, connection) = connected(&skills, mode, &more);
        let text = fixture.call(&connection, "activate_skill", json!({ "name": "kit" })).0;
        assert!(text.contains(words), "{text}");
        fixture.finish();
    }
    let (mut fixture, connection) = trusted(&skills, "endless");
    let text = fixture.call(&connection, "activate_skill", json!({ "name": "kit" })).0;
    assert!(text.contains("The server of this skill has no tools."), "{text}");
    fixture.finish();
}

/// Returns a proxy with three skills, each with a server.
fn three(skills: &Skills) -> Proxy {
    let this = std::env::current_exe().expect("this program has a path");
    let skill = |name: &str| {
        let mut env = json!({});
        env[agent::SCRIPT] = tool_server::PREFIX.into();
        let server = json!({ "command": this, "env": env, "ask": "never" });
        json!({ "name": name, "description": "Has tools.", "mcp": server })
    };
    let config = json!({ "skills": [skill("one"), skill("two"), skill("three")] });
    Proxy::new().flag("--config", skills.write("skills.yaml", &config.to_string()))
}

/// Waits until no process has the other end of the pipe.
pub(crate) fn gone(mut held: impl Read + Send + 'static, what: &str) {
    let (sender, ended) = channel();
    thread::spawn(move || sender.send(held.read_to_end(&mut Vec::new())));
    assert!(ended.recv_timeout(DEADLINE).is_ok(), "{what}: a process is left");
}

fn servers_end_with_the_proxy() {
    let skills = Skills::new();
    let (proxy, held) = three(&skills).with_inherited_pipe();
    let mut fixture = Fixture::over_http(proxy);
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    for name in ["one", "two", "three"] {
        let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": name }));
        assert!(!failed && text.contains("<tool name="), "{text}");
    }
    fixture.finish();
    gone(held, "the proxy has exited");
}

fn servers_end_with_their_session() {
    let skills = Skills::new();
    let (mut fixture, connection) = trusted(&skills, "");
    let path = skills.dir("ended");
    let arguments = crate::tool_servers::input("at end", &json!({ "text": path }));
    assert_eq!(fixture.call(&connection, "call_skill_tool", arguments).0, "noted");
    fixture.exchange("session/close", json!({ "sessionId": "s" }), json!({ "result": {} }));
    crate::tool_servers::wait_for(&path);
    fixture.editor.unread();
    fixture.editor.finish();
}

fn servers_end_with_their_skill() {
    let skills = Skills::new();
    let (mut fixture, connection) = trusted(&skills, "");
    let path = skills.dir("ended");
    let arguments = crate::tool_servers::input("at end", &json!({ "text": path }));
    assert_eq!(fixture.call(&connection, "call_skill_tool", arguments).0, "noted");
    fixture.ask("/skills off kit");
    crate::tool_servers::wait_for(&path);
    fixture.editor.unread();
    fixture.editor.finish();
}

/// Set `KILL_ROUNDS` to kill the proxy more often.
fn nothing_is_left_of_a_killed_proxy() {
    let skills = Skills::new();
    let rounds = std::env::var("KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(50);
    for round in 0..rounds {
        let (proxy, held) = three(&skills).with_inherited_pipe();
        let mut fixture = Fixture::over_http(proxy);
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), MCP_2025);
        for name in ["one", "two", "three"] {
            let params = json!({
                "connection": connection.number, "tool": "activate_skill", "arguments": { "name": name },
            });
            fixture.editor.request("_agent/call", params);
        }
        // The moments are spread over the start of the servers, in no order.
        let instant = Instant::now() + Duration::from_micros(618 * round % 1_000 * 100);
        while Instant::now() < instant {
            thread::yield_now();
        }
        fixture.editor.kill();
        assert_eq!(fixture.editor.ended().code(), KILLED, "round {round}");
        gone(held, &format!("round {round}"));
    }
}
