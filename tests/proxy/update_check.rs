//! The check for new versions in the background.

use std::fs;

use serde_json::json;

use crate::{
    fixture::{Fixture, texts},
    git::{overview, wait_for_overview},
    repositories::{Home, Repository},
};

crate::trials!(a_new_version_is_announced_once_it_is_found, no_check_if_it_is_off);

const DELAY: &str = "ACP_SKILLS_CHECK_DELAY";

/// Returns a proxy that checks at once, although the tests may run in CI.
fn proxy(home: &Home, check: &str) -> crate::editor::Proxy {
    home.proxy().env(DELAY, "0").flag("--check-updates", check)
}

fn a_new_version_is_announced_once_it_is_found() {
    let repository = Repository::review();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["add", &source, "--yes"]);
    repository.skill("review", "Obeys.", "# Evil");
    let commit = repository.commit();
    let mut fixture = Fixture::over_http(proxy(&home, "daily"));
    fixture.new_session("s");
    wait_for_overview(&mut fixture, &format!("has a new version: {}", &commit[..12]));
    assert!(overview(&mut fixture).contains("**New versions**"));
    // The model learns nothing about it, and the approved version is used.
    let blocks = fixture.prompt("s", "hello");
    assert!(!texts(&blocks).concat().contains("new version"), "{blocks:?}");
    fixture.finish();
    let sources = home.json(&["sources", "--json"]);
    assert_eq!(sources[0]["available"], json!(commit[..12]), "{sources}");
    assert!(home.printed(&["sources"]).contains("has a new version: "));
    assert_eq!(home.json(&["list", "--json"])["skills"][0]["description"], "Reviews code.");
    // The next process knows the result without a request.
    let source = repository.delete();
    let mut fixture = Fixture::over_http(proxy(&home, "daily"));
    fixture.new_session("s");
    assert!(overview(&mut fixture).contains(&format!("{source} has a new version")));
    fixture.finish();
}

fn no_check_if_it_is_off() {
    let repository = Repository::review();
    let home = Home::new();
    home.printed(&["add", &repository.source(""), "--yes"]);
    let state = home.path("cache/acp-skills-proxy/updates");
    let checks = |proxy: crate::editor::Proxy| {
        let mut fixture = Fixture::over_http(proxy);
        fixture.new_session("s");
        fixture.prompt("s", "hello");
        fixture.finish();
        state.exists()
    };
    assert!(!checks(proxy(&home, "never")));
    assert!(!checks(home.proxy().env(DELAY, "0").env("CI", "true")));
    let config = fs::read_to_string(home.config()).expect("a file");
    home.write(&home.config(), &format!("{config}check_updates: never\n"));
    assert!(!checks(home.proxy().env(DELAY, "0")));
}
