//! Tests of the titles of our own tools' calls, with the messages of real agents.

use serde_json::{Value, json};

use super::*;

const CLAUDE: &str = "@agentclientprotocol/claude-agent-acp";
const CODEX: &str = "@agentclientprotocol/codex-acp";

fn fixture(agent: &str, titles: Titles) -> Fixture {
    let mut fixture = Fixture::new(Policy { titles, ..policy() }).initialized(agent, &json!({}));
    fixture.new_session(1, "s");
    fixture
}

/// Checks the title and the kind that the client has after each update of a call.
fn check(agent: &str, updates: &[(Value, &str, &str)]) {
    let mut people = fixture(agent, Titles::People);
    let mut untouched = fixture(agent, Titles::Agent);
    let mut title = Value::Null;
    let mut kind = Value::Null;
    for (update, expected_title, expected_kind) in updates {
        let out = people.update("s", update);
        let mut seen = out.client()["params"]["update"].clone();
        for (key, kept) in [("title", &mut title), ("kind", &mut kind)] {
            if let Some(value) = seen.get(key) {
                kept.clone_from(value);
            }
        }
        assert_eq!((&title, &kind), (&json!(expected_title), &json!(expected_kind)), "{agent}: {update}");
        // The rest of the update should not change.
        for key in ["title", "kind"] {
            match update.get(key) {
                Some(value) => seen[key] = value.clone(),
                None => {
                    let _ = seen.as_object_mut().unwrap().remove(key);
                }
            }
        }
        assert_eq!(&seen, update);
        assert_eq!(&untouched.update("s", update).client()["params"]["update"], update);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of agents")]
fn calls_of_each_agent_have_readable_titles() {
    let claude = |extra: Value| {
        let mut update = json!({
            "_meta": { "claudeCode": { "toolName": "mcp__acp-skills__activate_skill" } }, "toolCallId": "toolu_1",
            "sessionUpdate": "tool_call_update",
        });
        update.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        update
    };
    let name = "mcp__acp-skills__activate_skill";
    check(
        CLAUDE,
        &[
            (
                claude(json!({
                    "sessionUpdate": "tool_call", "name": name, "rawInput": {}, "status": "pending", "title": name,
                    "kind": "other", "content": [],
                })),
                "Skill",
                "read",
            ),
            (claude(json!({ "rawInput": { "name": "review" } })), "Skill: review", "read"),
            (claude(json!({ "status": "in_progress" })), "Skill: review", "read"),
            (
                claude(json!({ "status": "completed", "rawOutput": "x", "title": name })),
                "Skill: review",
                "read",
            ),
        ],
    );
    let codex = |tool: &str, arguments: Value| {
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "call_1", "kind": "execute",
            "title": format!("mcp.acp-skills.{tool}"), "status": "in_progress",
            "rawInput": { "server": "acp-skills", "tool": tool, "arguments": arguments },
            "_meta": { "is_mcp_tool_call": true },
        })
    };
    let file = json!({ "skill": "review", "path": "references/api.md" });
    let done = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed" });
    check(
        CODEX,
        &[
            (codex("read_skill_file", file), "review: references/api.md", "read"),
            (done, "review: references/api.md", "read"),
        ],
    );
    for (tool, input, title, kind) in [
        ("search_skills", json!({ "query": "pdf\n forms" }), "Skill search: pdf forms", "search"),
        (
            "call_skill_tool",
            json!({ "skill": "forms", "tool": "fill", "input": {} }),
            "forms: fill",
            "execute",
        ),
        (
            "run_skill_script",
            json!({ "skill": "forms", "script": "scripts/fill.py" }),
            "forms: scripts/fill.py",
            "execute",
        ),
        // The server runs `script`, and ignores `path`.
        (
            "run_skill_script",
            json!({ "skill": "forms", "script": "scripts/wipe.py", "path": "scripts/fill.py" }),
            "forms: scripts/wipe.py",
            "execute",
        ),
        (
            "run_skill_script",
            json!({ "skill": "forms", "path": "scripts/fill.py" }),
            "Skill script",
            "execute",
        ),
        ("run_skill_script", json!({}), "Skill script", "execute"),
        // The name of the file is at the end of a path.
        (
            "run_skill_script",
            json!({ "skill": "forms", "script": format!("scripts/{}destroy.sh", "./".repeat(60)) }),
            &format!("forms: scripts/{}…{}destroy.sh", "./".repeat(16), "./".repeat(15)),
            "execute",
        ),
        (
            "activate_skill",
            json!({ "name": "x".repeat(100) }),
            &format!("Skill: {}…{}", "x".repeat(40), "x".repeat(40)),
            "read",
        ),
    ] {
        check(CODEX, &[(codex(tool, input), title, kind)]);
    }
    let gemini = json!({
        "sessionUpdate": "tool_call_update", "status": "completed", "locations": [], "kind": "other",
        "toolCallId": "mcp_acp-skills_activate_skill__mcp_acp-skills_activate_skill_1795307132527_0",
        "title": "activate_skill (acp-skills MCP Server)",
        "content": [{ "type": "content", "content": { "type": "text", "text": "<skill_content name=\"review\">\nx" } }],
    });
    check("gemini-cli", &[(gemini, "Skill: review", "read")]);
    let open_code = |kind: &str, title: &str, input: Value| {
        json!({
            "sessionUpdate": kind, "toolCallId": "call_1", "title": title, "kind": "other", "status": "pending",
            "locations": [], "rawInput": input,
        })
    };
    let title = "acp-skills_activate_skill";
    check(
        "OpenCode",
        &[
            (open_code("tool_call", title, json!({})), "Skill", "read"),
            (open_code("tool_call_update", title, json!({ "name": "review" })), "Skill: review", "read"),
            (open_code("tool_call_update", "", json!({ "name": "review" })), "Skill: review", "read"),
        ],
    );
    let qwen = json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed", "content": [],
        "_meta": { "toolName": name, "provenance": "mcp", "serverId": "acp-skills" },
        "rawInput": { "name": "review" },
    });
    let mut fixture = fixture("qwen-code", Titles::People);
    let out = fixture.update("s", &qwen);
    assert_eq!(out.client()["params"]["update"]["title"], "Skill: review");
    // The call was already announced with a kind, so this update should not include it.
    assert!(out.client()["params"]["update"].get("kind").is_none());
}

