//! `check` with files that are long, strange, or outside of the skill.

#[cfg(unix)]
use std::process::Command;

use expect_test::expect;

#[cfg(unix)]
use crate::check::{GOOD, run};
use crate::check::{check, skills};

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

        warning[vague-description]: description adds 1 specific word to the name (`word`), and does not say when to use the skill
        --> long/SKILL.md
         = help: name what the skill works on and what comes out, and add a sentence such as `Use when the user asks for …`

        1 skill checked: 1 error, 2 warnings
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
    let own = "---\nname: own\ndescription: Draws charts of revenue.\n---\nBody\n";
    std::fs::write(dir.path().join("skills/own/text.md"), own).expect("a file");
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
