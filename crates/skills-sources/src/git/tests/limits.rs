//! Limits of time and size, with servers and repositories that exceed them.

use super::*;
use crate::{
    address::Transport,
    origin::{Origin, Origins},
};

#[test]
fn a_hundred_thousand_files() {
    let repository = Repository::new();
    let skill = [("100644 a/SKILL.md".to_owned(), SKILL.to_owned())];
    let many = (0..100_000).map(|number| (format!("100644 b/{}/{number}", number / 300), String::new()));
    let in_skill = (0..6_000).map(|number| (format!("100644 c/{}/{number}", number / 300), String::new()));
    let large = [("100644 c/SKILL.md".to_owned(), SKILL.to_owned())];
    repository.import(skill.into_iter().chain(many).chain(large).chain(in_skill));
    let (files, fetched) = fetch_from(&repository.place(""), None).unwrap();
    assert_eq!(files, ["a/SKILL.md"]);
    assert_eq!(fetched.notes, ["skipped `c`, because it has too many files for a skill"]);
}

/// A server that accepts the connection and never answers runs into the timeout.
#[test]
fn a_server_that_never_answers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/x.git", listener.local_addr().unwrap());
    let place =
        GitPlace { url, reference: None, path: String::new(), skill: None, transport: Transport::Https };
    let directory = tempfile::tempdir().unwrap();
    let second = Duration::from_secs(1);
    let limits = Limits::default();
    for (limits, expected) in [
        (Limits { total: second, ..limits }, "git timed out after 1 s"),
        (Limits { answer: second, ..limits }, "no answer from the host within 1 s"),
        (Limits { stall: second, ..limits }, "host sent less than 64 KiB within 1 s"),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let error =
            fetch(&place, None, targets(directory.path(), scratch.path()), None, &limits).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

/// A host can send its references as one text, of which git's trace has nothing.
#[test]
fn references_may_need_less_memory_than_objects() {
    const MIB: u64 = 1024 * 1024;
    let repository = Repository::new();
    let scratch = tempfile::tempdir().unwrap();
    for (bytes, command, expected) in
        [(256, "ls-remote", 32), (256, "fetch", 128), (1024, "ls-remote", 128), (1, "ls-remote", 16)]
    {
        let limits = Limits { bytes: bytes * MIB, ..Limits::default() };
        let git = super::repository(&repository.place(""), scratch.path(), None, &limits).unwrap();
        let started = git.command(&[command]);
        let mut variables = started.as_std().get_envs();
        let limit = variables.find(|(name, _)| *name == "GIT_ALLOC_LIMIT").unwrap().1.unwrap();
        assert_eq!(limit.to_str().unwrap(), (expected * MIB).to_string(), "{bytes} {command}");
    }
}

/// Each directory contains the next one twice, so git would list 2^60 directories without a file.
#[test]
fn directories_without_files_are_counted() {
    let repository = Repository::new();
    let mut tree = repository.git(&["mktree"], b"");
    for _ in 0..60 {
        let entries = format!("040000 tree {tree}\ta\n040000 tree {tree}\tb\n");
        tree = repository.git(&["mktree"], entries.as_bytes());
    }
    let commit = repository.git(&["commit-tree", "-m", "m", &tree], b"");
    repository.git(&["update-ref", "refs/heads/main", &commit], b"");
    let error = fetch_from(&repository.place(""), None).unwrap_err();
    assert!(error.to_string().contains("repository is too large"), "{error}");
}

/// A server that ignores filters sends everything. The fetch ends at the limit, and the message says which one it was.
#[test]
fn a_server_that_sends_too_much() {
    let repository = Repository::new();
    let words = (0..200_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let noise = words.collect::<Vec<_>>().concat();
    repository.commit(&[("a/SKILL.md", SKILL), ("a/big.txt", &noise), ("big.bin", &noise[1..])]);
    let limits = |bytes| Limits { bytes, ..Limits::default() };
    let fetch_within = |limits: &Limits| {
        let directory = tempfile::tempdir().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        fetch(&repository.place(""), None, targets(directory.path(), scratch.path()), None, limits)
    };
    for (bytes, filter, expected) in [
        (1024 * 1024, false, "host sent more than 1 MiB"),
        // The files are compressed while they are sent.
        (2 * 1024 * 1024, true, "skills are larger than 2 MiB"),
    ] {
        repository.git(&["config", "uploadpack.allowFilter", if filter { "true" } else { "false" }], b"");
        let error = fetch_within(&limits(bytes)).unwrap_err();
        assert!(error.to_string().contains(expected) && error.hint().contains("--max-fetch"), "{error}");
    }
    fetch_within(&limits(16 * 1024 * 1024)).unwrap();
}

/// A limit ends git's output early, so the code that reads it fails as well. The error names the limit.
#[test]
fn a_limit_is_reported_instead_of_its_consequence() {
    let scratch = tempfile::tempdir().unwrap();
    let limits = Limits { total: Duration::ZERO, ..Limits::default() };
    let git = Git::new(scratch.path(), Transport::File, None, &limits).unwrap();
    let cut = || GitError::System { what: "version".to_owned(), source: ErrorKind::UnexpectedEof.into() };
    let error = git.talk(&["version"], Vec::new(), |_output| Err::<(), _>(cut())).unwrap_err();
    assert!(matches!(error, GitError::TooLong(_)), "{error}");
}

/// Files that don't belong to skills can become large. Then they are left out, although they are expected to be few.
#[test]
fn large_files_that_come_with_the_commit() {
    let repository = Repository::new();
    repository.git(&["config", "uploadpack.allowFilter", "true"], b"");
    repository.commit(&[("a/SKILL.md", SKILL)]);
    let place = repository.place("");
    let known = tempfile::tempdir().unwrap();
    let limits = Limits { bytes: 1024 * 1024, ..Limits::default() };
    let origins = Origins::default();
    let fetch = || {
        let origin =
            Origin { place: &place, known: known.path().join("known"), limits: &limits, origins: &origins };
        let directory = tempfile::tempdir().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        origin.fetch(None, directory.path(), scratch.path(), None, false).unwrap();
        (files(directory.path()), known.path().join("mostly-skills").exists())
    };
    let skill = vec!["a/SKILL.md".to_owned()];
    assert_eq!(fetch(), (skill.clone(), true));
    let noise = |file: u64| {
        let words =
            (0..6_000_u64).map(|n| format!("{:x}", (n + file * 6_000).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        words.collect::<String>()
    };
    let others: Vec<_> = (0..30).map(|file| (format!("b/{file}"), noise(file))).collect();
    repository.commit(&others.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
    for _ in 0..2 {
        assert_eq!(fetch(), (skill.clone(), false));
    }
}
