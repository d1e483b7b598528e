//! Tests of reading and changing lock files.

use std::fs;

use super::*;

fn git(commit: char) -> Pinned {
    let skills = [("a/b".to_owned(), "0".repeat(64))].into();
    Pinned::Git(PinnedGit::new(commit.to_string().repeat(40), skills))
}

#[test]
fn a_written_file_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/skills.lock");
    let cache = dir.path().join("cache");
    assert_eq!(LockFile::read(&path).unwrap(), LockFile::default());
    LockFile::change(&path, &cache, |lock| lock.set("github:b/b", git('a'))).unwrap();
    let web = Pinned::Web(PinnedWeb::new("1".repeat(64), None));
    LockFile::change(&path, &cache, |lock| lock.set("https://a", web.clone())).unwrap();
    let lock = LockFile::read(&path).unwrap();
    assert_eq!((lock.get("github:b/b"), lock.get("https://a")), (Some(&git('a')), Some(&web)));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("}\n") && text.lines().count() > 10, "{text}");
    assert!(LockFile::change(&path, &cache, |lock| lock.remove("github:b/b")).unwrap());
    assert!(!LockFile::change(&path, &cache, |lock| lock.remove("github:b/b")).unwrap());
    assert_eq!(LockFile::read(&path).unwrap().sources().collect::<Vec<_>>(), ["https://a"]);
}

