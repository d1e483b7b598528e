//! Uses the draft extensions for skills through the SDK. The SDK can only send the fields that it defines, so the drafts' fields
//! are sent in `_meta`.

use acp_skills::{SkillsProxy, intercept::Policy};
use agent_client_protocol::{
    Agent, Client, UntypedMessage,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{InitializeRequest, NewSessionRequest, PromptRequest},
    },
};
use serde_json::json;

use crate::{
    embedded::without_mcp_wait,
    fixture::{Log, agent, skills, within},
};

#[tokio::test]
async fn skills_are_sent_in_meta() {
    let log = Log::default();
    let proxy = SkillsProxy::new(skills("alpha")).policy(Policy { drafts: true, ..without_mcp_wait() });
    let play = Client.v1().connect_with(
        proxy.in_front_of(agent(log.clone())),
        async |agent: ConnectionTo<Agent>| {
            let answer = agent.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let meta = answer.agent_capabilities.session_capabilities.meta.expect("the SDK forwards `_meta`");
            assert_eq!(meta["agentSkill"]["supported"], true);
            let provided = json!({ "agentSkills": [{ "name": "deploy", "content": "# Deploys" }] });
            let provided = provided.as_object().expect("an object").clone();
            agent
                .send_request(NewSessionRequest::new(std::env::temp_dir()).meta(provided))
                .block_task()
                .await?;
            let list = UntypedMessage::new("_skills/list", json!({ "sessionId": "session" }))?;
            let list = agent.send_request(list).block_task().await?;
            assert_eq!(
                (&list["skills"][0]["name"], &list["skills"][1]["name"]),
                (&json!("alpha"), &json!("deploy"))
            );
            let call = r#"call acp-skills activate_skill {"name":"deploy"}"#;
            agent.send_request(PromptRequest::new("session", vec![call.into()])).block_task().await?;
            Ok(())
        },
    );
    within(play).await;
    assert!(
        !log.all()[0].to_string().contains("deploy"),
        "the agent received the client's skills: {:?}",
        log.all()[0]
    );
    assert!(log.prompt(0)[0].contains("deploy"), "{:?}", log.prompt(0));
}
