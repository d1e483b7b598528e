//! Behaviour that is specific to Windows: batch files as agents, 32-bit exit codes, agents that cannot be asked to exit,
//! and programs that are not what their names suggest.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    agent::SCRIPT,
    editor::{Ended, Proxy},
    fixture::{Fixture, MCP_2025, entry},
    skills::Skills,
};

crate::trials!(
    a_shim_is_found_as_a_shell_finds_it,
    no_argument_of_a_shim_is_a_command,
    an_argument_that_a_shim_cannot_take,
    a_conversation_through_a_shim,
    a_shim_whose_proxy_is_killed,
    exit_codes_of_32_bits,
    an_agent_that_ignores_the_end_of_its_stdin,
    the_interpreter_of_a_script,
);

/// Writes `agent.cmd`, which starts this binary in the way npm's shims start node, into a directory that is part of
/// `PATH`.
fn shim(skills: &Skills) -> PathBuf {
    let this = std::env::current_exe().expect("this program has a path");
    skills.write("bin/agent.cmd", &format!("@ECHO off\r\n\"{}\" %*\r\n", this.display()))
}

/// Returns a proxy in whose `PATH` the program `agent` runs `script`.
fn with_shim(skills: &Skills, script: &str) -> Proxy {
    let shim = shim(skills);
    let old = std::env::var_os("PATH").unwrap_or_default();
    let directories = [shim.parent().expect("a directory").to_owned()].into_iter();
    let path = std::env::join_paths(directories.chain(std::env::split_paths(&old))).expect("a path");
    Proxy::new().env(SCRIPT, script).env("PATH", &path)
}

/// Runs a proxy with an agent that reports its arguments, and returns these.
fn arguments(proxy: Proxy) -> Vec<String> {
    let mut editor = proxy.start();
    let said = editor.wait_for("the arguments", |message| message["method"] == "_arguments");
    assert_eq!(editor.finish().code(), Some(0));
    serde_json::from_value(said["params"].clone()).expect("texts")
}

fn a_shim_is_found_as_a_shell_finds_it() {
    let skills = Skills::new();
    let whole = shim(&skills);
    for agent in
        [Path::new("agent"), Path::new("agent.cmd"), Path::new("AGENT"), &whole, &whole.with_extension("")]
    {
        let found = arguments(with_shim(&skills, "arguments").arg("--").arg(agent).arg("--acp"));
        assert_eq!(found, ["--acp"], "{}", agent.display());
    }
}

/// This is `BatBadBut`, CVE-2024-24576.
fn no_argument_of_a_shim_is_a_command() {
    let skills = Skills::new();
    let made = skills.path().join("made");
    let evil = format!("\"&echo x>{}&\"", made.display());
    for argument in [
        "plain",
        "",
        "two words",
        "a&b|c<d>e^f(g)",
        "!x!",
        "C:\\dir with space\\",
        "say \"x\"",
        &evil,
        "@scope/name@1.2.3",
        "{\"key\":\"value\"}",
    ] {
        let found = arguments(with_shim(&skills, "arguments").arg("--").arg("agent").arg(argument));
        assert!(!made.exists(), "{argument} was run");
        assert_eq!(found, [argument]);
    }
    // We can't test this under Wine, because its shell will expand the line a second time when it replaces `%*`. Windows only
    // does this once.
    if !crate::is_wine() {
        for argument in ["%PATH%", "100 %", "100 %%", "%1"] {
            let found = arguments(with_shim(&skills, "arguments").arg("--").arg("agent").arg(argument));
            assert_eq!(found, [argument]);
        }
    }
}

fn an_argument_that_a_shim_cannot_take() {
    let skills = Skills::new();
    let editor = with_shim(&skills, "arguments").arg("--").arg("agent").arg("two\nlines").start();
    let ended = editor.finish();
    assert_eq!(ended.code(), Some(125), "{:?}", ended.log);
    let said = ended.log.join("\n");
    assert!(said.contains("cannot start agent: ") && said.contains("batch file"), "{said}");
}

fn a_conversation_through_a_shim() {
    let skills = Skills::review();
    let mut fixture = Fixture::of(
        with_shim(&skills, "scripted").skill(&skills.dir("review")).arg("--").arg("agent").start(),
    );
    let open = fixture.editor.request("_open", json!({}));
    fixture.agent_receives();
    fixture.editor.notify("_agent/exit", json!({ "code": 7 }));
    let ended = fixture.editor.ended();
    assert_eq!(ended.code(), Some(7), "{:?}", ended.log);
    assert!(ended.answer(&open)["error"]["message"].to_string().contains("exited with code 7"));
    // This should also work if the editor doesn't send anything.
    let ended = with_shim(&skills, "scripted").arg("--").arg("agent").start().finish();
    assert_eq!(ended.code(), Some(0), "{:?}", ended.log);
}

