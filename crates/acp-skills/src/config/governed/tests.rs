//! Every flag and key that could widen a rule, as one table. The flags of the program set fields of the same names.

use std::path::Path;

use skills_core::set::REFUSED_BY_POLICY;

use super::*;

/// Makes paths absolute on Windows.
fn here(text: &str) -> String {
    if cfg!(windows) { text.replace("/opt/", "C:/opt/").replace("/etc/", "C:/etc/") } else { text.to_owned() }
}

/// Narrows a configuration with a policy. Returns the configuration and the refusals.
fn narrowed(policy: &str, config: &str) -> (Config, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.yaml");
    std::fs::write(&file, here(policy)).unwrap();
    let policy = Policy::check(&file).unwrap();
    let mut config = Config::parse(&here(config), Path::new("/base")).unwrap();
    let refused = narrow(&mut config, &policy);
    for skipped in &refused {
        let finding = &skipped.diagnostics[0];
        assert_eq!(finding.code, REFUSED_BY_POLICY);
        assert!(finding.message.contains("policy.yaml"), "{}", finding.message);
    }
    (config, refused.into_iter().map(|skipped| skipped.diagnostics[0].message.clone()).collect())
}

/// Returns the number of entries in `sources` and `skills`, also of projects.
fn entries(config: &Config) -> (usize, usize) {
    let projects = || config.projects.iter();
    (
        config.sources.len() + projects().map(|project| project.sources.len()).sum::<usize>(),
        config.skills.len() + projects().map(|project| project.skills.len()).sum::<usize>(),
    )
}

#[test]
fn no_setting_widens_a_rule() {
    const EVIL: &str = "{name: a, description: d, body: b, tools: [{name: t, command: [sh]}]}";
    const SERVER: &str = "mcp: {command: npx, args: ['-p', evil, '@playwright/mcp']}";
    const SOURCES: &str = "sources: {allow: ['github:acme/*']}";
    let mut cases = Vec::new();
    for source in [
        "sources: ['github:evil/x']",
        "sources: [{source: 'github:evil/x', include: ['*'], nested: true}]",
        "sources: ['git+https://github.com/acme%2f..%2fevil/x']",
        "{sources: ['github:evil/x'], locked: true, trust: [project]}",
        "projects: [{path: '/**', sources: ['github:evil/x'], trust: [project]}]",
        "skills: [{name: a, description: d, body-url: 'https://evil.example/SKILL.md'}]",
        "projects: [{path: '/**', skills: [{name: a, description: d, body-url: 'https://evil.example'}]}]",
    ] {
        cases.push((SOURCES, source.to_owned(), "`sources.allow`"));
    }
    for scripts in ["never", "sandbox"] {
        let rule = if scripts == "never" { "`scripts: never`" } else { "`scripts: sandbox`" };
        let policy = if scripts == "never" { "scripts: never" } else { "scripts: sandbox" };
        cases.push((policy, format!("skills: [{EVIL}]"), rule));
        cases.push((policy, format!("projects: [{{path: '/**', skills: [{EVIL}]}}]"), rule));
    }
    cases.push(("scripts: never", "allow_scripts: true".to_owned(), "`scripts: never`"));
    cases.push(("scripts: never", "{allow_scripts: true, sandbox: bwrap}".to_owned(), "`scripts: never`"));
    cases.push((
        "scripts: sandbox",
        "{allow_scripts: true, sandbox_net: true}".to_owned(),
        "`scripts: sandbox`",
    ));
    for skill in [
        format!("{{name: '@playwright/mcp', description: d, {SERVER}}}"),
        format!("{{skill: /opt/a, {SERVER}}}"),
        "{name: a, description: d, mcp: {url: 'https://evil.example/@playwright/mcp'}}".to_owned(),
        "{name: a, description: d, mcp: {command: './npx', args: ['@playwright/mcp']}}".to_owned(),
    ] {
        cases.push(("mcp: {allow: ['@playwright/mcp']}", format!("skills: [{skill}]"), "`mcp.allow`"));
        cases.push((
            "mcp: {allow: ['@playwright/mcp']}",
            format!("projects: [{{path: '/**', skills: [{skill}]}}]"),
            "`mcp.allow`",
        ));
    }
    // The variables of a skill are also those of its server.
    let env = "env: {node_options: x}, mcp: {command: npx, args: ['@playwright/mcp']}";
    for skill in [format!("{{name: a, description: d, {env}}}"), format!("{{skill: /opt/a, {env}}}")] {
        cases.push(("mcp: {allow: ['@playwright/mcp']}", format!("skills: [{skill}]"), "`mcp.env`"));
    }
    for (policy, rule) in [
        ("sources: {lock: /etc/skills.lock}", "`sources.lock`"),
        ("sources: {scan: high}", "`sources.scan: high`"),
    ] {
        cases.push((policy, "sources: ['mcp+https://docs.example.com/mcp']".to_owned(), rule));
        cases.push((policy, "mcp_skills: true".to_owned(), rule));
    }
    cases.push(("skills: {allow: [configuration]}", "mcp_skills: true".to_owned(), "`skills.allow`"));
    cases.push((
        "skills: {allow: [user]}",
        "skills: [{name: a, description: d, body: b}]".to_owned(),
        "`skills.allow`",
    ));
    cases.push(("skills: {allow: [user]}", "drafts: true".to_owned(), "`skills.allow`"));
    // Other places for the skills, the server and the decisions of the user.
    for setting in [
        "mount: /opt",
        "listen_url: 'http://h.example'",
        "trust: [project]",
        "projects: [{path: '/**', trust: [project]}]",
    ] {
        cases.push(("skills: {allow: [project]}", setting.to_owned(), "`skills.allow`"));
    }
    cases.push((
        "mcp: {allow: ['@playwright/mcp']}",
        "listen_url: 'http://h.example'".to_owned(),
        "`mcp.allow`",
    ));
    for (policy, config, rule) in cases {
        let (narrowed, refused) = narrowed(policy, &config);
        assert_eq!(refused.len(), 1, "{policy} with {config}: {refused:?}");
        assert!(refused[0].contains(rule), "{policy} with {config}: {refused:?}");
        assert_eq!(entries(&narrowed), (0, 0), "{policy} with {config}");
        let runs = narrowed.allow_scripts && (narrowed.sandbox.is_none() || narrowed.sandbox_net);
        assert!(!runs && !narrowed.drafts, "{policy} with {config}");
        let places = (&narrowed.mount, &narrowed.listen_url, narrowed.mcp_skills.is_some());
        assert_eq!(places, (&None, &None, false), "{policy} with {config}");
        if rule == "`skills.allow`" {
            let trusting = narrowed.projects.iter().map(|project| &project.trust).chain([&narrowed.trust]);
            assert!(trusting.into_iter().all(Vec::is_empty), "{policy} with {config}");
        }
    }
}

