//! The output and the exit codes of `list`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs `list` in `dir`, with the home directory `dir/home`.
fn list(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .arg("list")
        .args(args)
        .current_dir(dir)
        .env("HOME", dir.join("home"))
        .env("USERPROFILE", dir.join("home"))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("COLUMNS")
        .env_remove("ACP_SKILLS_LOG")
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Creates a named skill, a skill of the user, one of the project, scanned skills, and an invalid skill.
fn tree() -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let dir = dunce::canonicalize(root.path()).unwrap();
    let skill = |name: &str| {
        format!("---\nname: {name}\ndescription: Does {name} & more.\n---\nDo {name}, then stop.\n")
    };
    write(&dir, "named/review/SKILL.md", &skill("review"));
    write(&dir, "named/review/references/list.md", "A list.\n");
    write(&dir, "home/.agents/skills/greet/SKILL.md", &skill("greet"));
    write(&dir, ".skills/greet/SKILL.md", &skill("Greet"));
    write(&dir, "many/a/SKILL.md", &skill("review"));
    write(&dir, "many/b/SKILL.md", "---\nname: b\n---\nNothing says what it is for.\n");
    write(
        &dir,
        "many/c/SKILL.md",
        "---\nname: c\ndescription: Hidden.\ndisable-model-invocation: true\n---\nBody.\n",
    );
    (root, dir)
}

const EVERYTHING: [&str; 8] =
    ["--skill", "named/review", "--skills", "many", "--discover", "user,project", "--trust", "project"];

/// Replaces everything in `text` that differs between machines.
fn portable(text: &str, dir: &Path) -> String {
    text.replace(dir.to_str().unwrap(), "…").replace('\\', "/")
}

