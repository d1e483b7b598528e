//! `setup mcp`: the server in the settings of MCP clients, and undoing it.

use std::fs;

use expect_test::expect;

use super::machine::{Machine, PROGRAM, ZED_FILE};

const CODEX: &str = "home/.codex/config.toml";

#[test]
fn a_change_of_codex_and_its_undo() {
    let machine = Machine::new();
    let before = "# mine\nmodel = \"x\" # fast\n\n[mcp_servers.other]\ncommand = \"y\"\n";
    machine.write(CODEX, before);
    machine.check(
        &["setup", "mcp", "codex", "--yes"],
        expect![[r#"
            --- ~/.codex/config.toml
            +++ ~/.codex/config.toml
            @@ -3,3 +3,7 @@

             [mcp_servers.other]
             command = "…"
            +
            +[mcp_servers.acp-skills]
            +command = "PROGRAM"
            +args = ["mcp", "--discover", "user", "--hide-native"]
            Written. Start `codex` again; `/mcp` shows the server.
            Previous settings are saved to ~/.local/state/acp-skills-proxy/setup/0001/before.json. To revert: acp-skills-proxy setup mcp codex --undo
            exit 0
        "#]],
    );
    machine.check(
        &["setup", "mcp", "codex", "--yes"],
        expect![[r#"
            No changes to ~/.codex/config.toml: the server is there already.
            exit 0
        "#]],
    );
    // Other edits are kept.
    let after = machine.read(CODEX);
    machine.write(CODEX, &format!("{after}\n[tui]\ntheme = \"z\"\n"));
    machine.check(
        &["setup", "mcp", "codex", "--undo", "--yes"],
        expect![[r#"
            --- ~/.codex/config.toml
            +++ ~/.codex/config.toml
            @@ -4,9 +4,5 @@
             [mcp_servers.other]
             command = "…"

            -[mcp_servers.acp-skills]
            -command = "PROGRAM"
            -args = ["mcp", "--discover", "user", "--hide-native"]
            -
             [tui]
             theme = "…"
            Reverted.
            exit 0
        "#]],
    );
    assert_eq!(machine.read(CODEX), format!("{before}\n[tui]\ntheme = \"z\"\n"));
    // The whole change is undone at once.
    machine.write(CODEX, before);
    machine.output(&["setup", "mcp", "codex", "--yes"]);
    machine.output(&["setup", "mcp", "codex", "--undo", "--yes"]);
    assert_eq!(machine.read(CODEX), before);
}

#[test]
fn settings_of_each_client() {
    for (client, file, expected) in [
        ("claude-code", "home/.claude.json", "\"type\": \"stdio\""),
        ("codex", CODEX, "[mcp_servers.acp-skills]"),
        ("gemini", "home/.gemini/settings.json", "\"mcpServers\""),
        ("qwen", "home/.qwen/settings.json", "\"mcpServers\""),
        ("cursor", "home/.cursor/mcp.json", "\"mcpServers\""),
        ("opencode", "home/.config/opencode/opencode.json", "\"type\": \"local\""),
        #[cfg(not(windows))]
        ("goose", "home/.config/goose/config.yaml", "extensions:\n  acp-skills:"),
        #[cfg(target_os = "linux")]
        ("vscode", "home/.config/Code/User/mcp.json", "\"servers\""),
    ] {
        let machine = Machine::new();
        let output = machine.output(&["setup", "mcp", client, "--skills", "home/.agents/skills", "--yes"]);
        assert!(output.ends_with("exit 0\n"), "{client}: {output}");
        let text = machine.read(file);
        let program = dunce::canonicalize(PROGRAM).unwrap();
        let program = serde_json::Value::from(program.to_str().unwrap()).to_string();
        for part in [expected, &program, "\"--skills\"", "\"mcp\""] {
            assert!(text.contains(part), "{client}: {part} in {text}");
        }
        // The file did not exist before.
        let output = machine.output(&["setup", "mcp", client, "--undo", "--yes"]);
        assert!(output.ends_with("exit 0\n"), "{client}: {output}");
        assert!(!machine.path(file).exists(), "{client}");
    }
}

/// The values of other entries can be secrets, and a log of the terminal would keep them.
#[test]
fn the_diff_has_no_values_of_other_entries() {
    const FILE: &str = "home/.claude.json";
    let other = r#""other": {
      "command": "x",
      "args": ["--token", "s3cret"],
      "env": { "TOKEN": "s3cret" }
    }"#;
    let indented = format!(
        "{{\n  \"oauth\": {{ \"token\": \"s3cret\" }},\n  \"mcpServers\": {{\n    {other}\n  }}\n}}\n"
    );
    let minified: String = indented.split_whitespace().collect();
    let short = r#"{"mcpServers":{"other":{"env":{"TOKEN":"s3cret"}}}}"#;
    for text in [indented.as_str(), &minified, short, r#"{"token":"s3cret","mcpServers":{}}"#] {
        let machine = Machine::new();
        machine.write(FILE, text);
        for arguments in [&["--print"][..], &["--yes"], &["--undo", "--print"], &["--undo", "--yes"]] {
            let said = machine.output(&[&["setup", "mcp", "claude-code"][..], arguments].concat());
            assert!(!said.contains("s3cret") && said.ends_with("exit 0\n"), "{arguments:?}: {said}");
            assert!(
                said.contains("\"acp-skills\"") && said.contains("\"--discover\""),
                "{arguments:?}: {said}"
            );
        }
        assert_eq!(machine.read(FILE), text);
    }
}

#[test]
fn settings_of_a_project() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("home")).unwrap();
    machine.write(".mcp.json", "{\n  \"mcpServers\": {}\n}\n");
    machine.check(
        &["setup", "mcp", "claude-code", "--project", "--name", "team", "--yes"],
        expect![[r#"
            --- …/.mcp.json
            +++ …/.mcp.json
            @@ -1,3 +1,9 @@
             {
            -  "mcpServers": {}
            +  "mcpServers": {
            +    "team": {
            +      "type": "stdio",
            +      "command": "PROGRAM",
            +      "args": ["mcp", "--discover", "user", "--hide-native"]
            +    }
            +  }
             }
            Written. Start `claude` again; `/mcp` shows the server.
            Previous settings are saved to ~/.local/state/acp-skills-proxy/setup/0001/before.json. To revert: acp-skills-proxy setup mcp claude-code --project --undo
            exit 0
        "#]],
    );
    machine.check(
        &["setup", "mcp", "claude", "--project", "--undo", "--yes"],
        expect![[r#"
            --- …/.mcp.json
            +++ …/.mcp.json
            @@ -1,9 +1,3 @@
             {
            -  "mcpServers": {
            -    "team": {
            -      "type": "stdio",
            -      "command": "PROGRAM",
            -      "args": ["mcp", "--discover", "user", "--hide-native"]
            -    }
            -  }
            +  "mcpServers": {}
             }
            Reverted.
            exit 0
        "#]],
    );
    machine.check(
        &["setup", "mcp", "goose", "--project", "--yes"],
        expect![[r#"
            error: Goose has no settings for a project that `setup` could change
            hint: leave out `--project`
            exit 2
        "#]],
    );
}

#[test]
fn mistakes() {
    let machine = Machine::new();
    machine.write(
        "home/.gemini/settings.json",
        "{ \"mcpServers\": { \"acp-skills\": { \"command\": \"other\" } } }",
    );
    machine.write("home/.claude.json", "{ broken");
    machine.check(
        &["setup", "mcp", "gemini", "--yes"],
        expect![[r#"
            error: ~/.gemini/settings.json already contains another server `acp-skills`
            hint: use `--name` to select another name
            exit 2
        "#]],
    );
    machine.check(
        &["setup", "mcp", "claude", "--yes"],
        expect![[r#"
            error: …/home/.claude.json:1:3: invalid JSON: Expected string for object property
            hint: no settings were changed; fix the file and retry, or edit it by hand
            exit 2
        "#]],
    );
    machine.check(
        &["setup", "mcp", "gemni"],
        expect![[r#"
            error: unknown MCP client `gemni`
            hint: did you mean `gemini`?
            exit 2
        "#]],
    );
    machine.check(
        &["setup", "mcp", "gemini", "--name", "a b", "--yes"],
        expect![[r#"
            error: `a b` is not a valid name for a server
            hint: use letters, digits, `-` and `_`
            exit 2
        "#]],
    );
    machine.check(
        &["setup", "mcp", "gemini", "--agent", "claude"],
        expect![[r#"
            error: an MCP client has no agent to set up
            hint: use `acp-skills-proxy setup mcp gemini` without an agent
            exit 2
        "#]],
    );
    machine.check(
        &["setup", "zed", "--project"],
        expect![[r#"
            error: `--project` is only for MCP clients, not for the editor `zed`
            hint: use `acp-skills-proxy setup mcp CLIENT --project`
            exit 2
        "#]],
    );
    machine.check(
        &["setup", "mcp", "codex"],
        expect![[r#"
            --- ~/.codex/config.toml
            +++ ~/.codex/config.toml
            @@ -0,0 +1,3 @@
            +[mcp_servers.acp-skills]
            +command = "PROGRAM"
            +args = ["mcp", "--discover", "user", "--hide-native"]
            error: cannot ask for confirmation, because stdin is not a terminal; no settings were changed
            hint: use `--yes` to write without asking, or `--print` to show the change
            exit 2
        "#]],
    );
    machine.check(
        &["setup", "mcp"],
        expect![[r#"
            CLIENT       SETTINGS                          SKILLS
            claude-code  ~/.claude.json                    1:3: invalid JSON: Expected string for object property
            codex        ~/.codex/config.toml              (no file yet)
            gemini       ~/.gemini/settings.json           yes
            qwen         ~/.qwen/settings.json             (no file yet)
            cursor       ~/.cursor/mcp.json                (no file yet)
            vscode       ~/.config/Code/User/mcp.json      (no file yet)
            opencode     ~/.config/opencode/opencode.json  (no file yet)
            goose        ~/.config/goose/config.yaml       (no file yet)

            To serve your skills to a client: acp-skills-proxy setup mcp claude-code
            exit 0
        "#]],
    );
    assert_eq!(machine.read("home/.claude.json"), "{ broken");
    assert!(!machine.path(CODEX).exists());
}

#[test]
fn a_file_that_the_user_has_removed_is_not_created_again() {
    for before in [None, Some("{\"a\": 1}\n")] {
        let gemini: &[&str] = &["setup", "mcp", "gemini"];
        let zed: &[&str] = &["setup", "zed"];
        for (target, agent, file) in
            [(gemini, &[][..], "home/.gemini/settings.json"), (zed, &["--agent", "claude"], ZED_FILE)]
        {
            let machine = Machine::new();
            if let Some(before) = before {
                machine.write(file, before);
            }
            let output = machine.output(&[target, agent, &["--yes"]].concat());
            assert!(output.ends_with("exit 0\n") && machine.path(file).exists(), "{output}");
            fs::remove_file(machine.path(file)).unwrap();
            let undo = [target, &["--undo", "--yes"]].concat();
            for _ in 0..2 {
                let output = machine.output(&undo);
                assert!(
                    output.starts_with("No change to revert") && output.ends_with("exit 0\n"),
                    "{output}"
                );
            }
            assert!(!machine.path(file).exists(), "{target:?}");
        }
    }
}

#[test]
fn a_variable_that_names_a_directory_selects_the_settings() {
    for (client, variable, other, expected) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", "home/.claude.json", "moved/.claude.json"),
        ("codex", "CODEX_HOME", CODEX, "moved/config.toml"),
        (
            "opencode",
            "XDG_CONFIG_HOME",
            "home/.config/opencode/opencode.json",
            "moved/opencode/opencode.json",
        ),
        #[cfg(not(windows))]
        ("goose", "XDG_CONFIG_HOME", "home/.config/goose/config.yaml", "moved/goose/config.yaml"),
    ] {
        let machine = Machine::new();
        machine.write(other, "");
        let mut command = machine.command(&["setup", "mcp", client, "--yes"]);
        let output = machine.output_of(command.env(variable, machine.path("moved")));
        assert!(output.ends_with("exit 0\n"), "{client}: {output}");
        assert!(machine.read(expected).contains("acp-skills"), "{client}");
        assert_eq!(machine.read(other), "", "{client}");
    }
}

#[test]
fn keys_that_the_user_has_added_to_the_server_are_kept() {
    let machine = Machine::new();
    let file = "home/.gemini/settings.json";
    machine.output(&["setup", "mcp", "gemini", "--yes"]);
    let text =
        machine.read(file).replace("\"command\"", "\"trust\": true, \"env\": {\"A\": \"1\"}, \"command\"");
    machine.write(file, &text);
    let output = machine.output(&["setup", "mcp", "gemini", "--skills", "home/.agents/skills", "--yes"]);
    assert!(output.ends_with("exit 0\n"), "{output}");
    let server: serde_json::Value = serde_json::from_str(&machine.read(file)).unwrap();
    let server = &server["mcpServers"]["acp-skills"];
    assert!(
        server["trust"] == true && server["env"]["A"] == "1" && server["args"][1] == "--skills",
        "{server}"
    );
}
