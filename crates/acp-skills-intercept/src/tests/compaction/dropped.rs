//! Prompts with instructions that the agent does not receive, or drops from the conversation.

use super::*;

/// An agent that keeps the prompts of the user in a compaction.
const KEEPS_PROMPTS: &str = "Copilot";

fn drops(fixture: &mut Fixture, request: u64) -> Out {
    fixture.respond(request, &json!({ "stopReason": "cancelled" }))
}

/// Answers the query of a command that invokes a skill.
fn expands(fixture: &mut Fixture, out: &Out) -> Out {
    let fetched = Fetched { text: Some("TEXT".to_owned()), ..Fetched::default() };
    fixture.handle(Input::Fetched { session: KEY, ticket: out.ticket(), fetched })
}

fn last_reminder(fixture: &Fixture) -> Option<(SessionKey, Vec<&str>)> {
    let (key, skills) = fixture.host.reminders.last()?;
    Some((*key, skills.iter().map(String::as_str).collect()))
}

#[test]
fn earlier_restorations_stay_if_one_is_dropped() {
    let mut fixture = session(KEEPS_PROMPTS, &json!({}), &["review"]);
    completed(&mut fixture, "c");
    assert_eq!(restored(&mut fixture, 3), ["review"]);
    end(&mut fixture, 3);
    fixture.handle(Input::Activated(KEY, name("pdf")));
    completed(&mut fixture, "d");
    assert_eq!(restored(&mut fixture, 4), ["pdf"]);
    drops(&mut fixture, 4);
    let text = fixture.prompt(5, "s", &["/skills"]).to_client[0].to_string();
    assert!(text.contains("`/review` (active, by the model, restored after compaction)"), "{text}");
    assert!(text.contains("`/pdf` (active, by the model)"), "{text}");
    assert_eq!(restored(&mut fixture, 6), ["pdf"]);
    end(&mut fixture, 6);
    completed(&mut fixture, "e");
    assert_eq!(prompt(&mut fixture, 7, "go on"), ["go on"], "both are in prompts");
}

/// The agent compacts in the turn of a restoration, and then drops the prompt of this turn.
#[test]
fn a_dropped_restoration_does_not_count_for_a_new_loss() {
    let mut fixture = session(KEEPS_PROMPTS, &json!({}), &["review"]);
    completed(&mut fixture, "c");
    assert_eq!(restored(&mut fixture, 3), ["review"]);
    completed(&mut fixture, "d");
    drops(&mut fixture, 3);
    assert_eq!(last_reminder(&fixture), Some((KEY, vec!["review"])));
    assert_eq!(restored(&mut fixture, 4), ["review"]);
}

/// The user cancels a command while it waits behind another prompt.
#[test]
fn a_command_counts_only_once_it_is_sent() {
    let mut fixture = session("x", &json!({}), &["review", "pdf"]);
    completed(&mut fixture, "c");
    let first = fixture.prompt(3, "s", &["go on"]);
    let second = fixture.prompt(4, "s", &["/pdf"]);
    assert!(expands(&mut fixture, &second).is_nothing());
    fixture.client(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 4 } }));
    let sent = fetched(&mut fixture, &first).agent().to_string();
    assert!(sent.contains("DO pdf") && sent.contains("DO review"), "{sent}");
    // A command that is sent counts.
    end(&mut fixture, 3);
    completed(&mut fixture, "d");
    let out = fixture.prompt(5, "s", &["/pdf"]);
    expands(&mut fixture, &out);
    assert_eq!(last_reminder(&fixture), Some((KEY, vec!["review"])));
    end(&mut fixture, 5);
    assert_eq!(restored(&mut fixture, 6), ["catalog", "review"]);
}

#[test]
fn a_dropped_command_does_not_count() {
    // The compaction comes first.
    let mut fixture = session("x", &json!({}), &["review", "pdf"]);
    completed(&mut fixture, "c");
    let out = fixture.prompt(3, "s", &["/pdf"]);
    expands(&mut fixture, &out);
    drops(&mut fixture, 3);
    assert_eq!(last_reminder(&fixture), Some((KEY, vec!["pdf", "review"])));
    assert_eq!(restored(&mut fixture, 4), ["catalog", "pdf", "review"]);
    // The command comes first, and the agent keeps prompts.
    for dropped in [false, true] {
        let mut fixture = session(KEEPS_PROMPTS, &json!({}), &[]);
        let out = fixture.prompt(3, "s", &["/pdf"]);
        expands(&mut fixture, &out);
        if dropped {
            drops(&mut fixture, 3);
        } else {
            end(&mut fixture, 3);
        }
        completed(&mut fixture, "c");
        if dropped {
            assert_eq!(restored(&mut fixture, 4), ["pdf"]);
        } else {
            assert_eq!(texts(fixture.prompt(4, "s", &["go on"]).agent()), ["go on"]);
        }
    }
}

