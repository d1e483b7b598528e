//! The three tools, over each transport and for clients of each revision of MCP, and the calls that they refuse.

use serde_json::{Map, Value, json};

use crate::{
    editor::Proxy,
    fixture::{self, Connection, Fixture, MCP_2025, entry, texts},
    skills::Skills,
};

crate::trials!(
    over_http,
    over_the_bridge,
    over_acp,
    every_revision_over_http,
    every_revision_over_the_bridge,
    several_connections_in_one_session,
    any_json_reaches_a_command,
    errors_list_what_is_valid,
    paths_outside_of_a_skill_are_refused,
    tools_return_changed_files,
    the_catalog_and_tools_stay_within_budget,
    the_log_follows_a_session,
);

/// Returns a proxy with a stored and a virtual skill.
fn proxy(skills: &Skills) -> Proxy {
    Proxy::new().flag("--config", skills.config())
}

/// Opens a session with an agent that is connected over HTTP.
fn connected(skills: &Skills) -> (Fixture, Connection) {
    let mut fixture = Fixture::over_http(proxy(skills));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    (fixture, connection)
}

/// Asserts that the tools work, for any transport.
fn uses_the_tools(mut call: impl FnMut(&str, Value) -> (String, bool)) {
    let mut expect = |tool: &str, arguments: Value, words: &[&str]| {
        let (text, failed) = call(tool, arguments);
        assert!(!failed, "{tool}: {text}");
        for words in words {
            assert!(text.contains(words), "{words:?} is not in the result of {tool}: {text}");
        }
    };
    let body = ["<skill_content name=\"review\"", "# Review", "references/checklist.md", "scripts/count.sh"];
    expect("activate_skill", json!({ "name": "review" }), &body);
    expect("activate_skill", json!({ "name": "counter" }), &["# Counting", "echo", "Says it again."]);
    expect(
        "read_skill_file",
        json!({ "skill": "review", "path": "references/checklist.md" }),
        &["- [ ] names\n- [ ] tests\n"],
    );
    expect(
        "call_skill_tool",
        json!({ "skill": "counter", "tool": "echo", "input": { "a": [1] } }),
        &["input: {\"a\":[1]}"],
    );
}

fn over_http() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(proxy(&skills));
    let params = fixture.new_session("s");
    let ours = entry(&params);
    assert_eq!(ours["type"], "http");
    assert!(ours["url"].as_str().expect("text").starts_with("http://127.0.0.1:"), "{ours}");
    let connection = fixture.connect(&ours, MCP_2025);
    check_tools(&connection.tools);
    uses_the_tools(|tool, arguments| fixture.call(&connection, tool, arguments));
    fixture.finish();
}

fn over_the_bridge() {
    let skills = Skills::review();
    // All agents must support stdio, so we fall back to the bridge if nothing else is advertised.
    let mut fixture = Fixture::initialized(proxy(&skills), &json!({}));
    let params = fixture.new_session("s");
    let ours = entry(&params);
    assert!(ours.get("type").is_none(), "in version 1, a stdio entry has no type: {ours}");
    let command = ours["command"].as_str().expect("text");
    assert!(std::path::Path::new(command).is_absolute() && ours["args"].is_array() && ours["env"].is_array());
    assert!(!ours["args"].to_string().contains("oken"), "other users can read arguments: {ours}");
    let connection = fixture.connect(&ours, MCP_2025);
    check_tools(&connection.tools);
    uses_the_tools(|tool, arguments| fixture.call(&connection, tool, arguments));
    fixture.finish();
}

/// Asserts the order of the tools and the annotations that agents need.
fn check_tools(tools: &[Value]) {
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["activate_skill", "call_skill_tool", "read_skill_file"]);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
        assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true, "{tool}");
    }
    assert_eq!(tools[0]["inputSchema"]["properties"]["name"]["enum"], json!(["review", "counter"]));
}

fn over_acp() {
    let skills = Skills::review();
    let mut fixture =
        Fixture::initialized(proxy(&skills), &json!({ "mcpCapabilities": { "acp": {}, "http": true } }));
    let params = fixture.new_session("s");
    let ours = entry(&params);
    assert_eq!(ours["type"], "acp");
    let mut number = 0;
    let mut ask = |fixture: &mut Fixture, method: &str, mut params: Value| {
        number += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "scripted", "version": "1.0.0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let inner =
            json!({ "serverId": ours["serverId"], "requestId": "r", "method": method, "params": params });
        fixture.agent_sends(
            &json!({ "jsonrpc": "2.0", "id": number, "method": "mcp/message", "params": inner }),
        );
        let mut answer = fixture.agent_receives();
        assert_eq!(answer["id"], number, "{answer}");
        answer["result"].take()
    };
    let listed = ask(&mut fixture, "tools/list", json!({}));
    check_tools(listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("no tools in {listed}")));
    uses_the_tools(|tool, arguments| {
        let answer = ask(&mut fixture, "tools/call", json!({ "name": tool, "arguments": arguments }));
        fixture::outcome(&answer["result"])
    });
    let refused = ask(&mut fixture, "no/such/method", json!({}));
    assert!(
        refused["error"]["code"].is_i64(),
        "an MCP error must be in a successful ACP response: {refused}"
    );
    // None of these messages must reach the editor.
    fixture.finish();
}

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

