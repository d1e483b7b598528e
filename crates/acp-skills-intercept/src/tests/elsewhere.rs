//! Agents that run in a container or on another machine: the ways in which they get skills, and their requests for files.

use expect_test::{Expect, expect};
use skills_core::{
    Source, Stored,
    catalog::{CatalogOptions, Location},
};

use super::*;

const KEY: SessionKey = SessionKey(1);

fn listen() -> Listen {
    Listen { address: "127.0.0.1:7000".parse().unwrap(), url: None }
}

/// Returns a policy for an agent elsewhere.
fn elsewhere() -> Policy {
    Policy { elsewhere: true, ..policy() }
}

/// Returns skills with files in `/skills`, of which one is in another and one is for the user only.
fn stored() -> SkillSet {
    let skill = |name: &str, dir: &str| {
        let stored = Stored::new(std::path::Path::new(dir), "SKILL.md");
        Skill::new(SkillName::new(name).unwrap(), format!("Does {name}."), Source::Stored(stored))
    };
    let mut secret = skill("secret", "/skills/secret");
    secret.properties.disable_model_invocation = true;
    [skill("review", "/skills/review"), skill("inner", "/skills/review/inner"), secret].into_iter().collect()
}

/// Returns a fixture with an open session `s`. The client reads text files if `client_reads` is true.
fn open(policy: Policy, name: &str, client_reads: bool, capabilities: &Value) -> Fixture {
    let mut fixture = Fixture::with_skills(policy, stored());
    let client = json!({ "fs": { "readTextFile": client_reads } });
    fixture.request(0, "initialize", &json!({ "protocolVersion": 1, "clientCapabilities": client }));
    let info = json!({ "name": name });
    let result = json!({ "protocolVersion": 1, "agentInfo": info, "agentCapabilities": capabilities });
    fixture.respond(0, &result);
    fixture.new_session(1, "s");
    fixture
}

#[test]
fn the_transport_depends_on_what_the_agent_reaches() {
    let http = json!({ "mcpCapabilities": { "http": true } });
    let both = json!({ "mcpCapabilities": { "http": true, "acp": true } });
    for (capabilities, mode, listen, expected) in [
        (json!({}), McpMode::Auto, None, None),
        (json!({}), McpMode::Auto, Some(listen()), None),
        (http.clone(), McpMode::Auto, None, None),
        (http.clone(), McpMode::Auto, Some(listen()), Some("http")),
        (both.clone(), McpMode::Auto, None, Some("acp")),
        (both, McpMode::Auto, Some(listen()), Some("acp")),
        (http.clone(), McpMode::Off, Some(listen()), None),
        // The user may know better.
        (http.clone(), McpMode::Http, None, Some("http")),
        (http, McpMode::Stdio, None, Some("stdio")),
    ] {
        let policy = Policy { mcp: mode, listen: listen.clone(), ..elsewhere() };
        let mut fixture = Fixture::new(policy).initialized("x", &capabilities);
        let new = fixture.new_session(1, "s");
        let servers = new["params"]["mcpServers"].as_array().unwrap();
        let kind = servers.first().map(|server| server["type"].as_str().unwrap_or("stdio"));
        assert_eq!(kind, expected, "{capabilities} {mode:?} {listen:?}");
    }
}

/// Returns the text for the model with the first prompt. The session has no tools.
fn told(fixture: &mut Fixture) -> String {
    let out = fixture.prompt(2, "s", &["hello"]);
    let out = match out.tasks[..] {
        [Task::Ask(Query::Fetch { ticket, .. })] => {
            fixture.handle(Input::Fetched { session: KEY, ticket, fetched: Fetched::default() })
        }
        _ => out,
    };
    let told = unmarked(texts(out.agent())[0]);
    if cfg!(windows) { told.replace('\\', "/") } else { told.to_owned() }
}

