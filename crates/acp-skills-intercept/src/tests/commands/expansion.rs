//! Tests of prompts that are our commands.

use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};

use super::*;

/// Returns the text that the user sees of these chunks, joined as an editor joins them.
fn seen(fixture: &mut Fixture, texts: &[String]) -> String {
    let mut seen = String::new();
    for text in texts {
        let chunk = json!({ "type": "text", "text": text });
        let out = fixture.update("s", &json!({ "sessionUpdate": "user_message_chunk", "content": chunk }));
        seen.extend(
            out.to_client.iter().map(|line| line["params"]["update"]["content"]["text"].as_str().unwrap()),
        );
    }
    let end = fixture.update("s", &json!({ "sessionUpdate": "current_mode_update" }));
    seen.extend(end.to_client.iter().filter_map(|line| line["params"]["update"]["content"]["text"].as_str()));
    seen
}

/// Returns true if a block is the expansion of a command.
fn is_invocation(block: &Value) -> bool {
    block["text"].as_str().is_some_and(|text| begins_with_ours(text) && unmarked(text).starts_with("<typed>"))
}

#[test]
fn a_command_is_expanded() {
    let mut fixture = session(&[]);
    let prompt = expanded(&mut fixture, 2, &json!([text("/review src/main.rs")]));
    // This is the first prompt, so it also includes the catalog.
    let [catalog, ours, theirs] = &prompt.as_array().unwrap()[..] else { panic!("{prompt}") };
    assert!(catalog["text"].as_str().unwrap().contains("<available_skills>"));
    expect![[r#"
        <typed>/review <rest>src/main.rs</rest></typed>
        The user invoked the skill `review` by command. Its instructions are here. Follow them now for the text after the command, which is at the end of this message.

        <skill_content name="review">Do it with [src/main.rs].</skill_content>"#]]
    .assert_eq(unmarked(ours["text"].as_str().unwrap()));
    assert_eq!(theirs, &text("src/main.rs"));
    // The second time, only the instructions and the arguments are sent.
    let prompt = expanded(&mut fixture, 3, &json!([text("/review x")]));
    assert_eq!(prompt.as_array().unwrap().len(), 2);
    let served = fixture.host.served.clone().unwrap();
    assert_eq!((served.0, served.2), (KEY, vec!["review".to_owned()]));
}

#[test]
fn all_shapes_of_prompts() {
    let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
    let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "a", "_meta": { "n": 1.0 } });
    let ours = Value::Null;
    for (prompt, expected) in [
        (json!([text("/review")]), json!([ours])),
        (json!([text("/review ")]), json!([ours])),
        (json!([text("/REVIEW a")]), json!([ours, text("a")])),
        (json!([text("/skill:review a")]), json!([ours, text("a")])),
        (json!([text("/plan-b ünï\ncödé 🎉 ")]), json!([ours, text("ünï\ncödé 🎉 ")])),
        (json!([text("/secret a")]), json!([ours, text("a")])),
        (json!([text("/review a "), link, text(" b")]), json!([ours, text("a "), link, text(" b")])),
        (json!([text("/review "), link, image]), json!([ours, link, image])),
        (json!([image, link, text("/review a")]), json!([image, link, ours, text("a")])),
        (json!([text(" "), text("/review a")]), json!([text(" "), ours, text("a")])),
        // Context from the client should be at the start.
        (json!([text("Sharing a.rs"), text("/review a")]), json!([text("Sharing a.rs"), ours, text("a")])),
        (
            json!([text("Sharing a.rs"), link, text("/review"), image]),
            json!([text("Sharing a.rs"), link, ours, image]),
        ),
        (
            json!([{ "type": "text", "text": "/review a", "annotations": { "priority": 1.0 } }]),
            json!([ours, { "type": "text", "text": "a", "annotations": { "priority": 1.0 } }]),
        ),
    ] {
        let mut fixture = session(&["web"]);
        let got = expanded(&mut fixture, 2, &prompt);
        let got = got.as_array().unwrap();
        let expected = expected.as_array().unwrap();
        // Skip the first block here, since it's the catalog.
        let found = got[1..].iter().map(|block| if is_invocation(block) { &ours } else { block });
        assert!(found.eq(expected), "{prompt}: {got:?}");
        for block in got {
            let starts = block["text"].as_str().is_some_and(|text| text.trim_start().starts_with(['/', '$']));
            assert!(!starts, "{block} of {prompt}");
        }
        // The user should see the text as it was typed, both by block and merged.
        let typed: Vec<_> =
            prompt.as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect();
        let sent: Vec<_> = got.iter().filter_map(|block| block["text"].as_str().map(str::to_owned)).collect();
        let joined = sent.concat();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&seen(&mut fixture, &sent)), words(&typed.concat()));
        assert_eq!(words(&seen(&mut fixture, std::slice::from_ref(&joined))), words(&typed.concat()));
        // A proxy that hasn't seen the prompt can restore it as well, including from a title.
        let mut other = session(&[]);
        assert_eq!(words(&seen(&mut other, &sent)), words(&typed.concat()));
        let title = json!({ "sessionUpdate": "session_info_update", "title": words(&joined) });
        let out = other.update("s", &title);
        assert_eq!(
            words(out.client()["params"]["update"]["title"].as_str().unwrap()),
            words(&typed.concat())
        );
    }
}

