//! Tests of requests for permission to call our own tools, with the messages of real agents.

use serde_json::{Value, json};

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "a table of calls")]
fn calls_of_our_tools_are_recognized() {
    let claude = |tool: &str| {
        let name = format!("mcp__acp-skills__{tool}");
        let input = match tool {
            "read_skill_file" => json!({ "skill": "git", "path": "a.md" }),
            "search_skills" => json!({ "query": "words" }),
            _ => json!({ "name": "git" }),
        };
        json!({
            "toolCallId": "toolu_1", "title": name, "name": name, "kind": "other",
            "rawInput": input, "_meta": { "claudeCode": { "toolName": name } },
        })
    };
    let codex = |title: &str| json!({ "toolCallId": "call_1", "title": title, "kind": "execute", "status": "pending" });
    let gemini = |function: &str, server: &str| {
        json!({
            "toolCallId": format!("{function}__{function}_1795307132527_0"), "status": "pending", "kind": "other",
            "title": format!("activate_skill ({server} MCP Server)"), "locations": [],
            "content": [{ "type": "content", "content": { "type": "text", "text": "{\"name\":\"git\"}" } }],
        })
    };
    let open_code = |title: &str, kind: &str, input: Value| {
        json!({
            "toolCallId": "call_1", "title": title, "kind": kind, "status": "pending", "locations": [],
            "rawInput": input,
        })
    };
    let qwen = |name: &str, kind: &str| {
        json!({
            "toolCallId": "call_1", "title": "{\"name\":\"git\"}", "kind": kind, "status": "pending", "content": [],
            "locations": [], "rawInput": { "name": "git" }, "_meta": { "toolName": name },
        })
    };
    let fast_agent = |title: &str, kind: &str| {
        json!({
            "toolCallId": "1", "title": title, "kind": kind, "status": "pending", "rawInput": { "name": "git" },
        })
    };
    let approval = || Some(json!({ "is_mcp_tool_approval": true }));
    let mut mixed = claude("activate_skill");
    mixed["_meta"]["claudeCode"]["toolName"] = json!("Bash");
    let mut only_meta = claude("activate_skill");
    only_meta.as_object_mut().unwrap().remove("name");
    let mut only_name = claude("activate_skill");
    only_name.as_object_mut().unwrap().remove("_meta");
    let with = |key: &str, value: Value| {
        let mut call = claude("activate_skill");
        call[key] = value;
        call
    };
    let titled = json!({ "toolCallId": "1", "title": "mcp__acp-skills__activate_skill", "kind": "other" });
    for (agent, call, meta, expected) in [
        (CLAUDE, claude("activate_skill"), None, "proceed_once"),
        (CLAUDE, claude("read_skill_file"), None, "proceed_once"),
        (CLAUDE, claude("search_skills"), None, "proceed_once"),
        (CLAUDE, claude("call_skill_tool"), None, "asked"),
        (CLAUDE, claude("run_skill_script"), None, "asked"),
        (CLAUDE, claude("something_else"), None, "asked"),
        (CLAUDE, only_meta, None, "proceed_once"),
        (CLAUDE, only_name, None, "proceed_once"),
        // A call that changes or runs something, or that has extra members, is not one of ours, no matter what its name
        // is.
        (CLAUDE, with("kind", json!("execute")), None, "asked"),
        (CLAUDE, with("kind", json!("delete")), None, "asked"),
        (CLAUDE, with("kind", json!("read")), None, "proceed_once"),
        (CLAUDE, with("rawInput", json!({ "command": "rm -rf ~" })), None, "asked"),
        (CLAUDE, with("rawInput", json!({ "name": "git", "command": "rm" })), None, "asked"),
        (CLAUDE, with("rawInput", json!("rm -rf ~")), None, "asked"),
        (CLAUDE, with("rawInput", json!({})), None, "proceed_once"),
        (CLAUDE, with("rawInput", Value::Null), None, "proceed_once"),
        // The names don't match, there is only a title, or the name of the server is different.
        (CLAUDE, mixed, None, "asked"),
        (CLAUDE, titled.clone(), None, "asked"),
        (CLAUDE, json!({ "toolCallId": "1", "name": "mcp__acp-skills-2__activate_skill" }), None, "asked"),
        (CLAUDE, json!({ "toolCallId": "1", "name": "activate_skill" }), None, "asked"),
        (CODEX, codex("mcp.acp-skills.activate_skill"), approval(), "proceed_once"),
        (CODEX, codex("mcp.acp-skills.call_skill_tool"), approval(), "asked"),
        (CODEX, codex("mcp.other.activate_skill"), approval(), "asked"),
        // The title of a command can be anything, so we can't trust it.
        (CODEX, codex("mcp.acp-skills.activate_skill"), None, "asked"),
        (
            CODEX,
            codex("mcp.acp-skills.activate_skill"),
            Some(json!({ "is_mcp_tool_approval": false })),
            "asked",
        ),
        ("claude-look-alike", claude("activate_skill"), None, "asked"),
        ("other", codex("mcp.acp-skills.activate_skill"), approval(), "asked"),
        // Gemini puts the name of the function at the start of the id. Note that both the title and the id are required.
        ("gemini-cli", gemini("mcp_acp-skills_activate_skill", "acp-skills"), None, "proceed_once"),
        ("gemini-cli", gemini("mcp_acp-skills_call_skill_tool", "acp-skills"), None, "asked"),
        ("gemini-cli", gemini("activate_skill", "acp-skills"), None, "asked"),
        ("gemini-cli", gemini("mcp_acp-skills_activate_skill", "acp-skills_activate"), None, "asked"),
        ("gemini-cli", gemini("mcp_other_activate_skill", "other"), None, "asked"),
        ("other", gemini("mcp_acp-skills_activate_skill", "acp-skills"), None, "asked"),
        // For fast-agent, the title has to be exactly `SERVER/TOOL`.
        ("fast-agent-acp", fast_agent("acp-skills/activate_skill", "other"), None, "proceed_once"),
        ("fast-agent-acp", fast_agent("acp-skills/read_skill_file", "other"), None, "asked"),
        ("fast-agent-acp", fast_agent("acp-skills/call_skill_tool", "other"), None, "asked"),
        ("fast-agent-acp", fast_agent("acp-skills-2/activate_skill", "other"), None, "asked"),
        ("fast-agent-acp", fast_agent("acp-skills/activate_skill", "execute"), None, "asked"),
        ("fast", fast_agent("acp-skills/activate_skill", "other"), None, "asked"),
        (
            "fast-agent-acp",
            json!({
                "toolCallId": "1", "title": "acp-skills/activate_skill(name=git)", "kind": "other",
                "rawInput": { "name": "git" }, "status": "pending",
            }),
            None,
            "asked",
        ),
        // OpenCode uses the name of the tool as the title, but it doesn't report the input.
        ("OpenCode", open_code("acp-skills_activate_skill", "other", json!({})), None, "proceed_once"),
        ("OpenCode", open_code("acp-skills_read_skill_file", "other", json!({})), None, "proceed_once"),
        ("OpenCode", open_code("acp-skills_call_skill_tool", "other", json!({})), None, "asked"),
        ("OpenCode", open_code("acp-skills-2_activate_skill", "other", json!({})), None, "asked"),
        ("OpenCode", open_code("acp-skills_activate_skill", "execute", json!({})), None, "asked"),
        (
            "OpenCode",
            open_code("acp-skills_activate_skill", "other", json!({ "command": "rm" })),
            None,
            "asked",
        ),
        ("opencode-look-alike", open_code("acp-skills_activate_skill", "other", json!({})), None, "asked"),
        ("qwen-code", qwen("mcp__acp-skills__activate_skill", "read"), None, "proceed_once"),
        ("qwen-code", qwen("mcp__other__activate_skill", "read"), None, "asked"),
        ("qwen-code", qwen("run_shell_command", "execute"), None, "asked"),
        ("qwen-code", qwen("mcp__acp-skills__activate_skill", "execute"), None, "asked"),
    ] {
        let mut fixture = fixture(agent, policy());
        let out = ask(&mut fixture, &call, meta.clone());
        assert_eq!(outcome(&out), expected, "{agent}: {call} {meta:?}");
        let mut fixture = self::fixture(agent, Policy { approve: Approve::None, ..policy() });
        assert_eq!(outcome(&ask(&mut fixture, &call, meta)), "asked", "{agent}: {call}");
    }
}

