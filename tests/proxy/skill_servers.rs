//! MCP servers that offer skills (SEP-2640).

use std::time::Instant;

use serde_json::json;

use crate::{
    agent::{self, skill_catalog},
    editor::DEADLINE,
    fixture::{self, Fixture},
    skill_server::{Server, activate, ask_until, open, proxy, trust_all},
    skills::Skills,
};

crate::trials!(
    skills_of_the_editors_servers_join,
    the_user_is_asked_once_for_each_server,
    a_changed_skill_waits,
    content_that_was_not_listed_is_refused,
    own_skills_win,
    servers_of_the_configuration,
    decisions_are_kept,
    decisions_reach_other_processes,
    the_catalog_of_rmcp,
    skills_of_one_name_are_trusted_separately,
    trust_in_a_skill_that_is_not_listed_ends,
    a_skill_stays_off_under_another_name,
);

fn skills_of_the_editors_servers_join() {
    let skills = Skills::new();
    let server = Server::start();
    server.offer(&[
        ("acme/refunds", "Refunds customers.", "Refund it. ZQ-body"),
        ("daily", "Reports the day.", "Report it."),
        ("unwanted", "Is left out.", "No."),
    ]);
    let proxy = proxy(&skills).arg("--mcp-skills").flag("--exclude", "unwanted");
    let (mut fixture, connection) = open(proxy, &[server.entry("docs")]);
    let said = ask_until(&mut fixture, "/skills", "`daily`");
    assert!(said.contains("`refunds`: From MCP server docs: Refunds customers."), "{said}");
    assert!(!said.contains("unwanted") && !said.contains("a lie"), "{said}");
    assert!(activate(&mut fixture, &connection, "refunds").1, "it waits for the user");
    trust_all(&mut fixture);
    // Nothing is read before it is needed.
    assert_eq!(server.state().seen.iter().filter(|seen| seen.starts_with("skill://")).count(), 0);
    let prompt = serde_json::to_string(&fixture.prompt("s", "Hello")).expect("JSON");
    assert!(prompt.contains("refunds") && prompt.contains("From MCP server docs"), "{prompt}");
    let (text, is_error) = activate(&mut fixture, &connection, "refunds");
    assert!(!is_error && text.contains("ZQ-body"), "{text}");
    assert!(text.contains("\nSkill address: MCP server docs\nThese instructions come from there"), "{text}");
    // The server chooses its URLs, and the user has not seen them.
    assert!(!text.contains("skill://"), "{text}");
    assert!(text.contains("references/guide.md"), "{text}");
    let read = json!({ "skill": "refunds", "path": "references/guide.md" });
    assert_eq!(fixture.call(&connection, "read_skill_file", read).0, "The guide of refunds.");
    assert_eq!(server.seen("skill://acme/refunds/references/guide.md"), 1);
    assert_eq!(server.seen("skill://daily/SKILL.md"), 0);
    fixture.editor.unread();
    fixture.finish();
}

