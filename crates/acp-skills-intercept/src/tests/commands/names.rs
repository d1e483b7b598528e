//! Tests of names that are both a skill and a command of the agent.

use serde_json::{Value, json};

use super::*;
use crate::policy::CommandNames;

/// Opens a session with skills of this scope and an agent with these commands.
fn conflict(names: CommandNames, scope: Scope, theirs: &[&str]) -> (Fixture, Out) {
    let policy = Policy { commands: names, ..policy() };
    let mut fixture = Fixture::with_skills(policy, with_scope(scope)).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    let theirs: Vec<_> = theirs.iter().map(|name| json!({ "name": name, "description": "theirs" })).collect();
    let out = fixture.update("s", &commands(&theirs));
    (fixture, out)
}

fn named(theirs: &[&str]) -> Fixture {
    conflict(CommandNames::Auto, Scope::Named, theirs).0
}

/// Returns the text that the agent gets for a command that is not a skill.
fn forwarded(fixture: &mut Fixture, typed: &str) -> String {
    let out = fixture.prompt(20, "s", &[typed]);
    let text = texts(out.agent()).last().unwrap().to_string();
    fixture.respond(20, &json!({ "stopReason": "end_turn" }));
    text
}

#[test]
fn the_winner_of_a_name_depends_on_its_scope_and_the_option() {
    for (names, scope, wins) in [
        (CommandNames::Auto, Scope::Named, true),
        (CommandNames::Auto, Scope::Scanned, false),
        (CommandNames::Auto, Scope::Project, false),
        (CommandNames::Auto, Scope::User, false),
        (CommandNames::Auto, Scope::Remote, false),
        (CommandNames::Auto, Scope::Session, false),
        (CommandNames::Skills, Scope::Scanned, true),
        (CommandNames::Skills, Scope::Named, true),
        (CommandNames::Agent, Scope::Named, false),
        (CommandNames::Agent, Scope::Scanned, false),
    ] {
        let (mut fixture, out) = conflict(names, scope, &["web", "Review"]);
        let expected = if wins {
            ["skills", "review", "Plan-B", "secret", "web", "agent:Review"]
        } else {
            ["skills", "skill:review", "Plan-B", "secret", "web", "Review"]
        };
        assert_eq!(sent(&out), expected, "{names:?} {scope:?}");
        let list = &out.client()["params"]["update"]["availableCommands"];
        let theirs = if wins { "Agent: theirs" } else { "theirs" };
        assert_eq!(
            (&list[1]["description"], &list[5]["description"]),
            (&json!("Skill: Does review."), &json!(theirs))
        );
        assert_eq!(
            (&list[2]["description"], &list[4]["description"]),
            (&json!("Does Plan B."), &json!("theirs"))
        );
        if wins {
            let prompt = expanded(&mut fixture, 2, &json!([text("/review x")]));
            assert_eq!(prompt.as_array().unwrap().last(), Some(&text("x")));
        } else {
            assert_eq!(forwarded(&mut fixture, "/review x"), "/review x");
        }
        // Both prefixes work in any case.
        assert_eq!(forwarded(&mut fixture, "/agent:review x"), "/review x");
        let prompt = expanded(&mut fixture, 3, &json!([text("/skill:review x")]));
        assert_eq!(prompt.as_array().unwrap().last(), Some(&text("x")));
    }
}

#[test]
fn the_list_of_skills_names_the_command_of_the_agent() {
    for (scope, expected) in [
        (Scope::Named, "- `/review` (the agent's own is `/agent:review`): "),
        (Scope::Scanned, "- `/skill:review`: "),
    ] {
        let (mut fixture, _) = conflict(CommandNames::Auto, scope, &["review"]);
        let out = fixture.prompt(2, "s", &["/skills"]);
        let answer = out.to_client[0]["params"]["update"]["content"]["text"].as_str().unwrap();
        assert!(answer.contains(expected) && answer.contains("- `/Plan-B`: "), "{answer}");
    }
}

