//! `/skills off NAME` and `/skills on NAME`: who is told what, and what stays off.

use serde_json::json;

use super::*;

fn world() -> World {
    let mut world =
        World::with_skills(policy(), skills(&["pdf", "review", "My Notes"])).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.handle(Input::MenuTimerEnded(SessionKey(1)));
    world
}

/// The texts that the client is shown, and the menu, when there is one.
fn said(out: &Out) -> (String, Option<Vec<String>>) {
    let (mut text, mut menu) = (String::new(), None);
    for message in &out.to_client {
        let update = &message["params"]["update"];
        if let Some(commands) = update["availableCommands"].as_array() {
            menu = Some(commands.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect());
        }
        text.push_str(update["content"]["text"].as_str().unwrap_or_default());
    }
    (text, menu)
}

fn say(world: &mut World, request: u64, words: &str) -> (String, Option<Vec<String>>) {
    let out = world.prompt(request, "s", &[words]);
    assert!(out.to_agent.is_empty(), "{words}: {out:?}");
    assert!(out.to_client.iter().any(|it| it["id"] == request), "the turn has an end: {out:?}");
    said(&out)
}

#[test]
fn everything_follows() {
    let mut world = world();
    world.prompt(2, "s", &["hello"]);
    world.respond(2, &json!({ "stopReason": "end_turn" }));
    let (text, menu) = say(&mut world, 3, "/skills off pdf");
    assert_eq!(text, "`pdf` is off in this session. `/skills on pdf` turns it on again.");
    assert_eq!(menu.unwrap(), ["skills", "review", "My-Notes"]);
    let served = |world: &World| world.outside.served.as_ref().unwrap().1.clone();
    assert_eq!(served(&world), ["review", "My Notes"]);
    // The agent gets `/pdf` as any other words, and the model is told once.
    let prompt = world.prompt(4, "s", &["/pdf x"]);
    assert_eq!(texts(prompt.agent()), ["/pdf x"]);
    let prompt = world.prompt(5, "s", &["go on"]);
    assert_eq!(unmarked(texts(prompt.agent())[0]), "The skills have changed. Removed: `pdf`.");
    let (text, menu) = say(&mut world, 6, "/skills");
    assert!(text.contains("**2 skills in this session**") && menu.is_none(), "{text}");
    assert!(text.contains("\n**Off**\n\n- `pdf`: Does pdf <well>.\n"), "{text}");
    // It comes back by a reload, and is off still.
    world.notices(skills(&["review"]));
    world.notices(skills(&["pdf", "review"]));
    assert_eq!(served(&world), ["review"]);
    let (text, menu) = say(&mut world, 7, "/skills on PDF");
    assert_eq!(text, "`pdf` is on in this session.");
    assert_eq!(menu.unwrap(), ["skills", "pdf", "review"]);
    assert_eq!(served(&world), ["pdf", "review"]);
    // Twice is once.
    let (text, menu) = say(&mut world, 8, "/skills on pdf");
    assert_eq!((text.as_str(), menu), ("`pdf` is on in this session.", None));
    assert!(world.outside.kept.is_empty());
}

#[test]
fn names() {
    for (words, expected) in [
        ("off", "Which skill? `/skills off NAME` turns it off; `/skills` lists all skills."),
        ("on --here", "Which skill? `/skills on NAME` turns it on; `/skills` lists all skills."),
        ("off pfd", "There is no skill `pfd`. The skills are `pdf`, `review`, `My Notes`."),
        ("off pdf x\u{202e}", "There is no skill `x\\u{202e}`. The skills are `pdf`, `review`, `My Notes`."),
        ("off my notes", "`My Notes` is off in this session. `/skills on My Notes` turns it on again."),
        ("off /My-Notes", "`My Notes` is off in this session. `/skills on My Notes` turns it on again."),
        ("off /skill:review", "`review` is off in this session. `/skills on review` turns it on again."),
        ("off pdf review", "`pdf`, `review` are off in this session."),
        ("on pdf", "`pdf` is on in this session."),
    ] {
        let (text, _) = say(&mut world(), 2, &format!("/skills {words}"));
        assert_eq!(text, expected, "{words}");
    }
    // One that is not known turns off none of the others.
    let mut world = world();
    say(&mut world, 2, "/skills off pdf pfd");
    assert!(!say(&mut world, 3, "/skills").0.contains("**Off**"));
}

#[test]
fn all_of_them_are_off_and_come_back() {
    let mut world = world();
    let (_, menu) = say(&mut world, 2, "/skills off pdf review My-Notes");
    assert_eq!(menu.unwrap(), ["skills"]);
    assert!(say(&mut world, 3, "/skills").0.starts_with("All skills of this session are off."));
    // Nothing to tell the model of.
    assert_eq!(texts(world.prompt(4, "s", &["hello"]).agent()), ["hello"]);
    say(&mut world, 5, "/skills on review");
    let prompt = world.prompt(6, "s", &["hello"]);
    let catalog = texts(prompt.agent())[0].to_owned();
    assert!(catalog.contains("<name>review</name>") && !catalog.contains("pdf"), "{catalog}");
}

