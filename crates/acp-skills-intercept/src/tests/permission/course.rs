//! Tests of announcements, of requests that wait for a path, and of cancellations.

use serde_json::json;

use super::*;

/// Gemini announces a call only by asking for permission, so the proxy has to announce it if it answers in place of the user.
#[test]
fn an_unannounced_call_is_announced() {
    let call = json!({
        "toolCallId": "mcp_acp-skills_activate_skill__mcp_acp-skills_activate_skill_1795307132527_0",
        "status": "pending", "title": "activate_skill (acp-skills MCP Server)", "locations": [], "kind": "other",
        "content": [{ "type": "content", "content": { "type": "text", "text": "{\"name\":\"git\"}" } }], "x": 1.0,
    });
    for (titles, title, kind) in [
        (Titles::People, "Skill: git", "read"),
        (Titles::Agent, "activate_skill (acp-skills MCP Server)", "other"),
    ] {
        let mut fixture = fixture("gemini-cli", Policy { titles, ..policy() });
        let out = ask(&mut fixture, &call, None);
        assert_eq!(outcome(&out), "proceed_once");
        let mut update = call.clone();
        update["sessionUpdate"] = json!("tool_call");
        update["title"] = json!(title);
        update["kind"] = json!(kind);
        let params = json!({ "sessionId": "s", "update": update });
        assert_eq!(out.client(), &json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
        // The call is only announced once.
        arrives(&mut fixture, "activate_skill", &json!({ "name": "git" }));
        assert_eq!(ask(&mut fixture, &call, None).to_client.len(), 0);
        // Any updates after this are for the same call.
        let mut done = call.clone();
        done["sessionUpdate"] = json!("tool_call_update");
        done["content"] = json!([]);
        let out = fixture.update("s", &done);
        assert_eq!(out.client()["params"]["update"]["title"], title);
    }
}

/// Calls that are not ours are announced, too, but only if the agent has not announced them.
#[test]
fn an_announced_call_is_not_announced_again() {
    let rm = call("Bash", &json!({ "command": "rm x" }));
    for is_announced in [false, true] {
        let mut fixture = fixture(CLAUDE, Policy { tool_policy: ToolPolicy::Strict, ..policy() });
        invoke(&mut fixture, "git");
        if is_announced {
            let mut announced = rm.clone();
            announced["sessionUpdate"] = json!("tool_call");
            assert_eq!(fixture.update("s", &announced).client()["params"]["update"], announced);
        }
        let out = ask(&mut fixture, &rm, None);
        assert_eq!((outcome(&out), out.to_client.len()), ("no", usize::from(!is_announced)));
    }
}

#[test]
fn a_request_that_waits_for_a_path_blocks_nothing() {
    let mut fixture = fixture(CLAUDE, Policy { tool_policy: ToolPolicy::Approval, ..policy() });
    invoke(&mut fixture, "notes");
    fixture.host.is_slow = true;
    let note = call("Edit", &json!({ "file_path": "/project/notes/a.md" }));
    assert!(ask(&mut fixture, &note, None).is_nothing());
    let said = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a" } });
    assert_eq!(fixture.update("s", &said).to_client.len(), 1);
    assert_eq!(outcome(&fixture.answer()), "proceed_once");
    // The user should see the request without any changes.
    let linked = call("Edit", &json!({ "file_path": "notes/link/passwd" }));
    assert!(ask(&mut fixture, &linked, None).is_nothing());
    let out = fixture.answer();
    assert_eq!((outcome(&out), &out.client()["params"]["toolCall"]), ("asked", &linked));
}

/// A request that was cancelled in the meantime is not granted.
#[test]
fn a_request_that_waits_for_a_path_can_be_cancelled() {
    let note = call("Edit", &json!({ "file_path": "/project/notes/a.md" }));
    let waiting = || {
        let mut fixture = fixture(CLAUDE, Policy { tool_policy: ToolPolicy::Approval, ..policy() });
        invoke(&mut fixture, "notes");
        fixture.host.is_slow = true;
        assert!(ask(&mut fixture, &note, None).is_nothing());
        fixture
    };
    // When the user cancels, the client answers the requests it has received, and we answer those that are still being held.
    let mut fixture = waiting();
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } });
    let out = fixture.client(&cancel);
    let cancelled = json!({ "jsonrpc": "2.0", "id": 7, "result": { "outcome": { "outcome": "cancelled" } } });
    assert!(out.to_agent.contains(&cancelled) && out.to_agent.contains(&cancel), "{out:?}");
    assert!(fixture.answer().is_nothing());
    // Cancelling a different session should not affect this one.
    let mut fixture = waiting();
    fixture.client(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "t" } }));
    assert_eq!(outcome(&fixture.answer()), "proceed_once");
    // When the agent cancels, the client gets both messages, and in this order.
    let mut fixture = waiting();
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 7 } });
    let out = fixture.agent(&cancel);
    assert_eq!(out.to_client.len(), 2, "{out:?}");
    assert_eq!((&out.to_client[0]["params"]["toolCall"], &out.to_client[1]), (&note, &cancel));
    assert!(fixture.answer().is_nothing());
}
