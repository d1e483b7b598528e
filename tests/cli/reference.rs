//! The reference page: what `--help` says of the program and of each command.

use std::{fmt::Write, path::Path, process::Command};

use expect_test::expect_file;

const HEAD: &str = "\
# Reference

Every flag and command of `acp-skills-proxy`, as `--help` tells. A test holds this page to that
(`UPDATE_EXPECT=1 cargo test -p acp-skills-proxy --test cli reference` writes it anew).

In a `--config` file flags have the same names with `_` for `-`, but for these: `--skill` and virtual skills stand under `skills`,
`--skills` under `roots`, `--source` under `sources`, `--no-watch` is `watch: false`, and the agent's command stands under `agent`.
Flags win over the file. See [`examples/skills.yaml`](../../examples/skills.yaml).
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

#[test]
fn reference() {
    let mut page = HEAD.to_owned();
    for command in ["", "try", "doctor", "list", "check", "search", "report", "setup", "completions"] {
        let arguments: Vec<_> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        let title = format!("acp-skills-proxy {command}");
        let _ = write!(page, "\n## `{}`\n\n```text\n{}\n```\n", title.trim(), help(&arguments));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference.md");
    expect_file![path].assert_eq(&page);
}
