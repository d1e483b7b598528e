//! `--drafts`: lists of skills, and skills that an editor brings for a session; and that nothing of it is seen without.

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::Proxy,
    fixtures::Skills,
    stage::{MCP_2025, Stage, cwd, entry, texts},
    wire::{assert_read, tape},
};

crate::trials!(
    an_editor_lists_skills,
    an_editor_brings_skills,
    a_program_of_the_sdk,
    an_editor_that_brings_nonsense,
    an_agent_that_knows_the_draft,
    from_a_file,
    without_the_flag,
);

fn stage(proxy: Proxy) -> Stage {
    Stage::over_http(proxy.arg("--drafts"))
}

/// A session for which the editor says more. Returns what the agent got.
fn open(stage: &mut Stage, id: &str, more: &Value) -> Value {
    let mut params = json!({ "cwd": cwd(), "mcpServers": [] });
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let (received, _) = stage.exchange("session/new", params, json!({ "result": { "sessionId": id } }));
    received["params"].clone()
}

fn listed(stage: &mut Stage, method: &str, params: Value) -> Vec<String> {
    let id = stage.editor.request(method, params);
    let answer = stage.editor.answer(&id);
    let list = answer["result"]["skills"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
    list.map(|it| it["name"].as_str().expect("a name").to_owned()).collect()
}

fn an_editor_lists_skills() {
    let skills = Skills::review();
    skills.add("greet", "Greets.", "Hello.");
    let mut stage = Stage::new(Proxy::new().flag("--skills", skills.path()).arg("--drafts"));
    let (_, answer) = stage.exchange(
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
    assert_eq!(listed(&mut stage, "skills/list", json!({})), ["greet", "review"]);
    stage.new_session("s");
    assert_eq!(listed(&mut stage, "_skills/list", json!({ "sessionId": "s" })), ["greet", "review"]);
    let id = stage.editor.request("skills/list", json!({ "sessionId": "t" }));
    assert_eq!(stage.editor.answer(&id)["error"]["code"], -32602);
    assert_eq!(stage.received(), Vec::<Value>::new(), "the agent has heard of nothing");
    stage.finish();
}

fn an_editor_brings_skills() {
    let skills = Skills::review();
    let mut stage = stage(Proxy::new().flag("--skills", skills.path()));
    let deploy = json!({ "name": "deploy", "description": "Deploys.", "content": "# How to deploy\nCarefully.", "priority": 80 });
    let params =
        open(&mut stage, "s", &json!({ "agentSkills": [deploy, { "name": "Review", "content": "# Mine" }] }));
    assert!(!params.to_string().contains("agentSkills"), "{params}");
    stage.editor.logged("the client's skill `Review` is ignored");
    let connection = stage.connect(&entry(&params), MCP_2025);
    assert_eq!(stage.names(&connection), json!(["review", "deploy"]));
    let (text, is_error) = stage.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(!is_error && text.contains("Carefully."), "{text}");
    let (text, _) = stage.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(!text.contains("# Mine"), "{text}");
    let (text, is_error) = stage.call(
        &connection,
        "read_skill_file",
        json!({ "skill": "deploy", "path": "../review/SKILL.md" }),
    );
    assert!(is_error, "{text}");
    let menu = stage.editor.menu();
    assert_eq!(names(&menu), ["skills", "review", "deploy"]);
    let blocks = stage.prompt("s", "hello");
    assert!(texts(&blocks)[0].contains("<name>deploy</name>"), "{blocks:?}");
    // Another session knows nothing of it.
    let params = open(&mut stage, "t", &json!({}));
    let other = stage.connect(&entry(&params), MCP_2025);
    assert_eq!(stage.names(&other), json!(["review"]));
    // It stays when the library changes.
    skills.add("greet", "Greets.", "Hello.");
    stage.heard(&connection);
    assert_eq!(stage.names(&connection), json!(["greet", "review", "deploy"]));
    drop(stage.editor.finish());
}

fn a_program_of_the_sdk() {
    let mut stage = stage(Proxy::new());
    let meta = json!({ "agentSkills": [{ "name": "deploy", "content": "# Deploys" }], "x": 1 });
    let params = open(&mut stage, "s", &json!({ "_meta": meta }));
    assert_eq!(params["_meta"], json!({ "x": 1 }));
    assert_eq!(listed(&mut stage, "_skills/list", json!({ "sessionId": "s" })), ["deploy"]);
    // There is nothing else, and the agent has the server for it.
    let connection = stage.connect(&entry(&params), MCP_2025);
    assert_eq!(stage.names(&connection), json!(["deploy"]));
    drop(stage.editor.finish());
}

fn an_editor_that_brings_nonsense() {
    let skills = Skills::review();
    let mut stage = stage(Proxy::new().flag("--skills", skills.path()));
    let many: Vec<_> = (0..10_000).map(|it| json!({ "name": format!("s{it}"), "content": "x" })).collect();
    for (list, words) in [
        (json!(7), "has to be a list"),
        (json!([{ "name": "a", "content": "x" }, { "name": "A", "content": "x" }]), "skill 2, `A`"),
        (json!([{ "name": "../../etc", "content": 1 }]), "skill 1, `../../etc`: its `content` is no text"),
        (json!([{ "name": "big", "content": "x".repeat(3_000_000) }]), "skill 1, `big`"),
        (json!(many), "more than 100"),
    ] {
        let params = json!({ "cwd": cwd(), "mcpServers": [], "agentSkills": list });
        let id = stage.editor.request("session/new", params);
        let error = stage.editor.answer(&id)["error"].take();
        assert_eq!(error["code"], -32602);
        assert!(error["message"].as_str().expect("text").contains(words), "{error}");
    }
    assert_eq!(stage.received(), Vec::<Value>::new(), "the agent has seen none of it");
    // A name is a name and never a path.
    let list = json!([{ "name": "../../../etc/passwd", "content": "x", "files": { "../x": "y" } }]);
    let params = open(&mut stage, "s", &json!({ "agentSkills": list }));
    stage.editor.logged("has `files`, which means nothing here");
    let connection = stage.connect(&entry(&params), MCP_2025);
    let (text, is_error) =
        stage.call(&connection, "read_skill_file", json!({ "skill": "../../../etc/passwd", "path": "../x" }));
    assert!(is_error, "{text}");
    drop(stage.editor.finish());
}

fn an_agent_that_knows_the_draft() {
    let skills = Skills::review();
    let proxy = Proxy::new().flag("--skills", skills.path()).arg("--drafts");
    let offer = json!({ "sessionCapabilities": { "agentSkill": { "supported": true }, "skills": {} } });
    let mut stage = Stage::initialized(proxy, &offer);
    let list = json!([{ "name": "deploy", "content": "x", "unknown": 1.50 }]);
    let params = open(&mut stage, "s", &json!({ "agentSkills": list }));
    assert_eq!(params["agentSkills"], list);
    let (_, answer) = stage.exchange(
        "skills/list",
        json!({ "sessionId": "s" }),
        json!({ "result": { "skills": [{ "name": "its-own", "description": "d" }] } }),
    );
    let found: Vec<_> =
        answer["result"]["skills"].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert_eq!(found, ["its-own", "review"]);
    stage.editor.menu();
    stage.finish();
}

fn from_a_file() {
    let skills = Skills::review();
    let file = skills.write("skills.yaml", "skills: [review]\ndrafts: true\n");
    let mut stage = Stage::over_http(Proxy::new().flag("--config", &file));
    stage.new_session("s");
    assert_eq!(listed(&mut stage, "skills/list", json!({ "sessionId": "s" })), ["review"]);
    stage.editor.menu();
    stage.finish();
}

/// With no skill, so that nothing else is added.
fn without_the_flag() {
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
    let taped = tape(Proxy::new(), sent.as_bytes(), said.as_bytes(), 4);
    // A request that sets a session up may be overtaken by what is about none that is known.
    let lines = |text: &str| {
        let mut lines: Vec<_> = text.split_inclusive('\n').map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(lines(&String::from_utf8_lossy(&taped.heard)), lines(sent));
    assert_read(&taped.read, said.as_bytes());
}
