//! Commands for a compaction that fail or are cancelled, as real agents report it.

use super::*;

const CODEX: &str = "@agentclientprotocol/codex-acp";

fn chunk(text: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })
}

fn usage(used: u64) -> Value {
    json!({ "sessionUpdate": "usage_update", "used": used, "size": 200_000 })
}

/// Sends a command with these updates and this end of the turn, and then other updates. Returns what the next prompt restores.
fn after_command(agent: &str, updates: &[Value], stop: &str, later: &[Value]) -> Vec<String> {
    let mut fixture = session(agent, &json!({}), &["review"]);
    // The second report is not read.
    fixture.update("s", &usage(10_000));
    fixture.update("s", &usage(10_200));
    fixture.prompt(3, "s", &["/compact"]);
    for update in updates {
        fixture.update("s", update);
    }
    fixture.respond(3, &json!({ "stopReason": stop }));
    for update in later {
        fixture.update("s", update);
    }
    restored(&mut fixture, 4)
}

#[test]
fn a_command_that_failed_restores_nothing() {
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Compact conversation", "kind": "think",
        "status": "in_progress" });
    let end = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed" });
    let other =
        json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Read", "status": "in_progress" });
    for (agent, updates, fails) in [
        // Codex doesn't end the call.
        (CODEX, vec![call.clone(), chunk("{\"type\": \"error\"}")], true),
        (CODEX, vec![call, end], false),
        (CODEX, vec![other], false),
        ("Copilot", vec![chunk("Failed to run /compact: Error: Nothing to compact.")], true),
        ("Copilot", vec![chunk("x"), chunk("Failed to run /compact: Error: host-rethrow: 400 bad")], true),
        (
            "Copilot",
            vec![usage(9_000), chunk("Compacted conversation history and removed 5 messages.")],
            false,
        ),
        ("Copilot", vec![chunk("Failed to run it."), chunk("It says: Failed to run /compact: no")], false),
        ("OpenCode", vec![usage(0)], true),
        ("OpenCode", vec![chunk("A summary."), usage(1_200)], false),
    ] {
        let expected: &[_] = if fails {
            &[]
        } else if agent == "OpenCode" {
            &["catalog", "review"]
        } else {
            &["review"]
        };
        assert_eq!(after_command(agent, &updates, "end_turn", &[]), expected, "{agent} {updates:?}");
    }
}

/// Copilot completes the compaction although its turn was cancelled. It reports the usage before or after the end of the turn.
#[test]
fn a_compaction_that_is_completed_after_its_cancellation() {
    for (reports, expected) in [
        (vec![], &[][..]),
        (vec![usage(10_050)], &["review"]),
        (vec![usage(10_200)], &[]),
        (vec![usage(10_300), usage(10_400)], &[]),
    ] {
        assert_eq!(after_command("Copilot", &[], "cancelled", &reports), expected, "after: {reports:?}");
        assert_eq!(after_command("Copilot", &reports, "cancelled", &[]), expected, "before: {reports:?}");
    }
    // The report belongs to the next prompt.
    let mut fixture = session("Copilot", &json!({}), &["review"]);
    fixture.update("s", &usage(10_000));
    fixture.prompt(3, "s", &["/compact"]);
    fixture.respond(3, &json!({ "stopReason": "cancelled" }));
    assert_eq!(prompt(&mut fixture, 4, "go on"), ["go on"]);
    fixture.update("s", &usage(9_900));
    end(&mut fixture, 4);
    assert_eq!(prompt(&mut fixture, 5, "go on"), ["go on"]);
}

/// A command that comes before everything else is no compaction, and the catalog is not restored but sent.
#[test]
fn a_command_at_the_start_restores_nothing() {
    let skills = skills(&["review"]);
    let mut fixture = Fixture::with_skills(policy(), skills).initialized("OpenCode", &json!({}));
    fixture.new_session(1, "s");
    assert_eq!(texts(fixture.prompt(2, "s", &["/compact"]).agent()), ["/compact"]);
    end(&mut fixture, 2);
    let out = fixture.prompt(3, "s", &["hello"]);
    assert_eq!(texts(out.agent()).len(), 2);
    assert!(out.records.is_empty(), "{out:?}");
    end(&mut fixture, 3);
    assert_eq!(prompt(&mut fixture, 4, "go on"), ["go on"]);
}

/// Gemini compacts the conversation before a prompt, and reports only how much the model has read in a turn.
#[test]
fn a_turn_that_reads_less_than_the_conversation_had() {
    let over = |fixture: &mut Fixture, request: u64, tokens: u64| {
        let meta = json!({ "quota": { "token_count": { "input_tokens": tokens, "output_tokens": 5 } } });
        fixture.respond(request, &json!({ "stopReason": "end_turn", "_meta": meta }));
    };
    let call = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed" });
    for (last, expected) in [(13_000, &["catalog", "review"][..]), (60_000, &[]), (0, &[])] {
        let mut fixture = session("gemini-cli", &json!({}), &["review"]);
        fixture.prompt(3, "s", &["read it"]);
        fixture.update("s", &call);
        over(&mut fixture, 3, 200_000);
        fixture.prompt(4, "s", &["go on"]);
        over(&mut fixture, 4, last);
        assert_eq!(restored(&mut fixture, 5), expected, "{last}");
        over(&mut fixture, 5, last);
        assert_eq!(prompt(&mut fixture, 6, "go on"), ["go on"], "{last}");
    }
}
