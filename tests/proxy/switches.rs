//! `/skills off NAME` and `/skills on NAME`: their effect on catalog, menu, tools and the next prompt, and what is stored
//! per directory.

use std::fs;

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::Proxy,
    fixture::{Fixture, MCP_2025, entry, texts},
    skills::Skills,
};

crate::trials!(
    catalog_menu_and_tools_follow,
    here_applies_to_new_sessions_of_the_directory,
    here_needs_a_state_directory,
    open_sessions_of_the_directory_follow,
    an_editor_that_shows_switches,
);

fn two_skills() -> Skills {
    let skills = Skills::review();
    skills.add("greet", "Greets.", "Hello.");
    skills
}

fn catalog_menu_and_tools_follow() {
    let skills = two_skills();
    let mut fixture = Fixture::over_http(Proxy::new().flag("--skills", skills.path()));
    let request = fixture.new_session("s");
    let connection = fixture.connect(&entry(&request), MCP_2025);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "greet", "review"]);
    let first = fixture.prompt("s", "hello");
    assert!(texts(&first)[0].contains("<name>greet</name>"), "{first:?}");
    assert_eq!(fixture.skill_names(&connection), json!(["greet", "review"]));
    let said = fixture.ask("/skills off greet");
    assert_eq!(said, "`greet` is off in this session. To undo, use `/skills on greet`.");
    fixture.list_changed(&connection);
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "greet" }));
    assert!(is_error && text.starts_with("SkillNotFound"), "{text}");
    let next = fixture.prompt("s", "go on");
    assert!(texts(&next)[0].contains("The skills have changed. Removed: `greet`."), "{next:?}");
    let said = fixture.ask("/skills");
    assert!(said.contains("**Off**\n\n- `greet`: Greets. _(`"), "{said}");
    fixture.ask("/skills on greet");
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "greet" }));
    assert!(!is_error && text.contains("Hello."), "{text}");
    fixture.finish();
}

