//! Tests of the stream of a bridge, over a pipe.

use std::sync::atomic::{AtomicUsize, Ordering};

use acp_skills_intercept::SessionKey;
use serde_json::{Value, json};
use skills_core::Skill;
use tokio::{
    io::{AsyncBufReadExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    sync::Semaphore,
};

use super::{in_flight::MAX_IN_FLIGHT, *};
use crate::mcp::{
    MAX_SUBSCRIPTIONS,
    fixture::{REVISION, handler, serve, servers, skill},
    handler::Handler,
    unauthenticated::{AUTHENTICATION_TIMEOUT, Unauthenticated},
};

/// Connects a bridge to this handler and completes the handshake. Returns the server, and the agent's end of the
/// bridge.
async fn bridge(
    handler: Handler,
) -> (
    rmcp::service::RunningService<rmcp::RoleServer, Handler>,
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
async fn a_bridge_has_back_pressure() {
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
    // Wait for the bridge to stop reading.
    while matches!(tokio::time::timeout(Duration::from_mins(1), count.changed()).await, Ok(Ok(()))) {}
    assert!(*count.borrow() < REQUESTS / 4, "{} requests were read", *count.borrow());
    for answers in 1..=REQUESTS {
        let line = reader.next_line().await.unwrap();
        assert!(line.is_some_and(|line| line.contains("\"result\"")), "{answers}");
    }
    asks.await.unwrap();
}

/// A client is notified once of each change, even if it sends `notifications/initialized` repeatedly.
#[tokio::test(start_paused = true)]
async fn a_client_is_registered_once() {
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
        assert!(line.contains("notifications/prompts/list_changed"), "{line}");
    }
}

/// Returns a skill with a tool that counts its calls and waits for a permit of `go`.
fn waiting_skill(begun: &Arc<AtomicUsize>, go: &Arc<Semaphore>) -> Skill {
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
async fn the_number_of_calls_in_flight_is_limited() {
    const CALLS: usize = 10 * MAX_IN_FLIGHT;
    let begun = Arc::new(AtomicUsize::new(0));
    let go = Arc::new(Semaphore::new(0));
    let handler = handler(waiting_skill(&begun, &go));
    let (_server, mut reader, mut writer) = bridge(handler.clone()).await;
    let arguments = json!({ "skill": "slow", "tool": "wait" });
    let params = json!({ "name": "call_skill_tool", "arguments": arguments });
    let call = |id: usize| {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        format!("{request}\n")
    };
    // Since the time is paused, this sleep doesn't end until all other tasks are waiting.
    let settled = || tokio::time::sleep(Duration::from_mins(1));
    let cancel = |id: usize| {
        let params = json!({ "requestId": id });
        format!("{}\n", json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
    };
    // Calls that are cancelled should make room for new ones, even though there is no answer to them.
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
    // This should not affect another bridge.
    let (_other, mut its_reader, mut its_writer) = bridge(handler).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    its_writer.write_all(format!("{ping}\n").as_bytes()).await.unwrap();
    assert!(its_reader.next_line().await.unwrap().unwrap().contains("\"result\""));
    // When a call ends, the next one should start.
    go.add_permits(1);
    settled().await;
    assert_eq!(begun.load(Ordering::SeqCst), 2 * MAX_IN_FLIGHT + 1);
    go.add_permits(CALLS - 1);
    for _ in 0..CALLS {
        let line = reader.next_line().await.unwrap().unwrap();
        assert!(line.contains("done"), "{line}");
    }
    assert_eq!(begun.load(Ordering::SeqCst), MAX_IN_FLIGHT + CALLS);
    asks.await.unwrap();
}

/// Subscriptions don't end by themselves, so they leave room for calls. There is a limit for them as well.
#[tokio::test(start_paused = true)]
async fn the_number_of_subscriptions_is_limited() {
    let (_server, mut reader, mut writer) = bridge(handler(skill("review"))).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "x", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    let mut open = 0;
    for id in 1..=2 * MAX_SUBSCRIPTIONS {
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params });
        writer.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        let line = reader.next_line().await.unwrap().unwrap();
        if line.contains("acknowledged") {
            open += 1;
        } else {
            assert!(line.contains("too many open subscriptions"), "{line}");
        }
    }
    assert_eq!(open, MAX_SUBSCRIPTIONS);
    let request =
        json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": { "_meta": meta } });
    writer.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    let line = reader.next_line().await.unwrap().unwrap();
    assert!(line.contains("activate_skill"), "{line}");
}

/// A bridge has to send the session and the token in time. Returns the answer to `line`, and the time until the connection was closed.
async fn answer_to(line: &str, servers: &Servers) -> (String, Duration) {
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let admission = Unauthenticated::default().admit().await;
    tokio::spawn(super::serve(theirs, admission, servers.clone()));
    let begun = tokio::time::Instant::now();
    ours.write_all(line.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // An accepted bridge stays connected.
    let _ = tokio::time::timeout(Duration::from_hours(1), ours.read_to_end(&mut answer)).await;
    (String::from_utf8(answer).unwrap(), begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_bridge_needs_the_token_of_its_session() {
    let servers = servers();
    let server = servers.by_key(SessionKey(1)).unwrap();
    let (session, token) = (&server.path, &server.token);
    let other = "0".repeat(ID_LENGTH);
    let long = "x".repeat(50_000);
    let no_utf8 = "\u{e9}".repeat(ID_LENGTH / 2);
    let now = Duration::ZERO;
    for (line, answer, time) in [
        (String::new(), "", AUTHENTICATION_TIMEOUT),
        (format!("{session} "), "", AUTHENTICATION_TIMEOUT),
        (format!("{session} {other}\n"), "session token is wrong\n", now),
        (format!("{session} {session}\n"), "session token is wrong\n", now),
        (format!("{other} {token}\n"), "no such session\n", now),
        (format!("{no_utf8} {token}\n"), "no such session\n", now),
        (long, "no such session\n", now),
        ("GET / HTTP/1.1\r\n\r\n".repeat(20), "no such session\n", now),
        (format!("{session} {token}\n"), "welcome\n", Duration::from_hours(1)),
    ] {
        let (given, elapsed) = answer_to(&line, &servers).await;
        let line = line.chars().take(200).collect::<String>();
        assert_eq!((given.as_str(), elapsed.as_secs()), (answer, time.as_secs()), "{line:?}");
    }
}