#[test]
fn arguments_that_look_like_commands() {
    let mut fixture = session(&[]);
    let prompt = expanded(&mut fixture, 2, &json!([text("/review /etc/passwd")]));
    let theirs = prompt[2]["text"].as_str().unwrap();
    assert_eq!(theirs, MARKS.wrap("The user wrote:") + "/etc/passwd");
    let sent: Vec<_> = (0..3).map(|at| prompt[at]["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(seen(&mut fixture, &sent), "/review /etc/passwd");
    assert_eq!(seen(&mut fixture, &[sent.concat()]), "/review /etc/passwd");
}

#[test]
fn other_commands_are_forwarded() {
    let mut fixture = session(&["web", "review", "secret list"]);
    for (request, words) in (2..).zip([
        "/web x",
        "/review x",
        "/secret",
        "/unknown",
        "/background",
        "/skill:unknown",
        "$review x",
        "/",
        "/ review",
    ]) {
        assert_eq!(texts(fixture.prompt(request, "s", &[words]).agent()), [words], "{words}");
    }
    // This also works after some context from the client.
    for (request, words) in
        (12..).zip(["/web x", "/review x", "/unknown", " /skill:review", "/skill:review/x"])
    {
        let prompt = ["Sharing a.rs", words];
        assert_eq!(texts(fixture.prompt(request, "s", &prompt).agent()), prompt, "{words}");
    }
    // The prefix always means that it's one of our skills.
    let prompt = expanded(&mut fixture, 20, &json!([text("/skill:review x")]));
    assert_eq!(prompt.as_array().unwrap().last(), Some(&text("x")));
}

#[test]
fn the_catalog_is_repeated_after_a_forgotten_command() {
    let mut fixture = session(&[]);
    assert_eq!(expanded(&mut fixture, 2, &json!([text("/review x")])).as_array().unwrap().len(), 3);
    fixture.respond(2, &json!({ "stopReason": "refusal" }));
    assert_eq!(expanded(&mut fixture, 3, &json!([text("/review x")])).as_array().unwrap().len(), 3);
    fixture.respond(3, &json!({ "stopReason": "end_turn" }));
    assert_eq!(expanded(&mut fixture, 4, &json!([text("/review x")])).as_array().unwrap().len(), 2);
    // The title only contains injected text, so use what the user typed instead.
    let title = json!({ "sessionUpdate": "session_info_update", "title": Mark::new(7).open() });
    assert_eq!(fixture.update("s", &title).client()["params"]["update"]["title"], "/review x");
}

#[test]
fn titles_of_arguments_get_their_command() {
    let mut fixture = session(&[]);
    expanded(&mut fixture, 2, &json!([text("/review src/main.rs and more")]));
    for (title, expected) in [
        ("src/main.rs and more", "/review src/main.rs and more"),
        ("src/main.rs a…", "/review src/main.rs a…"),
        ("A review of main.rs", "A review of main.rs"),
        ("…", "…"),
    ] {
        let out = fixture.update("s", &json!({ "sessionUpdate": "session_info_update", "title": title }));
        assert_eq!(out.client()["params"]["update"]["title"], expected);
        fixture.request(3, "session/list", &json!({}));
        let out = fixture.respond(3, &json!({ "sessions": [{ "sessionId": "s", "title": title }] }));
        assert_eq!(out.client()["result"]["sessions"][0]["title"], expected);
    }
}

/// avante repeats earlier messages. Only the new one counts for commands, for titles, and for skills that match a prompt.
#[test]
fn repeated_messages_are_not_the_prompt() {
    let message = |words: &str| format!("<previous_user_message>{words}</previous_user_message>");
    let count =
        "<system_context>Continuing from previous session with 2 recent user messages</system_context>";
    let prompt = |new: &str, old: &str| {
        let [new, old] = [new, old].map(message);
        json!([text(&new), text(&old), text(count)])
    };
    let policy = Policy { activation: Activation::Prompt, ..policy() };
    let mut fixture = Fixture::with_skills(policy, set()).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    let params = json!({ "sessionId": "s", "prompt": prompt("Check the diff", "/review src") });
    let out = fixture.request(2, "session/prompt", &params);
    assert_eq!(out.wanted(), &Wanted::BestFor { words: "Check the diff".to_owned(), guide: Guide::Tools });
    let ticket = out.ticket();
    let fetched = Fetched { text: None, ..Fetched::default() };
    let out = fixture.handle(Input::Fetched { session: KEY, ticket, fetched });
    let sent = texts(out.agent());
    assert_eq!(sent[1..], [message("Check the diff"), message("/review src"), count.to_owned()]);
    // The title only contains injected text, so use what the user typed instead.
    let title = json!({ "sessionUpdate": "session_info_update", "title": Mark::new(7).open() });
    assert_eq!(fixture.update("s", &title).client()["params"]["update"]["title"], "Check the diff");
    // A command is found behind a mention of a file, and the tags around it are not part of its arguments.
    let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "a" });
    let mut blocks = prompt("/review src <a>", "hello");
    blocks.as_array_mut().unwrap().insert(0, link.clone());
    let got = expanded(&mut fixture, 3, &blocks);
    let [first, ours, arguments, old, last] = &got.as_array().unwrap()[..] else { panic!("{got}") };
    assert!(unmarked(ours["text"].as_str().unwrap()).contains("Do it with [src <a>]."), "{ours}");
    assert_eq!(
        [first, arguments, old, last],
        [&link, &text("src <a>"), &text(&message("hello")), &text(count)]
    );
    let out =
        fixture.request(4, "session/prompt", &json!({ "sessionId": "s", "prompt": prompt("/skills", "x") }));
    assert!(
        out.to_agent.is_empty() && out.to_client[0].to_string().contains("skills in this session"),
        "{out:?}"
    );
}

