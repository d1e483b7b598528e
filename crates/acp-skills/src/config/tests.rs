//! Tests of reading a configuration file, and of the errors in it.

use expect_test::{Expect, expect};
use skills_core::Skill;

use super::*;

#[test]
fn names_of_variables_are_checked() {
    for name in ["NODE_OPTIONS=--require=/x --title", "", "=x"] {
        for entry in [
            format!("skill: a\n  env: {{ '{name}': x }}"),
            format!("skill: a\n  mcp: {{ command: srv, env: {{ '{name}': x }} }}"),
            format!("name: a\n  description: d\n  body: b\n  env: {{ '{name}': x }}"),
        ] {
            let error =
                Config::parse(&format!("skills:\n- {entry}\n"), Path::new("skills.yaml")).unwrap_err();
            let expected = format!("invalid name of an environment variable: `{name}`");
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }
}

#[test]
fn the_number_of_sources_is_limited() {
    let parse = |top: usize, project: usize| {
        let list = |count: usize| (0..count).map(|number| format!("github:a/b{number}")).collect::<Vec<_>>();
        let config = serde_json::json!({
            "sources": list(top),
            "projects": [{ "path": "/a", "sources": list(project) }, { "path": "/b", "sources": ["github:a/b0"] }],
        });
        Config::parse(&config.to_string(), Path::new("/base")).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(parse(64, 64), Ok(()));
    assert_eq!(parse(1, 65), Err("65 different sources, but the maximum is 64".to_owned()));
    let repeated = |entry: &str, key: &str, count: usize| {
        let config = format!("{key}:\n{}", format!("- {entry}\n").repeat(count));
        Config::parse(&config, Path::new("/base")).map(drop).map_err(|error| error.to_string())
    };
    let server = "{ name: a, description: b, mcp: { url: 'https://a.example/', skills: true } }";
    for (entry, key, most, what) in [
        ("github:a/b", "sources", 256, "entries in all lists of sources"),
        ("mcp+https://a.example/", "sources", 32, "MCP servers that offer skills"),
        (server, "skills", 32, "MCP servers that offer skills"),
    ] {
        assert_eq!(repeated(entry, key, most), Ok(()));
        let message = format!("{} {what}, but the maximum is {most}", most + 1);
        assert_eq!(repeated(entry, key, most + 1), Err(message));
    }
}

#[test]
fn errors_have_a_place_and_a_suggestion() {
    let check = |text: &str, expected: Expect| {
        let error = Config::parse(text, Path::new("/base")).unwrap_err();
        let error = SyntaxError::new("skills.yaml".into(), text, &error);
        let help = error.help.iter().map(|help| format!("\n{help}"));
        expected.assert_eq(&format!("{error}{}", help.collect::<String>()));
    };
    check(
        "agent: x\nskils: []\n",
        expect![[r#"
            unknown key `skils`: skills.yaml:2:1
            did you mean `skills`?"#]],
    );
    check(
        "catlog_in: prompt\n",
        expect![[r#"
            unknown key `catlog_in`: skills.yaml:1:1
            did you mean `catalog_in`?"#]],
    );
    check(
        "catalog-in: prompt\n",
        expect![[r#"
            unknown key `catalog-in`: skills.yaml:1:1
            did you mean `catalog_in`?"#]],
    );
    check(
        "x: prompt\n",
        expect![[r#"
            unknown key `x`: skills.yaml:1:1
            known keys are `agent`, `skills`, `roots`, `sources`, `locked`, `projects`, `discover`, `trust`, `include`, `exclude`, `nested`, `max_skills`, `max_fetch`, `check_updates`, `approved_by`, `strict`, `watch`, `catalog_in`, `catalog_format`, `catalog_style`, `hint`, `catalog_detail`, `catalog_budget`, `restore_budget`, `location`, `mount`, `mcp`, `mcp_on_demand`, `mcp_skills`, `elsewhere`, `listen`, `listen_url`, `mcp_wait`, `exit_wait`, `max_message`, `activation`, `search`, `allow_scripts`, `script_timeout`, `script_cwd`, `script_env`, `max_output`, `sandbox`, `sandbox_net`, `commands`, `dollar`, `approve`, `tool_policy`, `titles`, `toggles`, `drafts`, `events`, `telemetry`, `state`, `log`, `log_file`, `validation`"#]],
    );
    check(
        "skills:\n  - name: a\n    description: b\n    bodi: c\n",
        expect![[r#"
            unknown key `bodi`: skills.yaml:4:5
            did you mean `body`?"#]],
    );
    check("skills:\n  - name: a\n    body: c\n", expect!["missing key `description`: skills.yaml:3:5"]);
    check(
        "skills:\n  - name: a\n    description: b\n    tools: [{ name: t }]\n",
        expect!["missing key `command`: skills.yaml:4:15"],
    );
    check(
        "skills: [3]\n",
        expect![
            "expected a skill directory, or a skill with `name`, `description` and `body`, but found integer `3`: skills.yaml:1:10"
        ],
    );
    check(
        "mcp: tcp\n",
        expect!["`tcp` should be one of `auto`, `acp`, `http`, `stdio`, `off`: skills.yaml:1:1"],
    );
    check("max_skills: many\n", expect!["`many` should be a whole number: skills.yaml:1:13"]);
    check(
        "mcp_wait: -1\n",
        expect!["`-1`: expected a number of seconds, for example 2 or 0.5: skills.yaml:1:11"],
    );
    check("mcp_wait: soon\n", expect!["`soon` should be a number: skills.yaml:1:11"]);
    check("dollar: perhaps\n", expect!["`perhaps` should be `true` or `false`: skills.yaml:1:9"]);
    check(
        "roots: a\n",
        expect!["`a` should be a list: `[a, b]`, or `- a` and `- b` on separate lines: skills.yaml:1:8"],
    );
    check(
        "agent: a\nagent: b\n",
        expect![[r#"
        key `agent` appears twice: skills.yaml:2:1
        remove the duplicate"#]],
    );
    check(
        "agent: [unclosed\n",
        expect![[r#"
        invalid YAML: unclosed bracket '[': skills.yaml:1:8
        check the indentation of this line and the previous line, and use quotes for text with `: `, ` #`, `[` or `{`"#]],
    );
    check(
        "agent: a: b\n",
        expect![[r#"
        invalid YAML: mapping values are not allowed in this context: skills.yaml:1:9
        check the indentation of this line and the previous line, and use quotes for text with `: `, ` #`, `[` or `{`"#]],
    );
    check(
        "agent: a\n  mcp: b\n",
        expect![[r#"
        invalid YAML: mapping values are not allowed in this context: skills.yaml:2:6
        check the indentation of this line and the previous line, and use quotes for text with `: `, ` #`, `[` or `{`"#]],
    );
    check(
        "agent: *a\n",
        expect![[r#"
        this alias (`*`) has no anchor (`&`): skills.yaml:1:8
        use quotes for text that starts with `*`"#]],
    );
    check(
        "agent: a\n---\nagent: b\n",
        expect![[r#"
        file contains more than one document: skills.yaml:3:1
        remove all `---` lines"#]],
    );
    check("- a\n", expect!["`- a` should be keys with values: `key: value`: skills.yaml:1:1"]);
}

#[test]
fn values_with_rules_of_their_own() {
    for name in ["''", &"n".repeat(201)] {
        let text = format!("approved_by: {name}\n");
        let error = Config::parse(&text, Path::new("/base")).unwrap_err();
        assert!(error.to_string().contains("expected a name"), "{error}");
    }
    let error = Config::parse("skills:\n  - paths: [a]\n    skill: b\n", Path::new("/base")).unwrap_err();
    let error = SyntaxError::new("skills.yaml".into(), "", &error);
    assert_eq!(error.to_string(), "`skill` must be the first key: skills.yaml:3:5");
    assert_eq!(error.help.as_deref(), Some("move `skill` above the other keys of this entry"));
}

#[test]
fn a_tilde_is_the_home_directory() {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let Some(home) = home else {
        #[expect(clippy::print_stderr, reason = "a skipped test prints a message")]
        return eprintln!("skipped: there is no home directory");
    };
    let text =
        "agent: [~/bin/agent, ~/x]\nskills: [~/a]\nroots: [$HOME/b]\nstate: ${HOME}\nlog_file: x/~.log\n";
    let config = Config::parse(text, Path::new("/base")).unwrap();
    assert_eq!(config.agent.0, [home.join("bin/agent").into_os_string(), "~/x".into()]);
    assert!(matches!(&config.skills[0], SkillEntry::Directory(path) if *path == home.join("a")));
    assert_eq!((config.roots, config.state), (vec![home.join("b")], Some(home)));
    assert_eq!(config.log_file, Some(Path::new("/base").join("x/~.log")));
}

#[test]
fn paths_are_relative_to_the_file() {
    let text = "agent: [./bin/agent, ./x]\nskills: [a, /b]\nroots: [c]\nlog_file: d.log\n";
    let config = Config::parse(text, Path::new("/base")).unwrap();
    let base = |path: &str| Path::new("/base").join(path);
    assert_eq!(config.agent.0, [base("./bin/agent").to_str().unwrap(), "./x"]);
    let skills = config.skills.iter().map(|entry| match entry {
        SkillEntry::Directory(path) => path.clone(),
        SkillEntry::Virtual(_) | SkillEntry::Stored(_) => panic!("no directory"),
    });
    assert_eq!(skills.collect::<Vec<_>>(), [base("a"), base("/b")]);
    assert_eq!((config.roots, config.log_file), (vec![base("c")], Some(base("d.log"))));
    // Names are looked up in `PATH`, so they should not be changed into a path.
    assert_eq!(Config::parse("agent: claude", Path::new("/base")).unwrap().agent.0, ["claude"]);
}

#[test]
fn an_empty_file_is_valid() {
    for text in ["", "\n# only a comment\n", "{}"] {
        assert!(Config::parse(text, Path::new("/base")).unwrap().skills.is_empty(), "{text:?}");
    }
}

fn build(text: &str) -> Result<(Skill, Vec<String>), ConfigError> {
    let config = Config::parse(text, Path::new("/base")).unwrap();
    let Some(SkillEntry::Virtual(skill)) = config.skills.into_iter().next() else { panic!("no skill") };
    skill.build(config.validation)
}

#[test]
fn virtual_skills() {
    // The path of a program that exists on every machine.
    let this = serde_json::json!(std::env::current_exe().unwrap());
    let (skill, warnings) = build(&format!(
        "skills:\n- name: count\n  description: Counts.\n  body: Do it.\n  tags: [a]\n  user_invocable: false\n  \
         tools:\n  - {{ name: t, command: [{this}, --version], input_schema: {{ type: string }} }}\n",
    ))
    .unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((skill.tools().len(), skill.properties.user_invocable), (1, false));
    assert!(
        build("skills: [{ name: a, description: b, body: c, body_file: d }]")
            .unwrap_err()
            .to_string()
            .contains("more than one")
    );
    assert!(build("skills: [{ name: a, description: b }]").unwrap_err().to_string().contains("body"));
}

#[test]
fn parameters_and_examples() {
    let text = "skills:\n- name: count\n  description: Counts.\n  body: Do it.\n  parameters:\n  - { name: path, description: A file., required: true, type: string }\n  - { name: depth }\n  examples:\n  - { scenario: A long text., expected: A number. }\n";
    let (skill, _) = build(text).unwrap();
    assert_eq!(skill.hint().as_deref(), Some("<path> [depth]"));
    assert_eq!(skill.properties.usage.unwrap().examples[0].expected, "A number.");
    let error = Config::parse(&text.replace("name: depth", "nam: depth"), Path::new("/base")).unwrap_err();
    assert!(error.to_string().contains("nam"), "{error}");
}

#[test]
fn a_missing_program() {
    let text = |validation: &str| {
        format!(
            "validation: {validation}\nskills: [{{ name: a, description: b, body: c, tools: [{{ name: t, command: no-such-program-here }}] }}]"
        )
    };
    assert!(build(&text("strict")).unwrap_err().to_string().contains("no-such-program-here"));
    let (skill, warnings) = build(&text("warn")).unwrap();
    assert!(warnings[0].contains("no-such-program-here") && skill.tools()[0].missing.is_some());
    let (skill, warnings) = build(&text("ignore")).unwrap();
    assert!(warnings.is_empty() && skill.tools()[0].missing.is_none());
}
