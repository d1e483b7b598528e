use super::*;

#[test]
fn registries_and_credentials_are_found() {
    let mut settings = Settings::default();
    settings.add(
        "; comment\nregistry=https://npm.example/all/\n@acme:registry = \"https://npm.example/team/acme/\"\n\
         //npm.example/team/:_authToken=t1\n//other.example/:username=ann\n//other.example/:_password=cHc=\n\
         //basic.example:8080/:_auth=YTpi\n//unset.example/:_authToken=${ACP_SKILLS_NO_SUCH_VARIABLE}\n",
        true,
    );
    for (package, expected) in
        [("left", "https://npm.example/all"), ("@acme/skills", "https://npm.example/team/acme")]
    {
        assert_eq!(settings.registry(package).unwrap().url, expected);
    }
    for (registry, expected) in [
        ("https://npm.example/team/acme", Some("Bearer t1")),
        ("https://npm.example/team", Some("Bearer t1")),
        ("https://npm.example/all", None),
        ("https://npm.example/team/../all", None),
        ("https://npm.example/team/.%2E/all", None),
        ("https://npm.example/team/..%2Fall", None),
        ("https://npm.example/team/..%5call", None),
        ("https://npm.example", None),
        ("https://npm.example/teams", None),
        ("https://other.example", Some("Basic YW5uOnB3")),
        ("https://basic.example:8080/x", Some("Basic YTpi")),
        ("https://basic.example/x", None),
        ("https://unset.example", None),
        ("https://evil-npm.example/team", None),
    ] {
        let found = settings.authorization(registry);
        assert_eq!(found.as_ref().map(|(_, value)| value.as_str()), expected, "{registry}");
    }
    assert_eq!(Settings::default().registry("x").unwrap().url, NPM_REGISTRY);
}

/// The file of a project must not use the user's secrets.
#[test]
fn a_project_can_only_name_registries() {
    let mut settings = Settings::default();
    settings.add("//npm.example/:_authToken=mine\n", true);
    settings.add(
        "@acme:registry=https://npm.example\n@b:registry=https://evil.example/${HOME}\n\
         //evil.example/:_authToken=${HOME}\n//npm.example/:_authToken=theirs\nuserconfig=/x\n",
        false,
    );
    let of_project = |url: &str, is_named| Registry { url: url.to_owned(), is_of_project: true, is_named };
    assert_eq!(settings.registry("@acme/x").unwrap(), of_project("https://npm.example", false));
    assert!(settings.registry("@b/x").is_err());
    settings.add("@b:registry=https://b.example/\n", true);
    for (theirs, is_of_project) in [("https://b.example/", false), ("https://evil.example", true)] {
        settings.add(&format!("@b:registry={theirs}\n"), false);
        assert_eq!(settings.registry("@b/x").unwrap().is_of_project, is_of_project, "{theirs}");
    }
    // The public registry is a choice as well, if the user's packages are in another one.
    settings.add(&format!("@b:registry={NPM_REGISTRY}/\n"), false);
    assert_eq!(settings.registry("@b/x").unwrap(), of_project(NPM_REGISTRY, true));
    // The project only names the registry that would be used anyway.
    settings.add(&format!("@c:registry={NPM_REGISTRY}\n"), false);
    let expected = Registry { url: NPM_REGISTRY.to_owned(), is_of_project: false, is_named: false };
    assert_eq!(settings.registry("@c/x").unwrap(), expected);
    let token = settings.authorization("https://npm.example").unwrap().1;
    assert_eq!(token, "Bearer mine");
    assert_eq!(settings.authorization("https://evil.example"), None);
}