/// The older adapter names the tool when it announces a call, and sends only a title when it asks.
#[test]
fn a_request_without_a_name_refers_to_the_announced_call() {
    const NAME: &str = "mcp__acp-skills__activate_skill";
    let input = json!({ "name": "git" });
    let rm = json!({ "command": "rm -rf ~" });
    for (announced, id, asked_with, title, expected) in [
        (Some(NAME), "t1", &input, NAME, "proceed_once"),
        // A title is not enough without an announcement, or when the id or the announced name is different.
        (None, "t1", &input, NAME, "asked"),
        (Some(NAME), "t2", &input, NAME, "asked"),
        (Some("Bash"), "t1", &input, NAME, "asked"),
        (Some("Task"), "t1", &input, NAME, "asked"),
        (Some("mcp__other__activate_skill"), "t1", &input, NAME, "asked"),
        (Some("mcp__acp-skills__call_skill_tool"), "t1", &input, NAME, "asked"),
        // Our tool doesn't accept one of the members in this input.
        (Some(NAME), "t1", &rm, NAME, "asked"),
    ] {
        let mut fixture = fixture("@zed-industries/claude-code-acp", policy());
        if let Some(name) = announced {
            fixture.agent(&json!({
                "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": {
                    "sessionUpdate": "tool_call", "toolCallId": "t1", "title": name, "kind": "other", "rawInput": {},
                    "status": "pending", "content": [], "_meta": { "claudeCode": { "toolName": name } },
                } },
            }));
        }
        let call = json!({ "toolCallId": id, "rawInput": asked_with, "title": title });
        assert_eq!(outcome(&ask(&mut fixture, &call, None)), expected, "{announced:?} {call}");
        // Use the name from the request, and not the one that was announced.
        let mut call = call;
        call["_meta"] = json!({ "claudeCode": { "toolName": "Bash" } });
        assert_eq!(outcome(&ask(&mut fixture, &call, None)), "asked", "{call}");
    }
}

