//! Tests of requests for permission, with the messages of real agents.

mod course;
mod one_by_one;
mod ours;
mod policies;
mod server_calls;

use serde_json::{Value, json};
use skills_core::{Properties, Scope};

use super::*;

const CLAUDE: &str = "@agentclientprotocol/claude-agent-acp";
const CODEX: &str = "@agentclientprotocol/codex-acp";

fn skills() -> SkillSet {
    let skill = |name: &str, allowed: &[&str]| {
        let mut properties = Properties::default();
        properties.allowed_tools = allowed.iter().map(|&tool| tool.to_owned()).collect();
        Skill::builder(name, "x").body("x").properties(properties).build().unwrap()
    };
    let skills = [
        skill("git", &["Bash(git status:*)", "Read"]),
        skill("vague", &["Bash(git s*)"]),
        skill("notes", &["Edit(notes/**)"]),
        skill("free", &[]),
    ];
    skills.into_iter().collect()
}

fn fixture(agent: &str, policy: Policy) -> Fixture {
    let mut fixture = Fixture::with_skills(policy, skills()).initialized(agent, &json!({}));
    fixture.new_session(1, "s");
    fixture
}

fn ask(fixture: &mut Fixture, call: &Value, meta: Option<Value>) -> Out {
    let mut params = json!({
        "sessionId": "s",
        "toolCall": call,
        "options": [
            { "optionId": "always", "name": "Always Allow", "kind": "allow_always" },
            { "optionId": "proceed_once", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ],
    });
    if let Some(meta) = meta {
        params["_meta"] = meta;
    }
    fixture.agent(
        &json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params }),
    )
}

/// Returns the chosen option, or `asked` if the request was forwarded to the client.
fn outcome(out: &Out) -> &str {
    match (&out.to_client[..], &out.to_agent[..]) {
        ([_], []) => "asked",
        // If the proxy grants the request, it might announce the call to the client.
        (told, [answer])
            if told.iter().all(|line| line["params"]["update"]["sessionUpdate"] == "tool_call") =>
        {
            assert_eq!(answer["id"], 7);
            assert_eq!(answer["result"]["outcome"]["outcome"], "selected");
            answer["result"]["outcome"]["optionId"].as_str().unwrap()
        }
        _ => panic!("{out:?}"),
    }
}

/// Builds a call as Claude reports it.
fn call(name: &str, input: &Value) -> Value {
    json!({ "toolCallId": "1", "title": "x", "name": name, "rawInput": input })
}

fn invoke(fixture: &mut Fixture, skill: &str) {
    invoke_with(fixture, &[&format!("/{skill}")]);
}

/// Invokes a skill with a prompt of these blocks. Returns the active skills that were saved.
fn invoke_with(fixture: &mut Fixture, blocks: &[&str]) -> ActiveSkills {
    let out = fixture.prompt(2, "s", blocks);
    let [.., Task::Ask(Query::Fetch { session, ticket, .. })] = out.tasks[..] else { panic!("{out:?}") };
    let fetched = fixture.handle(Input::Fetched {
        session,
        ticket,
        fetched: Fetched { text: Some("x".into()), ..Fetched::default() },
    });
    let saved = out.remembered.into_iter().chain(fetched.remembered).last();
    saved.map(|(_, active)| active).unwrap_or_default()
}

fn activate(fixture: &mut Fixture, skill: &str) {
    fixture.handle(Input::Activated(SessionKey(1), SkillName::new(skill).unwrap()));
}

/// A call arrives at the skills server.
fn arrives(fixture: &mut Fixture, tool: &str, arguments: &Value) -> Out {
    let arguments = arguments.as_object().unwrap().clone();
    fixture.handle(Input::CallArrived { session: SessionKey(1), tool: tool.to_owned(), arguments })
}
