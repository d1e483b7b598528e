//! Tests of slash commands: the menu, the invocation of skills, and `/skills`.

mod expansion;
mod menu;
mod names;
mod overview;

use serde_json::{Value, json};
use skills_core::{Properties, Scope};

use super::*;

const KEY: SessionKey = SessionKey(1);

fn skill(name: &str, change: impl FnOnce(&mut Properties)) -> Skill {
    let mut properties = Properties::default();
    change(&mut properties);
    let builder = Skill::builder(name, format!("Does {name}.")).body("Do it.");
    builder.properties(properties).build().unwrap()
}

/// Returns skills that were found by scanning.
fn set() -> SkillSet {
    with_scope(Scope::Scanned)
}

fn with_scope(scope: Scope) -> SkillSet {
    let skills = [
        skill("review", |properties| properties.argument_hint = Some("[file]".into())),
        skill("Plan B", |_| {}),
        skill("secret", |properties| properties.disable_model_invocation = true),
        skill("background", |properties| properties.user_invocable = false),
    ];
    let scoped = skills.into_iter().map(|mut skill| {
        skill.scope = scope;
        skill
    });
    scoped.collect()
}

fn fixture() -> Fixture {
    Fixture::with_skills(policy(), set()).initialized("x", &json!({}))
}

/// Opens a session with an agent that has these commands.
fn session(theirs: &[&str]) -> Fixture {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    let theirs: Vec<_> = theirs.iter().map(|name| json!({ "name": name, "description": "theirs" })).collect();
    fixture.update("s", &commands(&theirs));
    fixture
}

fn commands(list: &[Value]) -> Value {
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": list })
}

fn menu(message: &Value) -> Vec<&str> {
    let list = message["params"]["update"]["availableCommands"].as_array().unwrap();
    list.iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

/// Returns the menu in the only message that was sent.
fn sent(out: &Out) -> Vec<&str> {
    menu(out.client())
}

/// Sends a command, answers its query, and returns the prompt for the agent.
fn expanded(fixture: &mut Fixture, request: u64, prompt: &Value) -> Value {
    let out = fixture.request(request, "session/prompt", &json!({ "sessionId": "s", "prompt": prompt }));
    assert!(out.is_nothing(), "{out:?}");
    let [Task::Ask(Query::Fetch { session, ticket, wanted: Wanted::Skill { name, arguments, .. } })] =
        &out.tasks[..]
    else {
        panic!("{out:?}")
    };
    let text = format!("<skill_content name=\"{name}\">Do it with [{arguments}].</skill_content>");
    let out = fixture.handle(Input::Fetched {
        session: *session,
        ticket: *ticket,
        fetched: Fetched { text: Some(text), ..Fetched::default() },
    });
    let mut message = out.agent().clone();
    assert_eq!(message["id"], request);
    message["params"]["prompt"].take()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