#[test]
fn here_is_kept_for_new_sessions() {
    let mut world = world();
    let (text, _) = say(&mut world, 2, "/skills off pdf --here");
    let expected =
        "`pdf` is off in this session and in new ones of this directory. `/skills on pdf` turns it on again.";
    assert_eq!(text, expected);
    let pdf = SkillName::new("pdf").unwrap();
    assert_eq!(world.outside.kept, [(PathBuf::from("/project"), vec![pdf.clone()], false)]);
    let (text, _) = say(&mut world, 3, "/skills on pdf");
    assert_eq!(
        text,
        "`pdf` is on in this session. In new ones of this directory it stays off, unless you say `--here`."
    );
    // A new session, and one that is loaded, begin with it off.
    world.outside.off = vec![pdf.clone(), SkillName::new("gone").unwrap()];
    world.new_session(4, "t");
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "My Notes"]);
    let catalog = texts(world.prompt(5, "t", &["hello"]).agent())[0].to_owned();
    assert!(!catalog.contains("pdf"), "{catalog}");
    let out = world.prompt(6, "t", &["/skills"]);
    assert!(said(&out).0.contains("- `pdf` (in this directory): Does pdf"), "{out:?}");
    // What is remembered need not be there to be forgotten.
    let out = world.prompt(7, "t", &["/skills on gone --here"]);
    let expected =
        "`gone` is on in this session and in new ones of this directory. There is no skill `gone` now.";
    assert_eq!(said(&out).0, expected);
    // The other session is as it was.
    assert!(!say(&mut world, 8, "/skills").0.contains("**Off**"));
}

#[test]
fn what_cannot_be_kept_is_said() {
    let mut world = world();
    world.outside.keeps_nothing = true;
    let (text, _) = say(&mut world, 2, "/skills off pdf --here");
    let expected = "`pdf` is off in this session. This was not saved for new sessions: the disk is full. `/skills on pdf` turns it on again.";
    assert_eq!(text, expected);
    let mut world = World::new(policy()).initialized("x", &json!({}));
    world.request(1, "session/new", &json!({ "mcpServers": [] }));
    world.respond(1, &json!({ "sessionId": "s" }));
    let (text, _) = say(&mut world, 2, "/skills off review --here");
    assert!(text.contains("This was not saved for new sessions: this session has no directory."), "{text}");
}

/// While a turn is under way, and while the disk takes its time.
#[test]
fn meanwhile() {
    let mut world = world();
    world.prompt(2, "s", &["work"]);
    assert_eq!(say(&mut world, 3, "/skills off pdf").1.unwrap(), ["skills", "review", "My-Notes"]);
    world.outside.is_slow = true;
    let out = world.prompt(4, "s", &["/skills off review --here"]);
    assert!(out.to_agent.is_empty() && out.to_client.iter().all(|it| it.get("id").is_none()), "{out:?}");
    // It is off at once; the answer waits, and what comes behind waits for it.
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["My Notes"]);
    assert!(world.prompt(5, "s", &["go on"]).is_nothing());
    let out = world.answer();
    assert!(said(&out).0.starts_with("`review` is off in this session and in new ones"), "{out:?}");
    assert_eq!(texts(out.agent()).last(), Some(&"go on"));
    // Whoever cancelled it gets one answer, and it is off all the same.
    world.prompt(6, "s", &["/skills off my-notes --here"]);
    let out = world
        .client(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }));
    assert_eq!(out.to_client.len(), 1, "{out:?}");
    assert!(world.answer().is_nothing());
    assert!(world.outside.served.as_ref().unwrap().1.is_empty());
}

/// A command whose text is being fetched has nothing left to do.
#[test]
fn an_invocation_that_is_turned_off_goes_on_without() {
    let mut world = world();
    let ticket = world.prompt(2, "s", &["/pdf x"]).ticket();
    say(&mut world, 3, "/skills off pdf");
    let fetched = Fetched { text: None, activations: Vec::new() };
    let out = world.handle(Input::Fetched { session: SessionKey(1), ticket, fetched });
    assert!(said(&out).0.starts_with("The skill is not there any more"), "{out:?}");
}

/// Another proxy, nearer to the agent, has the command as well; what names our skills is for us.
#[test]
fn two_proxies() {
    let mut world = world();
    let theirs =
        json!([{ "name": "skills", "description": "Theirs." }, { "name": "other", "description": "x" }]);
    world.update("s", &json!({ "sessionUpdate": "available_commands_update", "availableCommands": theirs }));
    for words in ["/skills", "/skills off other", "/skills off pdf other", "/skills off", "/skills reload"] {
        let prompt = world.prompt(2, "s", &[words]);
        assert_eq!(texts(prompt.agent()).last(), Some(&words));
    }
    let (text, menu) = say(&mut world, 3, "/skills off pdf");
    assert_eq!(text, "`pdf` is off in this session. `/skills on pdf` turns it on again.");
    assert_eq!(menu.unwrap(), ["review", "My-Notes", "skills", "other"]);
}

#[test]
fn a_copy_of_a_session_has_its_switches() {
    let mut world = world();
    say(&mut world, 2, "/skills off pdf");
    world.request(3, "session/fork", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
    world.respond(3, &json!({ "sessionId": "t" }));
    let (session, names, _) = world.outside.served.clone().unwrap();
    assert_eq!((session, names), (SessionKey(2), vec!["review".to_owned(), "My Notes".to_owned()]));
}
