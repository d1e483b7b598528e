//! Skills that are added, changed and removed while the agent runs.
//!
//! Tests wait for the effect of a change. To check that a change has no effect, they wait for the effect of a later
//! change.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::Proxy,
    fixture::{Fixture, MCP_2025, entry, texts},
    skills::Skills,
};

crate::trials!(
    agents_are_notified_of_changes,
    agents_are_notified_of_changes_over_acp,
    the_next_prompt_announces_changes,
    a_thousand_changes_at_once,
    a_directory_that_is_removed_and_restored,
    a_renamed_directory,
    an_editor_that_saves_through_another_file,
    an_invalid_skill_file_is_ignored,
    the_first_skill_of_a_project,
    skills_named_by_flag_are_watched,
    #[cfg(unix)]
    symbolic_links_are_followed,
    #[cfg(unix)]
    a_link_to_the_project_is_watched,
    watching_can_be_switched_off,
);

/// Opens a session over the skills in a directory, and reads its first menu.
fn watched(skills: &Skills) -> Fixture {
    let proxy = Proxy::new().flag("--skills", skills.path());
    let mut fixture = Fixture::initialized(proxy, &json!({}));
    fixture.new_session("s");
    fixture.editor.menu();
    fixture
}

impl Fixture {
    /// Waits for a menu with exactly these commands, and returns the number of other menus that came before.
    fn wait_for_menu(&mut self, expected: &[&str]) -> usize {
        let mut skipped = 0;
        loop {
            let menu = self.editor.menu();
            if names(&menu)[1..] == *expected {
                return skipped;
            }
            skipped += 1;
        }
    }
}

fn write(dir: &Path, name: &str, description: &str) {
    fs::create_dir_all(dir).expect("a directory");
    let text = format!("---\nname: {name}\ndescription: {description}\n---\nDo it.\n");
    fs::write(dir.join("SKILL.md"), text).expect("a file");
}

fn agents_are_notified_of_changes() {
    for (transport, revision) in
        [("http", MCP_2025), ("http", "2026-07-28"), ("stdio", "2024-11-05"), ("stdio", "2026-07-28")]
    {
        let skills = Skills::review();
        let proxy = Proxy::new().flag("--skills", skills.path()).flag("--mcp", transport);
        let mut fixture = Fixture::over_http(proxy);
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), revision);
        assert_eq!(connection.server["capabilities"]["tools"]["listChanged"], true, "{}", connection.server);
        skills.add("greet", "Greets.", "Hello.");
        let heard: Vec<_> = (0..2).map(|_| fixture.list_changed(&connection)).collect();
        assert_eq!(heard, ["prompts", "resources"], "{transport} {revision}");
        assert_eq!(fixture.skill_names(&connection), json!(["greet", "review"]));
        // The agent is also notified if the user runs `/skills reload`.
        skills.remove("greet");
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills reload" }] });
        let id = fixture.editor.request("session/prompt", prompt);
        fixture.editor.answer(&id);
        fixture.editor.unread();
        assert_eq!(fixture.list_changed(&connection), "prompts", "{transport} {revision}");
        assert_eq!(fixture.skill_names(&connection), json!(["review"]));
        fixture.finish();
    }
}

fn agents_are_notified_of_changes_over_acp() {
    let skills = Skills::review();
    let proxy = Proxy::new().flag("--skills", skills.path());
    let mut fixture = Fixture::initialized(proxy, &json!({ "mcpCapabilities": { "acp": {} } }));
    let params = fixture.new_session("s");
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
    fixture.agent_sends(&json!({ "jsonrpc": "2.0", "id": 1, "method": "mcp/message", "params": request }));
    let next = |fixture: &mut Fixture| {
        let message = fixture.agent_receives();
        let outer = &message["params"];
        let meta = &message["params"]["params"]["_meta"];
        assert_eq!(message["method"], "mcp/message", "{message}");
        assert!(message.get("id").is_none(), "{message}");
        assert_eq!((&outer["serverId"], &outer["requestId"]), (&server, &json!("mine")), "{message}");
        assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], "mine", "{message}");
        outer["method"].as_str().expect("a method").to_owned()
    };
    assert_eq!(next(&mut fixture), "notifications/subscriptions/acknowledged");
    skills.add("greet", "Greets.", "Hello.");
    assert_eq!(next(&mut fixture), "notifications/resources/list_changed");
    // The subscription must be closed together with the session.
    fixture.exchange("session/close", json!({ "sessionId": "s" }), json!({ "result": {} }));
    let end = fixture.agent_receives();
    assert_eq!(end["id"], 1, "{end}");
    fixture.finish();
}