#[test]
fn the_catalog_only_has_paths_that_the_agent_can_open() {
    let at = |location| CatalogOptions { location, ..CatalogOptions::default() };
    let mount = at(Location::Mount("/mnt".to_owned()));
    for (policy, agent, client_reads, expected) in [
        (policy(), "vibe", false, Some("/skills/review/SKILL.md")),
        (elsewhere(), "vibe", false, None),
        (elsewhere(), "vibe", true, None),
        (
            Policy { reads_through_client: true, ..elsewhere() },
            "vibe",
            false,
            Some("/skills/review/SKILL.md"),
        ),
        (elsewhere(), "fast-agent-acp", true, Some("/skills/review/SKILL.md")),
        (elsewhere(), "fast-agent-acp", false, None),
        (Policy { catalog: mount, ..elsewhere() }, "vibe", false, Some("/mnt/review/SKILL.md")),
        (
            Policy { catalog: at(Location::Absolute), ..elsewhere() },
            "vibe",
            false,
            Some("/skills/review/SKILL.md"),
        ),
    ] {
        let mut fixture = open(Policy { mcp: McpMode::Off, ..policy }, agent, client_reads, &json!({}));
        let text = told(&mut fixture);
        match expected {
            Some(path) => assert!(text.contains(path) && text.contains("file tools"), "{text}"),
            None => assert!(!text.contains("/skills/") && text.contains("`/skill:NAME`"), "{text}"),
        }
        assert!(!text.contains("activate_skill"), "{text}");
    }
}

#[test]
fn the_tools_are_named_without_paths() {
    let agent = json!({ "mcpCapabilities": { "acp": true } });
    let mut fixture = open(elsewhere(), "x", true, &agent);
    let text = told(&mut fixture);
    assert!(text.contains("`activate_skill`") && !text.contains("SKILL.md"), "{text}");
}

#[test]
fn skills_are_added_to_prompts_until_the_tools_are_there() {
    let wait = Policy { listen: Some(listen()), mcp_wait: Duration::from_secs(2), ..elsewhere() };
    let mut fixture = open(wait, "x", false, &json!({ "mcpCapabilities": { "http": true } }));
    assert!(fixture.prompt(2, "s", &["please review"]).is_nothing());
    let out = fixture.timer_ends(KEY);
    assert!(matches!(out.wanted(), Wanted::BestFor { guide: Guide::Prompts, .. }), "{out:?}");
    let fetched = Fetched { text: Some("BODY".to_owned()), ..Fetched::default() };
    let out = fixture.handle(Input::Fetched { session: KEY, ticket: out.ticket(), fetched });
    let sent = texts(out.agent());
    assert!(sent[0].contains("Should you have the tools") && sent[1].contains("BODY"), "{sent:?}");
    fixture.respond(2, &json!({ "stopReason": "end_turn" }));
    // The agent connects late. The catalog is not repeated.
    fixture.handle(Input::Connected(KEY));
    fixture.handle(Input::ToolsListed(KEY));
    let out = fixture.prompt(3, "s", &["please review"]);
    let sent = texts(out.agent());
    assert_eq!(
        unmarked(sent[0]),
        "The skill tools are available now: when a task matches a skill, call `activate_skill` with its name before you begin."
    );
}

