//! The reference page: what `--help` says of the program and of each command. And the schema of the configuration file.

use std::{fmt::Write, path::Path, process::Command};

use expect_test::expect_file;

const HEAD: &str = "\
# Reference

Every flag and command of `acp-skills-proxy`, as `--help` tells. A test holds this page to that
(`UPDATE_EXPECT=1 cargo test -p acp-skills-proxy --test cli reference` writes it anew).

In a `--config` file flags have the same names with `_` for `-`, but for these: `--skill` and virtual skills stand under `skills`,
`--skills` under `roots`, `--source` under `sources`, `--no-watch` is `watch: false`, and the agent's command stands under `agent`.
Flags win over the file. A file has more than flags: virtual skills, `include` and `exclude` of a source, and `projects`, which
says what differs in some directories; its schema is [`skills.schema.json`](skills.schema.json). See [`examples/skills.yaml`](../../examples/skills.yaml).
";

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .args(arguments)
        .env("COLUMNS", "100")
        .env_remove("ACP_SKILLS_LOG")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap().replace("acp-skills-proxy.exe", "acp-skills-proxy");
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

/// What editors know of `skills.yaml`.
#[test]
fn schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills.schema.json");
    let schema = serde_json::to_string_pretty(&acp_skills::config::schema()).unwrap();
    expect_file![path].assert_eq(&(schema + "\n"));
}

#[test]
fn reference() {
    let mut page = HEAD.to_owned();
    for command in [
        "",
        "try",
        "doctor",
        "list",
        "check",
        "search",
        "add",
        "update",
        "remove",
        "sources",
        "report",
        "setup",
        "completions",
    ] {
        let arguments: Vec<_> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        let title = format!("acp-skills-proxy {command}");
        let _ = write!(page, "\n## `{}`\n\n```text\n{}\n```\n", title.trim(), help(&arguments));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference.md");
    expect_file![path].assert_eq(&page);
}
