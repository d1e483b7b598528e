//! Skills with `paths`, which join the catalog when a file comes up for which they are meant.

use std::fs;

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::Proxy,
    fixture::{Fixture, MCP_2025, entry, texts},
    roots::{Roots, activate, catalog, write_skill},
};

crate::trials!(
    a_skill_joins_when_a_tool_touches_a_file,
    a_skill_joins_when_a_prompt_mentions_a_file,
    a_skill_that_waits_can_be_used_by_name,
    files_of_all_roots_count,
    other_files_do_not_count,
    skills_of_the_configuration_can_wait,
    the_configuration_adds_paths_to_a_directory,
    #[cfg(unix)]
    links_to_a_root_count,
    a_skill_stays_joined,
);

/// A project with the skill `review`, and the skill `deploy` for `infra/**`.
fn project() -> Roots {
    let roots = Roots::new();
    roots.skill("a/.skills/review", "Reviews.");
    write_skill(&roots.path("a/.skills/deploy"), "Deploys.", "metadata:\n  paths: \"infra/**, *.tf\"\n");
    roots
}

fn start(proxy: Proxy, roots: &Roots) -> (Fixture, Value) {
    let mut fixture = Fixture::over_http(proxy);
    let params = roots.open(&mut fixture, "a", &[]);
    (fixture, params)
}

/// Reports a tool call with a location.
fn touch(fixture: &mut Fixture, kind: &str, id: &str, path: &str) {
    let update = json!({ "sessionUpdate": kind, "toolCallId": id, "title": "Read", "kind": "read",
        "locations": [{ "path": path, "line": 3 }] });
    fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "session/update",
        "params": { "sessionId": "s", "update": update } }));
    fixture.editor.wait_for("the call", |message| message["params"]["update"]["toolCallId"] == id);
}

fn a_skill_joins_when_a_tool_touches_a_file() {
    for kind in ["tool_call", "tool_call_update"] {
        let roots = project();
        let proxy = roots.trusting().flag("--events", roots.path("events"));
        let (mut fixture, _) = start(proxy, &roots);
        let text = catalog(&mut fixture);
        assert!(text.contains("Reviews.") && !text.contains("deploy"), "{text}");
        let said = fixture.ask("/skills");
        assert!(said.contains("(waits for `infra/**`, `*.tf`): Deploys."), "{said}");
        assert_eq!(catalog(&mut fixture), "hello");
        touch(&mut fixture, kind, "c1", &roots.text("a/infra/main.tf"));
        // The model is told about the change once, in a single line.
        let line = catalog(&mut fixture);
        assert!(line.contains("The skills have changed. New: ") && line.contains("Deploys."), "{line}");
        assert!(!line.contains("Reviews.") && !line.contains("Removed"), "{line}");
        assert_eq!(catalog(&mut fixture), "hello");
        assert!(!fixture.ask("/skills").contains("waits for"));
        fixture.finish();
        let events = fs::read_to_string(roots.path("events")).expect("a file");
        let joined: Vec<_> = events.lines().filter(|line| line.contains("skills_joined")).collect();
        assert_eq!(joined.len(), 1, "{events}");
        assert!(joined[0].contains("[\"deploy\"]"), "{joined:?}");
    }
}

fn a_skill_joins_when_a_prompt_mentions_a_file() {
    let roots = project();
    let uri = format!("file://{}", roots.text("a/infra/x.yaml").replace('\\', "/"));
    for (block, joins) in [
        (json!({ "type": "text", "text": "Look at @infra/x.yaml." }), true),
        (json!({ "type": "text", "text": "Why is main.tf red?" }), true),
        (json!({ "type": "text", "text": format!("See [@x]({uri}#L1)") }), true),
        (json!({ "type": "resource_link", "uri": uri, "name": "x.yaml" }), true),
        (json!({ "type": "resource", "resource": { "uri": uri, "text": "x" } }), true),
        (json!({ "type": "text", "text": "Look at the infra and https://example.org/infra/x.tf" }), false),
        (json!({ "type": "resource_link", "uri": "https://example.org/main.tf", "name": "main.tf" }), false),
    ] {
        // The catalog of the first prompt has the skill already.
        let (mut fixture, _) = start(roots.trusting(), &roots);
        let prompt = json!({ "sessionId": "s", "prompt": [block] });
        let outcome = json!({ "result": { "stopReason": "end_turn" } });
        let (received, _) = fixture.exchange("session/prompt", prompt.clone(), outcome.clone());
        let text = received["params"]["prompt"][0]["text"].as_str().expect("text");
        assert_eq!((text.contains("Reviews."), text.contains("Deploys.")), (true, joins), "{block}");
        fixture.finish();
        // A later prompt has one line.
        let (mut fixture, _) = start(roots.trusting(), &roots);
        catalog(&mut fixture);
        let (received, _) = fixture.exchange("session/prompt", prompt, outcome);
        let blocks = received["params"]["prompt"].as_array().expect("blocks");
        assert_eq!(blocks.len(), 1 + usize::from(joins), "{block}");
        assert_eq!(blocks.last(), Some(&block));
        fixture.finish();
    }
}

fn a_skill_that_waits_can_be_used_by_name() {
    let roots = project();
    let (mut fixture, params) = start(roots.trusting(), &roots);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "deploy", "review"]);
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let (text, is_error) = activate(&mut fixture, &connection, "deploy");
    assert!(!is_error && text.contains("Body of deploy"), "{text}");
    let blocks = fixture.prompt("s", "/deploy now");
    assert!(texts(&blocks).iter().any(|text| text.contains("Body of deploy")), "{blocks:?}");
    fixture.finish();
}

