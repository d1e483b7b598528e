//! Sources on servers with a certificate of a private authority.

use std::{fs, path::Path};

use crate::{
    archives::archive,
    file_server::{AUTHORITY, Server},
    packages::Registry,
    repositories::{Home, Repository},
};

crate::trials!(archives_and_sites_with_a_private_authority, registries_with_a_private_authority);

/// A variable with the path of a file or directory in the user's home, and its content. An empty content is a missing file.
type Variable<'a> = (&'a str, &'a str, &'a [u8]);

/// Runs `add SOURCE --yes` with a variable. Returns the exit code and all output.
fn add(home: &Home, source: &str, (name, path, content): Variable<'_>) -> (Option<i32>, String) {
    let path = home.path(path);
    if !content.is_empty() {
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, content).expect("a file");
    }
    let is_directory = name == "SSL_CERT_DIR";
    let value = if is_directory { path.parent().map_or(&*path, Path::new) } else { &path };
    let output = home.run_with(&["add", source, "--yes"], &[(name, value.as_os_str())]);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text)
}

fn archives_and_sites_with_a_private_authority() {
    let server = Server::start();
    let repository = Repository::review();
    server.serve("/skills.zip", archive(&repository, "zip", ""));
    server.serve("/index.json", r#"{"skills": [{"name": "web", "description": "d", "url": "/web.md"}]}"#);
    // The text of the skill of the site is missing, so it needs another approval. This is asked after the index was fetched.
    for (path, fetched) in
        [("/skills.zip", (0, "and approved in")), ("/index.json", (1, "Nothing was added"))]
    {
        let url = server.encrypted_url(path);
        for (variable, code, expected) in [
            (("OTHER", "x", b"".as_slice()), 2, "`SSL_CERT_FILE`"),
            (("SSL_CERT_FILE", "ca.pem", AUTHORITY), fetched.0, fetched.1),
            (("SSL_CERT_DIR", "certs/ca.pem", AUTHORITY), fetched.0, fetched.1),
            (("SSL_CERT_FILE", "missing.pem", b""), 2, "missing.pem, which `SSL_CERT_FILE` names"),
            (("SSL_CERT_FILE", "text", b"text"), 2, "text, which `SSL_CERT_FILE` names: no certificate"),
            (("SSL_CERT_DIR", "empty/x", b"x"), 2, "empty, which `SSL_CERT_DIR` names: no certificate"),
        ] {
            let (found, text) = add(&Home::new(), &url, variable);
            assert!(found == Some(code) && text.contains(expected), "{path} {variable:?}: {found:?} {text}");
        }
    }
}

fn registries_with_a_private_authority() {
    let mut registry = Registry::new();
    let repository = Repository::review();
    registry.publish_encrypted("1.2.0", &repository);
    let url = registry.server.encrypted_url("/all/");
    let ca = String::from_utf8_lossy(AUTHORITY).trim().replace('\n', "\\n");
    for (settings, variable, code, expected) in [
        ("", ("OTHER", "x", b"".as_slice()), 2, "`cafile` in ~/.npmrc"),
        ("cafile=~/ca.pem", ("OTHER", "home/ca.pem", AUTHORITY), 0, ""),
        (&format!("ca=\"{ca}\""), ("OTHER", "x", b""), 0, ""),
        ("", ("NODE_EXTRA_CA_CERTS", "ca.pem", AUTHORITY), 0, ""),
        ("", ("NPM_CONFIG_CAFILE", "ca.pem", AUTHORITY), 0, ""),
        ("", ("SSL_CERT_FILE", "ca.pem", AUTHORITY), 0, ""),
        (
            "",
            ("NODE_EXTRA_CA_CERTS", "missing.pem", b""),
            2,
            "missing.pem, which `NODE_EXTRA_CA_CERTS` names",
        ),
        ("cafile=~/missing.pem", ("OTHER", "x", b""), 2, "missing.pem, which `cafile` names"),
    ] {
        let home = Home::new();
        home.write(&home.path("home/.npmrc"), &format!("@acme:registry={url}\n{settings}\n"));
        let (found, text) = add(&home, "npm:@acme/skills@^1", variable);
        assert!(found == Some(code) && text.contains(expected), "{settings} {variable:?}: {found:?} {text}");
    }
}
