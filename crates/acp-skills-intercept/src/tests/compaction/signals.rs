//! The signals of a compaction.

use super::*;

/// Messages of the agent within a turn, and the expected signal.
fn check(name: &str, updates: &[Value], expected: Option<CompactionSignal>) {
    let mut fixture = session("x", &json!({}), &["review"]);
    fixture.prompt(3, "s", &["work"]);
    for update in updates {
        let params = json!({ "sessionId": "s", "update": update });
        let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        let out = fixture.agent(&line);
        assert_eq!(out.client(), &line, "{name}: the client sees what the agent sends");
        assert!(out.to_agent.is_empty() && out.tasks.is_empty(), "{name}: {out:?}");
    }
    end(&mut fixture, 3);
    let mut out = fixture.prompt(4, "s", &["go on"]);
    if !out.tasks.is_empty() {
        out = fetched(&mut fixture, &out);
    }
    let signal = match &out.records[..] {
        [] => None,
        [(_, EventKind::Restored { signal, .. })] => Some(*signal),
        records => panic!("{name}: {records:?}"),
    };
    assert_eq!(signal, expected, "{name}");
    assert_eq!(texts(out.agent()).len(), if expected.is_some() { 3 } else { 1 }, "{name}");
    // Signals of the same compaction count once.
    end(&mut fixture, 4);
    assert_eq!(prompt(&mut fixture, 5, "go on"), ["go on"], "{name}");
}

fn update(status: &str) -> Value {
    json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": status })
}

fn call(kind: &str, status: Option<&str>, more: &Value) -> Value {
    let mut call = json!({ "sessionUpdate": kind, "toolCallId": "t" });
    if let Some(status) = status {
        call["status"] = status.into();
    }
    for (key, value) in more.as_object().unwrap() {
        call[key] = value.clone();
    }
    call
}

fn call_of(more: &Value, status: &str) -> Value {
    call("tool_call", Some(status), more)
}

fn chunk(text: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })
}

/// A chunk of an agent that writes the kind last.
fn text_first(text: &str) -> Value {
    json!({ "content": { "type": "text", "text": text }, "sessionUpdate": "agent_message_chunk" })
}

fn usage(used: u64) -> Value {
    json!({ "sessionUpdate": "usage_update", "used": used, "size": 200_000 })
}

/// Qwen compacts the conversation before it sends a prompt to the model.
const QWEN: &str = "IMPORTANT: This conversation approached the input token limit for mock-model. A compressed context will be \
                    sent for future messages (compressed from: 190000 to ~181099 tokens).";

const CODEX: &str = "*Context compacted to fit the model's context window.*\n\n";

#[test]
fn each_signal_is_noticed() {
    use CompactionSignal::{CompactionUpdate, ToolCall, Usage};
    let claude = json!({ "title": "Compact conversation", "kind": "think", "_meta": { "claudeCode": { "toolName": "compact" } } });
    let air =
        json!({ "title": "Compacting", "_meta": { "jetbrains": { "air": { "contextCompaction": {} } } } });
    let plain = json!({ "title": "Compact conversation", "kind": "think" });
    let nothing = json!({});
    let subagent = json!({ "title": "Compact conversation", "kind": "think", "_meta": { "claudeCode": { "toolName": "compact", "parentToolUseId": "p" } } });
    let task = json!({ "title": "Compact conversation", "kind": "think", "_meta": { "claudeCode": { "toolName": "Task" } } });
    let shell = json!({ "title": "Compact conversation", "kind": "execute" });
    let start = |more: &Value| call("tool_call", Some("in_progress"), more);
    let end = |status: &str| call("tool_call_update", Some(status), &nothing);
    let table: Vec<(&str, Vec<Value>, Option<CompactionSignal>)> = vec![
        ("update", vec![update("in_progress"), update("completed")], Some(CompactionUpdate)),
        ("update of its end only", vec![update("completed")], Some(CompactionUpdate)),
        ("update that runs", vec![update("in_progress")], None),
        ("update that fails", vec![update("in_progress"), update("failed")], None),
        ("update that is cancelled", vec![update("cancelled")], None),
        ("update with a new status", vec![update("paused")], None),
        ("claude", vec![start(&claude), end("completed")], Some(ToolCall)),
        (
            "claude with other updates",
            vec![
                start(&claude),
                call("tool_call_update", None, &nothing),
                end("completed"),
                call("tool_call_update", None, &claude),
                end("completed"),
            ],
            Some(ToolCall),
        ),
        ("claude that fails", vec![start(&claude), end("failed"), end("completed")], None),
        ("claude that runs", vec![start(&claude), end("in_progress")], None),
        ("claude in AIR", vec![start(&air), end("completed")], Some(ToolCall)),
        ("codex with a call", vec![call("tool_call", Some("completed"), &plain)], Some(ToolCall)),
        ("call without a start", vec![call("tool_call_update", Some("completed"), &claude)], Some(ToolCall)),
        ("subagent", vec![start(&subagent), end("completed")], None),
        ("task of this title", vec![start(&task), end("completed")], None),
        ("command of this title", vec![start(&shell), end("completed")], None),
        (
            "another call",
            vec![
                start(&claude),
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": "u", "status": "completed" }),
            ],
            None,
        ),
        ("usage", vec![usage(150_000), usage(40_000)], Some(Usage)),
        ("usage of a request that failed", vec![usage(150_000), usage(0), usage(151_000)], None),
        (
            "usage after many reports",
            vec![usage(10), usage(90_000), usage(150_000), usage(160_000), usage(30_000)],
            Some(Usage),
        ),
        ("usage of a small conversation", vec![usage(39_999), usage(10)], None),
        ("usage that falls slowly", vec![usage(150_000), usage(80_000), usage(45_000)], None),
        ("usage of a subagent", vec![usage(150_000), usage(4_000), usage(9_000), usage(151_000)], None),
        (
            "two signals",
            vec![
                usage(150_000),
                update("completed"),
                start(&claude),
                end("completed"),
                chunk(CODEX),
                usage(20_000),
            ],
            Some(CompactionUpdate),
        ),
        ("two signals, usage first", vec![usage(150_000), usage(20_000), update("completed")], Some(Usage)),
    ];
    for (name, updates, expected) in table {
        check(name, &updates, expected);
    }
}

