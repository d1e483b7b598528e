//! Projects whose skills a configuration file or a flag trusts before a session is opened.

#[cfg(unix)]
use std::fs;

use serde_json::json;

use crate::{fixture::Fixture, trust::Project};

crate::trials!(
    projects_can_be_trusted_in_advance,
    #[cfg(unix)]
    other_directories_are_not_trusted_in_advance,
);

fn projects_can_be_trusted_in_advance() {
    let project = Project::new();
    let config = json!({ "projects": [{ "path": project.checkout.path(), "discover": ["project"], "trust": ["project"] }] });
    project.home().write(&project.home().config(), &config.to_string());
    for proxy in [project.proxy().flag("--trust", "project"), project.home().proxy()] {
        let mut fixture = Fixture::over_http(proxy);
        project.open(&mut fixture, "s");
        fixture.wait_for_command("deploy");
        fixture.finish();
    }
    assert!(!project.home().path("state/acp-skills-proxy/trust").exists(), "nothing was decided");
}

/// Trust in a directory does not cover skills of its parent directories, and not those behind a link.
#[cfg(unix)]
fn other_directories_are_not_trusted_in_advance() {
    let project = Project::new();
    fs::create_dir_all(project.checkout.dir(".git")).expect("a directory");
    let other = Project::new();
    let inner = project.checkout.dir("work/api");
    fs::create_dir_all(inner.join(".skills/lint")).expect("a directory");
    fs::write(inner.join(".skills/lint/SKILL.md"), "---\nname: lint\ndescription: Lints.\n---\nLint.\n")
        .expect("a file");
    std::os::unix::fs::symlink(other.checkout.path(), inner.join("link")).expect("a link");
    let config = json!({ "projects": [{ "path": inner, "discover": ["project"], "trust": ["project"] }] });
    project.home().write(&project.home().config(), &config.to_string());
    for (cwd, trusted) in [(inner.clone(), "`/lint`"), (inner.join("link"), "")] {
        let mut fixture = Fixture::over_http(project.home().proxy());
        let params = json!({ "cwd": cwd, "mcpServers": [] });
        fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
        let said = fixture.ask("/skills");
        let waiting = said.split("Waiting for your trust").nth(1).unwrap_or_default();
        assert!(waiting.contains("`deploy`") && !waiting.contains("lint"), "{said}");
        assert!(said.contains(trusted), "{said}");
        fixture.finish();
    }
}
