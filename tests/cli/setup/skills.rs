//! The skills and files in the settings: skills that the agent loads itself, sources, and the files of the proxy.

use std::env;

use expect_test::expect;

use super::machine::{Machine, ZED_FILE};

const NONE: &str = "{}\n";

/// Skills that an agent loads itself would be in its context twice.
#[test]
fn skills_that_the_agent_loads_itself_are_left_out() {
    let machine = Machine::new();
    machine.write(ZED_FILE, NONE);
    for (agent, flags, expected, note) in [
        (
            "claude",
            &[][..],
            "--discover agents --",
            "note: skills in ~/.claude/skills are left out, because Claude",
        ),
        (
            "codex",
            &[],
            "--discover claude --",
            "note: skills in ~/.agents/skills are left out, because Codex",
        ),
        ("qwen", &[], "--discover user --", ""),
        (
            "claude",
            &["--discover", "user,project"],
            "--discover agents,project --",
            "note: skills in ~/.claude",
        ),
        ("claude", &["--discover", "agents,claude"], "--discover agents,claude --", ""),
        ("claude", &["--discover", "project"], "--discover project --", ""),
        (
            "opencode",
            &["--discover", "user", "--skills", "home"],
            "--skills …/home --",
            "note: skills in ~/.agents/skills and",
        ),
        (
            "opencode",
            &["--discover", "user,project"],
            "--discover project --",
            "note: skills in ~/.agents/skills and",
        ),
    ] {
        let printed = machine.output(&[&["setup", "zed", "--print", "--agent", agent], flags].concat());
        let words: String = printed.lines().filter_map(|line| line.strip_prefix('+')).collect();
        let words =
            words.replace("\",", "").replace('"', "").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{agent} {flags:?}: {printed}");
        assert!(
            printed.contains(note) && printed.contains("left out") != note.is_empty(),
            "{agent}: {printed}"
        );
    }
    machine.check(&["setup", "zed", "--agent", "opencode"], expect![[r#"
        error: OpenCode loads the skills in ~/.agents/skills and ~/.claude/skills itself
        hint: use `--skills DIR` to add the skills of another directory, or `--discover agents,claude` to use these through the proxy as well
        exit 2
    "#]]);
    let printed = machine.output(&["setup", "toad", "--agent", "claude"]);
    assert!(printed.contains("--discover agents --") && printed.contains("note: skills in"), "{printed}");
    // No agent loads the skills in the directory for configuration.
    machine.write("home/.config/agents/skills/bye/SKILL.md", "---\nname: bye\ndescription: d\n---\nBody\n");
    for (agent, expected) in [
        ("opencode", "--discover config --"),
        ("codex", "--discover config,claude --"),
        ("claude", "--discover agents --"),
    ] {
        let printed = machine.output(&["setup", "toad", "--agent", agent]);
        assert!(printed.contains(expected), "{agent}: {printed}");
    }
}

/// If all agents are changed, one that has all of the skills already is no error.
#[test]
fn an_agent_that_loads_all_skills_itself_is_left_alone() {
    let machine = Machine::new();
    let settings = r#"{ "agent_servers": { "a": { "command": "opencode", "args": ["acp"] }, "b": { "command": "x" } } }"#;
    machine.write(ZED_FILE, settings);
    let printed = machine.output(&["setup", "zed", "--yes"]);
    assert!(printed.contains("note: unchanged: `a`: OpenCode loads the skills in"), "{printed}");
    let written = machine.read(ZED_FILE);
    assert!(written.contains(r#""command": "opencode""#) && written.contains("--discover"), "{written}");
    machine
        .write(ZED_FILE, r#"{ "agent_servers": { "a": { "command": "/opt/opencode", "args": ["acp"] } } }"#);
    machine.check(
        &["setup", "zed", "--yes"],
        expect![[r#"
        error: no agent to change in ~/.config/zed/settings.json
        hint: unchanged: `a`: OpenCode loads the skills in ~/.agents/skills and ~/.claude/skills itself
        exit 2
    "#]],
    );
}

/// The parts of `--discover user` are searched as the whole is.
#[test]
fn parts_of_the_directories_of_the_user() {
    let machine = Machine::new();
    machine.write(
        "home/.claude/skills/hello/SKILL.md",
        "---\nname: hello\ndescription: Says hello.\n---\nBody\n",
    );
    machine.write(
        "home/.config/agents/skills/bye/SKILL.md",
        "---\nname: bye\ndescription: Says bye.\n---\nBody\n",
    );
    for (places, expected) in [
        ("user", &["bye", "greet", "hello"][..]),
        ("agents", &["bye", "greet"]),
        ("config", &["bye"]),
        ("claude", &["hello"]),
        ("claude,agents", &["bye", "greet", "hello"]),
    ] {
        let printed = machine.output(&["list", "--discover", places]);
        let found: Vec<_> = ["bye", "greet", "hello"]
            .into_iter()
            .filter(|name| printed.contains(&format!("\n{name} ")))
            .collect();
        assert_eq!(found, expected, "{places}: {printed}");
    }
}

#[test]
fn files_of_the_proxy() {
    let machine = Machine::new();
    machine.write(ZED_FILE, NONE);
    let flags = ["--log-file", "log", "--events", "~/events.jsonl"];
    let printed = machine.output(&[&["setup", "zed", "--agent", "qwen", "--yes"], &flags[..]].concat());
    assert!(printed.ends_with("exit 0\n"), "{printed}");
    let written: serde_json::Value = serde_json::from_str(&machine.read(ZED_FILE)).unwrap();
    let entry = written["agent_servers"].as_object().unwrap().values().next().unwrap().clone();
    let words: Vec<_> = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let (log, events) = (machine.path("log"), machine.path("home").join("events.jsonl"));
    let (log, events) = (log.to_str().unwrap(), events.to_str().unwrap());
    let expected = ["--discover", "user", "--log-file", log, "--events", events, "--"];
    assert_eq!(&words[..7], &expected);
}

/// The skills of a source are in a cache directory, whose path tells nothing.
#[test]
fn the_overview_names_sources() {
    let machine = Machine::new();
    let repository = machine.path("repository");
    machine.write("repository/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads PDF.\n---\nBody\n");
    let path = env::var_os("PATH").unwrap();
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "."],
        &["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "Add"],
    ] {
        let mut git = machine.command_of("git".as_ref(), arguments);
        let status = git.current_dir(&repository).env("PATH", &path).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    }
    let address = format!("git+file://{}", repository.display());
    if cfg!(windows) {
        // The address of a directory has another form there.
        return;
    }
    let mut add = machine.command(&["add", &address, "--yes"]);
    let added = machine.output_of(add.env("PATH", &path).env_remove("XDG_CACHE_HOME"));
    assert!(added.ends_with("exit 0\n"), "{added}");
    let mut setup = machine.command(&["setup"]);
    let printed = machine.output_of(setup.env("PATH", &path).env_remove("XDG_CACHE_HOME"));
    assert!(printed.contains("Found 2 skills in ~/.agents/skills, git+file://…/repository."), "{printed}");
}
