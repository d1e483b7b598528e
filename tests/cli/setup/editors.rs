//! The paths of settings, and texts to paste into editors without a settings file.

use std::fs;

use expect_test::expect;
use serde_json::Value;

use super::machine::{Machine, PROGRAM};

#[test]
fn texts_to_paste() {
    let machine = Machine::new();
    machine.check(&["setup", "neovim", "--agent", "claude"], expect![[r#"
        CodeCompanion, in your init.lua:

        require("codecompanion").setup({
          adapters = {
            acp = {
              claude_code = function()
                return require("codecompanion.adapters").extend("claude_code", {
                  commands = {
                    default = { "PROGRAM", "--discover", "agents", "--", "npx", "--prefix", "/", "-y", "@agentclientprotocol/claude-agent-acp" },
                  },
                })
              end,
            },
          },
        })

        avante, in your init.lua (for slash commands, install nvim-cmp as well):

        require("avante").setup({
          provider = "claude-code",
          acp_providers = {
            ["claude-code"] = {
              command = "PROGRAM",
              args = { "--discover", "agents", "--", "npx", "--prefix", "/", "-y", "@agentclientprotocol/claude-agent-acp" },
            },
          },
        })
        note: skills in ~/.claude/skills are left out, because Claude loads them itself; use `--discover agents,claude` to use them through the proxy as well
        exit 0
    "#]]);
    machine.check(
        &["setup", "emacs", "--agent", "gemini"],
        expect![[r#"
            agent-shell, in your init.el:

            (setq agent-shell-google-gemini-acp-command
                  '("PROGRAM" "--discover" "claude" "--" "…/bin/npx" "--prefix" "/" "-y" "@google/gemini-cli" "--acp"))
            note: `npx` may not be in the PATH of your editor: using the full path, because the program is in …/bin
            note: skills in ~/.agents/skills are left out, because Gemini loads them itself; use `--discover agents,claude` to use them through the proxy as well
            exit 0
        "#]],
    );
    // The output is quoted for a POSIX shell, so it's different on Windows.
    #[cfg(unix)]
    machine.check(
        &["setup", "toad", "--", "my agent", "--acp"],
        expect![[r#"
            Toad, on a command line:

            toad acp 'PROGRAM --discover user -- '\''my agent'\'' --acp'
            note: `my agent` not found in PATH; check if the program is installed
            exit 0
        "#]],
    );
    machine.check(
        &["setup", "emacs", "--agent", "pi", "--undo"],
        expect![[r#"
            error: the argument '--agent <NAME>' cannot be used with '--undo'

            Usage: acp-skills-proxy setup --agent <NAME> <EDITOR> [-- <AGENT>...]

            For more information, try '--help'.
            exit 2
        "#]],
    );
    machine.check(&["setup", "emacs", "--agent", "cline"], expect![[r#"
        error: Emacs does not support this agent command
        hint: it supports claude-acp, codex-acp, gemini, github-copilot-cli, opencode, qwen-code, goose, pi-acp
        exit 2
    "#]]);
    machine.check(&["setup", "emacs"], expect![[r#"
        error: no agent given
        hint: use `acp-skills-proxy setup emacs --agent claude`, or put the agent command after `--`; use `acp-skills-proxy setup --agents` to list known agents
        exit 2
    "#]]);
}

#[test]
fn other_editors() {
    let machine = Machine::new();
    let code = if cfg!(target_os = "macos") {
        "Library/Application Support"
    } else if cfg!(windows) {
        "AppData/Roaming"
    } else {
        ".config"
    };
    machine.write(&format!("home/{code}/Code/User/settings.json"), "{\n    \"acp.agents\": {}\n}\n");
    machine.write(
        "home/.acpx/config.json",
        "{\"agents\": {\"mine\": {\"argv\": [\"./x\", \"acp\"]}}, \"ttl\": 1}\n",
    );
    let printed = machine.output(&["setup", "code", "--agent", "claude", "--yes"]);
    assert!(
        printed.contains("note: extension `formulahendry.acp-client` for VS Code is not installed"),
        "{printed}"
    );
    fs::create_dir_all(machine.path("home/.vscode/extensions/formulahendry.acp-client-0.2.0")).unwrap();
    let printed = machine.output(&["setup", "code", "--undo", "--yes"]);
    assert!(printed.ends_with("Reverted.\nexit 0\n"), "{printed}");
    let printed = machine.output(&["setup", "code", "--agent", "claude", "--yes"]);
    assert!(!printed.contains("extension `") && printed.contains("in the ACP Client panel"), "{printed}");
    machine.check(&["setup", "acpx", "--agent", "mine", "--yes"], expect![[r#"
        --- ~/.acpx/config.json
        +++ ~/.acpx/config.json
        @@ -1 +1 @@
        -{"agents": {"mine": {"argv": ["./x", "acp"]}}, "ttl": 1}
        +{"agents": {"mine": {"argv": ["PROGRAM", "--discover", "user", "--", "./x", "acp"]}}, "ttl": 1}
        Written. Use `acpx NAME` to start the agent.
        Previous settings are saved to ~/.local/state/acp-skills-proxy/setup/0003/before.json. To revert: acp-skills-proxy setup acpx --undo
        exit 0
    "#]]);
    let config: Value = serde_json::from_str(&machine.read("home/.acpx/config.json")).unwrap();
    assert_eq!(
        config["agents"]["mine"]["argv"],
        serde_json::json!([dunce::canonicalize(PROGRAM).unwrap(), "--discover", "user", "--", "./x", "acp"])
    );
}

#[cfg(target_os = "linux")]
#[test]
fn paths_of_settings() {
    let machine = Machine::new();
    let xdg = "xdg/zed/settings.json";
    let flatpak = "home/.var/app/dev.zed.Zed/config/zed/settings.json";
    let printed = |arguments: &[&str]| {
        machine.output_of(machine.command(arguments).env("XDG_CONFIG_HOME", machine.path("xdg")))
    };
    machine.write(flatpak, "{}");
    assert!(printed(&["setup", "zed", "--agent", "claude", "--yes"]).ends_with("exit 0\n"));
    assert!(machine.read(flatpak).contains("Claude with skills"));
    machine.write(xdg, "{}");
    expect![[r#"
        error: found several settings files: …/xdg/zed/settings.json, ~/.var/app/dev.zed.Zed/config/zed/settings.json
        hint: use `--file …/xdg/zed/settings.json` to select one
        exit 2
    "#]].assert_eq(&printed(&["setup", "zed", "--agent", "claude", "--yes"]));
    assert!(printed(&["setup", "zed", "--agent", "claude", "--yes", "--file", xdg]).ends_with("exit 0\n"));
    assert!(machine.read(xdg).contains("Claude with skills"));
    let undo = ["setup", "zed", "--undo", "--yes", "--file"];
    assert!(printed(&[&undo[..], &[xdg]].concat()).ends_with("exit 0\n"));
    assert_eq!(machine.read(xdg), "{}");
    // Changes are recorded per file, so we can undo one without the other.
    assert!(printed(&[&undo[..], &[flatpak]].concat()).ends_with("exit 0\n"));
    assert_eq!(machine.read(flatpak), "{}");
    let printed = machine.output_of(machine.command(&["setup"]).env("HOME", "relative"));
    assert!(printed.contains("cannot find home directory\nhint: set HOME"), "{printed}");
    // If the variable isn't set, we get the home directory from the user database of the system.
    let printed = machine.output_of(machine.command(&["setup", "--agents"]).env_remove("HOME"));
    assert!(printed.contains("claude-acp") && printed.ends_with("exit 0\n"), "{printed}");
}

/// A script in front of `PATH` gets the arguments of Jupyter AI, and starts the real agent and not itself.
#[cfg(unix)]
#[test]
fn the_commands_for_jupyter_work() {
    let machine = Machine::new();
    // The script is also found if an earlier run has put it in front of PATH.
    let scripts = "home/.local/share/acp-skills-proxy/jupyter";
    machine.program(&format!("{scripts}/claude-agent-acp"), "#!/bin/sh\nexit 3\n", "");
    machine.program("bin/claude-agent-acp", "#!/bin/sh\necho \"agent with: $*\" >&2\nexit 7\n", "");
    machine.program("bin/jupyter", "#!/bin/sh\necho \"jupyter $1\"\nclaude-agent-acp --some flag\n", "");
    let path = format!(
        "{}:{}:{}",
        machine.path(scripts).display(),
        machine.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let mut setup = machine.command(&["setup", "jupyter", "--agent", "claude"]);
    let printed = machine.output_of(setup.env("PATH", &path));
    let recipe = printed.split_once("Jupyter AI, in a terminal:\n\n").expect("a title").1;
    let recipe = recipe.split_once("\nnote: ").expect("a note").0;
    let program = dunce::canonicalize(PROGRAM).unwrap();
    let recipe =
        recipe.replace("PROGRAM", program.to_str().unwrap()).replace('…', machine.path("").to_str().unwrap());
    let mut shell = machine.command_of("/bin/sh".as_ref(), &["-c", &recipe]);
    let printed = machine.output_of(shell.env("PATH", &path));
    for words in ["jupyter lab\n", "agent with: --some flag\n", "exit 7\n"] {
        assert!(printed.contains(words), "{words:?} is not in {printed} of {recipe}");
    }
    let printed = machine.output(&["setup", "jupyter-ai", "--agent", "opencode", "--skills", "home"]);
    assert!(printed.contains("-- …/bin/npx --prefix / -y opencode-ai \"$@\"\n"), "{printed}");
    let printed = machine.output(&["setup", "jupyter", "--", "/opt/my agent", "--acp"]);
    assert!(
        printed.contains("-- '/opt/my agent' --acp\nEOF\n") && printed.contains("jupyter/'my agent' <<"),
        "{printed}"
    );
}

/// VS Code shows an agent only after a reload, and forwards ports of remote windows. An empty list of agents would be a change too.
#[test]
fn notes_and_undo_for_vs_code() {
    let machine = Machine::new();
    let file = if cfg!(target_os = "macos") {
        "home/Library/Application Support/Code/User/settings.json"
    } else if cfg!(windows) {
        "home/AppData/Roaming/Code/User/settings.json"
    } else {
        "home/.config/Code/User/settings.json"
    };
    for (before, edit, expected) in [
        ("{\n  \"a\": 1\n}\n", ("\"a\": 1", "\"a\": 2"), "{\n  \"a\": 2\n}\n"),
        ("{\n  \"a\": 1\n}\n", ("\n}\n", ",\n  \"b\": 2\n}\n"), "{\n  \"a\": 1,\n  \"b\": 2\n}\n"),
        // This list was there before.
        (
            "{\n  \"acp.agents\": {},\n  \"a\": 1\n}\n",
            ("\"a\": 1", "\"a\": 2"),
            "{\n  \"acp.agents\": {},\n  \"a\": 2\n}\n",
        ),
    ] {
        machine.write(file, before);
        let printed = machine.output(&["setup", "vscode", "--agent", "claude", "--yes"]);
        for words in ["\"remote.portsAttributes\": { \"acp-skills-proxy\"", "run `Developer: Reload Window`"]
        {
            assert!(printed.contains(words), "{words} is not in {printed}");
        }
        let edited = machine.read(file).replace(edit.0, edit.1);
        // Another edit next to our agent, so that the texts can't be merged.
        let edited = edited.replace("\"env\": {}", "\"env\": {\"X\": \"1\"}");
        machine.write(file, &edited);
        let printed = machine.output(&["setup", "vscode", "--undo", "--yes"]);
        assert!(printed.ends_with("Reverted.\nexit 0\n"), "{printed}");
        assert_eq!(machine.read(file), expected, "{edited}");
    }
}
