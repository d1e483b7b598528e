//! Agents that refuse the skills server, or fail on it.

use std::time::Duration;

use serde_json::json;

use super::*;

const WAIT: Duration = Duration::from_secs(2);

fn fixture() -> Fixture {
    Fixture::new(Policy { mcp_wait: WAIT, ..Policy::default() }).initialized("x", &json!({}))
}

const KEY: SessionKey = SessionKey(1);

/// Some agents accept the skills server, and fail on it with every prompt.
#[test]
fn a_transport_that_fails_is_not_used_again() {
    const HTTP: &str = "http";
    let with_http = json!({ "mcpCapabilities": { "http": true } });
    let transport = |request: &serde_json::Value| {
        let servers = request["params"]["mcpServers"].as_array().unwrap();
        servers
            .first()
            .map(|ours| ours.get("type").map_or("stdio".to_owned(), |kind| kind.as_str().unwrap().to_owned()))
    };
    let failure = "6 validation errors for MCPConfig mcpServers.acp-skills.RemoteMCPServer.headers";
    for (message, connects, next) in [
        (failure, false, "stdio"),
        // The agent has already connected to the skills server, so this can't be the reason.
        (failure, true, HTTP),
        ("the model is overloaded", false, HTTP),
    ] {
        let mut fixture = Fixture::new(policy()).initialized("x", &with_http);
        assert_eq!(transport(&fixture.new_session(1, "a")).as_deref(), Some(HTTP));
        if connects {
            fixture.handle(Input::Connected(KEY));
        }
        fixture.prompt(2, "a", &["hello"]);
        let error = json!({ "code": -32603, "message": message });
        let out = fixture.agent(&json!({ "jsonrpc": "2.0", "id": 2, "error": error }));
        assert_eq!(out.client()["error"], error, "the client learns of it");
        assert_eq!(transport(&fixture.new_session(3, "b")).as_deref(), Some(next), "{message}");
        if next == HTTP {
            continue;
        }
        // When this transport fails as well, the agent gets no server.
        fixture.prompt(4, "b", &["hello"]);
        fixture.agent(&json!({ "jsonrpc": "2.0", "id": 4, "error": error }));
        assert_eq!(transport(&fixture.new_session(5, "c")), None);
    }
    // We know that this agent will fail.
    let mut fixture = Fixture::new(policy()).initialized("OpenHands CLI ACP Agent", &with_http);
    assert_eq!(transport(&fixture.new_session(1, "a")).as_deref(), Some("stdio"));
    // However, a transport that the user has configured is always used.
    let http = Policy { mcp: McpMode::Http, ..policy() };
    let mut fixture = Fixture::new(http).initialized("OpenHands CLI ACP Agent", &with_http);
    assert_eq!(transport(&fixture.new_session(1, "a")).as_deref(), Some(HTTP));
}

/// A client can send a prompt before its session is open, and then the agent can refuse the skills server.
#[test]
fn a_prompt_goes_on_if_the_agent_refuses_our_server() {
    let mut fixture = fixture();
    fixture.request(1, "session/resume", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
    assert!(fixture.prompt(2, "s", &["hello"]).to_agent.is_empty());
    let again = fixture.refuse(1, -32602);
    assert_eq!(again.agent()["params"]["mcpServers"], json!([]));
    let out = fixture.respond(1, &json!({}));
    assert_eq!(texts(out.agent()).last(), Some(&"hello"), "{out:?}");
    // The timer also ends the wait when there is no response to the request.
    fixture.request(3, "session/resume", &json!({ "sessionId": "t", "cwd": "/project", "mcpServers": [] }));
    assert!(fixture.prompt(4, "t", &["hello"]).to_agent.is_empty());
    fixture.refuse(3, -32602);
    let out = fixture.timer_ends(SessionKey(2));
    assert_eq!(texts(out.agent()).last(), Some(&"hello"), "{out:?}");
}

#[test]
fn a_refused_request_is_retried_without_our_server() {
    for method in ["session/new", "session/load"] {
        let mut fixture = fixture();
        let params = json!({ "cwd": "/p", "sessionId": "s", "mcpServers": [{ "name": "theirs" }] });
        fixture.request(1, method, &params);
        let out = fixture.refuse(1, -32602);
        assert!(out.to_client.is_empty(), "{method}");
        assert_eq!(out.agent()["params"]["mcpServers"], json!([{ "name": "theirs" }]), "{method}");
        assert_eq!(fixture.host.closed, [KEY], "{method}");
        fixture.respond(1, &json!({ "sessionId": "s" }));
        // Prompts should not have to wait.
        assert_eq!(fixture.prompt(2, "s", &["hello"]).to_agent.len(), 1, "{method}");
    }
}

#[test]
fn a_second_refusal_goes_to_the_client() {
    let mut fixture = fixture();
    fixture.request(1, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
    fixture.refuse(1, -32603);
    let out = fixture.refuse(1, -32603);
    assert_eq!(out.client()["error"]["code"], -32603);
    assert_eq!(fixture.sessions(), 0);
}

#[test]
fn other_errors_are_not_retried() {
    let answers = [json!({ "error": { "code": -32800, "message": "cancelled" } }), json!({})];
    for mut answer in answers {
        let mut fixture = fixture();
        fixture.request(1, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = 1.into();
        let out = fixture.agent(&answer);
        assert_eq!((out.to_agent.len(), out.to_client.len()), (0, 1), "{answer}");
        assert_eq!(fixture.sessions(), 0, "{answer}");
    }
}

#[test]
fn a_failed_load_does_not_break_the_session() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.handle(Input::ToolsListed(KEY));
    fixture.prompt(2, "s", &["hello"]);
    fixture.request(3, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
    let out = fixture.refuse(3, -32603);
    assert_eq!((out.to_agent.len(), out.client()["id"].clone()), (0, json!(3)));
    assert!(fixture.host.closed.is_empty());
    assert_eq!(texts(fixture.prompt(4, "s", &["again"]).agent()), ["again"]);
}

#[test]
fn a_missing_login_is_not_retried() {
    let mut fixture = fixture();
    fixture.request(1, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
    assert_eq!(fixture.refuse(1, -32000).client()["error"]["code"], -32000);
    assert_eq!((fixture.sessions(), fixture.host.closed.len()), (0, 1));
    fixture.request(2, "authenticate", &json!({ "methodId": "x" }));
    fixture.respond(2, &json!({}));
    let new = fixture.new_session(3, "s");
    assert_eq!(new["params"]["mcpServers"].as_array().unwrap().len(), 1);
}
