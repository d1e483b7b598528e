//! Archives, npm packages and their registries.

use super::*;

#[test]
fn archives_and_packages() {
    allows(
        "https://files.acme.example/*",
        &[
            "https://files.acme.example/a/skills.tar.gz",
            "https://FILES.acme.example:443/skills.zip",
            &format!("https://files.acme.example/skills.zip#sha256={}", "a".repeat(64)),
        ],
    );
    refuses(
        "https://files.acme.example/*",
        &[
            "https://files.acme.example.evil.example/skills.zip",
            "https://files.acme.example/../skills.zip",
            "https://files.acme.example/skills.zip?x",
            "https://files.acme.example/%2e%2e/skills.zip",
            "git+https://files.acme.example/skills.zip",
            "npm:files.acme.example",
        ],
    );
    refuses("github:acme/*", &["https://github.com/acme/x/archive/main.zip", "npm:@acme/x"]);
    allows("npm:@acme/*", &["npm:@acme/x", "npm:@acme/x@^1", "npm:@acme/x@next"]);
    refuses("npm:@acme/*", &["npm:@acme-evil/x", "npm:acme", "npm:@ACME/x", "github:acme/x"]);
    allows("npm:@acme/x@^1", &["npm:@acme/x@^1"]);
    refuses("npm:@acme/x@^1", &["npm:@acme/x", "npm:@acme/x@^2"]);
}

/// The settings of the user must not lead to another registry.
#[test]
fn registries() {
    let policy = policy("sources: {allow: ['npm:@acme/*', 'https://npm.acme.example/*']}");
    for (url, expected) in [
        ("https://registry.npmjs.org", true),
        ("https://npm.acme.example", true),
        ("https://npm.acme.example/team", true),
        ("https://npm.evil.example", false),
        ("https://registry.npmjs.org.evil.example", false),
        ("http://127.0.0.1:4873", false),
    ] {
        assert_eq!(policy.registry(url).is_ok(), expected, "{url}");
    }
    let error = policy.registry("https://u:SECRET@npm.evil.example:8/SECRET?SECRET").unwrap_err().to_string();
    assert!(error.starts_with("npm registry `npm.evil.example:8` is refused by policy"), "{error}");
    assert!(!error.contains("SECRET"), "{error}");
}
