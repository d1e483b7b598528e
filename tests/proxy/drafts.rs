//! `--drafts`: lists of skills, and skills that an editor provides for a session. Without the flag, neither has any
//! effect.

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::Proxy,
    fixture::{Fixture, MCP_2025, cwd, entry, texts},
    skills::Skills,
    wire::{assert_read, relay},
};

crate::trials!(
    an_editor_lists_skills,
    an_editor_provides_skills,
    skills_in_meta,
    invalid_skills_of_an_editor,
    an_agent_that_supports_the_draft,
    drafts_in_the_configuration,
    nothing_changes_without_the_flag,
);

fn with_drafts(proxy: Proxy) -> Fixture {
    Fixture::over_http(proxy.arg("--drafts"))
}

/// Opens a session with additional params and returns the params that the agent received.
fn open(fixture: &mut Fixture, id: &str, more: &Value) -> Value {
    let mut params = json!({ "cwd": cwd(), "mcpServers": [] });
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let (received, _) = fixture.exchange("session/new", params, json!({ "result": { "sessionId": id } }));
    received["params"].clone()
}

fn listed(fixture: &mut Fixture, method: &str, params: Value) -> Vec<String> {
    let id = fixture.editor.request(method, params);
    let answer = fixture.editor.answer(&id);
    let list = answer["result"]["skills"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
    list.map(|skill| skill["name"].as_str().expect("a name").to_owned()).collect()
}

/// Waits for the next `available_skills_update`. Returns the names in it.
fn announced(fixture: &mut Fixture) -> Vec<String> {
    let message = fixture.editor.wait_for("a list of skills", |message| {
        message["params"]["update"]["sessionUpdate"] == "available_skills_update"
    });
    let list = message["params"]["update"]["availableSkills"].as_array().expect("a list").iter();
    list.map(|skill| skill["name"].as_str().expect("a name").to_owned()).collect()
}

fn an_editor_lists_skills() {
    let skills = Skills::review();
    skills.add("greet", "Greets.", "Hello.");
    let mut fixture = Fixture::new(Proxy::new().flag("--skills", skills.path()).arg("--drafts"));
    let (_, answer) = fixture.exchange(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
        json!({ "result": { "protocolVersion": 1, "agentCapabilities": {} } }),
    );
    let session = &answer["result"]["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(
        (&session["agentSkill"]["supported"], &session["skills"]),
        (&json!(true), &json!({ "list": {} }))
    );
    assert_eq!(session["_meta"]["agentSkill"], session["agentSkill"]);
    assert_eq!(listed(&mut fixture, "skills/list", json!({})), ["greet", "review"]);
    fixture.new_session("s");
    assert_eq!(announced(&mut fixture), ["greet", "review"]);
    assert_eq!(listed(&mut fixture, "_skills/list", json!({ "sessionId": "s" })), ["greet", "review"]);
    skills.remove("greet");
    assert_eq!(announced(&mut fixture), ["review"]);
    skills.add("greet", "Greets.", "Hello.");
    assert_eq!(announced(&mut fixture), ["greet", "review"]);
    let id = fixture.editor.request("skills/list", json!({ "sessionId": "t" }));
    assert_eq!(fixture.editor.answer(&id)["error"]["code"], -32602);
    assert_eq!(fixture.received(), Vec::<Value>::new(), "the agent received nothing");
    fixture.finish();
}

fn an_editor_provides_skills() {
    let skills = Skills::review();
    let mut fixture = with_drafts(Proxy::new().flag("--skills", skills.path()));
    let deploy = json!({ "name": "deploy", "description": "Deploys.", "content": "# How to deploy\nCarefully.", "priority": 80 });
    let params = open(
        &mut fixture,
        "s",
        &json!({ "agentSkills": [deploy, { "name": "Review", "content": "# Mine" }] }),
    );
    assert!(!params.to_string().contains("agentSkills"), "{params}");
    fixture.editor.wait_for_log("ignoring client skill `Review`");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(fixture.skill_names(&connection), json!(["review", "deploy"]));
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(!is_error && text.contains("Carefully."), "{text}");
    let (text, _) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(!text.contains("# Mine"), "{text}");
    let (text, is_error) = fixture.call(
        &connection,
        "read_skill_file",
        json!({ "skill": "deploy", "path": "../review/SKILL.md" }),
    );
    assert!(is_error, "{text}");
    let menu = fixture.editor.menu();
    assert_eq!(names(&menu), ["skills", "review", "deploy"]);
    let blocks = fixture.prompt("s", "hello");
    assert!(texts(&blocks)[0].contains("<name>deploy</name>"), "{blocks:?}");
    // The skill was only provided for the first session, so we shouldn't see it here.
    let params = open(&mut fixture, "t", &json!({}));
    let other = fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(fixture.skill_names(&other), json!(["review"]));
    // If the library changes, the skill should still be there.
    skills.add("greet", "Greets.", "Hello.");
    fixture.list_changed(&connection);
    assert_eq!(fixture.skill_names(&connection), json!(["greet", "review", "deploy"]));
    fixture.editor.finish();
}

fn skills_in_meta() {
    let mut fixture = with_drafts(Proxy::new());
    let meta = json!({ "agentSkills": [{ "name": "deploy", "content": "# Deploys" }], "x": 1 });
    let params = open(&mut fixture, "s", &json!({ "_meta": meta }));
    assert_eq!(params["_meta"], json!({ "x": 1 }));
    assert_eq!(listed(&mut fixture, "_skills/list", json!({ "sessionId": "s" })), ["deploy"]);
    // We need to add the server even if we don't have any skills from anywhere else.
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(fixture.skill_names(&connection), json!(["deploy"]));
    fixture.editor.finish();
}

fn invalid_skills_of_an_editor() {
    let skills = Skills::review();
    let mut fixture = with_drafts(Proxy::new().flag("--skills", skills.path()));
    let many: Vec<_> =
        (0..10_000).map(|number| json!({ "name": format!("s{number}"), "content": "x" })).collect();
    for (list, words) in [
        (json!(7), "should be a list"),
        (json!([{ "name": "a", "content": "x" }, { "name": "A", "content": "x" }]), "skill 2, `A`"),
        (
            json!([{ "name": "../../etc", "content": 1 }]),
            "skill 1, `../../etc`: `content` should be a string",
        ),
        (json!([{ "name": "big", "content": "x".repeat(3_000_000) }]), "skill 1, `big`"),
        (json!(many), "at most 100 skills"),
    ] {
        let params = json!({ "cwd": cwd(), "mcpServers": [], "agentSkills": list });
        let id = fixture.editor.request("session/new", params);
        let error = fixture.editor.answer(&id)["error"].take();
        assert_eq!(error["code"], -32602);
        assert!(error["message"].as_str().expect("text").contains(words), "{error}");
    }
    assert_eq!(fixture.received(), Vec::<Value>::new(), "the agent received nothing");
    // Check that we never use the name of a skill as a path.
    let list = json!([{ "name": "../../../etc/passwd", "content": "x", "files": { "../x": "y" } }]);
    let params = open(&mut fixture, "s", &json!({ "agentSkills": list }));
    fixture.editor.wait_for_log("ignoring unknown fields in client skill `../../../etc/passwd`: `files`");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let (text, is_error) = fixture.call(
        &connection,
        "read_skill_file",
        json!({ "skill": "../../../etc/passwd", "path": "../x" }),
    );
    assert!(is_error, "{text}");
    fixture.editor.finish();
}

fn an_agent_that_supports_the_draft() {
    let skills = Skills::review();
    let proxy = Proxy::new().flag("--skills", skills.path()).arg("--drafts");
    let offer = json!({ "sessionCapabilities": { "agentSkill": { "supported": true }, "skills": {} } });
    let mut fixture = Fixture::initialized(proxy, &offer);
    let list = json!([{ "name": "deploy", "content": "x", "unknown": 1.50 }]);
    let params = open(&mut fixture, "s", &json!({ "agentSkills": list }));
    assert_eq!(params["agentSkills"], list);
    let (_, answer) = fixture.exchange(
        "skills/list",
        json!({ "sessionId": "s" }),
        json!({ "result": { "skills": [{ "name": "its-own", "description": "d" }] } }),
    );
    let found: Vec<_> =
        answer["result"]["skills"].as_array().expect("a list").iter().map(|skill| &skill["name"]).collect();
    assert_eq!(found, ["its-own", "review"]);
    assert_eq!(announced(&mut fixture), ["review"]);
    fixture.editor.menu();
    fixture.finish();
}

fn drafts_in_the_configuration() {
    let skills = Skills::review();
    let file = skills.write("skills.yaml", "skills: [review]\ndrafts: true\n");
    let mut fixture = Fixture::over_http(Proxy::new().flag("--config", &file));
    fixture.new_session("s");
    assert_eq!(listed(&mut fixture, "skills/list", json!({ "sessionId": "s" })), ["review"]);
    assert_eq!(announced(&mut fixture), ["review"]);
    fixture.editor.menu();
    fixture.finish();
}

/// There is no skill, so that nothing else is added either.
fn nothing_changes_without_the_flag() {
    let sent = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1, "clientCapabilities":{}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","agentSkills":[{"name":7}] ,"mcpServers":[],"_meta":{"agentSkills":0}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":3,"method":"skills/list","params":{ "sessionId":"s"}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":4,"method":"_skills/list"}"#,
        "\n",
    );
    let said = concat!(
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{ }}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":4,"result":{"skills":[ ]}}"#,
        "\n",
    );
    let transcript = relay(Proxy::new(), sent.as_bytes(), said.as_bytes(), 4);
    // The order of these lines isn't always the same: while we set up a session, we let messages through if they don't belong
    // to a session that we know.
    let lines = |text: &str| {
        let mut lines: Vec<_> = text.split_inclusive('\n').map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(lines(&String::from_utf8_lossy(&transcript.agent_received)), lines(sent));
    assert_read(&transcript.editor_received, said.as_bytes());
}
