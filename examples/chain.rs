//! Two proxies with different skills in one chain, under the conductor of the ACP SDK.
//!
//!     cargo run --example chain

use acp_skills::{SkillsProxy, component::DemoAgent};
use agent_client_protocol::{
    Agent, Client, on_receive_notification,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            ContentBlock, InitializeRequest, NewSessionRequest, PromptRequest, SessionNotification,
            SessionUpdate,
        },
    },
};
use agent_client_protocol_conductor::{ConductorImpl, ProxiesAndAgent};
use skills_core::{BuildError, Skill, SkillSet};

fn skill(name: &str, description: &str, body: &str) -> Result<SkillSet, BuildError> {
    Ok([Skill::builder(name, description).body(body).build()?].into_iter().collect())
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example for the terminal")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let house = skill("house-style", "Knows how this team writes.", "# House style\nShort sentences.")?;
    let ships = skill("release", "Makes a release. Use when something ships.", "# Release\nTag it.")?;
    let chain = ProxiesAndAgent::new(DemoAgent).proxy(SkillsProxy::new(house)).proxy(SkillsProxy::new(ships));

    Client
        .v1()
        .on_receive_notification(
            async |notification: SessionNotification, _: ConnectionTo<Agent>| {
                if let SessionUpdate::AgentMessageChunk(chunk) = notification.update
                    && let ContentBlock::Text(text) = chunk.content
                {
                    print!("{}", text.text);
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(ConductorImpl::new_agent("team", chain), async |agent: ConnectionTo<Agent>| {
            agent.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let here = NewSessionRequest::new(std::env::temp_dir());
            let session = agent.send_request(here).block_task().await?.session_id;
            let prompt = PromptRequest::new(session, vec!["Make a release".into()]);
            let end = agent.send_request(prompt).block_task().await?;
            println!("\n({:?})", end.stop_reason);
            Ok(())
        })
        .await?;
    Ok(())
}
