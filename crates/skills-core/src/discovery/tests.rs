//! Trees and what is found in them.

use std::{fs, path::Path};

use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::*;
use crate::skill::Skill;

/// A tree of files; `name=x` in place of a text writes a skill of that name.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = match text.strip_prefix("name=") {
            Some(name) => format!("---\nname: {name}\ndescription: Does {name}.\n---\nBody.\n"),
            None => (*text).to_owned(),
        };
        fs::write(path, text).unwrap();
    }
    root
}

/// One line for each skill, shadowed skill, and diagnostic; paths relative to `base`.
fn show(set: &SkillSet, base: &Path) -> String {
    let base = dunce::canonicalize(base).unwrap();
    let relative = |path: &Path| {
        let path =
            path.strip_prefix(&base).or_else(|_| path.strip_prefix(base.parent().unwrap())).unwrap_or(path);
        path.to_str().unwrap().replace('\\', "/")
    };
    let dir = |skill: &Skill| relative(skill.dir().unwrap());
    let mut lines: Vec<String> = set
        .entries()
        .iter()
        .map(|entry| {
            let codes: Vec<_> = entry.diagnostics.iter().map(|it| it.code).collect();
            let line = format!(
                "{} {} {} {}",
                entry.skill.scope,
                entry.skill.name,
                dir(&entry.skill),
                codes.join(" ")
            );
            line.trim_end().to_owned()
        })
        .collect();
    for shadowed in set.shadowed() {
        let (path, by) = (shadowed.path.as_deref().unwrap(), shadowed.by.as_deref().unwrap());
        lines.push(format!("shadowed {} {} by {}", shadowed.name, relative(path), relative(by)));
    }
    for skipped in set.skipped() {
        for diagnostic in &skipped.diagnostics {
            lines.push(format!("skipped {}: {}", relative(&skipped.path), diagnostic.code));
        }
    }
    lines.join("\n")
}

fn check(files: &[(&str, &str)], limits: Limits, expected: Expect) {
    let root = tree(files);
    let path = dunce::canonicalize(root.path()).unwrap();
    let search = Discovery { limits, ..Discovery::new([Root::scanned(&path)]) };
    expected.assert_eq(&show(&search.find(), &path));
}

