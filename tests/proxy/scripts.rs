//! Scripts of skills: disabled by default, limited by flags, and run in the sandbox if there is one.

#[cfg(target_os = "linux")]
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{
    agent::scripts,
    editor::{Editor, Proxy},
    fixture::{Fixture, MCP_2025, cwd, entry},
    http_access::initialize,
    skills::Skills,
};

crate::trials!(
    scripts_are_off_by_default,
    scripts_run_if_allowed,
    failures_are_typed,
    the_directory_and_environment_of_a_script,
    scripts_have_limits,
    a_missing_sandbox,
    #[cfg(target_os = "linux")]
    a_sandbox_that_is_too_old,
    #[cfg(target_os = "linux")]
    a_working_directory_that_the_sandbox_refuses,
);

/// The scripts of the skill `kit`.
const SCRIPTS: &[&str] =
    &["say", "where", "slow", "kill", "much", "until", "hold", "stubborn", "count", "mark"];

/// Creates a skill `kit` with scripts.
pub(crate) fn kit() -> Skills {
    let skills = Skills::new();
    skills.add("kit", "Does things.", "# Kit");
    for name in SCRIPTS {
        skills.write(&format!("kit/{}", path(name)), &scripts::file(name).1);
    }
    skills
}

/// Returns the path of a script in its skill.
pub(crate) fn path(name: &str) -> String {
    format!("scripts/{name}.{}", scripts::file(name).0)
}

fn proxy(skills: &Skills) -> Proxy {
    Proxy::new().skill(&skills.dir("kit")).env("PROXY_TEST_OURS", "inherited")
}

pub(crate) fn allowing(skills: &Skills) -> Proxy {
    proxy(skills).arg("--allow-scripts")
}

/// Allows scripts with a timeout above our deadline, so a script that ends earlier was not ended by the timeout.
pub(crate) fn with_long_timeout(skills: &Skills) -> Proxy {
    allowing(skills).flag("--script-timeout", "600")
}

/// Runs a script in a new session and returns the structured result.
fn run(fixture: &mut Fixture, script: &str, more: Value) -> Value {
    let connection = {
        let params = fixture.new_session("s");
        fixture.connect(&entry(&params), MCP_2025)
    };
    let mut arguments = json!({ "skill": "kit", "script": path(script) });
    arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let call = json!({ "connection": connection.number, "tool": "run_skill_script", "arguments": arguments });
    let mut result = fixture.order("call", call).expect("a result");
    let structured = result["structuredContent"].take();
    let text = result["content"][0]["text"].as_str().expect("text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), structured, "the same as text");
    assert_eq!(structured["success"], json!(!result["isError"].as_bool().unwrap_or(false)));
    structured
}

fn scripts_are_off_by_default() {
    let skills = kit();
    let mut fixture = Fixture::over_http(proxy(&skills));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert!(connection.tools.iter().all(|tool| tool["name"] != "run_skill_script"), "{:?}", connection.tools);
    let arguments = json!({ "skill": "kit", "script": path("say") });
    let (text, failed) = fixture.call(&connection, "run_skill_script", arguments);
    assert!(failed && text.starts_with("UnknownTool: "), "{text}");
    let (text, _) = fixture.call(&connection, "activate_skill", json!({ "name": "kit" }));
    assert!(text.contains(&path("say")) && !text.contains("run_skill_script"), "{text}");
    fixture.finish();
}

fn scripts_run_if_allowed() {
    let skills = kit();
    let config = skills.write("skills.yaml", "skills: [kit]\nallow_scripts: true\n");
    for proxy in [allowing(&skills), Proxy::new().flag("--config", config)] {
        let mut fixture = Fixture::over_http(proxy);
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), MCP_2025);
        let tool = connection.tools.iter().find(|tool| tool["name"] == "run_skill_script").expect("listed");
        assert_eq!(tool["annotations"]["readOnlyHint"], false);
        let (text, _) = fixture.call(&connection, "activate_skill", json!({ "name": "kit" }));
        assert!(text.contains("`run_skill_script`"), "{text}");
        let mut result = run(&mut fixture, "say", json!({ "args": ["a", "$HOME; b"], "stdin": "in " }));
        assert!(result["durationMs"].take().is_u64());
        assert_eq!(
            result,
            json!({ "success": true, "exitCode": 0, "stdout": "in a $HOME; b\n", "stderr": "no\n", "durationMs": null })
        );
        fixture.finish();
    }
}

