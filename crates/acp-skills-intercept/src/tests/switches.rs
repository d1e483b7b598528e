//! `/skills off NAME` and `/skills on NAME`.

use serde_json::json;

use super::*;

fn fixture() -> Fixture {
    let mut fixture =
        Fixture::with_skills(policy(), skills(&["pdf", "review", "My Notes"])).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    fixture.handle(Input::MenuTimerEnded(SessionKey(1)));
    fixture
}

/// Returns the text that the user sees, and the menu if one was sent.
fn said(out: &Out) -> (String, Option<Vec<String>>) {
    let mut text = String::new();
    let mut menu = None;
    for message in &out.to_client {
        let update = &message["params"]["update"];
        if let Some(commands) = update["availableCommands"].as_array() {
            menu = Some(commands.iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect());
        }
        text.push_str(update["content"]["text"].as_str().unwrap_or_default());
    }
    (text, menu)
}

fn say(fixture: &mut Fixture, request: u64, words: &str) -> (String, Option<Vec<String>>) {
    let out = fixture.prompt(request, "s", &[words]);
    assert!(out.to_agent.is_empty(), "{words}: {out:?}");
    assert!(out.to_client.iter().any(|line| line["id"] == request), "the turn has an end: {out:?}");
    said(&out)
}

/// A file that the client attached as text can begin with a command. It can't undo what the user turned off.
#[test]
fn a_message_with_other_text_turns_nothing_on() {
    let mut fixture = fixture();
    say(&mut fixture, 2, "/skills off pdf");
    let served = |fixture: &Fixture| fixture.host.served.as_ref().unwrap().1.clone();
    let (text, menu) = said(&fixture.prompt(3, "s", &["Review this file.", "/skills on pdf"]));
    assert!(text.starts_with("Nothing was turned on") && menu.is_none(), "{text}");
    assert_eq!(served(&fixture), ["review", "My Notes"]);
    // Less is always possible.
    fixture.prompt(4, "s", &["/skills off review", "a file"]);
    assert_eq!(served(&fixture), ["My Notes"]);
    say(&mut fixture, 5, "/skills on pdf");
    assert_eq!(served(&fixture), ["pdf", "My Notes"]);
}

#[test]
fn menu_tools_and_model_follow_a_switch() {
    let mut fixture = fixture();
    fixture.prompt(2, "s", &["hello"]);
    fixture.respond(2, &json!({ "stopReason": "end_turn" }));
    let (text, menu) = say(&mut fixture, 3, "/skills off pdf");
    assert_eq!(text, "`pdf` is off in this session. To undo, use `/skills on pdf`.");
    assert_eq!(menu.unwrap(), ["skills", "review", "My-Notes"]);
    let served = |fixture: &Fixture| fixture.host.served.as_ref().unwrap().1.clone();
    assert_eq!(served(&fixture), ["review", "My Notes"]);
    // From here on, `/pdf` is like any other text, and the model should only see the change once.
    let prompt = fixture.prompt(4, "s", &["/pdf x"]);
    assert_eq!(texts(prompt.agent()), ["/pdf x"]);
    let prompt = fixture.prompt(5, "s", &["go on"]);
    assert_eq!(unmarked(texts(prompt.agent())[0]), "The skills have changed. Removed: `pdf`.");
    let (text, menu) = say(&mut fixture, 6, "/skills");
    assert!(text.contains("**2 skills in this session**") && menu.is_none(), "{text}");
    assert!(text.contains("\n**Off**\n\n- `pdf`: Does pdf \\<well>.\n"), "{text}");
    // When the skill is back after a reload, it should still be disabled.
    fixture.notices(skills(&["review"]));
    fixture.notices(skills(&["pdf", "review"]));
    assert_eq!(served(&fixture), ["review"]);
    let (text, menu) = say(&mut fixture, 7, "/skills on PDF");
    assert_eq!(text, "`pdf` is on in this session.");
    assert_eq!(menu.unwrap(), ["skills", "pdf", "review"]);
    assert_eq!(served(&fixture), ["pdf", "review"]);
    // The skill is already on, so nothing changes.
    let (text, menu) = say(&mut fixture, 8, "/skills on pdf");
    assert_eq!((text.as_str(), menu), ("`pdf` is on in this session.", None));
    assert!(fixture.host.kept.is_empty());
}

