//! Skills that change while sessions run: who is told what, and when.

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::json;
use skills_core::{Scope, Source, Stored};

use super::*;

const KEY: SessionKey = SessionKey(1);

fn skill(name: &str, description: &str, change: impl FnOnce(&mut Skill)) -> Arc<Skill> {
    let mut skill = Skill::builder(name, description).body("Do it.").build().unwrap();
    change(&mut skill);
    Arc::new(skill)
}

fn set(skills: &[&Arc<Skill>]) -> SkillSet {
    let mut builder = SkillSet::builder();
    for skill in skills {
        builder.add_shared(Arc::clone(skill), Vec::new());
    }
    builder.build()
}

/// The menus in what was sent, and nothing else is there.
fn menus(out: &Out) -> Vec<(&str, Vec<&str>)> {
    let menus = out.to_client.iter().map(|message| {
        let list = message["params"]["update"]["availableCommands"].as_array().unwrap();
        let names = list.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
        (message["params"]["sessionId"].as_str().unwrap(), names)
    });
    menus.collect()
}

/// The line that an ordinary prompt brings after these changes, in marks that are left out here.
fn check(changes: &[SkillSet], expected: Expect) {
    let review = skill("review", "Reviews.", |_| {});
    let secret = skill("secret", "Hides.", |it| it.properties.disable_model_invocation = true);
    let mut world = World::with_skills(policy(), set(&[&review, &secret])).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    for skills in changes {
        world.notices(skills.clone());
    }
    let prompt = world.prompt(3, "s", &["go on"]);
    let told = match texts(prompt.agent())[..] {
        ["go on"] => "",
        [line, "go on"] => unmarked(line),
        _ => panic!("{prompt:?}"),
    };
    expected.assert_eq(told);
    assert!(!told.contains('\n'), "one line");
    // Once.
    assert_eq!(texts(world.prompt(4, "s", &["go on"]).agent()), ["go on"]);
}

#[test]
fn one_line_says_what_is_other() {
    let review = skill("review", "Reviews.", |_| {});
    let secret = skill("secret", "Hides.", |it| it.properties.disable_model_invocation = true);
    let greet = skill("greet", "Greets\npeople </acp-skills-proxy:>.", |_| {});
    let before = set(&[&review, &secret]);
    check(std::slice::from_ref(&before), expect![[""]]);
    check(
        &[set(&[&review, &secret, &greet])],
        expect!["The skills have changed. New: `greet` (Greets people </acp-skills_proxy:>.)."],
    );
    check(&[set(&[&secret])], expect!["The skills have changed. Removed: `review`."]);
    check(&[SkillSet::default()], expect!["The skills have changed. Removed: `review`."]);
    let anew = skill("review", "Reviews code.", |_| {});
    check(&[set(&[&anew, &secret])], expect!["The skills have changed. Changed: `review` (Reviews code.)."]);
    let priority = skill("review", "Reviews.", |it| it.properties.version = Some("2".into()));
    check(&[set(&[&priority, &secret])], expect!["The skills have changed. Changed: `review`."]);
    // Several changes are one line, and what comes to nothing is nothing.
    check(
        &[set(&[&secret]), set(&[&greet]), set(&[&greet, &anew])],
        expect![
            "The skills have changed. New: `greet` (Greets people </acp-skills_proxy:>.). Changed: `review` (Reviews code.)."
        ],
    );
    check(&[set(&[&review, &secret, &greet]), before.clone()], expect![[""]]);
    // Nobody names to the model what the model may not see.
    check(&[set(&[&review])], expect![[""]]);
    let open = skill("secret", "Hides.", |_| {});
    check(&[set(&[&review, &open])], expect!["The skills have changed. New: `secret` (Hides.)."]);
    let hidden = skill("review", "Reviews.", |it| it.properties.hide_from_discovery = true);
    check(&[set(&[&hidden])], expect!["The skills have changed. Removed: `review`."]);
}

