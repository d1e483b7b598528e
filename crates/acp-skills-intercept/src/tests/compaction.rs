//! Compaction: the signals of agents, and what the next prompt restores.

mod attacks;
mod commands;
mod dropped;
mod failures;
mod signals;
mod usage;

use serde_json::json;

use super::*;
use crate::events::{ActivatedBy, CompactionSignal};

const KEY: SessionKey = SessionKey(1);

fn name(name: &str) -> SkillName {
    SkillName::new(name).unwrap()
}

/// Returns a session of an agent of this name, in which a turn with these skills is over.
fn session(agent: &str, capabilities: &Value, active: &[&str]) -> Fixture {
    let skills = skills(&["review", "pdf", "notes"]);
    let mut fixture = Fixture::with_skills(policy(), skills).initialized(agent, capabilities);
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["hello"]);
    for skill in active {
        fixture.handle(Input::Activated(KEY, name(skill)));
    }
    end(&mut fixture, 2);
    fixture
}

fn end(fixture: &mut Fixture, request: u64) -> Out {
    fixture.respond(request, &json!({ "stopReason": "end_turn" }))
}

fn completed(fixture: &mut Fixture, id: &str) -> Out {
    fixture.update(
        "s",
        &json!({ "sessionUpdate": "compaction_update", "compactionId": id, "status": "completed" }),
    )
}

/// Answers the query of a prompt with the instructions of each skill.
fn fetched(fixture: &mut Fixture, out: &Out) -> Out {
    let [Task::Ask(Query::Fetch { session, ticket, wanted: Wanted::Active { names, .. } })] = &out.tasks[..]
    else {
        panic!("{out:?}")
    };
    let skills = names.iter().map(|name| (name.clone(), format!("DO {name}"))).collect();
    let fetched = Fetched { skills, ..Fetched::default() };
    fixture.handle(Input::Fetched { session: *session, ticket: *ticket, fetched })
}

/// Sends a prompt, answers its query if there is one, and returns the texts for the agent.
fn prompt(fixture: &mut Fixture, request: u64, words: &str) -> Vec<String> {
    let mut out = fixture.prompt(request, "s", &[words]);
    if !out.tasks.is_empty() {
        out = fetched(fixture, &out);
    }
    texts(out.agent()).into_iter().map(str::to_owned).collect()
}

/// Sends a prompt, and returns the restored parts in a short form. Empty if nothing is restored.
fn restored(fixture: &mut Fixture, request: u64) -> Vec<String> {
    let texts = prompt(fixture, request, "go on");
    let (words, ours) = texts.split_last().unwrap();
    assert_eq!(words, "go on");
    let parts = ours.iter().flat_map(|text| {
        let text = unmarked(text);
        let catalog = text.contains("<available_skills>").then(|| "catalog".to_owned());
        let skills = text.lines().filter_map(|line| line.strip_prefix("DO ")).map(str::to_owned);
        catalog.into_iter().chain(skills)
    });
    parts.collect()
}

