//! Tests of confinement: files under the directory can be read, and no other files, for all paths and while files are moved.

use std::fs;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const INSIDE: &str = "inside\n";
const SECRET: &str = "SECRET\n";

/// Creates a skill in `root/skill`, and secrets next to it: `root/secret.txt` and `root/outside/secret.txt`.
fn tree() -> (TempDir, SkillFiles) {
    let root = tempfile::tempdir().unwrap();
    let skill = root.path().join("skill");
    for dir in ["skill/references/deep", "skill/.git", "skill/node_modules/x", "outside"] {
        fs::create_dir_all(root.path().join(dir)).unwrap();
    }
    for file in ["SKILL.md", "a.txt", ".env", "references/b.md", "references/deep/c.md", ".git/config"] {
        fs::write(skill.join(file), INSIDE).unwrap();
    }
    fs::write(skill.join("node_modules/x/index.js"), INSIDE).unwrap();
    fs::write(root.path().join("secret.txt"), SECRET).unwrap();
    fs::write(root.path().join("outside/secret.txt"), SECRET).unwrap();
    let files = SkillFiles::open(&skill).unwrap();
    (root, files)
}

fn show(result: Result<FileContent, FileError>) -> String {
    match result {
        Ok(FileContent::Text { text, .. }) => format!("{text:?}"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{}: {error}", error.code()),
    }
}

fn check(files: &SkillFiles, paths: &[&str], expected: Expect) {
    let lines: Vec<_> = paths.iter().map(|path| show(files.read(path, ReadOptions::default()))).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn paths_inside_are_read() {
    let (_root, files) = tree();
    check(
        &files,
        &[
            "a.txt",
            "./a.txt",
            "references//b.md",
            "references/deep/../b.md",
            "SKILL.md",
            ".env",
            "references",
            "references/",
            ".",
            "a.txt/x",
            "refrences/b.md",
            "nothing",
        ],
        expect![[r#"
            "inside\n"
            "inside\n"
            "inside\n"
            "inside\n"
            "inside\n"
            "inside\n"
            is-directory: `references` is a directory with `b.md`, `deep/`
            is-directory: `references/` is a directory with `b.md`, `deep/`
            is-directory: `.` is a directory with `.env`, `.git/`, `SKILL.md`, `a.txt`, `node_modules/`, `references/`
            not-found: could not find file `a.txt/x` in the skill; did you mean `a.txt`?
            not-found: could not find file `refrences/b.md` in the skill; did you mean `references/b.md`?
            not-found: could not find file `nothing` in the skill"#]],
    );
}

#[test]
fn files_are_listed_up_to_a_maximum() {
    let (_root, files) = tree();
    let shown = |max| serde_json::to_string(&files.list(max)).unwrap();
    expect![[r#"{"files":[{"path":".env","size":7},{"path":"a.txt","size":7},{"path":"references/b.md","size":7},{"path":"references/deep/c.md","size":7}],"more":0,"complete":true}"#]]
        .assert_eq(&shown(10));
    expect![[r#"{"files":[{"path":".env","size":7},{"path":"a.txt","size":7}],"more":2,"complete":true}"#]]
        .assert_eq(&shown(2));
    assert_eq!(files.list(0).total(), 4);
}

#[test]
fn a_listing_is_bounded() {
    let root = tempfile::tempdir().unwrap();
    let deep = "d/".repeat(20);
    fs::create_dir_all(root.path().join(&deep)).unwrap();
    fs::write(root.path().join(&deep).join("f"), "").unwrap();
    fs::write(root.path().join("near"), "").unwrap();
    let listing = SkillFiles::open(root.path()).unwrap().list(10);
    assert_eq!((listing.total(), listing.complete), (1, false));
}

#[test]
fn a_head_ends_between_characters() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("f"), "aé€").unwrap();
    let files = SkillFiles::open(root.path()).unwrap();
    let head = |max| files.head("f", max).map(|head| (head.bytes, head.complete)).unwrap();
    assert_eq!(head(0), (b"".to_vec(), false));
    assert_eq!(head(2), (b"a".to_vec(), false));
    assert_eq!(head(5), ("aé".as_bytes().to_vec(), false));
    assert_eq!(head(6), ("aé€".as_bytes().to_vec(), true));
    assert_eq!(head(u64::MAX), ("aé€".as_bytes().to_vec(), true));
    assert_eq!(files.head("g", 1).unwrap_err().code(), "not-found");
}

#[test]
fn a_file_larger_than_the_hard_cap_is_not_read() {
    let (root, files) = tree();
    let file = fs::File::create(root.path().join("skill/huge")).unwrap();
    file.set_len(HARD_CAP_BYTES + 1).unwrap();
    check(
        &files,
        &["huge"],
        expect!["too-large: `huge` has 67108865 bytes, but at most 67108864 can be read"],
    );
}

#[test]
fn a_missing_directory_and_a_virtual_skill_are_errors() {
    let missing = SkillFiles::open(Path::new("no/such/skill")).unwrap_err();
    assert!(missing.to_string().contains("no/such/skill"), "{missing}");
    let skill = Skill::builder("greet", "Greets.").body("Say hello.").build().unwrap();
    expect!["skill `greet` is defined in code or configuration and has no files"]
        .assert_eq(&SkillFiles::of(&skill).unwrap_err().to_string());
}

#[cfg(unix)]
mod unix {
    use std::{
        os::unix::{fs::symlink, net::UnixListener},
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use super::*;

    #[test]
    fn links_are_followed_only_inside() {
        let (root, files) = tree();
        let skill = root.path().join("skill");
        symlink("a.txt", skill.join("in")).unwrap();
        symlink("references", skill.join("in-dir")).unwrap();
        symlink("../a.txt", skill.join("references/up")).unwrap();
        symlink("../secret.txt", skill.join("out")).unwrap();
        symlink(root.path().join("secret.txt"), skill.join("out-absolute")).unwrap();
        symlink(skill.join("a.txt"), skill.join("in-absolute")).unwrap();
        symlink("../outside", skill.join("out-dir")).unwrap();
        symlink("out-dir", skill.join("out-twice")).unwrap();
        symlink("loop", skill.join("loop")).unwrap();
        symlink("gone", skill.join("dangling")).unwrap();
        check(
            &files,
            &[
                "in",
                "in-dir/b.md",
                "in-dir/../a.txt",
                "references/up",
                "out",
                "out-absolute",
                "in-absolute",
                "out-dir/secret.txt",
                "out-twice/secret.txt",
                "out-dir",
                "in-dir/../../secret.txt",
                "dangling",
            ],
            expect![[r#"
                "inside\n"
                "inside\n"
                "inside\n"
                "inside\n"
                outside-skill: `out` is outside of the skill directory, but only files inside can be read
                outside-skill: `out-absolute` is outside of the skill directory, but only files inside can be read
                outside-skill: `in-absolute` is outside of the skill directory, but only files inside can be read
                outside-skill: `out-dir/secret.txt` is outside of the skill directory, but only files inside can be read
                outside-skill: `out-twice/secret.txt` is outside of the skill directory, but only files inside can be read
                outside-skill: `out-dir` is outside of the skill directory, but only files inside can be read
                outside-skill: `in-dir/../../secret.txt` is outside of the skill directory, but only files inside can be read
                not-found: could not find file `dangling` in the skill"#]],
        );
        assert_eq!(files.read("loop", ReadOptions::default()).unwrap_err().code(), "unreadable");
        let listed: Vec<_> = files.list(99).files.into_iter().map(|file| file.path).collect();
        assert_eq!(
            listed,
            [".env", "a.txt", "in", "references/b.md", "references/deep/c.md", "references/up"]
        );
    }

    #[test]
    fn special_files_are_rejected_without_blocking() {
        let (root, files) = tree();
        let fifo = root.path().join("skill/fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let _listener = UnixListener::bind(root.path().join("skill/socket")).unwrap();
        check(
            &files,
            &["fifo", "socket"],
            expect![[r"
                not-a-file: `fifo` is not a regular file, but only regular files can be read
                not-a-file: `socket` is not a regular file, but only regular files can be read"]],
        );
        assert_eq!(files.list(99).total(), 4);
    }

    #[test]
    fn an_unreadable_file_is_an_error() {
        use std::os::unix::fs::PermissionsExt;
        let (root, files) = tree();
        let path = root.path().join("skill/a.txt");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
        if fs::read(&path).is_ok() {
            return; // Root can read all files.
        }
        check(
            &files,
            &["a.txt"],
            expect!["unreadable: failed to read `a.txt`: Permission denied (os error 13)"],
        );
    }

    /// Replacing a directory or a file by a link while it is read must not give access to files outside.
    #[test]
    fn a_link_that_replaces_a_file_never_leads_out() {
        let (root, files) = tree();
        let skill = root.path().join("skill");
        fs::write(skill.join("references/secret.txt"), INSIDE).unwrap();
        fs::write(skill.join("secret.txt"), INSIDE).unwrap();
        let done = AtomicBool::new(false);
        let put = |target: &str, name: &str| {
            let next = skill.join("next");
            symlink(target, &next).unwrap();
            fs::rename(next, skill.join(name)).unwrap();
        };
        put("references", "dir");
        put("secret.txt", "file");
        let mut inside = 0;
        let mut refused = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    put("../outside", "dir");
                    put("../secret.txt", "file");
                    put("references", "dir");
                    put("secret.txt", "file");
                }
            });
            let mut round = 0;
            // Run until both outcomes have occurred. The last limit only ends a test that cannot succeed.
            while round < 20_000 || (inside.min(refused) == 0 && round < 2_000_000) {
                round += 1;
                let path = if round % 2 == 0 { "dir/secret.txt" } else { "file" };
                match files.read(path, ReadOptions::default()) {
                    Ok(FileContent::Text { text, .. }) => {
                        assert_eq!(text, INSIDE, "round {round}");
                        inside += 1;
                    }
                    Ok(other) => panic!("{other:?}"),
                    Err(_) => refused += 1,
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(
            inside > 0 && refused > 0,
            "both outcomes of the race must occur: {inside} reads inside, {refused} rejected"
        );
    }
}

fn parts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(".."),
        Just("."),
        Just(""),
        Just("a.txt"),
        Just("references"),
        Just("deep"),
        Just("in-dir"),
        Just("out-dir"),
        Just("out"),
        Just("skill"),
        Just("outside"),
        Just("secret.txt"),
        Just("C:"),
        Just("\0"),
        Just("..\\.."),
        Just("\u{2025}"),
        Just(".. "),
        Just("%2e%2e"),
    ];
    (prop_oneof![Just(""), Just("/"), Just("//"), Just("./")], prop::collection::vec(part, 0..9))
        .prop_map(|(start, parts)| format!("{start}{}", parts.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_path_never_escapes(path in prop_oneof![3 => parts(), 1 => "\\PC{0,20}"]) {
        thread_local!(static TREE: (TempDir, SkillFiles) = {
            let (root, files) = tree();
            #[cfg(unix)]
            for (target, name) in [("references", "in-dir"), ("../outside", "out-dir"), ("../secret.txt", "out")] {
                std::os::unix::fs::symlink(target, root.path().join("skill").join(name)).unwrap();
            }
            (root, files)
        });
        TREE.with(|(_, files)| {
            match files.read(&path, ReadOptions::default()) {
                Ok(FileContent::Text { text, .. }) => prop_assert_eq!(text, INSIDE),
                Ok(other) => prop_assert!(false, "{:?}", other),
                Err(FileError::IsDirectory { entries, .. }) => {
                    prop_assert!(!entries.contains(&"secret.txt".to_owned()));
                }
                Err(_) => {}
            }
            Ok(())
        })?;
    }
}

/// Discovery stores canonical paths, so a link in such a path must have been created later, and may lead anywhere.
#[cfg(unix)]
#[test]
fn a_directory_that_was_replaced_by_a_link_is_rejected() {
    use std::os::unix::fs::symlink;
    for moved in ["skill", "."] {
        let root = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(root.path()).unwrap();
        for dir in ["above/skill", "outside/skill"] {
            fs::create_dir_all(base.join(dir)).unwrap();
            fs::write(base.join(dir).join("secret.txt"), SECRET).unwrap();
        }
        fs::write(base.join("above/skill/SKILL.md"), "---\nname: skill\ndescription: x\n---\n").unwrap();
        let (skill, _) = crate::discovery::load_dir(&base.join("above/skill")).unwrap();
        assert!(SkillFiles::of(&skill).is_ok());
        let place = base.join("above").join(moved);
        let place = if moved == "." { base.join("above") } else { place };
        fs::remove_dir_all(&place).unwrap();
        symlink(base.join("outside").join(moved), &place).unwrap();
        let error = SkillFiles::of(&skill).unwrap_err();
        assert!(error.to_string().contains("link"), "{error}");
    }
}

/// Editors, `git checkout` and installers replace an old directory by a new one.
#[test]
fn a_directory_that_was_replaced_by_a_new_one_is_read() {
    let root = tempfile::tempdir().unwrap();
    let base = dunce::canonicalize(root.path()).unwrap();
    for (dir, text) in [("skill", "old"), ("next", "new")] {
        fs::create_dir(base.join(dir)).unwrap();
        fs::write(base.join(dir).join("SKILL.md"), "---\nname: skill\ndescription: x\n---\n").unwrap();
        fs::write(base.join(dir).join("a.txt"), text).unwrap();
    }
    let (skill, _) = crate::discovery::load_dir(&base.join("skill")).unwrap();
    let read = || show(read(&skill, "a.txt", ReadOptions::default()));
    assert_eq!(read(), "\"old\"");
    fs::rename(base.join("skill"), base.join("before")).unwrap();
    let gone = SkillFiles::of(&skill).unwrap_err();
    assert!(matches!(&gone, FileError::Directory { source, .. } if source.kind() == io::ErrorKind::NotFound));
    fs::rename(base.join("next"), base.join("skill")).unwrap();
    assert_eq!(read(), "\"new\"");
}

/// After the time for links, a link can't be read, so that the skill can't be approved.
#[cfg(unix)]
#[test]
fn a_visit_has_a_time_for_links() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "x").unwrap();
    std::os::unix::fs::symlink("a", dir.path().join("b")).unwrap();
    let files = SkillFiles::open(dir.path()).unwrap();
    let visit =
        |bounds: &mut Bounds| files.visit(bounds, &mut |_, _| Ok(())).map_err(|error| error.to_string());
    let mut bounds = Bounds::SKILL;
    assert_eq!(visit(&mut bounds), Ok(()));
    assert!(bounds.links < Bounds::SKILL.links);
    bounds.links = std::time::Duration::ZERO;
    assert_eq!(visit(&mut bounds), Err("cannot read `b`".to_owned()));
}

/// The size of all files is checked before any of them is read.
#[test]
fn a_visit_respects_its_bounds() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(dir.path().join(name), [0; 100]).unwrap();
    }
    let files = SkillFiles::open(dir.path()).unwrap();
    let visit = |bytes, fails_at: &str| {
        let mut bounds = Bounds { entries: 10, bytes, ..Bounds::SKILL };
        let mut seen = String::new();
        let visited = files.visit(&mut bounds, &mut |path, _| {
            seen += path;
            if path == fails_at { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
        });
        (visited.is_ok(), seen, bounds.entries, bounds.bytes)
    };
    assert_eq!(visit(300, ""), (true, "abc".to_owned(), 7, 0));
    assert_eq!(visit(299, ""), (false, String::new(), 10, 299));
    assert_eq!(visit(1000, "b"), (false, "ab".to_owned(), 7, 800));
}
