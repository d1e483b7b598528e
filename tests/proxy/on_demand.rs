//! `--mcp-on-demand`: MCP servers of the editor that become skills.

use std::fs;

use serde_json::{Value, json};

use crate::{
    agent::{self, tool_server},
    editor::Proxy,
    fixture::{self, Connection, Fixture, MCP_2025, entry},
    skills::Skills,
    tool_servers::{count, starts, wait_for},
};

crate::trials!(
    servers_of_the_editor_become_skills,
    only_these_servers_are_taken,
    nothing_else_of_the_request_changes,
    an_agent_without_our_server_keeps_all_servers,
    descriptions_are_kept,
    loaded_and_forked_sessions,
    withdrawn_servers_are_gone,
    a_replaced_server_ends,
    names_that_differ_in_case,
);

/// Returns an entry of `mcpServers` that starts this program.
fn server(skills: &Skills, name: &str) -> Value {
    let this = std::env::current_exe().expect("this program has a path");
    let env = json!([
        { "name": agent::SCRIPT, "value": tool_server::PREFIX },
        { "name": tool_server::STARTS, "value": starts(skills) },
        { "name": tool_server::SECRET, "value": "${HOME} $$ ${" },
    ]);
    json!({ "name": name, "command": this, "args": [], "env": env })
}

fn proxy(skills: &Skills, names: &str) -> Proxy {
    let proxy = Proxy::new().flag("--state", skills.dir("state"));
    if names.is_empty() { proxy.arg("--mcp-on-demand") } else { proxy.flag("--mcp-on-demand", names) }
}

/// Opens a session with these servers. Returns the params that the agent received.
fn open(fixture: &mut Fixture, id: &str, servers: &Value) -> Value {
    let params = json!({ "cwd": fixture::cwd(), "mcpServers": servers });
    let (mut received, _) = fixture.exchange("session/new", params, json!({ "result": { "sessionId": id } }));
    received["params"].take()
}

/// Returns the names of the servers that the agent received.
fn names(params: &Value) -> Vec<&str> {
    let servers = params["mcpServers"].as_array().expect("servers").iter();
    servers.map(|server| server["name"].as_str().expect("a name")).collect()
}

/// Calls a tool of a server, and allows the call. Returns the result.
fn call(fixture: &mut Fixture, connection: &Connection, arguments: &Value) -> String {
    let order = json!({ "connection": connection.number, "tool": "call_skill_tool", "arguments": arguments });
    let order = fixture.editor.request("_agent/call", order);
    let request = fixture
        .editor
        .wait_for("a request for permission", |message| message["method"] == "session/request_permission");
    let title = ["skill", "tool"].map(|key| arguments[key].as_str().expect("a name")).join(": ");
    assert_eq!(request["params"]["toolCall"]["title"], title);
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
    fixture.editor.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": outcome }));
    let result = fixture.editor.answer(&order);
    fixture::outcome(&result["result"]).0
}

fn servers_of_the_editor_become_skills() {
    let skills = Skills::new();
    let mut fixture = Fixture::over_http(proxy(&skills, ""));
    let params = open(&mut fixture, "s", &json!([server(&skills, "browser"), server(&skills, "files")]));
    assert_eq!(names(&params), ["acp-skills"]);
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(connection.tools.len(), 2, "{:?}", connection.tools);
    assert_eq!(fixture.listed_names(&connection), json!(["browser", "files"]));
    let text = fixture.call(&connection, "activate_skill", json!({ "name": "browser" })).0;
    assert!(text.contains("<tool name=\"all\">"), "{text}");
    let text = call(&mut fixture, &connection, &json!({ "skill": "browser", "tool": "env" }));
    // The editor has resolved all variables.
    assert_eq!(text, "${HOME} $$ ${");
    fixture.editor.unread();
    fixture.finish();
}