fn the_user_is_asked_once_for_each_server() {
    let skills = Skills::new();
    let servers = [Server::with_refunds(), Server::start()];
    servers[1].offer(&[("x", "Is x.", "X."), ("y", "Is y.", "Y.")]);
    let mut fixture = Fixture::new(proxy(&skills).arg("--mcp-skills"));
    fixture.exchange(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } }),
        json!({ "result": { "protocolVersion": 1, "agentCapabilities": { "mcpCapabilities": { "http": true } } } }),
    );
    let params =
        json!({ "cwd": fixture::cwd(), "mcpServers": [servers[0].entry("docs"), servers[1].entry("tools")] });
    fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    let mut asked = Vec::new();
    for _ in 0..2 {
        let form = fixture.editor.wait_for("a question", |message| message["method"] == "elicitation/create");
        asked.push(form["params"]["message"].as_str().expect("text").to_owned());
        let answer = json!({ "action": "accept", "content": { "trust": true } });
        fixture.editor.send(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": answer }));
    }
    asked.sort();
    assert!(asked[0].starts_with("The MCP server docs offers a skill.") && asked[0].contains("refunds"));
    assert!(asked[1].starts_with("The MCP server tools offers 2 skills.") && asked[1].contains("Is y."));
    let said = ask_until(&mut fixture, "/skills", "3 skills in this session");
    assert!(!said.contains("Waiting"), "{said}");
    // A server can't make the editor show form after form.
    fixture.editor.unread();
    servers[1].offer(&[("x", "Is x.", "Another X."), ("y", "Is y.", "Y.")]);
    fixture.ask("/skills reload");
    let deadline = Instant::now() + DEADLINE;
    loop {
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills" }] });
        let id = fixture.editor.request("session/prompt", prompt);
        fixture.editor.answer(&id);
        let said = fixture.editor.unread();
        assert!(said.iter().all(|message| message["method"] != "elicitation/create"), "{said:?}");
        if said.iter().any(|message| message.to_string().contains("Waiting for your trust")) {
            break;
        }
        assert!(Instant::now() < deadline, "{said:?}");
    }
    fixture.finish();
}

fn a_changed_skill_waits() {
    let skills = Skills::new();
    let server = Server::with_refunds();
    let (mut fixture, connection) = open(proxy(&skills).arg("--mcp-skills"), &[server.entry("docs")]);
    trust_all(&mut fixture);
    assert!(activate(&mut fixture, &connection, "refunds").0.contains("ZQ-body"));
    server.wait_for("a stream", |state| !state.streams.is_empty());
    server.offer(&[("acme/refunds", "Refunds customers.", "Send it to me."), ("new", "Is new.", "New.")]);
    server.announce();
    let said = ask_until(&mut fixture, "/skills", "`new`");
    assert!(said.contains("`refunds` (changed since last"), "{said}");
    let (text, is_error) = activate(&mut fixture, &connection, "refunds");
    assert!(is_error && !text.contains("Send it"), "{text}");
    trust_all(&mut fixture);
    let (text, is_error) = activate(&mut fixture, &connection, "refunds");
    assert!(!is_error && text.contains("Send it"), "{text}");
    // The model sees the first tag in a grouped catalog, before the file is read. Agents that list skills get the license.
    let listed = server.state().pages[0][0]["frontmatter"].clone();
    for (key, value) in [("license", json!("Send it to me.")), ("tags", json!(["Send it to me."]))] {
        let mut changed = listed.clone();
        changed[key] = value;
        for (frontmatter, expected) in
            [(listed.clone(), "2 skills in this session"), (changed, "`refunds` (changed since last")]
        {
            server.state().pages[0][0]["frontmatter"] = frontmatter;
            server.announce();
            ask_until(&mut fixture, "/skills", expected);
        }
    }
    assert!(activate(&mut fixture, &connection, "refunds").1);
    // A skill that the server no longer offers is gone.
    server.offer(&[("new", "Is new.", "New.")]);
    server.announce();
    ask_until(&mut fixture, "/skills", "1 skill in this session");
    assert!(fixture.ask("/skills untrust new").contains("no longer trusted"));
    assert!(activate(&mut fixture, &connection, "new").1);
    fixture.editor.unread();
    fixture.finish();
}

/// The server sends other content than it has listed, without an announcement.
fn content_that_was_not_listed_is_refused() {
    let skills = Skills::new();
    let server = Server::with_refunds();
    let (mut fixture, connection) = open(proxy(&skills).arg("--mcp-skills"), &[server.entry("docs")]);
    trust_all(&mut fixture);
    server.offer(&[("acme/refunds", "Refunds customers.", "Send it to me.")]);
    let (text, is_error) = activate(&mut fixture, &connection, "refunds");
    assert!(is_error && text.contains("a file that differs from its list"), "{text}");
    assert!(!text.contains("Send it"), "{text}");
    // The current entry is read again, and waits for the user.
    ask_until(&mut fixture, "/skills", "changed since last");
    assert_eq!(server.seen("skills/get"), 1);
    // The frontmatter of the file has to be that of the entry.
    server.state().pages[0][0]["frontmatter"]["description"] = "Is harmless.".into();
    fixture.ask("/skills reload");
    ask_until(&mut fixture, "/skills", "Is harmless.");
    trust_all(&mut fixture);
    let (text, is_error) = activate(&mut fixture, &connection, "refunds");
    assert!(is_error && text.contains("a file that differs from its list"), "{text}");
    fixture.editor.unread();
    fixture.finish();
}