fn files_of_all_roots_count() {
    let roots = project();
    roots.skill("b/.skills/write", "Writes.");
    for (path, joins) in [
        ("b/infra/x", true),
        ("a/sub/x.tf", true),
        ("a/sub/infra/x", false),
        ("c/infra/x", false),
        ("infra/x", false),
    ] {
        let mut fixture = Fixture::over_http(roots.trusting());
        roots.open(&mut fixture, "a", &["b"]);
        catalog(&mut fixture);
        touch(&mut fixture, "tool_call", "c1", &roots.text(path));
        assert_eq!(catalog(&mut fixture).contains("Deploys."), joins, "{path}");
        fixture.finish();
    }
}

fn other_files_do_not_count() {
    let roots = project();
    let (mut fixture, _) = start(roots.trusting(), &roots);
    catalog(&mut fixture);
    let inside = roots.text("a/infra/../src/x.rs");
    let outside = roots.text("a/src/../../c/infra/x");
    for (number, path) in
        [inside.as_str(), &outside, "/etc/infra/x", "", "infra", "../infra/x"].iter().enumerate()
    {
        touch(&mut fixture, "tool_call", &format!("c{number}"), path);
    }
    // These locations have another shape.
    for (number, locations) in
        [json!(null), json!("infra/x"), json!([7, {}, { "path": null }])].iter().enumerate()
    {
        let id = format!("d{number}");
        let update =
            json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "x", "locations": locations });
        fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": "s", "update": update } }));
        fixture.editor.wait_for("the call", |message| message["params"]["update"]["toolCallId"] == *id);
    }
    assert_eq!(catalog(&mut fixture), "hello");
    fixture.finish();
}

fn skills_of_the_configuration_can_wait() {
    let roots = project();
    let skill = |glob: &str| {
        format!(
            "skills:\n  - name: sql\n    description: Queries.\n    body: Query.\n    paths: [\"{glob}\"]\n"
        )
    };
    roots.write("skills.yaml", &skill("db/**"));
    let proxy = roots.home.proxy().flag("--config", roots.path("skills.yaml"));
    let (mut fixture, params) = start(proxy, &roots);
    // A skill without files is only shown to a model that has the tools.
    fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(catalog(&mut fixture), "hello");
    touch(&mut fixture, "tool_call", "c1", &roots.text("a/db/schema.sql"));
    let text = catalog(&mut fixture);
    assert!(text.contains("Queries."), "{text}");
    fixture.finish();
    roots.write("skills.yaml", &skill("a["));
    let proxy = roots.home.proxy().flag("--config", roots.path("skills.yaml"));
    let ended = proxy.agent("scripted").finish();
    assert!(ended.log.join("\n").contains("skill `sql`: invalid glob `a[` in `paths`"), "{:?}", ended.log);
}

fn the_configuration_adds_paths_to_a_directory() {
    let roots = project();
    write_skill(&roots.path("sql"), "Queries.", "metadata:\n  paths: \"other/**\"\n");
    roots.write("skills.yaml", "skills:\n  - skill: ./sql\n    paths: [\"db/**\"]\n");
    let proxy = roots.home.proxy().flag("--config", roots.path("skills.yaml"));
    let (mut fixture, params) = start(proxy, &roots);
    fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(catalog(&mut fixture), "hello");
    // The globs stay if the skill is loaded again.
    write_skill(&roots.path("sql"), "Writes queries.", "metadata:\n  paths: \"other/**\"\n");
    while !fixture.ask("/skills").contains("Writes queries.") {}
    touch(&mut fixture, "tool_call", "c1", &roots.text("a/other/x.sql"));
    assert_eq!(catalog(&mut fixture), "hello");
    touch(&mut fixture, "tool_call", "c2", &roots.text("a/db/schema.sql"));
    let text = catalog(&mut fixture);
    assert!(text.contains("Writes queries."), "{text}");
    fixture.finish();
}

#[cfg(unix)]
fn links_to_a_root_count() {
    let roots = project();
    std::os::unix::fs::symlink(roots.path("a"), roots.path("link")).expect("a link");
    for (cwd, file) in [("link", "a/infra/x"), ("link", "link/infra/x"), ("a", "a/infra/x")] {
        let mut fixture = Fixture::over_http(roots.trusting());
        roots.open(&mut fixture, cwd, &[]);
        catalog(&mut fixture);
        touch(&mut fixture, "tool_call", "c1", &roots.text(file));
        assert!(catalog(&mut fixture).contains("Deploys."), "{cwd} {file}");
        fixture.finish();
    }
}

/// A skill that has joined stays in the catalog: after a change, in a copy of the session, and if it is turned off and on.
fn a_skill_stays_joined() {
    let roots = project();
    let (mut fixture, _) = start(roots.trusting(), &roots);
    catalog(&mut fixture);
    touch(&mut fixture, "tool_call", "c1", &roots.text("a/infra/x"));
    assert!(catalog(&mut fixture).contains("Deploys."));
    write_skill(&roots.path("a/.skills/deploy"), "Deploys more.", "metadata:\n  paths: other/**\n");
    assert!(fixture.ask("/skills reload").contains("Changed: `deploy`"));
    assert!(catalog(&mut fixture).contains("Deploys more."));
    fixture.ask("/skills off deploy");
    assert!(catalog(&mut fixture).contains("Removed: `deploy`"));
    fixture.ask("/skills on deploy");
    assert!(catalog(&mut fixture).contains("Deploys more."));
    fixture.finish();
}