fn the_next_prompt_announces_changes() {
    let skills = Skills::review();
    let mut fixture = watched(&skills);
    assert!(texts(&fixture.prompt("s", "hello"))[0].contains("<name>review</name>"));
    skills.add("greet", "Greets.", "Hello.");
    fixture.wait_for_menu(&["greet", "review"]);
    let blocks = fixture.prompt("s", "go on");
    let [line, "go on"] = texts(&blocks)[..] else { panic!("{blocks:?}") };
    // Since this agent hasn't connected to the server, we need to tell the model which file to read.
    assert!(line.contains("New: `greet` (\"Greets.\"; `") && line.contains("SKILL.md`)."), "{line}");
    // If a skill is added and then removed between two prompts, the model doesn't need to know.
    skills.add("short", "Is short.", "x");
    fixture.wait_for_menu(&["greet", "review", "short"]);
    skills.remove("short");
    fixture.wait_for_menu(&["greet", "review"]);
    let blocks = fixture.prompt("s", "go on");
    assert_eq!(texts(&blocks), ["go on"]);
    fixture.finish();
}

/// A thousand changes at once: skills that are added, changed and removed.
fn a_thousand_changes_at_once() {
    let skills = Skills::review();
    let mut fixture = watched(&skills);
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
    // If a name has changed more than once, only the last change matters.
    let kept: Vec<_> =
        (225..250).filter(|number| number % 2 == 1).map(|number| format!("s-{:02}", number % 25)).collect();
    let mut expected: Vec<_> = kept.iter().map(String::as_str).collect();
    expected.sort_unstable();
    expected.insert(0, "review");
    expected.push("z-last");
    let before = fixture.wait_for_menu(&expected);
    assert!(before < 30, "{before} menus for one storm");
    fixture.finish();
}

fn a_directory_that_is_removed_and_restored() {
    let skills = Skills::review();
    let mut fixture = watched(&skills);
    fixture.prompt("s", "hello");
    let aside = tempfile::tempdir().expect("a directory");
    for way in ["moved", "deleted"] {
        if way == "moved" {
            fs::rename(skills.dir("review"), aside.path().join("review")).expect("it can be moved");
        } else {
            skills.remove("review");
        }
        fixture.wait_for_menu(&[]);
        if way == "moved" {
            fs::rename(aside.path().join("review"), skills.dir("review")).expect("it can be moved");
            fixture.wait_for_menu(&["review"]);
            assert_eq!(texts(&fixture.prompt("s", "go on")), ["go on"], "the skill is unchanged");
        }
    }
    // Now remove the parent directory as well.
    skills.remove("");
    write(&skills.dir("review"), "review", "Reviews again.");
    fixture.wait_for_menu(&["review"]);
    let blocks = fixture.prompt("s", "go on");
    assert!(texts(&blocks)[0].contains("Changed: `review` (\"Reviews again."), "{blocks:?}");
    // The new directory must be watched as well.
    write(&skills.dir("review"), "review", "Reviews once more.");
    fixture.wait_for_menu(&["review"]);
    fixture.finish();
}

