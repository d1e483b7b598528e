//! Skills as slash commands: the menu, a command on its way to the agent and back, and `/skills`.

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixture::{Fixture, texts},
    skills::Skills,
};

crate::trials!(
    a_menu_if_the_agent_has_none,
    the_menu_includes_the_agents_commands,
    a_named_skill_replaces_a_command_of_the_agent,
    the_option_decides_who_gets_a_name,
    a_command_loads_a_skill_and_comes_back_as_typed,
    a_command_after_blocks_that_the_editor_adds,
    a_command_without_the_mcp_server,
    a_command_whose_skill_cannot_be_fetched,
    an_empty_list_of_skills,
    skills_are_listed_reloaded_and_searched,
);

pub(crate) fn names(menu: &Value) -> Vec<&str> {
    let list = menu["params"]["update"]["availableCommands"].as_array().expect("a list");
    list.iter().map(|entry| entry["name"].as_str().expect("a name")).collect()
}

fn a_menu_if_the_agent_has_none() {
    let skills = Skills::review();
    let mut fixture = Fixture::initialized(skills.proxy(), &json!({}));
    fixture.new_session("s");
    let menu = fixture.editor.menu();
    assert_eq!((menu["params"]["sessionId"].as_str(), names(&menu)), (Some("s"), vec!["skills", "review"]));
    fixture.finish();
}

fn the_menu_includes_the_agents_commands() {
    let skills = Skills::review();
    let mut fixture = Fixture::initialized(skills.proxy(), &json!({}));
    fixture.new_session("s");
    for theirs in
        [json!([{ "name": "web", "description": "x" }]), json!([{ "name": "review", "description": "x" }])]
    {
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": theirs });
        fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } }));
    }
    // If the machine is slow, we may get a menu with just the proxy's commands first, so skip it.
    let mut menu = fixture.editor.menu();
    if names(&menu) == ["skills", "review"] {
        menu = fixture.editor.menu();
    }
    assert_eq!(names(&menu), ["skills", "review", "web"]);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "review", "agent:review"]);
    fixture.finish();
}

/// Opens a session with an agent that has a command `review`, and returns the menu with it: names and descriptions.
fn menu_of_both(fixture: &mut Fixture) -> Vec<(String, String)> {
    fixture.new_session("s");
    let theirs = json!([{ "name": "review", "description": "Reviews a pull request" }]);
    let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": theirs });
    fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } }));
    loop {
        let menu = fixture.editor.menu();
        // If the machine is slow, there is a menu without the agent's command first.
        if names(&menu).len() == 3 {
            let list = menu["params"]["update"]["availableCommands"].as_array().expect("a list");
            let text = |entry: &Value, key: &str| entry[key].as_str().expect("text").to_owned();
            return list
                .iter()
                .skip(1)
                .map(|entry| (text(entry, "name"), text(entry, "description")))
                .collect();
        }
    }
}

fn a_named_skill_replaces_a_command_of_the_agent() {
    let skills = Skills::review();
    let mut fixture = Fixture::initialized(skills.proxy().flag("--mcp-wait", "0"), &json!({}));
    let menu = menu_of_both(&mut fixture);
    assert_eq!(menu[0].0, "review");
    assert!(menu[0].1.starts_with("Skill: "), "{menu:?}");
    assert_eq!(menu[1], ("agent:review".to_owned(), "Agent: Reviews a pull request".to_owned()));
    let blocks = fixture.prompt("s", "/agent:review #12");
    assert_eq!(texts(&blocks), ["/review #12"]);
    let blocks = fixture.prompt("s", "/review src");
    let [_, ours, "src"] = texts(&blocks)[..] else { panic!("{blocks:?}") };
    assert!(ours.contains("Read references/checklist.md."), "{ours}");
    fixture.finish();
}

