//! Commands that print secrets for MCP servers behind skills (Unix only, because they are scripts).

use std::{fs, os::unix::fs::PermissionsExt, process::Command, thread, time::Instant};

use serde_json::{Value, json};

use crate::{
    agent::tool_server,
    editor::{DEADLINE, KILLED, Proxy},
    fixture::{Fixture, MCP_2025, entry},
    skills::Skills,
    tool_server_faults::gone,
    tool_servers::{config, connected, count, input, wait_for},
};

crate::trials!(
    a_command_is_found_beside_the_configuration,
    a_command_that_hangs_costs_an_error_only,
    a_command_ends_with_its_session,
    a_command_ends_with_the_proxy,
    the_last_output_of_a_server_hides_secrets,
    scripts_and_tools_have_the_variables_of_their_skill,
);

/// Returns the keys of a server that gets the secret `TOKEN` from this command.
fn with_secret(command: &Value) -> Value {
    let mut env = json!({});
    env[tool_server::SECRET] = "${TOKEN}".into();
    json!({ "ask": "never", "env": env, "secrets": { "TOKEN": { "command": command } } })
}

/// Returns a command that writes its process id to the file `pid`, and then hangs.
fn hanging(skills: &Skills) -> Value {
    let script = "echo $$ > \"$0.new\" && mv \"$0.new\" \"$0\"; exec sleep 1000";
    json!(["sh", "-c", script, skills.dir("pid")])
}

/// Returns true if the process that wrote `pid` is running.
fn is_running(skills: &Skills) -> bool {
    let pid = fs::read_to_string(skills.dir("pid")).expect("a process id");
    let mut kill = Command::new("sh");
    let status = kill.args(["-c", "kill -0 \"$0\" 2>/dev/null", pid.trim()]).status();
    status.expect("a shell").success()
}

fn a_command_is_found_beside_the_configuration() {
    let skills = Skills::new();
    let script = skills.write("tokens/print", "#!/bin/sh\necho \"s3cret $1\"\necho more\n");
    fs::set_permissions(script, fs::Permissions::from_mode(0o700)).expect("permissions");
    let (mut fixture, connection) = connected(&skills, "", &with_secret(&json!(["./tokens/print", "a b"])));
    assert_eq!(fixture.run(&connection, "env").0, "s3cret a b");
    fixture.finish();
}

fn a_command_that_hangs_costs_an_error_only() {
    let skills = Skills::new();
    let mut more = with_secret(&hanging(&skills));
    more["start_timeout"] = json!(0.3);
    let (mut fixture, connection) = connected(&skills, "", &more);
    let (text, failed) = fixture.run(&connection, "env");
    let words = "command for secret `TOKEN` failed: no result within 0.3 s";
    assert!(failed && text.contains(words), "{text}");
    let deadline = Instant::now() + DEADLINE;
    while is_running(&skills) {
        assert!(Instant::now() < deadline, "the command is still running");
        thread::yield_now();
    }
    assert_eq!(count(&skills), 0);
    fixture.finish();
}

fn a_command_ends_with_its_session() {
    let skills = Skills::new();
    let (mut fixture, connection) = connected(&skills, "", &with_secret(&hanging(&skills)));
    fixture.begin(&connection, &input("env", &json!({})));
    wait_for(&skills.dir("pid"));
    // Other sessions go on.
    let params = fixture.new_session("t");
    let second = fixture.connect(&entry(&params), MCP_2025);
    assert!(fixture.call(&second, "activate_skill", json!({ "name": "other" })).1);
    fixture.exchange("session/close", json!({ "sessionId": "s" }), json!({ "result": {} }));
    let deadline = Instant::now() + DEADLINE;
    while is_running(&skills) {
        assert!(Instant::now() < deadline, "the command is still running");
        thread::yield_now();
    }
    fixture.editor.unread();
    fixture.editor.finish();
}

fn a_command_ends_with_the_proxy() {
    for is_killed in [false, true] {
        let skills = Skills::new();
        let path = config(&skills, "", &with_secret(&hanging(&skills)));
        let (proxy, held) = Proxy::new().flag("--config", path).with_inherited_pipe();
        let mut fixture = Fixture::over_http(proxy);
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), MCP_2025);
        fixture.begin(&connection, &input("env", &json!({})));
        wait_for(&skills.dir("pid"));
        assert!(is_running(&skills));
        if is_killed {
            fixture.editor.kill();
            assert_eq!(fixture.editor.ended().code(), KILLED);
        } else {
            fixture.editor.unread();
            fixture.editor.finish();
        }
        gone(held, &format!("killed: {is_killed}"));
    }
}

