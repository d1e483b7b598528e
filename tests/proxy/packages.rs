//! Sources that are npm packages: their versions, and the registry that they come from.

#[cfg(unix)]
use std::process::Command;
use std::{collections::BTreeMap, fs};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{
    archives::{archive, description, lock},
    file_server::Server,
    repositories::{Home, Repository},
};

crate::trials!(
    a_package_is_updated_within_its_range,
    the_registry_of_a_package_must_be_known,
    a_package_stays_in_its_registry,
    #[cfg(unix)]
    npm_passes_no_settings_of_a_project,
    a_project_chooses_no_registry_for_other_sources,
);

/// A registry with versions of the package `@acme/skills`.
pub(crate) struct Registry {
    pub(crate) server: Server,
    versions: BTreeMap<String, Value>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self { server: Server::start(), versions: BTreeMap::new() }
    }

    /// Publishes the files of a repository. The package may be on another server.
    fn publish(&mut self, version: &str, repository: &Repository, integrity: Option<&str>) {
        let url = self.server.url("");
        self.publish_at(&url, version, repository, integrity);
    }

    /// Publishes a version whose package has an encrypted URL.
    pub(crate) fn publish_encrypted(&mut self, version: &str, repository: &Repository) {
        let url = self.server.encrypted_url("");
        self.publish_at(&url, version, repository, None);
    }

    fn publish_at(&mut self, server: &str, version: &str, repository: &Repository, integrity: Option<&str>) {
        let content = archive(repository, "tar.gz", "package/");
        let path = format!("/all/@acme/skills/-/skills-{version}.tgz");
        let digest = ring::digest::digest(&ring::digest::SHA512, &content);
        let actual = format!("sha512-{}", BASE64_STANDARD.encode(digest));
        let url = format!("{server}{path}");
        self.server.serve(&path, content);
        let dist = json!({ "integrity": integrity.unwrap_or(&actual), "tarball": url });
        self.versions.insert(version.to_owned(), json!({ "dist": dist }));
        let list = json!({ "dist-tags": { "latest": version }, "versions": self.versions });
        self.server.serve("/all/@acme%2fskills", list.to_string());
    }
}

fn a_package_is_updated_within_its_range() {
    let mut registry = Registry::new();
    let repository = Repository::review();
    let home = Home::new();
    let url = registry.server.url("/all/");
    let host = url.strip_prefix("http:").expect("a URL");
    let settings = format!("@acme:registry={url}\n{host}:_authToken=very-secret\n");
    home.write(&home.path("home/.npmrc"), &settings);
    registry.server.require("Bearer very-secret");
    registry.publish("1.2.0", &repository, None);
    let address = "npm:@acme/skills@^1";
    let output = home.run(&["add", address, "--yes", "--log", "trace"]);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("# Review one"), "{text}");
    assert!(!text.contains("very-secret"), "{text}");
    let pinned = lock(&home)["sources"][address].clone();
    assert_eq!(pinned["tag"], "1.2.0", "{pinned}");
    assert!(!lock(&home).to_string().contains("very-secret"));
    assert_eq!(description(&home), "Reviews code.");
    registry.server.seen();
    assert!(home.printed(&["update"]).contains("no changes"));
    assert_eq!(registry.server.answers(), [("/all/@acme%2fskills".to_owned(), 304)]);
    repository.skill("review", "Reviews more.", "# Review two");
    repository.commit();
    registry.publish("1.3.0", &repository, None);
    let shown = home.printed(&["update", "--yes"]);
    assert!(shown.contains("1.3.0") && shown.contains("+# Review two"), "{shown}");
    // A version beyond the range.
    repository.skill("review", "Reviews most.", "# Review three");
    repository.commit();
    registry.publish("2.0.0", &repository, None);
    assert!(home.printed(&["update"]).contains("no changes"));
    let shown = home.printed(&["update", "--yes", "--latest"]);
    assert!(shown.contains("2.0.0") && shown.contains("+# Review three"), "{shown}");
    assert!(fs::read_to_string(home.config()).expect("a file").contains("npm:@acme/skills@^2.0"));
    // The approved version is found again by its checksum, without the cache.
    registry.publish("2.1.0", &repository, None);
    fs::remove_dir_all(home.path("cache")).expect("the path exists");
    assert_eq!(description(&home), "Reviews most.");
    // The user has to know if the file of a project chooses the registry.
    let config = home.path("project/skills.yaml");
    home.write(&config, &json!({ "sources": [address] }).to_string());
    home.write(&home.path("project/.npmrc"), &format!("@acme:registry={url}\n"));
    let update = ["update", "--config", config.to_str().expect("text"), "--yes"];
    assert!(!home.printed(&update).contains("settings of the project"));
    home.write(&home.path("home/.npmrc"), &format!("{host}:_authToken=very-secret\n"));
    fs::remove_file(config.with_file_name("skills.lock")).expect("a file");
    let shown = home.printed(&update);
    assert!(shown.contains("settings of the project, such as its `.npmrc`, name the registry"), "{shown}");
    // Headers can be secrets, which are meant for the user's own registry.
    let headers = json!([{ "source": address, "headers": { "X-Token": "very-secret" } }]);
    home.write(&config, &json!({ "sources": headers }).to_string());
    registry.server.seen();
    let errors = home.fails(&update, 1);
    assert!(errors.contains("cannot send `headers` to"), "{errors}");
    assert_eq!(registry.server.seen().len(), 0);
    home.write(&home.path("home/.npmrc"), &settings);
    // The number of a version is displayed, and becomes the tag in the lock file.
    registry.publish("3.0.0\n\nApproved", &repository, None);
    let errors = home.fails(&["update", "--latest"], 1);
    assert!(errors.contains("is not the number of a version"), "{errors}");
    registry.versions.pop_last();
    registry.publish("2.2.0", &repository, Some("sha512-AAAA"));
    let errors = home.fails(&["update"], 1);
    assert!(errors.contains("another checksum than sha512-AAAA"), "{errors}");
    assert_eq!(description(&home), "Reviews most.");
}

