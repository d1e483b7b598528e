//! Skills that come, change and go while the agent runs.
//!
//! What a change brings is waited for; where nothing is to be seen, something that comes after it is.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::Proxy,
    fixtures::Skills,
    stage::{MCP_2025, Stage, entry, texts},
};

crate::trials!(
    agents_hear_of_changes,
    agents_hear_of_changes_over_acp,
    a_line_before_the_next_prompt,
    a_storm,
    a_directory_that_vanishes_and_comes_back,
    a_rename,
    an_editor_that_saves_through_another_file,
    a_broken_save,
    a_project_that_gets_its_first_skill,
    named_skills,
    #[cfg(unix)]
    links,
    without_watching,
);

/// A session over the skills below a directory, and its first menu.
fn watched(skills: &Skills) -> Stage {
    let proxy = Proxy::new().flag("--skills", skills.path());
    let mut stage = Stage::initialized(proxy, &json!({}));
    stage.new_session("s");
    stage.editor.menu();
    stage
}

impl Stage {
    /// Waits for a menu with exactly these commands. Returns how many others came before.
    fn menu_of(&mut self, expected: &[&str]) -> usize {
        let mut others = 0;
        loop {
            let menu = self.editor.menu();
            if names(&menu)[1..] == *expected {
                return others;
            }
            others += 1;
        }
    }
}

fn write(dir: &Path, name: &str, description: &str) {
    fs::create_dir_all(dir).expect("a directory");
    let text = format!("---\nname: {name}\ndescription: {description}\n---\nDo it.\n");
    fs::write(dir.join("SKILL.md"), text).expect("a file");
}

fn agents_hear_of_changes() {
    for (transport, revision) in
        [("http", MCP_2025), ("http", "2026-07-28"), ("stdio", "2024-11-05"), ("stdio", "2026-07-28")]
    {
        let skills = Skills::review();
        let proxy = Proxy::new().flag("--skills", skills.path()).flag("--mcp", transport);
        let mut stage = Stage::over_http(proxy);
        let params = stage.new_session("s");
        let connection = stage.connect(&entry(&params), revision);
        assert_eq!(connection.server["capabilities"]["tools"]["listChanged"], true, "{}", connection.server);
        skills.add("greet", "Greets.", "Hello.");
        let heard: Vec<_> = (0..3).map(|_| stage.heard(&connection)).collect();
        assert_eq!(heard, ["tools", "prompts", "resources"], "{transport} {revision}");
        assert_eq!(stage.names(&connection), json!(["greet", "review"]));
        // Whoever asks for it hears of it as well.
        skills.remove("greet");
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills reload" }] });
        let id = stage.editor.request("session/prompt", prompt);
        stage.editor.answer(&id);
        stage.editor.unread();
        assert_eq!(stage.heard(&connection), "tools", "{transport} {revision}");
        assert_eq!(stage.names(&connection), json!(["review"]));
        stage.finish();
    }
}

fn agents_hear_of_changes_over_acp() {
    let skills = Skills::review();
    let proxy = Proxy::new().flag("--skills", skills.path());
    let mut stage = Stage::initialized(proxy, &json!({ "mcpCapabilities": { "acp": {} } }));
    let params = stage.new_session("s");
    let server = entry(&params)["serverId"].clone();
    let wishes = json!({ "toolsListChanged": true, "resourcesListChanged": true });
    let inner = json!({ "notifications": wishes, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "scripted", "version": "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let request = json!({
        "serverId": server, "requestId": "mine", "method": "subscriptions/listen", "params": inner,
    });
    stage.says(&json!({ "jsonrpc": "2.0", "id": 1, "method": "mcp/message", "params": request }));
    let next = |stage: &mut Stage| {
        let message = stage.takes();
        let (outer, meta) = (&message["params"], &message["params"]["params"]["_meta"]);
        assert_eq!(message["method"], "mcp/message", "{message}");
        assert!(message.get("id").is_none(), "{message}");
        assert_eq!((&outer["serverId"], &outer["requestId"]), (&server, &json!("mine")), "{message}");
        assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], "mine", "{message}");
        outer["method"].as_str().expect("a method").to_owned()
    };
    assert_eq!(next(&mut stage), "notifications/subscriptions/acknowledged");
    skills.add("greet", "Greets.", "Hello.");
    assert_eq!(next(&mut stage), "notifications/tools/list_changed");
    assert_eq!(next(&mut stage), "notifications/resources/list_changed");
    // The subscription ends with its session.
    stage.exchange("session/close", json!({ "sessionId": "s" }), json!({ "result": {} }));
    let end = stage.takes();
    assert_eq!(end["id"], 1, "{end}");
    stage.finish();
}