#[test]
fn names_are_matched_as_in_the_menu() {
    for (words, expected) in [
        (
            "off",
            "Missing skill name. Use `/skills off NAME` to turn a skill off, or `/skills` to list all skills.",
        ),
        (
            "on --here",
            "Missing skill name. Use `/skills on NAME` to turn a skill on, or `/skills` to list all skills.",
        ),
        ("off pfd", "No skill `pfd` found. Available skills: `pdf`, `review`, `My Notes`."),
        ("off pdf x\u{202e}", "No skill `x\\u{202e}` found. Available skills: `pdf`, `review`, `My Notes`."),
        ("off my notes", "`My Notes` is off in this session. To undo, use `/skills on My Notes`."),
        ("off /My-Notes", "`My Notes` is off in this session. To undo, use `/skills on My Notes`."),
        ("off /skill:review", "`review` is off in this session. To undo, use `/skills on review`."),
        ("off pdf review", "`pdf`, `review` are off in this session."),
        ("on pdf", "`pdf` is on in this session."),
    ] {
        let (text, _) = say(&mut fixture(), 2, &format!("/skills {words}"));
        assert_eq!(text, expected, "{words}");
    }
    // When one of the names is unknown, no skill should be disabled.
    let mut fixture = fixture();
    say(&mut fixture, 2, "/skills off pdf pfd");
    assert!(!say(&mut fixture, 3, "/skills").0.contains("**Off**"));
}

#[test]
fn all_skills_can_be_turned_off() {
    let mut fixture = fixture();
    let (_, menu) = say(&mut fixture, 2, "/skills off pdf review My-Notes");
    assert_eq!(menu.unwrap(), ["skills"]);
    assert!(say(&mut fixture, 3, "/skills").0.starts_with("All skills in this session are off."));
    // We don't send any text to the model.
    assert_eq!(texts(fixture.prompt(4, "s", &["hello"]).agent()), ["hello"]);
    say(&mut fixture, 5, "/skills on review");
    let prompt = fixture.prompt(6, "s", &["hello"]);
    let catalog = texts(prompt.agent())[0].to_owned();
    assert!(catalog.contains("<name>review</name>") && !catalog.contains("pdf"), "{catalog}");
}

#[test]
fn here_applies_to_new_sessions() {
    let mut fixture = fixture();
    let (text, _) = say(&mut fixture, 2, "/skills off pdf --here");
    let expected = "`pdf` is off in this session and for new sessions in this directory. Open sessions of other editors or windows \
         don't change. To undo, use `/skills on pdf`.";
    assert_eq!(text, expected);
    let pdf = SkillName::new("pdf").unwrap();
    assert_eq!(fixture.host.kept, [(PathBuf::from("/project"), vec![pdf.clone()], false)]);
    let (text, _) = say(&mut fixture, 3, "/skills on pdf");
    assert_eq!(text, "`pdf` is on in this session. To include new sessions in this directory, add `--here`.");
    // The skill is disabled in a new session, and in one that is loaded.
    fixture.host.off = vec![pdf.clone(), SkillName::new("gone").unwrap()];
    fixture.new_session(4, "t");
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "My Notes"]);
    let catalog = texts(fixture.prompt(5, "t", &["hello"]).agent())[0].to_owned();
    assert!(!catalog.contains("pdf"), "{catalog}");
    let out = fixture.prompt(6, "t", &["/skills"]);
    assert!(said(&out).0.contains("- `pdf` (in this directory): Does pdf"), "{out:?}");
    // It should be possible to remove a saved switch for a skill that doesn't exist.
    let out = fixture.prompt(7, "t", &["/skills on gone --here"]);
    let expected = "`gone` is on in this session and for new sessions in this directory. Open sessions of other editors \
                    or windows don't change. Not available at the moment: `gone`.";
    assert_eq!(said(&out).0, expected);
    // This should not change the other session.
    assert!(!say(&mut fixture, 8, "/skills").0.contains("**Off**"));
}

#[test]
fn a_failed_save_is_reported() {
    let mut fixture = fixture();
    fixture.host.keeps_nothing = true;
    let (text, _) = say(&mut fixture, 2, "/skills off pdf --here");
    let expected = "`pdf` is off in this session, but could not be saved for new sessions: the disk is full. To undo, use `/skills on pdf`.";
    assert_eq!(text, expected);
    let mut fixture = Fixture::new(policy()).initialized("x", &json!({}));
    fixture.request(1, "session/new", &json!({ "mcpServers": [] }));
    fixture.respond(1, &json!({ "sessionId": "s" }));
    let (text, _) = say(&mut fixture, 2, "/skills off review --here");
    assert!(text.contains("could not be saved for new sessions: no directory for this session."), "{text}");
}

