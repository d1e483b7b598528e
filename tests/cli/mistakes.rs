//! Hints for mistakes on the command line, such as those of a user that has not read the manual.

use expect_test::expect;

use crate::fixture::Fixture;

#[test]
fn wrong_command_lines() {
    let fixture = Fixture::new();
    fixture.check(
        &["lst"],
        expect![[r#"
            error: unknown command `lst`
            hint: did you mean `list`?
            exit 2
        "#]],
    );
    fixture.check(
        &["--skill", "skills/pdf", "claude-agent-acp", "--acp"],
        expect![[r#"
        error: unexpected argument `claude-agent-acp`
        hint: put the agent command after `--`: acp-skills-proxy --skill skills/pdf -- claude-agent-acp --acp
        exit 2
    "#]],
    );
    fixture.check(
        &["try", "--skill", "skills/pdf", "npx", "-y", "x"],
        expect![[r#"
            error: unexpected argument `npx`
            hint: put the agent command after `--`: acp-skills-proxy try --skill skills/pdf -- npx -y x
            exit 2
        "#]],
    );
    fixture.check(
        &["--skills", "skills", "home/skills"],
        expect![[r#"
            error: unexpected argument `home/skills`
            hint: repeat the flag for each directory: `--skills home/skills`
            exit 2
        "#]],
    );
    fixture.check(
        &["doctor", "help"],
        expect![[r#"
            error: unexpected argument `help`
            hint: run `acp-skills-proxy help doctor`
            exit 2
        "#]],
    );
    fixture.check(
        &["list", "--skils", "skills"],
        expect![[r#"
        error: unexpected argument '--skils' found

          tip: a similar argument exists: '--skills'

        Usage: acp-skills-proxy list --skills <DIR> [PATH]...

        For more information, try '--help'.
        exit 2
    "#]],
    );
    fixture.check(&[], expect![[r#"
        error: no agent to run
        hint: put the agent command after `--`, for example `acp-skills-proxy --skill DIR -- claude-agent-acp`, or set `agent` in the configuration file; only an ACP conductor can run the proxy without an agent
        exit 2
    "#]]);
}

#[test]
fn wrong_commands_and_arguments() {
    let fixture = Fixture::new();
    fixture.write("c.yaml", "roots: [skills]\n");
    fixture.check(
        &["version"],
        expect![[r#"
            error: unexpected argument `version`
            hint: run `acp-skills-proxy --version`
            exit 2
        "#]],
    );
    fixture.check(
        &["help", "lst"],
        expect![[r#"
            error: unknown command `lst`
            hint: did you mean `list`?
            exit 2
        "#]],
    );
    fixture.check(
        &["help", "nothing"],
        expect![[r#"
            error: unknown command `nothing`
            hint: use `acp-skills-proxy --help` to list all commands
            exit 2
        "#]],
    );
    fixture.check(
        &["--config", "c.yaml", "list", "--json"],
        expect![[r#"
            error: unexpected argument `list`
            hint: put the command first: acp-skills-proxy list --config c.yaml --json
            exit 2
        "#]],
    );
    fixture.check(
        &["try", "--skill", "skills/pdf", "Read my pdf"],
        expect![[r#"
        error: unexpected argument `Read my pdf`
        hint: put the prompt in quotes: acp-skills-proxy try --skill skills/pdf --prompt 'Read my pdf'
        exit 2
    "#]],
    );
    fixture.check(
        &["try", "--skill", "skills/pdf", "--prompt", "Read", "my", "pdf", "--", "x"],
        expect![[r#"
        error: unexpected argument `my`
        hint: put the prompt in quotes: acp-skills-proxy try --skill skills/pdf --prompt 'Read my pdf' -- x
        exit 2
    "#]],
    );
    fixture.check(
        &["--allow-scripts", "yes", "--", "x"],
        expect![[r#"
            error: unexpected argument `yes`
            hint: only flags and values can come before `--`; use `acp-skills-proxy help flags` to list all flags
            exit 2
        "#]],
    );
    fixture.check(
        &["setup", "zed", "jetbrains"],
        expect![[r#"
            error: unexpected argument `jetbrains`
            hint: `setup` takes one editor at a time: `acp-skills-proxy setup jetbrains`
            exit 2
        "#]],
    );
    fixture.check(
        &["search", "--skills", "skills", "nothing"],
        expect![[r#"
            no match for `nothing` in 2 skills
            exit 1
        "#]],
    );
    fixture.check(
        &["search", "--skills", "skills", "nothing", "--json"],
        expect![[r#"
        []
        exit 1
    "#]],
    );
    let output = fixture.output(&["add", "skills"]);
    assert!(output.contains("use `--skills skills`") && output.ends_with("exit 2\n"), "{output}");
    // Use a file that exists but doesn't have any events in it.
    fixture.check(
        &["report", "skills/pdf/SKILL.md"],
        expect![[r#"
            No events found.
            5 lines that are not events
              skills/pdf/SKILL.md:1: invalid number, at column 2
              skills/pdf/SKILL.md:2: expected ident, at column 2
              skills/pdf/SKILL.md:3: expected value, at column 1
              skills/pdf/SKILL.md:4: invalid number, at column 2
              skills/pdf/SKILL.md:5: expected value, at column 1
            hint: use files written with `--events`
            exit 0
        "#]],
    );
}

#[test]
fn flags_of_other_programs() {
    let fixture = Fixture::new();
    fixture.check(
        &["list", "skills", "-v"],
        expect![[r#"
            error: unknown flag `-v`
            hint: use `--log debug` for more messages, or `--version` to print the version
            exit 2
        "#]],
    );
    fixture.check(
        &["setup", "zed", "--dry-run"],
        expect![[r#"
            error: unknown flag `--dry-run`
            hint: use `--print` to show changes without writing to the file
            exit 2
        "#]],
    );
    fixture.check(
        &["--nothing", "--", "agent"],
        expect![[r#"
        error: unexpected argument '--nothing' found

        Usage: acp-skills-proxy [OPTIONS] [-- <AGENT>...]
               acp-skills-proxy <COMMAND>

        For more information, try '--help'.
        exit 2
    "#]],
    );
}

#[test]
fn invalid_names_of_new_skills() {
    let fixture = Fixture::new();
    fixture.check(
        &["init", "Foo"],
        expect![[r#"
            error: cannot create skill `Foo`: Skill name 'Foo' must be lowercase
            hint: did you mean `acp-skills-proxy init foo`?
            exit 2
        "#]],
    );
    fixture.check(&["init", "my skill"], expect![[r#"
        error: cannot create skill `my skill`: Skill name 'my skill' contains invalid characters. Only letters, digits, and hyphens are allowed.
        hint: did you mean `acp-skills-proxy init my-skill`?
        exit 2
    "#]]);
    fixture.check(&["init", "../other/my_skill"], expect![[r#"
        error: cannot create skill `../other/my_skill`: Skill name '../other/my_skill' contains invalid characters. Only letters, digits, and hyphens are allowed.
        hint: did you mean `acp-skills-proxy init my-skill --in ../other/`?
        exit 2
    "#]]);
    fixture.check(
        &["init", ""],
        expect![[r#"
            error: cannot create skill ``: Field 'name' must be a non-empty string
            exit 2
        "#]],
    );
    fixture.check(
        &["init", "pdf", "--in", "skills"],
        expect![[r#"
            error: skills/pdf already exists
            hint: no files were changed; use another name, or another directory with `--in DIR`
            exit 2
        "#]],
    );
}

/// A new skill works immediately: `try` and `eval` run it without changes.
#[test]
fn a_new_skill_works() {
    let fixture = Fixture::new();
    let output = fixture.output(&["init", "notes"]);
    assert!(output.contains("acp-skills-proxy try --skill ./notes"), "{output}");
    let output = fixture.output(&["try", "--skill", "./notes", "--prompt", "Take notes"]);
    assert!(
        output.contains("I activated the skill `notes`: notes.") && !output.contains("failed"),
        "{output}"
    );
    let output = fixture.output(&["eval", "notes", "--only", "queries", "--runs", "1", "--dry-run"]);
    assert!(
        output.starts_with("notes: 4 queries and 0 tasks, once each: 4 runs, at most 4 turns\n"),
        "{output}"
    );
    fixture.check(
        &["eval", "skills"],
        expect![[r#"
        error: directory has no SKILL.md: …/skills
            help: use a directory that contains a SKILL.md, or scan the directory to load several skills
        hint: `eval` takes one skill, for example `acp-skills-proxy eval …/skills/docx`
        exit 2
    "#]],
    );
}

#[test]
fn paths_of_the_wrong_kind() {
    let fixture = Fixture::new();
    fixture.write("file", "text\n");
    fixture.check(
        &["list", "file"],
        expect![[r#"
            error: `file` is not a SKILL.md file
            hint: use a skill directory, or a directory to search for skills
            exit 2
        "#]],
    );
    fixture.check(
        &["list", "--skill", "file"],
        expect![[r#"
            error: not a directory: …/file
            hint: `--skill` takes the directory of a skill, with a file named SKILL.md
            exit 2
        "#]],
    );
    fixture.check(
        &["list", "--skills", "file"],
        expect![[r#"
            error: no such directory of skills: file
            hint: the path is a file; `--skills` takes a directory to search, and `--skill` takes the directory of a skill
            exit 2
        "#]],
    );
    fixture.check(
        &["list", "--skills", "$WORK/skills"],
        expect![[r#"
            error: no such directory of skills: $WORK/skills
            hint: only `~` and `$HOME` are expanded here; replace `$WORK` with its value
            exit 2
        "#]],
    );
    fixture.check(
        &["list", "--skill", "~somebody/skills"],
        expect![[r#"
            error: no such skill directory: …/~somebody/skills
            hint: only `~` and `$HOME` are expanded here; replace `~somebody` with its value
            exit 2
        "#]],
    );
    let output = fixture.output(&["check", "$WORK/skills"]);
    assert!(output.contains("replace `$WORK` with its value") && output.ends_with("exit 2\n"), "{output}");
}

/// If `--discover` finds no skills, the hint lists the directories that were searched.
#[test]
fn the_searched_directories_are_listed() {
    let fixture = Fixture::new();
    fixture.check(&["list", "--discover", "project"], expect![[r#"
        No skills found.
        hint: no skills found in .skills, .agents/skills, .claude/skills; use `--skill DIR` or `--skills DIR` for another directory
        exit 0
    "#]]);
    let output = fixture.output(&["try", "--discover", "user"]);
    let places = "no skills found in home/.agents/skills, home/.claude/skills, ";
    assert!(output.contains(places) && output.ends_with("exit 2\n"), "{output}");
}

/// The agent exits early or answers with an error.
#[cfg(unix)]
#[test]
fn agents_that_exit_or_answer_with_an_error() {
    let fixture = Fixture::new();
    let output = fixture.output(&["try", "--skills", "skills", "--", "false"]);
    let expected = "error: the agent exited with code 1 before answering `initialize`\n\
                    hint: run the agent command in a terminal to show error messages\nexit 125\n";
    assert!(output.ends_with(expected), "{output}");
    let output = fixture.output(&["doctor", "--skills", "skills", "--", "false"]);
    assert!(
        output.contains("initialize: the agent exited with code 1 before answering `initialize`\n"),
        "{output}"
    );
    assert!(output.contains("hint: run the agent command in a terminal"), "{output}");
    fixture.write(
        "agent.sh",
        "read line\n\
         echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"Authentication required\"}}'\n\
         cat > /dev/null\n",
    );
    let output = fixture.output(&["try", "--skills", "skills", "--", "sh", "agent.sh"]);
    let expected = "error: agent rejected `initialize`: Authentication required (-32000)\nexit 125\n";
    assert!(output.ends_with(expected), "{output}");
}
