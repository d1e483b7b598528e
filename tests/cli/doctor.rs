//! `doctor` with agents that need a login, or that are too old.

#![cfg(unix)]

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use crate::fixture::Fixture;

/// An agent that answers `initialize` and refuses to open a session. `INFO` and `ERROR` stand for JSON.
const AGENT: &str = r#"#!/bin/sh
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
        *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{},INFO}}\n' "$id" ;;
        *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"error":ERROR}\n' "$id" ;;
    esac
done
"#;

const INFO: &str = r#""agentInfo":{"name":"a","version":"1"}"#;

/// Runs `doctor` with programs of these texts in front of `PATH`. Skills don't work with the agent.
fn doctor(programs: &[(&str, &str)], command: &[&str]) -> String {
    doctor_with(programs, &[], command, 1)
}

/// Runs `doctor` like [`doctor`], with flags, and with this exit code.
fn doctor_with(programs: &[(&str, &str)], flags: &[&str], command: &[&str], code: i32) -> String {
    let fixture = Fixture::new();
    for (name, text) in programs {
        fixture.write(&format!("bin/{name}"), text);
        fs::set_permissions(fixture.dir.join("bin").join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", fixture.dir.join("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .args(["doctor", "--skill", "skills/pdf"])
        .args(flags)
        .arg("--")
        .args(command)
        .current_dir(&fixture.dir)
        .env("HOME", fixture.dir.join("home"))
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env("PATH", path)
        .env_remove("ACP_SKILLS_LOG")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn agent(info: &str, error: &str) -> String {
    AGENT.replace("INFO", info).replace("ERROR", error)
}

/// Skills are not to blame if the agent only waits for a login.
#[test]
fn an_agent_that_is_not_logged_in() {
    let methods = r#""authMethods":[
        {"id":"browser","name":"Log in with a browser","description":"Opens a page"},
        {"id":"key","name":"API key"},
        {"id":"cli","name":"Terminal","type":"terminal","args":["--cli","auth login"]}]"#
        .replace('\n', "");
    for (info, error, expected) in [
        (
            format!("{INFO},{methods}"),
            r#"{"code":-32000,"message":"Authentication required"}"#,
            "it offers: Log in with a browser (Opens a page), API key, Terminal (run `some-agent --cli 'auth login'`)",
        ),
        (
            INFO.to_owned(),
            r#"{"code":-32603,"message":"You are not logged in"}"#,
            "in its own terminal program",
        ),
    ] {
        let said = doctor(&[("some-agent", &agent(&info, error))], &["some-agent"]);
        assert!(said.contains("Could not determine if skills work with this agent: log in first."), "{said}");
        assert!(said.contains(expected) && !said.contains("do not work"), "{expected}: {said}");
    }
    // Other errors are no login.
    let failing = agent(INFO, r#"{"code":-32603,"message":"disk full"}"#);
    let said = doctor(&[("some-agent", &failing)], &["some-agent"]);
    assert!(
        said.contains("Skills do not work with this agent.") && !said.contains("log in first."),
        "{said}"
    );
}

#[test]
fn an_agent_and_a_node_that_are_too_old() {
    let info = r#""agentInfo":{"name":"@agentclientprotocol/claude-agent-acp","version":"0.49.0"}"#;
    let failing = agent(info, r#"{"code":-32603,"message":"disk full"}"#);
    let node = |version: &str| format!("#!/bin/sh\necho v{version}\n");
    let run = |node: &str| {
        let command = ["npx", "-y", "@agentclientprotocol/claude-agent-acp"];
        doctor(&[("npx", &failing), ("node", node)], &command)
    };
    let said = run(&node("20.19.1"));
    for words in [
        "Node.js 20 is too old for the current version of Claude, which needs 22",
        "(yours is older)",
        "hint: update Node.js: https://nodejs.org; update the agent: 0.49.0 is older than 0.100",
    ] {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
    let said = run(&node("22.1.0"));
    assert!(!said.contains("Node.js") && said.contains("update the agent"), "{said}");
    // An installed program may have a Node.js of its own.
    let said = doctor(&[("claude-agent-acp", &failing), ("node", &node("20.19.1"))], &["claude-agent-acp"]);
    assert!(!said.contains("Node.js") && said.contains("update the agent"), "{said}");
    // An agent that isn't known needs no certain version.
    let said = doctor(&[("some-agent", &failing), ("node", &node("4.0.0"))], &["some-agent"]);
    assert!(!said.contains("Node.js"), "{said}");
}

/// The agent runs in a container, so it gets no server, and `doctor` doesn't wait for it to connect.
#[test]
fn an_agent_in_a_container() {
    let works = AGENT.replace("\"error\":ERROR", "\"result\":{\"sessionId\":\"s\"}").replace("INFO", INFO);
    let run = |flags: &[&str], command: &[&str]| {
        doctor_with(&[("docker", &works), ("ssh", &works), ("my-script", &works)], flags, command, 0)
    };
    let docker = ["docker", "run", "-i", "image", "agent"];
    let said = run(&[], &docker);
    for words in [
        "the agent runs in a container, so it cannot reach the files or the loopback address of this machine (if it does: `--elsewhere no`)",
        "no server: the agent cannot reach one here",
        "instructions are added to prompts that match a skill or begin with `/skill:NAME`",
        "hint: to give the model tools for skills: with `--network host`, add `--listen 127.0.0.1:0`",
    ] {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
    assert!(!said.contains("FAIL"), "{said}");
    let said = run(&[], &["ssh", "host", "agent"]);
    assert!(said.contains("on another machine") && said.contains("-R 7000:127.0.0.1:7000"), "{said}");
    let said = run(&["--elsewhere", "files"], &["my-script"]);
    assert!(said.contains("elsewhere, as `--elsewhere` says") && said.contains("receives paths"), "{said}");
}

/// The servers in settings are started and measured. Those that fail don't change the conclusion.
#[test]
fn the_tokens_of_mcp_servers() {
    let works = AGENT.replace("\"error\":ERROR", "\"result\":{\"sessionId\":\"s\"}").replace("INFO", INFO);
    let fixture = Fixture::new();
    let program = env!("CARGO_BIN_EXE_acp-skills-proxy");
    let skill = fixture.dir.join("skills/pdf");
    let settings = serde_json::json!({ "mcpServers": {
        "own": { "command": program, "args": ["mcp", "--skill", skill] },
        "gone": { "command": "/nowhere/server", "env": { "A": "b" } },
        "old": { "type": "sse", "url": "https://example.org/sse" },
    }});
    fixture.write("servers.json", &format!("// The servers.\n{settings}"));
    let path = fixture.dir.join("servers.json");
    let flags = ["--mcp-servers", path.to_str().unwrap(), "--mcp", "off"];
    let said = doctor_with(&[("some-agent", &works)], &flags, &["some-agent"], 0);
    let line = |start: &str| said.lines().find(|line| line.contains(start)).unwrap_or_default();
    assert!(line(" own: ").contains("ok ") && line(" own: ").contains("2 tools with about "), "{said}");
    assert!(line(" gone: ").contains("FAIL") && line(" gone: ").contains("not found"), "{said}");
    assert!(line(" old: ").contains("so the agent always gets it"), "{said}");
    assert!(line(" 1 server: ").contains("2 tools with about "), "{said}");
    fixture.write("servers.json", "{}");
    let error = fixture.run(&["doctor", "--skill", "skills/pdf", "--mcp-servers", "servers.json"]);
    assert!(format!("{error:?}").contains("no MCP servers in "), "{error:?}");
}