/// A turn is running, and the host is slow.
#[test]
fn a_switch_takes_effect_before_it_is_saved() {
    let mut fixture = fixture();
    fixture.prompt(2, "s", &["work"]);
    assert_eq!(say(&mut fixture, 3, "/skills off pdf").1.unwrap(), ["skills", "review", "My-Notes"]);
    fixture.host.is_slow = true;
    let out = fixture.prompt(4, "s", &["/skills off review --here"]);
    assert!(out.to_agent.is_empty() && out.to_client.iter().all(|line| line.get("id").is_none()), "{out:?}");
    // The skill is disabled right away. However, the response has to wait for the host, and later prompts have to wait for that
    // response.
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["My Notes"]);
    assert!(fixture.prompt(5, "s", &["go on"]).is_nothing());
    let out = fixture.answer();
    assert!(said(&out).0.starts_with("`review` is off in this session and for new sessions"), "{out:?}");
    assert_eq!(texts(out.agent()).last(), Some(&"go on"));
    // When this command is cancelled, we only send one response, and the skill should still be disabled.
    fixture.prompt(6, "s", &["/skills off my-notes --here"]);
    let out = fixture
        .client(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }));
    assert_eq!(out.to_client.len(), 1, "{out:?}");
    assert!(fixture.answer().is_nothing());
    assert!(fixture.host.served.as_ref().unwrap().1.is_empty());
}

/// The text of the skill is being fetched when the skill is turned off.
#[test]
fn an_invocation_of_a_skill_that_is_turned_off_fails() {
    let mut fixture = fixture();
    let ticket = fixture.prompt(2, "s", &["/pdf x"]).ticket();
    say(&mut fixture, 3, "/skills off pdf");
    let fetched = Fetched { text: None, ..Fetched::default() };
    let out = fixture.handle(Input::Fetched { session: SessionKey(1), ticket, fetched });
    assert!(said(&out).0.starts_with("This skill no longer exists"), "{out:?}");
}

/// Another proxy between us and the agent, or the agent itself, also handles `/skills`. We only handle commands that name one of our
/// skills. If trust is taken back, the skill may be missing at the moment, and the model must not get the command.
#[test]
fn commands_go_to_the_proxy_that_has_the_skill() {
    let mut fixture = fixture();
    let other = json!({ "name": "other", "description": "x" });
    let menu = said(&fixture.update(
        "s",
        &json!({ "sessionUpdate": "available_commands_update", "availableCommands": [&other] }),
    ));
    assert_eq!(menu.1.unwrap(), ["skills", "pdf", "review", "My-Notes", "other"]);
    for is_proxy in [true, false] {
        let description = if is_proxy { crate::menu::SKILLS_DESCRIPTION } else { "Theirs." };
        let theirs = json!([{ "name": "skills", "description": description }, &other]);
        fixture.update(
            "s",
            &json!({ "sessionUpdate": "available_commands_update", "availableCommands": theirs }),
        );
        for (words, is_ours) in [
            ("/skills", false),
            ("/skills off other", false),
            ("/skills off pdf other", true),
            ("/skills off", false),
            ("/skills reload", false),
            ("/skills trust other", false),
            ("/skills untrust", false),
            ("/skills untrust other", !is_proxy),
        ] {
            let prompt = fixture.prompt(2, "s", &[words]);
            let expected = if is_ours { None } else { Some(words) };
            let received = prompt.to_agent.first().map(|line| texts(line).last().copied().unwrap());
            assert_eq!(received, expected, "{words} {is_proxy}");
        }
    }
    let (text, menu) = say(&mut fixture, 3, "/skills off pdf");
    assert_eq!(text, "`pdf` is off in this session. To undo, use `/skills on pdf`.");
    assert_eq!(menu.unwrap(), ["review", "My-Notes", "skills", "other"]);
}

#[test]
fn a_copy_of_a_session_has_its_switches() {
    let mut fixture = fixture();
    say(&mut fixture, 2, "/skills off pdf");
    fixture.request(3, "session/fork", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
    fixture.respond(3, &json!({ "sessionId": "t" }));
    let (session, names, _) = fixture.host.served.clone().unwrap();
    assert_eq!((session, names), (SessionKey(2), vec!["review".to_owned(), "My Notes".to_owned()]));
}

#[test]
fn a_copy_in_another_directory_has_the_switches_of_that_directory() {
    let mut fixture = fixture();
    say(&mut fixture, 2, "/skills off review --here");
    fixture.host.off = vec![SkillName::new("pdf").unwrap()];
    fixture.request(3, "session/fork", &json!({ "sessionId": "s", "cwd": "/other", "mcpServers": [] }));
    fixture.respond(3, &json!({ "sessionId": "t" }));
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "My Notes"]);
    let out = fixture.prompt(4, "t", &["/skills"]);
    assert!(said(&out).0.contains("- `pdf` (in this directory)"), "{out:?}");
}
