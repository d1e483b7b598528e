//! Which agent is meant, and how an editor finds it.

use std::{fs, path::Path};

use expect_test::expect;

use super::ZED;
use super::machine::{Machine, PROGRAM, ZED_FILE, copy};

#[test]
fn names_that_are_not_known() {
    let machine = Machine::new();
    machine.write(ZED_FILE, ZED);
    machine.check(&["setup", "zed", "--agent", "nonsense"], expect![[r#"
        error: no agent is known as `nonsense`
        hint: `acp-skills-proxy setup --agents` lists the known agents; to use another one, give its command after `--`; the settings have `Mine`
        exit 2
    "#]]);
    machine.check(
        &["setup", "zed", "--agent", "gemni"],
        expect![[r#"
        error: no agent is known as `gemni`
        hint: did you mean `gemini`? `acp-skills-proxy setup --agents` lists all agents; the settings have `Mine`
        exit 2
    "#]],
    );
    machine.check(
        &["setup", "zde"],
        expect![[r#"
        error: no editor is known as `zde`
        hint: did you mean `zed`?
        exit 2
    "#]],
    );
    machine.check(
        &["setup", "vim"],
        expect![[r#"
        error: no editor is known as `vim`
        hint: did you mean `neovim`?
        exit 2
    "#]],
    );
    machine.check(&["setup", "jetbrains"], expect![[r#"
        error: which agent?
        hint: `acp-skills-proxy setup jetbrains --agent claude`, for example; `acp-skills-proxy setup --agents` lists those that are known, and the command of any other goes after `--`
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
        error: cannot look for skills in nowhere: there is no such directory
        exit 2
    "#]],
    );
    machine.check(
        &["setup", "zed", "--agent", "claude", "--skill", "nowhere", "--yes"],
        expect![[r#"
        error: cannot load the skill in …/nowhere
          …/nowhere: error[no-such-directory]: there is no such directory
        exit 2
    "#]],
    );
    machine.check(
        &["setup", "--agent", "claude"],
        expect![[r#"
        error: the following required arguments were not provided:
          <EDITOR>

        Usage: acp-skills-proxy setup --agent <NAME> <EDITOR> [-- <AGENT>...]

        For more information, try '--help'.
        exit 2
    "#]],
    );
    assert_eq!(machine.read(ZED_FILE), ZED);
}

/// What an editor's PATH will not have is written with its directory, and named. On Windows editors have the PATH of
/// terminals.
#[cfg(unix)]
#[test]
fn programs_that_an_editor_does_not_find() {
    let machine = Machine::new();
    let node = "home/.nvm/versions/node/v22.1.0/bin";
    let said = |path: &[&str]| {
        let dirs = std::env::join_paths(path.iter().map(|dir| machine.path(dir))).unwrap();
        let mut command = machine.command(&["setup", "zed", "--agent", "claude", "--print"]);
        let said = machine.said_by(command.env("PATH", dirs));
        // Whether this machine has a node of its own.
        let is_of_machine = |line: &&str| line.starts_with("note: in an editor `npx` may be run by /usr");
        said.split_inclusive('\n').filter(|line| !is_of_machine(line)).collect::<String>()
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
        +      "args": ["--discover", "user", "--", "…/home/.nvm/versions/node/v22.1.0/bin/npx", "-y", "@agentclientprotocol/claude-agent-acp"]
        +    }
        +  }
        +}
        note: an editor may not have `npx` in its PATH: it is in …/home/.nvm/versions/node/v22.1.0/bin, of nvm; written with its directory, which another version changes, so run this again then
        exit 0
    "#]].assert_eq(&said(&[node]));
    // A script in one place, and what runs it in another.
    expect![[r#"
        --- ~/.config/zed/settings.json
        +++ ~/.config/zed/settings.json
        @@ -0,0 +1,9 @@
        +{
        +  "agent_servers": {
        +    "Claude with skills": {
        +      "type": "custom",
        +      "command": "PROGRAM",
        +      "args": ["--discover", "user", "--", "…/home/.nvm/versions/node/v22.1.0/bin/node", "…/bin/npx", "-y", "@agentclientprotocol/claude-agent-acp"]
        +    }
        +  }
        +}
        note: `npx` is run by `node`, which an editor may not have in its PATH: it is in …/home/.nvm/versions/node/v22.1.0/bin, of nvm; written with its directory, which another version changes, so run this again then
        note: an editor may not have `npx` in its PATH: it is in …/bin; written with its directory
        exit 0
    "#]].assert_eq(&said(&["bin", node]));
    expect![[r#"
        error: `claude-acp` needs `npx` or `claude-agent-acp`, and neither is in PATH
        hint: install Node.js, which has `npx`: https://nodejs.org
        exit 127
    "#]]
    .assert_eq(&said(&["empty"]));
    // Who is started on a terminal has its PATH.
    let mut command = machine.command(&["setup", "acpx", "--agent", "claude", "--print"]);
    expect![[r#"
        --- ~/.acpx/config.json
        +++ ~/.acpx/config.json
        @@ -0,0 +1,7 @@
        +{
        +  "agents": {
        +    "claude-skills": {
        +      "argv": ["PROGRAM", "--discover", "user", "--", "npx", "-y", "@agentclientprotocol/claude-agent-acp"]
        +    }
        +  }
        +}
        exit 0
    "#]].assert_eq(&machine.said_by(command.env("PATH", machine.path(node))));
}

/// A program that a runner of packages has in its cache will not be there for long.
#[test]
fn a_program_that_vanishes() {
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
        let said = String::from_utf8(output.stdout).unwrap();
        let note = String::from_utf8(output.stderr).unwrap();
        let start = if runner == "npx" { r#""npx", "-y""# } else { r#""uvx""# };
        let expected =
            format!(r#""argv": [{start}, "acp-skills-proxy", "--discover", "user", "--", "my-agent"]"#);
        assert!(said.contains(&expected), "{said}");
        assert!(note.contains(&format!("this program lies in the cache of {runner}")), "{note}");
    }
}

#[test]
fn agents_by_identifier() {
    let machine = Machine::new();
    let said = machine.said(&["setup", "--agents"]);
    let claude = said.lines().find(|line| line.starts_with("claude-acp ")).unwrap();
    assert!(claude.contains("npx -y @agentclientprotocol/claude-agent-acp"), "{claude}");
    // It is started the same as by its command.
    machine.program(
        "gemini",
        "#!/bin/sh\necho \"$0 $*\" >&2\nexit 7\n",
        "@echo gemini %* 1>&2\r\n@exit /b 7\r\n",
    );
    let name = if cfg!(windows) { "gemini.cmd" } else { "gemini" };
    copy(&machine.path(name), &machine.path("bin").join(name));
    let said = machine.said(&["--skills", "home/.agents", "--agent", "gemini"]);
    assert!(said.contains("gemini --acp") && said.ends_with("exit 7\n"), "{said}");
    machine.check(
        &["--skills", "home/.agents", "--agent", "gemni"],
        expect![[r#"
        error: no agent is known as `gemni`
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
    // Who has not installed it hears that it need not be.
    machine.check(
        &["--skills", "home/.agents", "--", "claude-agent-acp"],
        expect![[r#"
        error: cannot start the agent `claude-agent-acp`: No such file or directory (os error 2)
        hint: it is not in PATH, which is …/bin
              `--agent claude-acp` in place of `-- claude-agent-acp` runs its package with npx
              (an editor may have another PATH than a terminal: give the program with its directory)
        exit 127
    "#]],
    );
    machine.check(
        &["--skills", "home/.agents", "claude"],
        expect![[r#"
        error: `claude` is not expected here
        hint: an agent by its name has a flag: acp-skills-proxy --skills home/.agents --agent claude
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