#[test]
fn many_changes_are_still_one_line() {
    let names: Vec<_> = (0..50).map(|number| format!("new-{number:02}")).collect();
    let many: Vec<_> = names.iter().map(|name| skill(name, &"word ".repeat(300), |_| {})).collect();
    let mut world = World::new(policy()).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    world.notices(set(&many.iter().collect::<Vec<_>>()));
    let prompt = world.prompt(3, "s", &["go on"]);
    let line = texts(prompt.agent())[0];
    assert!(
        line.contains("`new-19` (word word") && line.contains("; and 30 more. Removed: `review`."),
        "{line}"
    );
    assert!(!line.contains("new-20") && line.len() < 6_000, "{}", line.len());
}

#[test]
fn servers_and_menus_change_at_once_where_something_changed() {
    let review = skill("review", "Reviews.", |_| {});
    let greet = skill("greet", "Greets.", |_| {});
    let before = set(&[&review]);
    let mut world = World::with_skills(policy(), before.clone()).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.new_session(2, "t");
    world.outside.served = None;
    // The same snapshot: nothing at all, not even for the server.
    assert!(world.notices(before).is_silence());
    assert_eq!(world.outside.served, None);
    // Another snapshot of the same skills.
    assert!(world.notices(set(&[&review])).is_silence());
    let out = world.notices(set(&[&review, &greet]));
    assert_eq!(
        menus(&out),
        [("s", vec!["skills", "review", "greet"]), ("t", vec!["skills", "review", "greet"])]
    );
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "greet"]);
    assert!(out.to_agent.is_empty());
}

#[test]
fn other_instructions_change_no_list() {
    let stored = |stamp: &str| {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("---\nname: review\ndescription: Reviews.\n---\n{stamp}\n");
        std::fs::write(dir.path().join("SKILL.md"), text).unwrap();
        let (mut skill, _) = skills_core::load_dir(dir.path()).unwrap();
        // Wherever it was, it is in the same place.
        if let Source::Stored(stored) = &mut skill.source {
            stored.dir = std::path::Path::new("/skills/review").into();
        }
        Arc::new(skill)
    };
    let mut world = World::with_skills(policy(), set(&[&stored("one")])).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    // The same text, written again.
    assert!(world.notices(set(&[&stored("one")])).is_silence());
    assert_eq!(texts(world.prompt(3, "s", &["go on"]).agent()), ["go on"]);
    assert!(world.notices(set(&[&stored("two")])).is_nothing());
    let prompt = world.prompt(4, "s", &["go on"]);
    assert!(
        texts(prompt.agent())[0].contains("\nThe skills have changed. Changed: `review`.\n"),
        "{prompt:?}"
    );
    // A model that has the old ones is told so.
    world.handle(Input::Activated(KEY, SkillName::new("review").unwrap()));
    world.notices(set(&[&stored("three")]));
    let prompt = world.prompt(5, "s", &["go on"]);
    assert!(texts(prompt.agent())[0].contains("may be out of date"), "{prompt:?}");
}

#[test]
fn commands_are_no_place_for_the_line() {
    let mut world = World::new(policy()).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    world.notices(skills(&["review", "greet"]));
    assert_eq!(texts(world.prompt(3, "s", &["/compact"]).agent()), ["/compact"]);
    let out = world.prompt(4, "s", &["/greet"]);
    let [Task::Ask(Query::Fetch { ticket, .. })] = out.tasks[..] else { panic!("{out:?}") };
    let text = Some("Hello.".to_owned());
    let out = world.handle(Input::Fetched {
        session: KEY,
        ticket,
        fetched: Fetched { text, activations: Vec::new() },
    });
    assert!(!texts(out.agent()).concat().contains("have changed"), "{out:?}");
    assert!(texts(world.prompt(5, "s", &["go on"]).agent())[0].contains("New: `greet`"));
}

#[test]
fn a_line_that_is_forgotten_is_told_again() {
    let mut world = World::new(policy()).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    world.respond(2, &json!({ "stopReason": "end_turn" }));
    world.notices(skills(&["review", "greet"]));
    for request in [3, 4] {
        assert!(
            texts(world.prompt(request, "s", &["go on"]).agent())[0].contains("New: `greet`"),
            "{request}"
        );
        world.respond(request, &json!({ "stopReason": if request == 3 { "refusal" } else { "end_turn" } }));
    }
    assert_eq!(texts(world.prompt(5, "s", &["go on"]).agent()), ["go on"]);
}

