//! Sources that require signatures (`verify: git`), with SSH keys that the tests create.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::repositories::{Home, Repository};

crate::trials!(
    only_signed_versions_are_offered,
    a_signed_tag_counts_under_its_own_name,
    old_signed_versions_are_refused,
    versions_are_compared_with_one_from_before_verify,
    a_host_cannot_rename_an_old_signed_version,
    a_host_cannot_lower_the_approved_version,
    an_unsigned_approved_version_has_no_known_time,
);

/// A key, with which commits of a repository can be signed.
struct Key(PathBuf);

impl Key {
    /// Creates a key. Returns `None` with a message if `ssh-keygen` is missing.
    #[expect(clippy::print_stderr, reason = "says why a test is skipped")]
    fn new(home: &Home, name: &str) -> Option<Self> {
        let path = home.path(name);
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&path).stdout(Stdio::null());
        if command.status().is_ok_and(|status| status.success()) {
            return Some(Self(path));
        }
        eprintln!("skipped: this test needs `ssh-keygen`");
        None
    }

    /// Signs the commits or tags that a git command creates.
    fn git(&self, repository: &Repository, arguments: &[&str]) {
        let key = format!("user.signingKey={}", self.0.display());
        repository.git(&[&["-c", "gpg.format=ssh", "-c", &key], arguments].concat());
    }

    /// Changes the skill `review` and commits it with a signature. Returns the commit.
    fn commit(&self, repository: &Repository, time: u64, body: &str) -> String {
        repository.skill("review", "Reviews.", body);
        repository.git(&["add", "--all"]);
        let key = format!("user.signingKey={}", self.0.display());
        // The time comes after more than 4 KiB.
        let author = format!("--author={} <t@example.com>", "a".repeat(4_500));
        let signing = ["-c", "gpg.format=ssh", "-c", &key, "commit", "--quiet", "-S", "--message=m", &author];
        repository.git_at(time, &signing);
        repository.git(&["rev-parse", "HEAD"])
    }

    /// Makes this key the only one that the user's git accepts.
    fn allow(&self, home: &Home) {
        let public = fs::read_to_string(self.0.with_extension("pub")).expect("a key");
        let signers = home.path("signers");
        home.write(&signers, &format!("t@example.com {public}"));
        let config = format!("[gpg \"ssh\"]\n\tallowedSignersFile = {}\n", signers.display());
        home.write(&home.path("home/.gitconfig"), &config);
    }
}

fn only_signed_versions_are_offered() {
    let repository = Repository::review();
    let home = Home::new();
    let (Some(ours), Some(other)) = (Key::new(&home, "ours"), Key::new(&home, "other")) else { return };
    let commit = |key: Option<&Key>, body: &str| {
        repository.skill("review", "Reviews.", body);
        repository.git(&["add", "--all"]);
        match key {
            Some(key) => key.git(&repository, &["commit", "--quiet", "-S", "--message=m"]),
            None => drop(repository.git(&["commit", "--quiet", "--message=m"])),
        }
        repository.git(&["rev-parse", "HEAD"])
    };
    let source = repository.source("");
    let add = ["add", &source, "--yes", "--verify", "git"];
    ours.allow(&home);
    let errors = home.fails(&add, 2);
    assert!(errors.contains("is not updated: commit ") && errors.contains(" is not signed"), "{errors}");
    assert!(errors.contains("hint: ") && errors.contains("allowedSignersFile"), "{errors}");
    let first = commit(Some(&ours), "one");
    home.printed(&add);
    let lock = home.config().with_file_name("skills.lock");
    let config = fs::read_to_string(home.config()).expect("a file");
    assert!(config.contains("verify: git"), "{config}");
    assert_eq!(home.pinned(&lock, &source).as_ref(), Some(&first));
    // An update waits if it has no signature, or if the key is not the user's choice. The approved version is still served.
    for key in [None, Some(&other)] {
        commit(key, if key.is_none() { "two" } else { "three" });
        let errors = home.fails(&["update", "--yes"], 1);
        let why =
            if key.is_none() { "is not signed" } else { "git does not accept the signature of commit " };
        assert!(errors.contains("is not updated: ") && errors.contains(why), "{errors}");
        home.fails(&["outdated"], 1);
        assert_eq!(home.pinned(&lock, &source).as_ref(), Some(&first));
        assert_eq!(home.json(&["list", "--json"])["skills"][0]["name"], "review");
    }
    // Skills that were approved are fetched again without a check, because they have a hash.
    fs::remove_dir_all(home.path("cache")).expect("the path exists");
    assert_eq!(home.json(&["list", "--json"])["skills"][0]["name"], "review");
    let last = commit(Some(&ours), "four");
    home.printed(&["update", "--yes"]);
    assert_eq!(home.pinned(&lock, &source), Some(last));
    // A web site has no signatures.
    let web = home.path("web/skills.yaml");
    home.write(
        &web,
        &json!({ "sources": [{ "source": "https://localhost:1", "verify": "git" }] }).to_string(),
    );
    let errors = home.fails(&["update", "--config", web.to_str().expect("text")], 1);
    assert!(errors.contains("is not a git repository"), "{errors}");
}

