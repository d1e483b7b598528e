use super::*;

/// Returns the parsed address as `URL REF PATH` or `web URL`, or the error and its hint.
fn read(text: &str) -> String {
    match Address::parse(text) {
        Ok(address) => match address.place() {
            Place::Git(place) => {
                let reference = place.reference.as_deref().unwrap_or("(default)");
                format!("{} {reference} {}", place.url, place.path).trim_end().to_owned()
            }
            Place::Web(url) => format!("web {url}"),
        },
        Err(error) => format!("{}; {}", error.why, error.hint()),
    }
}

#[test]
fn addresses_are_parsed() {
    for (text, expected) in [
        ("github:acme/skills", "https://github.com/acme/skills.git (default)"),
        (" github:acme/skills.git ", "https://github.com/acme/skills.git (default)"),
        ("github:acme/skills@v1.2", "https://github.com/acme/skills.git v1.2"),
        ("github:acme/skills/a/b@feature/x", "https://github.com/acme/skills.git feature/x a/b"),
        ("github:acme/skills/./a//b/", "https://github.com/acme/skills.git (default) a/b"),
        ("gitlab:acme/skills/pdf@main", "https://gitlab.com/acme/skills.git main pdf"),
        ("https://github.com/acme/skills", "https://github.com/acme/skills.git (default)"),
        ("https://www.GitHub.com/acme/skills.git/", "https://github.com/acme/skills.git (default)"),
        (
            "https://github.com/acme/skills/tree/main/my%20skills/pdf",
            "https://github.com/acme/skills.git main my skills/pdf",
        ),
        ("https://github.com/acme/skills/tree/v1?tab=readme", "https://github.com/acme/skills.git v1"),
        (
            "https://github.com/acme/skills/blob/main/pdf/SKILL.md",
            "https://github.com/acme/skills.git main pdf",
        ),
        (
            "https://gitlab.com/group/sub/skills/-/tree/main/pdf",
            "https://gitlab.com/group/sub/skills.git main pdf",
        ),
        ("https://git.example.com/team/skills.git", "https://git.example.com/team/skills.git (default)"),
        ("https://git.example.com/skills.git#v1:pdf", "https://git.example.com/skills.git v1 pdf"),
        ("git+https://example.com/skills#main", "https://example.com/skills main"),
        ("git+https://example.com/skills#:a/b", "https://example.com/skills (default) a/b"),
        ("git+https://example.com:8443/skills#v1:a", "https://example.com:8443/skills v1 a"),
        ("git+ssh://git@example.com/team/skills#v1", "ssh://git@example.com/team/skills v1"),
        ("ssh://example.com:22/skills", "ssh://example.com:22/skills (default)"),
        ("git@github.com:acme/skills.git#main:pdf", "ssh://git@github.com/acme/skills.git main pdf"),
        ("org-123@github.com:acme/skills.git", "org-123@github.com:acme/skills.git (default)"),
        ("me@example.com:repos/skills#v1:a/b", "me@example.com:repos/skills v1 a/b"),
        ("me@example.com:/srv/skills.git", "ssh://me@example.com/srv/skills.git (default)"),
        (
            "git@ssh.dev.azure.com:v3/acme/tools/skills",
            "ssh://git@ssh.dev.azure.com/v3/acme/tools/skills (default)",
        ),
        ("git+ssh://me%2bx@example.com/skills", "ssh://me%2bx@example.com/skills (default)"),
        // Pages of other services.
        ("https://bitbucket.org/acme/skills", "https://bitbucket.org/acme/skills.git (default)"),
        ("https://bitbucket.org/acme/skills/src/v1/a/b/", "https://bitbucket.org/acme/skills.git v1 a/b"),
        (
            "https://bitbucket.org/acme/skills/src/main/pdf/SKILL.md",
            "https://bitbucket.org/acme/skills.git main pdf",
        ),
        ("https://codeberg.org/acme/skills/", "https://codeberg.org/acme/skills.git (default)"),
        (
            "https://codeberg.org/acme/skills/src/branch/main/pdf",
            "https://codeberg.org/acme/skills.git main pdf",
        ),
        ("https://gitea.com/acme/skills/src/tag/v1", "https://gitea.com/acme/skills.git v1"),
        (
            "https://git.example.com:8443/acme/skills/src/commit/0123456/pdf/SKILL.md",
            "https://git.example.com:8443/acme/skills.git 0123456 pdf",
        ),
        (
            "https://gitlab.example.com/group/sub/skills/-/tree/main/pdf",
            "https://gitlab.example.com/group/sub/skills.git main pdf",
        ),
        (
            "https://dev.azure.com/acme/my%20tools/_git/skills",
            "https://dev.azure.com/acme/my%20tools/_git/skills (default)",
        ),
        (
            "https://acme@dev.azure.com/acme/tools/_git/skills?path=/pdf/SKILL.md&version=GBmain&_a=contents",
            "https://dev.azure.com/acme/tools/_git/skills main pdf",
        ),
        (
            "https://acme.visualstudio.com/tools/_git/skills?version=GTv1&path=%2Fmy%20pdf",
            "https://acme.visualstudio.com/tools/_git/skills v1 my pdf",
        ),
        (
            "https://tfs.example.com/Collection/tools/_git/skills",
            "https://tfs.example.com/Collection/tools/_git/skills (default)",
        ),
        // Web sites with an index.
        ("https://example.com", "web https://example.com"),
        (
            "https://example.com/.well-known/skills/index.json",
            "web https://example.com/.well-known/skills/index.json",
        ),
        ("https://gist.github.com/acme/1", "web https://gist.github.com/acme/1"),
        ("https://example.com/?repo=x.git", "web https://example.com/?repo=x.git"),
        ("http://127.0.0.1:8000/", "web http://127.0.0.1:8000/"),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn archives_and_packages() {
    for (text, expected) in [
        ("https://example.com/a/skills.tar.gz", "https://example.com/a/skills.tar.gz (default)"),
        ("https://example.com/Skills.ZIP?raw=1", "https://example.com/Skills.ZIP?raw=1 (default)"),
        ("http://127.0.0.1:8000/x.tgz", "http://127.0.0.1:8000/x.tgz (default)"),
        (
            "https://github.com/acme/skills/archive/refs/tags/v1.tar.gz",
            "https://github.com/acme/skills/archive/refs/tags/v1.tar.gz (default)",
        ),
        (
            "https://example.com/x.zip#sha256=0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
            "https://example.com/x.zip 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        ),
        ("https://github.com/acme/skills/blob/main/pdf/x.zip", "https://github.com/acme/skills.git main pdf"),
        ("https://example.zip", "web https://example.zip"),
        ("npm:@acme/skills", "npm:@acme/skills (default)"),
        ("npm:@acme/skills@^1.2", "npm:@acme/skills ^1.2"),
        ("npm:skills@1.2.3", "npm:skills 1.2.3"),
        ("npm:skills@next", "npm:skills next"),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[cfg(unix)]
#[test]
fn local_repositories() {
    assert_eq!(read("git+file:///srv/skills#v1:a"), "file:///srv/skills v1 a");
    assert!(read("git+file://skills").contains("must be absolute"));
    assert!(!read("git+file://~/skills").contains('~'));
}

#[test]
fn invalid_addresses_are_rejected() {
    for (text, expected) in [
        ("", "at most 2048 bytes"),
        ("https://example.com/x.zip#sha256=01", "64 hexadecimal digits"),
        ("https://example.com/x.zip#main", "64 hexadecimal digits"),
        ("https://me:secret@example.com/x.zip", "must not contain a user name or password"),
        ("https:///x.zip", "host is missing"),
        ("http://example.com/x.zip", "only https"),
        ("npm:", "not the name of a package"),
        ("npm:@acme", "not the name of a package"),
        ("npm:@acme/../x", "not the name of a package"),
        ("npm:a/b", "not the name of a package"),
        ("npm:--registry=x", "not the name of a package"),
        ("npm:x@^y", "not a range of versions"),
        ("npm:x@", "not a valid branch"),
        ("a b", "a space"),
        ("github:acme/skills\u{7}", "invisible character"),
        ("github:acme", "expected an owner and a repository"),
        ("github:", "expected an owner and a repository"),
        ("github:acme/", "expected an owner and a repository"),
        ("https://", "host is missing"),
        ("https:///skills", "host is missing"),
        ("github:-acme/skills", "owner and repository names"),
        ("github:acme/--upload-pack=x", "owner and repository names"),
        ("github:acme/..", "owner and repository names"),
        ("github:acme/skills@", "not a valid branch"),
        ("github:acme/skills@-x", "not a valid branch"),
        ("github:acme/skills@--upload-pack=touch", "not a valid branch"),
        ("github:acme/skills@a..b", "not a valid branch"),
        ("github:acme/skills@+main:refs/heads/x", "not a valid branch"),
        ("github:acme/skills@main^{tree}", "not a valid branch"),
        ("github:acme/skills/../x", "is not a directory"),
        ("github:acme/skills/a\\b", "is not a directory"),
        ("git+https://example.com/skills#main:../x", "is not a directory"),
        ("https://github.com/acme/skills/issues", "is not a directory"),
        ("git+https://me:secret@example.com/skills", "credential helper"),
        ("git+https://token@example.com/skills", "credential helper"),
        ("https://me:secret@example.com/", "credential helper"),
        ("git+ssh://-oProxyCommand=x/skills", "host or repository is missing"),
        ("git+ssh://git@-oProxyCommand=x/skills", "`-oProxyCommand=x` is not the name of a host"),
        ("git@-oProxyCommand=x:skills", "is not the name of a host"),
        ("git@-@2:x", "credential helper"),
        ("me@-oProxyCommand=x:skills", "is not the name of a host"),
        ("-oProxyCommand=x@example.com:skills", "host or repository is missing"),
        ("me@example.com:-x", "is not a path in a repository"),
        ("me:secret@example.com:skills", "unknown format"),
        ("git+ssh://%2doProxyCommand=x/skills", "is not the name of a host"),
        ("git+ssh://git@%2doProxyCommand=x/skills", "is not the name of a host"),
        ("git+ssh://%2doProxyCommand=x@example.com/skills", "is not the name of a user"),
        ("git+ssh://-x@example.com/skills", "host or repository is missing"),
        ("git+ssh://a?@b/skills", "must be separated by `/`"),
        ("git+ssh://[-x]:22/skills", "is not the name of a host"),
        ("git+ssh://git@/skills", "`` is not the name of a host"),
        ("git+ssh://@example.com/skills", "`` is not the name of a user"),
        ("https:///acme/skills/src/branch/main", "`` is not the name of a host"),
        ("git+ssh://me%3asecret@example.com/skills", "credential helper"),
        ("git+https://%2dx/skills", "is not the name of a host"),
        ("https://codeberg.org/acme/skills/issues", "this codeberg.org page is not a directory"),
        ("https://bitbucket.org/acme/skills/pull-requests", "this bitbucket.org page is not a directory"),
        (
            "https://gitlab.example.com/acme/skills/-/issues",
            "this gitlab.example.com page is not a directory",
        ),
        ("https://dev.azure.com/acme/tools/_build", "this dev.azure.com page is not a directory"),
        (
            "https://dev.azure.com/acme/tools/_git/skills/pullrequests",
            "this dev.azure.com page is not a directory",
        ),
        ("https://dev.azure.com/acme/tools/_git/skills?version=GB--x", "is not a valid branch"),
        ("https://dev.azure.com/acme/tools/_git/skills?path=/../x", "is not a directory"),
        ("https://me:secret@dev.azure.com/acme/tools/_git/skills", "credential helper"),
        ("https://me@git.example.com/acme/skills/src/branch/main", "credential helper"),
        ("git@example.com:", "host or repository is missing"),
        ("git+https:///skills", "host or repository is missing"),
        ("git+https://example.com", "host or repository is missing"),
        ("git+http://example.com/skills", "not encrypted"),
        ("git://example.com/skills", "not encrypted"),
        ("http://example.com/", "only https"),
        ("ext::sh -c x", "a space"),
        ("ext::sh", "unknown format"),
        ("git+ext::sh", "unknown format"),
        ("file:///srv/skills", "git+file"),
        ("--source", "unknown format"),
        ("acme/skills", "did you mean `github:acme/skills`?"),
        ("./skills", "`--skills DIR`"),
        ("~/skills", "`--skills DIR`"),
    ] {
        let read = read(text);
        assert!(read.contains(expected), "{text}: {read}");
    }
}

proptest::proptest! {
    /// No address passes an option, another protocol, or a path out of the repository to git.
    #[test]
    fn git_gets_no_option_or_parent_path(text in "(github:|git\\+https://|git\\+ssh://|git@|https://github.com/|)[-a.:/@#~^\\\\%20git+ ]{0,30}") {
        if let Ok(address) = Address::parse(&text) && let Place::Git(place) = address.place() {
            if !place.transport.is_git() {
                return Ok(());
            }
            let known = ["https://", "ssh://", "file:///"];
            let is_known = known.iter().any(|prefix| place.url.starts_with(prefix));
            proptest::prop_assert!(is_known || place.transport == Transport::Ssh && place.url.contains('@'), "{}", place.url);
            proptest::prop_assert!(!place.url.starts_with('-'), "{}", place.url);
            proptest::prop_assert!(!place.reference.iter().any(|name| name.starts_with('-') || name.contains("..")));
            proptest::prop_assert!(place.path.split('/').all(|part| part != ".."));
            let host = authority(place.url.split_once("://").map_or(place.url.as_str(), |(_, rest)| rest));
            proptest::prop_assert!(!host.starts_with('-') && !host.contains("@-"), "{}", place.url);
        }
    }
}

#[test]
fn ranges_are_replaced_at_their_place() {
    for (text, range, expected) in [
        ("github:acme/skills@^1", "^2", Some("github:acme/skills@^2")),
        ("github:latest/latest/latest@latest", "^2", Some("github:latest/latest/latest@^2")),
        (
            "git+https://latest.com/latest.git#latest:latest",
            "^2",
            Some("git+https://latest.com/latest.git#^2:latest"),
        ),
        ("npm:latest@latest", "^2", Some("npm:latest@^2")),
        ("github:acme/skills@main", "^2", None),
        ("github:acme/skills", "^2", None),
    ] {
        let address = Address::parse(text).unwrap();
        let replaced = address.with_range(range);
        assert_eq!(replaced.as_ref().map(Address::as_str), expected, "{text}");
    }
}
