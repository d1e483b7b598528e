//! Wrong command lines as people type them: each hint names a command or a flag that helps.

use std::fs;

use crate::fixture::Fixture;

/// Runs each command line, which exits with 2, and looks for words in its hint or message. A word with a `!` must not occur.
fn check(lines: &[(&[&str], &[&str])]) {
    let fixture = Fixture::new();
    fs::create_dir(fixture.dir.join("some-dir")).unwrap();
    for (arguments, expected) in lines {
        let output = fixture.output(arguments);
        assert!(output.ends_with("exit 2\n"), "{arguments:?}: {output}");
        for words in *expected {
            let is_there =
                words.strip_prefix('!').map_or_else(|| output.contains(words), |not| !output.contains(not));
            assert!(is_there, "{words:?}, {arguments:?}: {output}");
        }
    }
}

#[test]
fn commands_of_other_programs() {
    check(&[
        (&["install", "acme"], &["unknown command `install`", "add SOURCE", "setup EDITOR", "!`--`"]),
        (&["uninstall"], &["remove SOURCE", "setup EDITOR --undo", "!`--`"]),
        (&["ls"], &["acp-skills-proxy list"]),
        (&["validate", "skills"], &["acp-skills-proxy check PATH"]),
        (&["test"], &["acp-skills-proxy try", "acp-skills-proxy eval"]),
        (&["run", "claude"], &["-- claude-agent-acp"]),
        (&["agents"], &["setup --agents"]),
        (&["login"], &["log in with the agent itself"]),
        (&["frobnicate"], &["unknown command `frobnicate`", "acp-skills-proxy --help", "after `--`"]),
    ]);
}

#[test]
fn skills_and_prompts_are_not_agents() {
    check(&[
        (&["try", "release-notes"], &["--skill DIR", "--prompt TEXT", "!try -- release-notes"]),
        (&["try", "skills/pdf"], &["`--skill skills/pdf`", "!-- skills"]),
        (&["try", "./skills"], &["`--skills ./skills`", "!-- ./skills"]),
        (&["./skills/pdf"], &["`--skill ./skills/pdf`"]),
        (&["skills/pdf/SKILL.md"], &["`--skill skills/pdf`"]),
        (&["try", "review", "my", "code"], &["try --prompt 'review my code'"]),
        (&["doctor", "review", "it", "--yes"], &["doctor --prompt 'review it'"]),
        // These are commands of agents.
        (&["try", "npx", "-y", "some-agent"], &["try -- npx -y some-agent"]),
        (&["try", "./bin/agent"], &["try -- ./bin/agent"]),
        (&["claude-agent-acp"], &["acp-skills-proxy -- claude-agent-acp"]),
    ]);
}

#[test]
fn missing_arguments() {
    check(&[
        (&["check"], &["no path given", "check ./code-review", "check ."]),
        (&["check", "--json"], &["no path given"]),
        (&["search"], &["no words given", "search --skills"]),
        (&["add"], &["no source given", "add github:"]),
        (&["remove"], &["no source given", "acp-skills-proxy sources"]),
        (&["init"], &["no name given", "init code-review"]),
        (&["eval"], &["no skill given", "eval ./code-review"]),
        (&["report"], &["no file given", "--events FILE"]),
        (&["completions"], &["no shell given", "completions bash"]),
        (&["setup", "--undo"], &["no editor given", "setup zed"]),
    ]);
}

#[test]
fn paths_sources_and_editors() {
    check(&[
        (
            &["check", "github:acme/skills"],
            &["list --source 'github:acme/skills'", "add 'github:acme/skills'"],
        ),
        (&["check", "github:acme"], &["not a source either", "!list --source"]),
        (&["search", "skills", "read"], &["search --skills skills read"]),
        (&["search", "read", "--skills", "empty"], &["no skills found", "!search --skills"]),
        (&["update", "--config", "TYPO"], &["no such configuration file: TYPO"]),
        (&["sources", "--config", "TYPO"], &["no such configuration file: TYPO"]),
        (&["remove", "github:acme/skills", "--config", "TYPO"], &["no such configuration file: TYPO"]),
        (&["remove", "./skills"], &["acp-skills-proxy sources", "!--skills"]),
        (&["remove", "github:acme/skills"], &["unknown source", "!to add the source"]),
        (
            &["setup", "claude"],
            &["`claude` is not an editor", "setup EDITOR --agent claude", "!did you mean"],
        ),
        (&["setup", "agents"], &["setup --agents", "!emacs"]),
    ]);
    // The address of a source that can't be fetched is not a path to check.
    let address = if cfg!(windows) { "git+file:///C:/nowhere" } else { "git+file:///nowhere" };
    let unavailable = format!("`{address}` are not available");
    check(&[(&["try", "--source", address], &[&unavailable, "!acp-skills-proxy check"])]);
}

