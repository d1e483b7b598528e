//! Where the server entry and the catalog are added.

use serde_json::{Value, json};

use super::*;

#[test]
fn the_transport_depends_on_the_agent() {
    for (capabilities, mode, expected) in [
        (json!({}), McpMode::Auto, Some("stdio")),
        (json!({ "mcpCapabilities": { "http": false } }), McpMode::Auto, Some("stdio")),
        (json!({ "mcpCapabilities": { "http": true } }), McpMode::Auto, Some("http")),
        (json!({ "mcpCapabilities": { "http": true, "acp": true } }), McpMode::Auto, Some("acp")),
        (json!({ "mcpCapabilities": { "acp": {} } }), McpMode::Auto, Some("acp")),
        (json!({ "mcpCapabilities": { "acp": null } }), McpMode::Auto, Some("stdio")),
        (json!({ "mcpCapabilities": { "http": true } }), McpMode::Stdio, Some("stdio")),
        (json!({}), McpMode::Http, Some("http")),
        (json!({}), McpMode::Acp, Some("acp")),
        (json!({ "mcpCapabilities": { "http": true } }), McpMode::Off, None),
    ] {
        let mut fixture = Fixture::new(Policy { mcp: mode, ..policy() }).initialized("x", &capabilities);
        let new = fixture.new_session(1, "s");
        let servers = new["params"]["mcpServers"].as_array().unwrap();
        let kind = servers.first().map(|server| server["type"].as_str().unwrap_or("stdio"));
        assert_eq!(kind, expected, "{capabilities} {mode:?}");
    }
}

#[test]
fn entries_satisfy_strict_agents() {
    let entry = |capabilities: Value| {
        Fixture::new(policy()).initialized("x", &capabilities).new_session(1, "s")["params"]["mcpServers"][0]
            .clone()
    };
    assert_eq!(
        entry(json!({})),
        json!({ "name": "acp-skills", "command": "/bin/acp-skills-proxy", "args": ["mcp-bridge"], "env": [{ "name": "A", "value": "1" }] })
    );
    assert_eq!(
        entry(json!({ "mcpCapabilities": { "http": true } })),
        json!({ "type": "http", "name": "acp-skills", "url": "http://127.0.0.1:1/1/mcp", "headers": [{ "name": "Authorization", "value": "Bearer token-1" }] })
    );
    assert_eq!(
        entry(json!({ "mcpCapabilities": { "acp": true } })),
        json!({ "type": "acp", "name": "acp-skills", "serverId": "id-1" })
    );
}

