//! Symbolic links, and files that must not be read.

use std::os::unix::fs::symlink;

use super::*;

/// Creates files and links, and searches the directory `scan`.
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
fn a_linked_skill_has_the_name_of_the_link() {
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

/// A repository may come from an untrusted author, so its links must not give access to other files of the machine.
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
            set.skipped().iter().map(|skipped| skipped.diagnostics[0].in_file(&skipped.path)).collect();
        let shown = format!("{}\n{}", show(&set, &base), messages.join("\n"));
        expected.assert_eq(&shown.replace(base.to_str().unwrap(), "[BASE]"));
    };
    // We follow links within the repository, since projects use them to share skills between agents.
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
        [BASE]/repo/.skills: error[link-out-of-project]: skipped link [BASE]/repo/.skills/root, because the target / is outside of the project
          help: to load skills from a target that you trust, add this directory to scan"#]]);

    // Try other ways out: two links in a row, a parent directory, a link with the name of a skill, and a linked root.
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
        [BASE]/repo/work/.skills: error[link-out-of-project]: skipped link [BASE]/repo/work/.skills, because the target [BASE]/elsewhere/.skills is outside of the project
          help: to load skills from a target that you trust, add this directory to scan
        [BASE]/repo/work/.agents/skills: error[link-out-of-project]: skipped link [BASE]/repo/work/.agents/skills, because the target [BASE]/elsewhere/skills is outside of the project
          help: to load skills from a target that you trust, add this directory to scan
        [BASE]/repo/.skills: error[link-out-of-project]: skipped 4 links to targets outside of the project, for example [BASE]/repo/.skills/a to [BASE]/elsewhere/a
          help: to load skills from a target that you trust, add this directory to scan"#]]);

    // If the user names the directory, it may lead anywhere.
    let named = Discovery::new([Root::scanned(base.join("repo/.skills/twice"))]).find();
    assert_eq!(named.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    // We should compare whole names here, not just a prefix of the path.
    let similar = Root::new(Scope::Project, base.join("repo/.skills")).within(base.join("rep"));
    assert!(Discovery::new([similar]).find().is_empty());
}

#[test]
fn a_skill_md_outside_of_the_directory_and_a_fifo_are_not_read() {
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
