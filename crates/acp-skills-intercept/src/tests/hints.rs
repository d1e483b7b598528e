//! The line before a prompt that names a skill.

use serde_json::json;

use super::*;

const KEY: SessionKey = SessionKey(1);
const LINE: &str = "Skill `review` may fit this task.";

fn fixture(hint: bool) -> Fixture {
    let policy = Policy { hint, ..policy() };
    let mut fixture = Fixture::with_skills(policy, skills(&["review", "pdf"])).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    fixture
}

/// Answers the query of a prompt with a skill.
fn hinted(fixture: &mut Fixture, ticket: Ticket, skill: Option<&str>) -> Out {
    let hint = skill.map(|name| SkillName::new(name).unwrap());
    let fetched = Fetched { hint, ..Fetched::default() };
    fixture.handle(Input::Fetched { session: KEY, ticket, fetched })
}

#[test]
fn a_fitting_skill_is_named_once_and_without_a_trace_in_the_client() {
    let mut fixture = fixture(true);
    let out = fixture.prompt(2, "s", &["check the diff"]);
    assert!(out.to_agent.is_empty());
    assert_eq!(out.wanted(), &Wanted::Hint { words: "check the diff".into(), except: Vec::new() });
    let ticket = out.ticket();
    let out = hinted(&mut fixture, ticket, Some("review"));
    let sent = texts(out.agent()).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let line = sent.iter().find(|text| text.contains(LINE)).expect("a hint");
    assert!(line.starts_with("<acp-skills-proxy:"), "{line}");
    assert_eq!(sent.last().map(String::as_str), Some("check the diff"));
    // An agent that repeats the prompt repeats the hint, and the client must not see it.
    let echo = fixture.update(
        "s",
        &json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": sent.concat() } }),
    );
    let shown = echo.to_client.iter().map(ToString::to_string).collect::<String>();
    assert!(!shown.contains("may fit") && shown.contains("check the diff"), "{shown}");
    fixture.respond(2, &json!({ "stopReason": "end_turn" }));

    let out = fixture.prompt(3, "s", &["check it again"]);
    let review = SkillName::new("review").unwrap();
    assert_eq!(out.wanted(), &Wanted::Hint { words: "check it again".into(), except: vec![review] });
    let ticket = out.ticket();
    let out = hinted(&mut fixture, ticket, None);
    assert_eq!(texts(out.agent()), ["check it again"]);
}

#[test]
fn commands_active_skills_and_other_policies_get_no_hint() {
    let mut off = fixture(false);
    assert_eq!(off.prompt(2, "s", &["check the diff"]).to_agent.len(), 1);

    let mut on = fixture(true);
    let out = on.prompt(2, "s", &["/compact now"]);
    assert!(out.tasks.is_empty() && out.to_agent.len() == 1, "{out:?}");
    on.respond(2, &json!({ "stopReason": "end_turn" }));
    let ticket = on.prompt(3, "s", &["check the diff"]).ticket();
    // The skill became active while the host was searching.
    on.handle(Input::Activated(KEY, SkillName::new("review").unwrap()));
    let out = hinted(&mut on, ticket, Some("review"));
    assert!(!texts(out.agent()).iter().any(|text| text.contains("may fit")), "{out:?}");
}