fn only_these_servers_are_taken() {
    let skills = Skills::new();
    let all = json!([
        server(&skills, "a"),
        { "type": "sse", "name": "b", "url": "https://example.org/sse", "headers": [] },
        server(&skills, "c"),
        server(&skills, "acp-skills-2"),
    ]);
    for (flag, left) in [
        ("", vec!["b", "acp-skills-2", "acp-skills"]),
        ("c", vec!["a", "b", "acp-skills-2", "acp-skills"]),
        ("b,c,x", vec!["a", "b", "acp-skills-2", "acp-skills"]),
    ] {
        let mut fixture = Fixture::over_http(proxy(&skills, flag));
        let params = open(&mut fixture, "s", &all);
        assert_eq!(names(&params), left, "{flag}");
        let said = fixture.ask("/skills");
        let is_explained = said.contains("the agent always gets the MCP server b, because");
        assert_eq!(is_explained, flag != "c", "{said}");
        fixture.editor.unread();
        fixture.editor.finish();
    }
    // A skill with the name of a server has precedence, so the agent keeps the server.
    let dir = skills.add("c", "Is a skill.", "# C");
    let mut fixture = Fixture::over_http(proxy(&skills, "").skill(&dir));
    assert_eq!(names(&open(&mut fixture, "s", &all)), ["b", "c", "acp-skills-2", "acp-skills"]);
    fixture.editor.unread();
    fixture.editor.finish();
}

