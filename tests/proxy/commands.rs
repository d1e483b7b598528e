//! Skills as slash commands: the menu, a command from the editor to the agent and back, `/skills`.

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixtures::Skills,
    stage::{Stage, texts},
};

crate::trials!(
    a_menu_when_the_agent_has_none,
    a_menu_with_the_agents,
    from_the_editor_to_the_agent_and_back,
    behind_what_the_editor_adds,
    without_a_server,
    a_body_that_is_gone,
    no_skills_are_listed_too,
    skills_are_listed_and_found_again,
);

pub(crate) fn names(menu: &Value) -> Vec<&str> {
    let list = menu["params"]["update"]["availableCommands"].as_array().expect("a list");
    list.iter().map(|entry| entry["name"].as_str().expect("a name")).collect()
}

fn a_menu_when_the_agent_has_none() {
    let skills = Skills::review();
    let mut stage = Stage::initialized(skills.proxy(), &json!({}));
    stage.new_session("s");
    let menu = stage.editor.menu();
    assert_eq!((menu["params"]["sessionId"].as_str(), names(&menu)), (Some("s"), vec!["skills", "review"]));
    stage.finish();
}

fn a_menu_with_the_agents() {
    let skills = Skills::review();
    let mut stage = Stage::initialized(skills.proxy(), &json!({}));
    stage.new_session("s");
    for theirs in
        [json!([{ "name": "web", "description": "x" }]), json!([{ "name": "review", "description": "x" }])]
    {
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": theirs });
        stage.says(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } }));
    }
    // The proxy's own may have come first, on a slow machine.
    let mut menu = stage.editor.menu();
    if names(&menu) == ["skills", "review"] {
        menu = stage.editor.menu();
    }
    assert_eq!(names(&menu), ["skills", "review", "web"]);
    assert_eq!(names(&stage.editor.menu()), ["skills", "skill:review", "review"]);
    stage.finish();
}

fn from_the_editor_to_the_agent_and_back() {
    let skills = Skills::review();
    skills.add("greet", "Greets.", "Greet $ARGUMENTS warmly.");
    let proxy = || skills.proxy().skill(&skills.dir("greet")).flag("--mcp-wait", "0");
    let mut stage = Stage::initialized(proxy(), &json!({ "loadSession": true }));
    stage.new_session("s");
    let blocks = stage.prompt("s", "/greet Ada <3");
    let sent = texts(&blocks);
    let [catalog, ours, "Ada <3"] = sent[..] else { panic!("{sent:?}") };
    assert!(catalog.contains("<available_skills>"), "{catalog}");
    assert!(
        ours.contains("Greet Ada <3 warmly.") && ours.contains("<skill_content name=\"greet\">"),
        "{ours}"
    );
    // Not twice, and the other skill is another one.
    let again = stage.prompt("s", "/review");
    let [ours] = texts(&again)[..] else { panic!("{again:?}") };
    assert!(ours.contains("Read references/checklist.md."), "{ours}");
    let unknown = stage.prompt("s", "/unknown x");
    assert_eq!(texts(&unknown), ["/unknown x"]);
    stage.finish();
    // Another run of the proxy sees it come back.
    let mut stage = Stage::initialized(proxy(), &json!({ "loadSession": true }));
    let id = stage.editor.request("session/load", json!({ "sessionId": "s", "cwd": "/", "mcpServers": [] }));
    let request = stage.takes();
    for text in &sent {
        let update =
            json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
        stage.says(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } }));
    }
    stage.replies(&request, json!({ "result": {} }));
    stage.editor.answer(&id);
    let seen: Vec<_> = stage.editor.unread();
    let seen: Vec<_> =
        seen.iter().map(|it| it["params"]["update"]["content"]["text"].as_str().expect("text")).collect();
    assert_eq!(seen, ["/greet ", "Ada <3"]);
    stage.finish();
}