/// The editor shows one line instead of loaded instructions. Results of other tools, errors and the agent's metadata stay.
#[test]
fn results_of_activations_are_one_line() {
    let body = "<skill_content name=\"review\">\n# Review\n\nDo it.\n</skill_content>";
    let line = "Loaded the instructions (4 words)";
    let call = |id: &str, tool: &str, result: &str| {
        json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": "Skill", "kind": "other", "status": "completed",
            "name": format!("mcp__acp-skills__{tool}"), "rawInput": {}, "_meta": { "toolResponse": body },
            "content": [{ "type": "content", "content": { "type": "text", "text": result } }], "rawOutput": [{ "text": result }],
        })
    };
    for (titles, tool, result, expected) in [
        (Titles::People, "activate_skill", body, line),
        (Titles::People, "activate_skill", "NotFound: no skill `x`", "NotFound: no skill `x`"),
        (Titles::People, "read_skill_file", body, body),
        (Titles::People, "other", body, body),
        (Titles::Agent, "activate_skill", body, body),
    ] {
        let mut fixture = fixture(CLAUDE, titles);
        let out = fixture.update("s", &call("1", tool, result));
        let mut expected = call("1", tool, expected);
        let seen = &out.client()["params"]["update"];
        for key in ["title", "kind"] {
            expected[key] = seen[key].clone();
        }
        assert_eq!(seen, &expected);
    }
    // The id is used again, and nothing says that the new call is ours.
    let mut fixture = fixture(CLAUDE, Titles::People);
    fixture.update("s", &call("1", "activate_skill", body));
    let theirs = call("1", "Bash", body);
    assert_eq!(&fixture.update("s", &theirs).client()["params"]["update"], &theirs);
}

/// CodeCompanion truncates titles at a colon.
#[test]
fn titles_for_a_client_that_truncates_at_colons() {
    let mut fixture = Fixture::new(policy());
    let info = json!({ "name": "CodeCompanion.nvim", "version": "1.0.0" });
    fixture.request(0, "initialize", &json!({ "protocolVersion": 1, "clientInfo": info }));
    fixture.respond(0, &json!({ "protocolVersion": 1, "agentInfo": { "name": CLAUDE } }));
    fixture.new_session(1, "s");
    for (tool, input, title) in [
        ("activate_skill", json!({ "name": "review" }), "Skill review"),
        ("read_skill_file", json!({ "skill": "review", "path": "a.md" }), "review a.md"),
    ] {
        let update = json!({
            "sessionUpdate": "tool_call", "toolCallId": tool, "title": tool, "kind": "other", "rawInput": input,
            "name": format!("mcp__acp-skills__{tool}"),
        });
        assert_eq!(fixture.update("s", &update).client()["params"]["update"]["title"], title);
    }
}

