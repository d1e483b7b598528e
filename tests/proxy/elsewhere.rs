//! Agents that run in a container or on another machine: files of skills over the ACP connection, an address that the user chooses, and
//! instructions in prompts.

use std::{net::TcpListener, path::Path};

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixture::{Fixture, MCP_2025, cwd, entry, texts},
    http_access::{Endpoint, with},
    skills::Skills,
};

crate::trials!(
    files_are_read_over_acp,
    #[cfg(unix)]
    files_of_others_are_not_read,
    other_files_are_the_editors,
    many_files_are_asked_for,
    a_file_of_a_skill_that_is_not_approved,
    #[cfg(unix)]
    a_container_is_recognized,
    #[cfg(unix)]
    the_user_says_no,
    an_address_for_the_agent,
    an_address_that_is_in_use,
);

const INVALID_PARAMS: i64 = -32602;
const NOT_FOUND: i64 = -32002;

/// Starts the proxy for an editor that has these capabilities, and an agent that supports MCP over HTTP. Returns the request that the
/// agent received.
fn initialized(proxy: Proxy, client: &Value) -> (Fixture, Value) {
    initialize(Fixture::new(proxy), client)
}

fn initialize(mut fixture: Fixture, client: &Value) -> (Fixture, Value) {
    let capabilities = json!({ "mcpCapabilities": { "http": true } });
    let (received, _) = fixture.exchange(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": client }),
        json!({ "result": { "protocolVersion": 1, "agentCapabilities": capabilities } }),
    );
    (fixture, received)
}

/// Returns a request of the agent for a text file, with these members in its params.
fn request(id: &Value, path: &Path, rest: Value) -> String {
    let mut params = json!({ "sessionId": "s", "path": path });
    params.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
    json!({ "jsonrpc": "2.0", "id": id, "method": "fs/read_text_file", "params": params }).to_string()
}

/// Makes the agent ask for a file. Returns the answer.
fn read(fixture: &mut Fixture, path: &Path, rest: Value) -> Value {
    fixture.agent_writes(&[&request(&json!("r"), path, rest)]);
    let mut answer = fixture.agent_receives();
    assert_eq!(answer["id"], "r", "{answer}");
    if answer["result"].is_object() {
        answer["result"]["content"].take()
    } else {
        answer["error"]["code"].take()
    }
}

/// Returns the text that the model gets with the first prompt.
fn told(fixture: &mut Fixture) -> String {
    texts(&fixture.prompt("s", "hello"))[0].to_owned()
}

