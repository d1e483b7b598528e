//! Models that read the files of skills themselves, because the agent gave them no tools.

use skills_core::{Source, Stored};

use super::*;

const KEY: SessionKey = SessionKey(1);

/// Returns a session whose catalog is in the system prompt, and whose agent has not connected in time.
fn without_tools(agent: &str) -> Fixture {
    let name = SkillName::new("a").unwrap();
    let stored = Stored::new(std::path::Path::new("/skills/a"), "SKILL.md");
    let set = [Skill::new(name, "Does things.", Source::Stored(stored))].into_iter().collect();
    let policy = Policy { mcp_wait: Duration::from_secs(2), ..Policy::default() };
    let capabilities = json!({ "sessionCapabilities": { "systemPrompt": {} } });
    let mut fixture = Fixture::with_skills(policy, set).initialized(agent, &capabilities);
    let new = fixture.new_session(1, "s");
    let has_paths = new["params"]["systemPrompt"].to_string().contains("SKILL.md");
    assert_eq!(has_paths, agent == "vibe", "{agent}");
    fixture.timer_ends(KEY);
    fixture
}

/// Sends a prompt, and returns true if the model gets the paths of the skills with it.
fn is_told(fixture: &mut Fixture, request: u64) -> bool {
    let out = fixture.prompt(request, "s", &["hello"]);
    out.agent().to_string().contains("SKILL.md")
}

fn ends(fixture: &mut Fixture, request: u64, stop: &str) {
    fixture.respond(request, &json!({ "stopReason": stop }));
}

#[test]
fn a_compaction_removes_the_paths() {
    let mut fixture = without_tools("OpenCode");
    assert!(is_told(&mut fixture, 2));
    ends(&mut fixture, 2, "end_turn");
    assert!(!is_told(&mut fixture, 3));
    fixture.update(
        "s",
        &json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed" }),
    );
    ends(&mut fixture, 3, "end_turn");
    assert!(is_told(&mut fixture, 4));
    ends(&mut fixture, 4, "end_turn");
    assert!(!is_told(&mut fixture, 5));
}

#[test]
fn a_prompt_that_is_dropped_had_the_paths() {
    let mut fixture = without_tools("OpenCode");
    assert!(is_told(&mut fixture, 2));
    ends(&mut fixture, 2, "cancelled");
    assert!(is_told(&mut fixture, 3));
}

#[test]
fn paths_in_the_system_prompt_are_not_repeated() {
    let mut fixture = without_tools("vibe");
    assert!(!is_told(&mut fixture, 2));
    fixture.update(
        "s",
        &json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed" }),
    );
    ends(&mut fixture, 2, "end_turn");
    assert!(!is_told(&mut fixture, 3));
}