fn the_last_output_of_a_server_hides_secrets() {
    let skills = Skills::new();
    let (mut fixture, connection) = connected(&skills, "", &with_secret(&json!(["echo", "s3cret"])));
    let (text, failed) = fixture.run(&connection, "refuse");
    assert!(failed && text.contains(r"server answered with error 7: \u{1b}[31mbad <***>"), "{text}");
    let (text, failed) = fixture.run(&connection, "die");
    let words = "server has ended; the last lines of its stderr: starting / ";
    assert!(failed && text.contains(words), "{text}");
    assert!(text.contains("cannot use <***>") && !text.contains('\u{1b}'), "{text}");
    fixture.finish();
    // A server that does not start.
    let server = json!({ "command": "sh", "args": ["-c", "echo no license >&2; exit 1"] });
    let skill = json!({ "name": "kit", "description": "Has tools.", "mcp": server });
    let path = skills.write("broken.yaml", &json!({ "skills": [skill] }).to_string());
    let mut fixture = Fixture::over_http(Proxy::new().flag("--config", path));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let text = fixture.call(&connection, "activate_skill", json!({ "name": "kit" })).0;
    assert!(text.contains("server has ended; the last lines of its stderr: no license"), "{text}");
    fixture.finish();
}

fn scripts_and_tools_have_the_variables_of_their_skill() {
    let skills = Skills::new();
    let value = "s3cret";
    skills.add("stored", "Has a script.", "# Stored");
    skills.write("stored/scripts/show.sh", "#!/bin/sh\necho \"$PREFIX$TOKEN $(ps -o args= -p $$)\"\n");
    skills.add("other", "Has a script.", "# Other");
    skills.write("other/scripts/show.sh", "#!/bin/sh\necho \"<$TOKEN>\"\n");
    let print = skills.write("print", &format!("#!/bin/sh\necho {value}\n"));
    fs::set_permissions(print, fs::Permissions::from_mode(0o700)).expect("permissions");
    let secrets = json!({ "SECRET": { "command": ["./print"] }, "MISSING": { "command": ["false"] } });
    let env = json!({ "TOKEN": "${SECRET}", "PREFIX": "is " });
    let tool = |name: &str, env: Value| json!({ "name": name, "command": ["sh", "-c", "echo \"$PREFIX$TOKEN $OWN\""], "env": env });
    let config = json!({ "skills": [
        { "skill": "./stored", "env": env, "secrets": secrets },
        "./other",
        {
            "name": "kit", "description": "Has tools.", "body": "x", "env": env, "secrets": secrets,
            "tools": [
                tool("show", json!({ "PREFIX": "was ", "OWN": "and ${SECRET} for $$1" })),
                tool("broken", json!({ "OWN": "${MISSING}" })),
            ],
        },
    ] });
    let path = skills.write("skills.yaml", &config.to_string());
    let events = skills.dir("events.jsonl");
    let proxy = Proxy::new().flag("--config", path).arg("--allow-scripts").flag("--events", &events);
    let mut fixture = Fixture::over_http(proxy.flag("--log", "debug"));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let call =
        |fixture: &mut Fixture, tool: &str, arguments: Value| fixture.call(&connection, tool, arguments);
    let script = |skill: &str| json!({ "skill": skill, "script": "scripts/show.sh" });
    let text = call(&mut fixture, "run_skill_script", script("stored")).0;
    assert!(text.contains("is s3cret ") && text.matches(value).count() == 1, "{text}");
    // The variables of a skill are not those of another one.
    let text = call(&mut fixture, "run_skill_script", script("other")).0;
    assert!(text.contains("<>"), "{text}");
    let text = call(&mut fixture, "call_skill_tool", json!({ "skill": "kit", "tool": "show" })).0;
    assert_eq!(text, "was s3cret and s3cret for $1");
    let (text, failed) = call(&mut fixture, "call_skill_tool", json!({ "skill": "kit", "tool": "broken" }));
    assert!(failed && text.contains("command for secret `MISSING` failed: exit status: 1"), "{text}");
    let text = call(&mut fixture, "activate_skill", json!({ "name": "kit" })).0;
    assert!(!text.contains(value), "{text}");
    let ended = fixture.finish();
    assert!(!ended.log.iter().any(|line| line.contains(value)), "{:#?}", ended.log);
    let recorded = fs::read_to_string(events).expect("a record");
    assert!(recorded.contains("stored") && !recorded.contains(value), "{recorded}");
}
