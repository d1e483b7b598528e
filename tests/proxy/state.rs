//! The state of a session that `--state` keeps: active skills are restored when the session is loaded again.

use std::{fs, path::Path};

use serde_json::json;

use crate::{
    events::{connected, recording, skills_command},
    fixture::{Fixture, MCP_2025, cwd, entry},
    skills::Skills,
};

crate::trials!(active_skills_are_restored, nothing_is_stored_by_default);

fn active_skills_are_restored() {
    let skills = Skills::review();
    let hidden = "---\nname: hidden\ndescription: Hidden.\ndisable-model-invocation: true\n---\nDo it.\n";
    skills.write("hidden/SKILL.md", hidden);
    let state = skills.path().join("state/of/proxy");
    let proxy =
        || recording(&skills, &skills.path().join("e")).skill(&skills.dir("hidden")).flag("--state", &state);
    let (mut fixture, connection) = connected(proxy());
    fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    let refused = fixture.call(&connection, "activate_skill", json!({ "name": "hidden" }));
    assert!(refused.1, "{refused:?}");
    fixture.prompt("s", "/hidden");
    fixture.finish();
    // Load the same session in a new run of the proxy.
    let mut fixture = Fixture::over_http(proxy());
    let load = json!({ "sessionId": "s", "cwd": cwd(), "mcpServers": [] });
    let (received, _) = fixture.exchange("session/load", load.clone(), json!({ "result": {} }));
    let overview = skills_command(&mut fixture, "s", "/skills");
    assert!(overview.contains("`/review` (active, by the model)"), "{overview}");
    assert!(overview.contains("`/hidden` (active, by you"), "{overview}");
    let connection = fixture.connect(&entry(&received["params"]), MCP_2025);
    let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "hidden" }));
    assert!(!failed && text.contains("Do it."), "{text}");
    // Deleting the session must also remove its file.
    fixture.exchange("session/delete", json!({ "sessionId": "s" }), json!({ "result": {} }));
    fixture.finish();
    let left = fs::read_dir(&state).expect("a directory").map(|entry| entry.expect("an entry"));
    let files: Vec<_> = left.filter(|entry| entry.path().is_file()).map(|entry| entry.file_name()).collect();
    assert_eq!(files, ["marks.key"]);
}

fn nothing_is_stored_by_default() {
    let skills = Skills::review();
    let files = |path: &Path| fs::read_dir(path).expect("a directory").count();
    let before = files(skills.path());
    let mut fixture = Fixture::over_http(skills.proxy());
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    fixture.finish();
    assert_eq!(files(skills.path()), before);
}
