//! Tests of MCP over HTTP without a network: they call the service of a session directly, or connect over pipes.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use hyper::header::HOST;
use serde_json::{Value, json};
use skills_core::{CallContext, Skill, Toolbox};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    sync::{Semaphore, mpsc::unbounded_channel},
};

use super::{in_flight::MAX_IN_FLIGHT, *};
use crate::{
    mcp::{handler::Reports, serving::Serving},
    spans::Spans,
};
use acp_skills_intercept::SessionKey;

const REVISION: &str = "2025-06-18";

fn skill(name: &str) -> Skill {
    Skill::builder(name, "Reviews.").body("Do it.").build().unwrap()
}

fn handler(skill: Skill) -> Handler {
    let toolbox = Toolbox::new([skill].into_iter().collect());
    let serving = Serving { toolbox, context: CallContext::default() };
    let inputs = unbounded_channel().0;
    Handler::new(SessionKey(1), serving, Reports { inputs, observer: None, spans: Spans::default() })
}

fn service(end: &CancellationToken) -> Service {
    Service::new(handler(skill("review")), end.clone())
}

/// Replaces the skills and notifies the clients.
async fn serve(handler: &Handler, names: &[&str]) {
    let skills = names.iter().map(|name| skill(name)).collect();
    handler.listeners.notify(handler.serve(&skills, CallContext::default())).await;
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
    // This stream is for messages that the server sends by itself. There are none.
    let (status, _, stream) = send(&service, "GET", Some(&session), "").await;
    assert_eq!(status, StatusCode::OK);
    let (status, ..) = send(&service, "DELETE", Some(&session), "").await;
    assert!(status.is_success(), "{status}");
    assert_eq!(messages(&stream.await), Vec::<Value>::new());
}

#[tokio::test]
async fn what_is_not_offered_is_refused_and_breaks_nothing() {
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
async fn clients_hear_that_lists_have_changed() {
    let handler = handler(skill("review"));
    let service = Service::new(handler.clone(), CancellationToken::new());
    let (session, first) = initialized(&service).await;
    for list in ["tools", "prompts", "resources"] {
        assert_eq!(messages(&first)[0]["result"]["capabilities"][list]["listChanged"], true, "{list}");
    }
    let (_, _, stream) = send(&service, "GET", Some(&session), "").await;
    while handler.listeners.count() == 0 {
        tokio::task::yield_now().await;
    }
    // Serving the same skills again sends no notification.
    serve(&handler, &["review"]).await;
    serve(&handler, &["review", "greet"]).await;
    drop(send(&service, "DELETE", Some(&session), "").await);
    let methods: Vec<_> = messages(&stream.await).iter().map(|it| it["method"].clone()).collect();
    let lists = ["tools", "prompts", "resources"];
    assert_eq!(methods, lists.map(|list| format!("notifications/{list}/list_changed")));
}

#[tokio::test(start_paused = true)]
async fn clients_that_do_not_listen_do_not_pile_up() {
    let handler = handler(skill("review"));
    let service = Service::new(handler.clone(), CancellationToken::new());
    // The stream of this client is not read.
    let (session, _) = initialized(&service).await;
    for round in 0..100 {
        serve(&handler, if round % 2 == 0 { &["greet"] } else { &["review"] }).await;
    }
    assert!(handler.listeners.count() <= 1);
    let (status, text) = call(&service, &session, "tools/list").await;
    assert_eq!(status, StatusCode::OK, "{text}");
    for _ in 0..20 {
        let (session, _) = initialized(&service).await;
        drop(send(&service, "DELETE", Some(&session), "").await);
        serve(&handler, &["greet", "review"]).await;
        serve(&handler, &["review"]).await;
        // The first client is connected, and perhaps one that is just disconnecting.
        assert!(handler.listeners.count() <= 2, "{}", handler.listeners.count());
    }
}

#[tokio::test]
async fn a_call_keeps_the_skills_that_it_began_with() {
    let (begun, go) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
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
    let service = Arc::new(Service::new(handler.clone(), CancellationToken::new()));
    let (session, _) = initialized(&service).await;
    let arguments = json!({ "skill": "slow", "tool": "wait" });
    let params = json!({ "name": "call_skill_tool", "arguments": arguments });
    let request = json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params }).to_string();
    let (own, id, text) = (Arc::clone(&service), session.clone(), request.clone());
    let running = tokio::spawn(async move { send(&own, "POST", Some(&id), &text).await.2.await });
    begun.notified().await;
    serve(&handler, &["review"]).await;
    go.notify_one();
    let text = running.await.unwrap();
    assert_eq!(messages(&text).last().unwrap()["result"]["content"][0]["text"], "done", "{text}");
    // The next call uses the current skills.
    let text = send(&service, "POST", Some(&session), &request).await.2.await;
    assert_eq!(messages(&text).last().unwrap()["result"]["isError"], true, "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_session_lasts_while_the_user_thinks() {
    let service = service(&CancellationToken::new());
    let (session, _) = initialized(&service).await;
    tokio::time::sleep(Duration::from_hours(24)).await;
    let (status, text) = call(&service, &session, "tools/list").await;
    assert_eq!(status, StatusCode::OK, "{text}");
}