fn a_renamed_directory() {
    let skills = Skills::review();
    let mut fixture = watched(&skills);
    fixture.prompt("s", "hello");
    // Skills are found by the name in the file and not by the name of the directory, so this shouldn't change anything.
    fs::rename(skills.dir("review"), skills.dir("other")).expect("it can be renamed");
    write(&skills.dir("new"), "new", "Is new.");
    fixture.wait_for_menu(&["new", "review"]);
    let blocks = fixture.prompt("s", "go on");
    let line = texts(&blocks)[0].to_owned();
    assert!(
        line.contains("New: `new`") && line.contains("Changed: `review`") && line.contains("other"),
        "{line}"
    );
    if crate::is_wine() {
        // Wine will still use the old name of the directory in events, so we can't test the rest here.
        fixture.finish();
        return;
    }
    // Changes in the renamed directory must still be noticed.
    write(&skills.dir("other"), "renamed", "Is renamed.");
    fixture.wait_for_menu(&["new", "renamed"]);
    fixture.finish();
}

fn an_editor_that_saves_through_another_file() {
    let skills = Skills::review();
    let mut fixture = watched(&skills);
    let file = skills.dir("review").join("SKILL.md");
    for round in 0..3 {
        let backup = file.with_extension("md~");
        let new = file.with_extension("tmp");
        fs::write(&new, format!("---\nname: review\ndescription: Round {round}.\n---\nx\n")).expect("a file");
        if round == 1 {
            // This is what Vim does if `backupcopy=no` is set.
            fs::rename(&file, &backup).expect("it can be moved");
        }
        fs::rename(&new, &file).expect("it can be moved");
        let menu = fixture.editor.menu();
        let entries = menu["params"]["update"]["availableCommands"].as_array().expect("a list");
        assert_eq!(entries[1]["description"], format!("Round {round}."), "{menu}");
    }
    fixture.finish();
}

fn an_invalid_skill_file_is_ignored() {
    let skills = Skills::review();
    let mut fixture = watched(&skills);
    fixture.prompt("s", "hello");
    for text in ["", "---\nname: review\ndescri", "---\nname: review\ndescription: [\n---\n"] {
        fs::write(skills.dir("review").join("SKILL.md"), text).expect("a file");
        fixture.editor.wait_for_log("cannot reload skill `review`, using the previous version instead");
        // Nothing should change before the other skill is added.
        skills.add("greet", "Greets.", "Hello.");
        fixture.wait_for_menu(&["greet", "review"]);
        skills.remove("greet");
        fixture.wait_for_menu(&["review"]);
        skills.add(
            "review",
            "Reviews code. Use for <diffs> & \"patches\".",
            "# Review\n\nRead references/checklist.md.",
        );
        skills.add("greet", "Greets.", "Hello.");
        fixture.wait_for_menu(&["greet", "review"]);
        skills.remove("greet");
        fixture.wait_for_menu(&["review"]);
    }
    assert_eq!(texts(&fixture.prompt("s", "go on")), ["go on"]);
    let ended = fixture.finish();
    let warnings =
        ended.log.iter().filter(|line| line.contains("using the previous version instead")).count();
    assert_eq!(warnings, 3, "one for each broken version: {:#?}", ended.log);
}

fn the_first_skill_of_a_project() {
    let project = Skills::new();
    let proxy = Proxy::new().flag("--discover", "project").flag("--trust", "project");
    let mut fixture = Fixture::initialized(proxy, &json!({}));
    let cwd = project.path().to_str().expect("text");
    let params = json!({ "cwd": cwd, "mcpServers": [] });
    fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    write(&project.path().join(".agents/skills/first"), "first", "Is the first.");
    fixture.wait_for_menu(&["first"]);
    let blocks = fixture.prompt("s", "hello");
    assert!(texts(&blocks)[0].contains("<name>first</name>"), "{blocks:?}");
    write(&project.path().join(".skills/nearer"), "nearer", "Is nearer.");
    fixture.wait_for_menu(&["nearer", "first"]);
    fixture.finish();
}

