//! Paths on the command line: home directories, hidden directories, several paths, and files that cannot be written.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use expect_test::expect;
use serde_json::Value;

use crate::fixture::Fixture;

#[test]
fn home_directories_in_paths_are_expanded() {
    let fixture = Fixture::new();
    let found = |arguments: &[&str]| {
        let output = fixture.run(arguments);
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
        report["skills"][0]["name"].as_str().map(str::to_owned)
    };
    fixture.write("home/c.yaml", "skills: [~/skills/greet]\nstate: ~/state\n");
    for arguments in [
        &["list", "--json", "--skill", "~/skills/greet"][..],
        &["list", "--json", "--skills", "$HOME/skills"],
        &["list", "--json", "${HOME}/skills"],
        &["list", "--json", "--config", "~/c.yaml"],
    ] {
        assert_eq!(found(arguments).as_deref(), Some("greet"), "{arguments:?}");
    }
    let output = fixture.output(&["check", "~/skills"]);
    assert!(output.contains("1 skill checked"), "{output}");
    let output = fixture.output(&["--skills", "skills", "--", "~/bin/agent", "~/x"]);
    // On Windows, messages don't use `~`.
    let home = if cfg!(windows) { "…/home" } else { "~" };
    assert!(output.contains(&format!("agent not found: {home}/bin/agent")), "{output}");
    let output = fixture.output(&["list", "skills", "--log-file", "~/nowhere/log"]);
    assert!(
        output.starts_with("error: cannot write log: ")
            && output.ends_with(&format!(": {home}/nowhere/log\nexit 2\n")),
        "{output}"
    );
}

#[test]
fn several_paths_are_listed() {
    let fixture = Fixture::new();
    fixture.check(
        &["list", "skills/pdf/SKILL.md", "skills/docx", "~/skills"],
        expect![[r#"
            NAME   SCOPE    CATALOG  BODY  FILES  WHERE              DESCRIPTION
            pdf    scanned       21     2      0  skills/pdf         Reads pdf.
            docx   scanned       22     2      0  skills/docx        Reads docx.
            greet  scanned       21     2      0  home/skills/greet  Greets.

            3 skills, about 73 tokens in the catalog.
            With instructions and 2 tools, the model reads about 282 tokens before it activates a skill.
            exit 0
        "#]],
    );
}

/// Public repositories have skills in hidden directories. The directories of version control and package managers are skipped.
#[test]
fn skills_in_hidden_directories_are_found() {
    let fixture = Fixture::new();
    for dir in [".curated", ".claude/skills", ".agents/skills", ".git", "node_modules", ".venv"] {
        let name = dir.trim_start_matches('.').replace(['/', '_'], "-");
        fixture.write(
            &format!("repository/{dir}/{name}/SKILL.md"),
            &format!("---\nname: {name}\ndescription: Is in a hidden directory.\n---\nBody\n"),
        );
    }
    fixture.check(&["list", "--skills", "repository"], expect![[r#"
        NAME           SCOPE    CATALOG  BODY  FILES  WHERE                                    DESCRIPTION
        agents-skills  scanned       27     2      0  repository/.agents/skills/agents-skills  Is in a hidden directory.
        claude-skills  scanned       27     2      0  repository/.claude/skills/claude-skills  Is in a hidden directory.
        curated        scanned       26     2      0  repository/.curated/curated              Is in a hidden directory.

        3 skills, about 90 tokens in the catalog.
        With instructions and 2 tools, the model reads about 304 tokens before it activates a skill.
        exit 0
    "#]]);
    // `check` should find the same skills.
    fixture.check(
        &["check", "repository"],
        expect![[r#"
        3 skills checked: 0 errors, 0 warnings
        exit 0
    "#]],
    );
}

#[test]
fn the_current_directory_can_be_listed() {
    let fixture = Fixture::new();
    let list = |dir: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
            .args(["list", "."])
            .current_dir(dir)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(list(&fixture.dir.join("skills")).contains("\npdf "));
    assert!(list(&fixture.dir.join("skills/pdf")).contains("\npdf "));
}

#[test]
fn files_that_cannot_be_written() {
    let fixture = Fixture::new();
    fixture.write("file", "");
    for (arguments, what, end) in [
        (&["list", "skills", "--log-file", "file/log"][..], "cannot write log: ", ": file/log\n"),
        (
            &["try", "--skills", "skills", "--events", "file/events"],
            "cannot write events: ",
            ": file/events\n",
        ),
        (
            &["--skills", "skills", "--events", "file/events", "--", "agent"],
            "cannot write events: ",
            ": file/events\n",
        ),
        (&["man", "file/pages"], "cannot write to file/pages: ", ")\n"),
    ] {
        let output = fixture.output(arguments);
        assert!(
            output.starts_with(&format!("error: {what}")) && output.ends_with(&format!("{end}exit 2\n")),
            "{arguments:?}: {output}"
        );
    }
}