fn every_revision(mut fixture: Fixture) {
    let params = fixture.new_session("s");
    for revision in REVISIONS {
        let connection = fixture.connect(&entry(&params), revision);
        assert_eq!(connection.server["protocolVersion"], revision, "{}", connection.server);
        check_tools(&connection.tools);
        uses_the_tools(|tool, arguments| fixture.call(&connection, tool, arguments));
    }
    fixture.finish();
}

fn every_revision_over_http() {
    let skills = Skills::review();
    every_revision(Fixture::over_http(proxy(&skills)));
}

fn every_revision_over_the_bridge() {
    let skills = Skills::review();
    every_revision(Fixture::over_http(proxy(&skills).flag("--mcp", "stdio")));
}

fn several_connections_in_one_session() {
    let skills = Skills::review();
    for transport in ["http", "stdio"] {
        let mut fixture = Fixture::over_http(proxy(&skills).flag("--mcp", transport));
        let params = fixture.new_session("s");
        let first = fixture.connect(&entry(&params), MCP_2025);
        let second = fixture.connect(&entry(&params), "2026-07-28");
        uses_the_tools(|tool, arguments| fixture.call(&second, tool, arguments));
        fixture.order("disconnect", json!({ "connection": second.number })).expect("it was open");
        uses_the_tools(|tool, arguments| fixture.call(&first, tool, arguments));
        fixture.finish();
    }
}

fn any_json_reaches_a_command() {
    let skills = Skills::review();
    let (mut fixture, connection) = connected(&skills);
    for (input, seen) in [
        (Some(json!(null)), "null"),
        (Some(json!({})), "{}"),
        (Some(json!([])), "[]"),
        (Some(json!("text \n 'quoted' \u{1f600}")), "\"text \\n 'quoted' \u{1f600}\""),
        (Some(json!(-1.5)), "-1.5"),
        (Some(json!(u64::MAX)), "18446744073709551615"),
        (Some(json!(false)), "false"),
        (Some(json!({ "z": 1, "a": { "$ref": ["x"] } })), r#"{"z":1,"a":{"$ref":["x"]}}"#),
        (None, "(nothing)"),
    ] {
        let mut arguments = json!({ "skill": "counter", "tool": "echo" });
        if let Some(input) = &input {
            arguments["input"] = input.clone();
        }
        let (text, failed) = fixture.call(&connection, "call_skill_tool", arguments);
        assert_eq!((text.as_str(), failed), (format!("input: {seen}").as_str(), false), "{input:?}");
    }
    fixture.finish();
}

fn errors_list_what_is_valid() {
    let skills = Skills::review();
    let (mut fixture, connection) = connected(&skills);
    for (tool, arguments, words) in [
        ("activate_skill", json!({ "name": "reviews" }), &["SkillNotFound", "review", "counter"] as &[_]),
        ("activate_skill", json!({}), &["InvalidArguments", "`name`"]),
        ("activate_skill", json!({ "name": 7 }), &["InvalidArguments", "`name`"]),
        (
            "call_skill_tool",
            json!({ "skill": "counter", "tool": "ech" }),
            &["ToolNotFound", "echo", "missing"],
        ),
        ("call_skill_tool", json!({ "skill": "review", "tool": "echo" }), &["ToolNotFound", "no tools"]),
        ("call_skill_tool", json!({ "skill": "counter", "tool": "missing" }), &["no-such-program-anywhere"]),
        ("read_skill_file", json!({ "skill": "counter", "path": "a.md" }), &["SkillHasNoFiles", "echo"]),
        (
            "read_skill_file",
            json!({ "skill": "review", "path": "no.md" }),
            &["FileNotFound", "references/checklist.md"],
        ),
        ("read_skill_file", json!({ "skill": "review", "path": "references" }), &["NotAFile"]),
    ] {
        let (text, failed) = fixture.call(&connection, tool, arguments.clone());
        assert!(failed, "{tool} {arguments} succeeds: {text}");
        for words in words {
            assert!(text.contains(words), "{words:?} is not in the answer to {tool} {arguments}: {text}");
        }
    }
    for (path, words) in [("assets/empty.txt", "empty"), ("assets/blob.bin", "binary")] {
        let (text, _) =
            fixture.call(&connection, "read_skill_file", json!({ "skill": "review", "path": path }));
        assert!(text.contains(words), "{path}: {text}");
    }
    fixture.finish();
}

fn paths_outside_of_a_skill_are_refused() {
    let skills = Skills::review();
    let secret = skills.path().join("secret.txt");
    let mut paths: Vec<String> = [
        "../secret.txt",
        "references/../../secret.txt",
        "./../secret.txt",
        "references/../../../etc/passwd",
        "..\\secret.txt",
        "references\\..\\..\\secret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "C:\\Windows\\win.ini",
        "\\\\server\\share\\file",
        "file:///etc/passwd",
        "..%2fsecret.txt",
        "",
        ".",
        "..",
        "\0",
        "references/checklist.md\0.txt",
    ]
    .map(str::to_owned)
    .into();
    paths.push(secret.to_str().expect("text").to_owned());
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        let skill = skills.dir("review");
        symlink(&secret, skill.join("references/link.md")).expect("a link");
        symlink(skills.path(), skill.join("assets/up")).expect("a link");
        symlink("../../secret.txt", skill.join("references/relative.md")).expect("a link");
        symlink("checklist.md", skill.join("references/inside.md")).expect("a link");
        for path in ["references/link.md", "assets/up/secret.txt", "references/relative.md"] {
            paths.push(path.to_owned());
        }
    }
    let (mut fixture, connection) = connected(&skills);
    for path in paths {
        let arguments = json!({ "skill": "review", "path": path });
        let (text, failed) = fixture.call(&connection, "read_skill_file", arguments);
        assert!(failed && !text.contains("nobody may read") && !text.contains("root:"), "{path:?}: {text}");
    }
    #[cfg(unix)]
    {
        let arguments = json!({ "skill": "review", "path": "references/inside.md" });
        let (text, failed) = fixture.call(&connection, "read_skill_file", arguments);
        assert!(!failed && text.contains("- [ ] names"), "a link within the skill must work: {text}");
    }
    fixture.finish();
}