fn the_option_decides_who_gets_a_name() {
    let skills = Skills::review();
    let scanned = |skills: &Skills| Proxy::new().flag("--skills", skills.path());
    for (proxy, expected) in [
        (skills.proxy().flag("--commands", "agent"), ["skill:review", "review"]),
        (scanned(&skills), ["skill:review", "review"]),
        (scanned(&skills).flag("--commands", "skills"), ["review", "agent:review"]),
    ] {
        let mut fixture = Fixture::initialized(proxy.flag("--mcp-wait", "0"), &json!({}));
        let menu = menu_of_both(&mut fixture);
        assert_eq!([menu[0].0.as_str(), menu[1].0.as_str()], expected);
        // The agent always gets its own command as it is.
        let (theirs, ours) = if expected[0] == "review" {
            ("/agent:review x", "/review x")
        } else {
            ("/review x", "/skill:review x")
        };
        assert_eq!(texts(&fixture.prompt("s", theirs)), ["/review x"]);
        assert_eq!(texts(&fixture.prompt("s", ours)).last(), Some(&"x"));
        fixture.finish();
    }
}

fn a_command_loads_a_skill_and_comes_back_as_typed() {
    let skills = Skills::review();
    skills.add("greet", "Greets.", "Greet $ARGUMENTS warmly.");
    let proxy = || skills.proxy().skill(&skills.dir("greet")).flag("--mcp-wait", "0");
    let mut fixture = Fixture::initialized(proxy(), &json!({ "loadSession": true }));
    fixture.new_session("s");
    let blocks = fixture.prompt("s", "/greet Ada <3");
    let sent = texts(&blocks);
    let [catalog, ours, "Ada <3"] = sent[..] else { panic!("{sent:?}") };
    assert!(catalog.contains("<available_skills>"), "{catalog}");
    assert!(
        ours.contains("Greet Ada <3 warmly.") && ours.contains("<skill_content name=\"greet\">"),
        "{ours}"
    );
    // The catalog must not be sent a second time, but we can load the other skill.
    let again = fixture.prompt("s", "/review");
    let [ours] = texts(&again)[..] else { panic!("{again:?}") };
    assert!(ours.contains("Read references/checklist.md."), "{ours}");
    let unknown = fixture.prompt("s", "/unknown x");
    assert_eq!(texts(&unknown), ["/unknown x"]);
    fixture.finish();
    // Load the session in a new run of the proxy. The command must come back as it was typed.
    let mut fixture = Fixture::initialized(proxy(), &json!({ "loadSession": true }));
    let id =
        fixture.editor.request("session/load", json!({ "sessionId": "s", "cwd": "/", "mcpServers": [] }));
    let request = fixture.agent_receives();
    for text in &sent {
        let update =
            json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
        fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } }));
    }
    fixture.agent_replies(&request, json!({ "result": {} }));
    fixture.editor.answer(&id);
    let seen: Vec<_> = fixture.editor.unread();
    let seen: Vec<_> = seen
        .iter()
        .map(|message| message["params"]["update"]["content"]["text"].as_str().expect("text"))
        .collect();
    assert_eq!(seen, ["/greet ", "Ada <3"]);
    fixture.finish();
}

/// CodeCompanion sends a text block for each shared file, followed by what the user typed.
fn a_command_after_blocks_that_the_editor_adds() {
    let skills = Skills::review();
    let mut fixture = Fixture::initialized(skills.proxy().flag("--mcp-wait", "0"), &json!({}));
    fixture.new_session("s");
    let shared = "Sharing the following file as context: /project/src/main.rs";
    let mut ask = |typed: &str| {
        let prompt = json!([{ "type": "text", "text": shared }, { "type": "text", "text": typed }]);
        let outcome = json!({ "result": { "stopReason": "end_turn" } });
        let params = json!({ "sessionId": "s", "prompt": prompt });
        let (mut received, _) = fixture.exchange("session/prompt", params, outcome);
        received["params"]["prompt"].take()
    };
    let blocks = ask("/review look at file");
    let sent = texts(blocks.as_array().expect("blocks"));
    let [catalog, context, ours, "look at file"] = sent[..] else { panic!("{sent:?}") };
    assert!(catalog.contains("<available_skills>") && context == shared, "{sent:?}");
    assert!(ours.contains("<skill_content name=\"review\">"), "{ours}");
    // If the command is unknown, the prompt is passed to the agent without any changes.
    let blocks = ask("/unknown look");
    assert_eq!(texts(blocks.as_array().expect("blocks")), [shared, "/unknown look"]);
    fixture.finish();
}