/// If avante also repeats answers, those to `/skills` are ours, and can describe skills that are not approved.
#[test]
fn repeated_answers_to_skills_are_removed() {
    let user = |words: &str| format!("<previous_user_message>{words}</previous_user_message>");
    let answer = |words: &str| format!("<previous_assistant_message>{words}</previous_assistant_message>");
    let count = "<system_context>Continuing from previous ACP session with 7 recent messages preserved for \
                 context</system_context>";
    let prompt = |secret: &str| -> Vec<String> {
        let old = [user("hello"), answer("Hi."), user("/skills trust x"), answer(secret), answer(secret)];
        let new = [user("/skillset"), answer("No."), user("Check the diff"), count.to_owned()];
        old.into_iter().chain(new).collect()
    };
    let blocks = |texts: &[String]| json!(texts.iter().map(|words| text(words)).collect::<Vec<_>>());
    for (client, expected) in [(json!({}), ""), (json!({ "name": "Zed", "version": "1" }), "unapproved")] {
        let mut fixture = Fixture::with_skills(policy(), set());
        let mut params = json!({ "protocolVersion": 1 });
        if client.get("name").is_some() {
            params["clientInfo"] = client;
        }
        fixture.request(0, "initialize", &params);
        fixture.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": {} }));
        fixture.new_session(1, "s");
        let params = json!({ "sessionId": "s", "prompt": blocks(&prompt("unapproved")) });
        let mut out = fixture.request(2, "session/prompt", &params);
        let sent = out.to_agent.pop().expect("a prompt");
        let expected = prompt(expected);
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        assert!(texts(&sent).ends_with(&expected), "{sent}");
    }
}

/// Jupyter AI puts a note before the first message of a session. A command is found behind it, and the agent gets the note as well.
#[test]
fn a_note_of_the_client_before_a_command() {
    let note = "System note: When creating or editing Jupyter notebooks (.ipynb), use the tools.";
    let mut fixture = Fixture::with_skills(policy(), set()).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    let prompt = expanded(&mut fixture, 2, &json!([text(&format!("{note}\n\n/review src\n\nall"))]));
    let [_catalog, before, ours, arguments] = &prompt.as_array().unwrap()[..] else { panic!("{prompt}") };
    assert!(ours["text"].as_str().unwrap().contains("Do it"), "{ours}");
    assert_eq!([before, arguments], [&text(note), &text("src\n\nall")]);
    let blocks = json!([text(&format!("{note}\n\n/skills"))]);
    let out = fixture.request(3, "session/prompt", &json!({ "sessionId": "s", "prompt": blocks }));
    assert!(out.to_agent.is_empty(), "{out:?}");
}