#[test]
fn only_the_prefix_of_a_command_is_removed() {
    let mut fixture = named(&["review", "web", "plan-b list", "agent:own"]);
    for (typed, expected) in [
        ("/agent:review", "/review"),
        (" /agent:review  a\n/agent:b ", " /review  a\n/agent:b "),
        ("/agent:REVIEW \u{1f389}", "/REVIEW \u{1f389}"),
        ("/agent:web x", "/web x"),
        ("/agent:plan-b list", "/plan-b list"),
        // A skill has this name, and the agent has not listed such a command.
        ("/agent:secret", "/secret"),
        // These are commands of the agent, or text.
        ("/agent:own x", "/agent:own x"),
        ("/agent:unknown x", "/agent:unknown x"),
        ("/agent:skills", "/agent:skills"),
        ("/agent:", "/agent:"),
        ("/agent:review/x", "/agent:review/x"),
        ("$agent:review", "$agent:review"),
        ("Say /agent:review", "Say /agent:review"),
    ] {
        assert_eq!(forwarded(&mut fixture, typed), expected);
    }
    // All other parts of the prompt stay as they are.
    let line = r#"{"jsonrpc":"2.0", "id":30,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"Sharing \u0061.rs"},{"text":"/agent:review a","type":"text","_meta":{"n":1.0}},{"type":"image","data":""}]}}"#;
    let out = fixture.as_the_agent_gets_it(line);
    assert_eq!(out, line.replace("/agent:review", "/review"));
}

/// The name of our own command is not available for skills.
#[test]
fn a_skill_does_not_replace_our_own_command() {
    let policy = Policy { commands: CommandNames::Skills, ..policy() };
    let mut fixture = Fixture::with_skills(policy, skills(&["skills"])).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    let list = commands(&[json!({ "name": "skills", "description": "theirs" })]);
    assert_eq!(sent(&fixture.update("s", &list)), ["skill:skills", "skills"]);
    assert_eq!(forwarded(&mut fixture, "/skills x"), "/skills x");
    assert_eq!(forwarded(&mut fixture, "/agent:skills x"), "/skills x");
}

#[test]
fn commands_with_the_prefix_come_back_as_typed() {
    let mut fixture = named(&["review", "web"]);
    let chunk = |fixture: &mut Fixture, text: &str| {
        let content = json!({ "type": "text", "text": text });
        let out = fixture.update("s", &json!({ "sessionUpdate": "user_message_chunk", "content": content }));
        out.client()["params"]["update"]["content"]["text"].as_str().unwrap().to_owned()
    };
    let title = |fixture: &mut Fixture, title: &str| {
        fixture.request(40, "session/list", &json!({}));
        let out = fixture.respond(40, &json!({ "sessions": [{ "sessionId": "s", "title": title }] }));
        let listed = out.client()["result"]["sessions"][0]["title"].clone();
        let out = fixture.update("s", &json!({ "sessionUpdate": "session_info_update", "title": title }));
        assert_eq!(out.client()["params"]["update"]["title"], listed);
        listed.as_str().unwrap().to_owned()
    };
    // Nothing is changed if the user has not typed the prefix.
    assert_eq!(
        (chunk(&mut fixture, "/review x"), title(&mut fixture, "/review x")),
        ("/review x".into(), "/review x".into())
    );
    assert_eq!(forwarded(&mut fixture, "/agent:review x <y"), "/review x <y");
    for (sent, expected) in [
        ("/review x <y", "/agent:review x <y"),
        ("/review", "/agent:review"),
        (" /Review x", " /agent:Review x"),
        ("/reviews x", "/reviews x"),
        ("/web x", "/web x"),
        ("say /review x", "say /review x"),
        ("/", "/"),
        ("\u{e4}", "\u{e4}"),
    ] {
        assert_eq!(chunk(&mut fixture, sent), expected);
        assert_eq!(title(&mut fixture, sent), expected);
    }
    // Messages of the agent are not changed.
    let answer =
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "/review x" } });
    assert_eq!(fixture.update("s", &answer).client()["params"]["update"], answer);
}

/// After the skill was turned off, the user types the command without a prefix, and sees it without one.
#[test]
fn the_prefix_is_forgotten_if_it_is_not_needed() {
    let mut fixture = named(&["review"]);
    let title = |fixture: &mut Fixture| {
        let out =
            fixture.update("s", &json!({ "sessionUpdate": "session_info_update", "title": "/review x" }));
        out.client()["params"]["update"]["title"].as_str().unwrap().to_owned()
    };
    forwarded(&mut fixture, "/agent:review x");
    assert_eq!(title(&mut fixture), "/agent:review x");
    fixture.prompt(2, "s", &["/skills off review"]);
    assert_eq!(forwarded(&mut fixture, "/review x"), "/review x");
    assert_eq!(title(&mut fixture), "/review x");
}