/// A package is only taken from the registry that the settings name. If it is not known, the headers are not sent either.
fn the_registry_of_a_package_must_be_known() {
    let (mut private, mut other) = (Registry::new(), Registry::new());
    let repository = Repository::review();
    private.publish("1.0.0", &repository, None);
    other.publish("2.0.0", &repository, None);
    let of = |key: &str, registry: &Registry| format!("{key}={}\n", registry.server.url("/all/"));
    let private_settings = of("@acme:registry", &private);
    for (user, machine, expected) in [
        ("@acme:registry=${NO_SUCH_VARIABLE}\n".to_owned(), String::new(), "variable that is not set"),
        (String::new(), private_settings.clone(), ""),
        (format!("\u{feff}{private_settings}"), String::new(), ""),
        (format!("{private_settings}{}", "#".repeat(256 * 1024)), String::new(), "cannot read"),
    ] {
        let home = Home::new();
        home.write(&home.path("home/.npmrc"), &format!("{user}\n{}", of("registry", &other)));
        home.write(&home.path("npmrc"), &machine);
        let source = json!([{ "source": "npm:@acme/skills", "headers": { "X-Token": "very-secret" } }]);
        home.write(&home.config(), &json!({ "sources": source }).to_string());
        if expected.is_empty() {
            assert!(home.printed(&["update", "--yes"]).contains("1.0.0"), "{user} {machine}");
        } else {
            let errors = home.fails(&["update", "--yes"], 1);
            assert!(errors.contains(expected), "{user} {machine}: {errors}");
        }
        assert_eq!(other.server.seen().len(), 0, "{user} {machine}");
    }
    // Without any setting, the public registry would receive the headers.
    let home = Home::new();
    let source = json!([{ "source": "npm:@acme/skills", "headers": { "X-Token": "very-secret" } }]);
    home.write(&home.config(), &json!({ "sources": source }).to_string());
    let errors = home.fails(&["update", "--yes"], 1);
    assert!(errors.contains("no setting of npm names the registry"), "{errors}");
}

/// `npx` runs a program with the settings of the project in its environment.
#[cfg(unix)]
fn npm_passes_no_settings_of_a_project() {
    let (mut good, mut evil) = (Registry::new(), Registry::new());
    let repository = Repository::review();
    good.publish("1.0.0", &repository, None);
    evil.publish("2.0.0", &repository, None);
    let home = Home::new();
    let of = |registry: &Registry| registry.server.url("/all/");
    home.write(&home.path("home/.npmrc"), &format!("registry={}\n", of(&good)));
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    command.args(["add", "npm:@acme/skills", "--yes"]).envs(home.variables());
    command.env("npm_execpath", "/usr/lib/npm/cli.js").env("npm_config_registry", of(&evil));
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("settings of the project"), "{said}");
    // They are those of a project, so the user's secrets are not sent there.
    home.write(
        &home.path("secret.yaml"),
        &json!({ "sources": [
        { "source": "npm:@acme/skills", "headers": { "X-Token": "very-secret" } }] })
        .to_string(),
    );
    evil.server.seen();
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    command.args(["update", "--yes", "--config"]).arg(home.path("secret.yaml")).envs(home.variables());
    command.env("npm_execpath", "/usr/lib/npm/cli.js").env("npm_config_registry", of(&evil));
    let output = command.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot send `headers`"), "{said}");
    assert_eq!(evil.server.seen().len(), 0);
}

