//! `/skills off NAME` and `/skills on NAME`: catalog, menu, tools, the next prompt, and what is kept for a directory.

use std::fs;

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::Proxy,
    fixtures::Skills,
    stage::{MCP_2025, Stage, entry, texts},
};

crate::trials!(
    everything_follows,
    here_is_for_a_directory,
    without_a_place_to_remember,
    open_sessions_of_the_directory_follow,
    an_editor_that_shows_switches,
);

fn two_skills() -> Skills {
    let skills = Skills::review();
    skills.add("greet", "Greets.", "Hello.");
    skills
}

fn everything_follows() {
    let skills = two_skills();
    let mut stage = Stage::over_http(Proxy::new().flag("--skills", skills.path()));
    let request = stage.new_session("s");
    let connection = stage.connect(&entry(&request), MCP_2025);
    assert_eq!(names(&stage.editor.menu()), ["skills", "greet", "review"]);
    let first = stage.prompt("s", "hello");
    assert!(texts(&first)[0].contains("<name>greet</name>"), "{first:?}");
    assert_eq!(stage.names(&connection), json!(["greet", "review"]));
    let said = stage.ask("/skills off greet");
    assert_eq!(said, "`greet` is off in this session. `/skills on greet` turns it on again.");
    stage.heard(&connection);
    let (text, is_error) = stage.call(&connection, "activate_skill", json!({ "name": "greet" }));
    assert!(is_error && text.starts_with("SkillNotFound"), "{text}");
    let next = stage.prompt("s", "go on");
    assert!(texts(&next)[0].contains("The skills have changed. Removed: `greet`."), "{next:?}");
    let said = stage.ask("/skills");
    assert!(said.contains("**Off**\n\n- `greet`: Greets. _(`"), "{said}");
    stage.ask("/skills on greet");
    let (text, is_error) = stage.call(&connection, "activate_skill", json!({ "name": "greet" }));
    assert!(!is_error && text.contains("Hello."), "{text}");
    stage.finish();
}

fn here_is_for_a_directory() {
    let skills = two_skills();
    let state = tempfile::tempdir().expect("a directory");
    let places = [tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory")];
    let run = |place: usize| {
        let proxy = Proxy::new().flag("--skills", skills.path()).flag("--state", state.path());
        let mut stage = Stage::initialized(proxy, &json!({}));
        let params = json!({ "cwd": places[place].path(), "mcpServers": [] });
        stage.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
        let menu: Vec<String> = names(&stage.editor.menu()).into_iter().map(str::to_owned).collect();
        (stage, menu)
    };
    let (mut stage, menu) = run(0);
    assert_eq!(menu, ["skills", "greet", "review"]);
    let said = stage.ask("/skills off greet --here");
    assert!(said.starts_with("`greet` is off in this session and in new ones of this directory."), "{said}");
    stage.finish();
    let (mut stage, menu) = run(0);
    assert_eq!(menu, ["skills", "review"]);
    assert!(stage.ask("/skills").contains("- `greet` (in this directory)"));
    let (other, menu) = run(1);
    assert_eq!(menu, ["skills", "greet", "review"]);
    other.finish();
    // Names only, and where they belong is not said.
    let kept: Vec<_> = fs::read_dir(state.path().join("off")).expect("a directory").flatten().collect();
    let text = |entry: &fs::DirEntry| fs::read_to_string(entry.path()).expect("a file");
    let texts: Vec<_> = kept.iter().map(text).filter(|text| !text.is_empty()).collect();
    assert_eq!(texts, [r#"{"v":1,"off":["greet"]}"#]);
    stage.ask("/skills on greet --here");
    stage.finish();
    let (stage, menu) = run(0);
    assert_eq!(menu, ["skills", "greet", "review"]);
    stage.finish();
}

fn without_a_place_to_remember() {
    let skills = two_skills();
    let mut stage = Stage::initialized(Proxy::new().flag("--skills", skills.path()), &json!({}));
    stage.new_session("s");
    let said = stage.ask("/skills off greet --here");
    assert!(
        said.contains("was not saved for new sessions: the proxy was started without `--state DIR`."),
        "{said}"
    );
    assert_eq!(stage.received(), Vec::<Value>::new());
    stage.finish();
}

fn open_sessions_of_the_directory_follow() {
    let (skills, state) = (two_skills(), tempfile::tempdir().expect("a directory"));
    let elsewhere = tempfile::tempdir().expect("a directory");
    let proxy = Proxy::new().flag("--skills", skills.path()).flag("--state", state.path());
    let mut stage = Stage::over_http(proxy);
    stage.new_session("s");
    let there = stage.new_session("t");
    let params = json!({ "cwd": elsewhere.path(), "mcpServers": [] });
    let (far, _) = stage.exchange("session/new", params, json!({ "result": { "sessionId": "u" } }));
    let (there, far) =
        (stage.connect(&entry(&there), MCP_2025), stage.connect(&entry(&far["params"]), MCP_2025));
    let catalog = stage.prompt("t", "hello");
    assert!(texts(&catalog)[0].contains("greet"), "{catalog:?}");
    stage.ask("/skills off greet --here");
    stage.heard(&there);
    assert_eq!(stage.names(&there), json!(["review"]));
    let next = stage.prompt("t", "go on");
    assert!(texts(&next)[0].contains("Removed: `greet`."), "{next:?}");
    // Without the word it is about one session, and elsewhere it is about nobody.
    assert_eq!(stage.names(&far), json!(["greet", "review"]));
    stage.ask("/skills on greet --here");
    stage.ask("/skills off review");
    assert_eq!(stage.names(&there), json!(["greet", "review"]));
    drop(stage.editor.finish());
}

fn an_editor_that_shows_switches() {
    let skills = two_skills();
    let mut stage = Stage::new(Proxy::new().flag("--skills", skills.path()).arg("--toggles"));
    let capabilities = json!({ "session": { "configOptions": { "boolean": {} } } });
    stage.exchange(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": capabilities }),
        json!({ "result": { "protocolVersion": 1, "agentCapabilities": {} } }),
    );
    let mode = json!({ "id": "mode", "name": "Mode", "type": "select", "currentValue": "a", "options": [] });
    let params = json!({ "cwd": crate::stage::cwd(), "mcpServers": [] });
    let result = json!({ "result": { "sessionId": "s", "configOptions": [mode] } });
    let (_, answer) = stage.exchange("session/new", params, result);
    let states = |list: &Value| -> Vec<(String, Value)> {
        let list = list.as_array().expect("options").iter();
        list.map(|it| (it["id"].as_str().expect("an id").to_owned(), it["currentValue"].clone())).collect()
    };
    let expected = |greet: bool| {
        vec![
            ("mode".to_owned(), json!("a")),
            ("acp-skills:greet".to_owned(), json!(greet)),
            ("acp-skills:review".to_owned(), json!(true)),
        ]
    };
    assert_eq!(states(&answer["result"]["configOptions"]), expected(true));
    stage.editor.menu();
    let params =
        json!({ "sessionId": "s", "configId": "acp-skills:greet", "type": "boolean", "value": false });
    let id = stage.editor.request("session/set_config_option", params);
    let answer = stage.editor.answer(&id);
    assert_eq!(states(&answer["result"]["configOptions"]), expected(false));
    // The agent has heard of nothing, and the model gets the other skill alone.
    assert_eq!(stage.received(), Vec::<Value>::new());
    let blocks = stage.prompt("s", "hello");
    let catalog = texts(&blocks)[0];
    assert!(catalog.contains("<name>review</name>") && !catalog.contains("greet"), "{catalog}");
    stage.ask("/skills on greet");
    stage.finish();
}