/// A reviewer could take the first of two entries for the one that is used.
#[test]
fn a_key_that_occurs_twice_is_an_error() {
    let digest = format!("\"{}\"", "0".repeat(64));
    let commit = format!("\"{}\"", "a".repeat(40));
    let git = |rest: &str| format!(r#"{{"commit": {commit}, "skills": {{"a": {digest}}}{rest}}}"#);
    let file = |sources: &str| format!(r#"{{"version": 1, "sources": {{{sources}}}}}"#);
    let decisions = |name: &str| {
        file(&format!(r#""s": {}"#, git(&format!(r#", "decisions": {{"{name}": {{"a": "1", "a": "1"}}}}"#))))
    };
    assert!(LockFile::parse(&file(&format!(r#""s": {}, "t": {}"#, git(""), git("")))).is_ok());
    for (text, key) in [
        (file(&format!(r#""s": {}, "s": {}"#, git(""), git(""))), "duplicate key `s`"),
        (file(&format!(r#""s": {}, "\u0073": {}"#, git(""), git(""))), "duplicate key `s`"),
        (
            file(&format!(r#""s": {{"commit": {commit}, "skills": {{"a": {digest}, "a": {digest}}}}}"#)),
            "duplicate key `a`",
        ),
        (
            file(&format!(r#""s": {{"index": {digest}, "skills": {{"a": {digest}, "a": {digest}}}}}"#)),
            "duplicate key `a`",
        ),
        (decisions("kept"), "duplicate key `a`"),
        (decisions("declined"), "duplicate key `a`"),
        (decisions("approved"), "duplicate key `a`"),
        (decisions("approvedBy"), "duplicate key `a`"),
        (decisions("names"), "duplicate key `a`"),
        (file(&format!(r#""s": {}"#, git(&format!(r#", "commit": {commit}"#)))), "duplicate field `commit`"),
        (r#"{"version": 1, "sources": {}, "sources": {}}"#.to_owned(), "duplicate field `sources`"),
    ] {
        let error = LockFile::parse(&text).map_err(|reason| reason.to_string()).unwrap_err();
        assert!(error.contains(key) && error.contains("line 1"), "{text}: {error}");
    }
}

/// A value that `read` refuses would make the approvals of all sources unreadable.
#[test]
fn what_cannot_be_read_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("skills.lock");
    let cache = dir.path().join("cache");
    let mut longest = git('a');
    longest.decisions_mut().set_name("a", &"😀".repeat(256));
    LockFile::change(&path, &cache, |lock| lock.set("github:b/b", longest)).unwrap();
    let before = fs::read_to_string(&path).unwrap();
    let with = |change: fn(&mut Decisions)| {
        let mut pinned = git('a');
        change(pinned.decisions_mut());
        pinned
    };
    let digest = "0".repeat(64);
    let large = (0..400_000).map(|number| (format!("skills/{number}"), digest.clone())).collect();
    for (pinned, words) in [
        (with(|decisions| _ = decisions.approved_by.insert("a".to_owned(), "n".repeat(201))), "is too long"),
        (with(|decisions| decisions.set_name("a", &"n".repeat(1025))), "is too long"),
        (with(|decisions| _ = decisions.approved.insert("a".to_owned(), "n".repeat(201))), "is too long"),
        (with(|decisions| _ = decisions.kept.insert("a".to_owned(), "x".to_owned())), "not a commit hash"),
        (with(|decisions| _ = decisions.declined.insert("a".to_owned(), "x".to_owned())), "not a SHA-256"),
        (git('g'), "not a commit hash"),
        (
            Pinned::Git(PinnedGit::new("a".repeat(40), [("../x".to_owned(), digest.clone())].into())),
            "not a directory",
        ),
        (Pinned::Git(PinnedGit::new("a".repeat(40), large)), "too large"),
        (Pinned::Web(PinnedWeb::new("x".to_owned(), None)), "not a SHA-256"),
    ] {
        let error = LockFile::change(&path, &cache, |lock| lock.set("github:c/c", pinned)).unwrap_err();
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert_eq!(
            (error.hint(), fs::read_to_string(&path).unwrap()),
            ("the file was not changed", before.clone())
        );
    }
}

#[test]
fn concurrent_changes_are_all_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("skills.lock");
    let cache = dir.path().join("cache");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..5 {
                    let source = format!("github:a/{number}-{round}");
                    LockFile::change(path, cache, |lock| lock.set(&source, git('b'))).unwrap();
                }
            });
        }
    });
    assert_eq!(LockFile::read(&path).unwrap().sources().count(), 40);
}

#[test]
fn a_broken_file_is_kept_and_the_last_readable_version_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("skills.lock");
    let cache = dir.path().join("cache");
    LockFile::change(&path, &cache, |lock| lock.set("github:b/b", git('a'))).unwrap();
    let good = LockFile::read(&path).unwrap();
    assert!(LockFile::read_or_last(&path, &cache).1.is_none());
    let one = |pinned: &str| format!(r#"{{"version":1,"sources":{{"x":{pinned}}}}}"#);
    let digest = "0".repeat(64);
    let of_directory = |directory: &str| {
        let skills = serde_json::json!({ directory: digest });
        one(&serde_json::json!({ "commit": "a".repeat(40), "skills": skills }).to_string())
    };
    for (text, words) in [
        (String::new(), "EOF"),
        ("{".to_owned(), "line 1"),
        (r#"{"version":2,"sources":{}}"#.to_owned(), "version 2"),
        (
            r#"{"version":1,"sources":{"github:acme/merge-tools":{"index":"x"}}}"#.to_owned(),
            "merge-tools`: `x` is not a SHA-256",
        ),
        (r#"{"version":1,"sources":{},"x":1}"#.to_owned(), "unknown field"),
        (one(r#"{"commit":"../../etc","skills":{}}"#), "not a commit hash"),
        (one(r#"{"commit":"--upload-pack=x","skills":{}}"#), "not a commit hash"),
        (one(&format!(r#"{{"commit":"{}","skills":{{"a":"b"}}}}"#, "a".repeat(40))), "not a SHA-256"),
        (one(r#"{"index":"../x"}"#), "not a SHA-256"),
        (of_directory("/etc"), "`/etc` is not a directory in the repository"),
        (of_directory("../x"), "not a directory"),
        (of_directory("a/../../x"), "not a directory"),
        (of_directory(""), "not a directory"),
        (of_directory("a//b"), "not a directory"),
        (of_directory("a/"), "not a directory"),
        (of_directory("./a"), "not a directory"),
        (of_directory("a/."), "not a directory"),
        (of_directory(".."), "not a directory"),
        (of_directory("..\\x"), "not a directory"),
        (of_directory("a\\..\\..\\x"), "not a directory"),
        (of_directory("C:"), "not a directory"),
        (of_directory("C:/x"), "not a directory"),
        (of_directory("C:\\x"), "not a directory"),
        (of_directory("\\\\server\\share"), "not a directory"),
        (of_directory("//server/share"), "not a directory"),
        (of_directory("a\0/../x"), "not a directory"),
        (of_directory("a\0"), "not a directory"),
        (of_directory(".git/hooks"), "not a directory"),
        (of_directory("nul"), "not a directory"),
        (of_directory("a."), "not a directory"),
        (of_directory("a\u{1b}[2J"), "`a\\u{1b}[2J` is not a directory"),
        (of_directory(&"a/".repeat(600)), "not a directory"),
        (
            one(&format!(r#"{{"commit":"{}","skills":{{"a\ud800":"{digest}"}}}}"#, "a".repeat(40))),
            "hex escape",
        ),
        (one(&format!(r#"{{"index":"{digest}","skills":{{"a":"b"}}}}"#)), "not a SHA-256"),
        (one(&format!(r#"{{"index":"{digest}","commit":"{digest}"}}"#)), "either `commit` or `index`"),
        (one(r#"{"skills":{}}"#), "either `commit` or `index`"),
        (one(&format!(r#"{{"commit":"{digest}"}}"#)), "needs `skills`"),
        (one(&format!(r#"{{"index":"{digest}","tag":"v1"}}"#)), "can't have `tag`"),
        (one(&format!(r#"{{"index":"{digest}","registry":"u"}}"#)), "can't have `tag`, `registry`"),
        (one(&format!(r#"{{"index":"{digest}","committed":1}}"#)), "`committed` or `signedTag`"),
        (
            one(&format!(r#"{{"commit":"{}","skills":{{}},"tag":"{}"}}"#, "a".repeat(40), "v".repeat(2049))),
            "is longer than 2048 bytes",
        ),
        (
            one(&format!(r#"{{"index":"{digest}","skills":[{}1]}}"#, "1,".repeat(MAX_VALUES))),
            "more than 65536 values",
        ),
        (one(&format!(r#"{{"index":"{digest}","x":1}}"#)), "unknown field"),
        ("<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> x\n".to_owned(), "merge"),
    ] {
        fs::write(&path, &text).unwrap();
        let error = LockFile::read(&path).unwrap_err();
        assert!(error.to_string().contains(words) && error.to_string().contains("skills.lock"), "{error}");
        let (lock, error) = LockFile::read_or_last(&path, &cache);
        assert!(lock == good && error.is_some(), "{text}");
        let is_conflict = text.starts_with('<');
        let hint = error.map(|error| error.hint().contains("merge conflict"));
        assert_eq!(hint, Some(is_conflict), "{text}");
        LockFile::change(&path, &cache, |lock| lock.set("github:c/c", git('a'))).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    // We should not open the FIFO, since that would block until a writer opens it, too.
    #[cfg(unix)]
    {
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = LockFile::read(&path).unwrap_err();
        assert!(
            std::error::Error::source(&error).unwrap().to_string().contains("not a regular file"),
            "{error}"
        );
    }
}

/// A lock file can be a link, for example to a directory with dotfiles.
#[cfg(unix)]
#[test]
fn all_paths_of_a_lock_file_have_the_same_lock() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let (cache, file, link) =
        (dir.path().join("cache"), dir.path().join("a/skills.lock"), dir.path().join("b/link"));
    for directory in ["a", "b"] {
        std::fs::create_dir(dir.path().join(directory)).unwrap();
    }
    symlink(dir.path().join("a"), dir.path().join("c")).unwrap();
    let lock_of = |path: &Path| lock_path(path, &cache);
    assert_eq!(lock_of(&file), lock_of(&dir.path().join("c/skills.lock")));
    LockFile::change(&file, &cache, |_| {}).unwrap();
    symlink(&file, &link).unwrap();
    assert_eq!(lock_of(&file), lock_of(&link));
    assert_ne!(lock_of(&file), lock_of(&dir.path().join("b/skills.lock")));
    // A change keeps the link.
    LockFile::change(&link, &cache, |lock| lock.remove("github:acme/skills")).unwrap();
    assert!(link.is_symlink() && file.is_file());
}

/// With a usual umask of shared groups, members could replace the files in directories that we create.
#[cfg(unix)]
#[test]
fn missing_directories_are_created_for_the_owner() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (path, cache) = (dir.path().join("config/own/skills.lock"), dir.path().join("cache/own"));
    LockFile::change(&path, &cache, |lock| lock.set("github:b/b", git('a'))).unwrap();
    for created in ["config", "config/own", "cache", "cache/own", "cache/own/locks"] {
        let mode = fs::metadata(dir.path().join(created)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{created}");
    }
}