fn a_line_before_the_next_prompt() {
    let skills = Skills::review();
    let mut stage = watched(&skills);
    assert!(texts(&stage.prompt("s", "hello"))[0].contains("<name>review</name>"));
    skills.add("greet", "Greets.", "Hello.");
    stage.menu_of(&["greet", "review"]);
    let blocks = stage.prompt("s", "go on");
    let [line, "go on"] = texts(&blocks)[..] else { panic!("{blocks:?}") };
    // This agent has not connected to the server, so the model is told which file to read.
    assert!(line.contains("New: `greet` (Greets.; ") && line.contains("SKILL.md)."), "{line}");
    // It came, and goes before anybody speaks: the model never hears of it.
    skills.add("short", "Is short.", "x");
    stage.menu_of(&["greet", "review", "short"]);
    skills.remove("short");
    stage.menu_of(&["greet", "review"]);
    let blocks = stage.prompt("s", "go on");
    assert_eq!(texts(&blocks), ["go on"]);
    stage.finish();
}

/// A thousand changes at once: new skills, changed ones, others that go.
fn a_storm() {
    let skills = Skills::review();
    let mut stage = watched(&skills);
    for number in 0..250 {
        let name = format!("s-{:02}", number % 25);
        let dir = skills.dir(&name);
        write(&dir, &name, "Old.");
        write(&dir, &name, "New.");
        skills.write(&format!("{name}/notes.md"), "x");
        if number % 2 == 0 {
            skills.remove(&name);
        }
    }
    write(&skills.dir("z-last"), "z-last", "Comes last.");
    // Of each name the last round counts.
    let kept: Vec<_> =
        (225..250).filter(|number| number % 2 == 1).map(|number| format!("s-{:02}", number % 25)).collect();
    let mut expected: Vec<_> = kept.iter().map(String::as_str).collect();
    expected.sort_unstable();
    expected.insert(0, "review");
    expected.push("z-last");
    let before = stage.menu_of(&expected);
    assert!(before < 30, "{before} menus for one storm");
    stage.finish();
}

fn a_directory_that_vanishes_and_comes_back() {
    let skills = Skills::review();
    let mut stage = watched(&skills);
    stage.prompt("s", "hello");
    let aside = tempfile::tempdir().expect("a directory");
    for way in ["moved", "deleted"] {
        if way == "moved" {
            fs::rename(skills.dir("review"), aside.path().join("review")).expect("it can be moved");
        } else {
            skills.remove("review");
        }
        stage.menu_of(&[]);
        if way == "moved" {
            fs::rename(aside.path().join("review"), skills.dir("review")).expect("it can be moved");
            stage.menu_of(&["review"]);
            assert_eq!(texts(&stage.prompt("s", "go on")), ["go on"], "all is as it was");
        }
    }
    // With everything above it.
    skills.remove("");
    write(&skills.dir("review"), "review", "Reviews again.");
    stage.menu_of(&["review"]);
    let blocks = stage.prompt("s", "go on");
    assert!(texts(&blocks)[0].contains("Changed: `review` (Reviews again."), "{blocks:?}");
    // And it is watched as before.
    write(&skills.dir("review"), "review", "Reviews once more.");
    stage.menu_of(&["review"]);
    stage.finish();
}

fn a_rename() {
    let skills = Skills::review();
    let mut stage = watched(&skills);
    stage.prompt("s", "hello");
    // The skill is known by its name, not by that of its directory.
    fs::rename(skills.dir("review"), skills.dir("other")).expect("it can be renamed");
    write(&skills.dir("new"), "new", "Is new.");
    stage.menu_of(&["new", "review"]);
    let blocks = stage.prompt("s", "go on");
    let line = texts(&blocks)[0].to_owned();
    assert!(
        line.contains("New: `new`") && line.contains("Changed: `review`") && line.contains("other"),
        "{line}"
    );
    if crate::is_wine() {
        // It goes on to report what happens in a directory under the name that this had at first.
        stage.finish();
        return;
    }
    // What is in the directory under its new name counts.
    write(&skills.dir("other"), "renamed", "Is renamed.");
    stage.menu_of(&["new", "renamed"]);
    stage.finish();
}

fn an_editor_that_saves_through_another_file() {
    let skills = Skills::review();
    let mut stage = watched(&skills);
    let file = skills.dir("review").join("SKILL.md");
    for round in 0..3 {
        let (backup, new) = (file.with_extension("md~"), file.with_extension("tmp"));
        fs::write(&new, format!("---\nname: review\ndescription: Round {round}.\n---\nx\n")).expect("a file");
        if round == 1 {
            // As Vim does with `backupcopy=no`.
            fs::rename(&file, &backup).expect("it can be moved");
        }
        fs::rename(&new, &file).expect("it can be moved");
        let menu = stage.editor.menu();
        let entries = menu["params"]["update"]["availableCommands"].as_array().expect("a list");
        assert_eq!(entries[1]["description"], format!("Round {round}."), "{menu}");
    }
    stage.finish();
}

