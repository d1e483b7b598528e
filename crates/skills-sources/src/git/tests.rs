//! Fetches from repositories that the tests create with `git`.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    super::address::{Address, Place},
    *,
};

mod limits;

fn targets<'a>(directory: &'a Path, scratch: &'a Path) -> Targets<'a> {
    Targets { directory, scratch, verify: false, expects_skills: false }
}

/// A repository in a temporary directory.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.git(&["init", "--quiet", "--initial-branch=main"], b"");
        repository.git(&["config", "user.name", "t"], b"");
        repository.git(&["config", "user.email", "t@example.com"], b"");
        repository
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> String {
        use std::io::Write;
        let mut git = Command::new("git")
            .args(arguments)
            .current_dir(self.0.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        git.stdin.take().unwrap().write_all(input).unwrap();
        let output = git.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Writes files, commits them, and returns the commit's hash.
    fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self.git(&["add", "--all"], b"");
        self.git(&["commit", "--quiet", "--message=m"], b"");
        self.git(&["rev-parse", "HEAD"], b"")
    }

    /// Commits entries, as `MODE PATH` and content, that a file system may not be able to store.
    fn import(&self, entries: impl Iterator<Item = (String, String)>) {
        let mut stream =
            "commit refs/heads/main\ncommitter t <t@example.com> 1 +0000\ndata 1\nm\n".to_owned();
        for (entry, content) in entries {
            let (mode, path) = entry.split_once(' ').unwrap();
            let path = if path.contains('"') { unreachable!() } else { format!("\"{path}\"") };
            let length = content.len().to_string();
            stream.extend(["M ", mode, " inline ", &path, "\ndata ", &length, "\n", &content, "\n"]);
        }
        self.git(&["-c", "core.ignoreCase=false", "fast-import", "--quiet", "--force"], stream.as_bytes());
    }

    fn url(&self) -> String {
        let path = self.0.path().to_str().unwrap().replace('\\', "/");
        format!("file://{}{path}", if path.starts_with('/') { "" } else { "/" })
    }

    fn place(&self, fragment: &str) -> GitPlace {
        let text = format!("git+{}{fragment}", self.url());
        let address = Address::parse(&text).unwrap();
        let Place::Git(place) = address.place() else { unreachable!() };
        place.clone()
    }
}

/// Fetches into a temporary directory. Returns the files and the result.
fn fetch_from(place: &GitPlace, commit: Option<&str>) -> Result<(Vec<String>, Fetched), GitError> {
    let directory = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let version = commit.map(|commit| Found { commit: commit.to_owned(), tag: None });
    let version = version.as_ref();
    let fetched = fetch(place, version, targets(directory.path(), scratch.path()), None, &Limits::default())?;
    Ok((files(directory.path()), fetched))
}