fn failures_are_typed() {
    let skills = kit();
    skills.write(&format!("secret.{}", scripts::file("").0), "echo secret");
    let mut fixture = Fixture::over_http(allowing(&skills));
    for (script, error, words) in [
        ("say", "ExecutionFailed", "failed with exit code"),
        ("sya", "ScriptNotFound", &*format!("did you mean `{}`", path("say"))),
        ("../../secret", "ScriptNotAllowed", "outside"),
    ] {
        let result = run(&mut fixture, script, json!({}));
        assert_eq!((&result["error"], &result["success"]), (&json!(error), &json!(false)), "{result}");
        assert!(result["message"].as_str().expect("text").contains(words), "{result}");
    }
    let result = run(&mut fixture, "say", json!({ "skill": "kti" }));
    assert_eq!(result["error"], "SkillNotFound", "{result}");
    fixture.finish();
}

fn the_directory_and_environment_of_a_script() {
    let skills = kit();
    let real = |path: PathBuf| dunce::canonicalize(path).expect("a directory").display().to_string();
    let session = real(cwd().into());
    let skill = real(skills.dir("kit"));
    for (flags, dir, ours) in [
        (&[] as &[_], &session, "inherited"),
        (&["--script-cwd", "skill"], &skill, "inherited"),
        (&["--script-env", "clean"], &session, "nothing"),
        (&["--script-env", "inherit", "--script-cwd", "session"], &session, "inherited"),
    ] {
        let proxy = flags.iter().fold(allowing(&skills), Proxy::arg);
        let mut fixture = Fixture::over_http(proxy);
        let result = run(&mut fixture, "where", json!({}));
        assert_eq!(result["stdout"], format!("{dir}\nkit\n{ours}\n"), "{flags:?}: {result}");
        fixture.finish();
    }
}

fn scripts_have_limits() {
    let skills = kit();
    // Use a longer timeout on Windows, since starting a program is slow there.
    let limit = if cfg!(windows) { "10" } else { "0.5" };
    let limits = allowing(&skills).flag("--script-timeout", limit).flag("--max-output", "10");
    let mut fixture = Fixture::over_http(limits);
    let result = run(&mut fixture, "slow", json!({}));
    assert_eq!((&result["error"], &result["stdout"]), (&json!("ExecutionTimeout"), &json!("begun\n")));
    assert!(
        result["message"].as_str().expect("text").contains(&format!("timed out after {limit} s")),
        "{result}"
    );
    let result = run(&mut fixture, "much", json!({}));
    assert_eq!(result["stdout"], "日本語\n[output truncated]", "nine bytes of ten, between two characters");
    fixture.finish();
}

fn a_missing_sandbox() {
    let skills = kit();
    let empty = tempfile::tempdir().expect("a directory");
    let editor = allowing(&skills).flag("--sandbox", "bwrap").env("PATH", empty.path()).agent("no-part");
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(2), "{:?}", ended.log);
    let log = ended.log.join("\n");
    for words in ["error: --sandbox bwrap: bubblewrap (`bwrap`) is not installed", "hint: install bubblewrap"]
    {
        assert!(log.contains(words), "{words:?} is not in {log}");
    }
    assert!(!log.contains("no-part"), "the agent was started: {log}");
}