/// Grok gives no name for itself, and has one tool that calls the tools of servers. Droid names the server only in the offered
/// options.
#[test]
fn calls_of_grok_and_droid_are_recognized() {
    let grok = |called: &str, own: &str, input: Value| {
        json!({
            "toolCallId": "call_1", "kind": "other", "title": "acp-skills__activate_skill",
            "rawInput": { "variant": "UseTool", "tool_name": called, "tool_input": input },
            "_meta": { "x.ai/tool": { "version": 1, "name": own, "namespace": "grok_build" } },
        })
    };
    for (call, expected) in [
        (grok("acp-skills__activate_skill", "use_tool", json!({ "name": "git" })), "proceed_once"),
        (grok("acp-skills__call_skill_tool", "use_tool", json!({})), "asked"),
        (grok("other__activate_skill", "use_tool", json!({ "name": "git" })), "asked"),
        // This is a command, but the input looks like one of our calls.
        (grok("acp-skills__activate_skill", "bash", json!({ "name": "git" })), "asked"),
        (grok("acp-skills__activate_skill", "use_tool", json!({ "command": "rm" })), "asked"),
        (grok("acp-skills__activate_skill", "use_tool", json!("rm")), "asked"),
    ] {
        let mut fixture = Fixture::new(policy());
        fixture.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        let meta = json!({ "x.ai/fs_notify": true, "x.ai/capabilities": {} });
        fixture.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": { "_meta": meta } }));
        fixture.new_session(1, "s");
        assert_eq!(outcome(&ask(&mut fixture, &call, None)), expected, "{call}");
    }
    // The tool may run this command, so the rest of the input is no wrapper around another one.
    for (extra, expected) in [(json!({}), "proceed_once"), (json!({ "command": "rm x" }), "asked")] {
        let mut fixture = fixture("x", Policy { tool_policy: ToolPolicy::Approval, ..policy() });
        let meta = json!({ "x.ai/fs_notify": true, "x.ai/capabilities": {} });
        fixture.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        fixture.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": { "_meta": meta } }));
        invoke(&mut fixture, "git");
        let mut call = grok("x", "Bash", json!({ "command": "git status" }));
        call["rawInput"].as_object_mut().unwrap().append(&mut extra.as_object().unwrap().clone());
        assert_eq!(outcome(&ask(&mut fixture, &call, None)), expected, "{call}");
    }
    let droid = |title: &str, server: &str, input: Value| {
        let call = json!({ "toolCallId": "call_1", "title": title, "kind": "read", "rawInput": input });
        let all = format!("Always allow all \"{server}\" tools");
        json!({
            "sessionId": "s", "toolCall": call,
            "options": [
                { "optionId": "proceed_once", "name": "Allow", "kind": "allow_once" },
                { "optionId": "proceed_always_server", "name": all, "kind": "allow_always" },
                { "optionId": "cancel", "name": "No, cancel", "kind": "reject_once" },
            ],
        })
    };
    for (params, expected) in [
        (droid("acp-skills___activate_skill", "acp-skills", json!({ "name": "git" })), "proceed_once"),
        (droid("acp-skills___call_skill_tool", "acp-skills", json!({})), "asked"),
        (droid("acp-skills___activate_skill", "other", json!({ "name": "git" })), "asked"),
        (droid("acp-skills___activate_skill", "acp-skills", json!({ "command": "rm" })), "asked"),
        (droid("activate_skill", "acp-skills", json!({ "name": "git" })), "asked"),
    ] {
        let mut fixture = fixture("@factory/cli", policy());
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params });
        assert_eq!(outcome(&fixture.agent(&request)), expected, "{params}");
    }
}