/// npm takes no package from the public registry either if these settings name a private one.
#[test]
fn a_registry_that_is_not_known_is_an_error() {
    const UNSET: &str = "${ACP_SKILLS_NO_SUCH_VARIABLE}";
    for (user, project, expected) in [
        (format!("@acme:registry={UNSET}"), String::new(), None),
        (format!("@acme:registry=https://npm.example/{UNSET}"), String::new(), None),
        (format!("registry={UNSET}"), String::new(), None),
        (String::new(), format!("@acme:registry={UNSET}"), None),
        ("@acme:registry=https://npm.example".to_owned(), format!("@acme:registry={UNSET}"), None),
        // The value of the project counts, and it is not the choice of the user.
        (
            format!("@acme:registry={UNSET}"),
            format!("@acme:registry={NPM_REGISTRY}"),
            Some((NPM_REGISTRY, true)),
        ),
        (format!("@other:registry={UNSET}"), String::new(), Some((NPM_REGISTRY, false))),
        ("@acme:registry=".to_owned(), String::new(), Some((NPM_REGISTRY, false))),
        (
            "\"@acme:registry\"=https://npm.example".to_owned(),
            String::new(),
            Some(("https://npm.example", false)),
        ),
    ] {
        let mut settings = Settings::default();
        settings.add(&user, true);
        settings.add(&project, false);
        let found = settings.registry("@acme/x").ok();
        let found = found.map(|Registry { url, is_of_project, .. }| (url, is_of_project));
        let expected = expected.map(|(url, is_of_project)| (url.to_owned(), is_of_project));
        assert_eq!(found, expected, "{user} {project}");
    }
}

#[test]
fn files_are_read_like_npm_reads_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("npmrc");
    let registry = "@acme:registry=https://npm.example\n";
    let long = format!("{registry}#{}", "x".repeat(usize::try_from(MAX_BYTES).unwrap()));
    for (content, expected) in [
        (format!("\u{feff}{registry}").into_bytes(), Some("https://npm.example")),
        ([b"# M\xfcller\n", registry.as_bytes()].concat(), Some("https://npm.example")),
        (long.into_bytes(), None),
    ] {
        std::fs::write(&file, content).unwrap();
        let mut settings = Settings::default();
        let read = settings.add_file(&file, true);
        assert_eq!(read.ok().map(|()| settings.registry("@acme/x").unwrap().url).as_deref(), expected);
    }
    let mut settings = Settings::default();
    assert!(settings.add_file(directory.path(), true).is_err());
    assert!(settings.add_file(&directory.path().join("missing"), true).is_ok());
}

#[test]
fn certificates_are_text_lists_or_files() {
    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\\nMAA=\\n-----END CERTIFICATE-----";
    for (text, is_trusted, expected) in [
        ("ca=null\ncafile=null", true, "usual"),
        (&format!("ca=\"{CERTIFICATE}\""), true, "own"),
        (&format!("ca[]=\"{CERTIFICATE}\"\nca[]={CERTIFICATE}"), true, "own"),
        ("ca=x", true, "`ca` in the settings of npm contains no certificate"),
        ("cafile=/missing.pem", true, "cannot use the certificates in /missing.pem, which `cafile` names"),
        ("cafile=${ACP_SKILLS_NO_SUCH_VARIABLE}", true, "`cafile` in the settings of npm contains"),
        ("cafile=/missing.pem", false, "usual"),
        (&format!("ca={CERTIFICATE}"), false, "usual"),
    ] {
        let mut settings = Settings::default();
        settings.add(text, is_trusted);
        let found = settings.trust();
        let found = match &found {
            Ok(Trust { only: Some(_), more: None }) => "own".to_owned(),
            Ok(_) => "usual".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn variables_have_any_case() {
    for (name, expected) in [
        ("NPM_CONFIG_REGISTRY", Some("registry")),
        ("npm_config_registry", Some("registry")),
        ("npm_config_@acme:registry", Some("@acme:registry")),
        ("NPM_CONFIG_@MY_ORG:REGISTRY", Some("@my-org:registry")),
        ("npm_config_//npm.example/:_authToken", Some("//npm.example/:_authToken")),
        ("NPM_CONFIG", None),
        ("PATH", None),
    ] {
        assert_eq!(key_of(name).as_deref(), expected, "{name}");
    }
}