#[test]
fn the_clients_servers_are_kept() {
    let mut fixture = Fixture::new(policy()).initialized("x", &json!({}));
    let line = r#"{"id":1,"method":"session/new","params":{ "x":1.0, "mcpServers":[ {"name":"acp-skills","n":1e2} ],"cwd":"/p" }}"#;
    let edited = fixture.as_the_agent_gets_it(line);
    let (before, after) = edited.split_once(r#",{"name":"acp-skills-2""#).unwrap();
    assert!(before.ends_with(r#"{ "x":1.0, "mcpServers":[ {"name":"acp-skills","n":1e2} "#), "{before}");
    assert!(after.ends_with(r#"}]}],"cwd":"/p" }}"#), "{after}");
}

/// If the client writes `mcpServers` in another form, we do not change it, and the agent decides about it.
#[test]
fn servers_in_another_form_are_kept() {
    for (theirs, stays) in [
        (r#"{"db":{"command":"/db"}}"#, true),
        (r#""db""#, true),
        ("true", true),
        ("null", false),
        ("{}", false),
        ("[]", false),
    ] {
        let mut fixture = Fixture::new(policy()).initialized("x", &json!({}));
        let line =
            format!(r#"{{"id":1,"method":"session/new","params":{{"cwd":"/p","mcpServers":{theirs} }}}}"#);
        let got = fixture.as_the_agent_gets_it(&line);
        assert_eq!(got.contains(&format!(r#""mcpServers":{theirs} "#)), stays, "{got}");
        assert_eq!(got.contains(r#""name":"acp-skills""#), !stays, "{got}");
        fixture.respond(1, &json!({ "sessionId": "s" }));
        // When the tools are missing, the model gets the paths of the files, or we send it the text.
        assert_eq!(fixture.prompt(2, "s", &["hello"]).to_agent.len(), 1);
    }
}

/// Some agents show a model only the beginning of a prompt. It has to contain the user's words.
#[test]
fn the_users_words_come_first_if_agents_cut_prompts() {
    for (name, first) in [("hermes-agent", true), ("@factory/cli", true), ("x", false)] {
        let mut fixture = Fixture::new(policy()).initialized(name, &json!({}));
        fixture.new_session(1, "s");
        let out = fixture.prompt(2, "s", &["fix the bug"]);
        let prompt = texts(out.agent());
        assert_eq!(
            prompt.iter().position(|text| *text == "fix the bug"),
            Some(usize::from(!first)),
            "{name}"
        );
        assert_eq!(prompt.len(), 2);
        // Truncate this in the middle of our text, and in the middle of our mark.
        for cut in [500, "fix the bug\n\n<".len(), "fix the bug\n\n<acp-skills".len()] {
            let title: String = prompt.join("\n\n").chars().take(cut).collect();
            let update = json!({ "sessionUpdate": "session_info_update", "title": title });
            let seen = fixture.update("s", &update).client()["params"]["update"]["title"].clone();
            if first {
                assert_eq!(seen, "fix the bug", "{title}");
            }
        }
        // When the message is replayed in one piece, only the user's words should be left.
        let content = json!({ "type": "text", "text": prompt.join("\n\n") });
        let chunk = json!({ "sessionUpdate": "user_message_chunk", "content": content });
        let mut other = Fixture::new(policy()).initialized(name, &json!({}));
        other.request(1, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
        let seen = other.update("s", &chunk).client()["params"]["update"]["content"]["text"].clone();
        assert_eq!(seen, "fix the bug");
        other.respond(1, &json!({}));
        assert_eq!(texts(other.prompt(2, "s", &["and now"]).agent()), ["and now"], "it was told");
    }
}

#[test]
fn missing_or_null_servers_become_a_list() {
    for params in [json!({ "sessionId": "s" }), json!({ "sessionId": "s", "mcpServers": null })] {
        let mut fixture = Fixture::new(policy()).initialized("x", &json!({}));
        let out = fixture.request(1, "session/resume", &params);
        assert_eq!(out.agent()["params"]["mcpServers"].as_array().unwrap().len(), 1, "{params}");
    }
}

/// Some agents list the skill tools but do not pass them to the model. In others, the model has to search for tools.
#[test]
fn the_catalog_names_the_server_and_the_files_if_needed() {
    let set = |dirs: &[&str]| -> SkillSet {
        let skill = |dir: &&str| {
            let stored = skills_core::Stored::new(std::path::Path::new(dir), "SKILL.md");
            let name = SkillName::new(dir.rsplit('/').next().unwrap()).unwrap();
            Skill::new(name, "Does things.", skills_core::Source::Stored(stored))
        };
        dirs.iter().map(skill).collect()
    };
    let flat = &["/skills/a", "/skills/b"][..];
    for (agent, dirs, server, files) in [
        ("fast-agent-acp", flat, false, ""),
        ("OpenCode", flat, false, ""),
        ("@factory/cli", flat, true, ""),
        ("qwen-code", flat, true, ""),
        ("gemini-cli", flat, true, ""),
        ("vibe", flat, true, "`/skills/*/SKILL.md`."),
        ("vibe", &["/skills/a", "/skills/deep/b"], true, "`/skills/**/SKILL.md`."),
        ("vibe", &["/x/a", "/y/b"], true, "`/x/*/SKILL.md`, `/y/*/SKILL.md`."),
        (
            "vibe",
            &["/1/a", "/2/b", "/3/c", "/4/d", "/5/e"],
            true,
            "`/4/*/SKILL.md`, and in 1 more directories.",
        ),
    ] {
        let mut fixture = Fixture::with_skills(policy(), set(dirs)).initialized(agent, &json!({}));
        fixture.new_session(1, "s");
        let out = fixture.prompt(2, "s", &["hello"]);
        let prompt = texts(out.agent());
        let ours = prompt.into_iter().find(|text| begins_with_ours(text)).unwrap();
        // The paths use the separators of the system, so we normalize them.
        let catalog = unmarked(ours).replace('\\', "/");
        assert_eq!(catalog.contains("MCP server `acp-skills`"), server, "{agent}: {catalog}");
        assert_eq!(catalog.contains("SKILL.md"), !files.is_empty(), "{agent}: {catalog}");
        assert!(catalog.ends_with(files), "{agent}: {catalog}");
    }
    // Calling one of the tools means that the model has them.
    let mut fixture = Fixture::with_skills(policy(), set(flat)).initialized("vibe", &json!({}));
    fixture.new_session(1, "s");
    fixture
        .handle(Input::Recorded(SessionKey(1), super::record::activation(crate::events::ActivatedBy::Model)));
    fixture.new_session(2, "t");
    let out = fixture.prompt(3, "t", &["hello"]);
    assert!(!texts(out.agent())[0].contains("SKILL.md"), "{out:?}");
}

#[test]
fn the_first_prompt_has_the_catalog() {
    let mut fixture = Fixture::with_skills(policy(), skills(&["b", "a"])).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    let out = fixture.prompt(2, "s", &["hello", "more"]);
    let [catalog, "hello", "more"] = texts(out.agent())[..] else { panic!("{out:?}") };
    assert!(unmarked(catalog).starts_with("<available_skills>"), "{catalog}");
    let place = |text| catalog.find(text).unwrap_or_else(|| panic!("no {text} in {catalog}"));
    assert!(place("<name>b</name>") < place("<name>a</name>"));
    place("Does b &lt;well&gt;.");
    place("activate_skill");
    let out = fixture.prompt(3, "s", &["again"]);
    assert_eq!(texts(out.agent()), ["again"]);
}

#[test]
fn commands_of_the_agent_are_not_changed() {
    for command in ["/compact now", "  /x", "$skill", "$"] {
        let mut fixture = Fixture::new(policy()).initialized("x", &json!({}));
        fixture.new_session(1, "s");
        assert_eq!(texts(fixture.prompt(2, "s", &[command]).agent()), [command]);
        assert_eq!(texts(fixture.prompt(3, "s", &["hello"]).agent()).len(), 2, "after {command}");
    }
}

#[test]
fn a_session_without_skills_is_not_changed() {
    let mut fixture = Fixture::with_skills(policy(), SkillSet::default());
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/p","mcpServers":[]}}"#,
        r#"{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#,
    ] {
        assert_eq!(fixture.as_the_agent_gets_it(line), line);
    }
    assert_eq!(fixture.host.served, None);
    assert!(fixture.host.opened.is_empty());
}

fn with_system_prompt() -> Value {
    json!({ "mcpCapabilities": { "http": true }, "sessionCapabilities": { "systemPrompt": { "append": {} } } })
}

#[test]
fn the_catalog_is_added_to_the_system_prompt() {
    let ours = |content: &Value| {
        begins_with_ours(content.as_array().unwrap().last().unwrap()["text"].as_str().unwrap())
    };
    for (theirs, mode, blocks) in [
        (Value::Null, "append", 1),
        (json!({ "mode": "override", "content": [{ "type": "text", "text": "Be kind." }] }), "override", 2),
        (json!({ "mode": "append", "content": [] }), "append", 1),
        (json!({ "mode": "append" }), "append", 1),
    ] {
        for method in ["session/new", "session/load", "session/resume", "session/fork"] {
            let mut fixture = Fixture::new(policy()).initialized("codex", &with_system_prompt());
            let params = json!({ "cwd": "/p", "sessionId": "s", "mcpServers": [], "systemPrompt": theirs });
            let out = fixture.request(1, method, &params);
            let system = &out.agent()["params"]["systemPrompt"];
            assert_eq!(system["mode"], mode, "{theirs} {method}");
            assert_eq!(system["content"].as_array().unwrap().len(), blocks, "{theirs} {method}");
            assert!(ours(&system["content"]), "{system}");
            fixture.respond(1, &json!({ "sessionId": "s" }));
            assert_eq!(texts(fixture.prompt(2, "s", &["hello"]).agent()), ["hello"], "{method}");
        }
    }
}

#[test]
fn older_versions_of_claude_read_meta() {
    for (meta, before) in [
        (json!(null), ""),
        (json!({ "a": 1 }), ""),
        (json!({ "systemPrompt": "Theirs." }), "Theirs.\n\n"),
        (json!({ "systemPrompt": { "append": "Theirs." } }), "Theirs.\n\n"),
        (json!({ "systemPrompt": { "x": 1 } }), ""),
    ] {
        let mut fixture = Fixture::new(policy()).initialized("@zed-industries/claude-code-acp", &json!({}));
        let out = fixture.request(1, "session/new", &json!({ "cwd": "/p", "mcpServers": [], "_meta": meta }));
        let system = &out.agent()["params"]["_meta"]["systemPrompt"];
        let text = system.as_str().or_else(|| system["append"].as_str()).unwrap();
        assert!(text.strip_prefix(before).is_some_and(begins_with_ours), "{meta}: {text}");
    }
}

#[test]
fn the_user_can_choose_the_place() {
    for (wish, capabilities, in_system, in_prompt) in [
        (CatalogIn::Prompt, with_system_prompt(), false, true),
        (CatalogIn::System, with_system_prompt(), true, false),
        (CatalogIn::System, json!({}), false, true),
        (CatalogIn::Off, with_system_prompt(), false, false),
        (CatalogIn::Auto, json!({ "sessionCapabilities": { "systemPrompt": null } }), false, true),
    ] {
        let mut fixture =
            Fixture::new(Policy { catalog_in: wish, ..policy() }).initialized("x", &capabilities);
        let new = fixture.new_session(1, "s");
        let prompt = fixture.prompt(2, "s", &["hello"]);
        assert_eq!(new["params"].get("systemPrompt").is_some(), in_system, "{wish:?} {capabilities}");
        assert_eq!(texts(prompt.agent()).len() == 2, in_prompt, "{wish:?} {capabilities}");
    }
}

#[test]
fn the_system_prompt_does_not_change() {
    let mut fixture = Fixture::new(policy()).initialized("codex", &with_system_prompt());
    let new = fixture.new_session(1, "s");
    let load =
        fixture.request(2, "session/load", &json!({ "cwd": "/p", "sessionId": "s", "mcpServers": [] }));
    for key in ["systemPrompt", "mcpServers"] {
        assert_eq!(load.agent()["params"][key], new["params"][key]);
    }
    let fork =
        fixture.request(3, "session/fork", &json!({ "cwd": "/p", "sessionId": "s", "mcpServers": [] }));
    assert_eq!(fork.agent()["params"]["systemPrompt"], new["params"]["systemPrompt"]);
    assert_ne!(fork.agent()["params"]["mcpServers"], new["params"]["mcpServers"]);
}

/// If the client writes the system prompt in another form, we do not change it, and the first prompt has the catalog.
#[test]
fn a_system_prompt_in_another_form_is_kept() {
    let claude = "@zed-industries/claude-code-acp";
    for (agent, capabilities, field) in [
        ("codex", with_system_prompt(), r#""systemPrompt":"Be kind.""#),
        ("codex", with_system_prompt(), r#""systemPrompt":["Be kind."]"#),
        ("codex", with_system_prompt(), r#""systemPrompt":{"mode":"append","content":"Be kind."}"#),
        (claude, json!({}), r#""_meta":"Be kind.""#),
        (claude, json!({}), r#""_meta":{"systemPrompt":["Be kind."]}"#),
        (claude, json!({}), r#""_meta":{"systemPrompt":{"append":["Be kind."]}}"#),
    ] {
        let mut fixture = Fixture::new(policy()).initialized(agent, &capabilities);
        let line =
            format!(r#"{{"id":1,"method":"session/new","params":{{"cwd":"/p","mcpServers":[],{field}}}}}"#);
        let got = fixture.as_the_agent_gets_it(&line);
        let (field, end) = field.split_at(field.find("\"Be kind.\"").unwrap() + "\"Be kind.\"".len());
        assert!(got.contains(field) && !got.contains("available_skills"), "{end}: {got}");
        fixture.respond(1, &json!({ "sessionId": "s" }));
        let prompt = fixture.prompt(2, "s", &["hello"]);
        assert!(begins_with_ours(texts(prompt.agent())[0]), "{field}");
    }
    // We can add our text to the client's, which is truncated in the middle of a character here.
    let mut fixture = Fixture::new(policy()).initialized(claude, &json!({}));
    let line = r#"{"id":1,"method":"session/new","params":{"cwd":"/p","mcpServers":[],"_meta":{"systemPrompt":"Be \u006bind \ud83d"}}}"#;
    let got = fixture.as_the_agent_gets_it(line);
    assert!(got.contains(r#""systemPrompt":"Be \u006bind \ud83d\n\n<acp-skills-proxy:"#), "{got}");
}
