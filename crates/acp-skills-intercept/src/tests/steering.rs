//! Prompts that arrive while a turn is running.

use super::*;

/// Opens a session whose agent has the skill tools, and sends a first prompt, whose turn goes on.
fn running() -> (Fixture, Out) {
    let mut fixture =
        Fixture::new(policy()).initialized("opencode", &json!({ "mcpCapabilities": { "http": true } }));
    fixture.new_session(1, "s");
    let first = fixture.prompt(2, "s", &["begin"]);
    (fixture, first)
}

/// Returns the texts of a prompt that was sent at once.
fn sent(out: &Out) -> Vec<String> {
    assert!(out.tasks.is_empty() && out.to_client.is_empty(), "{out:?}");
    texts(out.agent()).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_prompt_during_a_turn_is_sent_at_once() {
    let (mut fixture, first) = running();
    assert!(sent(&first)[0].contains("<name>review</name>"));
    let line = r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s", "prompt":[{"type":"text","text":"stop that"}]}}"#;
    let line = format!("{line}\n");
    assert_eq!(fixture.as_the_agent_gets_it(&line), line, "byte for byte");
    // A request of another client for the same purpose is not ours to change.
    let line = r#"{"jsonrpc":"2.0","id":4,"method":"_session/steering","params":{"sessionId":"s","prompt":[{"type":"text","text":"x"}]}}"#;
    let line = format!("{line}\n");
    assert_eq!(fixture.as_the_agent_gets_it(&line), line);
    fixture.notices(skills(&["review", "lint"]));
    let texts = sent(&fixture.prompt(5, "s", &["and lint"]));
    assert!(texts[0].contains("New: `lint`") && texts[1] == "and lint", "{texts:?}");
    assert_eq!(sent(&fixture.prompt(6, "s", &["again"])), ["again"]);
}

/// If the agent drops a prompt, the text of this prompt and of those after it is sent again, in whichever order the turns end.
#[test]
fn text_of_dropped_prompts_is_sent_again() {
    for (ends, expected) in [
        (&[(2, "end_turn"), (3, "end_turn")][..], None),
        (&[(3, "end_turn"), (2, "end_turn")], None),
        (&[(2, "end_turn"), (3, "cancelled")], Some("New: `lint`")),
        (&[(3, "cancelled"), (2, "end_turn")], Some("New: `lint`")),
        (&[(2, "cancelled"), (3, "cancelled")], Some("<name>lint</name>")),
        (&[(3, "cancelled"), (2, "cancelled")], Some("<name>lint</name>")),
        (&[(2, "cancelled"), (3, "end_turn")], Some("<name>lint</name>")),
        (&[(3, "end_turn"), (2, "cancelled")], Some("<name>lint</name>")),
    ] {
        let (mut fixture, _) = running();
        fixture.notices(skills(&["review", "lint"]));
        fixture.prompt(3, "s", &["and lint"]);
        for (id, reason) in ends {
            fixture.respond(*id, &json!({ "stopReason": reason }));
        }
        let texts = sent(&fixture.prompt(4, "s", &["go on"]));
        match expected {
            Some(expected) => assert!(texts.len() == 2 && texts[0].contains(expected), "{ends:?}: {texts:?}"),
            None => assert_eq!(texts, ["go on"], "{ends:?}"),
        }
    }
}

/// An agent that answers no prompt doesn't fill the memory.
#[test]
fn prompts_without_an_end() {
    let (mut fixture, _) = running();
    for number in 0..100_u64 {
        let set = skills(if number % 2 == 0 { &["review", "lint"] } else { &["review"] });
        fixture.notices(set);
        assert_eq!(sent(&fixture.prompt(10 + number, "s", &["more"])).len(), 2, "{number}");
    }
    fixture.respond(2, &json!({ "stopReason": "cancelled" }));
    assert_eq!(sent(&fixture.prompt(500, "s", &["more"])), ["more"]);
}