/// A signed tag is enough. An old tag must not be accepted under the name of a new one.
fn a_signed_tag_counts_under_its_own_name() {
    let repository = Repository::review();
    let home = Home::new();
    let Some(key) = Key::new(&home, "key") else { return };
    key.allow(&home);
    let tag = |name: &str, body: &str| {
        repository.skill("review", "Reviews.", body);
        repository.commit();
        key.git(&repository, &["tag", "-s", "--message=m", name]);
    };
    let source = repository.source("#^1.0");
    tag("v1.0.0", "one");
    home.printed(&["add", &source, "--yes", "--verify", "git"]);
    tag("v1.1.0", "two");
    assert!(home.printed(&["update", "--yes"]).contains("v1.1.0"));
    repository.git(&["update-ref", "refs/tags/v1.2.0", "refs/tags/v1.0.0"]);
    let errors = home.fails(&["update", "--yes"], 1);
    assert!(errors.contains("is not updated: commit ") && errors.contains(" is not signed"), "{errors}");
    tag("v1.3.0", "three");
    home.printed(&["update", "--yes"]);
}

/// A server can offer an old version again, and its signature is still right.
fn old_signed_versions_are_refused() {
    let repository = Repository::review();
    let home = Home::new();
    let Some(key) = Key::new(&home, "key") else { return };
    key.allow(&home);
    let commit = |time: u64, body: &str| key.commit(&repository, time, body);
    let source = repository.source("");
    let lock = home.config().with_file_name("skills.lock");
    let old = commit(1_700_000_000, "old");
    home.printed(&["add", &source, "--yes", "--verify", "git"]);
    let new = commit(1_700_000_001, "new");
    home.printed(&["update", "--yes"]);
    assert_eq!(home.pinned(&lock, &source).as_ref(), Some(&new));
    repository.git(&["reset", "--quiet", "--hard", &old]);
    for command in [&["update", "--yes"][..], &["outdated"]] {
        let errors = home.fails(command, 1);
        let reason = format!(
            "it offers commit {}, which is older than the approved commit {}",
            &old[..12],
            &new[..12]
        );
        assert!(errors.contains(&reason) && errors.contains("hint: "), "{errors}");
    }
    assert_eq!(home.pinned(&lock, &source).as_ref(), Some(&new));
    assert_eq!(home.json(&["list", "--json"])["skills"][0]["name"], "review");
    // The author takes the change back in a new commit.
    let reverted = commit(1_700_000_002, "old again");
    home.printed(&["update", "--yes"]);
    assert_eq!(home.pinned(&lock, &source), Some(reverted));
    // Tags of a range count by their versions.
    let source = repository.source("#^1.0");
    let tag = |name: &str| key.git(&repository, &["tag", "-s", "--message=m", name]);
    tag("v1.0.0");
    commit(1_700_000_001, "on another machine, whose clock is slow");
    tag("v1.1.0");
    home.printed(&["remove", &repository.source("")]);
    home.printed(&["add", &source, "--yes", "--verify", "git"]);
    repository.git(&["tag", "--delete", "v1.1.0"]);
    let errors = home.fails(&["update", "--yes"], 1);
    assert!(
        errors.contains("it offers version v1.0.0, which is older than the approved version v1.1.0"),
        "{errors}"
    );
}

/// A commit that was approved without a check of its signature has no time in the lock file, so the update fetches the commit.
fn versions_are_compared_with_one_from_before_verify() {
    let repository = Repository::review();
    let home = Home::new();
    let Some(key) = Key::new(&home, "key") else { return };
    key.allow(&home);
    let source = repository.source("");
    let old = key.commit(&repository, 1_700_000_000, "old");
    let approved = key.commit(&repository, 1_700_000_001, "approved");

    let lock = home.config().with_file_name("skills.lock");
    let offer = |commit: &str| repository.git(&["reset", "--quiet", "--hard", commit]);
    offer(&approved);
    home.printed(&["add", &source, "--yes"]);
    let entry = json!({ "sources": [{ "source": source, "verify": "git" }] });
    home.write(&home.config(), &entry.to_string());
    let refused = |reason: &str| {
        let errors = home.fails(&["update", "--yes"], 1);
        assert!(errors.contains(reason) && errors.contains("hint: "), "{errors}");
        assert_eq!(home.pinned(&lock, &source).as_ref(), Some(&approved));
    };
    offer(&old);
    refused(&format!("older than the approved commit {}", &approved[..12]));
    // The host has removed the approved commit.
    repository.git(&["reflog", "expire", "--expire=now", "--all"]);
    repository.git(&["gc", "--quiet", "--prune=now"]);
    refused(&format!("its approved commit {} cannot be fetched", &approved[..12]));
}