#[test]
fn skills_are_shown_in_a_table() {
    let (_root, dir) = tree();
    let text = stdout(&list(&dir, &EVERYTHING));
    expect![[r#"
        NAME    SCOPE    CATALOG  BODY  FILES  WHERE          DESCRIPTION
        review  named         25     6      1  named/review   Does review & more.
        Greet   project       25     6      0  .skills/greet  Does Greet & more.
        c       scanned        0     2      0  many/c         Hidden.

        3 skills, about 59 tokens in the catalog.
        With instructions and 2 tools, the model reads about 267 tokens before it activates a skill.
        shadowed: greet in …/home/.agents/skills/greet/SKILL.md: using the skill in …/.skills/greet/SKILL.md instead
        shadowed: review in …/many/a/SKILL.md: using the skill in …/named/review/SKILL.md instead
        Greet: …/.skills/greet/SKILL.md:2:7: warning[name-not-lowercase]: name `Greet` contains upper-case letters
          help: use `greet`
        Greet: …/.skills/greet/SKILL.md:2:7: warning[name-not-directory]: name `Greet` should match the directory name `greet`
          help: rename the directory to `greet`, or change the name to match
        skipped: …/many/b/SKILL.md:1: error[description-missing]: skill has no description
          help: add `description:` to describe the skill and when to use it
    "#]].assert_eq(&portable(&text, &dir));
}

#[test]
fn a_table_fits_the_terminal() {
    let (_root, dir) = tree();
    write(
        &dir,
        "many/long/SKILL.md",
        &format!("---\nname: long\ndescription: {}\n---\nBody.\n", "word ".repeat(100)),
    );
    let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .args(["list", "--skills", "many"])
        .current_dir(&dir)
        .env("COLUMNS", "72")
        .output()
        .unwrap();
    let text = stdout(&output);
    let (table, _) = text.split_once("\n\n").unwrap();
    assert!(table.lines().all(|line| line.chars().count() <= 72), "{table}");
    assert!(table.contains('…'), "{table}");
}

#[test]
fn json_has_all_facts() {
    let (_root, dir) = tree();
    let args = [&EVERYTHING[..], &["--json"]].concat();
    let report: Value = serde_json::from_str(&stdout(&list(&dir, &args))).unwrap();
    let path = |path: &str| json!(dir.join(path).components().collect::<PathBuf>());

    let names: Vec<_> =
        report["skills"].as_array().unwrap().iter().map(|skill| (&skill["name"], &skill["scope"])).collect();
    let expected =
        [("review", "named"), ("Greet", "project"), ("c", "scanned")].map(|(a, b)| (json!(a), json!(b)));
    assert_eq!(names, expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>());

    let review = &report["skills"][0];
    assert_eq!(review["description"], "Does review & more.");
    assert_eq!(review["path"], path("named/review/SKILL.md"));
    assert_eq!(review["bodyTokens"], 6);
    assert_eq!(review["files"], 1);
    assert_eq!(review["diagnostics"], json!([]));
    assert!(review["catalogTokens"].as_u64().unwrap() > 10);
    assert_eq!(
        report["skills"][2]["catalogTokens"], 0,
        "a skill that the model does not see needs no tokens"
    );
    let diagnostic = &report["skills"][1]["diagnostics"][0];
    for field in ["code", "severity", "line", "column", "message", "help"] {
        assert!(diagnostic.get(field).is_some(), "{field}: {diagnostic}");
    }

    assert_eq!(
        report["shadowed"],
        json!([
            { "name": "greet", "path": path("home/.agents/skills/greet/SKILL.md"), "by": path(".skills/greet/SKILL.md") },
            { "name": "review", "path": path("many/a/SKILL.md"), "by": path("named/review/SKILL.md") },
        ])
    );
    let skipped = report["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 1);
    assert_eq!(skipped[0]["path"], path("many/b/SKILL.md"));
    assert_eq!(skipped[0]["diagnostics"][0]["code"], "description-missing");
    assert_eq!(report["catalog"]["shown"], 2);
    let tools: Vec<_> = report["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(tools, ["activate_skill", "read_skill_file"]);
    let number = |value: &Value| value.as_u64().unwrap();
    let tool_tokens: u64 =
        report["tools"].as_array().unwrap().iter().map(|tool| number(&tool["tokens"])).sum();
    let text_tokens = number(&report["fixedTokens"]) - tool_tokens;
    assert!(
        text_tokens > number(&report["catalog"]["tokens"]),
        "instructions are added to the catalog: {report}"
    );
    let without = stdout(&list(&dir, &[&args[..], &["--mcp", "off"]].concat()));
    assert_eq!(serde_json::from_str::<Value>(&without).unwrap()["tools"], json!([]));
}

#[test]
fn skills_are_filtered_and_may_be_missing() {
    let (_root, dir) = tree();
    let text = stdout(&list(&dir, &["--skills", "many", "--include", "C*", "--exclude", "review"]));
    assert!(text.contains("\nc ") && !text.contains("review "), "{text}");
    let text = stdout(&list(&dir, &["--skills", "home"]));
    assert!(text.contains("\ngreet "), "{text}");
    expect![[r#"
        No skills found.
        hint: use `--skill DIR` for one skill, `--skills DIR` for a directory of skills, or `--discover user` for your user directories
    "#]]
    .assert_eq(&stdout(&list(&dir, &[])));
    let report: Value = serde_json::from_str(&stdout(&list(&dir, &["--json"]))).unwrap();
    let nothing = json!({"skills": [], "shadowed": [], "skipped": [], "unapproved": [], "catalog": {"tokens": 0, "shown": 0, "omitted": 0}, "tools": [], "fixedTokens": 0});
    assert_eq!(report, nothing);
}

#[test]
fn errors_exit_with_code_2() {
    let (_root, dir) = tree();
    for args in [
        &["--skill", "many/b"][..],
        &["--skill", "nowhere"],
        &["--skills", "nowhere"],
        &["--include", "a["],
        &["--discover", "everywhere"],
    ] {
        let output = list(&dir, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty() && output.stderr.starts_with(b"error: "), "{args:?}: {output:?}");
    }
}

/// On Windows, paths are limited to 260 characters unless they start with `\\?\`.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test prints the reason")]
fn long_paths() {
    if cfg!(windows) && std::env::var_os("WINEHOMEDIR").is_some() {
        eprintln!(
            "skipped: `GetFinalPathNameByHandle` of Wine does not support paths of more than 260 characters"
        );
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let dir = dunce::canonicalize(root.path()).unwrap();
    let parts = ["a", "b", "c", "d", "e"].map(|letter| letter.repeat(80));
    let deep = parts.iter().fold(dir.clone(), |dir, part| dir.join(part));
    // This also works for long paths on Windows, because the standard library adds the prefix to absolute paths.
    fs::create_dir_all(deep.join("far")).unwrap();
    fs::write(deep.join("far/SKILL.md"), "---\nname: far\ndescription: Is far away.\n---\nRead a.md.\n")
        .unwrap();
    fs::write(deep.join("far/a.md"), "A file.\n").unwrap();
    let report: Value = serde_json::from_str(&stdout(&list(&dir, &["--skills", ".", "--json"]))).unwrap();
    assert_eq!(
        (&report["skills"][0]["name"], &report["skills"][0]["files"]),
        (&json!("far"), &json!(1)),
        "{report}"
    );
    let whole = deep.join("far");
    for arguments in [
        &["check", "."][..],
        &["check", whole.to_str().unwrap()],
        &["list", "--skill", whole.to_str().unwrap()],
        &["try", "--skill", whole.to_str().unwrap(), "--mcp", "http"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
            .args(arguments)
            .current_dir(&dir)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}
