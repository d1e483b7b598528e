//! Loading a single directory.

use super::*;

/// Loads the skill in the directory `dir` of a tree, and compares it or the error.
fn check_load(files: &[(&str, &str)], dir: &str, expected: Expect) {
    let root = tree(files);
    let base = dunce::canonicalize(root.path()).unwrap();
    let shown = match load_dir(&base.join(dir)) {
        Ok((skill, diagnostics)) => {
            let mut set = SkillSet::builder();
            set.add(skill, diagnostics);
            show(&set.build(), &base)
        }
        Err(error) => error.to_string().replace(base.to_str().unwrap(), "…").replace('\\', "/"),
    };
    expected.assert_eq(&shown);
}

#[test]
fn a_single_directory_is_loaded() {
    let files = [
        ("ok/SKILL.md", "name=ok"),
        ("lower/skill.md", "name=lower"),
        ("none/README.md", ""),
        ("nothing/SKILL.md", "Just text.\n"),
        ("silent/SKILL.md", "---\nname: silent\n---\n"),
        ("nameless/SKILL.md", "---\ndescription: Has no name.\n---\n"),
    ];
    for (dir, expected) in [
        ("ok", expect!["named ok ok"]),
        ("ok/", expect!["named ok ok"]),
        ("none/../ok", expect!["named ok ok"]),
        ("ok/.", expect!["named ok ok"]),
        ("ok/SKILL.md", expect!["named ok ok"]),
        ("lower", expect!["named lower lower file-name"]),
        ("nameless", expect!["named nameless nameless name-missing body-empty"]),
        (
            "none",
            expect![[r#"
                failed to load skill …/none: error[no-skill-md]: directory has no SKILL.md
                  help: use a directory that contains a SKILL.md, or scan the directory to load several skills"#]],
        ),
        (
            "nothing",
            expect![[r#"
                failed to load skill …/nothing/SKILL.md:1:1: error[frontmatter-missing]: file does not start with frontmatter
                  help: start the file with `---`, `name:`, `description:` and `---` on separate lines"#]],
        ),
        (
            "silent",
            expect![[r#"
                failed to load skill …/silent/SKILL.md:1: error[description-missing]: skill has no description
                  help: add `description:` to describe the skill and when to use it"#]],
        ),
        (
            "missing",
            expect!["failed to load skill …/missing: error[no-such-directory]: directory does not exist"],
        ),
        (
            "none/README.md",
            expect!["failed to load skill …/none/README.md: error[not-a-directory]: not a directory"],
        ),
    ] {
        check_load(&files, dir, expected);
    }
}