#[tokio::test]
async fn sessions_of_mcp_are_no_more_than_enough() {
    let service = service(&CancellationToken::new());
    let (session, _) = initialized(&service).await;
    for _ in 1..MAX_MCP_SESSIONS {
        initialized(&service).await;
    }
    let request = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }).to_string();
    assert_eq!(send(&service, "POST", None, &request).await.0, StatusCode::SERVICE_UNAVAILABLE);
    // Existing sessions still work. Ending one of them makes room for another.
    assert_eq!(call(&service, &session, "tools/list").await.0, StatusCode::OK);
    drop(send(&service, "DELETE", Some(&session), "").await);
    initialized(&service).await;
}

/// Returns a connection over a pipe to servers with one session, and the servers.
fn connection(unauthenticated: &Unauthenticated) -> (tokio::io::DuplexStream, Servers) {
    let make = Arc::new(Toolbox::new);
    let servers = Servers::new(make, None, unbounded_channel().0, None, Spans::default());
    let skills = [skill("review")].into_iter().collect();
    servers.serve(SessionKey(1), &skills, CallContext::default());
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let admission = unauthenticated.admit();
    drop(tokio::spawn(super::serve(theirs, admission, servers.clone())));
    (ours, servers)
}

#[tokio::test(start_paused = true)]
async fn who_shows_no_token_has_to_go() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let unauthenticated = Unauthenticated::default();
    // The first client sends nothing, and the second one sends a request without a token.
    for says in ["", "GET /x/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"] {
        let (mut stream, _servers) = connection(&unauthenticated);
        stream.write_all(says.as_bytes()).await.unwrap();
        let begun = tokio::time::Instant::now();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), unauthenticated::AUTHENTICATION_TIME.as_secs(), "{heard}");
    }
    // A client with the token may stay.
    let (mut stream, servers) = connection(&unauthenticated);
    let server = servers.by_key(SessionKey(1)).unwrap();
    let request = format!(
        "GET /{}/x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n",
        server.path, server.token
    );
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
        tokio::time::sleep(unauthenticated::AUTHENTICATION_TIME).await;
    }
    assert!(begun.elapsed() > unauthenticated::AUTHENTICATION_TIME);
}

/// Connects a bridge to this handler and completes the handshake. Returns the server, and the agent's end of the
/// bridge.
async fn bridge(
    handler: Handler,
) -> (
    rmcp::service::RunningService<RoleServer, Handler>,
    Lines<BufReader<ReadHalf<DuplexStream>>>,
    WriteHalf<DuplexStream>,
) {
    let (theirs, ours) = tokio::io::duplex(64 * 1024);
    let begun = rmcp::service::serve_server_with_ct(handler, transport(ours), CancellationToken::new());
    let (server, (reader, writer)) = tokio::join!(begun, async {
        let (reader, mut writer) = tokio::io::split(theirs);
        let info = json!({ "name": "x", "version": "1" });
        let params = json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": info });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writer.write_all(format!("{hello}\n{ready}\n").as_bytes()).await.unwrap();
        let mut reader = BufReader::new(reader).lines();
        reader.next_line().await.unwrap().unwrap();
        (reader, writer)
    });
    (server.unwrap(), reader, writer)
}

