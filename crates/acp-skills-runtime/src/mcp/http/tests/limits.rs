//! Tests of the limits for the MCP sessions of an endpoint.

use skills_core::json::MAX_VALUES;

use super::*;
use crate::mcp::http::sessions::MAX_PARAMS_BYTES;

/// Sends an `initialize` request, with the header of newer clients if `has_version`. Returns the status and the session.
async fn begin(service: &Service, has_version: bool, name: &str) -> (StatusCode, Option<String>) {
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": REVISION, "capabilities": {}, "clientInfo": { "name": name, "version": "1" },
    } });
    let mut request = Request::post("/")
        .header(HOST, "127.0.0.1")
        .header("Accept", "application/json, text/event-stream")
        .header("Content-Type", "application/json");
    if has_version {
        request = request.header("MCP-Protocol-Version", REVISION);
    }
    let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
    let response = service.handle(request).await;
    let session = response.headers().get("Mcp-Session-Id").map(|id| id.to_str().unwrap().to_owned());
    (response.status(), session)
}

#[tokio::test]
async fn the_number_of_mcp_sessions_is_limited() {
    let service = service(&CancellationToken::new());
    let (session, _) = initialized(&service).await;
    for _ in 1..MAX_MCP_SESSIONS {
        initialized(&service).await;
    }
    for has_version in [false, true] {
        let refused = begin(&service, has_version, "test").await;
        assert_eq!(refused, (StatusCode::SERVICE_UNAVAILABLE, None), "{has_version}");
    }
    assert_eq!(service.sessions.running().await, MAX_MCP_SESSIONS);
    // Existing sessions should still work, and when one of them is ended, there should be room for another.
    assert_eq!(call(&service, &session, "tools/list").await.0, StatusCode::OK);
    let _ = send(&service, "DELETE", Some(&session), "").await;
    initialized(&service).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_put_aside_makes_room() {
    let service = service(&CancellationToken::new());
    let (first, _) = initialized(&service).await;
    let (second, _) = initialized(&service).await;
    for _ in 2..MAX_MCP_SESSIONS {
        initialized(&service).await;
    }
    tokio::time::sleep(sessions::IDLE * 3).await;
    // The first session is used again, so the second one is the one that was not used for the longest time.
    assert_eq!(call(&service, &first, "tools/list").await.0, StatusCode::OK);
    let (third, _) = initialized(&service).await;
    for (session, status) in
        [(&second, StatusCode::NOT_FOUND), (&first, StatusCode::OK), (&third, StatusCode::OK)]
    {
        let (found, ..) =
            send(&service, "POST", Some(session), r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#).await;
        assert_eq!(found, status);
    }
    assert_eq!(service.sessions.count(), MAX_MCP_SESSIONS);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_listens_does_not_keep_the_sessions_of_others() {
    let service = service(&CancellationToken::new());
    let (listening, _) = initialized(&service).await;
    let (status, _, events) = send(&service, "GET", Some(&listening), "").await;
    assert_eq!(status, StatusCode::OK);
    for _ in 1..MAX_MCP_SESSIONS {
        initialized(&service).await;
    }
    assert_eq!(begin(&service, false, "test").await.0, StatusCode::SERVICE_UNAVAILABLE);
    tokio::time::sleep(sessions::IDLE * 3).await;
    assert_eq!(service.sessions.running().await, 1);
    initialized(&service).await;
    // A session becomes idle when its last response is complete.
    drop(events);
    tokio::time::sleep(sessions::IDLE * 3).await;
    assert_eq!(service.sessions.running().await, 0);
    assert_eq!(call(&service, &listening, "tools/list").await.0, StatusCode::OK);
}

#[tokio::test]
async fn the_params_of_a_session_are_limited() {
    let service = service(&CancellationToken::new());
    let (status, session) = begin(&service, false, &"x".repeat(MAX_PARAMS_BYTES)).await;
    assert_eq!((status, session), (StatusCode::PAYLOAD_TOO_LARGE, None));
    assert_eq!((service.sessions.count(), service.sessions.running().await), (0, 0));
    let (status, session) = begin(&service, false, &"x".repeat(MAX_PARAMS_BYTES / 2)).await;
    assert!(status == StatusCode::OK && session.is_some());
}

/// Parsed JSON needs much more memory than its text.
#[tokio::test]
async fn messages_with_too_many_values_are_refused() {
    let service = service(&CancellationToken::new());
    let (session, _) = initialized(&service).await;
    let message = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"activate_skill","arguments":{arguments}}}}}"#
        )
    };
    for (arguments, expected) in [
        (format!(r#"{{"a":[1{}]}}"#, ",1".repeat(MAX_VALUES)), StatusCode::PAYLOAD_TOO_LARGE),
        (format!(r#"{{"a":"{}"}}"#, "[,".repeat(MAX_VALUES)), StatusCode::OK),
        (format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_MCP_MESSAGE)), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let (status, ..) = send(&service, "POST", Some(&session), &message(&arguments)).await;
        assert_eq!(status, expected, "{} bytes", arguments.len());
    }
}