fn files_are_read_over_acp() {
    let skills = Skills::review();
    skills.write("review/references/crlf.txt", "\u{feff}a\r\nb\r\nc");
    skills.write("review/references/long.txt", &"0123456789abcde\n".repeat(200_000));
    skills.write("review/references/line.txt", &"x".repeat(3 << 20));
    std::fs::write(skills.dir("review").join("latin1.txt"), b"caf\xe9\n").expect("a file");
    let (mut fixture, received) = initialized(skills.proxy().flag("--elsewhere", "files"), &json!({}));
    assert_eq!(received["params"]["clientCapabilities"], json!({ "fs": { "readTextFile": true } }));
    let params = fixture.new_session("s");
    assert_eq!(params["mcpServers"], json!([]));
    let review = dunce::canonicalize(skills.dir("review")).expect("a directory");
    let text = told(&mut fixture);
    assert!(text.contains(&format!("<location>{}</location>", review.join("SKILL.md").display())), "{text}");
    let file = |name: &str| review.join("references").join(name);
    let whole = std::fs::read_to_string(review.join("SKILL.md")).expect("a file");
    assert_eq!(read(&mut fixture, &review.join("SKILL.md"), json!({})), whole);
    for (path, rest, expected) in [
        (file("checklist.md"), json!({}), json!("- [ ] names\n- [ ] tests\n")),
        (file("checklist.md"), json!({ "line": 2 }), json!("- [ ] tests\n")),
        (file("checklist.md"), json!({ "line": 1, "limit": 1 }), json!("- [ ] names\n")),
        (file("checklist.md"), json!({ "line": null, "limit": 0 }), json!("")),
        (file("checklist.md"), json!({ "line": 0, "limit": u64::MAX }), json!("- [ ] names\n- [ ] tests\n")),
        (file("checklist.md"), json!({ "line": u64::MAX, "limit": u64::MAX }), json!(INVALID_PARAMS)),
        (file("checklist.md"), json!({ "line": -1 }), json!(INVALID_PARAMS)),
        (file("checklist.md"), json!({ "limit": "1" }), json!(INVALID_PARAMS)),
        (file("crlf.txt"), json!({ "line": 2, "limit": 1 }), json!("b\r\n")),
        (file("crlf.txt"), json!({}), json!("a\r\nb\r\nc")),
        (file("long.txt"), json!({}), json!(INVALID_PARAMS)),
        (file("long.txt"), json!({ "line": 200_000, "limit": 5 }), json!("0123456789abcde\n")),
        (file("line.txt"), json!({ "limit": 1 }), json!(INVALID_PARAMS)),
        (review.join("assets/empty.txt"), json!({}), json!("")),
        (review.join("assets/blob.bin"), json!({}), json!(INVALID_PARAMS)),
        (review.join("latin1.txt"), json!({}), json!("caf\u{fffd}\n")),
        (file("missing.md"), json!({}), json!(NOT_FOUND)),
        (review.join("references"), json!({}), json!(INVALID_PARAMS)),
        (review.clone(), json!({}), json!(INVALID_PARAMS)),
        (review.join("../secret.txt"), json!({}), json!(INVALID_PARAMS)),
        (review.join("references/../../secret.txt"), json!({}), json!(INVALID_PARAMS)),
        (skills.path().join("secret.txt"), json!({}), json!(INVALID_PARAMS)),
        ("/etc/passwd".into(), json!({}), json!(INVALID_PARAMS)),
    ] {
        assert_eq!(read(&mut fixture, &path, rest.clone()), expected, "{} {rest}", path.display());
    }
    fixture.finish();
}

/// A skill with links that lead out of it, and files that are no files.
#[cfg(unix)]
fn files_of_others_are_not_read() {
    use std::os::unix::fs::symlink;
    let skills = Skills::review();
    let review = dunce::canonicalize(skills.dir("review")).expect("a directory");
    symlink("/etc/passwd", review.join("passwd")).expect("a link");
    symlink("/etc", review.join("etc")).expect("a link");
    symlink("../secret.txt", review.join("secret")).expect("a link");
    symlink("references/checklist.md", review.join("inside")).expect("a link");
    let made = std::process::Command::new("mkfifo").arg(review.join("fifo")).status().expect("mkfifo");
    assert!(made.success());
    let (mut fixture, _) = initialized(skills.proxy().flag("--elsewhere", "files"), &json!({}));
    fixture.new_session("s");
    for path in
        ["passwd", "etc/passwd", "secret", "fifo", "//etc/passwd", "nul\0byte", "a/b/../../../secret.txt"]
    {
        let code = read(&mut fixture, &review.join(path), json!({}));
        assert!(code == INVALID_PARAMS || code == NOT_FOUND, "{path}: {code}");
    }
    assert_eq!(read(&mut fixture, &review.join("inside"), json!({})), "- [ ] names\n- [ ] tests\n");
    fixture.finish();
}