/// A bridge doesn't read more requests while its answers are not read. No answer is lost.
#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_read_is_held_back() {
    const REQUESTS: u64 = 20_000;
    let (_server, mut reader, mut writer) = bridge(handler(skill("review"))).await;
    let (sent, mut count) = tokio::sync::watch::channel(0);
    let asks = tokio::spawn(async move {
        for id in 1..=REQUESTS {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {} });
            writer.write_all(format!("{request}\n").as_bytes()).await.unwrap();
            sent.send(id).unwrap();
        }
        writer
    });
    // This waits until the bridge has stopped reading.
    while matches!(tokio::time::timeout(Duration::from_mins(1), count.changed()).await, Ok(Ok(()))) {}
    assert!(*count.borrow() < REQUESTS / 4, "{} requests were read", *count.borrow());
    for answers in 1..=REQUESTS {
        let line = reader.next_line().await.unwrap();
        assert!(line.is_some_and(|line| line.contains("\"result\"")), "{answers}");
    }
    drop(asks.await.unwrap());
}

/// A client is notified once of each change, even if it sends `notifications/initialized` repeatedly.
#[tokio::test(start_paused = true)]
async fn a_client_is_one_listener() {
    let handler = handler(skill("review"));
    let (_server, mut reader, mut writer) = bridge(handler.clone()).await;
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    writer.write_all(format!("{ready}\n").repeat(1_000).as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(handler.listeners.count(), 1);
    let (_other, mut its_reader, _its_writer) = bridge(handler.clone()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(handler.listeners.count(), 2);
    serve(&handler, &["greet"]).await;
    for reader in [&mut reader, &mut its_reader] {
        let line = reader.next_line().await.unwrap().unwrap();
        assert!(line.contains("notifications/tools/list_changed"), "{line}");
    }
}

/// Returns a skill with a tool that counts its calls and waits for a permit of `go`.
fn waits(begun: &Arc<AtomicUsize>, go: &Arc<Semaphore>) -> Skill {
    let signals = (Arc::clone(begun), Arc::clone(go));
    let skill = Skill::builder("slow", "Takes its time.").body("Call `wait`.");
    let skill = skill.tool("wait", "Waits.", move |_: Value| {
        let (begun, go) = signals.clone();
        async move {
            begun.fetch_add(1, Ordering::SeqCst);
            go.acquire().await.unwrap().forget();
            Ok(json!("done"))
        }
    });
    skill.build().unwrap()
}

/// A bridge runs a limited number of calls at once. The others wait, and all are answered.
#[tokio::test(start_paused = true)]
async fn calls_under_way_are_no_more_than_enough() {
    const CALLS: usize = 10 * MAX_IN_FLIGHT;
    let (begun, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let handler = handler(waits(&begun, &go));
    let (_server, mut reader, mut writer) = bridge(handler.clone()).await;
    let arguments = json!({ "skill": "slow", "tool": "wait" });
    let params = json!({ "name": "call_skill_tool", "arguments": arguments });
    let call = |id: usize| {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        format!("{request}\n")
    };
    // With paused time, a sleep ends only after all other tasks have stalled.
    let settled = || tokio::time::sleep(Duration::from_mins(1));
    let cancel = |id: usize| {
        let params = json!({ "requestId": id });
        format!("{}\n", json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
    };
    // Cancelled calls make room even though they get no answer.
    for id in 1..=MAX_IN_FLIGHT {
        writer.write_all(call(id).as_bytes()).await.unwrap();
    }
    settled().await;
    assert_eq!(begun.load(Ordering::SeqCst), MAX_IN_FLIGHT);
    for id in 1..=MAX_IN_FLIGHT {
        writer.write_all(cancel(id).as_bytes()).await.unwrap();
    }
    let asks = tokio::spawn({
        let calls: String = (0..CALLS).map(|id| call(1_000 + id)).collect();
        async move {
            writer.write_all(calls.as_bytes()).await.unwrap();
            writer
        }
    });
    settled().await;
    assert_eq!(begun.load(Ordering::SeqCst), 2 * MAX_IN_FLIGHT);
    // Another bridge is not affected.
    let (_other, mut its_reader, mut its_writer) = bridge(handler).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    its_writer.write_all(format!("{ping}\n").as_bytes()).await.unwrap();
    assert!(its_reader.next_line().await.unwrap().unwrap().contains("\"result\""));
    // When one call ends, the next one starts.
    go.add_permits(1);
    settled().await;
    assert_eq!(begun.load(Ordering::SeqCst), 2 * MAX_IN_FLIGHT + 1);
    go.add_permits(CALLS - 1);
    for _ in 0..CALLS {
        let line = reader.next_line().await.unwrap().unwrap();
        assert!(line.contains("done"), "{line}");
    }
    assert_eq!(begun.load(Ordering::SeqCst), MAX_IN_FLIGHT + CALLS);
    drop(asks.await.unwrap());
}