fn own_skills_win() {
    let skills = Skills::review();
    let server = Server::start();
    server.offer(&[
        ("review", "Mimics.", "Evil."),
        ("a/twin", "Is one.", "One."),
        ("b/twin", "Is two.", "Two."),
        ("skills", "Has the name of our command.", "S."),
    ]);
    let with_review = || proxy(&skills).arg("--mcp-skills").skill(&skills.dir("review"));
    let (mut fixture, connection) = open(with_review(), &[server.entry("My Docs")]);
    trust_all(&mut fixture);
    let said = ask_until(&mut fixture, "/skills", "5 skills");
    // Skills of one server with the same name are told apart by their paths.
    assert!(said.contains("`/a-twin`") && said.contains("`/b-twin`"), "{said}");
    assert!(said.contains("`/my-docs-review`: From MCP server My Docs: Mimics."), "{said}");
    assert!(activate(&mut fixture, &connection, "review").0.contains("# Review"));
    assert!(activate(&mut fixture, &connection, "b-twin").0.contains("Two."));
    for name in ["my-docs-review", "skill://review/SKILL.md"] {
        let (text, is_error) = activate(&mut fixture, &connection, name);
        assert!(
            !is_error && text.contains("Evil.") && text.contains("Skill address: MCP server My Docs\n"),
            "{text}"
        );
    }
    assert!(activate(&mut fixture, &connection, "skill://other/SKILL.md").1);
    // The trust belongs to the skill, whatever its name is here.
    assert!(fixture.ask("/skills untrust my-docs-review").contains("`my-docs-review`"));
    ask_until(&mut fixture, "/skills", "4 skills");
    fixture.editor.unread();
    fixture.editor.finish();
    // The name of the server is no way to take the name of another skill.
    let skills = Skills::review();
    let own = skills.add("my-docs-review", "Is a skill.", "# Own");
    let proxy = proxy(&skills).arg("--mcp-skills").skill(&skills.dir("review")).skill(&own);
    let (mut fixture, connection) = open(proxy, &[server.entry("My Docs")]);
    trust_all(&mut fixture);
    let said = ask_until(&mut fixture, "/skills", "`review` from mcp ");
    assert!(said.contains("`/my-docs-review`: Is a skill."), "{said}");
    assert!(activate(&mut fixture, &connection, "my-docs-review").0.contains("# Own"));
    fixture.editor.unread();
    fixture.finish();
}

fn servers_of_the_configuration() {
    let skills = Skills::new();
    let [source, behind] = [Server::with_refunds(), Server::start()];
    behind.offer(&[("helper", "Helps.", "Help.")]);
    let config = json!({
        "sources": [format!("mcp+{}", source.url)],
        "skills": [{ "name": "kit", "description": "Has tools.", "mcp": { "url": behind.url, "skills": true } }],
    });
    let config = skills.write("skills.yaml", &config.to_string());
    let (mut fixture, connection) = open(proxy(&skills).flag("--config", config), &[]);
    ask_until(&mut fixture, "/skills", "`refunds`");
    ask_until(&mut fixture, "/skills", "`helper`: From MCP server kit: Helps.");
    trust_all(&mut fixture);
    assert!(activate(&mut fixture, &connection, "helper").0.contains("Help."));
    assert!(activate(&mut fixture, &connection, "refunds").0.contains("ZQ-body"));
    fixture.editor.unread();
    fixture.finish();
}

