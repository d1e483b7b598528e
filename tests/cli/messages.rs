//! Messages for new users: help, warnings and errors about agents, skills, paths and configuration files.

use std::{
    fs,
    process::{Command, Stdio},
};

use expect_test::expect;

use crate::fixture::Fixture;

#[test]
fn all_ways_to_get_help_print_the_same() {
    let fixture = Fixture::new();
    let help = fixture.output(&["--help"]);
    assert_eq!(fixture.output(&["help"]), help);
    assert_eq!(fixture.output(&["help", "try"]), fixture.output(&["try", "--help"]));
    for width in [50, 80, 100] {
        let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
            .args(["list", "-h"])
            .env("COLUMNS", width.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // We don't wrap the examples, so only look at the text above them.
        let (flags, _) = text.split_once("Examples:").unwrap();
        let widest = flags.lines().map(|line| line.chars().count()).max().unwrap();
        assert!((width / 2..=width).contains(&widest), "{widest} of {width}: {text}");
    }
}

#[test]
fn a_hint_explains_why_an_agent_does_not_start() {
    let fixture = Fixture::new();
    let output = fixture.output(&["--skills", "skills", "--", "no-such-agent-here"]);
    assert!(
        output.starts_with("error: agent not found: no-such-agent-here\n") && output.ends_with("exit 127\n"),
        "{output}"
    );
    let path = std::env::var("PATH").unwrap().replace('\\', "/");
    assert!(output.contains(&format!("PATH is {path}\n")), "{output}");
    let output = fixture.output(&["--skills", "skills", "--", "npx -y some-agent"]);
    assert!(output.contains("use separate arguments instead: `-- npx -y some-agent`"), "{output}");
    assert!(output.contains(r#""npx", "-y", "some-agent""#), "{output}");
    let output = fixture.output(&["--skills", "skills", "--", "./bin/agent"]);
    assert!(output.contains("file does not exist in …"), "{output}");
    if cfg!(unix) {
        fixture.write("agent.sh", "exit 0\n");
        let output = fixture.output(&["--skills", "skills", "--", "./agent.sh"]);
        assert!(output.contains("`chmod +x ./agent.sh`") && output.ends_with("exit 126\n"), "{output}");
    }
    let output = fixture.output(&["doctor", "--skills", "skills", "--", "no-such-agent-here"]);
    assert!(output.contains("hint: program is not in PATH") && output.ends_with("exit 1\n"), "{output}");
}

#[test]
fn missing_and_invalid_skills() {
    let fixture = Fixture::new();
    fixture.check(&["list"], expect![[r#"
        No skills found.
        hint: use `--skill DIR` for one skill, `--skills DIR` for a directory of skills, or `--discover user` for your user directories
        exit 0
    "#]]);
    fixture.check(
        &["list", "empty"],
        expect![[r#"
        No skills found.
        hint: no skills found in …/empty: a skill is a directory with a SKILL.md file, at most 6 levels down
        exit 0
    "#]],
    );
    fixture.check(
        &["list", "--skills", "skills", "--include", "pfd"],
        expect![[r#"
            No skills found.
            hint: no skills in skills match `--include` and `--exclude`; available skills: `docx`, `pdf`
            exit 0
        "#]],
    );
    fixture.check(&["list", "skills", "empty"], expect![[r#"
        NAME  SCOPE    CATALOG  BODY  FILES  WHERE        DESCRIPTION
        docx  scanned       22     2      0  skills/docx  Reads docx.
        pdf   scanned       21     2      0  skills/pdf   Reads pdf.

        2 skills, about 52 tokens in the catalog.
        With instructions and 2 tools, the model reads about 259 tokens before it activates a skill.
        missing: no skills found in …/empty: a skill is a directory with a SKILL.md file, at most 6 levels down
        exit 0
    "#]]);
    let output = fixture.output(&["list", "nowhere"]);
    assert!(
        output.starts_with("error: cannot list: ") && output.ends_with(": nowhere\nexit 2\n"),
        "{output}"
    );
    fixture.check(
        &["try", "--skills", "empty"],
        expect![[r#"
        error: no skills found
        hint: no skills found in empty: a skill is a directory with a SKILL.md file, at most 6 levels down
        exit 2
    "#]],
    );
    fixture.check(
        &["search", "--skills", "empty", "word"],
        expect![[r#"
        error: no skills found
        hint: no skills found in empty: a skill is a directory with a SKILL.md file, at most 6 levels down
        exit 2
    "#]],
    );
    fixture.check(
        &["--skill", "skills", "--", "agent"],
        expect![[r#"
            error: directory has no SKILL.md: …/skills
                help: use a directory that contains a SKILL.md, or scan the directory to load several skills
            hint: the directory contains 2 skills; use `--skills …/skills`, or `roots` in a configuration file, to use all of them
            exit 2
        "#]],
    );
    fixture.check(
        &["--skill", "skills/pdf/nothing.md", "--", "agent"],
        expect![[r#"
            error: no such skill directory: …/skills/pdf/nothing.md
            exit 2
        "#]],
    );
    fixture.write("broken/x/SKILL.md", "---\nname: x\n---\nBody\n");
    fixture.check(
        &["try", "--skills", "broken"],
        expect![[r#"
            error: no skills found
            hint: cannot load 1 skill; use `acp-skills-proxy check …/broken/x` for details
            exit 2
        "#]],
    );
}

#[test]
fn the_proxy_warns_about_missing_and_invalid_skills() {
    let fixture = Fixture::new();
    fixture.write("broken/x/SKILL.md", "---\nname: x\n---\nBody\n");
    // We need to open a session here, because skills aren't loaded before that.
    let log = fixture.dir.join("log");
    let output = fixture.output(&[
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
    assert!(output.ends_with("exit 0\n"), "{output}");
    let log = fs::read_to_string(log).unwrap().replace(fixture.dir.to_str().unwrap(), "…").replace('\\', "/");
    assert!(
        log.contains("WARN no skills found in empty: a skill is a directory with a SKILL.md file"),
        "{log}"
    );
    assert!(
        log.contains("skipped …/broken/x/SKILL.md: skill has no description; add `description:`"),
        "{log}"
    );
}

/// Without the warning, a user who forgot to name skills would not notice it, because the proxy works without skills.
#[cfg(unix)]
#[test]
fn the_proxy_warns_if_no_skills_are_named() {
    let fixture = Fixture::new();
    let warning = "WARN no skills selected for the agent; use `--skill DIR` for one skill";
    let output = fixture.output(&["--", "cat"]);
    assert!(output.contains(warning) && output.ends_with("exit 0\n"), "{output}");
    let output = fixture.output(&["--skills", "skills", "--", "cat"]);
    assert!(!output.contains("WARN"), "{output}");
    let output = fixture.output(&["--discover", "project", "--", "cat"]);
    assert!(!output.contains("WARN"), "{output}");
}

#[test]
fn invalid_configuration_files() {
    let fixture = Fixture::new();
    fixture.write("c.yaml", "catlog_in: prompt\n");
    fixture.check(
        &["--config", "c.yaml", "--", "agent"],
        expect![[r#"
            error: unknown key `catlog_in`: c.yaml:1:1
            hint: did you mean `catalog_in`?
            exit 2
        "#]],
    );
    fixture.write("c.yaml", "agent: a\n  mcp: b\n");
    fixture.check(
        &["list", "--config", "c.yaml"],
        expect![[r#"
            error: invalid YAML: mapping values are not allowed in this context: c.yaml:2:6
            hint: check the indentation of this line and the previous line, and use quotes for text with `: `, ` #`, `[` or `{`
            exit 2
        "#]],
    );
    let output = fixture.output(&["list", "--config", "nowhere.yaml"]);
    assert!(output.starts_with("error: ") && output.ends_with(": nowhere.yaml\nexit 2\n"), "{output}");
}

#[test]
fn mcp_servers_of_skills() {
    let fixture = Fixture::new();
    let url = "https://example.com/mcp";
    for (entry, words) in [
        (format!("{{ type: http, url: '{url}' }}"), ""),
        ("{ type: stdio, command: a }".to_owned(), ""),
        (
            format!("{{ type: sse, url: '{url}' }}"),
            "the old transport SSE is not supported; use the `url` for streamable HTTP",
        ),
        (format!("{{ type: ws, url: '{url}' }}"), "`type` must be `stdio` or `http`"),
        (format!("{{ command: a, url: '{url}' }}"), "expected either `command` or `url`"),
        ("{ url: 'http://example.com/mcp' }".to_owned(), "`url` must be https, or http on loopback"),
    ] {
        fixture
            .write("c.yaml", &format!("skills: [{{ name: kit, description: Has tools., mcp: {entry} }}]\n"));
        let said = fixture.output(&["list", "--config", "c.yaml"]);
        assert!(said.contains(words) && said.ends_with("exit 0\n") == words.is_empty(), "{entry}: {said}");
    }
}

#[test]
fn keys_without_an_effect_on_a_source() {
    let fixture = Fixture::new();
    for (entry, words) in [
        ("{ source: 'github:acme/skills', headers: { A: b } }", "git does not send `headers`"),
        ("{ source: 'mcp+https://example.com/mcp', verify: git }", "`verify` is not for MCP servers"),
    ] {
        fixture.write("c.yaml", &format!("sources: [{entry}]\n"));
        let said = fixture.output(&["list", "--config", "c.yaml"]);
        assert!(said.contains(words) && said.ends_with("exit 2\n"), "{entry}: {said}");
    }
}

#[test]
fn a_misspelled_field() {
    let fixture = Fixture::new();
    fixture.write("x/SKILL.md", "---\nname: x\ndescripton: Reads files.\n---\nBody\n");
    fixture.check(
        &["check", "x"],
        expect![[r#"
        error[description-missing]: skill has no description
         --> x/SKILL.md:1:1
          |
        1 | ---
          | ^^^
          |
          = help: add `description:` to describe the skill and when to use it

        warning[unknown-field]: field `descripton` is not in the specification
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
fn doctor_has_a_timeout() {
    let fixture = Fixture::new();
    let output = fixture.output(&["doctor", "--skills", "skills"]);
    assert!(
        output.contains(
            "Skills work with the built-in agent. To test your agent, put the agent command after `--`"
        ),
        "{output}"
    );
    if cfg!(unix) {
        let output =
            fixture.output(&["doctor", "--skills", "skills", "--timeout", "0.2", "--", "sleep", "600"]);
        assert!(
            output.contains("timed out after 0.2 s while waiting for response to initialize"),
            "{output}"
        );
        assert!(
            output.contains("hint: use `--timeout SECONDS` to wait longer") && output.ends_with("exit 1\n"),
            "{output}"
        );
    }
}

#[test]
fn try_writes_events() {
    let fixture = Fixture::new();
    let output = fixture.output(&[
        "try",
        "--skills",
        "skills",
        "--prompt",
        "Read the pdf",
        "--events",
        "events.jsonl",
    ]);
    assert!(output.ends_with("exit 0\n"), "{output}");
    let report = fixture.output(&["report", "events.jsonl"]);
    assert!(report.contains("1 session") && report.contains("pdf"), "{report}");
}

#[test]
fn completions_and_man_pages_for_packages() {
    let fixture = Fixture::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = fixture.output(&["completions", shell]);
        assert!(script.contains("catalog-budget") && script.contains("doctor"), "{shell}: {script}");
        assert!(!script.contains("(internal)"), "{shell}: {script}");
    }
    assert!(fixture.output(&["man", "pages"]).ends_with("exit 0\n"));
    let mut pages: Vec<_> = fs::read_dir(fixture.dir.join("pages"))
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let commands = [
        "-add",
        "-check",
        "-completions",
        "-doctor",
        "-eval-cases",
        "-eval-history",
        "-eval-improve",
        "-eval-merge",
        "-eval",
        "-init",
        "-list",
        "-mcp",
        "-outdated",
        "-policy-check",
        "-policy-show",
        "-policy",
        "-remove",
        "-report",
        "-search",
        "-setup",
        "-sources-pin",
        "-sources-unpin",
        "-sources",
        "-trust",
        "-try",
        "-untrust",
        "-update",
        "-why",
        "",
    ];
    assert_eq!(pages, commands.map(|name| format!("acp-skills-proxy{name}.1")));
    let version = fixture.output(&["--version"]);
    let start = concat!("acp-skills-proxy ", env!("CARGO_PKG_VERSION"));
    assert!(version.starts_with(start) && version.lines().count() == 2, "{version}");
}