/// The server of a skill is not started for skills that are all refused, but its tools stay.
#[test]
fn servers_are_not_asked_for_refused_skills() {
    const STORED: &str = "{skill: /opt/a, mcp: {command: srv, skills: true}}";
    const VIRTUAL: &str = "{name: a, description: d, mcp: {command: srv, skills: true}}";
    for (policy, skill, rule) in [
        ("{}", STORED, None),
        ("skills: {allow: [configuration]}", STORED, None),
        ("skills: {allow: [configuration]}", VIRTUAL, None),
        ("skills: {allow: []}", STORED, Some("`skills.allow`")),
        ("skills: {allow: [user, /opt/a]}", STORED, Some("`skills.allow`")),
        ("sources: {lock: /etc/skills.lock}", STORED, Some("`sources.lock`")),
        ("sources: {lock: /etc/skills.lock}", VIRTUAL, Some("`sources.lock`")),
        ("sources: {scan: high}", STORED, Some("`sources.scan: high`")),
        ("sources: {scan: high}", VIRTUAL, Some("`sources.scan: high`")),
    ] {
        for config in
            [format!("skills: [{skill}]"), format!("projects: [{{path: '/**', skills: [{skill}]}}]")]
        {
            let (mut config, refused) = narrowed(policy, &config);
            assert_eq!(entries(&config), (0, 1), "{policy} {skill}");
            let entry = config.skills.pop().or_else(|| config.projects[0].skills.pop());
            let server = match entry.expect("an entry") {
                SkillEntry::Stored(skill) => skill.mcp,
                SkillEntry::Virtual(skill) => skill.mcp,
                SkillEntry::Directory(_) => None,
            };
            assert_eq!(server.expect("a server").skills, rule.is_none(), "{policy} {skill}");
            let found = refused.iter().any(|refused| {
                refused.contains("`mcp.skills` of skill `a` is refused")
                    && rule.is_some_and(|rule| refused.contains(rule))
            });
            assert_eq!((refused.len(), found), (usize::from(rule.is_some()), rule.is_some()), "{refused:?}");
        }
    }
}

