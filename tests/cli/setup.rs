//! `setup`: the settings of editors, in a home directory of the test's own.

mod machine;

use std::{fs, path::Path};
#[cfg(unix)]
use std::{
    io::{Read, Write},
    os::unix::fs::symlink,
    process::Stdio,
};

use expect_test::expect;
use serde_json::Value;

use machine::{Machine, PROGRAM, STATE, ZED_FILE, assert_private, copy, here, set_read_only};
#[cfg(unix)]
use machine::{mode, set_mode, terminal};

/// Settings as somebody has them: comments, trailing commas, blank lines.
const ZED: &str = include_str!("zed-settings.json");

#[test]
fn zed_and_back() {
    let machine = Machine::new();
    machine.write(ZED_FILE, ZED);
    machine.check(&["setup", "zed", "--agent", "claude", "--yes"], expect![[r#"
        --- ~/.config/zed/settings.json
        +++ ~/.config/zed/settings.json
        @@ -36,6 +36,14 @@
               ],
               "env": { "API_KEY": "not for everybody" },
             },
        +    "Claude with skills": {
        +      "type": "custom",
        +      "command": "PROGRAM",
        +      "args": ["--discover", "user", "--", "…/bin/npx", "-y", "@agentclientprotocol/claude-agent-acp"],
        +      "env": {
        +        "ANTHROPIC_MODEL": "opus",
        +      },
        +    },
           },
           "telemetry": { "metrics": false },
         }
        Written. Choose it behind the + of the agent panel.
        What was there before is in ~/.local/state/acp-skills-proxy/setup/0001/before.json. To take it back: acp-skills-proxy setup zed --undo
        note: an editor may not have `npx` in its PATH: it is in …/bin; written with its directory
        exit 0
    "#]]);
    let settings = machine.read(ZED_FILE);
    machine.check(
        &["setup", "zed", "--agent", "claude", "--yes"],
        expect![[r#"
        Nothing to change in ~/.config/zed/settings.json: Claude with skills goes through the proxy already.
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
        -      "command": "/opt/my-agent", // built at home
        +      "command": "PROGRAM", // built at home
               "args": [
        +        "--skills",
        +        "…/home/.agents",
        +        "--",
        +        "/opt/my-agent",
                 "acp",
                 /* quiet */ "-q",
               ],
        Written. Choose it behind the + of the agent panel.
        What was there before is in ~/.local/state/acp-skills-proxy/setup/0002/before.json. To take it back: acp-skills-proxy setup zed --undo
        exit 0
    "#]]);
    machine.check(&["setup"], expect![[r#"
        EDITOR  SETTINGS                     AGENTS
        zed     ~/.config/zed/settings.json  claude-acp (the editor's own), Mine (through the proxy), Claude with skills (through the proxy)

        No agent that is known by name is in your PATH.
        N agents are known by name (`acp-skills-proxy setup --agents`); packages of npm and PyPI are run by npx and uvx (not here).

        1 skill of your own in ~/.agents/skills: `acp-skills-proxy list --discover user` shows them.

        To put the proxy in front of an agent: acp-skills-proxy setup zed --agent claude
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
        -      "command": "PROGRAM", // built at home
        +      "command": "/opt/my-agent", // built at home
               "args": [
        -        "--skills",
        -        "…/home/.agents",
        -        "--",
        -        "/opt/my-agent",
                 "acp",
                 /* quiet */ "-q",
               ],
        Taken back.
        exit 0
    "#]],
    );
    assert_eq!(machine.read(ZED_FILE), settings);
    assert!(machine.said(&["setup", "zed", "--undo", "--yes"]).ends_with("Taken back.\nexit 0\n"));
    assert_eq!(machine.read(ZED_FILE), ZED);
    machine.check(
        &["setup", "zed", "--undo", "--yes"],
        expect![[r#"
        Nothing to take back in ~/.config/zed/settings.json.
        exit 0
    "#]],
    );
    // What was there is kept, each time in a place of its own, and for its owner alone.
    let records = machine.path(STATE).join("acp-skills-proxy/setup");
    assert_eq!(fs::read_to_string(records.join("0001/before.json")).unwrap(), ZED);
    assert_eq!(fs::read_to_string(records.join("0002/before.json")).unwrap(), settings);
    assert_private(&records);
}

/// All agents of the settings in one step.
#[test]
fn every_agent() {
    let machine = Machine::new();
    machine.write(ZED_FILE, ZED);
    machine.check(
        &["setup", "zed", "--print"],
        expect![[r#"
        --- ~/.config/zed/settings.json
        +++ ~/.config/zed/settings.json
        @@ -29,8 +29,12 @@
             },
             "Mine": {
               "type": "custom",
        -      "command": "/opt/my-agent", // built at home
        +      "command": "PROGRAM", // built at home
               "args": [
        +        "--discover",
        +        "user",
        +        "--",
        +        "/opt/my-agent",
                 "acp",
                 /* quiet */ "-q",
               ],
        exit 0
    "#]],
    );
    assert_eq!(machine.read(ZED_FILE), ZED);
    machine.write(ZED_FILE, "{ \"agent_servers\": { \"claude-acp\": { \"type\": \"registry\" } } }");
    machine.check(&["setup", "zed"], expect![[r#"
        error: which agent?
        hint: `acp-skills-proxy setup zed --agent claude-acp`, for example; `acp-skills-proxy setup --agents` lists those that are known, and the command of any other goes after `--`
        exit 2
    "#]]);
}

#[test]
fn nobody_to_ask() {
    let machine = Machine::new();
    machine.write(ZED_FILE, "{}");
    let said = machine.said(&["setup", "zed", "--agent", "claude"]);
    assert!(said.contains("+    \"Claude with skills\": {"), "{said}");
    assert!(
        said.ends_with(
            "error: nothing was written, because nobody can be asked: stdin is no terminal\n\
             hint: `--yes` writes without asking, `--print` only shows\nexit 2\n"
        ),
        "{said}"
    );
    assert_eq!(machine.read(ZED_FILE), "{}");
}

// A terminal of the test's own takes unsafe code on Windows.
#[cfg(unix)]
/// Asks on a terminal, and writes only after a yes, and only when nobody else has written.
#[test]
fn asked() {
    for (answer, meanwhile, expected) in [
        ("y\n", None, "Written."),
        ("n\n", None, "Nothing was written."),
        ("\n", None, "Nothing was written."),
        (
            "y\n",
            Some("{ \"theirs\": 1 }"),
            "was changed by somebody else in the meantime, so nothing was written",
        ),
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
        let mut said = Vec::new();
        while !said.ends_with(b"Write this? [y/N] ") {
            let mut byte = [0];
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&said));
            said.extend(byte);
        }
        if let Some(text) = meanwhile {
            machine.write(ZED_FILE, text);
        }
        ours.write_all(answer.as_bytes()).unwrap();
        stderr.read_to_end(&mut said).unwrap();
        let output = child.wait_with_output().unwrap();
        said.extend(output.stdout);
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains(expected), "{answer:?}: {said}");
        let settings = machine.read(ZED_FILE);
        match (expected, meanwhile) {
            ("Written.", _) => assert!(settings.contains("Claude with skills")),
            (_, Some(theirs)) => {
                assert_eq!(settings, theirs);
                // It is not there to be taken back either.
                assert!(
                    machine.said(&["setup", "zed", "--undo", "--yes"]).starts_with("Nothing to take back")
                );
            }
            _ => assert_eq!(settings, "{}"),
        }
    }
}

#[test]
fn names_that_are_not_known() {
    let machine = Machine::new();
    machine.write(ZED_FILE, ZED);
    machine.check(&["setup", "zed", "--agent", "nonsense"], expect![[r#"
        error: no agent is known as `nonsense`
        hint: `acp-skills-proxy setup --agents` lists those that are; the command of any other goes after `--`; the settings have `Mine`
        exit 2
    "#]]);
    machine.check(
        &["setup", "zed", "--agent", "gemni"],
        expect![[r#"
        error: no agent is known as `gemni`
        hint: did you mean `gemini`? `acp-skills-proxy setup --agents` lists all; the settings have `Mine`
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
        error: `goose` is not in PATH, and `goose` is no package that `npx` or `uvx` could run
        hint: install it from https://block.github.io/goose; when it is not in PATH, give its command after `--`: `-- /path/to/goose acp`
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

#[test]
fn settings_that_are_left_alone() {
    let machine = Machine::new();
    for (text, expected) in [
        (
            "{\n  \"theme\": \"One\"\n  \"vim_mode\": true\n}\n",
            expect![[r#"
            error: …/home/.config/zed/settings.json:2:17: this is no valid JSON: expected comma
            hint: nothing was changed; correct it in the editor, then run this again
            exit 2
        "#]],
        ),
        (
            "{ \"agent_servers\": [] }",
            expect![[r#"
            error: …/home/.config/zed/settings.json:1:20: `agent_servers` is not an object `{ … }`
            hint: nothing was changed; correct it in the editor, then run this again
            exit 2
        "#]],
        ),
        (
            "{\n\"agent_servers\": {},\n\"agent_servers\": {}\n}",
            expect![[r#"
            error: …/home/.config/zed/settings.json:3:1: `agent_servers` is here a second time; the first is in line 2
            hint: nothing was changed; correct it in the editor, then run this again
            exit 2
        "#]],
        ),
        (
            "[]",
            expect![[r#"
            error: …/home/.config/zed/settings.json:1:1: the settings are not an object `{ … }`
            hint: nothing was changed; correct it in the editor, then run this again
            exit 2
        "#]],
        ),
        (
            "{ \"agent_servers\": { \"claude\": { \"command\": {\"path\": \"x\"} } } }",
            expect![[r#"
            error: …/home/.config/zed/settings.json:1:45: `command` of the agent `claude` is not a text
            hint: nothing was changed; correct it in the editor, then run this again
            exit 2
        "#]],
        ),
        (
            "{ \"agent_servers\": { \"Claude with skills\": { \"command\": \"x\" } } }",
            expect![[r#"
            error: there is an agent `Claude with skills` in line 1
            hint: `--agent 'Claude with skills'` puts the proxy in front of that one; `--name` calls the new one something else
            exit 2
        "#]],
        ),
    ] {
        machine.write(ZED_FILE, text);
        machine.check(&["setup", "zed", "--agent", "claude", "--yes"], expected);
        assert_eq!(machine.read(ZED_FILE), text);
    }
    // A file that a program makes, such as home-manager.
    machine.write(ZED_FILE, "{}");
    let path = machine.path(ZED_FILE);
    set_read_only(&path);
    let said = machine.said(&["setup", "zed", "--agent", "claude", "--yes"]);
    let expected = here("error: …/home/.config/zed/settings.json is read-only\nhint: where a program");
    assert!(said.contains(&expected), "{said}");
    assert_eq!(machine.read(ZED_FILE), "{}");
    // Elsewhere, so that it need not be removed.
    fs::rename(&path, path.with_extension("old")).unwrap();
    // To make one takes a privilege on Windows.
    #[cfg(unix)]
    {
        symlink("nowhere", &path).unwrap();
        let said = machine.said(&["setup", "zed", "--agent", "claude", "--yes"]);
        assert!(said.contains("settings.json is a link to nowhere, which is not there"), "{said}");
        fs::remove_file(&path).unwrap();
    }
    fs::create_dir(&path).unwrap();
    let said = machine.said(&["setup", "zed", "--agent", "claude", "--yes"]);
    let expected = here("cannot read …/home/.config/zed/settings.json: it is no file");
    assert!(said.contains(&expected), "{said}");
}

/// Files that are not there, are empty, or lie in a repository of dotfiles.
#[test]
fn files_of_all_kinds() {
    let machine = Machine::new();
    let setup = |flag| machine.said(&["setup", "jetbrains", "--agent", "claude", "--yes", flag]);
    let (there, file) = ("home/.jetbrains/acp.json", machine.path("home/.jetbrains/acp.json"));
    let undo = || machine.said(&["setup", "jetbrains", "--undo", "--yes"]);
    assert!(setup("--strict").ends_with("exit 0\n"));
    let settings: Value = serde_json::from_str(&machine.read(there)).unwrap();
    let agent = &settings["agent_servers"]["Claude with skills"];
    // A flag that names no skills leaves those of the user.
    assert_eq!(agent["args"].as_array().unwrap()[..3], ["--discover", "user", "--strict"]);
    let program = dunce::canonicalize(PROGRAM).unwrap();
    assert_eq!((&agent["command"], &agent["env"]), (&program.to_str().into(), &serde_json::json!({})));
    assert!(undo().contains("the file was made by `setup`, so it goes"));
    assert!(!file.exists());
    for text in ["", "\n", "\u{feff}{\r\n}\r\n", "{}", "// nothing yet\n"] {
        machine.write(there, text);
        assert!(setup("--strict").ends_with("exit 0\n"), "{text:?}");
        assert!(machine.read(there).contains("Claude with skills"), "{text:?}");
        assert!(undo().ends_with("exit 0\n"), "{text:?}");
        assert_eq!(machine.read(there), text);
    }
}

#[cfg(unix)]
#[test]
fn a_file_in_a_repository_of_dotfiles() {
    let machine = Machine::new();
    let setup = || machine.said(&["setup", "jetbrains", "--agent", "claude", "--yes"]);
    let file = machine.path("home/.jetbrains/acp.json");
    machine.write("dotfiles/acp.json", "{}\n");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink("../../dotfiles/acp.json", &file).unwrap();
    set_mode(&machine.path("dotfiles/acp.json"), 0o600);
    assert!(setup().ends_with("exit 0\n"));
    assert_eq!(fs::read_link(&file).unwrap(), Path::new("../../dotfiles/acp.json"));
    assert!(machine.read("dotfiles/acp.json").contains("Claude with skills"));
    assert_eq!(mode(&file), 0o600);
    assert!(machine.said(&["setup", "jetbrains", "--undo", "--yes"]).ends_with("exit 0\n"));
    assert_eq!(machine.read("dotfiles/acp.json"), "{}\n");
    let files: Vec<_> = fs::read_dir(machine.path("dotfiles")).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing is left lying about: {files:?}");
}

/// Line ends are kept, and what is added has them too.
#[test]
fn line_ends() {
    let machine = Machine::new();
    let ends = |text: &str| (text.matches("\r\n").count(), text.matches('\n').count());
    for (before, is_windows) in [(ZED.replace('\n', "\r\n"), true), (ZED.to_owned(), false)] {
        machine.write(ZED_FILE, &before);
        let said = machine.said(&["setup", "zed", "--agent", "claude", "--yes"]);
        assert!(said.ends_with("exit 0\n"), "{said}");
        let after = machine.read(ZED_FILE);
        let (windows, all) = ends(&after);
        assert!(all > ends(&before).1, "{after}");
        assert_eq!(windows, if is_windows { all } else { 0 }, "{after:?}");
        assert!(machine.said(&["setup", "zed", "--undo", "--yes"]).ends_with("exit 0\n"));
        assert_eq!(machine.read(ZED_FILE), before);
    }
}

/// One that goes through the proxy already, by a program that has moved, or by a runner of packages.
#[test]
fn brought_up_to_date() {
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
        let said = machine.said(&[&["setup", "zed", "--agent", "a", "--yes"], flags].concat());
        assert!(said.ends_with("exit 0\n"), "{said}");
        let program = dunce::canonicalize(PROGRAM).unwrap();
        let written = program.to_str().unwrap().replace('\\', r"\\");
        assert_eq!(machine.read(ZED_FILE), agent(&written, after));
        assert!(machine.said(&["setup", "zed", "--undo", "--yes"]).ends_with("exit 0\n"));
        assert_eq!(machine.read(ZED_FILE), before);
    }
}

/// After somebody has edited the settings, only what is ours goes.
#[test]
fn taken_back_later() {
    let machine = Machine::new();
    machine.write(ZED_FILE, ZED);
    machine.said(&["setup", "zed", "--agent", "claude", "--yes"]);
    let edited = |text: &str| text.replace("\"ui_font_size\": 16,", "\"ui_font_size\": 18, // eyes");
    machine.write(ZED_FILE, &edited(&machine.read(ZED_FILE)));
    assert!(machine.said(&["setup", "zed", "--undo", "--yes"]).ends_with("exit 0\n"));
    assert_eq!(machine.read(ZED_FILE), edited(ZED));
    // Removed by hand.
    machine.said(&["setup", "zed", "--agent", "claude", "--yes"]);
    machine.write(ZED_FILE, ZED);
    machine.check(
        &["setup", "zed", "--undo", "--yes"],
        expect![[r#"
        --- ~/.config/zed/settings.json
        +++ ~/.config/zed/settings.json
        Taken back.
        exit 0
    "#]],
    );
    machine.check(
        &["setup", "zed", "--undo", "--yes"],
        expect![[r#"
        Nothing to take back in ~/.config/zed/settings.json.
        exit 0
    "#]],
    );
    assert_eq!(machine.read(ZED_FILE), ZED);
    // Written by hand, as the README shows.
    machine
        .write(ZED_FILE, r#"{"agent_servers": {"a": {"command": "acp-skills-proxy", "args": ["--", "x"]}}}"#);
    machine.check(&["setup", "zed", "--undo"], expect![[r#"
        Nothing to take back in ~/.config/zed/settings.json. a goes through the proxy, but not by a change of `setup` that is known here.
        exit 0
    "#]]);
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
fn what_to_paste() {
    let machine = Machine::new();
    machine.check(&["setup", "neovim", "--agent", "claude"], expect![[r#"
        CodeCompanion, in your init.lua:

        require("codecompanion").setup({
          adapters = {
            acp = {
              claude_code = function()
                return require("codecompanion.adapters").extend("claude_code", {
                  commands = {
                    default = { "PROGRAM", "--discover", "user", "--", "npx", "-y", "@agentclientprotocol/claude-agent-acp" },
                  },
                })
              end,
            },
          },
        })

        avante, in your init.lua:

        require("avante").setup({
          provider = "claude-code",
          acp_providers = {
            ["claude-code"] = {
              command = "PROGRAM",
              args = { "--discover", "user", "--", "npx", "-y", "@agentclientprotocol/claude-agent-acp" },
            },
          },
        })
        exit 0
    "#]]);
    machine.check(
        &["setup", "emacs", "--agent", "gemini"],
        expect![[r#"
        agent-shell, in your init.el:

        (setq agent-shell-google-gemini-acp-command
              '("PROGRAM" "--discover" "user" "--" "…/bin/npx" "-y" "@google/gemini-cli" "--acp"))
        note: an editor may not have `npx` in its PATH: it is in …/bin; written with its directory
        exit 0
    "#]],
    );
    // What is pasted there is for a shell of Unix.
    #[cfg(unix)]
    machine.check(
        &["setup", "toad", "--", "my agent", "--acp"],
        expect![[r#"
        Toad, on a command line:

        toad acp 'PROGRAM --discover user -- '\''my agent'\'' --acp'
        note: `my agent` is not in your PATH: is it installed?
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
        error: Emacs has no place for the command of this agent
        hint: it has one for claude-acp, codex-acp, gemini, github-copilot-cli, opencode, qwen-code, goose, pi-acp
        exit 2
    "#]]);
    machine.check(&["setup", "emacs"], expect![[r#"
        error: which agent?
        hint: `acp-skills-proxy setup emacs --agent claude`, for example; `acp-skills-proxy setup --agents` lists those that are known, and the command of any other goes after `--`
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
    let said = machine.said(&["setup", "code", "--agent", "claude", "--yes"]);
    assert!(said.contains("note: VS Code needs the extension `formulahendry.acp-client`"), "{said}");
    fs::create_dir_all(machine.path("home/.vscode/extensions/formulahendry.acp-client-0.2.0")).unwrap();
    let said = machine.said(&["setup", "code", "--undo", "--yes"]);
    assert!(said.ends_with("Taken back.\nexit 0\n"), "{said}");
    let said = machine.said(&["setup", "code", "--agent", "claude", "--yes"]);
    assert!(!said.contains("needs the extension") && said.contains("in the panel of ACP Client"), "{said}");
    machine.check(&["setup", "acpx", "--agent", "mine", "--yes"], expect![[r#"
        --- ~/.acpx/config.json
        +++ ~/.acpx/config.json
        @@ -1 +1 @@
        -{"agents": {"mine": {"argv": ["./x", "acp"]}}, "ttl": 1}
        +{"agents": {"mine": {"argv": ["PROGRAM", "--discover", "user", "--", "./x", "acp"]}}, "ttl": 1}
        Written. Name it behind `acpx`.
        What was there before is in ~/.local/state/acp-skills-proxy/setup/0003/before.json. To take it back: acp-skills-proxy setup acpx --undo
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
fn where_settings_are() {
    let machine = Machine::new();
    let (xdg, flatpak) = ("xdg/zed/settings.json", "home/.var/app/dev.zed.Zed/config/zed/settings.json");
    let said = |arguments: &[&str]| {
        machine.said_by(machine.command(arguments).env("XDG_CONFIG_HOME", machine.path("xdg")))
    };
    machine.write(flatpak, "{}");
    assert!(said(&["setup", "zed", "--agent", "claude", "--yes"]).ends_with("exit 0\n"));
    assert!(machine.read(flatpak).contains("Claude with skills"));
    machine.write(xdg, "{}");
    expect![[r#"
        error: there are several settings files: …/xdg/zed/settings.json, ~/.var/app/dev.zed.Zed/config/zed/settings.json
        hint: choose one: `--file …/xdg/zed/settings.json`
        exit 2
    "#]].assert_eq(&said(&["setup", "zed", "--agent", "claude", "--yes"]));
    assert!(said(&["setup", "zed", "--agent", "claude", "--yes", "--file", xdg]).ends_with("exit 0\n"));
    assert!(machine.read(xdg).contains("Claude with skills"));
    let undo = ["setup", "zed", "--undo", "--yes", "--file"];
    assert!(said(&[&undo[..], &[xdg]].concat()).ends_with("exit 0\n"));
    assert_eq!(machine.read(xdg), "{}");
    // Each file has its own changes.
    assert!(said(&[&undo[..], &[flatpak]].concat()).ends_with("exit 0\n"));
    assert_eq!(machine.read(flatpak), "{}");
    let said = machine.said_by(machine.command(&["setup"]).env("HOME", "relative"));
    assert!(said.contains("it is not known where your home directory is\nhint: set HOME"), "{said}");
    // Without the variable the system knows.
    let said = machine.said_by(machine.command(&["setup", "--agents"]).env_remove("HOME"));
    assert!(said.contains("claude-acp") && said.ends_with("exit 0\n"), "{said}");
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
        hint: did you mean `gemini`? `acp-skills-proxy setup --agents` lists all
        exit 2
    "#]],
    );
    machine.check(&["try", "--skills", "home/.agents", "--agent", "goose"], expect![[r#"
        error: `goose` is not in PATH, and `goose` is no package that `npx` or `uvx` could run
        hint: install it from https://block.github.io/goose; when it is not in PATH, give its command after `--`: `-- /path/to/goose acp`
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
