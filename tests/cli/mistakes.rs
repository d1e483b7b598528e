//! Command lines as people type them who have not read the manual, and what they are told.

use expect_test::expect;

use crate::place::Place;

#[test]
fn wrong_command_lines() {
    let place = Place::new();
    place.check(
        &["lst"],
        expect![[r#"
            error: unknown command `lst`
            hint: did you mean `list`?
            exit 2
        "#]],
    );
    place.check(&["--skill", "skills/pdf", "claude-agent-acp", "--acp"], expect![[r#"
        error: unexpected argument `claude-agent-acp`
        hint: put the command of the agent after `--`: acp-skills-proxy --skill skills/pdf -- claude-agent-acp --acp
        exit 2
    "#]]);
    place.check(
        &["try", "--skill", "skills/pdf", "npx", "-y", "x"],
        expect![[r#"
            error: unexpected argument `npx`
            hint: put the command of the agent after `--`: acp-skills-proxy try --skill skills/pdf -- npx -y x
            exit 2
        "#]],
    );
    place.check(
        &["--skills", "skills", "home/skills"],
        expect![[r#"
            error: unexpected argument `home/skills`
            hint: repeat the flag for each directory: `--skills home/skills`
            exit 2
        "#]],
    );
    place.check(
        &["doctor", "help"],
        expect![[r#"
            error: unexpected argument `help`
            hint: run `acp-skills-proxy help doctor`
            exit 2
        "#]],
    );
    place.check(
        &["list", "--skils", "skills"],
        expect![[r#"
        error: unexpected argument '--skils' found

          tip: a similar argument exists: '--skills'

        Usage: acp-skills-proxy list --skills <DIR> [PATH]...

        For more information, try '--help'.
        exit 2
    "#]],
    );
    place.check(&[], expect![[r#"
        error: there is no agent to run
        hint: the agent command goes after `--`, for example `acp-skills-proxy --skill DIR -- claude-agent-acp`, or into `agent` of --config FILE; only an ACP conductor starts the proxy without one
        exit 2
    "#]]);
}

#[test]
fn commands_and_their_words() {
    let place = Place::new();
    place.write("c.yaml", "roots: [skills]\n");
    place.check(
        &["version"],
        expect![[r#"
            error: unexpected argument `version`
            hint: run `acp-skills-proxy --version`
            exit 2
        "#]],
    );
    place.check(
        &["help", "lst"],
        expect![[r#"
            error: unknown command `lst`
            hint: did you mean `list`?
            exit 2
        "#]],
    );
    place.check(
        &["help", "nothing"],
        expect![[r#"
            error: unknown command `nothing`
            hint: `acp-skills-proxy --help` lists all commands
            exit 2
        "#]],
    );
    place.check(
        &["--config", "c.yaml", "list", "--json"],
        expect![[r#"
            error: unexpected argument `list`
            hint: put the command first: acp-skills-proxy list --config c.yaml --json
            exit 2
        "#]],
    );
    place.check(
        &["try", "--skill", "skills/pdf", "Read my pdf"],
        expect![[r#"
        error: unexpected argument `Read my pdf`
        hint: put the prompt in quotes: acp-skills-proxy try --skill skills/pdf --prompt 'Read my pdf'
        exit 2
    "#]],
    );
    place.check(
        &["try", "--skill", "skills/pdf", "--prompt", "Read", "my", "pdf", "--", "x"],
        expect![[r#"
        error: unexpected argument `my`
        hint: put the prompt in quotes: acp-skills-proxy try --skill skills/pdf --prompt 'Read my pdf' -- x
        exit 2
    "#]],
    );
    place.check(
        &["--allow-scripts", "yes", "--", "x"],
        expect![[r#"
            error: unexpected argument `yes`
            hint: only flags and their values can come before `--`; `acp-skills-proxy help flags` lists them
            exit 2
        "#]],
    );
    place.check(
        &["setup", "zed", "jetbrains"],
        expect![[r#"
            error: unexpected argument `jetbrains`
            hint: `setup` takes one editor at a time: `acp-skills-proxy setup jetbrains`
            exit 2
        "#]],
    );
    place.check(
        &["search", "--skills", "skills", "nothing"],
        expect![[r#"
        none of 2 skills fits `nothing`
        exit 1
    "#]],
    );
    place.check(
        &["search", "--skills", "skills", "nothing", "--json"],
        expect![[r#"
        []
        exit 1
    "#]],
    );
    let said = place.said(&["add", "skills"]);
    assert!(
        said.contains("a directory needs no source: `--skills skills`") && said.ends_with("exit 2\n"),
        "{said}"
    );
    // Nothing of ours is in it.
    place.check(
        &["report", "skills/pdf/SKILL.md"],
        expect![[r#"
            There are no events.
            5 lines that are not events
              skills/pdf/SKILL.md:1: invalid number, at column 2
              skills/pdf/SKILL.md:2: expected ident, at column 2
              skills/pdf/SKILL.md:3: expected value, at column 1
              skills/pdf/SKILL.md:4: invalid number, at column 2
              skills/pdf/SKILL.md:5: expected value, at column 1
            hint: check that `--events` wrote these files
            exit 0
        "#]],
    );
}

#[test]
fn flags_of_other_programs() {
    let place = Place::new();
    place.check(
        &["list", "skills", "-v"],
        expect![[r#"
            error: unknown flag `-v`
            hint: use `--log debug` for more messages; `--version` prints the version
            exit 2
        "#]],
    );
    place.check(
        &["setup", "zed", "--dry-run"],
        expect![[r#"
            error: unknown flag `--dry-run`
            hint: use `--print` to show the change without writing it
            exit 2
        "#]],
    );
    place.check(
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
fn names_of_new_skills() {
    let place = Place::new();
    place.check(
        &["init", "Foo"],
        expect![[r#"
        error: `Foo` cannot be a skill: Skill name 'Foo' must be lowercase
        hint: did you mean `acp-skills-proxy init foo`?
        exit 2
    "#]],
    );
    place.check(&["init", "my skill"], expect![[r#"
        error: `my skill` cannot be a skill: Skill name 'my skill' contains invalid characters. Only letters, digits, and hyphens are allowed.
        hint: did you mean `acp-skills-proxy init my-skill`?
        exit 2
    "#]]);
    place.check(&["init", "../other/my_skill"], expect![[r#"
        error: `../other/my_skill` cannot be a skill: Skill name '../other/my_skill' contains invalid characters. Only letters, digits, and hyphens are allowed.
        hint: did you mean `acp-skills-proxy init my-skill --in ../other/`?
        exit 2
    "#]]);
    place.check(
        &["init", ""],
        expect![[r#"
        error: `` cannot be a skill: Field 'name' must be a non-empty string
        exit 2
    "#]],
    );
    place.check(
        &["init", "pdf", "--in", "skills"],
        expect![[r#"
        error: there is a skills/pdf already
        hint: nothing was changed; give the skill another name, or another place with `--in DIR`
        exit 2
    "#]],
    );
}

/// What is made can be seen at work at once, and nothing in it fails.
#[test]
fn a_new_skill_is_tried() {
    let place = Place::new();
    let said = place.said(&["init", "notes"]);
    assert!(said.contains("acp-skills-proxy try --skill ./notes"), "{said}");
    let said = place.said(&["try", "--skill", "./notes", "--prompt", "Take notes"]);
    assert!(said.contains("I activated the skill `notes`: notes.") && !said.contains("failed"), "{said}");
    let said = place.said(&["eval", "notes", "--only", "queries", "--runs", "1", "--dry-run"]);
    assert!(said.starts_with("notes: 4 queries and 0 tasks, once each: 4 runs, at most 4 turns\n"), "{said}");
    place.check(
        &["eval", "skills"],
        expect![[r#"
        error: cannot load the skill …/skills: error[no-skill-md]: the directory has no SKILL.md
            help: use the directory of a single skill; to use a directory with several skills, scan it
        exit 2
    "#]],
    );
}

#[test]
fn paths_that_are_something_else() {
    let place = Place::new();
    place.write("file", "text\n");
    place.check(
        &["list", "file"],
        expect![[r#"
        error: `file` is no SKILL.md
        hint: name a directory to look in, or that of a skill
        exit 2
    "#]],
    );
    place.check(
        &["list", "--skill", "file"],
        expect![[r#"
        error: cannot load the skill in …/file
          …/file: error[not-a-directory]: this is not a directory
        hint: `--skill` takes the directory of a skill, with a file named SKILL.md
        exit 2
    "#]],
    );
    place.check(
        &["list", "--skills", "file"],
        expect![[r#"
        error: cannot look for skills in file: there is no such directory
        hint: it is a file; `--skills` takes a directory to look in, `--skill` that of one skill
        exit 2
    "#]],
    );
    place.check(
        &["list", "--skills", "$WORK/skills"],
        expect![[r#"
        error: cannot look for skills in $WORK/skills: there is no such directory
        hint: of what a shell expands, only `~` and `$HOME` are: write out what `$WORK` stands for
        exit 2
    "#]],
    );
    place.check(
        &["list", "--skill", "~somebody/skills"],
        expect![[r#"
        error: cannot load the skill in …/~somebody/skills
          …/~somebody/skills: error[no-such-directory]: there is no such directory
        hint: of what a shell expands, only `~` and `$HOME` are: write out what `~somebody` stands for
        exit 2
    "#]],
    );
    let said = place.said(&["check", "$WORK/skills"]);
    assert!(said.contains("write out what `$WORK` stands for") && said.ends_with("exit 2\n"), "{said}");
}

/// Where skills were to be found by themselves, it is said where that is.
#[test]
fn places_without_skills() {
    let place = Place::new();
    place.check(&["list", "--discover", "project"], expect![[r#"
        There are no skills.
        hint: there is none in .skills, .agents/skills, .claude/skills: put one there, or name one with `--skill DIR`, or a directory to look in with `--skills DIR`
        exit 0
    "#]]);
    let said = place.said(&["try", "--discover", "user"]);
    let places = "there is none in home/.agents/skills, home/.claude/skills, ";
    assert!(said.contains(places) && said.ends_with("exit 2\n"), "{said}");
}

/// Agents that end or refuse, in words.
#[cfg(unix)]
#[test]
fn agents_that_end_or_refuse() {
    let place = Place::new();
    let said = place.said(&["try", "--skills", "skills", "--", "false"]);
    let expected = "error: the agent exited with code 1 before it answered `initialize`\n\
                    hint: run the agent's command in a terminal to see what it says\nexit 125\n";
    assert!(said.ends_with(expected), "{said}");
    let said = place.said(&["doctor", "--skills", "skills", "--", "false"]);
    assert!(
        said.contains("initialize: the agent exited with code 1 before it answered `initialize`\n"),
        "{said}"
    );
    assert!(said.contains("hint: run the agent's command in a terminal"), "{said}");
    place.write(
        "agent.sh",
        "read line\n\
         echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"Authentication required\"}}'\n\
         cat > /dev/null\n",
    );
    let said = place.said(&["try", "--skills", "skills", "--", "sh", "agent.sh"]);
    let expected = "error: the agent refuses `initialize`: Authentication required (-32000)\nexit 125\n";
    assert!(said.ends_with(expected), "{said}");
}