/// The proxy adds the instructions to a prompt, because they match it.
#[test]
fn a_dropped_match_does_not_count() {
    for dropped in [false, true] {
        let policy = Policy { activation: Activation::Prompt, ..policy() };
        let mut fixture =
            Fixture::with_skills(policy, skills(&["review", "pdf"])).initialized(KEEPS_PROMPTS, &json!({}));
        fixture.new_session(1, "s");
        let ticket = fixture.prompt(2, "s", &["please review"]).ticket();
        let activations = vec![record::activation(ActivatedBy::Prompt)];
        let fetched = Fetched { text: Some("BEST".to_owned()), activations, ..Fetched::default() };
        fixture.handle(Input::Fetched { session: KEY, ticket, fetched });
        if dropped {
            drops(&mut fixture, 2);
        } else {
            end(&mut fixture, 2);
        }
        completed(&mut fixture, "c");
        let out = fixture.prompt(3, "s", &["go on"]);
        let Wanted::Active { names, .. } = out.wanted() else {
            assert!(!dropped, "{out:?}");
            continue;
        };
        assert!(dropped, "{out:?}");
        assert_eq!(*names, [name("review")]);
    }
}

/// Two prompts are sent before the turn of the first one is over.
#[test]
fn each_of_two_prompts_can_be_dropped() {
    for (dropped, expected) in [
        ([false, false], &[][..]),
        ([true, false], &["review"]),
        ([false, true], &["pdf"]),
        ([true, true], &["pdf", "review"]),
    ] {
        let mut fixture = session(KEEPS_PROMPTS, &json!({}), &["review"]);
        completed(&mut fixture, "c");
        assert_eq!(restored(&mut fixture, 3), ["review"]);
        let out = fixture.prompt(4, "s", &["/pdf"]);
        expands(&mut fixture, &out);
        for (request, dropped) in (3..).zip(dropped) {
            if dropped {
                drops(&mut fixture, request);
            } else {
                end(&mut fixture, request);
            }
        }
        completed(&mut fixture, "d");
        let texts = prompt(&mut fixture, 5, "go on");
        let again = texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("DO "));
        assert_eq!(again.collect::<Vec<_>>(), expected, "{dropped:?}");
    }
}

#[test]
fn a_loss_that_comes_back_is_reminded_of() {
    let mut fixture = session("x", &json!({}), &["review"]);
    completed(&mut fixture, "c");
    assert_eq!(restored(&mut fixture, 3), ["catalog", "review"]);
    assert_eq!(last_reminder(&fixture), Some((KEY, vec![])));
    drops(&mut fixture, 3);
    assert_eq!(last_reminder(&fixture), Some((KEY, vec!["review"])));
    // In version 2, the end of the turn is an update.
    let mut fixture = Fixture::new(policy()).initialized_v2("x", &json!({}));
    let idle = |fixture: &mut Fixture, stop: &str| {
        let update = json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": stop });
        fixture.update("s", &update);
    };
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["hello"]);
    fixture.respond(2, &json!({}));
    fixture.handle(Input::Activated(KEY, name("review")));
    idle(&mut fixture, "end_turn");
    completed(&mut fixture, "c");
    assert_eq!(restored(&mut fixture, 3), ["review"]);
    fixture.respond(3, &json!({}));
    assert_eq!(last_reminder(&fixture), Some((KEY, vec![])));
    idle(&mut fixture, "cancelled");
    assert_eq!(last_reminder(&fixture), Some((KEY, vec!["review"])));
}

#[test]
fn a_copy_is_reminded_of_the_same() {
    let mut fixture = session("x", &json!({}), &["review"]);
    let params = json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] });
    fixture.request(3, "session/fork", &params);
    assert_eq!(last_reminder(&fixture), None, "nothing is lost");
    completed(&mut fixture, "c");
    fixture.request(4, "session/fork", &params);
    assert_eq!(last_reminder(&fixture), Some((SessionKey(3), vec!["review"])));
}

/// A skill that was off at the time of the compaction.
#[test]
fn a_skill_that_is_turned_on_again_is_reminded_of() {
    let mut fixture = session("x", &json!({}), &["review", "pdf"]);
    fixture.prompt(3, "s", &["/skills off pdf"]);
    completed(&mut fixture, "c");
    assert_eq!(last_reminder(&fixture), Some((KEY, vec!["review"])));
    fixture.prompt(4, "s", &["/skills on pdf"]);
    assert_eq!(last_reminder(&fixture), Some((KEY, vec!["pdf", "review"])));
}
