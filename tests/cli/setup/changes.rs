//! Changes of settings, confirmation, and `--undo`.

use std::fs;
#[cfg(unix)]
use std::{
    io::{Read, Write},
    process::Stdio,
};

use expect_test::expect;

use super::ZED;
#[cfg(unix)]
use super::machine::terminal;
use super::machine::{Machine, PROGRAM, STATE, ZED_FILE, assert_private};

#[test]
fn a_change_of_zed_and_its_undo() {
    let machine = Machine::new();
    machine.write(ZED_FILE, ZED);
    machine.check(&["setup", "zed", "--agent", "claude", "--yes"], expect![[r#"
        --- ~/.config/zed/settings.json
        +++ ~/.config/zed/settings.json
        @@ -36,6 +36,14 @@
               ],
               "env": { "API_KEY": "…" },
             },
        +    "Claude with skills": {
        +      "type": "custom",
        +      "command": "PROGRAM",
        +      "args": ["--discover", "agents", "--", "…/bin/npx", "--prefix", "/", "-y", "@agentclientprotocol/claude-agent-acp"],
        +      "env": {
        +        "ANTHROPIC_MODEL": "…",
        +      },
        +    },
           },
           "telemetry": { "metrics": false },
         }
        Written. Choose the agent from the + menu in the agent panel.
        Previous settings are saved to ~/.local/state/acp-skills-proxy/setup/0001/before.json. To revert: acp-skills-proxy setup zed --undo
        note: skills in ~/.claude/skills are left out, because Claude loads them itself; use `--discover agents,claude` to use them through the proxy as well
        note: `npx` may not be in the PATH of your editor: using the full path, because the program is in …/bin
        exit 0
    "#]]);
    let settings = machine.read(ZED_FILE);
    machine.check(
        &["setup", "zed", "--agent", "claude", "--yes"],
        expect![[r#"
        No changes to ~/.config/zed/settings.json: Claude with skills uses the proxy already.
        exit 0
    "#]],
    );
    machine.check(&["setup", "zed", "--agent", "mine", "--skills", "home/.agents", "--yes"], expect![[r#"
        --- ~/.config/zed/settings.json
        +++ ~/.config/zed/settings.json
        @@ -29,8 +29,12 @@
             },
             "Mine": {
               "type": "custom",
        -      "command": "/opt/my-agent", // … … …
        +      "command": "PROGRAM", // … … …
               "args": [
        +        "--skills",
        +        "…/home/.agents",
        +        "--",
        +        "/opt/my-agent",
                 "acp",
                 /* … */ "-q",
               ],
        Written. Choose the agent from the + menu in the agent panel.
        Previous settings are saved to ~/.local/state/acp-skills-proxy/setup/0002/before.json. To revert: acp-skills-proxy setup zed --undo
        exit 0
    "#]]);
    machine.check(
        &["setup", "zed", "--undo", "--yes"],
        expect![[r#"
            --- ~/.config/zed/settings.json
            +++ ~/.config/zed/settings.json
            @@ -29,12 +29,8 @@
                 },
                 "Mine": {
                   "type": "custom",
            -      "command": "PROGRAM", // … … …
            +      "command": "/opt/my-agent", // … … …
                   "args": [
            -        "--skills",
            -        "…/home/.agents",
            -        "--",
            -        "/opt/my-agent",
                     "acp",
                     /* … */ "-q",
                   ],
            Reverted.
            exit 0
        "#]],
    );
    assert_eq!(machine.read(ZED_FILE), settings);
    assert!(machine.output(&["setup", "zed", "--undo", "--yes"]).ends_with("Reverted.\nexit 0\n"));
    assert_eq!(machine.read(ZED_FILE), ZED);
    machine.check(
        &["setup", "zed", "--undo", "--yes"],
        expect![[r#"
            No change to revert in ~/.config/zed/settings.json.
            exit 0
        "#]],
    );
    // For each change, we make a copy of the previous settings. They're in a new directory that can only be read by the owner.
    let records = machine.path(STATE).join("acp-skills-proxy/setup");
    assert_eq!(fs::read_to_string(records.join("0001/before.json")).unwrap(), ZED);
    assert_eq!(fs::read_to_string(records.join("0002/before.json")).unwrap(), settings);
    assert_private(&records);
}

/// Without an editor, `setup` lists editors, agents and skills.
#[test]
fn an_overview_of_the_machine() {
    let machine = Machine::new();
    machine.write(ZED_FILE, ZED);
    machine.output(&["setup", "zed", "--agent", "claude", "--yes"]);
    machine.output(&["setup", "zed", "--agent", "mine", "--yes"]);
    machine.check(&["setup"], expect![[r#"
        EDITOR  SETTINGS                     AGENTS
        zed     ~/.config/zed/settings.json  claude-acp (the editor's own), Mine (through the proxy), Claude with skills (through the proxy)

        No known agents found in PATH.
        To list all N known agents: acp-skills-proxy setup --agents
        Agents from npm and PyPI are started using npx and uvx (not installed).

        Found 1 skill in ~/.agents/skills. To list all: acp-skills-proxy list --discover user

        To use the proxy for an agent: acp-skills-proxy setup zed --agent claude
        exit 0
    "#]]);
}

/// Without `--agent`, all agents of the settings are changed, except for those that the editor starts itself.
#[test]
fn all_agents_of_the_settings() {
    let machine = Machine::new();
    let settings = r#"{
  "agent_servers": {
    "a": { "command": "/opt/a" },
    "claude-acp": { "type": "registry" },
    "b": { "command": "/opt/b", "args": ["acp"] }
  }
}
"#;
    machine.write(ZED_FILE, settings);
    machine.check(
        &["setup", "zed", "--print"],
        expect![[r#"
            --- ~/.config/zed/settings.json
            +++ ~/.config/zed/settings.json
            @@ -1,7 +1,7 @@
             {
               "agent_servers": {
            -    "a": { "command": "/opt/a" },
            +    "a": { "command": "PROGRAM", "args": ["--discover", "user", "--", "/opt/a"] },
                 "claude-acp": { "type": "…" },
            -    "b": { "command": "/opt/b", "args": ["acp"] }
            +    "b": { "command": "PROGRAM", "args": ["--discover", "user", "--", "/opt/b", "acp"] }
               }
             }
            exit 0
        "#]],
    );
    assert_eq!(machine.read(ZED_FILE), settings);
    machine.write(ZED_FILE, "{ \"agent_servers\": { \"claude-acp\": { \"type\": \"registry\" } } }");
    machine.check(&["setup", "zed"], expect![[r#"
        error: no agent given
        hint: use `acp-skills-proxy setup zed --agent claude-acp`, or put the agent command after `--`; use `acp-skills-proxy setup --agents` to list known agents
        exit 2
    "#]]);
}

#[test]
fn without_a_terminal_nothing_is_written() {
    let machine = Machine::new();
    machine.write(ZED_FILE, "{}");
    let printed = machine.output(&["setup", "zed", "--agent", "claude"]);
    assert!(printed.contains("+    \"Claude with skills\": {"), "{printed}");
    assert!(
        printed.ends_with(
            "error: cannot ask for confirmation, because stdin is not a terminal; no settings were changed\n\
             hint: use `--yes` to write without asking, or `--print` to show the change\nexit 2\n"
        ),
        "{printed}"
    );
    assert_eq!(machine.read(ZED_FILE), "{}");
}

// We can't run this on Windows, because opening a terminal would require unsafe code.
#[cfg(unix)]
/// Asks on a terminal, and writes only after a yes and if no other program has changed the file.
#[test]
fn writing_needs_a_confirmation() {
    for (answer, meanwhile, expected) in [
        ("y\n", None, "Written."),
        ("n\n", None, "Nothing was written."),
        ("\n", None, "Nothing was written."),
        ("y\n", Some("{ \"theirs\": 1 }"), "was changed by another program; no settings were written"),
    ] {
        let machine = Machine::new();
        machine.write(ZED_FILE, "{}");
        let (mut ours, theirs) = terminal();
        let mut child = machine
            .command(&["setup", "zed", "--agent", "claude"])
            .stdin(theirs)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let mut printed = Vec::new();
        while !printed.ends_with(b"Write this change? [y/N] ") {
            let mut byte = [0];
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&printed));
            printed.extend(byte);
        }
        if let Some(text) = meanwhile {
            machine.write(ZED_FILE, text);
        }
        ours.write_all(answer.as_bytes()).unwrap();
        stderr.read_to_end(&mut printed).unwrap();
        let output = child.wait_with_output().unwrap();
        printed.extend(output.stdout);
        let printed = String::from_utf8(printed).unwrap();
        assert!(printed.contains(expected), "{answer:?}: {printed}");
        let settings = machine.read(ZED_FILE);
        match (expected, meanwhile) {
            ("Written.", _) => assert!(settings.contains("Claude with skills")),
            (_, Some(theirs)) => {
                assert_eq!(settings, theirs);
                // Also make sure that the change wasn't recorded.
                assert!(
                    machine.output(&["setup", "zed", "--undo", "--yes"]).starts_with("No change to revert")
                );
            }
            _ => assert_eq!(settings, "{}"),
        }
    }
}

/// Agents that use the proxy already, by an old path or by a package runner.
#[test]
fn agents_behind_the_proxy_are_updated() {
    let machine = Machine::new();
    let agent = |command: &str, args: &str| {
        format!(
            "{{ \"agent_servers\": {{ \"a\": {{ \"command\": \"{command}\", \"args\": [{args}] }} }} }}\n"
        )
    };
    for (before, flags, after) in [
        (
            agent("/old/acp-skills-proxy", "\"--strict\", \"--\", \"x\""),
            &[][..],
            "\"--strict\", \"--\", \"x\"",
        ),
        (
            agent("npx", "\"-y\", \"acp-skills-proxy\", \"--strict\", \"--\", \"x\""),
            &[],
            "\"--strict\", \"--\", \"x\"",
        ),
        (
            agent("/old/acp-skills-proxy", "\"--strict\", \"--\", \"x\""),
            &["--discover", "user"],
            "\"--discover\", \"user\", \"--\", \"x\"",
        ),
    ] {
        machine.write(ZED_FILE, &before);
        let printed = machine.output(&[&["setup", "zed", "--agent", "a", "--yes"], flags].concat());
        assert!(printed.ends_with("exit 0\n"), "{printed}");
        let program = dunce::canonicalize(PROGRAM).unwrap();
        let written = program.to_str().unwrap().replace('\\', r"\\");
        assert_eq!(machine.read(ZED_FILE), agent(&written, after));
        assert!(machine.output(&["setup", "zed", "--undo", "--yes"]).ends_with("exit 0\n"));
        assert_eq!(machine.read(ZED_FILE), before);
    }
}

/// If the user has edited the settings since the change, only our change is removed.
#[test]
fn undo_keeps_later_edits() {
    let machine = Machine::new();
    machine.write(ZED_FILE, ZED);
    machine.output(&["setup", "zed", "--agent", "claude", "--yes"]);
    let edited = |text: &str| text.replace("\"ui_font_size\": 16,", "\"ui_font_size\": 18, // eyes");
    machine.write(ZED_FILE, &edited(&machine.read(ZED_FILE)));
    assert!(machine.output(&["setup", "zed", "--undo", "--yes"]).ends_with("exit 0\n"));
    assert_eq!(machine.read(ZED_FILE), edited(ZED));
    // Try to undo a change to an agent that was already removed by hand.
    machine.output(&["setup", "zed", "--agent", "claude", "--yes"]);
    machine.write(ZED_FILE, ZED);
    machine.check(
        &["setup", "zed", "--undo", "--yes"],
        expect![[r#"
        --- ~/.config/zed/settings.json
        +++ ~/.config/zed/settings.json
        Reverted.
        exit 0
    "#]],
    );
    machine.check(
        &["setup", "zed", "--undo", "--yes"],
        expect![[r#"
        No change to revert in ~/.config/zed/settings.json.
        exit 0
    "#]],
    );
    assert_eq!(machine.read(ZED_FILE), ZED);
    // The agent was added by hand, as described in the README, and not via `setup`.
    machine
        .write(ZED_FILE, r#"{"agent_servers": {"a": {"command": "acp-skills-proxy", "args": ["--", "x"]}}}"#);
    machine.check(&["setup", "zed", "--undo"], expect![[r#"
        No change to revert in ~/.config/zed/settings.json. a uses the proxy, but `setup` has no record of that change.
        exit 0
    "#]]);
}
