use super::*;

/// Selects from entries such as `100644 a/SKILL.md`. Returns the selected paths and the notes.
fn selected(entries: &[&str]) -> (Vec<String>, Vec<String>) {
    let listed: Vec<u8> = entries
        .iter()
        .flat_map(|entry| {
            let (mode, path) = entry.split_once(' ').unwrap();
            format!("{mode} blob 0123\t{path}\0").into_bytes()
        })
        .collect();
    let selection = select(&read(&mut &listed[..], &Limits::default()).unwrap(), &Limits::default()).unwrap();
    (selection.wanted.into_iter().map(|file| file.path).collect(), selection.notes)
}

#[track_caller]
fn check(entries: &[&str], wanted: &[&str], notes: &[&str]) {
    let (found, said) = selected(entries);
    assert_eq!(found, wanted, "{said:?}");
    assert_eq!(said.len(), notes.len(), "{said:?}");
    for (said, expected) in said.iter().zip(notes) {
        assert!(said.contains(expected), "{said:?}");
    }
}

#[test]
fn files_of_skills_and_manifests_are_selected() {
    check(
        &[
            "100644 README.md",
            "100644 src/main.rs",
            "100644 .claude-plugin/marketplace.json",
            "100644 plugins/x/.claude-plugin/plugin.json",
            "100644 plugins/x/.claude-plugin/other.json",
            "100644 a/SKILL.md",
            "100755 a/scripts/run.sh",
            "100644 ab/x.md",
            "100644 b/c/skill.md",
            "100644 b/c/d/SKILL.md",
            "100644 b/x.md",
        ],
        &[
            ".claude-plugin/marketplace.json",
            "plugins/x/.claude-plugin/plugin.json",
            "a/SKILL.md",
            "a/scripts/run.sh",
            "b/c/skill.md",
            "b/c/d/SKILL.md",
        ],
        &[],
    );
    // Here, the repository's root is a skill.
    check(&["100644 SKILL.md", "100644 a/b.md"], &["SKILL.md", "a/b.md"], &[]);
}

#[test]
fn unsafe_entries_are_left_out() {
    check(
        &[
            "100644 a/SKILL.md",
            "100644 a/../../x",
            "100644 a/./x",
            "100644 /etc/passwd",
            "100644 a//x",
            "100644 a/.git/config",
            "100644 a/.GIT/config",
            "100644 a/.g\u{200c}it/config",
            "100644 a/git~1/config",
            "100644 a/c:\\x",
            "100644 a/x:stream",
            "100644 a/nul",
            "100644 a/Com1.txt",
            "100644 a/lpt\u{b2}.md",
            "100644 a/CONIN$",
            "100644 a/x.",
            "100644 a/x\u{202e}",
            "120000 a/link",
            "160000 a/module",
            "777777 a/odd",
        ],
        &["a/SKILL.md"],
        &[
            "leads out",
            "leads out",
            "leads out",
            "leads out",
            "reserved for git",
            "reserved for git",
            "reserved for git",
            "reserved for git",
            "some operating systems",
            "some operating systems",
            "some operating systems",
            "some operating systems",
            "some operating systems",
            "some operating systems",
            "some operating systems",
            "invisible characters",
            "is a link",
            "is a submodule, so the skill in `a` is incomplete",
            "unknown type",
        ],
    );
    check(
        &["160000 vendor", "100644 SKILL.md.txt", "100644 a/SKILL.md"],
        &["a/SKILL.md"],
        &["skipped `vendor`, because it is a submodule; if it has skills, add its repository"],
    );
    check(&["100644 SKILL.md", "160000 x"], &["SKILL.md"], &["so the skill of the repository is incomplete"]);
    // We don't need a note for a link that is not in a skill.
    check(&["100644 a/SKILL.md", "120000 link"], &["a/SKILL.md"], &[]);
    // We don't use a link as a SKILL.md.
    check(&["120000 a/SKILL.md", "100644 a/x"], &[], &[]);
}

