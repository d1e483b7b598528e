//! Tests of MCP over HTTP without a network: they call the service of a session directly, or connect over pipes.

mod limits;

use std::time::Duration;

use acp_skills_intercept::SessionKey;
use hyper::header::HOST;
use serde_json::{Value, json};
use skills_core::Skill;

use super::*;
use crate::mcp::{
    fixture::{REVISION, handler, serve, servers, skill},
    unauthenticated::{AUTHENTICATION_TIMEOUT, MAX_UNAUTHENTICATED, MIN_AGE, Unauthenticated},
};

fn service(end: &CancellationToken) -> Service {
    Service::of(&handler(skill("review")), end.clone())
}

/// Sends a request. Returns its status, its MCP session and its body.
async fn send(
    service: &Service,
    method: &str,
    session: Option<&str>,
    body: &str,
) -> (StatusCode, Option<String>, impl Future<Output = String> + use<>) {
    let mut request = Request::builder()
        .method(method)
        .uri("/")
        .header(HOST, "127.0.0.1")
        .header("Accept", "application/json, text/event-stream")
        .header("Content-Type", "application/json");
    if let Some(session) = session {
        request = request.header("Mcp-Session-Id", session).header("MCP-Protocol-Version", REVISION);
    }
    let response = service.handle(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await;
    let session = response.headers().get("Mcp-Session-Id").map(|id| id.to_str().unwrap().to_owned());
    let status = response.status();
    let text = async {
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    };
    (status, session, text)
}

/// Starts a session of a client of an older revision. Returns its id and the body of the answer.
async fn initialized(service: &Service) -> (String, String) {
    let request = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": REVISION, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    } });
    let (status, session, text) = send(service, "POST", None, &request.to_string()).await;
    assert_eq!(status, StatusCode::OK);
    let session = session.unwrap();
    let text = text.await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let (status, ..) = send(service, "POST", Some(&session), &note.to_string()).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    (session, text)
}

async fn call(service: &Service, session: &str, method: &str) -> (StatusCode, String) {
    let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method });
    let (status, _, text) = send(service, "POST", Some(session), &request.to_string()).await;
    (status, text.await)
}

/// Returns the messages of an event stream. Each event must have one.
fn messages(stream: &str) -> Vec<Value> {
    let events = stream.split("\n\n").filter(|event| !event.trim().is_empty());
    let data = events.map(|event| {
        let data = event.lines().find_map(|line| line.strip_prefix("data:"));
        let data = data.unwrap_or_else(|| panic!("no data in {event:?}"));
        serde_json::from_str(data.trim()).unwrap_or_else(|error| panic!("{error} in {event:?}"))
    });
    data.collect()
}

#[tokio::test]
async fn every_event_is_a_message() {
    let service = service(&CancellationToken::new());
    let (session, first) = initialized(&service).await;
    assert_eq!(messages(&first)[0]["result"]["protocolVersion"], REVISION);
    let (status, text) = call(&service, &session, "tools/list").await;
    assert_eq!((status, messages(&text).len()), (StatusCode::OK, 1));
    // The server uses this stream to send messages that are not answers, but there are none here.
    let (status, _, stream) = send(&service, "GET", Some(&session), "").await;
    assert_eq!(status, StatusCode::OK);
    let (status, ..) = send(&service, "DELETE", Some(&session), "").await;
    assert!(status.is_success(), "{status}");
    assert_eq!(messages(&stream.await), Vec::<Value>::new());
}

#[tokio::test]
async fn unsupported_methods_fail_without_side_effects() {
    let service = service(&CancellationToken::new());
    let (session, _) = initialized(&service).await;
    for method in ["resources/templates/list", "logging/setLevel", "completion/complete", "_x/y"] {
        let (status, text) = call(&service, &session, method).await;
        assert_eq!(status, StatusCode::OK, "{method}");
        let [answer] = &messages(&text)[..] else { panic!("{method}: {text}") };
        assert_eq!(answer["id"], 7, "{method}");
        let empty = answer["result"]
            .as_object()
            .is_some_and(|result| result.values().any(|list| list.as_array().is_some_and(Vec::is_empty)));
        assert!(empty || answer["error"]["code"].is_i64(), "{method}: {answer}");
    }
    let (_, text) = call(&service, &session, "tools/list").await;
    assert_eq!(messages(&text)[0]["result"]["tools"][0]["name"], "activate_skill");
}