#[test]
fn allowed_settings_stay() {
    for (policy, config, expected) in [
        ("sources: {allow: ['github:acme/*']}", "sources: ['git@github.com:acme/x']", (1, 0)),
        (
            "scripts: allowed",
            "{allow_scripts: true, sandbox_net: true, skills: [{name: a, description: d, body: b, tools: [{name: t, command: [sh]}]}]}",
            (0, 1),
        ),
        (
            "mcp: {allow: ['@playwright/mcp']}",
            "skills: [{name: a, description: d, mcp: {command: npx, args: ['@playwright/mcp']}}]",
            (0, 1),
        ),
        (
            "skills: {allow: [configuration, editor]}",
            "{drafts: true, skills: [{name: a, description: d, body: b}]}",
            (0, 1),
        ),
        ("{}", "{drafts: true, allow_scripts: true, sources: ['github:a/b']}", (1, 0)),
    ] {
        let before = Config::parse(config, Path::new("/base")).unwrap();
        let (after, refused) = narrowed(policy, config);
        assert_eq!((entries(&after), refused), (expected, Vec::new()), "{policy} with {config}");
        assert_eq!((after.drafts, after.allow_scripts), (before.drafts, before.allow_scripts), "{config}");
        assert_eq!((after.sandbox, after.sandbox_net), (before.sandbox, before.sandbox_net), "{config}");
    }
    // Scripts run in the sandbox even if the user doesn't ask for it.
    let (config, refused) = narrowed("scripts: sandbox", "allow_scripts: true");
    assert_eq!((config.allow_scripts, config.sandbox, refused.len()), (true, Some(SandboxKind::Bwrap), 0));
}

/// With these settings, an agent reads skills in another place, which can have other files.
#[test]
fn no_setting_replaces_what_the_agent_reads() {
    for (policy, is_allowed) in [
        ("{}", true),
        ("scripts: never", true),
        ("skills: {allow: []}", false),
        ("mcp: {allow: []}", false),
        ("sources: {scan: low}", false),
        ("require: {sources: ['github:acme/x']}", false),
    ] {
        let settings =
            "{mount: /skills, elsewhere: 'yes', listen: '127.0.0.1:0', listen_url: 'http://evil.example'}";
        let (config, refused) = narrowed(policy, settings);
        assert_eq!(
            (config.mount.is_some(), config.listen_url.is_some()),
            (is_allowed, is_allowed),
            "{policy}"
        );
        assert_eq!(refused.len(), if is_allowed { 0 } else { 2 }, "{refused:?}");
    }
}

/// The user can change `PATH` between the decision and the search for `bwrap`, so the one that was found counts.
#[cfg(unix)]
#[test]
fn the_bwrap_that_was_found_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.yaml");
    for (policy, is_refused) in [("scripts: sandbox", true), ("scripts: allowed", false)] {
        std::fs::write(&file, policy).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        let policy = Policy::check(&file).unwrap();
        // The shell is the target of a link with the name `bwrap`. Only root can change a `bwrap` on a disk of the user, or so it seems.
        for bwrap in [&file, Path::new("/bin/sh"), Path::new("/etc/hostname")] {
            assert_eq!(bwrap_refusal(bwrap, &policy).is_some(), is_refused, "{}", bwrap.display());
        }
    }
}

#[cfg(unix)]
#[test]
fn required_sources_have_no_filters() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.yaml");
    std::fs::write(&file, "require: {sources: ['github:acme/skills@v3']}").unwrap();
    let mut specs = required(&Policy::check(&file).unwrap());
    assert_eq!(specs.len(), 1);
    assert!(
        specs[0].filters.is_empty()
            && specs[0].is_named
            && specs[0].address.as_str() == "github:acme/skills@v3"
    );
    std::fs::write(&file, "sources: {lock: /etc/skills.lock}").unwrap();
    lock(specs.iter_mut(), &Policy::check(&file).unwrap());
    assert!(!specs[0].is_named && specs[0].lock == Path::new("/etc/skills.lock"));
}