/// The editor reads files too. It gets all requests but those for files of skills, byte for byte.
fn other_files_are_the_editors() {
    let skills = Skills::review();
    let can_read = json!({ "fs": { "readTextFile": true } });
    let (mut fixture, received) = initialized(skills.proxy().arg("--elsewhere"), &can_read);
    assert_eq!(received["params"]["clientCapabilities"], can_read);
    fixture.new_session("s");
    let review = dunce::canonicalize(skills.dir("review")).expect("a directory");
    // The id is that of a request of the editor which is open.
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] });
    let open = fixture.editor.request("session/prompt", prompt);
    let received = fixture.agent_receives();
    fixture.agent_writes(&[&request(&open, &review.join("assets/empty.txt"), json!({}))]);
    let answer = fixture.agent_receives();
    assert_eq!((&answer["id"], &answer["result"]["content"]), (&open, &json!("")));
    let other = r#"{"params":{ "path":"\/x\u002fy", "sessionId":"s","limit":1e1 } ,"id":7.0,"method":"fs/read_text_file","jsonrpc":"2.0"}"#;
    // The answer to the order comes after the line that it makes the agent write.
    let order = fixture.editor.request("_agent/say", json!({ "lines": [other] }));
    let line = fixture.editor.line().expect("a line");
    assert_eq!(String::from_utf8_lossy(&line).trim_end(), other);
    fixture.editor.answer(&order);
    fixture.editor.write(b"{ \"id\":7.0,\"result\":{\"content\":\"text\"}}\n");
    assert_eq!(fixture.line().trim_end(), "{ \"id\":7.0,\"result\":{\"content\":\"text\"}}");
    fixture.agent_replies(&received, json!({ "result": { "stopReason": "end_turn" } }));
    assert_eq!(fixture.editor.answer(&open)["result"]["stopReason"], "end_turn");
    fixture.finish();
}

