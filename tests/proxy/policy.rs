//! Sessions under the policy of an administrator, with the rights of a user: flags, files and drafts don't widen it.

use std::fs;

use serde_json::json;

use crate::{
    agent::{self, tool_server},
    fixture::{Fixture, MCP_2025, cwd, entry},
    machine::{FILE, Machine, assert_refused},
    repositories::Repository,
    skill_server::{self, Server},
    skills::Skills,
    tool_servers::starts,
};

crate::trials!(
    a_session_under_a_policy,
    servers_of_the_editor,
    skills_of_the_editor,
    skills_of_servers,
    trust_does_not_widen,
    scripts_stay_off,
    mcp_follows_the_policy,
);

fn a_session_under_a_policy() {
    let good = Repository::review();
    let evil = Repository::review();
    let policy = format!("sources: {{allow: ['{}']}}\nskills: {{allow: [user]}}", good.source(""));
    let Some(machine) = Machine::new(&policy) else { return };
    let skills = Skills::review();
    skills.add("evil", "Does evil.", "Be evil.");
    machine.config(&format!(
        "sources: ['{}']\nskills: [{{name: own, description: d, body: b}}]",
        evil.source("#main")
    ));
    let spelled = evil.source("").replace("file:///", "file:///./");
    let proxy = machine.proxy().flag("--source", good.source("")).flag("--source", evil.source(""));
    let proxy = proxy.flag("--source", &spelled).skill(&skills.dir("evil")).flag("--skills", skills.path());
    let mut fixture =
        Fixture::over_http(proxy.arg("--trust").arg("project").flag("--events", machine.events()));
    let params = fixture.new_session("s");
    fixture.wait_for_command("review");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(fixture.skill_names(&connection), json!(["review"]));
    let said = fixture.ask("/skills");
    for what in [evil.source(""), evil.source("#main"), spelled] {
        assert!(
            said.contains(&format!("source `{what}` is refused by policy: `sources.allow`")),
            "{what}: {said}"
        );
    }
    for what in ["evil", "own"] {
        assert!(
            said.contains(&format!("skill `{what}` is refused by policy: `skills.allow`")),
            "{what}: {said}"
        );
    }
    assert_refused(&said, "`sources.allow`");
    for command in ["/skills on evil", "/skills trust evil", "/skills reload"] {
        fixture.ask(command);
    }
    assert_eq!(fixture.skill_names(&connection), json!(["review"]));
    fixture.editor.unread();
    fixture.editor.finish();
    let recorded = machine.recorded();
    assert_eq!(recorded.iter().filter(|reason| reason.contains("sources.allow")).count(), 3, "{recorded:?}");
    assert!(recorded.iter().all(|reason| reason.ends_with(FILE)), "{recorded:?}");
}

fn servers_of_the_editor() {
    let Some(machine) = Machine::new("mcp: {allow: ['@playwright/mcp']}") else { return };
    let skills = Skills::new();
    let this = std::env::current_exe().expect("this program has a path");
    let env = json!([
        { "name": agent::SCRIPT, "value": tool_server::PREFIX },
        { "name": tool_server::STARTS, "value": starts(&skills) },
    ]);
    // The name is that of an allowed package, but the program is another one.
    let server =
        json!({ "name": "@playwright/mcp", "command": this, "args": ["@playwright/mcp"], "env": env });
    let server_of_skill = json!({ "name": "own", "description": "d", "mcp": { "command": this, "env": {} } });
    machine.config(&json!({ "skills": [server_of_skill] }).to_string());
    let mut fixture =
        Fixture::over_http(machine.proxy().arg("--mcp-on-demand").flag("--events", machine.events()));
    let params = json!({ "cwd": cwd(), "mcpServers": [server] });
    fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    fixture.editor.menu();
    let said = fixture.ask("/skills");
    assert!(said.contains("MCP server of `own` is refused by policy: `mcp.allow`"), "{said}");
    assert!(said.contains("MCP server of `@playwright/mcp` is refused by policy: `mcp.allow`"), "{said}");
    fixture.editor.unread();
    fixture.editor.finish();
    assert!(fs::metadata(starts(&skills)).is_err(), "the server was started");
    assert_eq!(machine.recorded().len(), 2);
}

fn skills_of_the_editor() {
    let provided = json!([{ "name": "evil", "description": "d", "content": "Be evil." }]);
    for (policy, is_allowed) in
        [("skills: {allow: [editor, user]}", true), ("skills: {allow: [user]}", false)]
    {
        let Some(machine) = Machine::new(policy) else { return };
        let mut fixture = Fixture::over_http(machine.proxy().arg("--drafts"));
        for (number, member) in
            [json!({ "agentSkills": provided }), json!({ "_meta": { "agentSkills": provided } })]
                .iter()
                .enumerate()
        {
            let mut params = json!({ "cwd": cwd(), "mcpServers": [] });
            params.as_object_mut().expect("an object").extend(member.as_object().expect("an object").clone());
            let id = format!("s{number}");
            let (received, _) =
                fixture.exchange("session/new", params, json!({ "result": { "sessionId": id } }));
            let ours = received["params"]["mcpServers"].as_array().expect("servers").len();
            assert_eq!(ours, usize::from(is_allowed), "{policy}: {received}");
        }
        fixture.editor.unread();
        fixture.editor.finish();
    }
}

