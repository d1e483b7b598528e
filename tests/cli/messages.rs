//! What a newcomer is told: the first five minutes, with all that can go wrong in them.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use expect_test::expect;
use serde_json::Value;

use crate::place::Place;

#[test]
fn help_is_had_in_every_way() {
    let place = Place::new();
    let help = place.said(&["--help"]);
    assert_eq!(place.said(&["help"]), help);
    assert_eq!(place.said(&["help", "try"]), place.said(&["try", "--help"]));
    for width in [50, 80, 100] {
        let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
            .args(["list", "-h"])
            .env("COLUMNS", width.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // Examples are lines of their own, and stay.
        let (flags, _) = text.split_once("Examples:").unwrap();
        let widest = flags.lines().map(|line| line.chars().count()).max().unwrap();
        assert!((width / 2..=width).contains(&widest), "{widest} of {width}: {text}");
    }
}

#[test]
fn agents_that_do_not_start() {
    let place = Place::new();
    let said = place.said(&["--skills", "skills", "--", "no-such-agent-here"]);
    assert!(
        said.contains("cannot start the agent `no-such-agent-here`") && said.ends_with("exit 127\n"),
        "{said}"
    );
    let path = std::env::var("PATH").unwrap().replace('\\', "/");
    assert!(said.contains(&format!("it is not in PATH, which is {path}")), "{said}");
    let said = place.said(&["--skills", "skills", "--", "npx -y some-agent"]);
    assert!(said.contains("these are 3 words in one: write `-- npx -y some-agent`"), "{said}");
    assert!(said.contains(r#""npx", "-y", "some-agent""#), "{said}");
    let said = place.said(&["--skills", "skills", "--", "./bin/agent"]);
    assert!(said.contains("there is no such file from … on"), "{said}");
    if cfg!(unix) {
        place.write("agent.sh", "exit 0\n");
        let said = place.said(&["--skills", "skills", "--", "./agent.sh"]);
        assert!(said.contains("`chmod +x ./agent.sh`") && said.ends_with("exit 126\n"), "{said}");
    }
    let said = place.said(&["doctor", "--skills", "skills", "--", "no-such-agent-here"]);
    assert!(said.contains("hint: it is not in PATH") && said.ends_with("exit 1\n"), "{said}");
}

#[test]
fn skills_that_are_not_there() {
    let place = Place::new();
    place.check(&["list"], expect![[r#"
        There are no skills.
        hint: name a skill with `--skill DIR`, a directory to look in with `--skills DIR`, or your own places with `--discover user`
        exit 0
    "#]]);
    place.check(&["list", "empty"], expect![[r#"
        There are no skills.
        hint: there is no skill in …/empty: a skill is a directory with a file named SKILL.md, at most 6 levels down
        exit 0
    "#]]);
    place.check(
        &["list", "--skills", "skills", "--include", "pfd"],
        expect![[r#"
        There are no skills.
        hint: `--include` and `--exclude` leave no skill in skills, which has `docx`, `pdf`
        exit 0
    "#]],
    );
    place.check(&["list", "skills", "empty"], expect![[r#"
        NAME  SCOPE    CATALOG  BODY  FILES  WHERE        DESCRIPTION
        docx  scanned       22     2      0  skills/docx  Reads docx.
        pdf   scanned       21     2      0  skills/pdf   Reads pdf.

        2 skills; about 52 tokens in the catalog.
        With how to use it and the 2 tools the model reads about 259 tokens before it activates anything.
        missing: there is no skill in …/empty: a skill is a directory with a file named SKILL.md, at most 6 levels down
        exit 0
    "#]]);
    let said = place.said(&["list", "nowhere"]);
    assert!(said.starts_with("error: cannot list `nowhere`: ") && said.ends_with("exit 2\n"), "{said}");
    place.check(&["try", "--skills", "empty"], expect![[r#"
        error: there is no skill to try
        hint: there is no skill in empty: a skill is a directory with a file named SKILL.md, at most 6 levels down
        exit 2
    "#]]);
    place.check(&["search", "--skills", "empty", "word"], expect![[r#"
        error: there is no skill to search
        hint: there is no skill in empty: a skill is a directory with a file named SKILL.md, at most 6 levels down
        exit 2
    "#]]);
    place.check(
        &["--skill", "skills", "--", "agent"],
        expect![[r#"
            error: cannot load the skill in …/skills
              …/skills: error[no-skill-md]: the directory has no SKILL.md
                help: use the directory of a single skill; to use a directory with several skills, scan it
            hint: there are skills below it (2): `--skills …/skills` takes all of them, in a configuration `roots`
            exit 2
        "#]],
    );
    place.check(
        &["--skill", "skills/pdf/nothing.md", "--", "agent"],
        expect![[r#"
        error: cannot load the skill in …/skills/pdf/nothing.md
          …/skills/pdf/nothing.md: error[no-such-directory]: there is no such directory
        exit 2
    "#]],
    );
    place.write("broken/x/SKILL.md", "---\nname: x\n---\nBody\n");
    place.check(
        &["try", "--skills", "broken"],
        expect![[r#"
        error: there is no skill to try
        hint: 1 skill cannot be loaded: `acp-skills-proxy check …/broken/x` says why
        exit 2
    "#]],
    );
}

#[test]
fn the_proxy_warns_of_what_is_not_there() {
    let place = Place::new();
    place.write("broken/x/SKILL.md", "---\nname: x\n---\nBody\n");
    // With a session, which is when the skills are looked at.
    let log = place.dir.join("log");
    let said = place.said(&[
        "try",
        "--skills",
        "skills",
        "--skills",
        "empty",
        "--skills",
        "broken",
        "--log-file",
        log.to_str().unwrap(),
    ]);
    assert!(said.ends_with("exit 0\n"), "{said}");
    let log = fs::read_to_string(log).unwrap().replace(place.dir.to_str().unwrap(), "…").replace('\\', "/");
    assert!(
        log.contains("WARN there is no skill in empty: a skill is a directory with a file named SKILL.md"),
        "{log}"
    );
    assert!(
        log.contains("skipped …/broken/x/SKILL.md: the skill has no description; add `description:`"),
        "{log}"
    );
}

/// A proxy that adds nothing works as well, so whoever forgot to name skills would wait for them.
#[cfg(unix)]
#[test]
fn the_proxy_warns_when_nothing_is_named() {
    let place = Place::new();
    let warning = "WARN no skills are named, so the agent gets none: name a skill with `--skill DIR`";
    let said = place.said(&["--", "cat"]);
    assert!(said.contains(warning) && said.ends_with("exit 0\n"), "{said}");
    let said = place.said(&["--skills", "skills", "--", "cat"]);
    assert!(!said.contains("WARN"), "{said}");
    let said = place.said(&["--discover", "project", "--", "cat"]);
    assert!(!said.contains("WARN"), "{said}");
}

#[test]
fn paths_that_no_shell_expands() {
    let place = Place::new();
    let found = |arguments: &[&str]| {
        let output = place.run(arguments);
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
        report["skills"][0]["name"].as_str().map(str::to_owned)
    };
    place.write("home/c.yaml", "skills: [~/skills/greet]\nstate: ~/state\n");
    for arguments in [
        &["list", "--json", "--skill", "~/skills/greet"][..],
        &["list", "--json", "--skills", "$HOME/skills"],
        &["list", "--json", "${HOME}/skills"],
        &["list", "--json", "--config", "~/c.yaml"],
    ] {
        assert_eq!(found(arguments).as_deref(), Some("greet"), "{arguments:?}");
    }
    let said = place.said(&["check", "~/skills"]);
    assert!(said.starts_with("1 skill checked"), "{said}");
    let said = place.said(&["--skills", "skills", "--", "~/bin/agent", "~/x"]);
    assert!(said.contains("cannot start the agent `…/home/bin/agent`"), "{said}");
    let said = place.said(&["list", "skills", "--log-file", "~/nowhere/log"]);
    assert!(
        said.contains("cannot write the log to …/home/nowhere/log: ") && said.ends_with("exit 2\n"),
        "{said}"
    );
}

#[test]
fn a_list_of_paths() {
    let place = Place::new();
    place.check(
        &["list", "skills/pdf/SKILL.md", "skills/docx", "~/skills"],
        expect![[r#"
            NAME   SCOPE    CATALOG  BODY  FILES  WHERE              DESCRIPTION
            pdf    scanned       21     2      0  skills/pdf         Reads pdf.
            docx   scanned       22     2      0  skills/docx        Reads docx.
            greet  scanned       21     2      0  home/skills/greet  Greets.

            3 skills; about 73 tokens in the catalog.
            With how to use it and the 2 tools the model reads about 282 tokens before it activates anything.
            exit 0
        "#]],
    );
}

/// Public repositories keep skills in hidden directories; version control and package managers keep other things there.
#[test]
fn hidden_directories() {
    let place = Place::new();
    for dir in [".curated", ".claude/skills", ".agents/skills", ".git", "node_modules", ".venv"] {
        let name = dir.trim_start_matches('.').replace(['/', '_'], "-");
        place.write(
            &format!("repository/{dir}/{name}/SKILL.md"),
            &format!("---\nname: {name}\ndescription: Is in a hidden directory.\n---\nBody\n"),
        );
    }
    place.check(&["list", "--skills", "repository"], expect![[r#"
        NAME           SCOPE    CATALOG  BODY  FILES  WHERE                                    DESCRIPTION
        agents-skills  scanned       27     2      0  repository/.agents/skills/agents-skills  Is in a hidden directory.
        claude-skills  scanned       27     2      0  repository/.claude/skills/claude-skills  Is in a hidden directory.
        curated        scanned       26     2      0  repository/.curated/curated              Is in a hidden directory.

        3 skills; about 90 tokens in the catalog.
        With how to use it and the 2 tools the model reads about 304 tokens before it activates anything.
        exit 0
    "#]]);
    // The same files.
    place.check(
        &["check", "repository"],
        expect![[r#"
        3 skills checked: 0 errors, 0 warnings
        exit 0
    "#]],
    );
}

#[test]
fn configurations() {
    let place = Place::new();
    place.write("c.yaml", "catlog_in: prompt\n");
    place.check(
        &["--config", "c.yaml", "--", "agent"],
        expect![[r#"
        error: c.yaml:1:1: there is no key `catlog_in`
        hint: did you mean `catalog_in`?
        exit 2
    "#]],
    );
    place.write("c.yaml", "agent: a\n  mcp: b\n");
    place.check(
        &["list", "--config", "c.yaml"],
        expect![[r#"
            error: c.yaml:2:6: this is not valid YAML: mapping values are not allowed in this context
            hint: check the indentation here and in the line above, and put text with `: `, ` #`, `[` or `{` in quotes
            exit 2
        "#]],
    );
    let said = place.said(&["list", "--config", "nowhere.yaml"]);
    assert!(said.starts_with("error: cannot read nowhere.yaml: ") && said.ends_with("exit 2\n"), "{said}");
}

#[test]
fn a_misspelled_field() {
    let place = Place::new();
    place.write("x/SKILL.md", "---\nname: x\ndescripton: Reads files.\n---\nBody\n");
    place.check(
        &["check", "x"],
        expect![[r#"
        error[description-missing]: the skill has no description
         --> x/SKILL.md:1:1
          |
        1 | ---
          | ^^^
          |
          = help: add `description:` to say what the skill does and when to use it

        warning[unknown-field]: the field `descripton` is not in the specification
         --> x/SKILL.md:3:1
          |
        3 | descripton: Reads files.
          | ^^^^^^^^^^^^^^^^^^^^^^^^
          |
          = help: did you mean `description`?

        1 skill checked: 1 error, 1 warning
        exit 1
    "#]],
    );
}

#[test]
fn files_that_cannot_be_written() {
    let place = Place::new();
    place.write("file", "");
    for (arguments, what) in [
        (&["list", "skills", "--log-file", "file/log"][..], "cannot write the log to file/log: "),
        (&["try", "--skills", "skills", "--events", "file/events"], "cannot write events to file/events: "),
        (
            &["--skills", "skills", "--events", "file/events", "--", "agent"],
            "cannot write events to file/events: ",
        ),
        (&["man", "file/pages"], "cannot write to file/pages: "),
    ] {
        let said = place.said(arguments);
        assert!(
            said.starts_with(&format!("error: {what}")) && said.ends_with("exit 2\n"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_doctor_with_a_limit() {
    let place = Place::new();
    let said = place.said(&["doctor", "--skills", "skills"]);
    assert!(
        said.contains("Skills work with the built-in agent. To look at yours, put its command after `--`"),
        "{said}"
    );
    if cfg!(unix) {
        let said = place.said(&["doctor", "--skills", "skills", "--timeout", "0.2", "--", "sleep", "600"]);
        assert!(
            said.contains("not done after 0.2 s: waiting for the agent's answer to initialize"),
            "{said}"
        );
        assert!(
            said.contains("hint: `--timeout SECONDS` waits longer") && said.ends_with("exit 1\n"),
            "{said}"
        );
    }
}

#[test]
fn trying_leaves_a_record() {
    let place = Place::new();
    let said =
        place.said(&["try", "--skills", "skills", "--prompt", "Read the pdf", "--events", "events.jsonl"]);
    assert!(said.ends_with("exit 0\n"), "{said}");
    let report = place.said(&["report", "events.jsonl"]);
    assert!(report.contains("1 session") && report.contains("pdf"), "{report}");
}

#[test]
fn for_packages() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = place.said(&["completions", shell]);
        assert!(script.contains("catalog-budget") && script.contains("doctor"), "{shell}: {script}");
        assert!(!script.contains("(internal)"), "{shell}: {script}");
    }
    assert!(place.said(&["man", "pages"]).ends_with("exit 0\n"));
    let mut pages: Vec<_> = fs::read_dir(place.dir.join("pages"))
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let commands = [
        "-add",
        "-check",
        "-completions",
        "-doctor",
        "-eval",
        "-init",
        "-list",
        "-remove",
        "-report",
        "-search",
        "-setup",
        "-sources",
        "-try",
        "-update",
        "",
    ];
    assert_eq!(pages, commands.map(|name| format!("acp-skills-proxy{name}.1")));
    let version = place.said(&["--version"]);
    let start = concat!("acp-skills-proxy ", env!("CARGO_PKG_VERSION"));
    assert!(version.starts_with(start) && version.lines().count() == 2, "{version}");
}

#[test]
fn this_directory_is_as_good_as_any() {
    let place = Place::new();
    let said = |dir: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
            .args(["list", "."])
            .current_dir(dir)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(said(&place.dir.join("skills")).contains("\npdf "));
    assert!(said(&place.dir.join("skills/pdf")).contains("\npdf "));
}
