//! MCP servers that offer skills: which of them are asked, and those that fail or attack.

use std::{thread, time::Instant};

use serde_json::json;

use crate::{
    agent::{self, tool_server},
    editor::DEADLINE,
    skill_server::{Server, activate, ask_until, open, proxy, trust_all},
    skills::Skills,
    tool_servers::{count, starts},
};

crate::trials!(
    only_chosen_servers_are_asked,
    servers_without_sessions,
    broken_servers_cost_their_own_skills_only,
    a_server_that_hangs_delays_nothing,
    a_server_comes_back,
    files_stay_within_the_skill,
    errors_bring_no_text_to_the_model,
);

fn only_chosen_servers_are_asked() {
    let skills = Skills::review();
    let this = std::env::current_exe().expect("this program has a path");
    let env = json!([
        { "name": agent::SCRIPT, "value": tool_server::PREFIX },
        { "name": tool_server::STARTS, "value": starts(&skills) },
    ]);
    let program = json!({ "name": "program", "command": this, "args": [], "env": env });
    for (flag, is_asked, is_started) in [
        (None, false, false),
        (Some(""), true, false),
        (Some("other"), false, false),
        (Some("program"), false, true),
    ] {
        let server = Server::with_refunds();
        let proxy = proxy(&skills).skill(&skills.dir("review"));
        let proxy = match flag {
            None => proxy,
            Some("") => proxy.arg("--mcp-skills"),
            Some(names) => proxy.flag("--mcp-skills", names),
        };
        let before = count(&skills);
        let (mut fixture, _) = open(proxy, &[server.entry("docs"), program.clone()]);
        if is_asked {
            ask_until(&mut fixture, "/skills", "`refunds`");
        }
        let deadline = Instant::now() + DEADLINE;
        while is_started && count(&skills) == before {
            assert!(Instant::now() < deadline, "{flag:?}");
            thread::yield_now();
        }
        fixture.prompt("s", "Hello");
        fixture.editor.unread();
        fixture.finish();
        assert_eq!(
            (!server.state().seen.is_empty(), count(&skills) > before),
            (is_asked, is_started),
            "{flag:?}"
        );
    }
}

/// Servers with the latest revision of MCP offer skills only to requests without a session.
fn servers_without_sessions() {
    let skills = Skills::new();
    let server = Server::with_refunds();
    server.mode("stateless");
    let (mut fixture, connection) = open(proxy(&skills).arg("--mcp-skills"), &[server.entry("docs")]);
    trust_all(&mut fixture);
    let (text, is_error) = activate(&mut fixture, &connection, "refunds");
    assert!(!is_error && text.contains("ZQ-body"), "{text}");
    server.wait_for("a subscription", |state| !state.streams.is_empty());
    server.offer(&[("new", "Is new.", "New.")]);
    server.announce();
    ask_until(&mut fixture, "/skills", "`new`");
    fixture.editor.unread();
    fixture.finish();
}

fn broken_servers_cost_their_own_skills_only() {
    for (mode, expected) in [
        ("plain", "1 skill in this session"),
        ("refuses", "MCP server docs cannot be asked for skills: server answered with error -32602: not now"),
        ("nonsense", "no list of skills"),
        ("endless", "its list does not end"),
        ("repeats", "its list does not end"),
        ("down", "server returned status 503"),
        // The next request is `server/discover`, and the answer says nothing about skills.
        ("is back after initialize", "server returned status 503"),
    ] {
        let skills = Skills::review();
        let server = Server::with_refunds();
        server.mode(mode);
        let proxy = proxy(&skills).arg("--mcp-skills").skill(&skills.dir("review"));
        let (mut fixture, connection) = open(proxy, &[server.entry("docs")]);
        ask_until(&mut fixture, "/skills", expected);
        assert!(activate(&mut fixture, &connection, "review").0.contains("# Review"));
        if mode == "endless" {
            assert_eq!(server.seen("skills/list"), 50);
        }
        fixture.editor.unread();
        fixture.finish();
    }
    // Too many entries, and entries that are wrong.
    let skills = Skills::review();
    let server = Server::with_refunds();
    let good = server.state().pages[0][0].clone();
    let mut page = vec![good.clone(), good];
    page.push(json!({ "uri": "skill://x/SKILL.md", "frontmatter": { "name": "x", "description": "X" }, "resources": "dynamic" }));
    page.push(json!([]));
    page.extend((0..100_000).map(|number| json!({ "uri": number })));
    server.state().pages = vec![page];
    let (mut fixture, _) = open(proxy(&skills).arg("--mcp-skills"), &[server.entry("docs")]);
    let said = ask_until(&mut fixture, "/skills", "is left out");
    assert!(said.contains("its content is generated") && said.contains("it is listed twice"), "{said}");
    assert!(said.len() < 10_000, "{}", said.len());
    fixture.editor.unread();
    fixture.finish();
}