fn many_files_are_asked_for() {
    const REQUESTS: usize = 3000;
    let skills = Skills::review();
    let (mut fixture, _) = initialized(skills.proxy().flag("--elsewhere", "files"), &json!({}));
    fixture.new_session("s");
    let file =
        dunce::canonicalize(skills.dir("review")).expect("a directory").join("references/checklist.md");
    let path = |id: usize| if id.is_multiple_of(2) { file.clone() } else { "/etc/passwd".into() };
    let lines: Vec<_> = (0..REQUESTS).map(|id| request(&id.into(), &path(id), json!({}))).collect();
    fixture.agent_writes(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let mut seen = vec![false; REQUESTS];
    for _ in 0..REQUESTS {
        let answer = fixture.agent_receives();
        let id = usize::try_from(answer["id"].as_u64().expect("a number")).expect("small");
        assert_eq!(answer["result"]["content"].is_string(), id.is_multiple_of(2), "{answer}");
        assert!(!std::mem::replace(&mut seen[id], true), "two answers to {id}");
    }
    fixture.finish();
}

/// The proxy reads nothing of a skill that the user has not approved.
fn a_file_of_a_skill_that_is_not_approved() {
    let skills = Skills::review();
    let project = Skills::new();
    project.add(".agents/skills/theirs", "Does things.", "Do it.");
    std::fs::create_dir(project.path().join(".git")).expect("a directory");
    let proxy = skills.proxy().flag("--elsewhere", "files").flag("--discover", "project");
    let (mut fixture, _) = initialized(proxy, &json!({}));
    let root = dunce::canonicalize(project.path()).expect("a directory");
    let params = json!({ "cwd": root, "mcpServers": [] });
    fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    let file = root.join(".agents/skills/theirs/SKILL.md");
    assert_eq!(read(&mut fixture, &file, json!({})), INVALID_PARAMS);
    fixture.finish();
}

/// Starts the proxy with this binary under the name `docker`.
#[cfg(unix)]
fn in_docker(proxy: Proxy, bin: &Skills) -> Fixture {
    let docker = bin.path().join("docker");
    let this = std::env::current_exe().expect("this program has a path");
    std::os::unix::fs::symlink(this, &docker).expect("a link");
    let proxy = proxy.env(crate::agent::SCRIPT, "scripted").arg("--").arg(docker);
    Fixture::of(["--context", "x", "run", "-i", "image", "agent"].iter().fold(proxy, Proxy::arg).start())
}

/// The model is not told of anything that it can't reach: no server, and no path.
#[cfg(unix)]
fn a_container_is_recognized() {
    let skills = Skills::review();
    let bin = Skills::new();
    let (mut fixture, received) = initialize(in_docker(skills.proxy(), &bin), &json!({ "fs": {} }));
    assert_eq!(received["params"]["clientCapabilities"], json!({ "fs": {} }));
    let params = fixture.new_session("s");
    assert_eq!(params["mcpServers"], json!([]));
    let blocks = fixture.prompt("s", "hello");
    assert!(!blocks[0].to_string().contains("SKILL.md"), "{blocks:?}");
    assert!(texts(&blocks)[0].contains("/skill:NAME"), "{blocks:?}");
    // The instructions come with a prompt that matches, and by command.
    for prompt in ["Please review the code and its patches", "/skill:review"] {
        let blocks = fixture.prompt("s", prompt);
        let text = texts(&blocks)[0];
        assert!(text.contains("Read references/checklist.md."), "{prompt}: {blocks:?}");
        assert!(text.contains("on another machine") && text.contains("ask the user"), "{text}");
        assert!(!text.contains(&*skills.path().to_string_lossy()), "{text}");
        assert!(!text.contains("read_skill_file") && !text.contains("file tools"), "{text}");
    }
    fixture.finish();
}

#[cfg(unix)]
fn the_user_says_no() {
    let skills = Skills::review();
    let bin = Skills::new();
    let proxy = skills.proxy().flag("--elsewhere", "no");
    let (mut fixture, _) = initialize(in_docker(proxy, &bin), &json!({}));
    let entry = entry(&fixture.new_session("s"));
    assert!(entry["url"].as_str().expect("text").starts_with("http://127.0.0.1:"), "{entry}");
    fixture.connect(&entry, MCP_2025);
    fixture.finish();
}

fn an_address_for_the_agent() {
    let skills = Skills::review();
    let proxy = skills.proxy().arg("--elsewhere").flag("--listen", "127.0.0.1:0");
    let proxy = proxy.flag("--listen-url", "http://host.docker.internal/");
    let (mut fixture, _) = initialized(proxy, &json!({}));
    let mut entry = entry(&fixture.new_session("s"));
    let url = entry["url"].as_str().expect("text").to_owned();
    assert!(url.starts_with("http://host.docker.internal:"), "{url}");
    // The agent reaches this machine under the name.
    entry["url"] = url.replace("host.docker.internal", "127.0.0.1").into();
    let mut endpoint = Endpoint::of(&entry);
    let chosen = endpoint.address.replace("127.0.0.1", "host.docker.internal");
    endpoint.address = endpoint.address.replace("host.docker.internal", "127.0.0.1");
    let headers = endpoint.headers();
    let status = |host: &str| endpoint.initialize_status(&with(&headers, "Host", Some(host)));
    assert_eq!((status(&chosen), status(&chosen.to_uppercase())), (200, 200));
    for host in ["host.docker.internal", "host.docker.internal:1", "evil.example", "x.host.docker.internal"] {
        assert_eq!(status(host), 403, "{host}");
    }
    let no_token = with(&with(&headers, "Host", Some(&chosen)), "Authorization", None);
    assert_eq!(endpoint.initialize_status(&no_token), 401);
    let origin = with(&with(&headers, "Host", Some(&chosen)), "Origin", Some("http://host.docker.internal"));
    assert_eq!(endpoint.initialize_status(&origin), 403);
    let connection = fixture.connect(&entry, MCP_2025);
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(!is_error && text.contains("Skill directory: on another machine"), "{text}");
    assert!(text.contains("read its files with `read_skill_file`"), "{text}");
    assert!(!text.contains(&*skills.path().to_string_lossy()), "{text}");
    fixture.finish();
}

/// Another proxy uses the port. The session works without the tools.
fn an_address_that_is_in_use() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("an address").to_string();
    let skills = Skills::review();
    let proxy = skills.proxy().arg("--elsewhere").flag("--listen", &address);
    let (mut fixture, _) = initialized(proxy, &json!({}));
    let params = json!({ "cwd": cwd(), "mcpServers": [] });
    let (received, _) = fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    assert_eq!(received["params"]["mcpServers"], json!([]));
    fixture.editor.wait_for_log(&format!("no MCP server for this session: cannot listen on {address}"));
    assert!(told(&mut fixture).contains("/skill:NAME"));
    fixture.finish();
}