fn files(dir: &Path) -> Vec<String> {
    fn walk(dir: &Path, base: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                walk(&path, base, found);
            } else {
                found.push(path.strip_prefix(base).unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(dir, dir, &mut found);
    found.sort();
    found.into_iter().map(|path| path.to_str().unwrap().replace('\\', "/")).collect()
}

const SKILL: &str = "---\nname: a\ndescription: d\n---\nBody.\n";

#[test]
fn only_skills_are_fetched() {
    let repository = Repository::new();
    let first = repository.commit(&[
        ("a/SKILL.md", SKILL),
        ("a/x/y.md", "y"),
        ("other/z.md", "z"),
        (".gitattributes", "* filter=evil\n"),
    ]);
    repository.git(&["tag", "v1"], b"");
    let second = repository.commit(&[("b/SKILL.md", SKILL)]);
    for (fragment, commit, expected) in [
        ("", &second, vec!["a/SKILL.md", "a/x/y.md", "b/SKILL.md"]),
        ("#v1", &first, vec!["a/SKILL.md", "a/x/y.md"]),
        ("#main:b", &second, vec!["SKILL.md"]),
        (&format!("#{first}"), &first, vec!["a/SKILL.md", "a/x/y.md"]),
        // An abbreviated commit.
        (&format!("#{}:a", &first[..10]), &first, vec!["SKILL.md", "x/y.md"]),
    ] {
        let (files, fetched) = fetch_from(&repository.place(fragment), None).unwrap();
        assert_eq!(
            (files, &fetched.commit),
            (expected.iter().map(ToString::to_string).collect(), commit),
            "{fragment}"
        );
        assert_eq!(fetched.notes, Vec::<String>::new());
    }
    // We should still fetch a pinned commit after the branch has moved.
    let (files, fetched) = fetch_from(&repository.place("#main"), Some(&first)).unwrap();
    assert_eq!((files.len(), fetched.commit), (2, first));
}

/// A server that supports filters sends only the files of skills.
#[test]
fn a_server_with_filters() {
    let repository = Repository::new();
    repository.git(&["config", "uploadpack.allowFilter", "true"], b"");
    let noise = "never to be sent".repeat(1000);
    let commit = repository.commit(&[("a/SKILL.md", SKILL), ("a/x.md", "x"), ("big.bin", &noise)]);
    let directory = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let place = repository.place("");
    let fetched =
        fetch(&place, None, targets(directory.path(), scratch.path()), None, &Limits::default()).unwrap();
    assert_eq!(
        (fetched.commit, files(directory.path())),
        (commit.clone(), vec!["a/SKILL.md".into(), "a/x.md".into()])
    );
    let git = Git::new(scratch.path(), place.transport, None, &Limits::default()).map(|_| ());
    assert!(git.is_ok());
    let output = Command::new("git")
        .args(["rev-list", "--objects", "--missing=print", &commit])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    let missing =
        String::from_utf8(output.stdout).unwrap().lines().filter(|line| line.starts_with('?')).count();
    assert_eq!(missing, 1, "the file outside of skills is not sent");
}

#[test]
fn missing_references_and_directories() {
    let repository = Repository::new();
    let commit = repository.commit(&[("a/SKILL.md", SKILL)]);
    for (fragment, expected) in [
        ("#nowhere", "no such branch, tag or commit: `nowhere`"),
        ("#0123456789", "no such branch, tag or commit: `0123456789`"),
        ("#:nowhere", "no such directory in the repository: `nowhere`"),
        ("#:a/SKILL.md", "no such directory in the repository: `a/SKILL.md`"),
    ] {
        let error = fetch_from(&repository.place(fragment), None).unwrap_err();
        assert!(error.to_string().contains(expected), "{fragment}: {error}");
    }
    let gone = "0123456789012345678901234567890123456789";
    let error = fetch_from(&repository.place("#main"), Some(gone)).unwrap_err();
    assert!(error.to_string().contains(gone), "{error}");
    let place = repository.place("");
    drop(repository);
    let error = fetch_from(&place, Some(&commit)).unwrap_err();
    assert!(matches!(&error, GitError::Failed { .. }) && error.to_string().contains("fatal: "), "{error}");
    assert!(error.hint().contains("check the address"), "{error}");
}

/// A fetch of several references can begin with a tag of another commit.
#[test]
fn a_tag_counts_only_for_its_own_commit() {
    let repository = Repository::new();
    let tagged = repository.commit(&[("a/SKILL.md", SKILL)]);
    repository.git(&["tag", "--annotate", "--message=m", "20240101"], b"");
    let other = repository.commit(&[("b/SKILL.md", SKILL)]);
    let scratch = tempfile::tempdir().unwrap();
    let limits = Limits::default();
    let git = super::repository(&repository.place(""), scratch.path(), None, &limits).unwrap();
    run_fetch(&git, &["--", "origin", "20240101", "main"]).unwrap();
    let tag = |name: &str, commit: &str| signature::tag_object(&git, name, commit).unwrap();
    assert!(tag("20240101", &tagged).is_some());
    assert_eq!((tag("20240101", &other), tag("20240102", &tagged)), (None, None));
}

#[test]
fn a_hostile_repository() {
    let repository = Repository::new();
    let file = |path: &str| (format!("100644 {path}"), SKILL.to_owned());
    repository.import(
        [
            file("a/SKILL.md"),
            file("a/notes.md"),
            file("a/NOTES.md"),
            ("120000 a/passwd".to_owned(), "/etc/passwd".to_owned()),
            ("120000 a/up".to_owned(), "../..".to_owned()),
            ("120000 b".to_owned(), "a".to_owned()),
            ("100755 a/run.sh".to_owned(), "#!/bin/sh\n".to_owned()),
            file("c/sub/.gitmodules"),
            file("a/c:/x"),
            file("a/back\\\\slash"),
        ]
        .into_iter(),
    );
    let hook = repository.0.path().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(hook, "#!/bin/sh\ntouch /tmp/hooked\n").unwrap();
    let (files, fetched) = fetch_from(&repository.place(""), None).unwrap();
    assert_eq!(files, ["a/NOTES.md", "a/SKILL.md", "a/run.sh"]);
    let notes = fetched.notes.join("\n");
    for words in ["`a/passwd`, because it is a link", "`a/up`", "a/notes.md`, because it differs", "`a/c:/x`"]
    {
        assert!(notes.contains(words), "{notes}");
    }
}

/// The tree contains names that git itself would refuse to write.
#[test]
fn a_tree_that_leads_out() {
    let repository = Repository::new();
    repository.commit(&[("x", SKILL)]);
    let blob = repository.git(&["rev-parse", "HEAD:x"], b"");
    // The object is built by hand, because `mktree` refuses such names.
    let object: Vec<u8> =
        (0..blob.len()).step_by(2).map(|at| u8::from_str_radix(&blob[at..at + 2], 16).unwrap()).collect();
    let tree = |entries: &[(&str, &str, &[u8])]| -> Vec<u8> {
        entries
            .iter()
            .flat_map(|(mode, name, object)| [mode.as_bytes(), b" ", name.as_bytes(), b"\0", object].concat())
            .collect()
    };
    let store = |content: &[u8]| {
        let name = repository.git(&["hash-object", "-t", "tree", "-w", "--literally", "--stdin"], content);
        let bytes: Vec<u8> =
            (0..name.len()).step_by(2).map(|at| u8::from_str_radix(&name[at..at + 2], 16).unwrap()).collect();
        (name, bytes)
    };
    let (_, inner) = store(&tree(&[("100644", "SKILL.md", &object), ("100644", "evil", &object)]));
    let (_, up) = store(&tree(&[("40000", "..", &inner)]));
    let (top, _) = store(&tree(&[("40000", "..", &up), ("40000", ".git", &inner), ("40000", "a", &inner)]));
    let commit = repository.git(&["commit-tree", &top, "-m", "m"], b"");
    repository.git(&["update-ref", "refs/heads/main", &commit], b"");
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("x/y");
    let scratch = outer.path().join("scratch");
    fs::create_dir_all(&directory).unwrap();
    fs::create_dir(&scratch).unwrap();
    let fetched =
        fetch(&repository.place(""), None, targets(&directory, &scratch), None, &Limits::default()).unwrap();
    assert_eq!(files(&outer.path().join("x")), ["y/a/SKILL.md", "y/a/evil"]);
    assert_eq!(fetched.notes.len(), 4, "{:?}", fetched.notes);
}

/// A pointer is not the file that the author meant, so it is never written.
#[test]
fn git_lfs_pointers() {
    let repository = Repository::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let about = "# LFS\nversion https://git-lfs.github.com/spec/v1\noid x\n";
    let long = format!("{pointer}{}", "x".repeat(2000));
    repository.commit(&[
        ("a/SKILL.md", SKILL),
        ("a/model.bin", pointer),
        ("a/about.md", about),
        ("a/long.md", &long),
        ("a/empty.md", ""),
        ("b/SKILL.md", pointer),
        ("b/x.md", "x"),
        ("model.bin", pointer),
        (".claude-plugin/plugin.json", pointer),
    ]);
    let (files, fetched) = fetch_from(&repository.place(""), None).unwrap();
    assert_eq!(files, ["a/SKILL.md", "a/about.md", "a/empty.md", "a/long.md", "b/x.md"]);
    assert_eq!(
        fetched.notes,
        [
            "skipped `.claude-plugin/plugin.json`, because it is a Git LFS pointer",
            "skipped `a/model.bin`, because it is a Git LFS pointer, so the skill in `a` is incomplete",
            "skipped `b/SKILL.md`, because it is a Git LFS pointer, so the skill in `b` is incomplete",
        ]
    );
}

/// If most files belong to skills, the small ones come with the commit, and a second request is only needed for large ones.
#[test]
fn files_can_come_with_the_commit() {
    let repository = Repository::new();
    repository.git(&["config", "uploadpack.allowFilter", "true"], b"");
    let fetch_as = |place: &str, expects_skills| {
        let directory = tempfile::tempdir().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let targets = Targets { expects_skills, ..targets(directory.path(), scratch.path()) };
        let fetched = fetch(&repository.place(place), None, targets, None, &Limits::default()).unwrap();
        let packs = fs::read_dir(scratch.path().join("objects/pack")).unwrap();
        let is_pack = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "pack");
        let packs = packs.map(|entry| entry.unwrap().path()).filter(is_pack).count();
        (files(directory.path()), packs, fetched.is_mostly_skills)
    };
    repository.commit(&[("a/SKILL.md", SKILL), ("README.md", "x")]);
    let skill = vec!["a/SKILL.md".to_owned()];
    assert_eq!(fetch_as("", false), (skill.clone(), 2, true));
    assert_eq!(fetch_as("", true), (skill, 1, true));
    assert!(!fetch_as("#:a", true).2, "the rest of the repository is unknown");
    repository.commit(&[("a/large.md", &"large ".repeat(40_000))]);
    let with_large = vec!["a/SKILL.md".to_owned(), "a/large.md".to_owned()];
    assert_eq!(fetch_as("", true), (with_large.clone(), 2, true));
    let others =
        (0..MAX_OTHERS).map(|number| (format!("other/{number}"), number.to_string())).collect::<Vec<_>>();
    let others = others.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>();
    repository.commit(&others);
    assert_eq!(fetch_as("", false), (with_large, 2, false));
}

/// Only the protocol of the address is allowed, even if the URL was rewritten.
#[test]
fn other_protocols_are_rejected() {
    let repository = Repository::new();
    repository.commit(&[("a/SKILL.md", SKILL)]);
    for url in [repository.url(), "ext::sh -c true".to_owned()] {
        let place = GitPlace {
            url,
            reference: None,
            path: String::new(),
            skill: None,
            transport: super::super::Transport::Https,
        };
        let error = fetch_from(&place, None).unwrap_err();
        assert!(error.to_string().contains("not allowed"), "{error}");
    }
}