/// A prompt that waits for the agent's tools loses its prefix as well.
#[test]
fn a_command_that_waits_is_sent_without_its_prefix() {
    let waits = Policy { mcp_wait: Duration::from_secs(2), ..policy() };
    let capabilities = json!({ "mcpCapabilities": { "http": true } });
    let mut fixture = Fixture::with_skills(waits, with_scope(Scope::Named)).initialized("x", &capabilities);
    fixture.new_session(1, "s");
    fixture.update("s", &commands(&[json!({ "name": "review", "description": "theirs" })]));
    let out = fixture.prompt(2, "s", &["/agent:review x"]);
    assert!(out.is_nothing(), "{out:?}");
    let out = fixture.handle(Input::ToolsListed(KEY));
    assert_eq!(texts(out.agent()), ["/review x"]);
}

/// In version 2, the agent repeats the whole message.
#[test]
fn whole_messages_come_back_as_typed() {
    let mut fixture =
        Fixture::with_skills(policy(), with_scope(Scope::Named)).initialized_v2("x", &json!({}));
    fixture.new_session(1, "s");
    assert_eq!(forwarded(&mut fixture, "/agent:review x"), "/review x");
    let content = json!([text("Sharing a.rs"), text("/review x"), { "type": "image", "data": "" }]);
    let update = json!({ "sessionUpdate": "user_message", "messageId": "1", "content": content });
    let out = fixture.update("s", &update);
    let mut expected = update;
    expected["content"][1]["text"] = json!("/agent:review x");
    assert_eq!(out.client()["params"]["update"], expected);
}

/// Another proxy in the chain, between this one and the agent, may have replaced a command of the same name.
#[test]
fn prefixes_can_be_nested() {
    let (mut fixture, out) =
        conflict(CommandNames::Auto, Scope::Named, &["review", "agent:review", "agent:web", "web"]);
    assert_eq!(
        sent(&out),
        ["skills", "review", "Plan-B", "secret", "agent:review", "agent:agent:review", "agent:web", "web"]
    );
    for (typed, expected) in [
        ("/agent:review x", "/review x"),
        ("/agent:agent:review x", "/agent:review x"),
        ("/agent:web x", "/agent:web x"),
        ("/agent:agent:web x", "/agent:web x"),
    ] {
        assert_eq!(forwarded(&mut fixture, typed), expected);
    }
    // A hostile list doesn't exhaust the stack.
    let long = "agent:".repeat(200_000) + "review";
    assert_eq!(forwarded(&mut fixture, &format!("/agent:{long}")), format!("/{long}"));
    let out = fixture.update("s", &commands(&[json!({ "name": long, "description": "x" })]));
    assert_eq!(sent(&out).last(), Some(&format!("agent:{long}").as_str()));
}

/// A command of the agent with several words, a slash, or no description.
#[test]
fn entries_of_the_agent_keep_their_members() {
    let mut fixture = named(&[]);
    let list = json!([
        { "description": "Sh\u{e4}re", "input": { "hint": "q" }, "name": "/plan-b list", "_meta": { "n": 1 } },
        { "name": "secret" },
        { "name": "background", "description": "x" },
        { "name": 5 },
        { "name": "mcp__acp-skills__review", "description": "x" },
    ]);
    for (skip, reflections) in [(1, 0), (0, 1)] {
        let list: Vec<Value> = list.as_array().unwrap()[..5 - skip].to_vec();
        let out = fixture.update("s", &commands(&list));
        let got = out.client()["params"]["update"]["availableCommands"].as_array().unwrap();
        let mut expected: Vec<Value> = list[..list.len() - reflections].to_vec();
        expected[0]["name"] = json!("/agent:plan-b list");
        expected[0]["description"] = json!("Agent: Sh\u{e4}re");
        expected[1]["name"] = json!("agent:secret");
        assert_eq!(got[4..], expected);
        assert_eq!(
            (&got[2]["name"], &got[2]["description"]),
            (&json!("Plan-B"), &json!("Skill: Does Plan B."))
        );
    }
}

/// A skill that is turned off gives the name back.
#[test]
fn a_disabled_skill_does_not_replace_a_command() {
    let mut fixture = named(&["review"]);
    let out = fixture.prompt(2, "s", &["/skills off review"]);
    let menus: Vec<_> =
        out.to_client.iter().filter(|line| line.to_string().contains("availableCommands")).collect();
    assert_eq!(menu(menus[0]), ["skills", "Plan-B", "secret", "review"]);
    assert_eq!(forwarded(&mut fixture, "/review x"), "/review x");
}