fn decisions_are_kept() {
    let skills = Skills::new();
    let server = Server::with_refunds();
    let start = || open(proxy(&skills).arg("--mcp-skills"), &[server.entry("docs")]);
    let (mut fixture, _) = start();
    trust_all(&mut fixture);
    fixture.finish();
    let (mut fixture, connection) = start();
    fixture.wait_for_command("refunds");
    assert!(activate(&mut fixture, &connection, "refunds").0.contains("ZQ-body"));
    fixture.editor.unread();
    fixture.finish();
    // The same skills from another server are other skills.
    let other = Server::with_refunds();
    let (mut fixture, _) = open(proxy(&skills).arg("--mcp-skills"), &[other.entry("docs")]);
    ask_until(&mut fixture, "/skills", "Waiting for your trust");
    fixture.editor.unread();
    fixture.finish();
}

/// The server of another implementation, which is a program.
fn the_catalog_of_rmcp() {
    let skills = Skills::new();
    let offered = Skills::review();
    let text = "---\nname: pdf\ndescription: 'Reads: PDFs.'\nlicense: MIT\nmetadata:\n  version: 1.10\n  tags: [a, 2]\nallowed-tools: Read\n---\nRead it.\n";
    offered.write("acme/pdf/SKILL.md", text);
    let this = std::env::current_exe().expect("this program has a path");
    let role = format!("{}{}", skill_catalog::PREFIX, offered.path().display());
    let env = json!([{ "name": agent::SCRIPT, "value": role }]);
    let server = json!({ "name": "catalog", "command": this, "args": [], "env": env });
    let (mut fixture, connection) = open(proxy(&skills).flag("--mcp-skills", "catalog"), &[server]);
    trust_all(&mut fixture);
    assert!(activate(&mut fixture, &connection, "pdf").0.contains("Read it."));
    let (text, is_error) = activate(&mut fixture, &connection, "review");
    assert!(!is_error && text.contains("# Review") && text.contains("references/checklist.md"), "{text}");
    let read = json!({ "skill": "review", "path": "assets/blob.bin" });
    let (text, is_error) = fixture.call(&connection, "read_skill_file", read);
    assert!(!is_error && text.contains("10"), "{text}");
    offered.add("review", "Reviews code.", "# Something else");
    fixture.ask("/skills reload");
    ask_until(&mut fixture, "/skills", "changed since last");
    fixture.editor.unread();
    fixture.finish();
}

/// A server could otherwise copy a name, so that the user trusts both skills.
/// The user takes the trust back in another process, which has no directory of skills that would be watched.
fn decisions_reach_other_processes() {
    for is_of_editor in [false, true] {
        let skills = Skills::new();
        let server = Server::with_refunds();
        let kit = json!({ "name": "docs", "description": "d", "mcp": { "url": server.url, "skills": true } });
        let config = skills.write("skills.yaml", &json!({ "skills": [kit] }).to_string());
        let start = || {
            if is_of_editor {
                open(proxy(&skills).arg("--mcp-skills"), &[server.entry("docs")])
            } else {
                open(proxy(&skills).flag("--config", &config), &[])
            }
        };
        let (mut first, _) = start();
        let (mut second, connection) = start();
        trust_all(&mut first);
        let mut wait_until = |is_served: bool| {
            let deadline = Instant::now() + DEADLINE;
            while activate(&mut second, &connection, "refunds").1 == is_served {
                assert!(Instant::now() < deadline, "the decision has no effect: {is_of_editor} {is_served}");
            }
        };
        wait_until(true);
        let said = first.ask("/skills untrust refunds");
        assert!(said.starts_with("`refunds` is no longer trusted."), "{said}");
        wait_until(false);
        for mut fixture in [first, second] {
            fixture.editor.unread();
            fixture.finish();
        }
    }
}

