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
                cannot load the skill …/none: error[no-skill-md]: the directory has no SKILL.md
                  help: use the directory of a single skill; to use a directory with several skills, scan it"#]],
        ),
        (
            "nothing",
            expect![[r#"
                cannot load the skill …/nothing/SKILL.md:1:1: error[frontmatter-missing]: the file does not start with frontmatter
                  help: start the file with a line `---`, lines with `name:` and `description:`, and another line `---`"#]],
        ),
        (
            "silent",
            expect![[r#"
                cannot load the skill …/silent/SKILL.md:1: error[description-missing]: the skill has no description
                  help: add `description:` to say what the skill does and when to use it"#]],
        ),
        (
            "missing",
            expect!["cannot load the skill …/missing: error[no-such-directory]: there is no such directory"],
        ),
        (
            "none/README.md",
            expect![
                "cannot load the skill …/none/README.md: error[not-a-directory]: this is not a directory"
            ],
        ),
    ] {
        check_load(&files, dir, expected);
    }
}