fn tools_return_changed_files() {
    let skills = Skills::review();
    let (mut fixture, connection) = connected(&skills);
    skills.add("review", "Reviews code.", "# Changed\nAltogether.");
    skills.write("review/references/new.md", "new");
    let (text, _) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(text.contains("# Changed") && text.contains("references/new.md"), "{text}");
    let arguments: Map<_, _> = [("skill", "review"), ("path", "references/new.md")]
        .map(|(k, v)| (k.to_owned(), v.into()))
        .into_iter()
        .collect();
    let (text, failed) = fixture.call(&connection, "read_skill_file", arguments.into());
    assert_eq!((text.trim(), failed), ("new", false));
    fixture.finish();
}

/// Measures the text that a model gets before it activates a skill, with one stored skill: the text before the first
/// prompt, and the definitions of the tools.
fn the_catalog_and_tools_stay_within_budget() {
    let skills = Skills::new();
    let description = "Reviews code changes for bugs, security holes, missing tests and unclear names.";
    let dir = skills.add("code-review", description, "# Review");
    let mut fixture = Fixture::initialized(
        Proxy::new().skill(&dir),
        &json!({ "mcpCapabilities": { "http": true }, "loadSession": true }),
    );
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let names: Vec<_> = connection.tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["activate_skill", "read_skill_file"]);
    let blocks = fixture.prompt("s", "hello");
    // If we don't know whether the agent shows MCP tools to the model, we add another sentence to the text. We don't count it
    // here.
    let catalog = texts(&blocks)[0].split(" The tools are those of").next().expect("a text");
    let catalog = catalog.chars().count();
    let tools: usize = connection.tools.iter().map(|tool| tool.to_string().chars().count()).sum();
    assert!(catalog + tools <= 1_300, "{catalog} + {tools} characters");
    fixture.finish();
}

/// With `--log debug`, each line about a session names the session, and the turn and the tool call if there is one.
fn the_log_follows_a_session() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(proxy(&skills).flag("--log", "debug"));
    fixture.new_session("other");
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/review" }] });
    let id = fixture.editor.request("session/prompt", prompt);
    let received = fixture.agent_receives();
    fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    fixture.agent_replies(&received, json!({ "result": { "stopReason": "end_turn" } }));
    fixture.editor.answer(&id);
    let log = fixture.finish().log.join("\n");
    let session = "session{key=2 id=\"s\"}";
    let turn = format!("{session}:turn{{request={id}}}");
    let call = format!("{turn}:tool_call{{tool=\"activate_skill\" skill=\"review\"}}");
    for line in [
        "session{key=1 id=\"other\"}: agent opened the session".to_owned(),
        format!("{session}: agent opened the session"),
        format!("{turn}: turn started"),
        format!("{turn}:fetch{{skill=\"review\"}}: fetched skill text for a prompt"),
        format!("{call}: tool call started"),
        format!("{call}: tool call tool=activate_skill failed=false"),
        format!("{turn}: turn ended"),
    ] {
        assert!(log.contains(&line), "{line:?} is not in the log:\n{log}");
    }
}