fn a_server_that_hangs_delays_nothing() {
    for mode in ["hangs at initialize", "hangs at skills/list", "hangs at resources/read"] {
        let skills = Skills::review();
        let server = Server::with_refunds();
        server.mode(mode);
        let proxy = proxy(&skills).arg("--mcp-skills").skill(&skills.dir("review"));
        let (mut fixture, connection) = open(proxy, &[server.entry("docs")]);
        fixture.prompt("s", "Hello");
        assert!(activate(&mut fixture, &connection, "review").0.contains("# Review"));
        if mode == "hangs at resources/read" {
            trust_all(&mut fixture);
            let call = json!({
                "connection": connection.number, "tool": "activate_skill", "arguments": { "name": "refunds" },
            });
            fixture.editor.request("_agent/call", call);
            server.wait_for("a read", |state| state.seen.iter().any(|seen| seen.ends_with("SKILL.md")));
        } else {
            ask_until(&mut fixture, "/skills", "is asked for skills in the background");
        }
        // The proxy ends at once.
        fixture.editor.unread();
        let ended = fixture.editor.finish();
        assert_eq!(ended.code(), Some(0), "{mode}: {:?}", ended.log);
    }
}

fn a_server_comes_back() {
    let skills = Skills::new();
    let server = Server::with_refunds();
    server.mode("down");
    let (mut fixture, connection) = open(proxy(&skills).arg("--mcp-skills"), &[server.entry("docs")]);
    ask_until(&mut fixture, "/skills", "cannot be asked");
    server.mode("");
    trust_all(&mut fixture);
    // If it is gone again, its skills stay, but they can't be read.
    server.mode("down");
    fixture.ask("/skills reload");
    let said = ask_until(&mut fixture, "/skills", "cannot be asked");
    assert!(said.contains("1 skill in this session"), "{said}");
    server.mode("");
    let (text, is_error) = activate(&mut fixture, &connection, "refunds");
    assert!(!is_error && text.contains("ZQ-body"), "{text}");
    fixture.editor.unread();
    fixture.finish();
}

fn files_stay_within_the_skill() {
    let skills = Skills::new();
    let server = Server::with_refunds();
    let mut outside = server.state().pages[0][0].clone();
    outside["uri"] = "skill://acme/other/SKILL.md".into();
    outside["frontmatter"]["name"] = "other".into();
    outside["resources"][0]["uri"] = "skill://acme/other/SKILL.md".into();
    outside["resources"][1]["uri"] = "skill://acme/other/..%2f..%2fsecret.md".into();
    server.state().pages[0].push(outside);
    server.state().resources.push(("skill://acme/refunds/unlisted.md".to_owned(), "x".to_owned()));
    let (mut fixture, connection) = open(proxy(&skills).arg("--mcp-skills"), &[server.entry("docs")]);
    let said = ask_until(&mut fixture, "/skills", "is left out");
    assert!(said.contains("skill `other` is left out") && said.contains("not within the skill"), "{said}");
    trust_all(&mut fixture);
    for path in [
        "unlisted.md",
        "../refunds/unlisted.md",
        "/etc/passwd",
        "references/../../x",
        "file:///etc/passwd",
        "skill://acme/refunds/references/guide.md",
    ] {
        let read = json!({ "skill": "refunds", "path": path });
        let (text, is_error) = fixture.call(&connection, "read_skill_file", read);
        assert!(is_error, "{path}: {text}");
    }
    let reads = server.state().seen.iter().filter(|seen| seen.contains("://")).count();
    assert_eq!(reads, 0, "nothing of this is asked for");
    fixture.editor.unread();
    fixture.finish();
}

/// The user has approved the files, but not the errors.
fn errors_bring_no_text_to_the_model() {
    let skills = Skills::new();
    let server = Server::with_refunds();
    let (mut fixture, connection) = open(proxy(&skills).arg("--mcp-skills"), &[server.entry("docs")]);
    trust_all(&mut fixture);
    server.mode("refuses files");
    let read = json!({ "skill": "refunds", "path": "references/guide.md" });
    let read = fixture.call(&connection, "read_skill_file", read);
    for (text, is_error) in [activate(&mut fixture, &connection, "refunds"), read] {
        assert!(is_error && text.contains("server answered with error -32602; "), "{text}");
        assert!(!text.contains("ZQ-unapproved"), "{text}");
    }
    fixture.editor.unread();
    let ended = fixture.editor.finish();
    assert!(ended.log.iter().any(|line| line.contains("error -32602: ZQ-unapproved")), "{:?}", ended.log);
}
