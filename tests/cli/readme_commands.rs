//! Runs `try`, `doctor` and `search` on the example skills, and the command of the README.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

/// Returns the root of the repository, in which the README's commands run.
fn root() -> PathBuf {
    dunce::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

fn run(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_acp-skills-proxy");
    Command::new(program)
        .args(arguments)
        .current_dir(root())
        .env_remove("ACP_SKILLS_LOG")
        .env("XDG_CONFIG_HOME", "/nowhere")
        .output()
        .unwrap()
}

fn shown(output: &Output) -> String {
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Splits a command line into words. Quotes keep words together.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    parts
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn the_command_of_the_readme_activates_a_skill() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let line =
        readme.lines().find_map(|line| line.trim().strip_prefix("cargo run -- ")).expect("a command to run");
    let words = words(line);
    let output = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(output.status.success());
    let text = shown(&output);
    let mut rest = text.as_str();
    for part in [
        "MCP server `acp-skills` (acp)",
        "<name>code-review</name>",
        "Review src/main.rs",
        "tool call: activate_skill {\"name\":\"code-review\"}",
        "# Code review",
        "tool call: read_skill_file",
        "# Checklist",
        "the answer",
        "I activated the skill `code-review`",
        "turn ended: end_turn",
    ] {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("{part:?} is missing, or not in this order: {text}")
        };
        rest = after;
    }
}

#[test]
fn try_calls_a_tool_of_a_virtual_skill() {
    let output = run(&[
        "try",
        "--config",
        "examples/skills.yaml",
        "--prompt",
        "How long is this text?",
        "--mcp",
        "stdio",
    ]);
    assert!(output.status.success());
    let text = shown(&output);
    for part in ["(stdio)", "tool call: call_skill_tool", "Its tool `count` answered"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn try_works_without_tools() {
    let output = run(&["try", "--skill", "examples/skills/code-review", "--mcp", "off"]);
    assert!(output.status.success());
    let text = shown(&output);
    assert!(
        !text.contains("tool call") && text.contains("I have no skill tools, so I read the file"),
        "{text}"
    );
}

#[test]
fn try_needs_a_skill() {
    let output = run(&["try"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--skill DIR"));
}

fn doctor(arguments: &[&str]) -> (Option<i32>, Value) {
    let skill = ["doctor", "--json", "--skill", "examples/skills/code-review"];
    let output = run(&[&skill, arguments].concat());
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn step<'a>(report: &'a Value, name: &str) -> &'a Value {
    let steps = report["steps"].as_array().unwrap();
    steps.iter().find(|step| step["step"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
}

#[test]
fn doctor_succeeds_with_the_built_in_agent() {
    let (code, report) = doctor(&[]);
    assert_eq!((code, &report["works"]), (Some(0), &Value::from(true)), "{report}");
    for name in ["initialize", "capabilities", "transport", "placement", "session/new", "skills"] {
        assert_eq!(step(&report, name)["ok"], true, "{report}");
    }
    let (code, report) = doctor(&["--mcp", "off", "--prompt", "hello"]);
    assert_eq!(code, Some(0), "{report}");
    assert!(step(&report, "skills")["detail"].as_str().unwrap().contains("from disk"), "{report}");
}

#[test]
fn doctor_fails_with_a_broken_agent() {
    // To get a program that isn't an agent but can be run on any machine, we can run our `list` command.
    let other = [env!("CARGO_BIN_EXE_acp-skills-proxy"), "list", "--json"];
    for (agent, message) in [(&["no-such-agent-anywhere"][..], "agent not found"), (&other, "initialize")] {
        let (code, report) = doctor(&[&["--"], agent].concat());
        assert_eq!((code, &report["works"]), (Some(1), &Value::from(false)), "{report}");
        assert!(step(&report, "failed")["detail"].as_str().unwrap().contains(message), "{report}");
    }
}

#[test]
fn search_prints_matching_skills() {
    let output = run(&["search", "--skills", "examples", "review", "a", "diff"]);
    assert!(output.status.success());
    assert!(shown(&output).starts_with("code-review\n"));
    let output = run(&["search", "--json", "--skill", "examples/skills/code-review", "zebra"]);
    assert_eq!((output.status.code(), shown(&output).trim()), (Some(1), "[]"));
}