#[test]
fn reading_is_offered_if_the_client_cannot() {
    let files = || Policy { reads_through_client: true, ..elsewhere() };
    for (policy, params, expected) in [
        (
            files(),
            r#"{"protocolVersion":1}"#,
            r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true}}}"#,
        ),
        (
            files(),
            r#"{"protocolVersion":1,"clientCapabilities":null}"#,
            r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true}}}"#,
        ),
        (
            files(),
            r#"{"clientCapabilities":{ },"n":1e2}"#,
            r#"{"clientCapabilities":{ "fs":{"readTextFile":true}},"n":1e2}"#,
        ),
        (
            files(),
            r#"{"clientCapabilities":{"fs":null}}"#,
            r#"{"clientCapabilities":{"fs":{"readTextFile":true}}}"#,
        ),
        (
            files(),
            r#"{"clientCapabilities":{"fs":{"writeTextFile":true}}}"#,
            r#"{"clientCapabilities":{"fs":{"writeTextFile":true,"readTextFile":true}}}"#,
        ),
        (
            files(),
            r#"{"clientCapabilities":{"fs":{"readTextFile":false}}}"#,
            r#"{"clientCapabilities":{"fs":{"readTextFile":true}}}"#,
        ),
        (files(), r#"{"clientCapabilities":{"fs":{"readTextFile":true}}}"#, ""),
        (files(), r#"{"protocolVersion":2,"capabilities":{}}"#, ""),
        (files(), r#"[1]"#, ""),
        (elsewhere(), r#"{"protocolVersion":1}"#, ""),
        (Policy { reads_through_client: true, ..policy() }, r#"{"protocolVersion":1}"#, ""),
    ] {
        let mut fixture = Fixture::new(policy);
        let line = |params: &str| format!(r#"{{"id":0,"method":"initialize","params":{params}}}"#);
        let expected = if expected.is_empty() { params } else { expected };
        assert_eq!(fixture.as_the_agent_gets_it(&line(params)), line(expected));
    }
}

/// Describes the decisions about requests for these paths. The client reads text files if `client_reads` is true.
fn check(policy: &Policy, client_reads: bool, paths: &[&str], expected: Expect) {
    let mut text = String::new();
    for path in paths {
        let mut fixture = open(policy.clone(), "x", client_reads, &json!({}));
        let params = json!({ "sessionId": "s", "path": path });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file", "params": params });
        let out = fixture.agent(&request);
        text += &[path, ": ", &decision(&out), "\n"].concat();
    }
    expected.assert_eq(&text);
}

fn decision(out: &Out) -> String {
    match (&out.to_client[..], &out.to_agent[..], &out.tasks[..]) {
        ([_], [], []) => "forwarded".to_owned(),
        ([], [answer], []) => answer["error"]["message"].as_str().unwrap().to_owned(),
        ([], [], [Task::ReadFile { file: SkillFile { skill, path, line, limit }, .. }]) => {
            format!("{skill} {path:?} {line:?} {limit:?}")
        }
        _ => panic!("{out:?}"),
    }
}

const PATHS: [&str; 14] = [
    "/skills/review/SKILL.md",
    "/skills/review/references/a b.md",
    "/skills//review/./x",
    "/skills/review/../../etc/passwd",
    "/skills/review/inner/SKILL.md",
    "/skills/review/inner/../SKILL.md",
    "/skills/review",
    "/skills/review/",
    "/skills/reviewer/SKILL.md",
    "/skills/secret/SKILL.md",
    "/etc/passwd",
    "skills/review/SKILL.md",
    "/x/../skills/review/SKILL.md",
    "",
];

#[test]
fn requests_for_files_of_skills_are_ours() {
    check(
        &elsewhere(),
        true,
        &PATHS,
        expect![[r#"
        /skills/review/SKILL.md: review "SKILL.md" None None
        /skills/review/references/a b.md: review "references/a b.md" None None
        /skills//review/./x: review "x" None None
        /skills/review/../../etc/passwd: review "../../etc/passwd" None None
        /skills/review/inner/SKILL.md: inner "SKILL.md" None None
        /skills/review/inner/../SKILL.md: inner "../SKILL.md" None None
        /skills/review: review "" None None
        /skills/review/: review "" None None
        /skills/reviewer/SKILL.md: forwarded
        /skills/secret/SKILL.md: forwarded
        /etc/passwd: forwarded
        skills/review/SKILL.md: forwarded
        /x/../skills/review/SKILL.md: forwarded
        : forwarded
    "#]],
    );
}

#[test]
fn other_files_are_refused_if_only_we_can_read() {
    let files = Policy { reads_through_client: true, ..elsewhere() };
    check(
        &files,
        false,
        &PATHS[8..],
        expect![[r#"
        /skills/reviewer/SKILL.md: cannot read this file: only files of skills can be read here
        /skills/secret/SKILL.md: cannot read this file: only files of skills can be read here
        /etc/passwd: cannot read this file: only files of skills can be read here
        skills/review/SKILL.md: cannot read this file: only files of skills can be read here
        /x/../skills/review/SKILL.md: cannot read this file: only files of skills can be read here
        : cannot read this file: only files of skills can be read here
    "#]],
    );
    // The capability was not offered, so the client answers.
    check(
        &elsewhere(),
        false,
        &["/etc/passwd", "/skills/review/SKILL.md"],
        expect![[r#"
        /etc/passwd: forwarded
        /skills/review/SKILL.md: review "SKILL.md" None None
    "#]],
    );
    check(
        &policy(),
        true,
        &["/etc/passwd", "/skills/review/SKILL.md"],
        expect![[r#"
        /etc/passwd: forwarded
        /skills/review/SKILL.md: forwarded
    "#]],
    );
    let mount = CatalogOptions { location: Location::Mount("/mnt/".to_owned()), ..CatalogOptions::default() };
    let mount = Policy { catalog: mount, ..elsewhere() };
    check(
        &mount,
        true,
        &["/mnt/review/SKILL.md", "/skills/review/SKILL.md"],
        expect![[r#"
        /mnt/review/SKILL.md: review "SKILL.md" None None
        /skills/review/SKILL.md: forwarded
    "#]],
    );
}

#[test]
fn params_of_requests_for_files() {
    let mut text = String::new();
    for rest in [
        r#""sessionId":"s","line":3,"limit":10"#,
        r#""sessionId":"s","line":null,"limit":0"#,
        r#""sessionId":"s","line":18446744073709551615,"limit":18446744073709551615"#,
        r#""sessionId":"s","line":18446744073709551616"#,
        r#""sessionId":"s","line":-1"#,
        r#""sessionId":"s","limit":"5""#,
        r#""sessionId":"s","limit":1.5"#,
        r#""sessionId":"other""#,
        r#""x":1"#,
    ] {
        let mut fixture = open(elsewhere(), "x", true, &json!({}));
        let line = format!(
            r#"{{"id":"a","method":"fs/read_text_file","params":{{"path":"/skills/review/SKILL.md",{rest}}}}}"#
        );
        text += &[rest, ": ", &decision(&fixture.agent_line(&(line + "\n"))), "\n"].concat();
    }
    expect![[r#"
        "sessionId":"s","line":3,"limit":10: review "SKILL.md" Some(3) Some(10)
        "sessionId":"s","line":null,"limit":0: review "SKILL.md" None Some(0)
        "sessionId":"s","line":18446744073709551615,"limit":18446744073709551615: review "SKILL.md" Some(18446744073709551615) Some(18446744073709551615)
        "sessionId":"s","line":18446744073709551616: the path is too long, or `line` and `limit` are not whole numbers
        "sessionId":"s","line":-1: the path is too long, or `line` and `limit` are not whole numbers
        "sessionId":"s","limit":"5": the path is too long, or `line` and `limit` are not whole numbers
        "sessionId":"s","limit":1.5: the path is too long, or `line` and `limit` are not whole numbers
        "sessionId":"other": forwarded
        "x":1: forwarded
    "#]].assert_eq(&text);
}

/// A request for a file of a skill never reaches the client, even if it can't be answered.
#[test]
fn requests_for_files_without_an_id() {
    let mut fixture = open(elsewhere(), "x", true, &json!({}));
    let ask = |path: &str| json!({ "sessionId": "s", "path": path });
    for id in ["", r#""id":null,"#] {
        for (path, forwarded) in [("/skills/review/SKILL.md", 0), ("/etc/passwd", 1)] {
            let params = ask(path);
            let line = format!(r#"{{{id}"method":"fs/read_text_file","params":{params}}}"#) + "\n";
            let out = fixture.agent_line(&line);
            assert_eq!(out.to_client.len(), forwarded, "{line}");
            assert!(out.tasks.is_empty() && out.to_agent.is_empty(), "{out:?}");
        }
    }
}

#[test]
fn a_request_for_a_file_is_cancelled_here_while_it_runs() {
    let mut fixture = open(elsewhere(), "x", true, &json!({}));
    let params = json!({ "sessionId": "s", "path": "/skills/review/SKILL.md" });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file", "params": params });
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 1 } });
    assert_eq!(fixture.agent(&cancel).to_client.len(), 1);
    fixture.agent(&request);
    assert!(fixture.agent(&cancel).to_client.is_empty());
    fixture.handle(Input::McpAnswered(Id::Raw("1".to_owned())));
    assert_eq!(fixture.agent(&cancel).to_client.len(), 1);
    // A request of the client with the same id is another one.
    let out = fixture.prompt(1, "s", &["hello"]);
    assert_eq!(fixture.respond(1, &json!({ "stopReason": "end_turn" })).to_client.len(), 1, "{out:?}");
}

/// Once the agent has read a file of a skill, the model gets the paths.
#[test]
fn an_agent_that_reads_files_gets_paths() {
    let mut fixture = open(elsewhere(), "x", true, &json!({}));
    assert!(!told(&mut fixture).contains("SKILL.md"));
    fixture.respond(2, &json!({ "stopReason": "end_turn" }));
    let params = json!({ "sessionId": "s", "path": "/skills/review/SKILL.md" });
    fixture.agent(&json!({ "jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file", "params": params }));
    assert!(told(&mut fixture).contains("/skills/review/SKILL.md"));
}
