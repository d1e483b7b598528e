//! How a component ends: dropped midway, by its agent, by its client; and that nothing of it is left then.

use std::sync::{Arc, Weak};

use acp_skills::{SkillsProxy, library::SkillLibrary};
use agent_client_protocol::{Channel, Client, Conductor, ConnectTo, TransportFrame};
use futures::StreamExt;

use crate::cast::{DEADLINE, skills};

/// A proxy, and whether anything of it is left.
fn watched() -> (SkillsProxy, Weak<dyn SkillLibrary>) {
    let library: Arc<dyn SkillLibrary> = Arc::new(skills("alpha"));
    let left = Arc::downgrade(&library);
    (SkillsProxy::with_library(library), left)
}

async fn nothing_is_left(of: &Weak<dyn SkillLibrary>) {
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

/// Whoever drops the future of a component midway, and then its peers, is left with nothing of it.
#[tokio::test]
async fn dropped_midway() {
    let ((proxy, left), (client, ours), (agent, its)) = (watched(), Channel::duplex(), Channel::duplex());
    let (from_us, to_us) = client.into_parts();
    let (mut asked, to_proxy) = its.into_parts();
    let run = tokio::spawn(ConnectTo::<Client>::connect_to(proxy.in_front_of(agent), ours));
    to_us.unbounded_send(line(INITIALIZE)).expect("somebody listens");
    asked.next().await.expect("the agent hears of it");
    run.abort();
    assert!(run.await.expect_err("aborted").is_cancelled());
    drop((from_us, to_us, asked, to_proxy));
    nothing_is_left(&left).await;

    let ((proxy, left), (conductor, ours)) = (watched(), Channel::duplex());
    let run = tokio::spawn(ConnectTo::<Conductor>::connect_to(proxy, ours));
    let (mut from_us, to_us) = conductor.into_parts();
    to_us
        .unbounded_send(line(&INITIALIZE.replace("initialize", "proxy/initialize")))
        .expect("somebody listens");
    from_us.next().await.expect("the successor hears of it");
    run.abort();
    assert!(run.await.expect_err("aborted").is_cancelled());
    drop((to_us, from_us));
    nothing_is_left(&left).await;
}

/// An agent that goes leaves no question open, and nothing of the proxy.
#[tokio::test]
async fn an_agent_that_goes_while_it_is_asked() {
    let ((proxy, left), (client, ours), (agent, its)) = (watched(), Channel::duplex(), Channel::duplex());
    let run = tokio::spawn(ConnectTo::<Client>::connect_to(proxy.in_front_of(agent), ours));
    let (mut from_us, to_us) = client.into_parts();
    to_us.unbounded_send(line(INITIALIZE)).expect("somebody listens");
    let (mut asked, to_proxy) = its.into_parts();
    asked.next().await.expect("the agent hears of it");
    drop((asked, to_proxy));
    let answer = from_us.next().await.expect("an answer").to_json().expect("JSON");
    assert!(answer.contains("\"id\":1") && answer.contains("closed the connection"), "{answer}");
    assert!(from_us.next().await.is_none());
    tokio::time::timeout(DEADLINE, run).await.expect("it ends").expect("no panic").expect("well");
    drop(to_us);
    nothing_is_left(&left).await;
}

/// A client that goes while the agent works: the agent hears that nobody is there any more, and its end is ours.
#[tokio::test]
async fn a_client_that_goes_while_the_agent_works() {
    let ((proxy, left), (client, ours), (agent, its)) = (watched(), Channel::duplex(), Channel::duplex());
    let run = tokio::spawn(ConnectTo::<Client>::connect_to(proxy.in_front_of(agent), ours));
    let (from_us, to_us) = client.into_parts();
    to_us.unbounded_send(line(INITIALIZE)).expect("somebody listens");
    let (mut asked, to_proxy) = its.into_parts();
    asked.next().await.expect("the agent hears of it");
    drop((from_us, to_us));
    let end = tokio::time::timeout(DEADLINE, asked.next()).await;
    assert!(end.expect("the agent hears that the client is gone").is_none());
    drop((asked, to_proxy));
    drop(tokio::time::timeout(DEADLINE, run).await.expect("it ends").expect("no panic"));
    nothing_is_left(&left).await;
}
