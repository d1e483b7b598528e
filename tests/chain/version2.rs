//! Tests a chain with version 2 of the protocol, with the SDK's types of that version at both ends.

use std::sync::{Arc, Mutex, PoisonError};

use acp_skills::SkillsProxy;
use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, Result,
    schema::ProtocolVersion,
    v2::{ConnectionTo, Responder, schema},
};
use agent_client_protocol_conductor::{ConductorImpl, ProxiesAndAgent};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::fixture::{skills, within};

/// The params that the agent has received: those of `session/new`, then those of each prompt.
type Received = Arc<Mutex<Vec<Value>>>;

fn keep(received: &Received, params: &impl serde::Serialize) {
    let params = serde_json::to_value(params).expect("JSON");
    received.lock().unwrap_or_else(PoisonError::into_inner).push(params);
}

/// Returns an agent that keeps all params, echoes each prompt as the protocol requires, and ends the turn.
fn agent(received: &Received) -> impl ConnectTo<Client> + use<> {
    let sessions = Arc::clone(received);
    let prompts = Arc::clone(received);
    Agent
        .v2()
        .name("fixture")
        .on_receive_request(
            async |request: schema::InitializeRequest,
                   responder: Responder<schema::InitializeResponse>,
                   _: ConnectionTo<Client>| {
                let mcp = schema::McpCapabilities::new().http(schema::McpHttpCapabilities::new());
                let session = schema::SessionCapabilities::new().mcp(mcp);
                let info = schema::Implementation::new("fixture", "1");
                responder.respond(
                    schema::InitializeResponse::new(request.protocol_version, info)
                        .capabilities(schema::AgentCapabilities::new().session(session)),
                )
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: schema::NewSessionRequest,
                        responder: Responder<schema::NewSessionResponse>,
                        _: ConnectionTo<Client>| {
                keep(&sessions, &request);
                responder.respond(schema::NewSessionResponse::new("session"))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: schema::PromptRequest,
                        responder: Responder<schema::PromptResponse>,
                        client: ConnectionTo<Client>| {
                keep(&prompts, &request);
                let say = |update| {
                    client.send_notification(schema::UpdateSessionNotification::new("session", update))
                };
                let echo = schema::UserMessage::new("question").content(request.prompt.clone());
                say(schema::SessionUpdate::UserMessage(echo))?;
                responder.respond(schema::PromptResponse::new("question"))?;
                say(schema::SessionUpdate::StateUpdate(schema::StateUpdate::Running(
                    schema::RunningStateUpdate::new(),
                )))?;
                let answer = schema::ContentChunk::new("done".to_owned().into(), "answer");
                say(schema::SessionUpdate::AgentMessageChunk(answer))?;
                let idle = schema::IdleStateUpdate::new().stop_reason(schema::StopReason::EndTurn);
                say(schema::SessionUpdate::StateUpdate(schema::StateUpdate::Idle(idle)))
            },
            agent_client_protocol::on_receive_request!(),
        )
}

/// Reads updates until the end of a turn, and returns the user's message and the agent's message.
async fn turn(updates: &mut UnboundedReceiver<schema::SessionUpdate>) -> Result<(String, String)> {
    let mut user = String::new();
    let mut agent = String::new();
    loop {
        match updates.recv().await.ok_or_else(|| Error::internal_error().data("the chain has ended"))? {
            schema::SessionUpdate::UserMessage(message) => {
                let content = serde_json::to_value(&message).expect("JSON")["content"].take();
                let blocks = content.as_array().into_iter().flatten();
                user.extend(blocks.filter_map(|block| block["text"].as_str()));
            }
            schema::SessionUpdate::AgentMessageChunk(chunk) => {
                if let schema::ContentBlock::Text(text) = chunk.content {
                    agent += &text.text;
                }
            }
            schema::SessionUpdate::StateUpdate(schema::StateUpdate::Idle(idle))
                if idle.stop_reason.is_some() =>
            {
                return Ok((user, agent));
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn two_proxies_in_a_chain() {
    let received = Received::default();
    let chain = ProxiesAndAgent::new(agent(&received))
        .proxy(SkillsProxy::new(skills("alpha")).policy(crate::embedded::without_mcp_wait()))
        .proxy(SkillsProxy::new(skills("beta")).policy(crate::embedded::without_mcp_wait()));
    let (sender, mut updates) = unbounded_channel();
    let client = Client
        .v2()
        .on_receive_notification(
            async move |notification: schema::UpdateSessionNotification, _: ConnectionTo<Agent>| {
                sender.send(notification.update).map_err(Error::into_internal_error)
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_with(
            ConductorImpl::new_agent("conductor", chain),
            async move |agent: ConnectionTo<Agent>| {
                let info = schema::Implementation::new("test", "1");
                let answer = agent
                    .send_request(schema::InitializeRequest::new(ProtocolVersion::V2, info))
                    .block_task()
                    .await?;
                assert_eq!(answer.protocol_version, ProtocolVersion::V2);
                let opened = agent.build_session_cwd()?.start_session().block_task().await?;
                for words in ["hello", "/alpha now", "/beta"] {
                    opened.session.send_prompt(words).block_task().await?;
                    let seen = turn(&mut updates).await?;
                    assert_eq!((seen.0.as_str(), seen.1.as_str()), (words, "done"));
                }
                Ok(())
            },
        );
    within(client).await;
    let received = received.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = received[0]["mcpServers"].as_array().expect("servers").iter();
    let servers: Vec<_> = servers.map(|server| (server["type"].as_str(), server["name"].as_str())).collect();
    assert_eq!(servers, [(Some("http"), Some("acp-skills")), (Some("http"), Some("acp-skills-2"))]);
    let first = received[1]["prompt"].to_string();
    assert!(first.contains("Knows alpha.") && first.contains("Knows beta."), "{first}");
    for (prompt, name) in received[2..].iter().zip(["alpha", "beta"]) {
        let prompt = prompt["prompt"].to_string();
        assert!(prompt.contains(&format!("# The body of {name}")), "{prompt}");
        assert!(!prompt.contains(&format!("/{name}\"")), "the prompt still contains the command: {prompt}");
    }
}