#[test]
fn uncertain_calls_are_unchanged() {
    let call = |key: &str, value: Value| {
        let mut update = json!({
            "sessionUpdate": "tool_call", "toolCallId": "1", "title": "Skill of mine", "kind": "other",
            "name": "mcp__acp-skills__activate_skill", "rawInput": { "name": "review" },
        });
        update[key] = value;
        update
    };
    for (agent, update) in [
        (CLAUDE, call("name", json!("mcp__other__activate_skill"))),
        (CLAUDE, call("name", json!("Bash"))),
        (CLAUDE, call("_meta", json!({ "claudeCode": { "toolName": "Bash" } }))),
        (CLAUDE, call("kind", json!("execute"))),
        (CLAUDE, call("rawInput", json!({ "command": "rm" }))),
        (CLAUDE, call("toolCallId", Value::Null)),
        ("other", call("x", json!(1))),
        ("gemini-cli", call("title", json!("activate_skill (acp-skills MCP Server)"))),
        ("qwen-code", call("_meta", json!({ "toolName": "tool_call" }))),
        (CODEX, call("title", json!("mcp.acp-skills.activate_skill"))),
        ("OpenCode", call("title", json!("activate_skill"))),
        // The title of this call has changed since it was announced.
        (
            "OpenCode",
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "1", "title": "acp-skills_activate_skill",
                "kind": "other", "rawInput": {},
            }),
        ),
    ] {
        let mut fixture = fixture(agent, Titles::People);
        assert_eq!(&fixture.update("s", &update).client()["params"]["update"], &update, "{agent}");
    }
    // Make sure that no other bytes on the line change, and that updates are not edited for unknown sessions.
    let mut fixture = fixture(CLAUDE, Titles::People);
    let line = r#"{"jsonrpc":"2.0", "method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"1","name":"mcp__acp-skills__activate_skill", "title":"t","kind":"other","rawInput":{"name":"re\u0076iew"},"x":1.0}}}"#;
    let mut actions = Actions::default();
    let Pass::Edited(bytes) = fixture.interceptor.from_agent(line.as_bytes(), &mut actions) else { panic!() };
    let expected = line.replace(r#""title":"t","kind":"other""#, r#""title":"Skill: review","kind":"read""#);
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    let other = line.replace(r#""sessionId":"s""#, r#""sessionId":"child""#);
    assert_eq!(fixture.interceptor.from_agent(other.as_bytes(), &mut actions), Pass::Untouched);
}

#[test]
fn requests_for_permission_have_readable_titles() {
    for (titles, expected, kind) in [
        (Titles::People, "Skill: review", "read"),
        (Titles::Agent, "mcp__acp-skills__activate_skill", "other"),
    ] {
        let mut fixture = Fixture::new(Policy { approve: Approve::None, titles, ..policy() })
            .initialized(CLAUDE, &json!({}));
        fixture.new_session(1, "s");
        let name = "mcp__acp-skills__activate_skill";
        let call = json!({ "toolCallId": "1", "title": name, "name": name, "kind": "other", "rawInput": { "name": "review" } });
        let params = json!({ "sessionId": "s", "toolCall": call, "options": [] });
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params });
        let out = fixture.agent(&request);
        let mut asked = request.clone();
        asked["params"]["toolCall"]["title"] = json!(expected);
        asked["params"]["toolCall"]["kind"] = json!(kind);
        assert_eq!(out.client(), &asked);
    }
}

/// A call keeps the agent's title if it reuses the id of one of our calls, or turns out to be something else.
#[test]
fn reused_ids_keep_the_title_of_the_agent() {
    let ours = json!({
        "sessionUpdate": "tool_call", "toolCallId": "call_0", "title": "t", "kind": "other",
        "name": "mcp__acp-skills__activate_skill", "rawInput": { "name": "review" },
    });
    let rm = json!({
        "sessionUpdate": "tool_call", "toolCallId": "call_0", "title": "rm -rf ~", "kind": "execute",
        "name": "Bash", "rawInput": { "command": "rm -rf ~" },
    });
    let mut nameless = rm.clone();
    nameless.as_object_mut().unwrap().remove("name");
    let mut update = rm.clone();
    update["sessionUpdate"] = json!("tool_call_update");
    let input = json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "call_0", "title": "x", "rawInput": { "command": "rm" },
    });
    for theirs in [rm, nameless, update, input] {
        let mut fixture = fixture(CLAUDE, Titles::People);
        assert_eq!(fixture.update("s", &ours).client()["params"]["update"]["title"], "Skill: review");
        for update in
            [&theirs, &json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call_0", "title": "t" })]
        {
            assert_eq!(&fixture.update("s", update).client()["params"]["update"], update);
        }
        // After that, calls to our tool still get a title.
        assert_eq!(fixture.update("s", &ours).client()["params"]["update"]["title"], "Skill: review");
    }
}