/// The settings can differ between a terminal and an editor, so a new version must come from the registry of the approved one.
fn a_package_stays_in_its_registry() {
    let (mut approved, mut other) = (Registry::new(), Registry::new());
    let [first_version, repository] = [(); 2].map(|()| Repository::review());
    let home = Home::new();
    let of = |registry: &Registry| format!("@acme:registry={}\n", registry.server.url("/all/"));
    approved.publish("1.0.0", &first_version, None);
    home.write(&home.path("home/.npmrc"), &of(&approved));
    let address = "npm:@acme/skills@^1";
    home.printed(&["add", address, "--yes"]);
    let host = approved.server.url("");
    let recorded = |home: &Home| lock(home)["sources"][address]["registry"].clone();
    let first = recorded(&home);
    // The path of a URL can contain a secret.
    assert!(first.as_str().is_some_and(|text| text.starts_with(&format!("{host}#"))), "{first}");
    assert!(!first.to_string().contains("all"), "{first}");
    repository.skill("review", "Evil.", "# Evil");
    repository.commit();
    other.publish("1.0.1", &repository, None);
    other.publish("2.0.0", &repository, None);
    for (user, project) in [(of(&other), String::new()), (String::new(), of(&other))] {
        home.write(&home.path("home/.npmrc"), &user);
        home.write(&home.config().with_file_name(".npmrc"), &project);
        for (arguments, code) in
            [(&["update", "--yes"][..], 1), (&["update", "--yes", "--latest"], 1), (&["outdated"], 1)]
        {
            let errors = home.fails(arguments, code);
            assert!(errors.contains(&format!("comes from {host}#")), "{arguments:?}: {errors}");
        }
        home.write(&home.config().with_file_name(".npmrc"), "");
    }
    assert_eq!(other.server.seen().len(), 0);
    // The approved version has a checksum, so it can come from any registry, but another one must not receive the headers.
    fs::remove_dir_all(home.path("cache")).expect("the path exists");
    home.write(&home.path("home/.npmrc"), &of(&other));
    let list = home.json(&["list", "--json"]);
    assert!(list.to_string().contains(&format!("comes from {host}#")), "{list}");
    other.versions.clear();
    other.publish("1.0.0", &first_version, None);
    assert_eq!(description(&home), "Reviews code.");
    fs::remove_dir_all(home.path("cache")).expect("the path exists");
    other.server.seen();
    let source = format!("sources:\n- source: '{address}'\n  headers:\n    X-Token: very-secret\n");
    home.write(&home.config(), &source);
    let list = home.json(&["list", "--json"]);
    assert!(list.to_string().contains(&format!("comes from {host}#")), "{list}");
    assert_eq!(other.server.seen().len(), 0);
    home.write(&home.path("home/.npmrc"), &of(&other));
    home.printed(&["remove", address]);
    home.printed(&["add", address, "--yes"]);
    assert_ne!(recorded(&home), first);
}

/// The registry in the `.npmrc` of a project is for the sources of the project, and not for the others of the user.
fn a_project_chooses_no_registry_for_other_sources() {
    let (mut good, mut evil) = (Registry::new(), Registry::new());
    let repository = Repository::review();
    let home = Home::new();
    let of = |registry: &Registry| format!("@acme:registry={}\n", registry.server.url("/all/"));
    good.publish("1.0.0", &repository, None);
    home.write(&home.path("home/.npmrc"), &of(&good));
    let address = "npm:@acme/skills@^1";
    assert!(home.printed(&["list", "--source", address]).contains("Reviews code."));
    // The project has another source. Its registry has a newer version of the user's package.
    let other = Repository::review();
    let config = home.path("project/skills.yaml");
    home.write(&config, &json!({ "sources": [other.source("")] }).to_string());
    repository.skill("review", "Evil.", "# Evil");
    repository.commit();
    evil.publish("1.0.1", &repository, None);
    home.write(&home.path("home/.npmrc"), "");
    home.write(&home.path("project/.npmrc"), &of(&evil));
    for command in ["update", "outdated"] {
        let arguments = [command, "--config", config.to_str().expect("text")];
        home.run(&[&arguments[..], if command == "update" { &["--yes"] } else { &[] }].concat());
        assert_eq!(evil.server.seen().len(), 0, "{command}");
    }
    assert!(!home.printed(&["list", "--source", address]).contains("Evil."));
}
