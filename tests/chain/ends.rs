//! The end of a component: it is dropped midway, its agent disconnects, or its client disconnects. It must leave nothing
//! behind.

use std::sync::{Arc, Weak};

use acp_skills::{SkillsProxy, library::SkillLibrary};
use agent_client_protocol::{Channel, Client, Conductor, ConnectTo, TransportFrame};
use futures::StreamExt;

use crate::fixture::{DEADLINE, skills};

/// Returns a proxy, and a weak pointer that shows when the proxy's state is dropped.
fn watched() -> (SkillsProxy, Weak<dyn SkillLibrary>) {
    let library: Arc<dyn SkillLibrary> = Arc::new(skills("alpha"));
    let left = Arc::downgrade(&library);
    (SkillsProxy::with_library(library), left)
}

async fn wait_until_dropped(of: &Weak<dyn SkillLibrary>) {
    let gone = async {
        while of.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, gone).await.expect("no thread and no task is left");
}

fn line(text: &str) -> TransportFrame {
    TransportFrame::parse_json(text)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#;

/// Dropping a component's future midway, and then its peers, drops all of its state.
#[tokio::test]
async fn a_component_is_dropped_midway() {
    let ((proxy, left), (client, ours), (agent, its)) = (watched(), Channel::duplex(), Channel::duplex());
    let (from_us, to_us) = client.into_parts();
    let (mut asked, to_proxy) = its.into_parts();
    let run = tokio::spawn(ConnectTo::<Client>::connect_to(proxy.in_front_of(agent), ours));
    to_us.unbounded_send(line(INITIALIZE)).expect("the proxy reads");
    asked.next().await.expect("the agent hears of it");
    run.abort();
    assert!(run.await.expect_err("aborted").is_cancelled());
    drop((from_us, to_us, asked, to_proxy));
    wait_until_dropped(&left).await;

    let ((proxy, left), (conductor, ours)) = (watched(), Channel::duplex());
    let run = tokio::spawn(ConnectTo::<Conductor>::connect_to(proxy, ours));
    let (mut from_us, to_us) = conductor.into_parts();
    to_us
        .unbounded_send(line(&INITIALIZE.replace("initialize", "proxy/initialize")))
        .expect("the proxy reads");
    from_us.next().await.expect("the successor hears of it");
    run.abort();
    assert!(run.await.expect_err("aborted").is_cancelled());
    drop((to_us, from_us));
    wait_until_dropped(&left).await;
}

/// If the agent disconnects, its open request gets an error, and all state of the proxy is dropped.
#[tokio::test]
async fn an_agent_that_disconnects_during_a_request() {
    let ((proxy, left), (client, ours), (agent, its)) = (watched(), Channel::duplex(), Channel::duplex());
    let run = tokio::spawn(ConnectTo::<Client>::connect_to(proxy.in_front_of(agent), ours));
    let (mut from_us, to_us) = client.into_parts();
    to_us.unbounded_send(line(INITIALIZE)).expect("the proxy reads");
    let (mut asked, to_proxy) = its.into_parts();
    asked.next().await.expect("the agent hears of it");
    drop((asked, to_proxy));
    let answer = from_us.next().await.expect("an answer").to_json().expect("JSON");
    assert!(answer.contains("\"id\":1") && answer.contains("closed the connection"), "{answer}");
    assert!(from_us.next().await.is_none());
    tokio::time::timeout(DEADLINE, run).await.expect("it ends").expect("no panic").expect("well");
    drop(to_us);
    wait_until_dropped(&left).await;
}

/// If the client disconnects while the agent works, the agent's connection is closed, and the proxy ends with the agent.
#[tokio::test]
async fn a_client_that_disconnects_while_the_agent_works() {
    let ((proxy, left), (client, ours), (agent, its)) = (watched(), Channel::duplex(), Channel::duplex());
    let run = tokio::spawn(ConnectTo::<Client>::connect_to(proxy.in_front_of(agent), ours));
    let (from_us, to_us) = client.into_parts();
    to_us.unbounded_send(line(INITIALIZE)).expect("the proxy reads");
    let (mut asked, to_proxy) = its.into_parts();
    asked.next().await.expect("the agent hears of it");
    drop((from_us, to_us));
    let end = tokio::time::timeout(DEADLINE, asked.next()).await;
    assert!(end.expect("the agent hears that the client is gone").is_none());
    drop((asked, to_proxy));
    let _ = tokio::time::timeout(DEADLINE, run).await.expect("the proxy ends").expect("no panic");
    wait_until_dropped(&left).await;
}