fn skills_named_by_flag_are_watched() {
    let skills = Skills::review();
    skills.add("greet", "Greets.", "Hello.");
    let proxy = skills.proxy().skill(&skills.dir("greet"));
    let mut fixture = Fixture::initialized(proxy, &json!({}));
    fixture.new_session("s");
    fixture.editor.menu();
    skills.add("review", "Reviews anew.", "x");
    fixture.wait_for_menu(&["review", "greet"]);
    skills.remove("review");
    fixture.wait_for_menu(&["greet"]);
    skills.add("review", "Is back.", "x");
    fixture.wait_for_menu(&["review", "greet"]);
    skills.add("review", "Is still watched.", "x");
    fixture.wait_for_menu(&["review", "greet"]);
    fixture.finish();
}

#[cfg(unix)]
fn symbolic_links_are_followed() {
    use std::os::unix::fs::symlink;
    let skills = Skills::review();
    let elsewhere = Skills::new();
    elsewhere.add("linked", "Is elsewhere.", "x");
    elsewhere.add("other", "Is another.", "x");
    symlink(elsewhere.dir("linked"), skills.dir("linked")).expect("a link");
    let root = elsewhere.path().join("root");
    symlink(skills.path(), &root).expect("a link");
    let mut fixture = Fixture::initialized(Proxy::new().flag("--skills", &root), &json!({}));
    fixture.new_session("s");
    fixture.editor.menu();
    elsewhere.add("linked", "Has changed.", "x");
    let menu = fixture.editor.menu();
    assert!(menu.to_string().contains("Has changed."), "{menu}");
    // First change the link to the skill, and then the link to the root.
    fs::remove_file(skills.dir("linked")).expect("the path exists");
    symlink(elsewhere.dir("other"), skills.dir("linked")).expect("a link");
    fixture.wait_for_menu(&["other", "review"]);
    let others = Skills::new();
    others.add("far", "Is far away.", "x");
    fs::remove_file(&root).expect("the path exists");
    symlink(others.path(), &root).expect("a link");
    fixture.wait_for_menu(&["far"]);
    others.add("near", "Is watched, too.", "x");
    fixture.wait_for_menu(&["far", "near"]);
    fixture.finish();
}

/// A link in the path of the session's directory can lead to another project later.
#[cfg(unix)]
fn a_link_to_the_project_is_watched() {
    use std::os::unix::fs::symlink;
    let projects = Skills::new();
    for (project, name) in [("first", "review"), ("second", "deploy")] {
        let text = format!("---\nname: {name}\ndescription: d\n---\nx\n");
        projects.write(&format!("{project}/sub/.skills/{name}/SKILL.md"), &text);
    }
    let link = projects.path().join("link");
    symlink("first", &link).expect("a link");
    let proxy = Proxy::new().flag("--discover", "project").flag("--trust", "project");
    let mut fixture = Fixture::initialized(proxy, &json!({}));
    let params = json!({ "cwd": link.join("sub"), "mcpServers": [] });
    fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    fixture.wait_for_menu(&["review"]);
    fs::remove_file(&link).expect("the path exists");
    symlink("second", &link).expect("a link");
    fixture.wait_for_menu(&["deploy"]);
    fixture.finish();
}

fn watching_can_be_switched_off() {
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
        let mut fixture = Fixture::initialized(proxy.flag("--log", "debug"), &json!({}));
        fixture.new_session("s");
        let mut seen = false;
        if watches {
            fixture.editor.wait_for_log("watching");
            seen = true;
        }
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills reload" }] });
        let id = fixture.editor.request("session/prompt", prompt);
        assert_eq!(fixture.editor.answer(&id)["result"]["stopReason"], "end_turn");
        fixture.editor.unread();
        let ended = fixture.finish();
        let watching = seen || ended.log.iter().any(|line| line.contains("watching"));
        assert_eq!(watching, watches, "{:#?}", ended.log);
        assert_eq!(ended.messages, Vec::<Value>::new());
    }
}
