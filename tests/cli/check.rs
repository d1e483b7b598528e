//! `acp-skills-proxy check`, as a user or a hook runs it.

use std::{path::Path, process::Command};

use expect_test::{Expect, expect};
use tempfile::TempDir;

const GOOD: &str = "---\nname: good\ndescription: Reads files.\n---\nBody\n";
const BAD: &str = "---\nname: Bad_Name\ndescription: Use when: asked.\nversion: 1.0\n---\nBody\n";
const FLOW: &str = "---\nname: flow\ndescription: Reads files.\nmetadata: {tags: a}\n---\nBody\n";

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
fn check(dir: &TempDir, arguments: &[&str], expect: Expect) {
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
        3 | description: Use when: asked.
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
        3 | description: Use when: asked.
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
        ("d/lower/skill.md", "---\nname: lower\ndescription: d\n---\nBody\n"),
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
fn long_and_strange_files() {
    let line = "word ".repeat(300);
    let long = format!("---\nname: long\ndescription: {line}\n---\n{}", "line\n".repeat(600));
    let dir = skills(&[
        ("long/SKILL.md", &long),
        ("empty/SKILL.md", ""),
        ("crlf/SKILL.md", "---\r\nname: x\r\n---\r\n"),
    ]);
    check(
        &dir,
        &["long"],
        expect![[r#"
        error[description-too-long]: `description` has 1499 characters, but should have at most 1024
         --> long/SKILL.md:3:14
          |
        3 | ...n: word word word word word word word wor... word word word word word word word wo
          |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^...^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          |
          = help: move details from this field to the body

        warning[body-too-long]: body has 600 lines and 3000 bytes, but should have at most 500 lines and 20480 bytes
         --> long/SKILL.md:5:1
          |
        5 | line
          | ^^^^
          |
          = help: move details to files in `references/`

        1 skill checked: 1 error, 1 warning
        exit 1
    "#]],
    );
    check(
        &dir,
        &["empty", "crlf"],
        expect![[r#"
            error[frontmatter-missing]: file does not start with frontmatter
             --> empty/SKILL.md:1:1
              |
            1 |
              | ^
              |
              = help: start the file with `---`, `name:`, `description:` and `---` on separate lines

            error[description-missing]: skill has no description
             --> crlf/SKILL.md:1:1
              |
            1 | ---
              | ^^^
              |
              = help: add `description:` to describe the skill and when to use it

            error[name-not-directory]: name `x` should match the directory name `crlf`
             --> crlf/SKILL.md:2:7
              |
            2 | name: x
              |       ^
              |
              = help: rename the directory to `x`, or change the name to match

            warning[body-empty]: skill has no instructions
             --> crlf/SKILL.md:3:1
              |
            3 | ---
              | ^^^
              |
              = help: add instructions after the frontmatter

            2 skills checked: 3 errors, 1 warning
            exit 1
        "#]],
    );
    std::fs::create_dir(dir.path().join("huge")).expect("a directory");
    std::fs::write(dir.path().join("huge/SKILL.md"), vec![b'x'; 1024 * 1024 + 1]).expect("a file");
    check(
        &dir,
        &["huge"],
        expect![[r#"
            error[file-too-large]: file has 1048577 bytes, but at most 1048576 are allowed
            --> huge/SKILL.md
             = help: move details to files in `references/`

            1 skill checked: 1 error, 0 warnings
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
    assert!(stderr.starts_with("error: cannot check `missing`: "), "{stderr}");
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
            "description": "Reads files.",
            "diagnostics": []
          },
          {
            "path": "DIR/bad/SKILL.md",
            "ok": false,
            "name": "Bad_Name",
            "description": "Use when: asked.",
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

/// In a hook or in CI, the author of a pull request controls `SKILL.md`, which may be a link to a secret file.
#[cfg(unix)]
#[test]
fn files_outside_of_the_skill_are_not_shown() {
    use std::os::unix::fs::symlink;
    const SECRET: &str = "TOKEN=hunter2";
    let dir = skills(&[(".env", SECRET), ("good/SKILL.md", GOOD)]);
    let secrets = dir.path().join(".env");
    let targets =
        ["/etc/passwd", "/proc/self/environ", "../../.env", secrets.to_str().expect("UTF-8"), "/dev/stdin"];
    for (number, target) in targets.into_iter().enumerate() {
        let skill = dir.path().join(format!("skills/{number}"));
        std::fs::create_dir_all(&skill).expect("a directory");
        symlink(target, skill.join("SKILL.md")).expect("a link");
    }
    // On the other hand, it's fine to use links within a skill, or a link to the whole skill.
    std::fs::create_dir_all(dir.path().join("skills/own")).expect("a directory");
    std::fs::write(dir.path().join("skills/own/text.md"), GOOD.replace("good", "own")).expect("a file");
    symlink("text.md", dir.path().join("skills/own/SKILL.md")).expect("a link");
    symlink("../good", dir.path().join("skills/good")).expect("a link");
    for arguments in [
        &["skills"][..],
        &["skills", "--json"],
        &["skills", "--reference"],
        &["skills/2", "skills/3"],
        &["skills/0/SKILL.md", "skills/1/SKILL.md", "skills/2/SKILL.md"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
            .arg("check")
            .args(arguments)
            .current_dir(dir.path())
            .env("SECRET", SECRET)
            .output()
            .expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert!(!text.contains("hunter2") && !text.contains("root:"), "{arguments:?}: {text}");
        assert!(text.contains("outside-skill"), "{arguments:?}: {text}");
        assert!(output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
    let (code, stdout, _) = run(dir.path(), &["skills/own", "skills/good"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "2 skills checked: 0 errors, 0 warnings\n"));
}
