//! Trees of files, and the skills that are found in them.

#[cfg(unix)]
mod links;
mod nested;
mod single;

use std::{fs, path::Path};

use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::*;
use crate::skill::Skill;

/// Writes a tree of files. The text `name=x` stands for a skill with this name.
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

/// Formats each skill, shadowed skill and diagnostic as a line. Paths are relative to `base`.
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
            let codes: Vec<_> = entry.diagnostics.iter().map(|finding| finding.code).collect();
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
        let path = shadowed.path.as_deref().unwrap();
        let by = shadowed.by.as_deref().unwrap();
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
fn nested_directories_are_searched() {
    check(
        &[
            ("b/SKILL.md", "name=b"),
            ("a/SKILL.md", "name=a"),
            ("group/c/SKILL.md", "name=c"),
            ("group/README.md", "no skill"),
            // This should not be found, because it's inside another skill.
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

/// A copy in a hidden directory must not shadow the skill itself.
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
    // Hidden directories should not count towards the limits either.
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

    // We skip hidden directories below a root, but search a hidden directory if it is a root itself. This should also work
    // with a cache.
    let search = Discovery::new([
        Root::new(Scope::Project, base.join(".skills")),
        Root::scanned(base.join(".skills/.curated")),
    ]);
    let mut cache = DiscoveryCache::default();
    for _ in 0..3 {
        let mut skills = SkillSet::builder();
        search.run_incremental(&mut cache, &Changes::default(), &mut skills);
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
fn the_depth_is_limited() {
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
fn broken_skills_are_reported_and_their_subdirectories_searched() {
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
fn the_number_of_skills_and_directories_is_limited() {
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
    // Skills should not count as directories.
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

/// A project can have a directory with skills in each of its subdirectories.
#[test]
fn many_roots_share_the_number_of_directories() {
    for kind in ["plain", "in a skill"] {
        let root = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(root.path()).unwrap();
        let mut roots = Vec::new();
        for number in 0..20 {
            let dir = base.join(format!("r{number}"));
            for child in ["x", "y", "z"] {
                std::fs::create_dir_all(dir.join("s").join(child)).unwrap();
            }
            if kind == "in a skill" {
                std::fs::write(dir.join("s/SKILL.md"), "---\nname: s\ndescription: x\n---\n").unwrap();
            }
            roots.push(Root::new(Scope::Project, dir));
        }
        roots.push(Root::new(Scope::User, base.join("r0/s")));
        let limits = Limits { max_dirs: 4, ..Limits::default() };
        let discovery = Discovery { limits, nested: true, ..Discovery::new(roots) };
        let mut cache = DiscoveryCache::default();
        let mut skills = SkillSet::builder();
        discovery.run_incremental(&mut cache, &Changes::default(), &mut skills);
        let shared: Vec<_> = skills
            .build()
            .skipped()
            .iter()
            .filter(|skipped| {
                skipped.diagnostics[0].message.contains("in all places together: searched only the first 44")
            })
            .map(|skipped| skipped.path.clone())
            .collect();
        assert_eq!(shared.len(), 1, "{kind}");
        assert!(cache.directories().count() < 60, "{kind}: {}", cache.directories().count());
    }
}

#[test]
fn scopes_decide_the_precedence() {
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

    // Merging the results of two separate searches should give the same set.
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
fn names_are_filtered() {
    let root =
        tree(&[("a/SKILL.md", "name=pdf-a"), ("b/SKILL.md", "name=PDF-b"), ("c/SKILL.md", "name=docx")]);
    let filter = Filter::new(["pdf-*"], ["*-A"]).unwrap();
    let set = Discovery { filter, ..Discovery::new([Root::scanned(root.path())]) }.find();
    expect!["scanned PDF-b b name-not-lowercase name-not-directory"].assert_eq(&show(&set, root.path()));
}

#[test]
fn missing_roots_are_reported_if_the_user_named_them() {
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
fn a_large_tree_is_always_found_in_the_same_order() {
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