#[test]
fn dollar_commands_need_the_option() {
    let policy = Policy { dollar: true, ..policy() };
    let mut fixture = Fixture::with_skills(policy, set()).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    fixture.update("s", &commands(&[json!({ "name": "review" })]));
    let prompt = expanded(&mut fixture, 2, &json!([text("$review x")]));
    assert_eq!(prompt[2], text("x"));
    assert_eq!(texts(fixture.prompt(3, "s", &["$HOME is where"]).agent()), ["$HOME is where"]);
}

#[test]
fn with_a_system_prompt_there_is_no_catalog_before_a_command() {
    let capabilities = json!({ "sessionCapabilities": { "systemPrompt": {} } });
    let mut fixture = Fixture::with_skills(policy(), set()).initialized("x", &capabilities);
    fixture.new_session(1, "s");
    let prompt = expanded(&mut fixture, 2, &json!([text("/review x")]));
    assert_eq!(prompt.as_array().unwrap().len(), 2);
}

#[test]
fn a_skill_that_cannot_be_read_ends_the_turn() {
    let mut fixture = session(&[]);
    let out = fixture.prompt(2, "s", &["/review x"]);
    let [Task::Ask(Query::Fetch { ticket, .. })] = out.tasks[..] else { panic!("{out:?}") };
    let behind = fixture.prompt(3, "s", &["hello"]);
    assert!(behind.is_nothing());
    let why = "The skill `review` cannot be activated: gone".to_owned();
    let out =
        fixture.handle(Input::NotFetched { session: KEY, ticket, why: NotFetched { why, failed: None } });
    assert_eq!(
        out.to_client,
        [
            json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": {
                "sessionUpdate": "agent_message_chunk",
                "content": { "type": "text", "text": "The skill `review` cannot be activated: gone" },
            } } }),
            json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": "end_turn" } }),
        ]
    );
    // The next prompt should be released. The command gets a single response, and none of it is sent to the agent.
    assert_eq!(texts(out.agent())[1], "hello");
    assert_eq!(fixture.gone().iter().map(|line| line["id"].clone()).collect::<Vec<_>>(), [json!(3)]);
    // This skill doesn't exist anymore.
    let mut fixture = session(&[]);
    let ticket = fixture.prompt(2, "s", &["/review x"]).ticket();
    let out = fixture.handle(Input::Fetched {
        session: KEY,
        ticket,
        fetched: Fetched { text: None, ..Fetched::default() },
    });
    assert_eq!((out.to_client.len(), out.to_agent.len()), (2, 0));
}

#[test]
fn a_command_can_be_cancelled() {
    let mut fixture = session(&[]);
    let ticket = fixture.prompt(2, "s", &["/review x"]).ticket();
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } });
    let out = fixture.client(&cancel);
    assert_eq!(out.client()["result"]["stopReason"], "cancelled");
    assert!(
        fixture
            .handle(Input::Fetched {
                session: KEY,
                ticket,
                fetched: Fetched { text: Some("x".into()), ..Fetched::default() }
            })
            .is_nothing()
    );
}

#[test]
fn without_our_tools_the_text_is_fetched_again() {
    let policy = Policy { mcp_wait: Duration::from_secs(2), ..policy() };
    let mut fixture = Fixture::with_skills(policy, set()).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    let wanted = |out: &Out| {
        out.tasks.iter().find_map(|effect| match effect {
            Task::Ask(Query::Fetch { ticket, wanted: Wanted::Skill { guide, arguments, .. }, .. }) => {
                Some((*ticket, *guide == Guide::Tools, arguments.clone()))
            }
            _ => None,
        })
    };
    let out = fixture.prompt(2, "s", &["/review x"]);
    let old = out.ticket();
    assert_eq!(wanted(&out), Some((old, true, "x".to_owned())));
    fixture.handle(Input::Fetched {
        session: KEY,
        ticket: old,
        fetched: Fetched { text: Some("with tools".into()), ..Fetched::default() },
    });
    let out = fixture.timer_ends(KEY);
    let new = out.ticket();
    assert_eq!(wanted(&out), Some((new, false, "x".to_owned())));
    assert_ne!(new, old);
    assert!(out.to_agent.is_empty());
    let out = fixture.handle(Input::Fetched {
        session: KEY,
        ticket: new,
        fetched: Fetched { text: Some("with files".into()), ..Fetched::default() },
    });
    let block = texts(out.agent()).into_iter().find(|text| text.contains("<typed>")).unwrap();
    assert!(block.contains("with files") && !block.contains("with tools"));
}

#[test]
fn a_command_is_sent_after_the_client_has_gone() {
    let mut fixture = session(&[]);
    fixture.prompt(2, "s", &["/review x"]);
    let out = fixture.handle(Input::ClientGone);
    let [ours, "x"] = texts(out.agent())[..] else { panic!("{out:?}") };
    assert!(ours.contains("Get its instructions first."), "{ours}");
}