#[test]
fn nested_skills() {
    check(
        &[
            ("b/SKILL.md", "name=b"),
            ("a/SKILL.md", "name=a"),
            ("group/c/SKILL.md", "name=c"),
            ("group/README.md", "no skill"),
            // Not inside another skill.
            ("a/examples/inner/SKILL.md", "name=inner"),
            (".claude/skills/d/SKILL.md", "name=d"),
            (".agents/skills/e/SKILL.md", "name=e"),
            (".skills/f/SKILL.md", "name=f"),
            (".hidden/g/SKILL.md", "name=g"),
            ("group/.curated/k/SKILL.md", "name=k"),
            ("group/.system/more/l/SKILL.md", "name=l"),
            (".git/h/SKILL.md", "name=h"),
            ("group/.venv/lib/m/SKILL.md", "name=m"),
            ("node_modules/i/SKILL.md", "name=i"),
            ("target/j/SKILL.md", "name=j"),
            ("SKILL.md.txt", "name=k"),
        ],
        Limits::default(),
        expect![[r#"
            scanned e .agents/skills/e
            scanned d .claude/skills/d
            scanned f .skills/f
            scanned a a
            scanned b b
            scanned c group/c
            scanned g .hidden/g
            scanned k group/.curated/k
            scanned l group/.system/more/l"#]],
    );
}

/// A copy in a hidden directory does not shadow the skill itself.
#[test]
fn hidden_directories_come_last() {
    check(
        &[(".backup/a/SKILL.md", "name=a"), ("a/SKILL.md", "name=a"), (".b/SKILL.md", "name=b")],
        Limits::default(),
        expect![[r#"
            scanned a a
            scanned b .b name-not-directory
            shadowed a .backup/a/SKILL.md by a/SKILL.md"#]],
    );
    // Nor do hidden directories use up the limits.
    check(
        &[(".a/x", ""), (".b/x", ""), ("c/x", ""), ("d/SKILL.md", "name=d")],
        Limits { max_dirs: 3, ..Limits::default() },
        expect![[r#"
            scanned d d
            skipped : too-many-directories"#]],
    );
}

#[test]
fn hidden_directories_of_projects_and_users() {
    let root = tree(&[
        (".skills/.curated/a/SKILL.md", "name=a"),
        (".skills/b/SKILL.md", "name=b"),
        (".agents/skills/.x/c/SKILL.md", "name=c"),
        (".agents/skills/.claude/skills/d/SKILL.md", "name=d"),
    ]);
    let base = dunce::canonicalize(root.path()).unwrap();
    let roots = project_roots(&base).into_iter().chain(user_roots_in(Some(&base), None));
    let set = Discovery::new(roots).find();
    expect![[r#"
        project b .skills/b
        project d .agents/skills/.claude/skills/d"#]]
    .assert_eq(&show(&set, &base));

    // What one root passes over another one finds, also with a memory of what was seen.
    let search = Discovery::new([
        Root::new(Scope::Project, base.join(".skills")),
        Root::scanned(base.join(".skills/.curated")),
    ]);
    let mut visits = DiscoveryCache::default();
    for _ in 0..3 {
        let mut skills = SkillSet::builder();
        search.run_incremental(&mut visits, &Changes::default(), &mut skills);
        let names: Vec<_> = skills.build().iter().map(|skill| skill.name.to_string()).collect();
        assert_eq!(names, ["b", "a"]);
    }
}

#[test]
fn a_root_may_be_a_skill() {
    check(
        &[("SKILL.md", "name=root"), ("sub/SKILL.md", "name=sub")],
        Limits::default(),
        expect!["scanned root  name-not-directory"],
    );
}

#[test]
fn depth() {
    check(
        &[("1/2/3/4/5/6/SKILL.md", "name=six"), ("1/2/3/4/5/x/7/SKILL.md", "name=seven")],
        Limits::default(),
        expect![[r#"
            scanned six 1/2/3/4/5/6 name-not-directory
            skipped : too-deep"#]],
    );
    check(
        &[("1/SKILL.md", "name=one"), ("x/2/SKILL.md", "name=two")],
        Limits { max_depth: 1, ..Limits::default() },
        expect![[r#"
            scanned one 1 name-not-directory
            skipped : too-deep"#]],
    );
}

#[test]
fn broken_skills_are_reported_and_searched() {
    check(
        &[
            ("SKILL.md", "# A list of my skills\n"),
            ("a/SKILL.md", "name=a"),
            ("b/SKILL.md", "---\nname: b\n---\nNo description.\n"),
            ("c/skill.md", "name=c"),
            ("d/Skill.md", "name=d"),
            ("e/SKILL.md/file", "a directory of that name"),
            ("other/SKILL.md", "name=f"),
        ],
        Limits::default(),
        expect![[r#"
            scanned a a
            scanned c c file-name
            scanned d d file-name
            scanned f other name-not-directory
            skipped SKILL.md: frontmatter-missing
            skipped b/SKILL.md: description-missing"#]],
    );
}

#[test]
fn names_are_compared_without_case_and_the_first_wins() {
    check(
        &[("a/SKILL.md", "name=Same"), ("b/SKILL.md", "name=same"), ("c/SKILL.md", "name=SAME")],
        Limits::default(),
        expect![[r#"
            scanned Same a name-not-lowercase name-not-directory
            shadowed same b/SKILL.md by a/SKILL.md
            shadowed SAME c/SKILL.md by a/SKILL.md"#]],
    );
}

#[test]
fn limits() {
    let files: Vec<(String, String)> =
        (0..40).map(|i| (format!("s{i:02}/SKILL.md"), format!("name=s{i:02}"))).collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    check(
        &files,
        Limits { max_skills: 2, ..Limits::default() },
        expect![[r#"
        scanned s00 s00
        scanned s01 s01
        skipped : too-many-skills"#]],
    );
    // A skill is not counted as a directory.
    let root = tree(&files);
    let limits = Limits { max_dirs: 1, ..Limits::default() };
    let set = Discovery { limits, ..Discovery::new([Root::scanned(root.path())]) }.find();
    assert_eq!((set.len(), set.skipped().len()), (40, 0));

    check(
        &[("a/x", ""), ("b/x", ""), ("c/x", ""), ("d/SKILL.md", "name=d")],
        Limits { max_dirs: 3, ..Limits::default() },
        expect!["skipped : too-many-directories"],
    );
}

#[test]
fn precedence() {
    let root = tree(&[
        ("named/x/SKILL.md", "name=x"),
        ("project/.claude/skills/x/SKILL.md", "name=x"),
        ("project/.skills/y/SKILL.md", "name=y"),
        ("home/.agents/skills/y/SKILL.md", "name=y"),
        ("home/.agents/skills/z/SKILL.md", "name=z"),
        ("one/z/SKILL.md", "name=z"),
        ("two/v/SKILL.md", "name=v"),
        ("one/v/SKILL.md", "name=v"),
    ]);
    let base = dunce::canonicalize(root.path()).unwrap();
    let mut roots = vec![Root::scanned(base.join("two")), Root::scanned(base.join("one"))];
    roots.extend(user_roots_in(Some(&base.join("home")), None));
    roots.extend(project_roots(&base.join("project")));
    let mut skills = SkillSet::builder();
    let (skill, diagnostics) = load_dir(&base.join("named/x")).unwrap();
    skills.add(skill, diagnostics);
    Discovery::new(roots.clone()).run(&mut skills);
    let together = skills.build();
    expect![[r#"
        named x named/x
        project y project/.skills/y
        user z home/.agents/skills/z
        scanned v two/v
        shadowed x project/.claude/skills/x/SKILL.md by named/x/SKILL.md
        shadowed y home/.agents/skills/y/SKILL.md by project/.skills/y/SKILL.md
        shadowed v one/v/SKILL.md by two/v/SKILL.md
        shadowed z one/z/SKILL.md by home/.agents/skills/z/SKILL.md"#]]
    .assert_eq(&show(&together, &base));

    // The same from two searches that were made apart.
    let (project, rest): (Vec<_>, Vec<_>) = roots.into_iter().partition(|root| root.scope == Scope::Project);
    let mut base_set = SkillSet::builder();
    let (skill, diagnostics) = load_dir(&base.join("named/x")).unwrap();
    base_set.add(skill, diagnostics);
    Discovery::new(rest).run(&mut base_set);
    let merged = SkillSet::merged([&base_set.build(), &Discovery::new(project).find()]);
    let names = |set: &SkillSet| -> Vec<_> {
        set.iter().map(|skill| (skill.scope, skill.dir().unwrap().to_owned())).collect()
    };
    assert_eq!(names(&merged), names(&together));
    assert_eq!(merged.shadowed().len(), together.shadowed().len());
}

#[test]
fn filters() {
    let root =
        tree(&[("a/SKILL.md", "name=pdf-a"), ("b/SKILL.md", "name=PDF-b"), ("c/SKILL.md", "name=docx")]);
    let filter = Filter::new(["pdf-*"], ["*-A"]).unwrap();
    let set = Discovery { filter, ..Discovery::new([Root::scanned(root.path())]) }.find();
    expect!["scanned PDF-b b name-not-lowercase name-not-directory"].assert_eq(&show(&set, root.path()));
}

#[test]
fn roots_that_do_not_exist() {
    let root = tree(&[("file", "")]);
    let base = dunce::canonicalize(root.path()).unwrap();
    let search = Discovery::new([
        Root::new(Scope::User, base.join("none")),
        Root::new(Scope::Project, base.join("none")),
        Root::scanned(base.join("none")),
        Root::scanned(base.join("file")),
    ]);
    expect![[r#"
        skipped none: no-such-directory
        skipped file: not-a-directory"#]]
    .assert_eq(&show(&search.find(), &base));
}

#[test]
fn a_tree_on_many_threads_is_found_in_order() {
    let root = tempfile::tempdir().unwrap();
    for index in 0..600 {
        let dir = root.path().join(format!("g{}/s{index:03}", index % 7));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("SKILL.md"), format!("---\nname: s{index:03}\ndescription: D.\n---\n")).unwrap();
    }
    let search = Discovery::new([Root::scanned(root.path())]);
    let dirs = || -> Vec<_> { search.find().iter().map(|skill| skill.dir().unwrap().to_owned()).collect() };
    let first = dirs();
    assert_eq!(first.len(), 600);
    assert!(first.is_sorted());
    for _ in 0..5 {
        assert_eq!(dirs(), first);
    }
}

#[test]
fn only_the_beginning_of_a_file_is_read() {
    let long = format!("---\nname: long\ndescription: D.\n---\n{}", "é".repeat(200_000));
    let huge = format!("---\nname: huge\ndescription: D.\n---\n{}", "x".repeat(1_100_000));
    check(
        &[("long/SKILL.md", &long), ("huge/SKILL.md", &huge)],
        Limits::default(),
        expect![[r#"
        scanned long long
        skipped huge/SKILL.md: file-too-large"#]],
    );
}

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
fn one_directory() {
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
                  help: name the directory of one skill; scan a directory that has several skills"#]],
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
                  help: add `description:` and say what the skill does and when to use it"#]],
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

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::symlink;

    use super::*;

    fn linked(files: &[(&str, &str)], links: &[(&str, &str)], scan: &str, expected: Expect) {
        let root = tree(files);
        let base = dunce::canonicalize(root.path()).unwrap();
        for (target, link) in links {
            symlink(target, base.join(link)).unwrap();
        }
        let set = Discovery::new([Root::scanned(base.join(scan))]).find();
        expected.assert_eq(&show(&set, &base));
    }

    #[test]
    fn links_are_followed_once() {
        linked(
            &[("skills/a/SKILL.md", "name=a"), ("elsewhere/b/SKILL.md", "name=b"), ("skills/file", "")],
            &[
                ("../elsewhere/b", "skills/b"),
                ("../elsewhere/b", "skills/b2"),
                ("a", "skills/z"),
                ("..", "skills/up"),
                (".", "skills/self"),
                ("gone", "skills/dangling"),
                ("file", "skills/to-file"),
                ("loop", "skills/loop"),
            ],
            "skills",
            expect![[r#"
                scanned a skills/a
                scanned b elsewhere/b"#]],
        );
    }

    #[test]
    fn a_skill_goes_by_the_name_of_the_link() {
        linked(
            &[("store/0123-abc/SKILL.md", "---\ndescription: D.\n---\n"), ("skills/x", "")],
            &[("../store/0123-abc", "skills/pretty")],
            "skills",
            expect!["scanned pretty store/0123-abc name-missing body-empty"],
        );
    }

    #[test]
    fn a_root_may_be_a_link() {
        linked(
            &[("real/a/SKILL.md", "name=a"), ("real/b/c/SKILL.md", "name=c")],
            &[("real", "link")],
            "link",
            expect![[r#"
                scanned a real/a
                scanned c real/b/c"#]],
        );
    }

    /// A repository comes from strangers; links in it must not make skills of what else is on the machine.
    #[test]
    fn links_out_of_a_project_are_not_followed() {
        let root = tree(&[
            ("elsewhere/a/SKILL.md", "name=a"),
            ("elsewhere/.skills/b/SKILL.md", "name=b"),
            ("repo/.git/HEAD", ""),
            ("repo/.skills/own/SKILL.md", "name=own"),
            ("repo/packages/x/skill/SKILL.md", "name=skill"),
            ("repo/work/file", ""),
        ]);
        let base = dunce::canonicalize(root.path()).unwrap();
        let find = || Discovery::new(project_roots(&base.join("repo/work"))).find();
        let check = |expected: Expect| {
            let set = find();
            let messages: Vec<_> =
                set.skipped().iter().map(|it| it.diagnostics[0].in_file(&it.path)).collect();
            let shown = format!("{}\n{}", show(&set, &base), messages.join("\n"));
            expected.assert_eq(&shown.replace(base.to_str().unwrap(), "[BASE]"));
        };
        // What stays in the repository is followed: such links keep one copy for several agents.
        fs::create_dir(base.join("repo/.claude")).unwrap();
        symlink("../.skills", base.join("repo/.claude/skills")).unwrap();
        symlink("../packages/x/skill", base.join("repo/.skills/linked")).unwrap();
        check(expect![[r#"
            project skill repo/packages/x/skill name-not-directory
            project own repo/.skills/own
        "#]]);

        symlink("/", base.join("repo/.skills/root")).unwrap();
        check(expect![[r#"
            project skill repo/packages/x/skill name-not-directory
            project own repo/.skills/own
            skipped repo/.skills: link-out-of-project
            [BASE]/repo/.skills: error[link-out-of-project]: the link [BASE]/repo/.skills/root was not followed, because it leads out of the project to /
              help: if you trust the target, add it as a directory to scan"#]]);

        // By two links, through the parent, with the name of a skill, in the place of the whole root, or of one above it.
        symlink("../../elsewhere", base.join("repo/packages/out")).unwrap();
        symlink("../packages/out", base.join("repo/.skills/twice")).unwrap();
        symlink("../../elsewhere/a", base.join("repo/.skills/a")).unwrap();
        symlink("../../..", base.join("repo/.skills/up")).unwrap();
        symlink(base.join("elsewhere/.skills"), base.join("repo/work/.skills")).unwrap();
        symlink("../../elsewhere", base.join("repo/work/.agents")).unwrap();
        fs::create_dir(base.join("elsewhere/skills")).unwrap();
        check(expect![[r#"
            project skill repo/packages/x/skill name-not-directory
            project own repo/.skills/own
            skipped repo/work/.skills: link-out-of-project
            skipped repo/work/.agents/skills: link-out-of-project
            skipped repo/.skills: link-out-of-project
            [BASE]/repo/work/.skills: error[link-out-of-project]: the link [BASE]/repo/work/.skills was not followed, because it leads out of the project to [BASE]/elsewhere/.skills
              help: if you trust the target, add it as a directory to scan
            [BASE]/repo/work/.agents/skills: error[link-out-of-project]: the link [BASE]/repo/work/.agents/skills was not followed, because it leads out of the project to [BASE]/elsewhere/skills
              help: if you trust the target, add it as a directory to scan
            [BASE]/repo/.skills: error[link-out-of-project]: 4 links were not followed, because they lead out of the project, for example [BASE]/repo/.skills/a to [BASE]/elsewhere/a
              help: if you trust the target, add it as a directory to scan"#]]);

        // A directory that the user names is followed wherever it leads.
        let named = Discovery::new([Root::scanned(base.join("repo/.skills/twice"))]).find();
        assert_eq!(named.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        // A directory whose name merely begins with that of the boundary is outside of it.
        let beside = Root::new(Scope::Project, base.join("repo/.skills")).within(base.join("rep"));
        assert!(Discovery::new([beside]).find().is_empty());
    }

    #[test]
    fn files_that_are_not_read() {
        let files = [
            ("skills/a/x", ""),
            ("skills/b/real.md", "name=b"),
            ("skills/fifo/x", ""),
            ("secret.md", "name=secret"),
        ];
        let links = [("../../secret.md", "skills/a/SKILL.md"), ("real.md", "skills/b/SKILL.md")];
        linked(
            &files,
            &links,
            "skills",
            expect![[r#"
            scanned b skills/b
            skipped skills/a/SKILL.md: outside-skill"#]],
        );

        let root = tree(&[("fifo/x", "")]);
        let base = dunce::canonicalize(root.path()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(base.join("fifo/SKILL.md")).status().unwrap();
        assert!(made.success());
        expect!["skipped fifo/SKILL.md: not-a-file"]
            .assert_eq(&show(&Discovery::new([Root::scanned(&base)]).find(), &base));
    }
}