#[test]
fn paths_that_differ_only_in_case() {
    check(
        &[
            "100644 a/SKILL.md",
            "100644 a/skill.md",
            "100644 a/Ref/x",
            "100644 a/ref/y",
            "100644 A/z/SKILL.md",
        ],
        &["a/SKILL.md", "a/Ref/x"],
        &["a/skill.md", "a/ref/y", "A/z"],
    );
}

/// The message says which limit was reached, and a higher limit is enough.
#[test]
fn limits_of_a_tree() {
    let long = "x".repeat(100_000);
    let list = |paths: &[String]| -> Vec<u8> {
        let entries = paths.iter().cycle().take(80);
        entries.flat_map(|path| format!("100644 blob 0123\t{path}\0").into_bytes()).collect()
    };
    let short = list(&["a".to_owned(), "b".to_owned()]);
    let long = list(&[format!("{long}/a"), "b".to_owned()]);
    let read = |listed: &[u8], bytes: u64| read(&mut { listed }, &Limits { bytes, ..Limits::default() });
    for (listed, bytes, expected) in [
        (&short, 1024 * 10, "more than 20 files and directories"),
        (&long, 1024 * 1024 * 8, "file paths are larger than 2 MiB"),
    ] {
        let error = read(listed, bytes).unwrap_err();
        assert!(error.to_string().contains(expected) && error.hint().contains("--max-fetch"), "{error}");
    }
    assert_eq!(read(&short, 1024 * 40).unwrap().len(), 80);
    let entries = read(&long, 1024 * 1024 * 32).unwrap();
    assert!(entries.len() == 80 && entries.iter().all(|entry| entry.path.len() <= 2048));
    assert_eq!((entries[1].path.as_slice(), entries[3].path.as_slice()), (&b"b"[..], &b"b"[..]));
    let selection = select(&entries, &Limits::default()).unwrap();
    assert!(selection.notes[0].contains("a path that is too long"), "{:?}", selection.notes);
}

#[test]
fn limits_of_files_and_notes() {
    let mut entries = vec!["100644 a/SKILL.md".to_owned(), "100644 b/SKILL.md".to_owned()];
    entries.extend((0..MAX_SKILL_FILES).map(|number| format!("100644 b/{number}")));
    let entries: Vec<_> = entries.iter().map(String::as_str).collect();
    check(&entries, &["a/SKILL.md"], &["skipped `b`, because it has too many files"]);
    let links: Vec<_> = (0..30).map(|number| format!("120000 a/{number}")).collect();
    let mut entries = vec!["100644 a/SKILL.md"];
    entries.extend(links.iter().map(String::as_str));
    let (_, notes) = selected(&entries);
    assert_eq!((notes.len(), notes[MAX_NOTES].as_str()), (MAX_NOTES + 1, "and 10 more"));
}

/// A small repository can have very many directories, because equal directories are stored once.
#[test]
fn limits_of_directories() {
    let deep = |count: usize| format!("a/{}f", "x/".repeat(count - 1));
    check(
        &["100644 a/SKILL.md", &format!("100644 {}", deep(32)), &format!("100644 {}", deep(33))],
        &["a/SKILL.md", &deep(32)],
        &["a path with too many directories"],
    );
    let listed: Vec<u8> = (0..100)
        .flat_map(|number| format!("100644 blob 0\ta/{number}/{}f\0", "x/".repeat(30)).into_bytes())
        .chain(*b"100644 blob 0\ta/SKILL.md\0")
        .collect();
    let entries = read(&mut &listed[..], &Limits::default()).unwrap();
    let select = |blocks: u64| select(&entries, &Limits { bytes: blocks * BLOCK_BYTES, ..Limits::default() });
    let error = select(3000).unwrap_err();
    assert!(
        error.to_string().contains("files and directories of skills need more than 12288000 bytes"),
        "{error}"
    );
    let selection = select(3202).unwrap();
    assert_eq!((selection.wanted.len(), selection.directories), (101, 1 + 100 * 31));
}
