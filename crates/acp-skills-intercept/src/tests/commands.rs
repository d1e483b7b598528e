//! Skills as commands: the menu, what becomes of a command, `/skills`.

use std::time::Duration;

use expect_test::expect;
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

fn set() -> SkillSet {
    [
        skill("review", |it| it.argument_hint = Some("[file]".into())),
        skill("Plan B", |_| {}),
        skill("secret", |it| it.disable_model_invocation = true),
        skill("background", |it| it.user_invocable = false),
    ]
    .into_iter()
    .collect()
}

fn world() -> World {
    World::with_skills(policy(), set()).initialized("x", &json!({}))
}

/// A world with a session whose agent has these commands.
fn session(theirs: &[&str]) -> World {
    let mut world = world();
    world.new_session(1, "s");
    let theirs: Vec<_> = theirs.iter().map(|name| json!({ "name": name, "description": "theirs" })).collect();
    world.update("s", &commands(&theirs));
    world
}

fn commands(list: &[Value]) -> Value {
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": list })
}

fn menu(message: &Value) -> Vec<&str> {
    let list = message["params"]["update"]["availableCommands"].as_array().unwrap();
    list.iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

/// The menu in what was sent, and nothing else is there.
fn sent(out: &Out) -> Vec<&str> {
    menu(out.client())
}

#[test]
fn commands_are_added_to_the_agents() {
    let mut world = world();
    world.new_session(1, "s");
    let line = r#"{"jsonrpc":"2.0", "method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[ {"name":"web","description":"Sear\u0063h","input":{"hint":"q"},"_meta":{"n":1.0}} ],"x":1}}}"#;
    let out = world.agent_line(&format!("{line}\n"));
    assert_eq!(sent(&out), ["skills", "review", "Plan-B", "secret", "web"]);
    let mut actions = Actions::default();
    let Pass::Edited(bytes) = world.interceptor.from_agent(line.as_bytes(), &mut actions) else { panic!() };
    let (before, after) = line.split_once('[').unwrap();
    let bytes = String::from_utf8(bytes).unwrap();
    assert!(bytes.starts_with(&format!("{before}[{{")) && bytes.ends_with(after), "{bytes}");
    assert_eq!(
        out.client()["params"]["update"]["availableCommands"][1],
        json!({ "name": "review", "description": "Does review.", "input": { "hint": "[file]" } })
    );
    assert!(out.client()["params"]["update"]["availableCommands"][2].get("input").is_none());
    // Each time, whatever the agent sends.
    for (list, expected) in [
        (json!([]), vec!["skills", "review", "Plan-B", "secret"]),
        (Value::Null, vec!["skills", "review", "Plan-B", "secret"]),
        (
            json!([{ "name": "skills" }, { "name": "Review" }]),
            vec!["skill:review", "Plan-B", "secret", "skills", "Review"],
        ),
        (
            json!([{ "name": "plan-b list" }, { "name": "/secret" }]),
            vec!["skills", "review", "skill:Plan-B", "skill:secret", "plan-b list", "/secret"],
        ),
        // What the agent made of the prompts of our own server is in the list already.
        (
            json!([{ "name": "mcp__acp-skills__review" }, { "name": "mcp__other__review" }]),
            vec!["skills", "review", "Plan-B", "secret", "mcp__other__review"],
        ),
        // Qwen says whose prompts they are.
        (
            json!([{ "name": "review", "description": "x", "input": { "hint": "" },
                "_meta": { "source": "mcp-prompt", "sourceLabel": "MCP: acp-skills" } },
                { "name": "Plan-B", "description": "Does Plan-B.",
                "_meta": { "source": "mcp-prompt", "sourceLabel": "MCP: acp-skills-2" } },
                { "name": "secret", "description": "Does secret.", "_meta": { "source": "builtin" } }]),
            vec!["skills", "review", "skill:Plan-B", "skill:secret", "Plan-B", "secret"],
        ),
        // Others list them as they are.
        (
            json!([{ "name": "/Review", "description": "[MCP] Does  review.", "_meta": { "n": 1 } },
                { "name": "secret", "description": "Keeps it." }, { "name": "web" }]),
            vec!["skills", "review", "Plan-B", "skill:secret", "secret", "web"],
        ),
    ] {
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": list });
        assert_eq!(sent(&world.update("s", &update)), expected, "{list}");
    }
    // The agent has sent a list: we need not.
    assert!(world.handle(Input::MenuDue(KEY)).is_nothing());
}

/// Ours are where a user sees them, and do not push the agent's out of sight.
#[test]
fn many_skills_do_not_hide_the_agents_commands() {
    let names: Vec<_> = (1..=12).map(|number| format!("skill-{number}")).collect();
    let set = names.iter().map(|name| skill(name, |_| {})).collect();
    let mut world = World::with_skills(policy(), set).initialized("x", &json!({}));
    world.new_session(1, "s");
    for theirs in [vec!["web"], vec!["web", "mcp__acp-skills__skill-1"]] {
        let theirs: Vec<_> = theirs.iter().map(|name| json!({ "name": name, "description": "x" })).collect();
        let out = world.update("s", &commands(&theirs));
        let menu = sent(&out);
        assert_eq!((menu.len(), menu[0], menu[9], menu[10]), (14, "skills", "skill-9", "web"), "{menu:?}");
        assert_eq!(menu[11..], ["skill-10", "skill-11", "skill-12"]);
    }
}

#[test]
fn an_agent_without_commands_gets_ours() {
    let mut world = world();
    for (request, method, id, result) in [
        (1, "session/new", "a", json!({ "sessionId": "a" })),
        (2, "session/load", "b", json!({})),
        (3, "session/resume", "c", Value::Null),
        (4, "session/fork", "d", json!({ "sessionId": "d" })),
        // Again: it is set up anew.
        (5, "session/load", "b", json!({})),
    ] {
        let source = if method == "session/fork" { "a" } else { id };
        world.request(request, method, &json!({ "sessionId": source, "cwd": "/p", "mcpServers": [] }));
        let out = world.respond(request, &result);
        let [Task::WaitForMenu(key, _)] = out.tasks[..] else { panic!("{out:?}") };
        let out = world.handle(Input::MenuDue(key));
        assert_eq!(out.client()["params"]["sessionId"], id);
        assert_eq!(sent(&out), ["skills", "review", "Plan-B", "secret"]);
        assert!(world.handle(Input::MenuDue(key)).is_nothing());
    }
    world.request(6, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
    assert!(world.refuse(6, -32000).tasks.is_empty());
}

/// What an agent makes of the prompts of our server is no command of its own, whenever it says so.
#[test]
fn reflections_of_our_prompts_are_ours() {
    let reflection = json!({ "name": "review", "description": "Does review.", "input": { "hint": "" },
        "_meta": { "source": "mcp-prompt", "sourceLabel": "MCP: acp-skills" } });
    let list = commands(&[json!({ "name": "web" }), reflection]);
    let invoked = |world: &mut World| {
        let prompt = expanded(world, 20, &json!([text("/review x")]));
        assert_eq!(prompt.as_array().unwrap().last(), Some(&text("x")));
    };
    // Behind ours, and again.
    let mut world = session(&["web"]);
    assert_eq!(sent(&world.update("s", &list)), ["skills", "review", "Plan-B", "secret", "web"]);
    invoked(&mut world);
    // Before the session is known.
    let mut world = self::world();
    world.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    world.update("s", &list);
    let out = world.respond(1, &json!({ "sessionId": "s" }));
    assert_eq!(menu(&out.to_client[1]), ["skills", "review", "Plan-B", "secret", "web"]);
    invoked(&mut world);
    // After a load, before its answer and behind it.
    let mut world = self::world();
    world.request(1, "session/load", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
    world.update("s", &list);
    world.respond(1, &json!({}));
    invoked(&mut world);
    assert_eq!(sent(&world.update("s", &list)), ["skills", "review", "Plan-B", "secret", "web"]);
}

#[test]
fn a_list_that_comes_too_early_is_sent_again() {
    let mut world = world();
    world.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    let early = world.update("s", &commands(&[json!({ "name": "web", "x": 1 })]));
    assert_eq!(sent(&early), ["web"]);
    let out = world.respond(1, &json!({ "sessionId": "s" }));
    assert_eq!(out.to_client[0]["id"], 1);
    assert_eq!(menu(&out.to_client[1]), ["skills", "review", "Plan-B", "secret", "web"]);
    assert_eq!(out.to_client[1]["params"]["update"]["availableCommands"][4]["x"], 1);
    assert!(out.tasks.is_empty());
    // A session of nobody's.
    assert_eq!(sent(&world.update("child", &commands(&[]))), Vec::<&str>::new());
}

#[test]
fn without_skills_there_is_no_menu() {
    let mut world = World::with_skills(policy(), SkillSet::default()).initialized("x", &json!({}));
    world.request(1, "session/new", &json!({ "cwd": "/project" }));
    assert!(world.respond(1, &json!({ "sessionId": "s" })).tasks.is_empty());
    assert_eq!(sent(&world.update("s", &commands(&[]))), Vec::<&str>::new());
    assert_eq!(texts(world.prompt(2, "s", &["/skill:review"]).agent()), ["/skill:review"]);
    assert_eq!(texts(world.prompt(3, "s", &["$skills"]).agent()), ["$skills"]);
    // Who asks hears it from us.
    let out = world.prompt(4, "s", &["/skills"]);
    assert!(
        out.to_agent.is_empty() && out.to_client[0].to_string().contains("There are no skills"),
        "{out:?}"
    );
    // Unless the agent has a command of that name.
    world.update("s", &commands(&[json!({ "name": "skills", "description": "" })]));
    assert_eq!(texts(world.prompt(5, "s", &["/skills"]).agent()), ["/skills"]);
}

/// Sends a command and answers what it asks for; returns what the agent gets.
fn expanded(world: &mut World, request: u64, prompt: &Value) -> Value {
    let out = world.request(request, "session/prompt", &json!({ "sessionId": "s", "prompt": prompt }));
    assert!(out.is_nothing(), "{out:?}");
    let [Task::Ask(Query::Fetch { session, ticket, wanted: Wanted::Skill { name, arguments, .. } })] =
        &out.tasks[..]
    else {
        panic!("{out:?}")
    };
    let text = format!("<skill_content name=\"{name}\">Do it with [{arguments}].</skill_content>");
    let out = world.handle(Input::Fetched {
        session: *session,
        ticket: *ticket,
        fetched: Fetched { text: Some(text), activations: Vec::new() },
    });
    let mut message = out.agent().clone();
    assert_eq!(message["id"], request);
    message["params"]["prompt"].take()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[test]
fn a_command_is_expanded() {
    let mut world = session(&[]);
    let prompt = expanded(&mut world, 2, &json!([text("/review src/main.rs")]));
    // The catalog is due, too.
    let [catalog, ours, theirs] = &prompt.as_array().unwrap()[..] else { panic!("{prompt}") };
    assert!(catalog["text"].as_str().unwrap().contains("<available_skills>"));
    expect![[r#"
        <typed>/review <rest>src/main.rs</rest></typed>
        The user invoked the skill `review` by command. Its instructions are here. Carry them out now, for what the user wrote behind the command, which follows.

        <skill_content name="review">Do it with [src/main.rs].</skill_content>"#]]
    .assert_eq(unmarked(ours["text"].as_str().unwrap()));
    assert_eq!(theirs, &text("src/main.rs"));
    // Once.
    let prompt = expanded(&mut world, 3, &json!([text("/review x")]));
    assert_eq!(prompt.as_array().unwrap().len(), 2);
    let served = world.outside.served.clone().unwrap();
    assert_eq!((served.0, served.2), (KEY, vec!["review".to_owned()]));
}

/// What the user sees of these chunks, joined as an editor joins them.
fn seen(world: &mut World, texts: &[String]) -> String {
    let mut seen = String::new();
    for text in texts {
        let chunk = json!({ "type": "text", "text": text });
        let out = world.update("s", &json!({ "sessionUpdate": "user_message_chunk", "content": chunk }));
        seen.extend(
            out.to_client.iter().map(|it| it["params"]["update"]["content"]["text"].as_str().unwrap()),
        );
    }
    let end = world.update("s", &json!({ "sessionUpdate": "current_mode_update" }));
    seen.extend(end.to_client.iter().filter_map(|it| it["params"]["update"]["content"]["text"].as_str()));
    seen
}

/// Whether a block is what a command becomes.
fn is_invocation(block: &Value) -> bool {
    block["text"].as_str().is_some_and(|text| begins_with_ours(text) && unmarked(text).starts_with("<typed>"))
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
        // What the client adds of itself comes first.
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
        let mut world = session(&["web"]);
        let got = expanded(&mut world, 2, &prompt);
        let got = got.as_array().unwrap();
        let expected = expected.as_array().unwrap();
        // The catalog comes first.
        let found = got[1..].iter().map(|block| if is_invocation(block) { &ours } else { block });
        assert!(found.eq(expected), "{prompt}: {got:?}");
        for block in got {
            let starts = block["text"].as_str().is_some_and(|text| text.trim_start().starts_with(['/', '$']));
            assert!(!starts, "{block} of {prompt}");
        }
        // What comes back is what was typed, block by block or all in one.
        let typed: Vec<_> = prompt.as_array().unwrap().iter().filter_map(|it| it["text"].as_str()).collect();
        let sent: Vec<_> = got.iter().filter_map(|it| it["text"].as_str().map(str::to_owned)).collect();
        let joined = sent.concat();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&seen(&mut world, &sent)), words(&typed.concat()));
        assert_eq!(words(&seen(&mut world, std::slice::from_ref(&joined))), words(&typed.concat()));
        // Also for a proxy that never saw it, and in a title.
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
    let mut world = session(&[]);
    let prompt = expanded(&mut world, 2, &json!([text("/review /etc/passwd")]));
    let theirs = prompt[2]["text"].as_str().unwrap();
    assert_eq!(theirs, world.mark().wrap("The user wrote:") + "/etc/passwd");
    let sent: Vec<_> = (0..3).map(|at| prompt[at]["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(seen(&mut world, &sent), "/review /etc/passwd");
    assert_eq!(seen(&mut world, &[sent.concat()]), "/review /etc/passwd");
}

#[test]
fn what_is_no_command_of_ours_passes() {
    let mut world = session(&["web", "review", "secret list"]);
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
        assert_eq!(texts(world.prompt(request, "s", &[words]).agent()), [words], "{words}");
    }
    // Also behind what the client adds: where the agent looks for its commands is its own affair.
    for (request, words) in
        (12..).zip(["/web x", "/review x", "/unknown", " /skill:review", "/skill:review/x"])
    {
        let prompt = ["Sharing a.rs", words];
        assert_eq!(texts(world.prompt(request, "s", &prompt).agent()), prompt, "{words}");
    }
    // Whatever the agent has, this is ours.
    let prompt = expanded(&mut world, 20, &json!([text("/skill:review x")]));
    assert_eq!(prompt.as_array().unwrap().last(), Some(&text("x")));
}

#[test]
fn what_a_forgotten_command_told_is_told_again() {
    let mut world = session(&[]);
    assert_eq!(expanded(&mut world, 2, &json!([text("/review x")])).as_array().unwrap().len(), 3);
    world.respond(2, &json!({ "stopReason": "refusal" }));
    assert_eq!(expanded(&mut world, 3, &json!([text("/review x")])).as_array().unwrap().len(), 3);
    world.respond(3, &json!({ "stopReason": "end_turn" }));
    assert_eq!(expanded(&mut world, 4, &json!([text("/review x")])).as_array().unwrap().len(), 2);
    // A title that was ours alone becomes what was typed first.
    let title = json!({ "sessionUpdate": "session_info_update", "title": world.mark().open() });
    assert_eq!(world.update("s", &title).client()["params"]["update"]["title"], "/review x");
}

#[test]
fn titles_made_of_arguments_alone() {
    let mut world = session(&[]);
    expanded(&mut world, 2, &json!([text("/review src/main.rs and more")]));
    for (title, expected) in [
        ("src/main.rs and more", "/review src/main.rs and more"),
        ("src/main.rs a…", "/review src/main.rs a…"),
        ("A review of main.rs", "A review of main.rs"),
        ("…", "…"),
    ] {
        let out = world.update("s", &json!({ "sessionUpdate": "session_info_update", "title": title }));
        assert_eq!(out.client()["params"]["update"]["title"], expected);
        world.request(3, "session/list", &json!({}));
        let out = world.respond(3, &json!({ "sessions": [{ "sessionId": "s", "title": title }] }));
        assert_eq!(out.client()["result"]["sessions"][0]["title"], expected);
    }
}

#[test]
fn dollars_only_where_wanted() {
    let policy = Policy { dollar: true, ..policy() };
    let mut world = World::with_skills(policy, set()).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.update("s", &commands(&[json!({ "name": "review" })]));
    let prompt = expanded(&mut world, 2, &json!([text("$review x")]));
    assert_eq!(prompt[2], text("x"));
    assert_eq!(texts(world.prompt(3, "s", &["$HOME is where"]).agent()), ["$HOME is where"]);
}

#[test]
fn with_a_system_prompt_there_is_no_catalog_in_front() {
    let capabilities = json!({ "sessionCapabilities": { "systemPrompt": {} } });
    let mut world = World::with_skills(policy(), set()).initialized("x", &capabilities);
    world.new_session(1, "s");
    let prompt = expanded(&mut world, 2, &json!([text("/review x")]));
    assert_eq!(prompt.as_array().unwrap().len(), 2);
}

#[test]
fn a_skill_that_cannot_be_read_ends_the_turn() {
    let mut world = session(&[]);
    let out = world.prompt(2, "s", &["/review x"]);
    let [Task::Ask(Query::Fetch { ticket, .. })] = out.tasks[..] else { panic!("{out:?}") };
    let behind = world.prompt(3, "s", &["hello"]);
    assert!(behind.is_nothing());
    let why = "The skill `review` cannot be activated: gone".to_owned();
    let out = world.handle(Input::NotFetched { session: KEY, ticket, why: NotFetched { why, failed: None } });
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
    // The one behind it is free; nothing of the command reached the agent, and it is answered once.
    assert_eq!(texts(out.agent())[1], "hello");
    assert_eq!(world.gone().iter().map(|it| it["id"].clone()).collect::<Vec<_>>(), [json!(3)]);
    // A skill that is gone altogether.
    let mut world = session(&[]);
    world.prompt(2, "s", &["/review x"]);
    let out = world.handle(Input::Fetched {
        session: KEY,
        ticket: Ticket(1),
        fetched: Fetched { text: None, activations: Vec::new() },
    });
    assert_eq!((out.to_client.len(), out.to_agent.len()), (2, 0));
}

#[test]
fn a_command_can_be_cancelled() {
    let mut world = session(&[]);
    world.prompt(2, "s", &["/review x"]);
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } });
    let out = world.client(&cancel);
    assert_eq!(out.client()["result"]["stopReason"], "cancelled");
    assert!(
        world
            .handle(Input::Fetched {
                session: KEY,
                ticket: Ticket(1),
                fetched: Fetched { text: Some("x".into()), activations: Vec::new() }
            })
            .is_nothing()
    );
}

#[test]
fn without_our_tools_the_text_is_fetched_again() {
    let policy = Policy { mcp_wait: Duration::from_secs(2), ..policy() };
    let mut world = World::with_skills(policy, set()).initialized("x", &json!({}));
    world.new_session(1, "s");
    let wanted = |out: &Out| {
        out.tasks.iter().find_map(|effect| match effect {
            Task::Ask(Query::Fetch { ticket, wanted: Wanted::Skill { tools, arguments, .. }, .. }) => {
                Some((*ticket, *tools, arguments.clone()))
            }
            _ => None,
        })
    };
    let out = world.prompt(2, "s", &["/review x"]);
    assert_eq!(wanted(&out), Some((Ticket(1), true, "x".to_owned())));
    world.handle(Input::Fetched {
        session: KEY,
        ticket: Ticket(1),
        fetched: Fetched { text: Some("with tools".into()), activations: Vec::new() },
    });
    let out = world.handle(Input::WaitOver(KEY));
    assert_eq!(wanted(&out), Some((Ticket(2), false, "x".to_owned())));
    assert!(out.to_agent.is_empty());
    let out = world.handle(Input::Fetched {
        session: KEY,
        ticket: Ticket(2),
        fetched: Fetched { text: Some("with files".into()), activations: Vec::new() },
    });
    let block = texts(out.agent()).into_iter().find(|text| text.contains("<typed>")).unwrap();
    assert!(block.contains("with files") && !block.contains("with tools"));
}

/// Asks for something that the proxy answers; returns the answer.
fn asked(world: &mut World, request: u64, words: &str) -> String {
    let out = world.prompt(request, "s", &[words]);
    assert!(out.to_agent.is_empty() && out.tasks.is_empty(), "{out:?}");
    let [.., said, result] = &out.to_client[..] else { panic!("{out:?}") };
    assert_eq!(result, &json!({ "jsonrpc": "2.0", "id": request, "result": { "stopReason": "end_turn" } }));
    assert_eq!(said["params"]["update"]["sessionUpdate"], "agent_message_chunk");
    said["params"]["update"]["content"]["text"].as_str().unwrap().to_owned()
}

#[test]
fn skills_are_listed() {
    let mut world = session(&["review"]);
    expanded(&mut world, 2, &json!([text("/secret")]));
    world.handle(Input::Activated(KEY, SkillName::new("background").unwrap()));
    expect![[r#"
        **4 skills in this session**

        - `/skill:review`: Does review.
        - `/Plan-B`: Does Plan B.
        - `/secret` (active, by you, only by command): Does secret.
        - `background` (active, by the model, only by the model): Does background.

        `/skills` lists the skills, `/skills reload` looks for new ones, `/skills search WORDS` finds those that fit, `/skills off NAME` and `/skills on NAME` turn one off and on (with `--here` in new sessions of this directory, too)."#]]
    .assert_eq(&asked(&mut world, 3, "/skills"));
    assert!(asked(&mut world, 4, "/skills search plan").starts_with("1. `Plan B`: Does Plan B."));
    assert_eq!(asked(&mut world, 5, "/skills search zebra"), "No skill fits. Try other or fewer words.");
    for words in ["/skills search", "/skills remove x", "/skills reload x"] {
        assert!(asked(&mut world, 6, words).contains("`/skills search WORDS` finds"), "{words}");
    }
    // It was no prompt: nothing is open, and no title comes of it.
    assert_eq!(world.gone().iter().filter(|it| it["id"] != 2).count(), 0);
    // The agent's command wins.
    let mut world = session(&["skills"]);
    assert_eq!(texts(world.prompt(2, "s", &["/skills"]).agent()), ["/skills"]);
}

#[test]
fn warnings_are_listed() {
    let mut builder = SkillSet::builder();
    let warning = |text: &str| skills_core::Diagnostic::warning("x", text);
    builder.add(skill("review", |_| {}), vec![warning("the body is long"), warning("the name is odd")]);
    let mut second = skill("Review", |_| {});
    second.scope = Scope::User;
    builder.add(second, Vec::new());
    let broken = vec![skills_core::Diagnostic::error("no-frontmatter", "there is no frontmatter")];
    builder.skip(skills_core::set::Skipped::new("/skills/broken/SKILL.md", broken));
    let mut world = World::with_skills(policy(), builder.build()).initialized("x", &json!({}));
    world.new_session(1, "s");
    let text = asked(&mut world, 2, "/skills");
    for line in [
        "- `review`: the body is long, and 1 more\n",
        "- `broken` is left out: there is no frontmatter; `acp-skills-proxy check /skills/broken` explains it\n",
        "- another `Review` (the configuration) is hidden by the one in the configuration; `acp-skills-proxy list` with your flags shows both\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn reloading() {
    let mut world = session(&["web"]);
    world.new_session(2, "t");
    world.prompt(3, "s", &["hello"]);
    assert_eq!(asked(&mut world, 4, "/skills reload"), "Loaded 4 skills. Nothing has changed.");
    world.outside.after_reload =
        Some([skill("review", |it| it.priority = 1), skill("new", |_| {})].into_iter().collect());
    let out = world.prompt(5, "s", &["/skills reload"]);
    // Both sessions get a new menu, and the answer comes last.
    let menus: Vec<_> =
        out.to_client.iter().filter(|it| it["params"]["update"]["availableCommands"].is_array()).collect();
    assert_eq!(menus.len(), 2);
    let of = |id: &str| menu(menus.iter().find(|it| it["params"]["sessionId"] == id).unwrap());
    assert_eq!(of("s"), ["skills", "review", "new", "web"]);
    assert_eq!(of("t"), ["skills", "review", "new"]);
    let said = &out.to_client[2]["params"]["update"]["content"]["text"];
    assert_eq!(
        said,
        "Loaded 2 skills. New: `new`. Gone: `Plan B`, `secret`, `background`. Changed: `review`."
    );
    // The model is told once.
    let prompt = world.prompt(6, "s", &["go on"]);
    let [line, "go on"] = texts(prompt.agent())[..] else { panic!("{prompt:?}") };
    assert!(line.contains("New: `new` (Does new.).") && line.contains("Changed: `review`."), "{line}");
    assert_eq!(texts(world.prompt(7, "s", &["go on"]).agent()), ["go on"]);
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "new"]);
}

#[test]
fn who_sees_which_skill() {
    let mut world = session(&[]);
    let catalog = world.prompt(2, "s", &["hello"]);
    let catalog = texts(catalog.agent())[0];
    assert!(catalog.contains("background") && !catalog.contains("secret"), "{catalog}");
    let toolbox = skills_core::Toolbox::new(set());
    let names = toolbox.definitions()[0].input_schema["properties"]["name"]["enum"].clone();
    assert_eq!(names, json!(["review", "Plan B", "background"]));
}

#[test]
fn a_client_that_is_gone_still_gets_its_command_through() {
    let mut world = session(&[]);
    world.prompt(2, "s", &["/review x"]);
    let out = world.handle(Input::ClientGone);
    let [ours, "x"] = texts(out.agent())[..] else { panic!("{out:?}") };
    assert!(ours.contains("Get its instructions first."), "{ours}");
}
