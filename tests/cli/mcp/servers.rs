//! `mcp` with MCP servers behind skills, which are shell scripts here.

use serde_json::{Value, json};

use super::{
    client::{Client, configured},
    url,
};
use crate::fixture::Fixture;

/// A server with the tools `look`, which only reads, and `change`. They return the token of our own server, if there is one.
const SERVER: &str = r#"#!/bin/sh
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"kit","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"change","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*) result='{"content":[{"type":"text","text":"token: '$ACP_SKILLS_MCP_TOKEN'."}]}' ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Starts the program with a skill whose server has this value of `ask`.
fn start(fixture: &Fixture, ask: &str, capabilities: Value) -> Client {
    fixture.write("server.sh", SERVER);
    let config = format!(
        "skills:\n  - name: kit\n    description: Has tools.\n    mcp: {{ command: sh, args: [server.sh], ask: {ask} }}\n  - skill: ./skills/pdf\n"
    );
    fixture.write("skills.yaml", &config);
    let mut command = configured(fixture, &["--config", "skills.yaml", "--allow-scripts"]);
    command.env("ACP_SKILLS_MCP_TOKEN", "a-token-for-the-test");
    let mut client = Client::of(command);
    client.initialize("some-client", capabilities);
    client
}

fn call(tool: &str) -> Value {
    let arguments = json!({ "skill": "kit", "tool": tool, "input": { "text": "please" } });
    let params = json!({ "name": "call_skill_tool", "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params })
}

/// Calls a tool. Returns the text of the result. If `answer` is given, the client is asked first.
fn called(client: &mut Client, tool: &str, answer: Option<&Value>) -> String {
    client.send(&call(tool));
    let message = |message: &Value| message["id"] == "call" || message["method"] == "elicitation/create";
    let mut received = client.receive_until(message);
    assert_eq!(received["method"] == "elicitation/create", answer.is_some(), "{received}");
    if let Some(answer) = answer {
        let text = received["params"]["message"].as_str().unwrap();
        assert!(text.contains("`kit`") && text.contains(tool) && text.contains("please"), "{text}");
        client.send(&json!({ "jsonrpc": "2.0", "id": received["id"], "result": answer }));
        received = client.receive_until(message);
    }
    received["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn the_user_is_asked_about_calls() {
    let accept = json!({ "action": "accept", "content": {} });
    let decline = json!({ "action": "decline" });
    let cancel = json!({ "action": "cancel" });
    for (ask, has_forms, tool, answer, expected) in [
        ("always", false, "look", None, "ask: never"),
        ("always", false, "change", None, "ask: never"),
        ("writes", false, "look", None, "token"),
        ("writes", false, "change", None, "ask: never"),
        ("never", false, "change", None, "token"),
        ("never", true, "change", None, "token"),
        ("writes", true, "look", None, "token"),
        ("always", true, "look", Some(&accept), "token"),
        ("writes", true, "change", Some(&accept), "token"),
        ("always", true, "look", Some(&decline), "declined"),
        ("always", true, "look", Some(&cancel), "declined"),
    ] {
        let fixture = Fixture::new();
        let capabilities = if has_forms { json!({ "elicitation": {} }) } else { json!({}) };
        let mut client = start(&fixture, ask, capabilities);
        let text = called(&mut client, tool, answer);
        assert!(text.contains(expected), "{ask} {has_forms} {tool} {answer:?}: {text}");
        assert_eq!(client.end().0, Some(0));
    }
}

#[test]
fn an_answer_can_be_for_all_calls_of_one_tool() {
    let fixture = Fixture::new();
    let mut client = start(&fixture, "always", json!({ "elicitation": { "form": {} } }));
    let always = json!({ "action": "accept", "content": { "always": true } });
    let once = json!({ "action": "accept", "content": { "always": false } });
    called(&mut client, "look", Some(&once));
    called(&mut client, "look", Some(&always));
    called(&mut client, "look", None);
    called(&mut client, "change", Some(&once));
    called(&mut client, "change", Some(&once));
    assert_eq!(client.end().0, Some(0));
}

/// Each project of a configuration can have another server behind the same skill, and a relative path leads to another program there.
#[test]
fn an_answer_is_only_for_the_server_of_the_project() {
    for has_one_skill in [false, true] {
        let fixture = Fixture::new();
        let skill = |name: &str, description: &str| {
            let server = "{ command: sh, args: [server.sh], ask: always }";
            format!("[{{ name: {name}, description: {description}, mcp: {server} }}]\n")
        };
        let project = |name: &str| {
            fixture.write(&format!("{name}/server.sh"), SERVER);
            let own = if has_one_skill { "other" } else { "kit" };
            format!("  - path: ./{name}\n    skills: {}", skill(own, &format!("Has tools of {name}.")))
        };
        let common =
            if has_one_skill { format!("skills: {}", skill("kit", "Has tools.")) } else { String::new() };
        let config = format!("{common}projects:\n{}{}", project("one"), project("two"));
        fixture.write("skills.yaml", &config);
        let mut client = Client::of(configured(&fixture, &["--config", "skills.yaml"]));
        client.initialize("some-client", json!({ "elicitation": {}, "roots": {} }));
        let use_root = |client: &mut Client, name: &str| {
            let question = client.receive_until(|message| message["method"] == "roots/list");
            let roots = json!([{ "uri": url(&fixture.dir.join(name)) }]);
            client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": roots } }));
            while !client.description().contains(&format!("Has tools of {name}.")) {}
        };
        use_root(&mut client, "one");
        let always = json!({ "action": "accept", "content": { "always": true } });
        called(&mut client, "look", Some(&always));
        called(&mut client, "look", None);
        for (root, is_asked) in [("two", true), ("one", false)] {
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
            use_root(&mut client, root);
            let once = json!({ "action": "accept", "content": {} });
            called(&mut client, "look", is_asked.then_some(&once));
        }
        assert_eq!(client.end().0, Some(0));
    }
}

#[test]
fn programs_of_skills_do_not_get_the_token() {
    let fixture = Fixture::new();
    fixture.write("skills/pdf/scripts/show.sh", "#!/bin/sh\necho \"token: $ACP_SKILLS_MCP_TOKEN.\"\n");
    let mut client = start(&fixture, "never", json!({}));
    assert_eq!(called(&mut client, "look", None), "token: .");
    let arguments = json!({ "skill": "pdf", "script": "scripts/show.sh" });
    let result = client.request("tools/call", json!({ "name": "run_skill_script", "arguments": arguments }));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("token: ."), "{text}");
    assert_eq!(client.end().0, Some(0));
}