/// Debian 11 and RHEL 9 have such an old version.
#[cfg(target_os = "linux")]
fn a_sandbox_that_is_too_old() {
    use std::os::unix::fs::PermissionsExt;
    let skills = kit();
    let bwrap = skills.write(
        "bin/bwrap",
        "#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 0.4.1 && exit\necho 'bwrap: Unknown option' >&2\nexit 1\n",
    );
    fs::set_permissions(&bwrap, fs::Permissions::from_mode(0o755)).expect("a program");
    let path = bwrap.parent().expect("a directory");
    let ended = allowing(&skills).flag("--sandbox", "bwrap").env("PATH", path).agent("no-part").ended();
    assert_eq!(ended.code(), Some(2), "{:?}", ended.log);
    let expected =
        "--sandbox bwrap: bubblewrap (`bwrap`) 0.4.1 is too old; at least version 0.6.0 is required";
    assert!(ended.log[0].ends_with(expected), "{:?}", ended.log);
}

/// The user is warned when the session starts. Otherwise only the model would learn of it, when a script fails.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_working_directory_that_the_sandbox_refuses() {
    let skills = kit();
    if let Err(error) = skills_core::exec::Sandbox::bwrap(false) {
        eprintln!("skipped: {error}");
        return;
    }
    let home = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let home = home.path().canonicalize().expect("a path");
    for (cwd, flags, expected) in [
        (&*home, &[] as &[_], Some("change all files in your home directory")),
        ("/".as_ref(), &[], Some("working directory / is not allowed for sandboxed scripts: ")),
        (&*skills.dir("kit"), &[], None),
        // We don't need a warning here, because scripts won't be run in this directory.
        ("/".as_ref(), &["--script-cwd", "skill"], None),
    ] {
        let proxy =
            flags.iter().fold(allowing(&skills).flag("--sandbox", "bwrap").env("HOME", &home), Proxy::arg);
        let mut fixture = Fixture::over_http(proxy);
        let params = json!({ "cwd": cwd, "mcpServers": [] });
        // We should only see the warning once, and not for the second session.
        for id in ["s", "t"] {
            fixture.exchange("session/new", params.clone(), json!({ "result": { "sessionId": id } }));
        }
        let log = fixture.finish().log;
        let warnings = log.iter().filter(|line| line.contains(expected.unwrap_or("sandbox"))).count();
        assert_eq!(warnings, usize::from(expected.is_some()), "{}: {log:#?}", cwd.display());
    }
}

/// Starts a client of the bridge that writes its own MCP messages.
pub(crate) fn bridge(fixture: &mut Fixture) -> Editor {
    bridge_in(fixture, "s")
}

/// Opens a session with this id, and starts a client of its bridge.
pub(crate) fn bridge_in(fixture: &mut Fixture, session: &str) -> Editor {
    bridge_to(&entry(&fixture.new_session(session)))
}

/// Starts a client of the bridge in this entry of `mcpServers`.
pub(crate) fn bridge_to(ours: &Value) -> Editor {
    let args = ours["args"].as_array().expect("a list").iter();
    let mut bridge = args.fold(Proxy::new(), |bridge, arg| bridge.arg(arg.as_str().expect("text")));
    for pair in ours["env"].as_array().expect("a list") {
        let text = |key: &str| pair[key].as_str().expect("text").to_owned();
        bridge = bridge.env(&text("name"), text("value"));
    }
    let mut bridge = bridge.start();
    bridge.send(&initialize(MCP_2025));
    bridge.answer(&json!(1));
    bridge.notify("notifications/initialized", json!({}));
    bridge
}

/// Returns the request to run a script. `token` is its progress token.
pub(crate) fn request(id: u64, script: &str, args: &[&str], token: Option<&str>) -> Value {
    let arguments = json!({ "skill": "kit", "script": path(script), "args": args });
    let mut params = json!({ "name": "run_skill_script", "arguments": arguments });
    if let Some(token) = token {
        params["_meta"] = json!({ "progressToken": token });
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

pub(crate) fn cancelled(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}
