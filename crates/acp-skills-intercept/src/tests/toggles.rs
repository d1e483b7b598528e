//! Skills as options of the client's own.

use serde_json::json;

use super::*;

const MODE: &str = r#"{"id":"mode",  "type":"select","currentValue":1.10,"name":"Mode","x":{"b":[ ]}}"#;

fn world_of(names: &[&str], capabilities: &Value) -> World {
    let policy = Policy { toggles: true, ..policy() };
    let mut world = World::with_skills(policy, skills(names));
    world.request(0, "initialize", &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    world.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": {} }));
    world
}

fn world() -> World {
    world_of(&["pdf", "review"], &json!({ "session": { "configOptions": { "boolean": {} } } }))
}

fn open(world: &mut World, result: &str) -> Out {
    world.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    world.agent_line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}\n"))
}

fn set(world: &mut World, request: u64, option: &str, value: &Value) -> Out {
    let params = json!({ "sessionId": "s", "configId": option, "type": "boolean", "value": value });
    world.request(request, "session/set_config_option", &params)
}

/// Ids and values, ours as they are, of others the id alone.
fn options(list: &Value) -> Vec<String> {
    let option = |it: &Value| match it["currentValue"].as_bool() {
        Some(value) => format!("{}={value}", it["id"].as_str().unwrap()),
        None => it["id"].as_str().unwrap().to_owned(),
    };
    list.as_array().unwrap().iter().map(option).collect()
}

#[test]
fn each_skill_is_a_switch_behind_the_agents() {
    let mut world = world();
    let mut actions = Actions::default();
    world.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"sessionId\":\"s\",\"configOptions\":[{MODE}],\"y\":1e3}}}}\n"
    );
    let Pass::Edited(edited) = world.interceptor.from_agent(line.as_bytes(), &mut actions) else { panic!() };
    let edited = String::from_utf8(edited).unwrap();
    // The agent's own passes byte for byte.
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
    // It is turned off, and everything follows.
    let out = set(&mut world, 2, "acp-skills:pdf", &json!(false));
    assert!(out.to_agent.is_empty(), "{out:?}");
    let answer = out.to_client.iter().find(|it| it["id"] == 2).unwrap();
    assert_eq!(
        options(&answer["result"]["configOptions"]),
        ["mode", "acp-skills:pdf=false", "acp-skills:review=true"]
    );
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review"]);
    // The agent's own are the agent's, and its answer and its updates get ours.
    let out = set(&mut world, 3, "mode", &json!("x"));
    assert_eq!(out.agent()["params"]["configId"], "mode");
    let mode = serde_json::from_str::<Value>(MODE).unwrap();
    let out = world.respond(3, &json!({ "configOptions": [mode] }));
    assert_eq!(
        options(&out.client()["result"]["configOptions"]),
        ["mode", "acp-skills:pdf=false", "acp-skills:review=true"]
    );
    let update =
        json!({ "sessionUpdate": "config_option_update", "configOptions": [mode, { "id": "other" }] });
    let out = world.update("s", &update);
    let list = &out.client()["params"]["update"]["configOptions"];
    assert_eq!(options(list), ["mode", "other", "acp-skills:pdf=false", "acp-skills:review=true"]);
    // By a command the client is told, with the agent's last list.
    let out = world.prompt(4, "s", &["/skills on pdf"]);
    let told = out
        .to_client
        .iter()
        .find(|it| it["params"]["update"]["sessionUpdate"] == "config_option_update")
        .unwrap();
    let list = &told["params"]["update"]["configOptions"];
    assert_eq!(options(list), ["mode", "other", "acp-skills:pdf=true", "acp-skills:review=true"]);
    // And so when there are others.
    let out = world.notices(skills(&["new"]));
    let told = out
        .to_client
        .iter()
        .find(|it| it["params"]["update"]["sessionUpdate"] == "config_option_update")
        .unwrap();
    assert_eq!(options(&told["params"]["update"]["configOptions"]), ["mode", "other", "acp-skills:new=true"]);
}

#[test]
fn who_shows_none_gets_none() {
    for capabilities in
        [json!({}), json!({ "session": { "configOptions": { "boolean": null } } }), json!({ "session": {} })]
    {
        let mut world = world_of(&["pdf"], &capabilities);
        let line = format!("{{\"sessionId\":\"s\",\"configOptions\":[{MODE}]}}");
        assert_eq!(options(&open(&mut world, &line).client()["result"]["configOptions"]), ["mode"]);
        assert_eq!(set(&mut world, 2, "acp-skills:pdf", &json!(false)).agent()["params"]["value"], false);
        let out = world.prompt(3, "s", &["/skills off pdf"]);
        assert!(!format!("{out:?}").contains("config_option"), "{out:?}");
    }
    // Nor does anybody who did not ask for them.
    let mut world = World::new(policy());
    let capabilities = json!({ "session": { "configOptions": { "boolean": {} } } });
    world.request(0, "initialize", &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    world.respond(0, &json!({ "protocolVersion": 1 }));
    assert_eq!(open(&mut world, "{\"sessionId\":\"s\"}").client()["result"], json!({ "sessionId": "s" }));
}

#[test]
fn an_agent_without_options() {
    for result in [
        "{\"sessionId\":\"s\"}",
        "{\"sessionId\":\"s\",\"configOptions\":null}",
        "{\"sessionId\":\"s\",\"configOptions\":[]}",
    ] {
        let out = open(&mut world(), result);
        let list = &out.client()["result"]["configOptions"];
        assert_eq!(options(list), ["acp-skills:pdf=true", "acp-skills:review=true"], "{result}");
    }
    // A session without skills has nothing to switch.
    let mut world = world_of(&[], &json!({ "session": { "configOptions": { "boolean": {} } } }));
    assert_eq!(open(&mut world, "{\"sessionId\":\"s\"}").client()["result"], json!({ "sessionId": "s" }));
}

#[test]
fn ids_do_not_clash() {
    let theirs =
        r#"{"sessionId":"s","configOptions":[{"id":"acp-skills:pdf","type":"boolean","currentValue":true}]}"#;
    let mut world = world();
    let out = open(&mut world, theirs);
    let list = &out.client()["result"]["configOptions"];
    assert_eq!(options(list), ["acp-skills:pdf=true", "acp-skills-2:pdf=true", "acp-skills-2:review=true"]);
    // The other proxy's is the other proxy's.
    assert_eq!(
        set(&mut world, 2, "acp-skills:pdf", &json!(false)).agent()["params"]["configId"],
        "acp-skills:pdf"
    );
    assert!(set(&mut world, 3, "acp-skills-2:pdf", &json!(false)).to_agent.is_empty());
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review"]);
}

#[test]
fn wrong_values_are_errors() {
    let mut world = world();
    open(&mut world, "{\"sessionId\":\"s\"}");
    for (option, value) in
        [("acp-skills:pdf", json!("false")), ("acp-skills:pdf", json!(0)), ("acp-skills:gone", json!(true))]
    {
        let out = set(&mut world, 2, option, &value);
        assert_eq!(out.client()["error"]["code"], -32602, "{out:?}");
        assert!(out.to_agent.is_empty());
    }
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["pdf", "review"]);
}

#[test]
fn there_are_at_most_thirty() {
    let names: Vec<_> = (0..40).map(|number| format!("skill-{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut world = world_of(&names, &json!({ "session": { "configOptions": { "boolean": {} } } }));
    let out = open(&mut world, "{\"sessionId\":\"s\"}");
    assert_eq!(out.client()["result"]["configOptions"].as_array().unwrap().len(), 30);
}
