//! Names of agents, and the paths with which an editor finds their programs.

use std::{fs, path::Path};

use expect_test::expect;

use super::ZED;
use super::machine::{Machine, PROGRAM, ZED_FILE, copy, here};

#[test]
fn unknown_names() {
    let machine = Machine::new();
    machine.write(ZED_FILE, ZED);
    machine.check(&["setup", "zed", "--agent", "nonsense"], expect![[r#"
        error: unknown agent `nonsense`
        hint: `acp-skills-proxy setup --agents` lists the known agents; to use another one, give its command after `--`; agents in settings: `Mine`
        exit 2
    "#]]);
    machine.check(
        &["setup", "zed", "--agent", "gemni"],
        expect![[r#"
        error: unknown agent `gemni`
        hint: did you mean `gemini`? `acp-skills-proxy setup --agents` lists all agents; agents in settings: `Mine`
        exit 2
    "#]],
    );
    machine.check(
        &["setup", "zde"],
        expect![[r#"
            error: unknown editor `zde`
            hint: did you mean `zed`?
            exit 2
        "#]],
    );
    machine.check(
        &["setup", "vim"],
        expect![[r#"
            error: unknown editor `vim`
            hint: did you mean `neovim`?
            exit 2
        "#]],
    );
    machine.check(&["setup", "jetbrains"], expect![[r#"
        error: no agent given
        hint: use `acp-skills-proxy setup jetbrains --agent claude`, or put the agent command after `--`; use `acp-skills-proxy setup --agents` to list known agents
        exit 2
    "#]]);
    machine.check(&["setup", "jetbrains", "--agent", "goose"], expect![[r#"
        error: `goose` is not in PATH, and `goose` is not a package that `npx` or `uvx` could run
        hint: install it from https://block.github.io/goose; if it is installed outside of PATH, give its command after `--`: `-- /path/to/goose acp`
        exit 127
    "#]]);
    machine.check(
        &["setup", "zed", "--agent", "claude", "--skills", "nowhere", "--print"],
        expect![[r#"
            error: no such directory of skills: nowhere
            exit 2
        "#]],
    );
    machine.check(
        &["setup", "zed", "--agent", "claude", "--skill", "nowhere", "--yes"],
        expect![[r#"
            error: no such skill directory: …/nowhere
            exit 2
        "#]],
    );
    machine.check(
        &["setup", "--agent", "claude"],
        expect![[r#"
            error: no editor given
            hint: name your editor, for example `acp-skills-proxy setup zed`; `acp-skills-proxy setup` lists your editors
            exit 2
        "#]],
    );
    assert_eq!(machine.read(ZED_FILE), ZED);
}

/// Programs that are not in the PATH of editors are written with their full path, and a note says so. On Windows, editors and
/// terminals share one PATH.
#[cfg(unix)]
#[test]
fn programs_outside_of_an_editors_path() {
    let machine = Machine::new();
    let node = "home/.nvm/versions/node/v22.1.0/bin";
    let printed = |path: &[&str]| {
        let dirs = std::env::join_paths(path.iter().map(|dir| machine.path(dir))).unwrap();
        let mut command = machine.command(&["setup", "zed", "--agent", "claude", "--print"]);
        let printed = machine.output_of(command.env("PATH", dirs));
        // Remove this note, since it's not the same on all systems.
        let is_of_system = |line: &&str| line.starts_with("note: your editor may run `npx` using /usr");
        printed.split_inclusive('\n').filter(|line| !is_of_system(line)).collect::<String>()
    };
    machine.script(&format!("{node}/npx"));
    machine.script(&format!("{node}/node"));
    expect![[r#"
        --- ~/.config/zed/settings.json
        +++ ~/.config/zed/settings.json
        @@ -0,0 +1,9 @@
        +{
        +  "agent_servers": {
        +    "Claude with skills": {
        +      "type": "custom",
        +      "command": "PROGRAM",
        +      "args": ["--discover", "agents", "--", "…/home/.nvm/versions/node/v22.1.0/bin/npx", "--prefix", "/", "-y", "@agentclientprotocol/claude-agent-acp"]
        +    }
        +  }
        +}
        note: skills in ~/.claude/skills are left out, because Claude loads them itself; use `--discover agents,claude` to use them through the proxy as well
        note: `npx` may not be in the PATH of your editor: using the full path, because the program is in …/home/.nvm/versions/node/v22.1.0/bin (managed by nvm); run setup again after an update, because the path will change
        exit 0
    "#]].assert_eq(&printed(&[node]));
    // The agent is a script, and the interpreter is found in another directory.
    expect![[r#"
        --- ~/.config/zed/settings.json
        +++ ~/.config/zed/settings.json
        @@ -0,0 +1,9 @@
        +{
        +  "agent_servers": {
        +    "Claude with skills": {
        +      "type": "custom",
        +      "command": "PROGRAM",
        +      "args": ["--discover", "agents", "--", "…/home/.nvm/versions/node/v22.1.0/bin/node", "…/bin/npx", "--prefix", "/", "-y", "@agentclientprotocol/claude-agent-acp"]
        +    }
        +  }
        +}
        note: skills in ~/.claude/skills are left out, because Claude loads them itself; use `--discover agents,claude` to use them through the proxy as well
        note: `npx` needs `node`, which may not be in the PATH of your editor: using the full path, because the program is in …/home/.nvm/versions/node/v22.1.0/bin (managed by nvm); run setup again after an update, because the path will change
        note: `npx` may not be in the PATH of your editor: using the full path, because the program is in …/bin
        exit 0
    "#]].assert_eq(&printed(&["bin", node]));
    expect![[r#"
        error: `claude-acp` needs `npx` or `claude-agent-acp`, and neither is in PATH
        hint: install Node.js, which has `npx`: https://nodejs.org
        exit 127
    "#]]
    .assert_eq(&printed(&["empty"]));
    // If the editor is started from a terminal, it will use the `PATH` of that terminal, so we don't need a note.
    let mut command = machine.command(&["setup", "acpx", "--agent", "claude", "--print"]);
    expect![[r#"
        --- ~/.acpx/config.json
        +++ ~/.acpx/config.json
        @@ -0,0 +1,7 @@
        +{
        +  "agents": {
        +    "claude-skills": {
        +      "argv": ["PROGRAM", "--discover", "agents", "--", "npx", "--prefix", "/", "-y", "@agentclientprotocol/claude-agent-acp"]
        +    }
        +  }
        +}
        note: skills in ~/.claude/skills are left out, because Claude loads them itself; use `--discover agents,claude` to use them through the proxy as well
        exit 0
    "#]].assert_eq(&machine.output_of(command.env("PATH", machine.path(node))));
}

/// The cache of a package runner may be cleared, so the command of the runner is written instead of a path in its cache. In a project, npx
/// can run another program, so nothing is written for it.
#[test]
fn a_program_in_the_cache_of_a_package_runner() {
    let machine = Machine::new();
    for (place, runner) in
        [("home/.npm/_npx/0a/node_modules/p/bin", "npx"), ("home/.cache/uv/archive-v0/x/bin", "uvx")]
    {
        let program = machine.path(place).join(format!("acp-skills-proxy{}", std::env::consts::EXE_SUFFIX));
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        copy(Path::new(PROGRAM), &program);
        machine.script("bin/uvx");
        let arguments = ["setup", "acpx", "--print", "--", "my-agent"];
        let output = machine.command_of(&program, &arguments).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let note = String::from_utf8(output.stderr).unwrap();
        let expected = r#""argv": ["uvx", "acp-skills-proxy", "--discover", "user", "--", "my-agent"]"#;
        assert_eq!((printed.contains(expected), output.status.success()), (runner == "uvx", runner == "uvx"));
        assert!(note.contains(&format!("this program is in the {runner} cache")), "{note}");
        assert_eq!(note.contains("npm install --global acp-skills-proxy"), runner == "npx", "{note}");
    }
}

#[test]
fn agents_by_identifier() {
    let machine = Machine::new();
    let printed = machine.output(&["setup", "--agents"]);
    let claude = printed.lines().find(|line| line.starts_with("claude-acp ")).unwrap();
    let command = here("npx --prefix / -y @agentclientprotocol/claude-agent-acp");
    assert!(claude.contains(&command), "{claude}");
    // `--agent gemini` should run the same command.
    machine.program(
        "gemini",
        "#!/bin/sh\necho \"$0 $*\" >&2\nexit 7\n",
        "@echo gemini %* 1>&2\r\n@exit /b 7\r\n",
    );
    let name = if cfg!(windows) { "gemini.cmd" } else { "gemini" };
    copy(&machine.path(name), &machine.path("bin").join(name));
    let printed = machine.output(&["--skills", "home/.agents", "--agent", "gemini"]);
    assert!(printed.contains("gemini --acp") && printed.ends_with("exit 7\n"), "{printed}");
    machine.check(
        &["--skills", "home/.agents", "--agent", "gemni"],
        expect![[r#"
        error: unknown agent `gemni`
        hint: did you mean `gemini`? `acp-skills-proxy setup --agents` lists all agents
        exit 2
    "#]],
    );
    machine.check(&["try", "--skills", "home/.agents", "--agent", "goose"], expect![[r#"
        error: `goose` is not in PATH, and `goose` is not a package that `npx` or `uvx` could run
        hint: install it from https://block.github.io/goose; if it is installed outside of PATH, give its command after `--`: `-- /path/to/goose acp`
        exit 127
    "#]]);
    machine.check(
        &["doctor", "--skills", "home/.agents", "--agent", "kimi"],
        expect![[r#"
        error: `kimi` needs `uvx` or `kimi`, and neither is in PATH
        hint: install uv, which has `uvx`: https://docs.astral.sh/uv
        exit 127
    "#]],
    );
    // Note that the hint shows how to run the package of this agent without installing it.
    machine.check(
        &["--skills", "home/.agents", "--", "claude-agent-acp"],
        expect![[r#"
            error: agent not found: claude-agent-acp
            hint: program is not in PATH; use `--agent claude-acp` instead of `-- claude-agent-acp` to run its package with npx; editors may use a different PATH than your terminal, but an absolute path always works
                  PATH is …/bin
            exit 127
        "#]],
    );
    machine.check(
        &["--skills", "home/.agents", "claude"],
        expect![[r#"
            error: unexpected argument `claude`
            hint: use `--agent` to start an agent by name: acp-skills-proxy --skills home/.agents --agent claude
            exit 2
        "#]],
    );
    machine.check(
        &["--agent", "gemini", "--", "x"],
        expect![[r#"
        error: the argument '--agent <ID>' cannot be used with '[AGENT]...'

        Usage: acp-skills-proxy --agent <ID> [-- <AGENT>...]

        For more information, try '--help'.
        exit 2
    "#]],
    );
}