fn here_applies_to_new_sessions_of_the_directory() {
    let skills = two_skills();
    let state = tempfile::tempdir().expect("a directory");
    let places = [tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory")];
    let run = |place: usize| {
        let proxy = Proxy::new().flag("--skills", skills.path()).flag("--state", state.path());
        let mut fixture = Fixture::initialized(proxy, &json!({}));
        let params = json!({ "cwd": places[place].path(), "mcpServers": [] });
        fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
        let menu: Vec<String> = names(&fixture.editor.menu()).into_iter().map(str::to_owned).collect();
        (fixture, menu)
    };
    let (mut fixture, menu) = run(0);
    assert_eq!(menu, ["skills", "greet", "review"]);
    let said = fixture.ask("/skills off greet --here");
    assert!(
        said.starts_with("`greet` is off in this session and for new sessions in this directory.")
            && said.contains("Open sessions of other editors or windows don't change."),
        "{said}"
    );
    fixture.finish();
    let (mut fixture, menu) = run(0);
    assert_eq!(menu, ["skills", "review"]);
    assert!(fixture.ask("/skills").contains("- `greet` (in this directory)"));
    let (other, menu) = run(1);
    assert_eq!(menu, ["skills", "greet", "review"]);
    other.finish();
    // The file only contains the names of skills, and not the path of the directory.
    let kept: Vec<_> = fs::read_dir(state.path().join("off")).expect("a directory").flatten().collect();
    let text = |entry: &fs::DirEntry| fs::read_to_string(entry.path()).expect("a file");
    let texts: Vec<_> = kept.iter().map(text).filter(|text| !text.is_empty()).collect();
    assert_eq!(texts, [r#"{"v":1,"off":["greet"]}"#]);
    fixture.ask("/skills on greet --here");
    fixture.finish();
    let (fixture, menu) = run(0);
    assert_eq!(menu, ["skills", "greet", "review"]);
    fixture.finish();
}

fn here_needs_a_state_directory() {
    let skills = two_skills();
    let mut fixture = Fixture::initialized(Proxy::new().flag("--skills", skills.path()), &json!({}));
    fixture.new_session("s");
    let said = fixture.ask("/skills off greet --here");
    assert!(
        said.contains("could not be saved for new sessions: proxy was started without `--state DIR`."),
        "{said}"
    );
    assert_eq!(fixture.received(), Vec::<Value>::new());
    fixture.finish();
}

fn open_sessions_of_the_directory_follow() {
    let skills = two_skills();
    let state = tempfile::tempdir().expect("a directory");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let proxy = Proxy::new().flag("--skills", skills.path()).flag("--state", state.path());
    let mut fixture = Fixture::over_http(proxy);
    fixture.new_session("s");
    let there = fixture.new_session("t");
    let params = json!({ "cwd": elsewhere.path(), "mcpServers": [] });
    let (far, _) = fixture.exchange("session/new", params, json!({ "result": { "sessionId": "u" } }));
    let there = fixture.connect(&entry(&there), MCP_2025);
    let far = fixture.connect(&entry(&far["params"]), MCP_2025);
    let catalog = fixture.prompt("t", "hello");
    assert!(texts(&catalog)[0].contains("greet"), "{catalog:?}");
    fixture.ask("/skills off greet --here");
    fixture.list_changed(&there);
    assert_eq!(fixture.skill_names(&there), json!(["review"]));
    let next = fixture.prompt("t", "go on");
    assert!(texts(&next)[0].contains("Removed: `greet`."), "{next:?}");
    // If we don't use `--here`, the switch is only for this session. If we do, it's for the directory, and other directories
    // are not affected.
    assert_eq!(fixture.skill_names(&far), json!(["greet", "review"]));
    fixture.ask("/skills on greet --here");
    fixture.ask("/skills off review");
    assert_eq!(fixture.skill_names(&there), json!(["greet", "review"]));
    fixture.editor.finish();
}

fn an_editor_that_shows_switches() {
    let skills = two_skills();
    let mut fixture = Fixture::new(Proxy::new().flag("--skills", skills.path()).arg("--toggles"));
    let capabilities = json!({ "session": { "configOptions": { "boolean": {} } } });
    fixture.exchange(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": capabilities }),
        json!({ "result": { "protocolVersion": 1, "agentCapabilities": {} } }),
    );
    let mode = json!({ "id": "mode", "name": "Mode", "type": "select", "currentValue": "a", "options": [] });
    let params = json!({ "cwd": crate::fixture::cwd(), "mcpServers": [] });
    let result = json!({ "result": { "sessionId": "s", "configOptions": [mode] } });
    let (_, answer) = fixture.exchange("session/new", params, result);
    let states = |list: &Value| -> Vec<(String, Value)> {
        let list = list.as_array().expect("options").iter();
        list.map(|option| (option["id"].as_str().expect("an id").to_owned(), option["currentValue"].clone()))
            .collect()
    };
    let expected = |greet: bool| {
        vec![
            ("mode".to_owned(), json!("a")),
            ("acp-skills:greet".to_owned(), json!(greet)),
            ("acp-skills:review".to_owned(), json!(true)),
        ]
    };
    assert_eq!(states(&answer["result"]["configOptions"]), expected(true));
    fixture.editor.menu();
    let params =
        json!({ "sessionId": "s", "configId": "acp-skills:greet", "type": "boolean", "value": false });
    let id = fixture.editor.request("session/set_config_option", params);
    let answer = fixture.editor.answer(&id);
    assert_eq!(states(&answer["result"]["configOptions"]), expected(false));
    // None of this should reach the agent, and the catalog should only contain the other skill.
    assert_eq!(fixture.received(), Vec::<Value>::new());
    let blocks = fixture.prompt("s", "hello");
    let catalog = texts(&blocks)[0];
    assert!(catalog.contains("<name>review</name>") && !catalog.contains("greet"), "{catalog}");
    fixture.ask("/skills on greet");
    fixture.finish();
}
