//! `acp-skills-proxy check`, as a user or a hook runs it.

use std::{path::Path, process::Command};

use expect_test::{Expect, expect};
use tempfile::TempDir;

pub(crate) const GOOD: &str = "---\nname: good\ndescription: Reads CSV files with prices.\n---\nBody\n";
const BAD: &str = "---\nname: Bad_Name\ndescription: Use when: prices.\nversion: 1.0\n---\nBody\n";
const FLOW: &str =
    "---\nname: flow\ndescription: Writes invoices as spreadsheets.\nmetadata: {tags: a}\n---\nBody\n";

/// Creates a directory with these files.
pub(crate) fn skills(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
    dir
}

/// Runs `check` in a directory, and returns the exit code, stdout and stderr.
pub(crate) fn run(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .arg("check")
        .args(arguments)
        .current_dir(dir)
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[expect(clippy::needless_pass_by_value, reason = "the form in which expect-test updates snapshots")]
pub(crate) fn check(dir: &TempDir, arguments: &[&str], expect: Expect) {
    let (code, stdout, stderr) = run(dir.path(), arguments);
    expect.assert_eq(&format!("{stdout}{stderr}exit {}\n", code.unwrap_or(-1)).replace('\\', "/"));
}

#[test]
fn a_good_skill_passes() {
    let dir = skills(&[("good/SKILL.md", GOOD)]);
    for path in ["good", "good/", "good/SKILL.md", ".", "good/../good"] {
        let (code, stdout, stderr) = run(dir.path(), &[path]);
        let found = (code, stdout.as_str(), stderr.as_str());
        assert_eq!(found, (Some(0), "1 skill checked: 0 errors, 0 warnings\n", ""), "{path}");
    }
}

#[test]
fn problems_are_shown_with_their_location() {
    let dir = skills(&[("good/SKILL.md", GOOD), ("bad/SKILL.md", BAD)]);
    check(
        &dir,
        &["bad"],
        expect![[r#"
        error[name-not-lowercase]: name `Bad_Name` contains upper-case letters
         --> bad/SKILL.md:2:7
          |
        2 | name: Bad_Name
          |       ^^^^^^^^
          |
          = help: use `bad-name`

        error[name-invalid-characters]: name `Bad_Name` contains "_", but this character is not allowed
         --> bad/SKILL.md:2:7
          |
        2 | name: Bad_Name
          |       ^^^^^^^^
          |
          = help: use `bad-name`

        error[name-not-directory]: name `Bad_Name` should match the directory name `bad`
         --> bad/SKILL.md:2:7
          |
        2 | name: Bad_Name
          |       ^^^^^^^^
          |
          = help: rename the directory to `bad-name`, or change the name to match

        error[invalid-yaml]: invalid YAML value for `description`: mapping values are not allowed in this context
         --> bad/SKILL.md:3:22
          |
        3 | description: Use when: prices.
          |                      ^
          |
          = help: put the text in quotes, or in indented lines after `>-`; using the literal text for now

        warning[unknown-field]: field `version` is not in the specification
         --> bad/SKILL.md:4:1
          |
        4 | version: 1.0
          | ^^^^^^^^^^^^
          |
          = help: move this field to `metadata`, because some clients reject unknown fields: `metadata:` / `  version: …`

        1 skill checked: 4 errors, 1 warning
        exit 1
    "#]],
    );
}

#[test]
fn the_reference_rules_are_checked() {
    let dir = skills(&[("flow/SKILL.md", FLOW), ("bad/SKILL.md", BAD)]);
    check(
        &dir,
        &["flow"],
        expect![[r#"
        1 skill checked: 0 errors, 0 warnings
        exit 0
    "#]],
    );
    check(
        &dir,
        &["--reference", "flow", "bad"],
        expect![[r#"
        error[invalid-yaml]: Invalid YAML in frontmatter: Found ugly disallowed JSONesque flow mapping
         --> flow/SKILL.md:4:11
          |
        4 | metadata: {tags: a}
          |           ^

        error[invalid-yaml]: Invalid YAML in frontmatter: mapping values are not allowed in this context
         --> bad/SKILL.md:3:22
          |
        3 | description: Use when: prices.
          |                      ^

        2 skills checked: 2 errors, 0 warnings
        exit 1
    "#]],
    );
}

#[test]
fn directories_are_searched() {
    let dir = skills(&[
        ("a/good/SKILL.md", GOOD),
        ("b/good/SKILL.md", GOOD),
        ("c/prose/SKILL.md", "# No frontmatter\n"),
        ("d/lower/skill.md", "---\nname: lower\ndescription: Draws charts of revenue.\n---\nBody\n"),
    ]);
    check(
        &dir,
        &[".", "a/good"],
        expect![[r#"
        error[frontmatter-missing]: file does not start with frontmatter
         --> c/prose/SKILL.md:1:1
          |
        1 | # No frontmatter
          | ^^^^^^^^^^^^^^^^
          |
          = help: start the file with `---`, `name:`, `description:` and `---` on separate lines

        error[file-name]: file is named skill.md, but most agents only find SKILL.md
        --> d/lower/skill.md
         = help: rename the file to SKILL.md

        4 skills checked: 2 errors, 0 warnings
        exit 1
    "#]],
    );
}

#[test]
fn nothing_to_check() {
    let dir = skills(&[("README.md", "text")]);
    check(
        &dir,
        &["."],
        expect![[r#"
            error: no skills found in `.`
            hint: a skill is a directory with a SKILL.md file
            exit 2
        "#]],
    );
    let (code, stdout, stderr) = run(dir.path(), &["missing"]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.starts_with("error: cannot check: ") && stderr.ends_with(": missing\n"), "{stderr}");
}

#[test]
fn json_output_is_stable() {
    let dir =
        skills(&[("good/SKILL.md", GOOD), ("bad/SKILL.md", BAD), ("prose/SKILL.md", "# No frontmatter\n")]);
    let (code, stdout, _) = run(dir.path(), &["--json", "good", "bad", "prose"]);
    assert_eq!(code, Some(1));
    let value: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    for skill in value.as_array().expect("a list") {
        let path = skill["path"].as_str().expect("a path");
        assert!(Path::new(path).is_absolute() && path.ends_with("SKILL.md"), "{path}");
    }
    // Take the path from the output, because it's the canonical one, which might not be what `tempfile` returns.
    let root = value[0]["path"].as_str().and_then(|path| path.strip_suffix("SKILL.md")).expect("a path");
    let root = Path::new(root).parent().expect("a parent").to_string_lossy();
    let text = serde_json::to_string_pretty(&value).expect("JSON");
    let text = text
        .replace(serde_json::to_string(&root).expect("JSON").trim_matches('"'), "DIR")
        .replace("\\\\", "/");
    expect![[r#"
        [
          {
            "path": "DIR/good/SKILL.md",
            "ok": true,
            "name": "good",
            "description": "Reads CSV files with prices.",
            "diagnostics": []
          },
          {
            "path": "DIR/bad/SKILL.md",
            "ok": false,
            "name": "Bad_Name",
            "description": "Use when: prices.",
            "diagnostics": [
              {
                "code": "name-not-lowercase",
                "severity": "error",
                "line": 2,
                "column": 7,
                "message": "name `Bad_Name` contains upper-case letters",
                "help": "use `bad-name`"
              },
              {
                "code": "name-invalid-characters",
                "severity": "error",
                "line": 2,
                "column": 7,
                "message": "name `Bad_Name` contains \"_\", but this character is not allowed",
                "help": "use `bad-name`"
              },
              {
                "code": "name-not-directory",
                "severity": "error",
                "line": 2,
                "column": 7,
                "message": "name `Bad_Name` should match the directory name `bad`",
                "help": "rename the directory to `bad-name`, or change the name to match"
              },
              {
                "code": "invalid-yaml",
                "severity": "error",
                "line": 3,
                "column": 22,
                "message": "invalid YAML value for `description`: mapping values are not allowed in this context",
                "help": "put the text in quotes, or in indented lines after `>-`; using the literal text for now"
              },
              {
                "code": "unknown-field",
                "severity": "warning",
                "line": 4,
                "column": 1,
                "message": "field `version` is not in the specification",
                "help": "move this field to `metadata`, because some clients reject unknown fields: `metadata:` / `  version: …`"
              }
            ]
          },
          {
            "path": "DIR/prose/SKILL.md",
            "ok": false,
            "name": null,
            "description": null,
            "diagnostics": [
              {
                "code": "frontmatter-missing",
                "severity": "error",
                "line": 1,
                "column": 1,
                "message": "file does not start with frontmatter",
                "help": "start the file with `---`, `name:`, `description:` and `---` on separate lines"
              }
            ]
          }
        ]"#]].assert_eq(&text);
}

/// The example that the manual calls finished is valid for every client.
#[test]
fn the_examples_follow_the_rules_of_the_reference() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills");
    let (code, stdout, _) = run(&examples, &["--reference", "."]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains("0 errors, 0 warnings"), "{stdout}");
}

#[test]
fn descriptions_that_fight_are_warnings() {
    let review = |name: &str, text: &str| format!("---\nname: {name}\ndescription: {text}\n---\nBody\n");
    let dir = skills(&[
        (
            "review/SKILL.md",
            &review("review", "Finds bugs, style problems and missing tests in pull requests."),
        ),
        ("look/SKILL.md", &review("look", "Finds missing tests, bugs and style problems in pull requests.")),
        ("always/SKILL.md", &review("always", "Plans the work in steps. Use for every request.")),
        ("helper/SKILL.md", &review("helper", "Helps with various things.")),
    ]);
    check(
        &dir,
        &["."],
        expect![[r#"
        warning[broad-description]: description claims `every request`, so it competes with 3 other skills; for example, `Helps with various things` also fits `helper`
        --> always/SKILL.md
         = help: name the tasks for which the skill is meant, or activate it with a slash command only (`disable-model-invocation: true`)

        warning[vague-description]: description adds 0 specific words to the name, and does not say when to use the skill
        --> helper/SKILL.md
         = help: name what the skill works on and what comes out, and add a sentence such as `Use when the user asks for …`

        warning[similar-descriptions]: description is 100 % similar to that of `look`: both have `finds`, `bugs`, `style`, `problems`, `missing`, `tests`, so both take a query such as `finds bugs style problems`
        --> review/SKILL.md
         = help: say in both descriptions which tasks belong to `review` and which to `look`, or merge the skills

        4 skills checked: 0 errors, 3 warnings
        exit 0
    "#]],
    );
    let (code, stdout, _) = run(dir.path(), &["--reference", "."]);
    assert_eq!((code, stdout.as_str()), (Some(0), "4 skills checked: 0 errors, 0 warnings\n"));
}
