//! `untrust` and `/skills untrust` end all trust in a name, also for directories that a session doesn't have at the moment, and for skills
//! that a configuration trusts.

use std::fs;
#[cfg(unix)]
use std::path::Path;

use serde_json::json;

use crate::{editor::Proxy, fixture::Fixture, roots::Roots, trust::Project};
#[cfg(unix)]
use crate::{repositories::Home, skills::Skills};

crate::trials!(
    untrust_ends_all_trust_in_a_name,
    a_skill_that_a_configuration_trusts_can_be_declined,
    untrust_reaches_all_projects_of_a_session,
    a_skill_that_stays_in_use_is_named,
    #[cfg(unix)]
    a_link_that_leads_to_another_project,
);

/// Sends a command in a new session.
fn ask(project: &Project, proxy: Proxy, command: &str) -> String {
    let mut fixture = Fixture::over_http(proxy.arg("--no-watch"));
    project.open(&mut fixture, "s");
    let said = fixture.ask(command);
    fixture.finish();
    said
}

/// The second directory is not part of the session when the trust is taken back, and returns afterwards.
fn untrust_ends_all_trust_in_a_name() {
    const SECOND: &str = ".claude/skills/second";
    const TEXT: &str = "---\nname: deploy\ndescription: d\n---\n# Second\n";
    for state in ["shadowed", "missing", "invalid", "renamed", "alone and missing"] {
        for in_session in [true, false] {
            let project = Project::new();
            let home = project.home();
            let dir = project.checkout.path().to_str().expect("text").to_owned();
            let trust = || home.printed(&["trust", "--dir", &dir, "--yes"]);
            let aside = project.checkout.path().join("aside");
            let (first, second) = (project.checkout.dir(".skills/deploy"), project.checkout.dir(SECOND));
            let file = project.checkout.write(&format!("{SECOND}/SKILL.md"), TEXT);
            fs::rename(&first, &aside).expect("the path exists");
            trust();
            if state != "alone and missing" {
                fs::rename(&aside, &first).expect("the path exists");
                trust();
            }
            match state {
                "missing" | "alone and missing" => {
                    fs::rename(&second, project.checkout.path().join("away")).expect("the path exists");
                }
                "invalid" => fs::write(&file, "x").expect("a file"),
                "renamed" => fs::write(&file, TEXT.replace("deploy", "other")).expect("a file"),
                _ => {}
            }
            if in_session {
                let said = ask(&project, project.proxy(), "/skills untrust deploy");
                let expected = "`deploy` is no longer trusted. The agent keeps what it has already read.";
                assert_eq!(said, expected, "{state}");
            } else {
                let text = home.printed(&["untrust", "deploy", "--dir", &dir]);
                assert_eq!(text, "No longer trusted: `deploy`.\n", "{state}");
            }
            match state {
                "missing" | "alone and missing" => {
                    fs::rename(project.checkout.path().join("away"), &second).expect("the path exists");
                }
                _ => fs::write(&file, TEXT).expect("a file"),
            }
            let _ = fs::rename(&first, &aside);
            let said = ask(&project, project.proxy(), "/skills");
            assert!(said.contains("Waiting for your trust**\n\n- `deploy`"), "{state}: {said}");
            let errors = home.fails(&["untrust", "deploy", "--dir", &dir], 2);
            assert!(errors.contains("no skill `deploy` of the project is trusted"), "{state}: {errors}");
        }
    }
}

fn a_skill_that_a_configuration_trusts_can_be_declined() {
    for in_session in [true, false] {
        let project = Project::new();
        let home = project.home();
        let dir = project.checkout.path().to_str().expect("text").to_owned();
        let config = json!({ "projects": [{ "path": dir, "discover": ["project"], "trust": ["project"] }] });
        home.write(&home.config(), &config.to_string());
        let ask = |command: &str| ask(&project, home.proxy(), command);
        assert!(!ask("/skills").contains("Waiting"));
        if in_session {
            assert!(ask("/skills untrust deploy").starts_with("`deploy` is no longer trusted."));
        } else {
            let text = home.printed(&["untrust", "deploy", "--dir", &dir]);
            assert_eq!(text, "No longer trusted: `deploy`.\n");
        }
        // It stays declined after a change, and in another directory.
        for (path, aside) in [
            (None, None),
            (Some(".skills/deploy"), None),
            (Some(".agents/skills/other"), Some(".skills/deploy")),
        ] {
            if let Some(path) = path {
                let text = format!("---\nname: deploy\ndescription: d\n---\n# In {path}\n");
                project.checkout.write(&format!("{path}/SKILL.md"), &text);
            }
            if let Some(aside) = aside {
                fs::rename(project.checkout.dir(aside), project.checkout.path().join("aside"))
                    .expect("the path exists");
            }
            assert!(ask("/skills").contains("Waiting for your trust**\n\n- `deploy`"), "{path:?}");
        }
        home.printed(&["trust", "deploy", "--dir", &dir, "--yes"]);
        assert!(!ask("/skills").contains("Waiting"));
        // The user has approved this version, and not the next one, whatever its name is.
        for name in ["deploy", "launch"] {
            let text = format!("---\nname: {name}\ndescription: d\n---\n# Another\n");
            project.checkout.write(".agents/skills/other/SKILL.md", &text);
            let said = ask("/skills");
            assert!(said.contains(&format!("Waiting for your trust**\n\n- `{name}`")), "{said}");
        }
        // A skill that is not there at the moment can be declined, too.
        let said = ask("/skills untrust later");
        assert!(
            said.ends_with("has a skill `later` at the moment. If one appears, it waits for your trust."),
            "{said}"
        );
        project.checkout.write(".skills/later/SKILL.md", "---\nname: later\ndescription: d\n---\n# Later\n");
        let said = ask("/skills");
        assert!(said.contains("- `later`"), "{said}");
        let waiting = said.split("Waiting for your trust").nth(1).expect("skills that wait");
        assert!(waiting.contains("- `later`"), "{said}");
    }
    // The trust in all projects can't be taken back for one skill.
    let project = Project::new();
    let home = project.home();
    let dir = project.checkout.path().to_str().expect("text").to_owned();
    home.write(&home.config(), &json!({ "discover": ["project"], "trust": ["project"] }).to_string());
    let said = ask(&project, home.proxy(), "/skills untrust deploy");
    let errors = home.fails(&["untrust", "deploy", "--dir", &dir], 1);
    for text in [said, errors] {
        assert!(
            !text.contains("no longer") && text.contains("the key `trust` of the configuration"),
            "{text}"
        );
    }
}

