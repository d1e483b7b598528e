//! Tests of the answers to `/skills`.

use expect_test::expect;
use serde_json::json;
use skills_core::Scope;

use super::*;

/// Sends a prompt that the proxy answers itself, and returns the answer.
fn asked(fixture: &mut Fixture, request: u64, words: &str) -> String {
    let out = fixture.prompt(request, "s", &[words]);
    assert!(out.to_agent.is_empty() && out.tasks.is_empty(), "{out:?}");
    let [.., said, result] = &out.to_client[..] else { panic!("{out:?}") };
    assert_eq!(result, &json!({ "jsonrpc": "2.0", "id": request, "result": { "stopReason": "end_turn" } }));
    assert_eq!(said["params"]["update"]["sessionUpdate"], "agent_message_chunk");
    said["params"]["update"]["content"]["text"].as_str().unwrap().to_owned()
}

#[test]
fn skills_are_listed() {
    let mut fixture = session(&["review"]);
    expanded(&mut fixture, 2, &json!([text("/secret")]));
    fixture.handle(Input::Activated(KEY, SkillName::new("background").unwrap()));
    expect![[r#"
        **4 skills in this session**

        - `/skill:review`: Does review.
        - `/Plan-B`: Does Plan B.
        - `/secret` (active, by you, only by command): Does secret.
        - `background` (active, by the model, only by the model): Does background.

        `/skills` lists the skills, `/skills reload` looks for new ones, `/skills search WORDS` finds those that fit, `/skills off NAME` and `/skills on NAME` turn one off and on (with `--here` in new sessions of this directory, too)."#]]
    .assert_eq(&asked(&mut fixture, 3, "/skills"));
    assert!(asked(&mut fixture, 4, "/skills search plan").starts_with("1. `Plan B`: Does Plan B."));
    assert_eq!(
        asked(&mut fixture, 5, "/skills search zebra"),
        "No matching skills. Use fewer or different words."
    );
    for words in ["/skills search", "/skills remove x", "/skills reload x"] {
        let help = asked(&mut fixture, 6, words);
        assert!(
            help.contains("`/skills search WORDS` finds") && help.contains("`/skills drop NAME`"),
            "{words}"
        );
    }
    // We never sent these prompts to the agent, so they should not be open.
    assert_eq!(fixture.gone().iter().filter(|line| line["id"] != 2).count(), 0);
    // If the agent uses the same name for a command, leave it to the agent.
    let mut fixture = session(&["skills"]);
    assert_eq!(texts(fixture.prompt(2, "s", &["/skills"]).agent()), ["/skills"]);
}

#[test]
fn warnings_are_listed() {
    let mut builder = SkillSet::builder();
    let warning = |text: &str| skills_core::Diagnostic::warning("x", text);
    builder.add(skill("review", |_| {}), vec![warning("the body is long"), warning("the name is odd")]);
    let mut second = skill("Review", |_| {});
    second.scope = Scope::User;
    builder.add(second, Vec::new());
    let broken = vec![skills_core::Diagnostic::error("no-frontmatter", "there is no frontmatter")];
    builder.skip(skills_core::set::Skipped::new("/skills/broken/SKILL.md", broken));
    let mut fixture = Fixture::with_skills(policy(), builder.build()).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    let text = asked(&mut fixture, 2, "/skills");
    for line in [
        "- `review`: the body is long, and 1 more\n",
        "- `broken` was skipped: there is no frontmatter; run `acp-skills-proxy check /skills/broken` for details\n",
        "- `Review` from the configuration is hidden by the skill from the configuration; run `acp-skills-proxy list` with your flags to list both\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn reloading() {
    let mut fixture = session(&["web"]);
    fixture.new_session(2, "t");
    fixture.prompt(3, "s", &["hello"]);
    assert_eq!(asked(&mut fixture, 4, "/skills reload"), "Loaded 4 skills. No changes.");
    fixture.host.after_reload = Some(
        [skill("review", |properties| properties.priority = 1), skill("new", |_| {})].into_iter().collect(),
    );
    let out = fixture.prompt(5, "s", &["/skills reload"]);
    // Both sessions get a new menu before the response is sent.
    let menus: Vec<_> = out
        .to_client
        .iter()
        .filter(|line| line["params"]["update"]["availableCommands"].is_array())
        .collect();
    assert_eq!(menus.len(), 2);
    let of = |id: &str| menu(menus.iter().find(|line| line["params"]["sessionId"] == id).unwrap());
    assert_eq!(of("s"), ["skills", "review", "new", "web"]);
    assert_eq!(of("t"), ["skills", "review", "new"]);
    let said = &out.to_client[2]["params"]["update"]["content"]["text"];
    assert_eq!(
        said,
        "Loaded 2 skills. New: `new`. Removed: `Plan B`, `secret`, `background`. Changed: `review`."
    );
    // The model should only see these changes once.
    let prompt = fixture.prompt(6, "s", &["go on"]);
    let [line, "go on"] = texts(prompt.agent())[..] else { panic!("{prompt:?}") };
    assert!(line.contains("New: `new` (\"Does new.\").") && line.contains("Changed: `review`."), "{line}");
    assert_eq!(texts(fixture.prompt(7, "s", &["go on"]).agent()), ["go on"]);
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "new"]);
}

#[test]
fn hidden_skills_are_in_no_list_for_the_model() {
    let mut fixture = session(&[]);
    let catalog = fixture.prompt(2, "s", &["hello"]);
    let catalog = texts(catalog.agent())[0];
    assert!(catalog.contains("background") && !catalog.contains("secret"), "{catalog}");
    let toolbox = skills_core::Toolbox::new(set());
    let names = toolbox.definitions()[0].input_schema["properties"]["name"]["enum"].clone();
    assert_eq!(names, json!(["review", "Plan B", "background"]));
}