/// Three processes hold stderr, whose end `ended` waits for: the shell of the shim, the agent, and a child of the agent.
fn a_shim_whose_proxy_is_killed() {
    let skills = Skills::new();
    let mut fixture = Fixture::of(with_shim(&skills, "scripted").arg("--").arg("agent").start());
    fixture.order("spawn", json!({ "script": "stubborn" })).expect("a child");
    fixture.editor.wait_for_log("agent: ready");
    fixture.editor.kill();
    assert_eq!(fixture.editor.ended().code(), Some(1));
}

fn exit_codes_of_32_bits() {
    for code in [256, 0x1234_5678, -1, -1_073_741_819] {
        let mut fixture = Fixture::new(Proxy::new());
        fixture.editor.notify("_agent/exit", json!({ "code": code }));
        let ended: Ended = fixture.editor.ended();
        assert_eq!((ended.code(), ended.messages), (Some(code), Vec::<Value>::new()), "{:?}", ended.log);
    }
}

fn an_agent_that_ignores_the_end_of_its_stdin() {
    let mut fixture = Fixture::new(Proxy::new());
    fixture.order("spawn", json!({ "script": "stubborn" })).expect("a child");
    fixture.editor.wait_for_log("agent: ready");
    // When stdin is closed, the agent will exit, but the child will not. It still has stdout and stderr open, so make sure that
    // we don't wait for it.
    fixture.finish();
    let mut editor = Proxy::new().agent("stubborn");
    editor.wait_for_log("agent: ready");
    editor.close();
    assert_eq!(editor.ended().code(), Some(1), "the agent was terminated");
}

/// Fake interpreters are not used, missing ones are named in the error, and real ones run.
fn the_interpreter_of_a_script() {
    let skills = Skills::new();
    skills.add("kit", "Does things.", "# Kit");
    for name in ["a.py", "b.sh", "c.ps1"] {
        skills.write(&format!("kit/scripts/{name}"), "");
    }
    skills.write("kit/scripts/d.cmd", "@echo from %~nx0: %*\r\n");
    let this = std::env::current_exe().expect("this program has a path");
    let interpreter = |path: &str| {
        skills.write(path, &format!("@set {SCRIPT}=arguments\r\n@\"{}\" %*\r\n", this.display()))
    };
    // These are the aliases from the Microsoft Store and the launcher for WSL, which we don't want to use.
    interpreter("Microsoft/WindowsApps/python.cmd");
    interpreter("Microsoft/WindowsApps/bash.cmd");
    interpreter("System32/bash.cmd");
    interpreter("real/py.cmd");
    interpreter("real/sh.cmd");
    interpreter("real/pwsh.cmd");
    let run = |path: &[&str], script: &str| {
        let path = std::env::join_paths(path.iter().map(|dir| skills.dir(dir))).expect("a path");
        let mut proxy = Proxy::new().skill(&skills.dir("kit")).arg("--allow-scripts").env("PATH", path);
        for variable in ["VIRTUAL_ENV", "ProgramFiles", "ProgramFiles(x86)", "LOCALAPPDATA"] {
            proxy = proxy.env(variable, skills.dir("nothing"));
        }
        let mut fixture = Fixture::over_http(proxy);
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), MCP_2025);
        let arguments =
            json!({ "skill": "kit", "script": format!("scripts/{script}"), "args": ["one", "two words"] });
        let call =
            json!({ "connection": connection.number, "tool": "run_skill_script", "arguments": arguments });
        let mut result = fixture.order("call", call).expect("a result");
        fixture.finish();
        result["structuredContent"].take()
    };
    let impostors = ["Microsoft/WindowsApps", "System32"];
    for (script, words) in [
        (
            "a.py",
            "could not find `py` or `python` or `python3` to run `scripts/a.py`; ask the user to install Python, because the `python`",
        ),
        (
            "b.sh",
            "could not find `sh` or `bash` to run `scripts/b.sh`; ask the user to install Git for Windows",
        ),
        ("c.ps1", "could not find `pwsh` or `powershell` to run `scripts/c.ps1`"),
    ] {
        let result = run(&impostors, script);
        assert!(result["message"].as_str().is_some_and(|message| message.contains(words)), "{result}");
    }
    let powershell = ["-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"];
    for (script, options) in [("a.py", &["-3"][..]), ("b.sh", &[]), ("c.ps1", &powershell)] {
        let result = run(&[&impostors[..], &["real"]].concat(), script);
        let said: Value = serde_json::from_str(result["stdout"].as_str().expect("text")).expect("JSON");
        let said: Vec<&str> = said["params"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|text| text.as_str().expect("text"))
            .collect();
        let path = said[options.len()];
        let rest = &said[options.len() + 1..];
        assert_eq!((&said[..options.len()], rest), (options, &["one", "two words"][..]), "{said:?}");
        assert!(path.ends_with(&format!(r"\scripts\{script}")) && !path.contains('/'), "{path}");
    }
    assert_eq!(run(&impostors, "d.cmd")["stdout"], "from d.cmd: one \"two words\"\r\n");
}
