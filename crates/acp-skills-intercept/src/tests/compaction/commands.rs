//! `/skills active` and `/skills drop NAME`.

use super::*;

fn said(out: &Out) -> String {
    assert!(out.to_agent.is_empty(), "{out:?}");
    out.to_client[0]["params"]["update"]["content"]["text"].as_str().unwrap().to_owned()
}

#[test]
fn active_skills_are_listed_with_their_sizes() {
    let mut fixture = session("x", &json!({}), &[]);
    assert_eq!(said(&fixture.prompt(3, "s", &["/skills active"])), "No skill is active in this session.");
    for skill in ["review", "pdf", "notes"] {
        fixture.handle(Input::Activated(KEY, name(skill)));
    }
    fixture.prompt(4, "s", &["/skills off notes"]);
    completed(&mut fixture, "c");
    assert_eq!(restored(&mut fixture, 5), ["catalog", "pdf", "review"]);
    end(&mut fixture, 5);
    fixture.handle(Input::Activated(KEY, name("pdf")));
    let out = fixture.prompt(6, "s", &["/skills active"]);
    assert!(out.is_nothing());
    let out = fetched(&mut fixture, &out);
    assert_eq!(out.to_client[1]["result"]["stopReason"], "end_turn");
    expect_test::expect![[r"
        **3 active skills in this session**

        - `pdf` (by the model, about 2 tokens)
        - `notes` (by the model, not available)
        - `review` (by the model, about 3 tokens, restored after compaction)

        After a compaction, these skills are restored. `/skills drop NAME` ends the activation of one."]]
    .assert_eq(&said(&out));
}

#[test]
fn a_skill_that_is_dropped_is_not_restored() {
    let mut fixture = session("x", &json!({}), &["review", "pdf"]);
    let out = fixture.prompt(3, "s", &["/skills drop review"]);
    assert_eq!(said(&out), "`review` is no longer active, and will not be restored after a compaction.");
    assert_eq!(out.remembered, [("s".to_owned(), vec![ActiveSkill::new(name("pdf"), ActivatedBy::Model)])]);
    completed(&mut fixture, "c");
    assert_eq!(restored(&mut fixture, 4), ["catalog", "pdf"]);
    end(&mut fixture, 4);
    // It can also be dropped after the compaction, and activated again.
    completed(&mut fixture, "d");
    let out = fixture.prompt(5, "s", &["/skills drop /pdf"]);
    assert_eq!(out.remembered, [("s".to_owned(), vec![])]);
    assert_eq!(fixture.host.reminders.last(), Some(&(KEY, vec![])));
    assert_eq!(restored(&mut fixture, 6), ["catalog"]);
    end(&mut fixture, 6);
    fixture.handle(Input::Activated(KEY, name("review")));
    completed(&mut fixture, "e");
    assert_eq!(restored(&mut fixture, 7), ["catalog", "review"]);
}

#[test]
fn names_of_active_skills_are_needed() {
    let mut fixture = session("x", &json!({}), &["review", "pdf"]);
    for (words, expected) in [
        (
            "/skills drop",
            "Missing skill name. Use `/skills drop NAME` to end the activation of a skill, or `/skills active` to list the \
             active skills.",
        ),
        ("/skills drop notes", "`notes` is not active. Active skills: `pdf`, `review`."),
        ("/skills drop review x", "`x` is not active. Active skills: `pdf`, `review`."),
    ] {
        assert_eq!(said(&fixture.prompt(3, "s", &[words])), expected);
    }
    // A skill can be dropped after it was removed.
    fixture.notices(skills(&["review"]));
    let text = said(&fixture.prompt(4, "s", &["/skills drop pdf review"]));
    assert_eq!(text, "`pdf`, `review` are no longer active, and will not be restored after a compaction.");
    let text = said(&fixture.prompt(5, "s", &["/skills drop pdf"]));
    assert_eq!(text, "`pdf` is not active. No skill is active in this session.");
}

/// Another proxy between us and the agent has `/skills` too.
#[test]
fn commands_go_to_the_proxy_with_the_active_skill() {
    let mut fixture = session("x", &json!({}), &["review"]);
    let list = json!([{ "name": "skills", "description": "Theirs." }]);
    fixture.update("s", &json!({ "sessionUpdate": "available_commands_update", "availableCommands": list }));
    for words in ["/skills active", "/skills drop pdf", "/skills drop"] {
        assert_eq!(texts(fixture.prompt(3, "s", &[words]).agent()), [words]);
    }
    assert!(said(&fixture.prompt(4, "s", &["/skills drop review"])).starts_with("`review` is no longer"));
}

#[test]
fn a_cancelled_list_is_answered_once() {
    let mut fixture = session("x", &json!({}), &["review"]);
    let held = fixture.prompt(3, "s", &["/skills active"]);
    let out = fixture
        .client(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }));
    assert_eq!(out.to_client.len(), 1);
    assert!(fetched(&mut fixture, &held).is_silence());
}

/// The host can't read the instructions.
#[test]
fn a_list_that_fails_is_answered_to_the_user() {
    let mut fixture = session("x", &json!({}), &["review"]);
    let held = fixture.prompt(3, "s", &["/skills active"]);
    let why = NotFetched { why: "the server of this session is gone".to_owned(), failed: None };
    let out = fixture.handle(Input::NotFetched { session: KEY, ticket: held.ticket(), why });
    assert_eq!(said(&out), "the server of this session is gone");
    assert_eq!(out.to_client[1]["result"]["stopReason"], "end_turn");
}