/// Agentao and Kimi name the tool in the title and in the text.
#[test]
fn calls_of_agentao_and_kimi_are_recognized() {
    let ask = |title: &str, kind: Option<&str>, says: &str| {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": says } }]);
        let mut call = json!({ "toolCallId": "1", "title": title, "content": content });
        if let Some(kind) = kind {
            call["kind"] = kind.into();
            call["rawInput"] = json!({ "name": "git" });
        }
        call
    };
    let options = json!([{ "optionId": "once", "name": "Once", "kind": "allow_once" }]);
    for (agent, call, expected) in [
        ("agentao", ask("mcp_acp_skills_activate_skill", Some("other"), "[MCP:acp-skills] Loads"), "once"),
        ("agentao", ask("mcp_acp_skills_activate_skill", Some("other"), "[MCP:acp] Loads"), "asked"),
        ("agentao", ask("mcp_acp_skills_call_skill_tool", Some("other"), "[MCP:acp-skills] Calls"), "asked"),
        ("agentao", ask("activate_skill", Some("other"), "[MCP:acp-skills] Loads"), "asked"),
        (
            "Kimi Code CLI",
            ask(
                "mcp__acp-skills__activate_skill",
                None,
                "Requesting approval to Approve mcp__acp-skills__activate_skill",
            ),
            "once",
        ),
        (
            "Kimi Code CLI",
            ask("mcp__acp-skills__activate_skill", None, "Requesting approval to run command"),
            "asked",
        ),
        (
            "Kimi Code CLI",
            ask(
                "activate_skill: {}",
                None,
                "Requesting approval to perform: Call MCP tool `activate_skill`.",
            ),
            "asked",
        ),
    ] {
        let mut fixture = fixture(agent, policy());
        let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params });
        assert_eq!(outcome(&fixture.agent(&request)), expected, "{params}");
    }
}

/// Copilot names the tool only when it announces the call.
#[test]
fn calls_of_copilot_are_recognized_by_their_announcement() {
    let input = json!({ "name": "git" });
    for (announced, kind, input, asks_about, expected) in [
        ("acp-skills-activate_skill", "other", &input, "1", "proceed_once"),
        ("acp-skills-activate_skill", "other", &input, "2", "asked"),
        ("acp-skills-activate_skill", "other", &json!({ "description": "x", "query": "x" }), "1", "asked"),
        ("acp-skills-activate_skill", "execute", &input, "1", "asked"),
        ("acp-skills-call_skill_tool", "other", &input, "1", "asked"),
        ("other-activate_skill", "other", &input, "1", "asked"),
        ("activate_skill", "other", &input, "1", "asked"),
    ] {
        let mut fixture = fixture("Copilot", policy());
        let announcement = json!({
            "sessionUpdate": "tool_call", "toolCallId": "1", "title": announced, "kind": kind, "rawInput": input,
        });
        fixture.update("s", &announcement);
        let call =
            json!({ "toolCallId": asks_about, "title": "Activate a skill", "kind": kind, "rawInput": input });
        assert_eq!(outcome(&ask(&mut fixture, &call, None)), expected, "{announcement}");
        // Another call reuses the id.
        fixture.update(
            "s",
            &json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "x", "kind": "other" }),
        );
        assert_eq!(outcome(&ask(&mut fixture, &call, None)), "asked", "{announcement}");
    }
}

