//! MCP over the ACP connection: messages for the skills server, their size, and their cancellation.

use super::*;

#[test]
fn only_messages_for_our_server_are_kept_from_the_client() {
    let mut fixture = Fixture::new(policy()).initialized("x", &json!({ "mcpCapabilities": { "acp": true } }));
    fixture.new_session(1, "s");
    let ask = |id: &str| json!({ "jsonrpc": "2.0", "id": 5, "method": "mcp/message", "params": { "serverId": id, "requestId": "r", "method": "tools/list" } });
    assert_eq!(fixture.agent(&ask("theirs")).to_client.len(), 1);
    let out = fixture.agent(&ask("id-1"));
    assert!(out.is_nothing());
    assert!(matches!(&out.tasks[..], [Task::Mcp { session: SessionKey(1), .. }]), "{out:?}");
    // Notifications for our server don't reach the client either.
    let mut notification = ask("id-1");
    notification.as_object_mut().unwrap().remove("id");
    let out = fixture.agent(&notification);
    assert!(out.is_nothing());
    assert!(matches!(&out.tasks[..], [Task::Mcp { request: None, .. }]), "{out:?}");
    // A message that is too long is refused here.
    let mut long = ask("id-1");
    long["params"]["params"] = "x".repeat(MAX_MCP_MESSAGE).into();
    let out = fixture.agent(&long);
    assert!(out.tasks.is_empty() && out.to_client.is_empty(), "{out:?}");
    assert_eq!((&out.to_agent[0]["id"], &out.to_agent[0]["error"]["code"]), (&json!(5), &json!(-32602)));
    // A cancellation is for our server until the request is answered.
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 5 } });
    let out = fixture.agent(&cancel);
    assert!(out.is_nothing());
    assert!(matches!(&out.tasks[..], [Task::CancelMcp { session: SessionKey(1), .. }]), "{out:?}");
    fixture.handle(Input::McpAnswered(Id::Raw("5".to_owned())));
    assert_eq!(fixture.agent(&cancel).to_client.len(), 1);
    // After the end of the session, the host answers that the server is closed.
    fixture.client(
        &json!({ "jsonrpc": "2.0", "id": 9, "method": "session/close", "params": { "sessionId": "s" } }),
    );
    fixture.respond(9, &json!({}));
    let out = fixture.agent(&ask("id-1"));
    assert!(out.is_nothing());
    assert!(matches!(&out.tasks[..], [Task::Mcp { session: SessionKey(1), .. }]), "{out:?}");
    assert_eq!(fixture.agent(&ask("theirs")).to_client.len(), 1);
}