#[test]
fn the_next_prompt_restores_the_catalog_and_the_active_skills() {
    let mut fixture = session("x", &json!({}), &["review", "notes"]);
    completed(&mut fixture, "c");
    let texts = prompt(&mut fixture, 3, "go on");
    assert_eq!(texts.len(), 3);
    assert!(unmarked(&texts[0]).contains("<name>pdf</name>"), "{texts:?}");
    expect_test::expect![[r"
        The conversation was compacted. These are the instructions of the skills that were active. Keep following them where they apply.

        DO notes

        DO review"]]
    .assert_eq(unmarked(&texts[1]));
    assert_eq!(texts[2], "go on");
    end(&mut fixture, 3);
    assert_eq!(prompt(&mut fixture, 4, "go on"), ["go on"], "only once");
}

#[test]
fn a_catalog_in_the_system_prompt_is_not_repeated() {
    let capabilities = json!({ "sessionCapabilities": { "systemPrompt": {} } });
    let mut fixture = session("x", &capabilities, &["review"]);
    // This change was in a prompt, which the compaction removes, so it has to be sent again.
    fixture.notices(skills(&["review", "pdf", "new"]));
    let told = prompt(&mut fixture, 3, "go on");
    assert!(unmarked(&told[0]).starts_with("The skills have changed. New: `new`"), "{told:?}");
    end(&mut fixture, 3);
    completed(&mut fixture, "c");
    let again = prompt(&mut fixture, 4, "go on");
    assert_eq!(again[0], told[0]);
    assert!(unmarked(&again[1]).ends_with("\n\nDO review"), "{again:?}");
    end(&mut fixture, 4);
    assert_eq!(prompt(&mut fixture, 5, "go on"), ["go on"]);
}

#[test]
fn texts_in_prompts_survive_with_some_agents() {
    for agent in ["Copilot", "codex-acp"] {
        let mut fixture = session(agent, &json!({}), &["review"]);
        completed(&mut fixture, "c");
        // The catalog was in the first prompt, and the instructions in the result of a tool.
        assert_eq!(restored(&mut fixture, 3), ["review"], "{agent}");
        end(&mut fixture, 3);
        // Now the instructions are in a prompt, too.
        let out = fixture.prompt(4, "s", &["/pdf"]);
        let fetched = Fetched { text: Some("PDF".to_owned()), ..Fetched::default() };
        fixture.handle(Input::Fetched { session: KEY, ticket: out.ticket(), fetched });
        end(&mut fixture, 4);
        completed(&mut fixture, "d");
        let out = fixture.prompt(5, "s", &["go on"]);
        assert_eq!(texts(out.agent()), ["go on"], "{agent}");
        assert!(out.records.is_empty(), "{out:?}");
        end(&mut fixture, 5);
        fixture.handle(Input::Activated(KEY, name("review")));
        completed(&mut fixture, "e");
        assert_eq!(restored(&mut fixture, 6), ["review"], "{agent}");
        // If the agent may have dropped the prompt, the instructions are lost.
        fixture.respond(6, &json!({ "stopReason": "cancelled" }));
        completed(&mut fixture, "f");
        assert_eq!(restored(&mut fixture, 7), ["review"], "{agent}");
    }
}

#[test]
fn nothing_is_added_if_nothing_is_lost() {
    let capabilities = json!({ "sessionCapabilities": { "systemPrompt": {} } });
    let mut fixture = session("x", &capabilities, &[]);
    completed(&mut fixture, "c");
    let out = fixture.prompt(3, "s", &["go on"]);
    assert_eq!(texts(out.agent()), ["go on"]);
    assert!(out.records.is_empty(), "{out:?}");
}

#[test]
fn the_last_used_skills_come_first() {
    let mut fixture = session("x", &json!({}), &["review", "pdf", "notes"]);
    let end = crate::events::End {
        outcome: crate::events::Outcome::Ok,
        error: None,
        bytes: 1,
        ms: Duration::ZERO.into(),
        trace: None,
    };
    let read = EventKind::FileRead { skill: Some("review".to_owned()), file: None, end };
    fixture.handle(Input::Recorded(KEY, read));
    fixture.handle(Input::Activated(KEY, name("pdf")));
    completed(&mut fixture, "c");
    assert_eq!(restored(&mut fixture, 3), ["catalog", "pdf", "review", "notes"]);
}

#[test]
fn commands_restore_nothing() {
    let mut fixture = session("x", &json!({}), &["review", "pdf"]);
    completed(&mut fixture, "c");
    assert_eq!(texts(fixture.prompt(3, "s", &["/plan x"]).agent()), ["/plan x"]);
    end(&mut fixture, 3);
    // A skill that the user invokes is not repeated, because the model has just received it.
    let out = fixture.prompt(4, "s", &["/review x"]);
    let text = Some("REVIEW".to_owned());
    let fetched = Fetched { text, ..Fetched::default() };
    let out = fixture.handle(Input::Fetched { session: KEY, ticket: out.ticket(), fetched });
    assert!(!out.agent().to_string().contains("available_skills"), "{out:?}");
    end(&mut fixture, 4);
    assert_eq!(restored(&mut fixture, 5), ["catalog", "pdf"]);
}

#[test]
fn only_current_skills_are_restored() {
    let mut fixture = session("x", &json!({}), &["review", "pdf", "notes"]);
    completed(&mut fixture, "c");
    fixture.prompt(3, "s", &["/skills off pdf"]);
    fixture.notices(skills(&["review", "pdf"]));
    assert_eq!(restored(&mut fixture, 4), ["catalog", "review"]);
}

/// The skill is turned off while the prompt waits for its instructions.
#[test]
fn a_skill_that_is_turned_off_while_a_prompt_waits_is_not_restored() {
    let mut fixture = session("x", &json!({}), &["review", "pdf"]);
    completed(&mut fixture, "c");
    let out = fixture.prompt(3, "s", &["go on"]);
    fixture.prompt(4, "s", &["/skills off pdf"]);
    let sent = fetched(&mut fixture, &out).agent().to_string();
    assert!(sent.contains("DO review") && !sent.contains("DO pdf"), "{sent}");
}

#[test]
fn skills_that_do_not_fit_are_named() {
    for (tools, expected) in [
        (true, "If you still need a skill, activate it again."),
        (false, "If you still need a skill, read its `SKILL.md` again."),
    ] {
        let capabilities = json!({ "mcpCapabilities": { "http": tools } });
        let mcp = if tools { McpMode::Auto } else { McpMode::Off };
        let policy = Policy { mcp, restore_budget: 5 * 100, ..policy() };
        let mut fixture =
            Fixture::with_skills(policy, skills(&["review", "pdf"])).initialized("x", &capabilities);
        fixture.new_session(1, "s");
        if tools {
            fixture.handle(Input::ToolsListed(KEY));
        }
        fixture.prompt(2, "s", &["hello"]);
        fixture.handle(Input::Activated(KEY, name("review")));
        fixture.handle(Input::Activated(KEY, name("pdf")));
        completed(&mut fixture, "c");
        let out = fixture.prompt(3, "s", &["go on"]);
        let Wanted::Active { guide, best_for: None, .. } = out.wanted() else { panic!("{out:?}") };
        assert_eq!(*guide == Guide::Tools, tools);
        let skills = vec![(name("review"), "x".repeat(404)), (name("pdf"), "PDF".to_owned())];
        let fetched = Fetched { skills, ..Fetched::default() };
        let out = fixture.handle(Input::Fetched { session: KEY, ticket: out.ticket(), fetched });
        let texts = texts(out.agent());
        let end = format!("\n\nPDF\n\nThese skills were active, too: `review`. {expected}");
        assert!(unmarked(texts[texts.len() - 2]).ends_with(&end), "{texts:?}");
    }
}

#[test]
fn instructions_that_cannot_be_read_are_named() {
    let mut fixture = session("x", &json!({}), &["review"]);
    completed(&mut fixture, "c");
    let out = fixture.prompt(3, "s", &["go on"]);
    let out =
        fixture.handle(Input::Fetched { session: KEY, ticket: out.ticket(), fetched: Fetched::default() });
    let ours = texts(out.agent())[1];
    assert_eq!(
        unmarked(ours),
        "The conversation was compacted, so the instructions of these skills may be gone: `review`. If you still need a \
         skill, activate it again."
    );
}

#[test]
fn a_restoration_is_recorded_and_shown() {
    let mut fixture = session("x", &json!({}), &["review"]);
    completed(&mut fixture, "c");
    let out = fixture.prompt(3, "s", &["go on"]);
    let out = fetched(&mut fixture, &out);
    let [(Some(session), EventKind::Restored { skills, tokens, signal })] = &out.records[..] else {
        panic!("{out:?}")
    };
    assert_eq!((session.as_str(), &skills[..]), ("s", &["review".to_owned()][..]));
    assert_eq!(*signal, CompactionSignal::CompactionUpdate);
    let added: usize = texts(out.agent())[..2].iter().map(|text| skills_core::estimate_tokens(text)).sum();
    assert_eq!(*tokens, added as u64);
    let said =
        |out: &Out| out.to_client[0]["params"]["update"]["content"]["text"].as_str().unwrap().to_owned();
    let text = said(&fixture.prompt(4, "s", &["/skills"]));
    assert!(text.contains("`/review` (active, by the model, restored after compaction)"), "{text}");
    // Once the skill is activated again, this is no longer of interest.
    fixture.handle(Input::Activated(KEY, name("review")));
    let text = said(&fixture.prompt(5, "s", &["/skills"]));
    assert!(text.contains("`/review` (active, by the model)"), "{text}");
}

#[test]
fn results_of_tools_remind_until_the_next_prompt() {
    let mut fixture = session("x", &json!({}), &["review", "pdf"]);
    fixture.prompt(3, "s", &["work"]);
    completed(&mut fixture, "c");
    fixture.handle(Input::Activated(KEY, name("pdf")));
    end(&mut fixture, 3);
    assert_eq!(restored(&mut fixture, 4), ["catalog", "review"]);
    let reminders: Vec<_> = fixture.host.reminders.iter().map(|(_, skills)| skills.clone()).collect();
    assert_eq!(reminders, [vec!["pdf", "review"], vec!["review"], vec![]]);
}

/// The proxy activates skills for prompts, too.
#[test]
fn a_skill_that_matches_the_prompt_is_sent_once() {
    let policy = Policy { activation: Activation::Prompt, ..policy() };
    let mut fixture = Fixture::with_skills(policy, skills(&["review", "pdf"])).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    let ticket = fixture.prompt(2, "s", &["hello"]).ticket();
    fixture.handle(Input::Fetched { session: KEY, ticket, fetched: Fetched::default() });
    fixture.handle(Input::Activated(KEY, name("review")));
    fixture.handle(Input::Activated(KEY, name("pdf")));
    completed(&mut fixture, "c");
    let out = fixture.prompt(3, "s", &["please review"]);
    let Wanted::Active { best_for, .. } = out.wanted() else { panic!("{out:?}") };
    assert_eq!(best_for.as_deref(), Some("please review"));
    let fetched = Fetched {
        text: Some("BEST".to_owned()),
        activations: vec![record::activation(ActivatedBy::Prompt)],
        skills: vec![(name("review"), "DO review".to_owned()), (name("pdf"), "DO pdf".to_owned())],
        hint: None,
    };
    let out = fixture.handle(Input::Fetched { session: KEY, ticket: out.ticket(), fetched });
    let texts = texts(out.agent());
    assert!(texts[1].contains("DO pdf") && !texts[1].contains("DO review"), "{texts:?}");
    assert_eq!((unmarked(texts[2]), texts[3]), ("BEST", "please review"));
}

/// The restored text is removed from everything that the agent sends back.
#[test]
fn the_client_does_not_see_what_was_restored() {
    let mut fixture = session("x", &json!({ "loadSession": true }), &["review"]);
    completed(&mut fixture, "c");
    let blocks = prompt(&mut fixture, 3, "go on");
    let all = blocks.concat();
    let chunk = |fixture: &mut Fixture, text: &str| {
        let content = json!({ "type": "text", "text": text });
        fixture.update("s", &json!({ "sessionUpdate": "user_message_chunk", "content": content }))
    };
    let mut seen: Vec<String> = Vec::new();
    for block in &blocks {
        let out = chunk(&mut fixture, block);
        let texts = out.to_client.iter().map(|line| line["params"]["update"]["content"]["text"].clone());
        seen.extend(texts.map(|text| text.as_str().unwrap().to_owned()));
    }
    assert_eq!(seen.concat(), "go on");
    let out = fixture.update("s", &json!({ "sessionUpdate": "session_info_update", "title": all }));
    assert_eq!(out.client()["params"]["update"]["title"], "go on");
    end(&mut fixture, 3);
    fixture.request(4, "session/list", &json!({}));
    let title: String = all.chars().take(100).collect();
    let out = fixture.respond(4, &json!({ "sessions": [{ "sessionId": "s", "title": title }] }));
    assert!(!out.client().to_string().contains("acp-skills"), "{out:?}");
    let content = json!({ "type": "text", "text": all });
    let out =
        fixture.agent(&json!({ "jsonrpc": "2.0", "method": "_x/history", "params": { "content": content } }));
    assert_eq!(out.client()["params"]["content"]["text"], "go on");
}