fn skills_of_servers() {
    for (policy, is_asked, reason) in [
        ("mcp: {allow: ['https://example.com/**']}", false, "mcp.allow"),
        ("sources: {lock: /etc/acp-skills-proxy/skills.lock}", false, "`--mcp-skills` is refused by policy"),
        ("sources: {scan: low}", false, "sources.scan"),
        ("skills: {allow: [user]}", false, "skills.allow"),
        ("skills: {allow: [editor]}", true, "Waiting for your trust"),
    ] {
        let Some(mut machine) = Machine::new(policy) else { return };
        machine.setup.push_str(r#"echo '{"version":1,"sources":{}}' > skills.lock; chmod 644 skills.lock"#);
        let server = Server::with_refunds();
        let mut fixture = Fixture::over_http(machine.proxy().arg("--mcp-skills"));
        let params = json!({ "cwd": cwd(), "mcpServers": [server.entry("docs")] });
        fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
        skill_server::ask_until(&mut fixture, "/skills", reason);
        assert_eq!(!server.state().seen.is_empty(), is_asked, "{policy}");
        fixture.editor.unread();
        fixture.editor.finish();
    }
    // A source has to be allowed as a source, too.
    for policy in [
        "sources: {allow: ['github:acme/*']}",
        "sources: {lock: /etc/acp-skills-proxy/skills.lock}",
        "sources: {scan: low}",
    ] {
        let Some(mut machine) = Machine::new(policy) else { return };
        machine.setup.push_str(r#"echo '{"version":1,"sources":{}}' > skills.lock; chmod 644 skills.lock"#);
        let server = Server::with_refunds();
        machine.config(&json!({ "sources": [format!("mcp+{}", server.url)] }).to_string());
        let mut fixture = Fixture::over_http(machine.proxy());
        fixture.new_session("s");
        skill_server::ask_until(&mut fixture, "/skills", "is refused by policy");
        assert!(server.state().seen.is_empty(), "{policy}");
        fixture.editor.unread();
        fixture.editor.finish();
    }
    // The server of a skill is not asked, either, if all of its skills are refused.
    let skills = Skills::review();
    let dir = skills.dir("review");
    let Some(machine) = Machine::new(&format!("skills: {{allow: ['{}']}}", dir.display())) else { return };
    let server = Server::with_refunds();
    let mcp = json!({ "url": server.url, "skills": true });
    machine.config(&json!({ "skills": [{ "skill": dir, "mcp": mcp }] }).to_string());
    let mut fixture = Fixture::over_http(machine.proxy());
    fixture.new_session("s");
    skill_server::ask_until(&mut fixture, "/skills", "`mcp.skills` of skill `review` is refused by policy");
    assert!(server.state().seen.is_empty());
    fixture.editor.unread();
    fixture.editor.finish();
}

fn trust_does_not_widen() {
    let Some(machine) = Machine::new("skills: {allow: [user]}") else { return };
    let project = machine.home.path("project");
    machine.home.write(&project.join(".git/HEAD"), "ref: refs/heads/main\n");
    machine
        .home
        .write(&project.join(".skills/evil/SKILL.md"), "---\nname: evil\ndescription: d\n---\nEvil\n");
    machine.config(&format!(
        "projects: [{{path: '{}', discover: [project], trust: [project]}}]",
        project.display()
    ));
    let mut fixture = Fixture::over_http(machine.proxy().flag("--discover", "project,user"));
    let params = json!({ "cwd": project, "mcpServers": [] });
    fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    fixture.editor.menu();
    fixture.ask("/skills trust evil");
    let said = fixture.ask("/skills");
    assert_refused(&said, "skill `evil` is refused by policy: `skills.allow`");
    assert!(!said.contains("Waiting for your trust"), "{said}");
    fixture.editor.unread();
    fixture.editor.finish();
    let (_, text) = machine.says(&["trust", "--yes", "evil", "--dir", project.to_str().expect("text")]);
    assert!(!text.contains("is trusted"), "{text}");
}

fn scripts_stay_off() {
    let Some(machine) = Machine::new("scripts: never") else { return };
    let skills = Skills::review();
    machine.config("{allow_scripts: true, sandbox: bwrap}");
    let proxy = machine.proxy().skill(&skills.dir("review")).arg("--allow-scripts");
    let mut fixture = Fixture::over_http(proxy);
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert!(!json!(connection.tools).to_string().contains("run_skill_script"));
    let arguments = json!({ "skill": "review", "script": "scripts/count.sh" });
    let params =
        json!({ "connection": connection.number, "tool": "run_skill_script", "arguments": arguments });
    let called = fixture.order("call", params);
    assert!(called.is_err() || called.is_ok_and(|result| result["isError"] == true));
    assert_refused(&fixture.ask("/skills"), "`--allow-scripts` is refused by policy: `scripts: never`");
    fixture.editor.unread();
    fixture.editor.finish();
}

fn mcp_follows_the_policy() {
    let Some(machine) = Machine::new("{skills: {allow: []}, scripts: never}") else { return };
    let skills = Skills::review();
    let proxy = machine.proxy().arg("mcp").skill(&skills.dir("review")).arg("--allow-scripts");
    let mut editor = proxy.flag("--events", machine.events()).start();
    let params = json!({ "protocolVersion": MCP_2025, "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let id = editor.request("initialize", params);
    editor.answer(&id);
    editor.notify("notifications/initialized", json!({}));
    let id = editor.request("tools/list", json!({}));
    let tools = editor.answer(&id).to_string();
    assert!(!tools.contains("review") && !tools.contains("run_skill_script"), "{tools}");
    editor.finish();
    assert_eq!(machine.recorded().len(), 2);
}