/// The host could have made up the time of an unsigned commit that was approved before.
fn an_unsigned_approved_version_has_no_known_time() {
    let repository = Repository::review();
    let home = Home::new();
    let Some(key) = Key::new(&home, "key") else { return };
    key.allow(&home);
    let source = repository.source("");
    let signed = key.commit(&repository, 1_700_000_000, "signed");
    repository.skill("review", "Reviews.", "unsigned");
    repository.git(&["add", "--all"]);
    repository.git_at(1_600_000_000, &["commit", "--quiet", "--message=m"]);
    home.printed(&["add", &source, "--yes"]);
    let entry = json!({ "sources": [{ "source": source, "verify": "git" }] });
    home.write(&home.config(), &entry.to_string());
    repository.git(&["reset", "--quiet", "--hard", &signed]);
    let errors = home.fails(&["update", "--yes"], 1);
    assert!(
        errors.contains(" is not signed, so it is unknown whether") && errors.contains("hint: "),
        "{errors}"
    );
}

/// The commit of an old version is signed, but the tag with which the host offers it again is not.
fn a_host_cannot_rename_an_old_signed_version() {
    let repository = Repository::review();
    let home = Home::new();
    let Some(key) = Key::new(&home, "key") else { return };
    key.allow(&home);
    let old = key.commit(&repository, 1_700_000_000, "old");
    let new = key.commit(&repository, 1_700_000_001, "new");
    let sign = |name: &str| key.git(&repository, &["tag", "-s", "--message=m", name]);
    sign("v1.1.0");
    let source = repository.source("#^1");
    let lock = home.config().with_file_name("skills.lock");
    home.printed(&["add", &source, "--yes", "--verify", "git"]);
    repository.git(&["tag", "v1.9.0", &old]);
    let errors = home.fails(&["update", "--yes"], 1);
    let reason = "it offers version v1.9.0, which is older than the approved version v1.1.0";
    assert!(errors.contains(reason), "{errors}");
    assert_eq!(home.pinned(&lock, &source), Some(new));
    // The author can sign an older commit as a new version.
    repository.git(&["tag", "--delete", "v1.9.0"]);
    repository.git(&["reset", "--quiet", "--hard", &old]);
    sign("v1.9.0");
    home.printed(&["update", "--yes"]);
    assert_eq!(home.pinned(&lock, &source), Some(old));
}

/// The host can give the approved commit a lower tag, but this must not make an older version look newer than it.
fn a_host_cannot_lower_the_approved_version() {
    let repository = Repository::review();
    let home = Home::new();
    let Some(key) = Key::new(&home, "key") else { return };
    key.allow(&home);
    let sign = |name: &str| key.git(&repository, &["tag", "-s", "--message=m", name]);
    key.commit(&repository, 1_700_000_000, "old");
    sign("v1.1.0");
    let approved = key.commit(&repository, 1_700_000_001, "new");
    sign("v1.2.0");
    let source = repository.source("#^1");
    let lock = home.config().with_file_name("skills.lock");
    home.printed(&["add", &source, "--yes", "--verify", "git"]);
    let old = repository.git(&["rev-parse", "refs/tags/v1.1.0"]);
    let lower = |rename: &dyn Fn()| {
        repository.git(&["tag", "--delete", "v1.2.0", "v1.1.0"]);
        rename();
        home.printed(&["update", "--yes"]);
        repository.git(&["tag", "--delete", "v1.0.5"]);
        repository.git(&["update-ref", "refs/tags/v1.1.0", &old]);
        let errors = home.fails(&["update", "--yes"], 1);
        let reason = "it offers version v1.1.0, which is older than the approved version v1.2.0";
        assert!(errors.contains(reason), "{errors}");
        assert_eq!(home.pinned(&lock, &source).as_ref(), Some(&approved));
    };
    lower(&|| drop(repository.git(&["tag", "v1.0.5", &approved])));
    // The author may have signed a lower tag for the same commit.
    sign("v1.2.0");
    lower(&|| sign("v1.0.5"));
}
