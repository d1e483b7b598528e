//! Ends a component by dropping it, by closing the agent, and by closing the client. No task or thread may be left.

use std::sync::{Arc, Weak};

use acp_skills::{SkillsProxy, library::SkillLibrary};
use agent_client_protocol::{Channel, Client, Conductor, ConnectTo, TransportFrame};
use futures::StreamExt;

use crate::fixture::{DEADLINE, skills};

/// Returns a proxy, and a weak reference to its library that shows if any part of the proxy still exists.
fn watched() -> (SkillsProxy, Weak<dyn SkillLibrary>) {
    let library: Arc<dyn SkillLibrary> = Arc::new(skills("alpha"));
    let left = Arc::downgrade(&library);
    (SkillsProxy::with_library(library), left)
}

/// Waits until all parts of a proxy have been dropped.
async fn wait_until_dropped(library: &Weak<dyn SkillLibrary>) {
    let dropped = async {
        while library.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, dropped).await.expect("all threads and tasks have ended");
}

fn line(text: &str) -> TransportFrame {
    TransportFrame::parse_json(text)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#;

/// Dropping the future of a component and its peers ends all its tasks.
#[tokio::test]
async fn a_dropped_component_leaves_no_task() {
    let (proxy, left) = watched();
    let (client, ours) = Channel::duplex();
    let (agent, agent_peer) = Channel::duplex();
    let (from_us, to_us) = client.into_parts();
    let (mut asked, to_proxy) = agent_peer.into_parts();
    let run = tokio::spawn(ConnectTo::<Client>::connect_to(proxy.in_front_of(agent), ours));
    to_us.unbounded_send(line(INITIALIZE)).expect("the proxy runs");
    asked.next().await.expect("the agent receives `initialize`");
    run.abort();
    assert!(run.await.expect_err("aborted").is_cancelled());
    drop((from_us, to_us, asked, to_proxy));
    wait_until_dropped(&left).await;

    let (proxy, left) = watched();
    let (conductor, ours) = Channel::duplex();
    let run = tokio::spawn(ConnectTo::<Conductor>::connect_to(proxy, ours));
    let (mut from_us, to_us) = conductor.into_parts();
    to_us
        .unbounded_send(line(&INITIALIZE.replace("initialize", "proxy/initialize")))
        .expect("the proxy runs");
    from_us.next().await.expect("the successor receives `initialize`");
    run.abort();
    assert!(run.await.expect_err("aborted").is_cancelled());
    drop((to_us, from_us));
    wait_until_dropped(&left).await;
}

/// If the agent closes its connection, pending requests are answered with an error and the proxy ends.
#[tokio::test]
async fn closing_the_agent_answers_pending_requests() {
    let (proxy, left) = watched();
    let (client, ours) = Channel::duplex();
    let (agent, agent_peer) = Channel::duplex();
    let run = tokio::spawn(ConnectTo::<Client>::connect_to(proxy.in_front_of(agent), ours));
    let (mut from_us, to_us) = client.into_parts();
    to_us.unbounded_send(line(INITIALIZE)).expect("the proxy runs");
    let (mut asked, to_proxy) = agent_peer.into_parts();
    asked.next().await.expect("the agent receives `initialize`");
    drop((asked, to_proxy));
    let answer = from_us.next().await.expect("an answer").to_json().expect("JSON");
    assert!(answer.contains("\"id\":1") && answer.contains("closed the connection"), "{answer}");
    assert!(from_us.next().await.is_none());
    tokio::time::timeout(DEADLINE, run).await.expect("the proxy ends").expect("no panic").expect("no error");
    drop(to_us);
    wait_until_dropped(&left).await;
}

/// If the client closes its connection, the agent's connection is closed, and the proxy ends with the agent.
#[tokio::test]
async fn closing_the_client_closes_the_agent() {
    let (proxy, left) = watched();
    let (client, ours) = Channel::duplex();
    let (agent, agent_peer) = Channel::duplex();
    let run = tokio::spawn(ConnectTo::<Client>::connect_to(proxy.in_front_of(agent), ours));
    let (from_us, to_us) = client.into_parts();
    to_us.unbounded_send(line(INITIALIZE)).expect("the proxy runs");
    let (mut asked, to_proxy) = agent_peer.into_parts();
    asked.next().await.expect("the agent receives `initialize`");
    drop((from_us, to_us));
    let end = tokio::time::timeout(DEADLINE, asked.next()).await;
    assert!(end.expect("the agent's connection is closed").is_none());
    drop((asked, to_proxy));
    let _ = tokio::time::timeout(DEADLINE, run).await.expect("the proxy ends").expect("no panic");
    wait_until_dropped(&left).await;
}