fn a_command_without_the_mcp_server() {
    let skills = Skills::review();
    let mut fixture = Fixture::initialized(skills.proxy().flag("--mcp", "off"), &json!({}));
    fixture.new_session("s");
    let blocks = fixture.prompt("s", "/review");
    let sent = texts(&blocks);
    let ours = sent.last().expect("a block");
    assert!(ours.contains("# Review") && ours.contains("your own file tools"), "{ours}");
    fixture.finish();
}

fn a_command_whose_skill_cannot_be_fetched() {
    let skills = Skills::review();
    let config = json!({ "skills": [{ "name": "far", "description": "Is far away.", "body_url": "http://127.0.0.1:9/x" }] });
    let config = skills.write("skills.yaml", &config.to_string());
    let mut fixture = Fixture::initialized(Proxy::new().flag("--config", config), &json!({}));
    fixture.new_session("s");
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/far away" }] });
    let id = fixture.editor.request("session/prompt", prompt);
    assert_eq!(fixture.editor.answer(&id)["result"]["stopReason"], "end_turn");
    let said = fixture.editor.unread();
    let text = said[0]["params"]["update"]["content"]["text"].as_str().expect("text");
    assert!(text.contains("`far` cannot be activated") && text.contains("http://127.0.0.1:9/x"), "{text}");
    assert_eq!(fixture.received(), Vec::<Value>::new());
    fixture.finish();
}

/// If a directory has no skills, `/skills` still exists and answers, and the model does not see it.
fn an_empty_list_of_skills() {
    let empty = tempfile::tempdir().expect("a directory");
    let mut fixture = Fixture::initialized(Proxy::new().flag("--skills", empty.path()), &json!({}));
    fixture.new_session("s");
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills" }] });
    let id = fixture.editor.request("session/prompt", prompt);
    assert_eq!(fixture.editor.answer(&id)["result"]["stopReason"], "end_turn");
    let said = fixture.editor.unread();
    let text = said
        .iter()
        .find_map(|message| message["params"]["update"]["content"]["text"].as_str())
        .expect("text");
    assert!(text.starts_with("No skills found for this session."), "{text}");
    assert!(text.contains("`acp-skills-proxy list` with your flags"), "{text}");
    assert_eq!(fixture.received(), Vec::<Value>::new());
    fixture.finish();
}

fn skills_are_listed_reloaded_and_searched() {
    let skills = Skills::review();
    let proxy = Proxy::new().flag("--skills", skills.path()).arg("--no-watch");
    let mut fixture = Fixture::initialized(proxy, &json!({}));
    fixture.new_session("s");
    let mut ask = |text: &str| {
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": text }] });
        let id = fixture.editor.request("session/prompt", prompt);
        assert_eq!(fixture.editor.answer(&id)["result"]["stopReason"], "end_turn");
        let said = fixture.editor.unread();
        assert_eq!(said.len(), 1, "{said:?}");
        said[0]["params"]["update"]["content"]["text"].as_str().expect("text").to_owned()
    };
    assert!(ask("/skills").contains("- `/review`: Reviews code."));
    skills.add("greet", "Greets.", "Hello.");
    assert_eq!(ask("/skills reload"), "Loaded 2 skills. New: `greet`.");
    assert!(ask("/skills search greets").starts_with("1. `greet`"));
    assert_eq!(fixture.received(), Vec::<Value>::new());
    // The new skill can be used now, and it is announced to the model.
    let blocks = fixture.prompt("s", "/greet");
    assert!(texts(&blocks).concat().contains("<skill_content name=\"greet\">"), "{blocks:?}");
    fixture.finish();
}