/// An agent asks in the name of our tools and calls something else.
#[test]
fn false_claims_end_the_trust() {
    let ours = call("mcp__acp-skills__activate_skill", &json!({ "name": "git" }));
    let end =
        |fixture: &mut Fixture, id: u64, reason: &str| fixture.respond(id, &json!({ "stopReason": reason }));
    let mut fixture = fixture(CLAUDE, policy());
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } });
    // The agent is trusted as long as all calls arrive, or the turn is cancelled.
    for (id, reason, arrived) in [(2, "end_turn", true), (3, "cancelled", false), (4, "end_turn", true)] {
        fixture.prompt(id, "s", &["hello"]);
        assert_eq!(outcome(&ask(&mut fixture, &ours, None)), "proceed_once", "{id}");
        if arrived {
            arrives(&mut fixture, "activate_skill", &json!({ "name": "git" }));
        }
        if reason == "cancelled" {
            fixture.client(&cancel);
        }
        end(&mut fixture, id, reason);
    }
    fixture.prompt(5, "s", &["hello"]);
    assert_eq!(outcome(&ask(&mut fixture, &ours, None)), "proceed_once");
    // Only the user can cancel a turn.
    end(&mut fixture, 5, "cancelled");
    fixture.prompt(6, "s", &["hello"]);
    assert_eq!(outcome(&ask(&mut fixture, &ours, None)), "asked");
    let out = fixture.prompt(7, "s", &["/skills"]);
    let text = out.to_client[0]["params"]["update"]["content"]["text"].as_str().unwrap();
    assert!(text.contains("called another tool"), "{text}");
}

#[test]
fn claude_gets_our_tools_as_allowed() {
    let ours = json!([
        "mcp__acp-skills__activate_skill(*)",
        "mcp__acp-skills__read_skill_file(*)",
        "mcp__acp-skills__search_skills(*)"
    ]);
    let with = |first: &str| {
        let mut list = ours.clone();
        list.as_array_mut().unwrap().insert(0, first.into());
        list
    };
    for (meta, expected) in [
        (None, json!({ "options": { "allowedTools": ours } })),
        (Some(Value::Null), json!({ "options": { "allowedTools": ours } })),
        (Some(json!({ "x": 1 })), json!({ "options": { "allowedTools": ours } })),
        (Some(json!({ "claudeCode": { "a": 1 } })), json!({ "a": 1, "options": { "allowedTools": ours } })),
        (
            Some(json!({ "claudeCode": { "options": { "model": "m", "allowedTools": ["Read"] } } })),
            json!({ "options": { "model": "m", "allowedTools": with("Read") } }),
        ),
        (Some(json!({ "claudeCode": 7 })), json!(7)),
    ] {
        for (method, extra) in [("session/new", json!({})), ("session/load", json!({ "sessionId": "q" }))] {
            let mut fixture = Fixture::new(policy()).initialized(CLAUDE, &json!({}));
            let mut params = json!({ "cwd": "/project", "mcpServers": [] });
            params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            if let Some(meta) = &meta {
                params["_meta"] = meta.clone();
            }
            let out = fixture.request(1, method, &params);
            assert_eq!(out.agent()["params"]["_meta"]["claudeCode"], expected, "{method} {meta:?}");
            // We also send the system prompt to this adapter.
            let system = &out.agent()["params"]["_meta"]["systemPrompt"]["append"];
            assert!(system.is_string(), "{out:?}");
        }
    }
    for (agent, policy) in [(CODEX, policy()), (CLAUDE, Policy { approve: Approve::None, ..policy() })] {
        let mut fixture = Fixture::new(policy).initialized(agent, &json!({}));
        assert!(fixture.new_session(1, "s")["params"]["_meta"].get("claudeCode").is_none());
    }
}