#[test]
fn numbers_and_flags() {
    check(&[
        (&["--max-skills", "0", "--skills", "skills", "--", "cat"], &["(`max_skills`) is 0; use at least 1"]),
        (&["list", "--max-skills", "0", "skills"], &["use at least 1"]),
        (&["--mcp-wait", "-1", "--", "cat"], &["invalid value '-1'", "a number of seconds"]),
        (&["--catalog-budget", "-5", "--", "cat"], &["invalid value '-5'", "a whole number"]),
        (&["--max-message", "0", "--", "cat"], &["at least 1"]),
        (&["-skills", "skills", "--", "cat"], &["unknown flag `-skills`", "did you mean `--skills`?"]),
        (&["list", "--all"], &["--discover user,project", "!--allow-scripts"]),
    ]);
    let help = Fixture::new().output(&["remove", "--help"]);
    assert!(help.contains("Print JSON") && !help.contains("--yes"), "{help}");
}

#[test]
fn evaluations() {
    check(&[
        (&["eval", "nope"], &["error: no such skill directory: ", "/nope", "!error["]),
        (&["eval", "skills"], &["error: directory has no SKILL.md: ", "acp-skills-proxy eval ", "!error["]),
        (&["eval", "skills/pdf", "--baseline", "nope"], &["error: no such skill directory: ", "/nope"]),
        (
            &["eval", "skills/pdf", "--among", "nope"],
            &["error: cannot read: no such file or directory: nope"],
        ),
        (
            &["eval", "skills/pdf", "--queries", "nope"],
            &["error: cannot read: no such file or directory: nope"],
        ),
        (&["eval", "skills/pdf", "some-dir"], &["`eval` takes one skill", "--among DIR", "!--skill"]),
        (&["eval", "skills/pdf", "--agent", "nope"], &["unknown agent `nope`", "setup --agents"]),
        (&["eval", "skills/pdf", "--runs", "0"], &["0 is not in 1..=1000"]),
        (&["eval", "skills/pdf", "--fail-under", "2"], &["a number from 0 to 1"]),
    ]);
}

#[test]
fn places_and_words() {
    check(&[
        (&["search", "--skills", "skills", "--limit", "0", "x"], &["invalid value '0'", "at least 1"]),
        (&["search", "--skills", "skills", "--limit", "-1", "x"], &["invalid value '-1'", "at least 1"]),
        (&["setup", "zed", "nope"], &["unexpected argument `nope`", "--agent ID", "!--prompt"]),
        (
            &["init", "demo", "--in", "skills/pdf/SKILL.md"],
            &["error: cannot create skill: ", ": skills/pdf/SKILL.md/demo"],
        ),
        (&["check", "skills", "--sarif", "no/x"], &["error: cannot write: no such file or directory: no/x"]),
        (&["init", "demo/"], &["did you mean `acp-skills-proxy init demo`?"]),
        (&["add", "https://"], &["host is missing", "!only https"]),
        (&["add", "github:acme"], &["expected an owner and a repository"]),
        (&["report", "nope"], &["error: cannot read: no such file or directory: nope"]),
        (&["help", "list", "foo"], &["unexpected argument `foo`", "acp-skills-proxy help list", "!unknown"]),
        (&["help", "setup", "nope"], &["acp-skills-proxy help setup"]),
    ]);
    let fixture = Fixture::new();
    assert_eq!(fixture.output(&["help", "setup", "zed"]), fixture.output(&["help", "setup"]));
}