fn a_broken_save() {
    let skills = Skills::review();
    let mut stage = watched(&skills);
    stage.prompt("s", "hello");
    for text in ["", "---\nname: review\ndescri", "---\nname: review\ndescription: [\n---\n"] {
        fs::write(skills.dir("review").join("SKILL.md"), text).expect("a file");
        stage.editor.logged("the skill `review` cannot be loaded again and stays as it was");
        // The next thing to be seen is the other skill.
        skills.add("greet", "Greets.", "Hello.");
        stage.menu_of(&["greet", "review"]);
        skills.remove("greet");
        stage.menu_of(&["review"]);
        skills.add(
            "review",
            "Reviews code. Use for <diffs> & \"patches\".",
            "# Review\n\nRead references/checklist.md.",
        );
        skills.add("greet", "Greets.", "Hello.");
        stage.menu_of(&["greet", "review"]);
        skills.remove("greet");
        stage.menu_of(&["review"]);
    }
    assert_eq!(texts(&stage.prompt("s", "go on")), ["go on"]);
    let ended = stage.finish();
    let warnings = ended.log.iter().filter(|line| line.contains("stays as it was")).count();
    assert_eq!(warnings, 3, "one for each that was new: {:#?}", ended.log);
}

fn a_project_that_gets_its_first_skill() {
    let project = Skills::new();
    let proxy = Proxy::new().flag("--discover", "project").flag("--trust", "project");
    let mut stage = Stage::initialized(proxy, &json!({}));
    let cwd = project.path().to_str().expect("text");
    let params = json!({ "cwd": cwd, "mcpServers": [] });
    stage.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    write(&project.path().join(".agents/skills/first"), "first", "Is the first.");
    stage.menu_of(&["first"]);
    let blocks = stage.prompt("s", "hello");
    assert!(texts(&blocks)[0].contains("<name>first</name>"), "{blocks:?}");
    write(&project.path().join(".skills/nearer"), "nearer", "Is nearer.");
    stage.menu_of(&["nearer", "first"]);
    stage.finish();
}

fn named_skills() {
    let skills = Skills::review();
    skills.add("greet", "Greets.", "Hello.");
    let proxy = skills.proxy().skill(&skills.dir("greet"));
    let mut stage = Stage::initialized(proxy, &json!({}));
    stage.new_session("s");
    stage.editor.menu();
    skills.add("review", "Reviews anew.", "x");
    stage.menu_of(&["review", "greet"]);
    skills.remove("review");
    stage.menu_of(&["greet"]);
    skills.add("review", "Is back.", "x");
    stage.menu_of(&["review", "greet"]);
    skills.add("review", "Is still watched.", "x");
    stage.menu_of(&["review", "greet"]);
    stage.finish();
}

#[cfg(unix)]
fn links() {
    use std::os::unix::fs::symlink;
    let (skills, elsewhere) = (Skills::review(), Skills::new());
    elsewhere.add("linked", "Is elsewhere.", "x");
    elsewhere.add("other", "Is another.", "x");
    symlink(elsewhere.dir("linked"), skills.dir("linked")).expect("a link");
    let root = elsewhere.path().join("root");
    symlink(skills.path(), &root).expect("a link");
    let mut stage = Stage::initialized(Proxy::new().flag("--skills", &root), &json!({}));
    stage.new_session("s");
    stage.editor.menu();
    elsewhere.add("linked", "Has changed.", "x");
    let menu = stage.editor.menu();
    assert!(menu.to_string().contains("Has changed."), "{menu}");
    // The link leads elsewhere now, and then the root does.
    fs::remove_file(skills.dir("linked")).expect("it was there");
    symlink(elsewhere.dir("other"), skills.dir("linked")).expect("a link");
    stage.menu_of(&["other", "review"]);
    let others = Skills::new();
    others.add("far", "Is far away.", "x");
    fs::remove_file(&root).expect("it was there");
    symlink(others.path(), &root).expect("a link");
    stage.menu_of(&["far"]);
    others.add("near", "Is watched, too.", "x");
    stage.menu_of(&["far", "near"]);
    stage.finish();
}

fn without_watching() {
    let skills = Skills::review();
    let virtual_only = skills.write(
        "only.yaml",
        &json!({ "skills": [
        { "name": "counter", "description": "Counts.", "body": "x" },
    ] })
        .to_string(),
    );
    let off = skills.write("off.yaml", &json!({ "skills": ["review"], "watch": false }).to_string());
    for (proxy, watches) in [
        (skills.proxy(), true),
        (skills.proxy().arg("--watch"), true),
        (skills.proxy().arg("--no-watch"), false),
        (Proxy::new().flag("--config", &virtual_only), false),
        (Proxy::new().flag("--config", &off), false),
        (Proxy::new().flag("--config", &off).arg("--watch"), true),
    ] {
        let mut stage = Stage::initialized(proxy.flag("--log", "debug"), &json!({}));
        stage.new_session("s");
        let mut seen = false;
        if watches {
            stage.editor.logged("watching");
            seen = true;
        }
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills reload" }] });
        let id = stage.editor.request("session/prompt", prompt);
        assert_eq!(stage.editor.answer(&id)["result"]["stopReason"], "end_turn");
        stage.editor.unread();
        let ended = stage.finish();
        let watching = seen || ended.log.iter().any(|line| line.contains("watching"));
        assert_eq!(watching, watches, "{:#?}", ended.log);
        assert_eq!(ended.messages, Vec::<Value>::new());
    }
}
