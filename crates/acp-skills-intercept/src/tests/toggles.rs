//! Skills as configuration options in the client.

use serde_json::json;

use super::*;

const MODE: &str = r#"{"id":"mode",  "type":"select","currentValue":1.10,"name":"Mode","x":{"b":[ ]}}"#;

fn fixture_of(names: &[&str], capabilities: &Value) -> Fixture {
    let policy = Policy { toggles: true, ..policy() };
    let mut fixture = Fixture::with_skills(policy, skills(names));
    fixture.request(0, "initialize", &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    fixture.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": {} }));
    fixture
}

fn fixture() -> Fixture {
    fixture_of(&["pdf", "review"], &json!({ "session": { "configOptions": { "boolean": {} } } }))
}

fn open(fixture: &mut Fixture, result: &str) -> Out {
    fixture.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    fixture.agent_line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}\n"))
}

fn set(fixture: &mut Fixture, request: u64, option: &str, value: &Value) -> Out {
    let params = json!({ "sessionId": "s", "configId": option, "type": "boolean", "value": value });
    fixture.request(request, "session/set_config_option", &params)
}

/// Returns ids and values of our options, and only the ids of others.
fn options(list: &Value) -> Vec<String> {
    let option = |option: &Value| match option["currentValue"].as_bool() {
        Some(value) => format!("{}={value}", option["id"].as_str().unwrap()),
        None => option["id"].as_str().unwrap().to_owned(),
    };
    list.as_array().unwrap().iter().map(option).collect()
}

#[test]
fn skills_are_added_to_the_agents_options() {
    let mut fixture = fixture();
    let mut actions = Actions::default();
    fixture.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"sessionId\":\"s\",\"configOptions\":[{MODE}],\"y\":1e3}}}}\n"
    );
    let Pass::Edited(edited) = fixture.interceptor.from_agent(line.as_bytes(), &mut actions) else {
        panic!()
    };
    let edited = String::from_utf8(edited).unwrap();
    // The agent's option is forwarded byte for byte.
    let (before, after) = line.split_at(line.find(MODE).unwrap() + MODE.len());
    assert!(edited.starts_with(before) && edited.ends_with(after), "{edited}");
    let list = &serde_json::from_str::<Value>(&edited).unwrap()["result"]["configOptions"];
    assert_eq!(options(list), ["mode", "acp-skills:pdf=true", "acp-skills:review=true"]);
    assert_eq!(
        list[1],
        json!({
            "id": "acp-skills:pdf", "name": "Skill: pdf", "description": "Does pdf <well>.", "category": "_skills",
            "type": "boolean", "currentValue": true,
        })
    );
    // This also disables the skill in the menu and on the server.
    let out = set(&mut fixture, 2, "acp-skills:pdf", &json!(false));
    assert!(out.to_agent.is_empty(), "{out:?}");
    let answer = out.to_client.iter().find(|line| line["id"] == 2).unwrap();
    assert_eq!(
        options(&answer["result"]["configOptions"]),
        ["mode", "acp-skills:pdf=false", "acp-skills:review=true"]
    );
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review"]);
    // This option is handled by the agent, and we only add ours to its response and its updates.
    let out = set(&mut fixture, 3, "mode", &json!("x"));
    assert_eq!(out.agent()["params"]["configId"], "mode");
    let mode = serde_json::from_str::<Value>(MODE).unwrap();
    let out = fixture.respond(3, &json!({ "configOptions": [mode] }));
    assert_eq!(
        options(&out.client()["result"]["configOptions"]),
        ["mode", "acp-skills:pdf=false", "acp-skills:review=true"]
    );
    let update =
        json!({ "sessionUpdate": "config_option_update", "configOptions": [mode, { "id": "other" }] });
    let out = fixture.update("s", &update);
    let list = &out.client()["params"]["update"]["configOptions"];
    assert_eq!(options(list), ["mode", "other", "acp-skills:pdf=false", "acp-skills:review=true"]);
    // After a command, the client gets an update that includes the last list from the agent.
    let out = fixture.prompt(4, "s", &["/skills on pdf"]);
    let told = out
        .to_client
        .iter()
        .find(|line| line["params"]["update"]["sessionUpdate"] == "config_option_update")
        .unwrap();
    let list = &told["params"]["update"]["configOptions"];
    assert_eq!(options(list), ["mode", "other", "acp-skills:pdf=true", "acp-skills:review=true"]);
    // The same happens when the skills change.
    let out = fixture.notices(skills(&["new"]));
    let told = out
        .to_client
        .iter()
        .find(|line| line["params"]["update"]["sessionUpdate"] == "config_option_update")
        .unwrap();
    assert_eq!(options(&told["params"]["update"]["configOptions"]), ["mode", "other", "acp-skills:new=true"]);
}