#[tokio::test]
async fn clients_are_notified_of_changed_lists() {
    let handler = handler(skill("review"));
    let service = Service::of(&handler, CancellationToken::new());
    let (session, first) = initialized(&service).await;
    for list in ["tools", "prompts", "resources"] {
        assert_eq!(messages(&first)[0]["result"]["capabilities"][list]["listChanged"], true, "{list}");
    }
    let (_, _, stream) = send(&service, "GET", Some(&session), "").await;
    while handler.listeners.count() == 0 {
        tokio::task::yield_now().await;
    }
    let (status, _) = call(&service, &session, "tools/list").await;
    assert_eq!(status, StatusCode::OK);
    // There should be no notification if we serve the same skills. The tools are the same for other skills.
    serve(&handler, &["review"]).await;
    serve(&handler, &["review", "greet"]).await;
    let _ = send(&service, "DELETE", Some(&session), "").await;
    let methods: Vec<_> = messages(&stream.await).iter().map(|message| message["method"].clone()).collect();
    let lists = ["prompts", "resources"];
    assert_eq!(methods, lists.map(|list| format!("notifications/{list}/list_changed")));
}

#[tokio::test(start_paused = true)]
async fn disconnected_clients_are_removed() {
    let handler = handler(skill("review"));
    let service = Service::of(&handler, CancellationToken::new());
    // Don't read from the stream of this client.
    let (session, _) = initialized(&service).await;
    for round in 0..100 {
        serve(&handler, if round % 2 == 0 { &["greet"] } else { &["review"] }).await;
    }
    assert!(handler.listeners.count() <= 1);
    let (status, text) = call(&service, &session, "tools/list").await;
    assert_eq!(status, StatusCode::OK, "{text}");
    for _ in 0..20 {
        let (session, _) = initialized(&service).await;
        let _ = send(&service, "DELETE", Some(&session), "").await;
        serve(&handler, &["greet", "review"]).await;
        serve(&handler, &["review"]).await;
        // The count includes the first client, and maybe another one that is just being disconnected.
        assert!(handler.listeners.count() <= 2, "{}", handler.listeners.count());
    }
}

#[tokio::test]
async fn a_running_call_keeps_its_skills() {
    let begun = Arc::new(tokio::sync::Notify::new());
    let go = Arc::new(tokio::sync::Notify::new());
    let signals = (Arc::clone(&begun), Arc::clone(&go));
    let skill = Skill::builder("slow", "Takes its time.").body("Call `wait`.");
    let skill = skill.tool("wait", "Waits.", move |_: Value| {
        let (begun, go) = signals.clone();
        async move {
            begun.notify_one();
            go.notified().await;
            Ok(json!("done"))
        }
    });
    let handler = handler(skill.build().unwrap());
    let service = Arc::new(Service::of(&handler, CancellationToken::new()));
    let (session, _) = initialized(&service).await;
    let arguments = json!({ "skill": "slow", "tool": "wait" });
    let params = json!({ "name": "call_skill_tool", "arguments": arguments });
    let request = json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params }).to_string();
    let running = tokio::spawn({
        let service = Arc::clone(&service);
        let session = session.clone();
        let request = request.clone();
        async move { send(&service, "POST", Some(&session), &request).await.2.await }
    });
    begun.notified().await;
    serve(&handler, &["review"]).await;
    go.notify_one();
    let text = running.await.unwrap();
    assert_eq!(messages(&text).last().unwrap()["result"]["content"][0]["text"], "done", "{text}");
    // The next call should use the current skills.
    let text = send(&service, "POST", Some(&session), &request).await.2.await;
    assert_eq!(messages(&text).last().unwrap()["result"]["isError"], true, "{text}");
}

#[tokio::test]
async fn a_call_ends_with_its_session() {
    let begun = Arc::new(tokio::sync::Notify::new());
    let (dropped, is_dropped) = tokio::sync::oneshot::channel::<()>();
    let guard = Arc::new(dropped);
    let signal = (Arc::clone(&begun), Arc::new(parking_lot::Mutex::new(Some(guard))));
    let skill = Skill::builder("slow", "Takes its time.").body("Call `wait`.");
    let skill = skill.tool("wait", "Waits.", move |_: Value| {
        let guard = signal.1.lock().take();
        let begun = Arc::clone(&signal.0);
        async move {
            let _guard = guard;
            begun.notify_one();
            std::future::pending::<()>().await;
            Ok(json!("done"))
        }
    });
    let service = Arc::new(Service::of(&handler(skill.build().unwrap()), CancellationToken::new()));
    let (session, _) = initialized(&service).await;
    let params = json!({ "name": "call_skill_tool", "arguments": { "skill": "slow", "tool": "wait" } });
    let request = json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params }).to_string();
    // The response stays open, but the client does not read it.
    let (status, _, _response) = send(&service, "POST", Some(&session), &request).await;
    assert_eq!(status, StatusCode::OK);
    begun.notified().await;
    let _ = send(&service, "DELETE", Some(&session), "").await;
    // The server would end the call itself after a grace period of several seconds.
    let ended = tokio::time::timeout(Duration::from_secs(2), is_dropped).await;
    assert!(ended.is_ok(), "the call still runs");
}

