//! Checks that errors keep their cause and have a fitting hint.

use super::*;

/// Checks that an error shows its cause, and gets a hint about the cause.
fn check(said: &str, cause: &str, hint: &str) {
    let error = GitError::Failed { what: "fetch".to_owned(), said: said.to_owned() };
    assert!(error.to_string().contains(cause), "{error}");
    assert!(error.hint().contains(hint), "{error}: {}", error.hint());
}

/// Errors over ssh.
#[test]
fn ssh_errors_keep_their_cause() {
    const RIGHTS: &str = "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n\
                          and the repository exists.\n";
    for (said, cause, hint) in [
        (
            &format!("Host key verification failed.\n{RIGHTS}"),
            "Host key verification failed.; fatal: Could",
            "run `ssh HOST`",
        ),
        (
            &format!(
                "@@@@@@@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@@@@@\nSomeone could \
                 be eavesdropping on you right now\nAdd correct host key in /home/me/.ssh/known_hosts\nHost key verification \
                 failed.\n{RIGHTS}"
            ),
            "Host key verification failed.",
            "ssh-keygen -R",
        ),
        (
            &format!(
                "Warning: Permanently added 'x' (ED25519) to the list of known hosts.\ngit@x: Permission denied (publickey).\n{RIGHTS}"
            ),
            "git@x: Permission denied (publickey).; fatal: Could not read",
            "none of your ssh keys",
        ),
        (
            &format!("ERROR: Repository not found.\n{RIGHTS}"),
            "ERROR: Repository not found.; fatal",
            "looks missing to users without access",
        ),
        (
            &format!(
                "remote: \nremote: The project you were looking for could not be found\nremote: \n{RIGHTS}"
            ),
            "remote: The project you were looking for",
            "looks missing",
        ),
        (
            &format!("ssh: connect to host h port 22: Connection timed out\n{RIGHTS}"),
            "ssh: connect to host h port 22: Connection timed out",
            "check the network",
        ),
    ] {
        check(said, cause, hint);
    }
}

/// Errors over https, of the disk, and of git itself.
#[test]
fn other_errors_keep_their_cause() {
    for (said, cause, hint) in [
        (
            "remote: Repository not found.\nfatal: repository 'https://h/x/' not found\n",
            "remote: Repository not found.; fatal: repository 'https://h/x/' not found",
            "check the address",
        ),
        (
            "fatal: could not read Username for 'https://h': terminal prompts disabled",
            "could not read Username",
            "credential helper",
        ),
        (
            "fatal: unable to access 'https://h/': server certificate verification failed. CAfile: none",
            "server certificate verification failed",
            "http.sslCAInfo FILE",
        ),
        (
            "fatal: unable to access 'https://h/': SSL certificate problem: self-signed certificate",
            "self-signed certificate",
            "http.sslCAInfo FILE",
        ),
        (
            "fatal: unable to access 'https://h/': Problem with the SSL CA cert (path? access rights?)",
            "SSL CA cert",
            "check `git config http.sslCAInfo`",
        ),
        (
            "fatal: unable to access 'https://h/': Could not resolve host: h",
            "Could not resolve host",
            "check the network",
        ),
        ("fatal: ssh variant 'simple' does not support setting port", "ssh variant", "ssh.variant"),
        (
            "fatal: attempting to allocate 4000000001 over limit 134217728\nfatal: fetch-pack: invalid index-pack output\n",
            "over limit 134217728; fatal: fetch-pack",
            "`--max-fetch MIB`",
        ),
        ("fatal: write error: No space left on device", "No space left", "free disk space"),
        (
            "fatal: detected dubious ownership in repository at '/r/.git'",
            "dubious ownership",
            "safe.directory",
        ),
        ("fatal: mismatched algorithms: client sha1; server sha256", "mismatched", "SHA-1"),
        ("fatal: anything else\n", "fatal: anything else", "git ls-remote"),
        (
            "warning: filtering not recognized by server, ignoring\n",
            "no error message from git",
            "git ls-remote",
        ),
        ("a\nb\nc\nd\n50%\r100%\re\x1b[2J\n", ": b; c; d; e\\u{1b}[2J", "git ls-remote"),
    ] {
        check(said, cause, hint);
    }
}

#[test]
fn secrets_in_urls_are_removed() {
    for (said, expected) in [
        (
            "fatal: unable to update url base from redirection: asked for: https://x:TOKEN@a.example/r.git/info/refs?service=x",
            "fatal: unable to update url base from redirection: asked for: https://a.example/r.git/info/refs?…",
        ),
        ("redirect: 'https://a.example/login?token=TOKEN' no", "redirect: 'https://a.example/login?…' no"),
        ("a https://u@b@c.example d ssh://git@e.example/f", "a https://c.example d ssh://e.example/f"),
        (
            "fatal: repository 'https://a.example/r@v1' not found",
            "fatal: repository 'https://a.example/r@v1' not found",
        ),
        ("no URL: a@b", "no URL: a@b"),
    ] {
        assert_eq!(last_lines(said), expected);
    }
}