fn nothing_else_of_the_request_changes() {
    let skills = Skills::new();
    let mut fixture = Fixture::over_http(proxy(&skills, "a"));
    let kept = r#"{ "b":1.0e1, "name" : "k\u00e9pt","x":[ ] }"#;
    let servers = format!("[ {}, {kept} ]", server(&skills, "a"));
    let cwd = json!(fixture::cwd());
    let line = format!(
        r#"{{"method":"session/new","z":0,"params":{{ "cwd":{cwd},"_n":1.50,"mcpServers":{servers} ,"y":null}},"id":77,"jsonrpc":"2.0"}}"#
    );
    fixture.editor.write(format!("{line}\n").as_bytes());
    let received = fixture.line();
    let (before, rest) = received.trim_end().split_once(r#""mcpServers":["#).expect("servers");
    assert_eq!(before, line.split_once(r#""mcpServers":["#).expect("servers").0);
    let ours = rest.strip_prefix(kept).and_then(|rest| rest.strip_prefix(',')).expect("the other server");
    assert!(ours.ends_with(r#"] ,"y":null},"id":77,"jsonrpc":"2.0"}"#), "{ours}");
    fixture.editor.unread();
    fixture.editor.finish();
}

fn an_agent_without_our_server_keeps_all_servers() {
    let skills = Skills::new();
    let mut fixture = Fixture::over_http(proxy(&skills, "").flag("--mcp", "off"));
    let params = open(&mut fixture, "s", &json!([server(&skills, "a")]));
    assert_eq!(names(&params), ["a"]);
    fixture.editor.unread();
    fixture.editor.finish();
    assert_eq!(count(&skills), 0);
}

fn descriptions_are_kept() {
    let skills = Skills::new();
    let mut fixture = Fixture::over_http(proxy(&skills, ""));
    open(&mut fixture, "s", &json!([server(&skills, "a")]));
    // The server is asked in the background, once.
    let kept = skills.dir("state/servers");
    let deadline = std::time::Instant::now() + crate::editor::DEADLINE;
    let files = || fs::read_dir(&kept).map_or(0, |files| files.flatten().filter(is_json).count());
    while files() == 0 {
        assert!(std::time::Instant::now() < deadline, "no description is kept");
        std::thread::yield_now();
    }
    fixture.editor.unread();
    fixture.editor.finish();
    // From the second session on, it is known what is saved.
    let events = skills.dir("events.jsonl");
    let mut fixture = Fixture::over_http(proxy(&skills, "").flag("--events", &events));
    let params = open(&mut fixture, "s", &json!([server(&skills, "a")]));
    fixture.connect(&entry(&params), MCP_2025);
    let blocks = fixture.prompt("s", "hello");
    let text = blocks.iter().filter_map(|block| block["text"].as_str()).collect::<String>();
    assert!(
        text.contains("Tools of the MCP server a. test: Use") && text.contains("Tools: all, env"),
        "{text}"
    );
    assert_eq!(count(&skills), 1);
    fixture.editor.unread();
    fixture.editor.finish();
    let record = fs::read_to_string(events).expect("events");
    let started: Value = serde_json::from_str(record.lines().next().expect("an event")).expect("JSON");
    assert!(started["saved_tokens"].as_u64().is_some_and(|saved| saved > 500), "{record}");
}

fn withdrawn_servers_are_gone() {
    let skills = Skills::new();
    let own = skills.add("own", "Is a skill.", "# Own");
    let mut fixture = Fixture::over_http(proxy(&skills, "").skill(&own));
    let params = open(&mut fixture, "s", &json!([server(&skills, "a")]));
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(fixture.listed_names(&connection), json!(["own", "a"]));
    let params = json!({ "sessionId": "s", "cwd": fixture::cwd(), "mcpServers": [] });
    let (received, _) = fixture.exchange("session/load", params, json!({ "result": {} }));
    let connection = fixture.connect(&entry(&received["params"]), MCP_2025);
    assert_eq!(fixture.listed_names(&connection), json!(["own"]));
    fixture.editor.unread();
    fixture.editor.finish();
}

/// A server with other variables is another one, even if it has the same name.
fn a_replaced_server_ends() {
    let skills = Skills::new();
    let mut fixture = Fixture::over_http(proxy(&skills, ""));
    let mut entries = json!([server(&skills, "a")]);
    let params = open(&mut fixture, "s", &entries);
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let path = skills.dir("ended");
    let arguments = json!({ "skill": "a", "tool": "at end", "input": { "text": path } });
    assert_eq!(call(&mut fixture, &connection, &arguments), "noted");
    let load = |servers: &Value| json!({ "sessionId": "s", "cwd": fixture::cwd(), "mcpServers": servers });
    fixture.exchange("session/load", load(&entries), json!({ "result": {} }));
    assert!(!path.exists(), "the server has ended, although it is still in use");
    entries[0]["env"][2]["value"] = "other".into();
    fixture.exchange("session/load", load(&entries), json!({ "result": {} }));
    wait_for(&path);
    fixture.editor.unread();
    fixture.editor.finish();
}

/// Names of skills ignore case, but the client may have such servers.
fn names_that_differ_in_case() {
    let skills = Skills::new();
    let mut fixture = Fixture::over_http(proxy(&skills, ""));
    let servers = json!([server(&skills, "Files"), server(&skills, "files")]);
    let params = open(&mut fixture, "s", &servers);
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let listed = fixture.listed_names(&connection);
    let left: Vec<_> = names(&params).into_iter().filter(|name| *name != "acp-skills").collect();
    assert_eq!((listed, left), (json!(["Files"]), vec!["files"]));
    fixture.editor.unread();
    fixture.editor.finish();
}

fn is_json(file: &fs::DirEntry) -> bool {
    file.path().extension().is_some_and(|extension| extension == "json")
}

fn loaded_and_forked_sessions() {
    let skills = Skills::new();
    let mut fixture = Fixture::over_http(proxy(&skills, ""));
    let servers = json!([server(&skills, "a")]);
    open(&mut fixture, "s", &servers);
    for (method, id) in [("session/load", "s"), ("session/resume", "t"), ("session/fork", "s")] {
        let params = json!({ "sessionId": id, "cwd": fixture::cwd(), "mcpServers": servers });
        let result = json!({ "result": { "sessionId": "u" } });
        let (received, _) = fixture.exchange(method, params, result);
        assert_eq!(names(&received["params"]), ["acp-skills"], "{method}");
        let connection = fixture.connect(&entry(&received["params"]), MCP_2025);
        let text = fixture.call(&connection, "activate_skill", json!({ "name": "a" })).0;
        assert!(text.contains("<tool name=\"all\">"), "{method}: {text}");
    }
    fixture.editor.unread();
    fixture.editor.finish();
}