#[tokio::test(start_paused = true)]
async fn a_session_does_not_expire() {
    let service = service(&CancellationToken::new());
    let (session, _) = initialized(&service).await;
    tokio::time::sleep(Duration::from_hours(24)).await;
    let (status, text) = call(&service, &session, "tools/list").await;
    assert_eq!(status, StatusCode::OK, "{text}");
}

/// Returns a connection over a pipe to servers with one session, and the servers.
async fn connection(unauthenticated: &Unauthenticated) -> (tokio::io::DuplexStream, Servers) {
    let servers = servers();
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let admission = unauthenticated.admit().await;
    tokio::spawn(super::serve(theirs, admission, Arc::new(servers.clone())));
    (ours, servers)
}

#[tokio::test(start_paused = true)]
async fn connections_without_a_token_are_closed() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let unauthenticated = Unauthenticated::default();
    // The first client doesn't send a request, and the second one doesn't send a token.
    for request in ["", "GET /x/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"] {
        let (mut stream, _servers) = connection(&unauthenticated).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let begun = tokio::time::Instant::now();
        let mut received = String::new();
        stream.read_to_string(&mut received).await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), AUTHENTICATION_TIMEOUT.as_secs(), "{received}");
    }
    // If a client sends the token, it should stay connected.
    let (mut stream, servers) = connection(&unauthenticated).await;
    let request = authorized(&servers);
    let begun = tokio::time::Instant::now();
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut buffer = [0; 1024];
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(
            buffer[..count].starts_with(b"HTTP/1.1 404"),
            "{}",
            String::from_utf8_lossy(&buffer[..count])
        );
        tokio::time::sleep(AUTHENTICATION_TIMEOUT).await;
    }
    assert!(begun.elapsed() > AUTHENTICATION_TIMEOUT);
}

/// Returns a request with the token of the only session.
fn authorized(servers: &Servers) -> String {
    let server = servers.by_key(SessionKey(1)).unwrap();
    let token = &server.token;
    format!("GET /{}/x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n", server.path)
}

/// On a busy machine, a connection can be evicted before its request is read.
#[tokio::test(start_paused = true)]
async fn a_request_that_has_arrived_is_answered() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    for _ in 0..20 {
        let unauthenticated = Unauthenticated::default();
        let admission = unauthenticated.admit().await;
        tokio::time::advance(MIN_AGE).await;
        let mut others = Vec::new();
        for _ in 0..MAX_UNAUTHENTICATED {
            others.push(unauthenticated.admit().await);
        }
        let servers = servers();
        let (mut stream, theirs) = tokio::io::duplex(64 * 1024);
        stream.write_all(authorized(&servers).as_bytes()).await.unwrap();
        tokio::spawn(super::serve(theirs, admission, Arc::new(servers.clone())));
        let mut buffer = [0; 1024];
        let count = stream.read(&mut buffer).await.unwrap();
        let answer = String::from_utf8_lossy(&buffer[..count]);
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_are_put_aside_and_start_again() {
    let handler = handler(skill("review"));
    let service = Service::of(&handler, CancellationToken::new());
    let (first, _) = initialized(&service).await;
    let (second, _) = initialized(&service).await;
    assert!(call(&service, &first, "tools/list").await.1.contains("activate_skill"));
    assert_eq!((service.sessions.running().await, handler.listeners.count()), (2, 2));
    tokio::time::sleep(sessions::IDLE / 2).await;
    call(&service, &first, "tools/list").await;
    // A request during the first period makes the timer run for another one, in which there are no requests.
    tokio::time::sleep(sessions::IDLE * 3).await;
    assert_eq!((service.sessions.running().await, handler.listeners.count()), (0, 0));
    for session in [&first, &second, &first] {
        assert!(call(&service, session, "tools/list").await.1.contains("activate_skill"));
    }
    assert_eq!((service.sessions.running().await, handler.listeners.count()), (2, 2));
    // The client can end a session that is put aside. Requests for this session should then fail.
    tokio::time::sleep(sessions::IDLE * 3).await;
    assert_eq!(service.sessions.running().await, 0);
    let (status, ..) = send(&service, "DELETE", Some(&second), "").await;
    assert!(status.is_success(), "{status}");
    let (status, ..) =
        send(&service, "POST", Some(&second), r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(service.sessions.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_listens_is_not_idle() {
    let handler = handler(skill("review"));
    let service = Service::of(&handler, CancellationToken::new());
    let (session, _) = initialized(&service).await;
    let (status, _, events) = send(&service, "GET", Some(&session), "").await;
    assert_eq!(status, StatusCode::OK);
    call(&service, &session, "tools/list").await;
    tokio::time::sleep(sessions::IDLE * 3).await;
    assert_eq!(service.sessions.running().await, 1);
    serve(&handler, &["review", "other"]).await;
    let (status, ..) = send(&service, "DELETE", Some(&session), "").await;
    assert!(status.is_success(), "{status}");
    assert!(events.await.contains("notifications/prompts/list_changed"));
}