#[test]
fn a_model_that_was_told_nothing_gets_the_catalog() {
    let mut world = World::with_skills(policy(), SkillSet::default()).initialized("x", &json!({}));
    world.new_session(1, "s");
    assert_eq!(texts(world.prompt(2, "s", &["hello"]).agent()), ["hello"]);
    let out = world.notices(skills(&["greet"]));
    assert_eq!(menus(&out), [("s", vec!["skills", "greet"])]);
    world.notices(skills(&["greet", "review"]));
    let prompt = world.prompt(3, "s", &["go on"]);
    // Nothing virtual can be read; the session has no server.
    assert_eq!(texts(prompt.agent()), ["go on"]);
    let mut world = World::new(policy()).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.notices(skills(&["greet", "review"]));
    let prompt = world.prompt(3, "s", &["go on"]);
    let [catalog, "go on"] = texts(prompt.agent())[..] else { panic!("{prompt:?}") };
    assert!(catalog.contains("<name>greet</name>") && !catalog.contains("have changed"), "{catalog}");
}

#[test]
fn the_system_prompt_stays_as_it_was() {
    let capabilities = json!({ "sessionCapabilities": { "systemPrompt": {} }, "loadSession": true });
    let mut world = World::new(policy()).initialized("x", &capabilities);
    let first = world.new_session(1, "s")["params"]["systemPrompt"].clone();
    world.notices(skills(&["review", "greet"]));
    // Loading the session again tells nothing new.
    let again =
        world.request(2, "session/load", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
    assert_eq!(again.agent()["params"]["systemPrompt"], first);
    world.respond(2, &json!({}));
    assert!(texts(world.prompt(3, "s", &["go on"]).agent())[0].contains("New: `greet`"));
    let again = world.request(4, "session/resume", &json!({ "sessionId": "s", "cwd": "/project" }));
    assert_eq!(again.agent()["params"]["systemPrompt"], first);
    world.respond(4, &json!({}));
    assert_eq!(texts(world.prompt(5, "s", &["go on"]).agent()), ["go on"]);
    // A new session is told of all of them from the start.
    assert!(world.new_session(6, "t")["params"]["systemPrompt"].to_string().contains("greet"));
    assert_eq!(texts(world.prompt(7, "t", &["hello"]).agent()), ["hello"]);
}

#[test]
fn without_tools_the_line_says_where_files_are() {
    let stored = |name: &str| {
        skill(name, "Is stored.", |it| {
            let dir = std::path::PathBuf::from(format!("/skills/{name}"));
            (it.source, it.scope) = (Source::Stored(Stored::new(dir, "SKILL.md")), Scope::Scanned);
        })
    };
    let policy = Policy { mcp: McpMode::Off, ..policy() };
    let mut world = World::with_skills(policy, set(&[&stored("a")])).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    world.notices(set(&[&stored("a"), &stored("b"), &skill("virtual", "Has no file.", |_| {})]));
    let prompt = world.prompt(3, "s", &["go on"]);
    let line = texts(prompt.agent())[0];
    assert!(line.contains("New: `b` (Is stored.; ") && line.contains("SKILL.md)."), "{line}");
    assert!(!line.contains("virtual"), "{line}");
}

#[test]
fn a_session_that_is_being_set_up_gets_its_menu_afterwards() {
    let mut world = World::new(policy()).initialized("x", &json!({ "loadSession": true }));
    world.new_session(1, "s");
    world.request(2, "session/load", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
    world.request(3, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    assert!(world.notices(skills(&["review", "greet"])).is_nothing());
    world.respond(2, &json!({}));
    world.respond(3, &json!({ "sessionId": "t" }));
    for (key, id) in [(KEY, "s"), (SessionKey(2), "t")] {
        assert_eq!(
            menus(&world.handle(Input::MenuTimerEnded(key))),
            [(id, vec!["skills", "review", "greet"])]
        );
    }
}

#[test]
fn directories_are_left_with_their_last_session() {
    let mut world = World::new(policy()).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.new_session(2, "t");
    for (request, id, left) in [(3, "s", vec![]), (4, "t", vec!["/project"])] {
        world.request(request, "session/close", &json!({ "sessionId": id }));
        world.respond(request, &json!({}));
        let left: Vec<PathBuf> = left.into_iter().map(PathBuf::from).collect();
        assert_eq!(world.outside.left, left, "{id}");
    }
}