/// CodeCompanion sends a text for each file that is shared, and then what was typed.
fn behind_what_the_editor_adds() {
    let skills = Skills::review();
    let mut stage = Stage::initialized(skills.proxy().flag("--mcp-wait", "0"), &json!({}));
    stage.new_session("s");
    let shared = "Sharing the following file as context: /project/src/main.rs";
    let mut ask = |typed: &str| {
        let prompt = json!([{ "type": "text", "text": shared }, { "type": "text", "text": typed }]);
        let outcome = json!({ "result": { "stopReason": "end_turn" } });
        let params = json!({ "sessionId": "s", "prompt": prompt });
        let (mut received, _) = stage.exchange("session/prompt", params, outcome);
        received["params"]["prompt"].take()
    };
    let blocks = ask("/review look at file");
    let sent = texts(blocks.as_array().expect("blocks"));
    let [catalog, context, ours, "look at file"] = sent[..] else { panic!("{sent:?}") };
    assert!(catalog.contains("<available_skills>") && context == shared, "{sent:?}");
    assert!(ours.contains("<skill_content name=\"review\">"), "{ours}");
    // A command that is not ours stays as it was.
    let blocks = ask("/unknown look");
    assert_eq!(texts(blocks.as_array().expect("blocks")), [shared, "/unknown look"]);
    stage.finish();
}

fn without_a_server() {
    let skills = Skills::review();
    let mut stage = Stage::initialized(skills.proxy().flag("--mcp", "off"), &json!({}));
    stage.new_session("s");
    let blocks = stage.prompt("s", "/review");
    let sent = texts(&blocks);
    let ours = sent.last().expect("a block");
    assert!(ours.contains("# Review") && ours.contains("your own file tools"), "{ours}");
    stage.finish();
}

fn a_body_that_is_gone() {
    let skills = Skills::review();
    let config = json!({ "skills": [{ "name": "far", "description": "Is far away.", "body_url": "http://127.0.0.1:9/x" }] });
    let config = skills.write("skills.yaml", &config.to_string());
    let mut stage = Stage::initialized(Proxy::new().flag("--config", config), &json!({}));
    stage.new_session("s");
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/far away" }] });
    let id = stage.editor.request("session/prompt", prompt);
    assert_eq!(stage.editor.answer(&id)["result"]["stopReason"], "end_turn");
    let said = stage.editor.unread();
    let text = said[0]["params"]["update"]["content"]["text"].as_str().expect("text");
    assert!(text.contains("`far` cannot be activated") && text.contains("http://127.0.0.1:9/x"), "{text}");
    assert_eq!(stage.received(), Vec::<Value>::new());
    stage.finish();
}

/// A directory without skills is no silence: the command is there and answers, and the model hears nothing of it.
fn no_skills_are_listed_too() {
    let empty = tempfile::tempdir().expect("a directory");
    let mut stage = Stage::initialized(Proxy::new().flag("--skills", empty.path()), &json!({}));
    stage.new_session("s");
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills" }] });
    let id = stage.editor.request("session/prompt", prompt);
    assert_eq!(stage.editor.answer(&id)["result"]["stopReason"], "end_turn");
    let said = stage.editor.unread();
    let text = said.iter().find_map(|it| it["params"]["update"]["content"]["text"].as_str()).expect("text");
    assert!(text.starts_with("There are no skills in this session."), "{text}");
    assert!(text.contains("`acp-skills-proxy list` with your flags"), "{text}");
    assert_eq!(stage.received(), Vec::<Value>::new());
    stage.finish();
}

fn skills_are_listed_and_found_again() {
    let skills = Skills::review();
    let proxy = Proxy::new().flag("--skills", skills.path()).arg("--no-watch");
    let mut stage = Stage::initialized(proxy, &json!({}));
    stage.new_session("s");
    let mut ask = |text: &str| {
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": text }] });
        let id = stage.editor.request("session/prompt", prompt);
        assert_eq!(stage.editor.answer(&id)["result"]["stopReason"], "end_turn");
        let said = stage.editor.unread();
        assert_eq!(said.len(), 1, "{said:?}");
        said[0]["params"]["update"]["content"]["text"].as_str().expect("text").to_owned()
    };
    assert!(ask("/skills").contains("- `/review`: Reviews code."));
    skills.add("greet", "Greets.", "Hello.");
    assert_eq!(ask("/skills reload"), "Loaded 2 skills. New: `greet`.");
    assert!(ask("/skills search greets").starts_with("1. `greet`"));
    assert_eq!(stage.received(), Vec::<Value>::new());
    // The new one works, and the model is told of it.
    let blocks = stage.prompt("s", "/greet");
    assert!(texts(&blocks).concat().contains("<skill_content name=\"greet\">"), "{blocks:?}");
    stage.finish();
}