#[test]
fn a_client_without_boolean_options_gets_none() {
    for capabilities in
        [json!({}), json!({ "session": { "configOptions": { "boolean": null } } }), json!({ "session": {} })]
    {
        let mut fixture = fixture_of(&["pdf"], &capabilities);
        let line = format!("{{\"sessionId\":\"s\",\"configOptions\":[{MODE}]}}");
        assert_eq!(options(&open(&mut fixture, &line).client()["result"]["configOptions"]), ["mode"]);
        assert_eq!(set(&mut fixture, 2, "acp-skills:pdf", &json!(false)).agent()["params"]["value"], false);
        let out = fixture.prompt(3, "s", &["/skills off pdf"]);
        assert!(!format!("{out:?}").contains("config_option"), "{out:?}");
    }
    // These options are disabled by default.
    let mut fixture = Fixture::new(policy());
    let capabilities = json!({ "session": { "configOptions": { "boolean": {} } } });
    fixture.request(0, "initialize", &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    fixture.respond(0, &json!({ "protocolVersion": 1 }));
    assert_eq!(open(&mut fixture, "{\"sessionId\":\"s\"}").client()["result"], json!({ "sessionId": "s" }));
}

#[test]
fn an_agent_without_options_gets_ours() {
    for result in [
        "{\"sessionId\":\"s\"}",
        "{\"sessionId\":\"s\",\"configOptions\":null}",
        "{\"sessionId\":\"s\",\"configOptions\":[]}",
    ] {
        let out = open(&mut fixture(), result);
        let list = &out.client()["result"]["configOptions"];
        assert_eq!(options(list), ["acp-skills:pdf=true", "acp-skills:review=true"], "{result}");
    }
    // Without any skills, there should not be any options.
    let mut fixture = fixture_of(&[], &json!({ "session": { "configOptions": { "boolean": {} } } }));
    assert_eq!(open(&mut fixture, "{\"sessionId\":\"s\"}").client()["result"], json!({ "sessionId": "s" }));
}

#[test]
fn ids_are_unique() {
    let theirs =
        r#"{"sessionId":"s","configOptions":[{"id":"acp-skills:pdf","type":"boolean","currentValue":true}]}"#;
    let mut fixture = fixture();
    let out = open(&mut fixture, theirs);
    let list = &out.client()["result"]["configOptions"];
    assert_eq!(options(list), ["acp-skills:pdf=true", "acp-skills-2:pdf=true", "acp-skills-2:review=true"]);
    // This option is from the other proxy, so forward it.
    assert_eq!(
        set(&mut fixture, 2, "acp-skills:pdf", &json!(false)).agent()["params"]["configId"],
        "acp-skills:pdf"
    );
    assert!(set(&mut fixture, 3, "acp-skills-2:pdf", &json!(false)).to_agent.is_empty());
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review"]);
}

#[test]
fn wrong_values_are_errors() {
    let mut fixture = fixture();
    open(&mut fixture, "{\"sessionId\":\"s\"}");
    for (option, value) in
        [("acp-skills:pdf", json!("false")), ("acp-skills:pdf", json!(0)), ("acp-skills:gone", json!(true))]
    {
        let out = set(&mut fixture, 2, option, &value);
        assert_eq!(out.client()["error"]["code"], -32602, "{out:?}");
        assert!(out.to_agent.is_empty());
    }
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["pdf", "review"]);
}

#[test]
fn there_are_at_most_thirty_switches() {
    let names: Vec<_> = (0..40).map(|number| format!("skill-{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut fixture = fixture_of(&names, &json!({ "session": { "configOptions": { "boolean": {} } } }));
    let out = open(&mut fixture, "{\"sessionId\":\"s\"}");
    assert_eq!(out.client()["result"]["configOptions"].as_array().unwrap().len(), 30);
}
