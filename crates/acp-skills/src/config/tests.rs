//! What a configuration file may say, and how it is told that it may not.

use skills_core::Skill;

use super::*;

fn problem(text: &str) -> String {
    Config::parse(text, Path::new("/base")).map(|_| ()).unwrap_err()
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, expected) in [
        ("agent: x\nskils: []\n", ["skils", "line 2"]),
        ("skills:\n  - name: a\n    description: b\n    bodi: c\n", ["bodi", "line 4"]),
        ("skills:\n  - name: a\n    body: c\n", ["description", "line 3"]),
        ("skills:\n  - name: a\n    description: b\n    tools: [{ name: t }]\n", ["command", "line 4"]),
        ("mcp: tcp\n", ["tcp", "line 1"]),
        ("max_skills: many\n", ["many", "line 1"]),
        ("agent: [unclosed\n", ["", "line"]),
    ] {
        let found = problem(text);
        for part in expected {
            assert!(found.contains(part), "{text}: `{part}` is not in: {found}");
        }
    }
}

#[test]
fn paths_are_relative_to_the_file() {
    let text = "agent: [./bin/agent, ./x]\nskills: [a, /b]\nroots: [c]\nlog_file: d\n";
    let config = Config::parse(text, Path::new("/base")).unwrap();
    let base = |path: &str| Path::new("/base").join(path);
    assert_eq!(config.agent.0, [base("./bin/agent").to_str().unwrap(), "./x"]);
    let skills = config.skills.iter().map(|entry| match entry {
        SkillEntry::Directory(path) => path.clone(),
        SkillEntry::Virtual(_) => panic!("no directory"),
    });
    assert_eq!(skills.collect::<Vec<_>>(), [base("a"), base("/b")]);
    assert_eq!((config.roots, config.log_file), (vec![base("c")], Some(base("d"))));
    // A bare name is looked up in `PATH`.
    assert_eq!(Config::parse("agent: claude", Path::new("/base")).unwrap().agent.0, ["claude"]);
}

#[test]
fn an_empty_file_says_nothing() {
    for text in ["", "\n# only a comment\n", "{}"] {
        assert!(Config::parse(text, Path::new("/base")).unwrap().skills.is_empty(), "{text:?}");
    }
}

fn build(text: &str) -> Result<(Skill, Vec<String>), String> {
    let config = Config::parse(text, Path::new("/base")).unwrap();
    let Some(SkillEntry::Virtual(skill)) = config.skills.into_iter().next() else { panic!("no skill") };
    skill.build(config.validation).map_err(|error| error.to_string())
}

#[test]
fn virtual_skills() {
    let (skill, warnings) = build(
            "skills:\n- name: count\n  description: Counts.\n  body: Do it.\n  tags: [a]\n  user_invocable: false\n  \
             tools:\n  - { name: t, command: [cargo, --version], input_schema: { type: string } }\n",
        )
        .unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((skill.tools().len(), skill.properties.user_invocable), (1, false));
    assert!(
        build("skills: [{ name: a, description: b, body: c, body_file: d }]")
            .unwrap_err()
            .contains("more than one")
    );
    assert!(build("skills: [{ name: a, description: b }]").unwrap_err().contains("body"));
}

#[test]
fn a_missing_program() {
    let text = |validation: &str| {
        format!(
            "validation: {validation}\nskills: [{{ name: a, description: b, body: c, tools: [{{ name: t, command: no-such-program-here }}] }}]"
        )
    };
    assert!(build(&text("strict")).unwrap_err().contains("no-such-program-here"));
    let (skill, warnings) = build(&text("warn")).unwrap();
    assert!(warnings[0].contains("no-such-program-here") && skill.tools()[0].missing.is_some());
    let (skill, warnings) = build(&text("ignore")).unwrap();
    assert!(warnings.is_empty() && skill.tools()[0].missing.is_none());
}