#[test]
fn messages_are_noticed() {
    use CompactionSignal::Message;
    let table: Vec<(&str, Vec<Value>, Option<CompactionSignal>)> = vec![
        ("codex", vec![chunk(CODEX)], Some(Message)),
        ("codex without line breaks", vec![chunk(CODEX.trim_end())], Some(Message)),
        ("codex after other chunks", vec![chunk("a"), chunk("b"), chunk(CODEX), chunk("c")], Some(Message)),
        ("codex, text first", vec![text_first("a"), text_first("b"), text_first(CODEX)], Some(Message)),
        (
            "codex in a text, text first",
            vec![text_first("a"), text_first(&format!("It says: {CODEX}"))],
            None,
        ),
        ("codex in a message", vec![chunk(&format!("It says: {CODEX}"))], None),
        ("codex with more", vec![chunk("a"), chunk(&format!("{CODEX}or so"))], None),
        (
            "codex in a thought",
            vec![
                json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": CODEX } }),
            ],
            None,
        ),
        ("qwen", vec![chunk(QWEN)], Some(Message)),
        (
            "qwen after other chunks",
            vec![chunk("a"), chunk(&format!("{QWEN}\nA warning.")), chunk("c")],
            Some(Message),
        ),
        ("qwen in a message", vec![chunk("a"), chunk(&format!("It says: {QWEN}"))], None),
        (
            "a message that begins like that of qwen",
            vec![chunk("IMPORTANT: This conversation is over.")],
            None,
        ),
    ];
    for (name, updates, expected) in table {
        check(name, &updates, expected);
    }
}

/// The report that falls comes with the turn after the other signal.
#[test]
fn a_late_fall_is_the_same_compaction() {
    let mut fixture = session("x", &json!({}), &["review"]);
    fixture.update("s", &usage(150_000));
    completed(&mut fixture, "c");
    assert_eq!(restored(&mut fixture, 3), ["catalog", "review"]);
    fixture.update("s", &usage(20_000));
    completed(&mut fixture, "c");
    end(&mut fixture, 3);
    assert_eq!(prompt(&mut fixture, 4, "go on"), ["go on"]);
    // A later one is another compaction.
    fixture.update("s", &usage(160_000));
    fixture.update("s", &usage(20_000));
    end(&mut fixture, 4);
    assert_eq!(restored(&mut fixture, 5), ["catalog", "review"]);
}