/// One of the projects is trusted by the configuration, and its skill is missing when the trust is taken back.
fn untrust_reaches_all_projects_of_a_session() {
    for (cwd, additional) in [("a", "b"), ("b", "a")] {
        let roots = Roots::new();
        let trusted = json!([{ "path": roots.text("a"), "discover": ["project"], "trust": ["project"] }]);
        let config = json!({ "discover": ["project"], "projects": trusted }).to_string();
        roots.home.write(&roots.home.config(), &config);
        roots.skill("a/.skills/other", "Other.");
        roots.skill("b/.skills/deploy", "Deploys b.");
        roots.home.printed(&["trust", "deploy", "--dir", &roots.text("b"), "--yes"]);
        let mut fixture = Fixture::over_http(roots.home.proxy().arg("--no-watch"));
        roots.open(&mut fixture, cwd, &[additional]);
        assert!(fixture.ask("/skills untrust deploy").starts_with("`deploy` is no longer trusted."));
        roots.skill("a/.skills/deploy", "Deploys a.");
        fixture.ask("/skills reload");
        let said = fixture.ask("/skills");
        let waiting = said.split("Waiting for your trust").nth(1).expect("skills that wait");
        assert!(waiting.contains("Deploys a."), "{cwd}: {said}");
        fixture.finish();
    }
}

fn a_skill_that_stays_in_use_is_named() {
    let project = Project::new();
    let home = project.home();
    let dir = project.checkout.path().to_str().expect("text").to_owned();
    let own = project.skills.add("deploy", "Deploys mine.", "Mine.");
    home.write(&home.config(), &json!({ "roots": [project.skills.path()] }).to_string());
    let trust = || home.printed(&["trust", "--dir", &dir, "--yes"]);
    trust();
    let said = ask(&project, project.proxy(), "/skills untrust deploy");
    assert!(said.starts_with("`deploy` is no longer trusted.") && said.contains("is still in use"), "{said}");
    assert!(said.contains("Use `/skills off`"), "{said}");
    trust();
    let output = home.run(&["untrust", "deploy", "--dir", &dir]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let own = own.to_str().expect("text");
    assert!(errors.contains("a skill `deploy` in ") && errors.contains(own), "{errors}");
}

#[cfg(unix)]
fn open(fixture: &mut Fixture, cwd: &Path) {
    let params = json!({ "cwd": cwd, "mcpServers": [] });
    fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
}

/// The link in the path of the session's directory changes while the session uses the skill of the first project.
#[cfg(unix)]
fn a_link_that_leads_to_another_project() {
    use std::os::unix::fs::symlink;
    for (in_repository, by_configuration) in [(true, false), (false, false), (true, true), (false, true)] {
        let case = format!("in a repository: {in_repository}, by a configuration: {by_configuration}");
        let home = Home::new();
        let projects = Skills::new();
        let [first, second] = ["first", "second"].map(|name| {
            let text = format!("---\nname: deploy\ndescription: d\n---\n# {name}\n");
            projects.write(&format!("{name}/.skills/deploy/SKILL.md"), &text);
            if in_repository {
                fs::create_dir(projects.dir(name).join(".git")).expect("a directory");
            }
            projects.dir(name).to_str().expect("text").to_owned()
        });
        if by_configuration {
            let trusted = [&first, &second]
                .map(|dir| json!({ "path": dir, "discover": ["project"], "trust": ["project"] }));
            home.write(&home.config(), &json!({ "projects": trusted }).to_string());
        } else {
            home.write(&home.config(), &json!({ "discover": ["project"] }).to_string());
            for dir in [&first, &second] {
                home.printed(&["trust", "--dir", dir, "--yes"]);
            }
        }
        let link = projects.path().join("link");
        symlink(&first, &link).expect("a link");
        let mut fixture = Fixture::over_http(home.proxy().arg("--no-watch"));
        open(&mut fixture, &link);
        assert!(!fixture.ask("/skills").contains("Waiting"), "{case}");
        fs::remove_file(&link).expect("the path exists");
        symlink(&second, &link).expect("a link");
        let said = fixture.ask("/skills untrust deploy");
        assert!(said.starts_with("`deploy` is no longer trusted."), "{case}: {said}");
        fixture.finish();
        let mut fixture = Fixture::over_http(home.proxy().arg("--no-watch"));
        open(&mut fixture, Path::new(&first));
        let said = fixture.ask("/skills");
        assert!(said.contains("Waiting for your trust**\n\n- `deploy`"), "{case}: {said}");
        fixture.finish();
    }
}