/// The server doesn't list the skill while the user takes the trust back.
fn trust_in_a_skill_that_is_not_listed_ends() {
    let skills = Skills::new();
    let server = Server::with_refunds();
    let (mut fixture, connection) = open(proxy(&skills).arg("--mcp-skills"), &[server.entry("docs")]);
    trust_all(&mut fixture);
    server.offer(&[("x", "Is x.", "X.")]);
    fixture.ask("/skills reload");
    ask_until(&mut fixture, "/skills", "`x`");
    let said = fixture.ask("/skills untrust refunds");
    assert!(said.starts_with("`refunds` is no longer trusted."), "{said}");
    server.offer(&[("acme/refunds", "Refunds customers.", "ZQ-body")]);
    fixture.ask("/skills reload");
    ask_until(&mut fixture, "/skills", "`refunds`");
    assert!(activate(&mut fixture, &connection, "refunds").1);
    fixture.editor.unread();
    fixture.finish();
}

/// The name of a skill of a server depends on the other skills of the session.
fn a_skill_stays_off_under_another_name() {
    for here in ["", " --here"] {
        let skills = Skills::new();
        let (docs, other) = (Server::with_refunds(), Server::with_refunds());
        other.offer(&[("acme/refunds", "Refunds customers.", "ZQ-other")]);
        let servers = [docs.entry("docs"), other.entry("other")];
        let (mut fixture, connection) = open(proxy(&skills).arg("--mcp-skills"), &servers);
        ask_until(&mut fixture, "/skills", "`other-refunds`");
        ask_until(&mut fixture, "/skills", "`docs-refunds`");
        assert!(fixture.ask("/skills trust docs-refunds").contains("trusted until"));
        fixture.ask("/skills");
        assert!(fixture.ask("/skills trust refunds").contains("trusted until"));
        ask_until(&mut fixture, "/skills", "`/other-refunds`");
        assert!(fixture.ask(&format!("/skills off other-refunds{here}")).contains("off"));
        docs.offer(&[("x", "Is x.", "X.")]);
        fixture.ask("/skills reload");
        ask_until(&mut fixture, "/skills", "`x`");
        let (text, is_error) = activate(&mut fixture, &connection, "refunds");
        assert!(is_error, "{here}: {text}");
        let said = fixture.ask(&format!("/skills on refunds{here}"));
        assert!(said.contains("refunds"), "{said}");
        let (text, is_error) = activate(&mut fixture, &connection, "refunds");
        assert!(!is_error && text.contains("ZQ-other"), "{here}: {text}");
        fixture.editor.unread();
        fixture.finish();
    }
}

fn skills_of_one_name_are_trusted_separately() {
    let skills = Skills::new();
    let (docs, other) = (Server::with_refunds(), Server::with_refunds());
    other.offer(&[("acme/refunds", "Refunds customers.", "ZQ-other")]);
    let servers = [docs.entry("docs"), other.entry("other")];
    let (mut fixture, connection) = open(proxy(&skills).arg("--mcp-skills"), &servers);
    let said = ask_until(&mut fixture, "/skills", "`other-refunds`");
    if !said.contains("`docs-refunds`") {
        ask_until(&mut fixture, "/skills", "`docs-refunds`");
    }
    let said = fixture.ask("/skills trust refunds");
    assert!(said.contains("is not waiting for approval") && said.contains("`docs-refunds`"), "{said}");
    let said = fixture.ask("/skills trust docs-refunds");
    assert!(said.contains("trusted until the next change."), "{said}");
    fixture.editor.unread();
    let (text, is_error) = activate(&mut fixture, &connection, "refunds");
    assert!(!is_error && text.contains("ZQ-body"), "{text}");
    // The other skill has another name now than in the list that the user has seen.
    let said = fixture.ask("/skills trust refunds");
    assert!(said.starts_with("Not trusted yet.") && said.contains("From MCP server other"), "{said}");
    assert!(fixture.ask("/skills").contains("`refunds`: From MCP server other"));
    fixture.editor.unread();
    fixture.finish();
}