#[test]
fn the_users_own_command_counts() {
    let known = "@agentclientprotocol/claude-agent-acp";
    for (agent, announced, words, stop, expected) in [
        (known, "", "/compact", "end_turn", true),
        (known, "", "/compact keep the names", "end_turn", true),
        (known, "", " /compact\n", "end_turn", true),
        (known, "", "/compress", "end_turn", false),
        (known, "", "/compact", "cancelled", false),
        (known, "", "/compact", "refusal", false),
        (known, "", "/compacted", "end_turn", false),
        (known, "", "say /compact", "end_turn", false),
        ("qwen-code", "", "/compress", "end_turn", true),
        ("qwen-code", "", "/compress-fast", "end_turn", false),
        ("x", "", "/compact", "end_turn", false),
        ("x", "compact", "/compact", "end_turn", true),
        ("x", "summarize", "/summarize", "end_turn", true),
        ("x", "compress", "$compress", "end_turn", false),
        ("x", "tidy", "/tidy", "end_turn", false),
    ] {
        let case = format!("{agent} {words:?} {stop}");
        let capabilities = json!({ "sessionCapabilities": { "systemPrompt": {} } });
        let mut fixture = session(agent, &capabilities, &["review"]);
        let list = json!([{ "name": announced, "description": "x" }]);
        fixture
            .update("s", &json!({ "sessionUpdate": "available_commands_update", "availableCommands": list }));
        let out = fixture.prompt(3, "s", &[words]);
        assert_eq!(texts(out.agent()), [words], "{case}: the command reaches the agent as it is");
        assert!(fixture.host.reminders.is_empty(), "{case}: the end of the turn is the boundary");
        fixture.respond(3, &json!({ "stopReason": stop }));
        assert_eq!(!restored(&mut fixture, 4).is_empty(), expected, "{case}");
    }
    let mut fixture = session(known, &json!({}), &["review"]);
    fixture.prompt(3, "s", &["/compact"]);
    fixture.refuse(3, -32000);
    assert_eq!(prompt(&mut fixture, 4, "go on"), ["go on"], "the command failed");
    // The agent says that it compacted nothing, and the turn ends as any other.
    let call = json!({ "title": "Compact conversation", "kind": "think", "_meta": { "claudeCode": { "toolName": "compact" } } });
    for failure in [update("failed"), update("cancelled"), call_of(&call, "failed")] {
        let mut fixture = session(known, &json!({}), &["review"]);
        fixture.prompt(3, "s", &["/compact"]);
        fixture.update("s", &failure);
        end(&mut fixture, 3);
        assert_eq!(prompt(&mut fixture, 4, "go on"), ["go on"], "{failure}");
    }
}

/// In version 2, the response only accepts the command.
#[test]
fn the_users_own_command_in_version_2() {
    for (stop, expected) in [("end_turn", true), ("cancelled", false)] {
        let mut fixture = Fixture::new(policy()).initialized_v2("codex-acp", &json!({}));
        fixture.new_session(1, "s");
        let state = |fixture: &mut Fixture, state: &Value| {
            let mut update = state.clone();
            update["sessionUpdate"] = "state_update".into();
            fixture.update("s", &update);
        };
        fixture.prompt(2, "s", &["hello"]);
        fixture.respond(2, &json!({}));
        fixture.handle(Input::Activated(KEY, name("review")));
        state(&mut fixture, &json!({ "state": "idle", "stopReason": "end_turn" }));
        fixture.prompt(3, "s", &["/compact"]);
        fixture.respond(3, &json!({}));
        state(&mut fixture, &json!({ "state": "running" }));
        assert!(fixture.host.reminders.is_empty());
        state(&mut fixture, &json!({ "state": "idle", "stopReason": stop }));
        assert_eq!(!restored(&mut fixture, 4).is_empty(), expected, "{stop}");
    }
}

#[test]
fn a_replay_is_history() {
    let replayed = [update("completed"), chunk(CODEX), usage(150_000), usage(10_000)];
    let capabilities = json!({ "loadSession": true });
    let params = json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] });
    // A session of an earlier run.
    let mut fixture = Fixture::new(policy()).initialized("x", &capabilities);
    fixture.host.recalled = vec![ActiveSkill::new(name("review"), ActivatedBy::Model)];
    fixture.request(1, "session/load", &params);
    for update in &replayed {
        fixture.update("s", update);
    }
    fixture.respond(1, &json!({}));
    // Some agents answer before the replay.
    fixture.update("s", &update("completed"));
    assert_eq!(restored(&mut fixture, 2), ["catalog"], "the first prompt has the catalog");
    end(&mut fixture, 2);
    assert_eq!(prompt(&mut fixture, 3, "go on"), ["go on"]);
    end(&mut fixture, 3);
    // The same session again. The agent's reports start again, too.
    fixture.update("s", &usage(160_000));
    fixture.request(4, "session/load", &params);
    for update in &replayed {
        fixture.update("s", update);
    }
    fixture.respond(4, &json!({}));
    fixture.update("s", &usage(20_000));
    assert_eq!(prompt(&mut fixture, 5, "go on"), ["go on"]);
    completed(&mut fixture, "d");
    end(&mut fixture, 5);
    assert_eq!(restored(&mut fixture, 6), ["catalog", "review"], "this one is new");
}
