//! MCP servers behind skills and their sessions: which server a session uses, in which directory, and when its tools change.

use std::{fs, path::Path};

use serde_json::json;

use crate::{
    fixture::{self, MCP_2025, entry},
    skills::Skills,
    tool_servers::{connected, count, starts, trusted},
};

crate::trials!(
    a_session_has_its_own_server,
    a_prompt_uses_the_server_of_its_session,
    changed_tools_are_told_in_one_line,
    tools_are_listed_again_after_a_failure,
);

fn a_session_has_its_own_server() {
    let skills = Skills::new();
    for (shared, expected) in [(false, 2), (true, 1)] {
        let _ = fs::remove_file(starts(&skills));
        let more = json!({ "ask": "never", "shared": shared });
        let (mut fixture, connection) = connected(&skills, "", &more);
        assert_eq!(fixture.run(&connection, "look").0, "seen");
        let params = fixture.new_session("t");
        let second = fixture.connect(&entry(&params), MCP_2025);
        assert_eq!(fixture.run(&second, "look").0, "seen");
        assert_eq!(count(&skills), expected, "shared: {shared}");
        fixture.finish();
    }
}

fn a_prompt_uses_the_server_of_its_session() {
    let skills = Skills::new();
    let (mut fixture, connection) = trusted(&skills, "");
    let prompt = json!({ "connection": connection.number, "name": "kit" });
    let text = fixture.order("prompt", prompt).expect("a prompt").to_string();
    assert!(text.contains("<tool name="), "{text}");
    assert_eq!(count(&skills), 1);
    let directory = fixture.run(&connection, "where").0;
    let real = |path: &str| Path::new(path).canonicalize().expect("a directory");
    assert_eq!(real(&directory), real(&fixture::cwd()));
    assert_eq!(count(&skills), 1, "the server of the prompt is not used for the call");
    fixture.finish();
}

fn changed_tools_are_told_in_one_line() {
    let skills = Skills::new();
    let (mut fixture, connection) = trusted(&skills, "");
    assert_eq!(fixture.run(&connection, "grow").0, "grown");
    let (text, failed) = fixture.run(&connection, "look");
    let line = "[The tools of kit have changed: 1 new, 0 gone. Activate it again to see them.]";
    assert_eq!((text, failed), (format!("seen\n{line}"), false));
    assert_eq!(fixture.run(&connection, "new").0, "seen");
    fixture.finish();
}

fn tools_are_listed_again_after_a_failure() {
    let skills = Skills::new();
    let (mut fixture, connection) = trusted(&skills, "");
    assert_eq!(fixture.run(&connection, "grow later").0, "grown");
    let (text, failed) = fixture.run(&connection, "look");
    assert!(failed && text.contains("not now"), "{text}");
    let text = fixture.run(&connection, "look").0;
    assert!(text.contains("[The tools of kit have changed: 1 new, 0 gone."), "{text}");
    assert_eq!(fixture.run(&connection, "new").0, "seen");
    fixture.finish();
}
