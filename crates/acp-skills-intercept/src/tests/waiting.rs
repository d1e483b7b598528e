//! Prompts that wait for the skill tools, and agents that do not connect.

use std::time::Duration;

use serde_json::json;

use super::*;

const WAIT: Duration = Duration::from_secs(2);

fn fixture() -> Fixture {
    Fixture::new(Policy { mcp_wait: WAIT, ..Policy::default() }).initialized("x", &json!({}))
}

const KEY: SessionKey = SessionKey(1);

#[test]
fn the_first_prompt_waits_for_the_tools() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    let out = fixture.prompt(2, "s", &["hello"]);
    assert!(
        out.is_nothing() && out.tasks.is_empty(),
        "the time runs from the opening of the session: {out:?}"
    );
    // Other messages are not delayed, including those in the same session.
    assert_eq!(fixture.request(3, "session/set_mode", &json!({ "sessionId": "s" })).to_agent.len(), 1);
    // But a later prompt has to wait, too.
    assert!(fixture.prompt(4, "s", &["second"]).is_nothing());
    let out = fixture.handle(Input::ToolsListed(KEY));
    assert_eq!(out.to_agent.iter().map(|line| texts(line).len()).collect::<Vec<_>>(), [2, 1]);
    assert!(fixture.timer_ends(KEY).is_silence());
    assert_eq!(texts(fixture.prompt(5, "s", &["third"]).agent()), ["third"]);
}

/// The time starts again with the second request, because the agent may connect again.
#[test]
fn a_prompt_is_sent_if_its_session_is_not_loaded_again() {
    for method in ["session/load", "session/resume"] {
        for answer in ["refused", "cancelled", "none"] {
            let mut fixture = fixture();
            fixture.new_session(1, "s");
            assert!(fixture.prompt(2, "s", &["hello"]).is_nothing());
            let params = json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] });
            let out = fixture.request(3, method, &params);
            assert_eq!((out.to_agent.len(), waits(&out)), (1, vec![300]), "{method} {answer}");
            let code = match answer {
                "refused" => -32603,
                "cancelled" => -32800,
                _ => 0,
            };
            if code != 0 {
                let error = json!({ "code": code, "message": "session is in use" });
                fixture.agent(&json!({ "jsonrpc": "2.0", "id": 3, "error": error }));
            }
            // The timer of the first request has no effect.
            assert!(fixture.timer_ends(KEY).to_agent.is_empty(), "{method} {answer}");
            let out = fixture.timer_ends(KEY);
            let sent = out.to_agent.iter().filter(|line| line["method"] == "session/prompt").count();
            assert_eq!(sent, 1, "{method} {answer}: {out:?}");
        }
    }
}

/// Returns the timers that were started, in milliseconds.
fn waits(out: &Out) -> Vec<u128> {
    let wait = |task: &Task| match task {
        Task::ToolsTimer { time, .. } => Some(time.as_millis()),
        _ => None,
    };
    out.tasks.iter().filter_map(wait).collect()
}

/// Opens a session, and returns the effects of the response.
fn open(fixture: &mut Fixture, request: u64, id: &str) -> Out {
    fixture.request(request, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    fixture.respond(request, &json!({ "sessionId": id }))
}

#[test]
fn prompts_wait_longer_for_an_agent_that_has_connected() {
    // These are the steps after the session has been opened.
    enum Step {
        Connects,
        TimeIsUp,
        Lists,
        Prompts,
    }
    use Step::{Connects, Lists, Prompts, TimeIsUp};
    for (steps, waited, sent, tools) in [
        (&[Prompts, TimeIsUp][..], &[300][..], 1, false),
        // The timer ends before the user sends a prompt.
        (&[TimeIsUp, Prompts], &[300], 1, false),
        (&[Connects, Prompts, TimeIsUp], &[300, 1700], 0, false),
        (&[Connects, Prompts, TimeIsUp, Lists], &[300, 1700], 1, true),
        (&[Connects, Prompts, TimeIsUp, TimeIsUp], &[300, 1700], 1, false),
        (&[Prompts, Connects, Lists, TimeIsUp], &[300], 1, true),
        (&[TimeIsUp, Connects, Lists, Prompts], &[300], 1, true),
    ] {
        let mut fixture = fixture();
        let mut all = waits(&open(&mut fixture, 1, "s"));
        let mut said = Vec::new();
        for step in steps {
            let out = match step {
                Connects => fixture.handle(Input::Connected(KEY)),
                TimeIsUp => fixture.timer_ends(KEY),
                Lists => fixture.handle(Input::ToolsListed(KEY)),
                Prompts => fixture.prompt(2, "s", &["hello"]),
            };
            all.extend(waits(&out));
            said.extend(out.to_agent);
        }
        assert_eq!((&all[..], said.len()), (waited, sent), "{said:?}");
        if let Some(prompt) = said.first() {
            let is_told_of_tools =
                texts(prompt).first().is_some_and(|text| text.contains("call `activate_skill`"));
            assert_eq!(is_told_of_tools, tools, "{prompt}");
        }
    }
}

#[test]
fn prompts_do_not_wait_for_an_agent_that_never_connects() {
    let mut fixture = fixture();
    assert_eq!(waits(&open(&mut fixture, 1, "a")), [300]);
    fixture.timer_ends(KEY);
    open(&mut fixture, 2, "b");
    assert_eq!(fixture.prompt(3, "b", &["hello"]).to_agent.len(), 1);
    // The agent connects after the timeout, as if to call a tool, so later prompts still don't wait.
    fixture.timer_ends(SessionKey(2));
    fixture.handle(Input::Connected(SessionKey(2)));
    open(&mut fixture, 4, "c");
    assert_eq!(fixture.prompt(5, "c", &["hello"]).to_agent.len(), 1);
    // The agent connects after it has received a prompt, so later prompts still don't wait.
    fixture.handle(Input::Connected(SessionKey(3)));
    open(&mut fixture, 6, "d");
    assert_eq!(fixture.prompt(7, "d", &["hello"]).to_agent.len(), 1);
    // This time, the agent connects when the session is opened, so later sessions wait for it.
    open(&mut fixture, 8, "e");
    fixture.handle(Input::Connected(SessionKey(5)));
    open(&mut fixture, 9, "f");
    assert!(fixture.prompt(10, "f", &["hello"]).is_nothing());
}

/// The key is the agent's name and version, for later runs.
#[test]
fn connections_are_saved_by_agent() {
    let named = |fixture: &mut Fixture| {
        let info = json!({ "name": "agent", "version": "1.2" });
        fixture.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        fixture.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info }));
    };
    let policy = || Policy { mcp_wait: WAIT, ..Policy::default() };
    let mut fixture = Fixture::new(policy());
    named(&mut fixture);
    open(&mut fixture, 1, "a");
    fixture.timer_ends(KEY);
    open(&mut fixture, 2, "b");
    fixture.timer_ends(SessionKey(2));
    assert_eq!(fixture.host.agents, [("agent 1.2".to_owned(), false)]);
    fixture.handle(Input::Connected(KEY));
    assert_eq!(fixture.host.agents.len(), 1, "too late to count");
    open(&mut fixture, 3, "c");
    fixture.handle(Input::Connected(SessionKey(3)));
    assert_eq!(fixture.host.agents[1..], [("agent 1.2".to_owned(), true)]);

    // Start a new run using what was saved.
    let mut fixture = Fixture::new(policy());
    fixture.host.never_connects = true;
    named(&mut fixture);
    open(&mut fixture, 1, "a");
    assert_eq!(fixture.prompt(2, "a", &["hello"]).to_agent.len(), 1, "it is not waited for");
    fixture.timer_ends(KEY);
    assert!(fixture.host.agents.is_empty(), "nothing is new");

    // What this run has observed itself takes precedence.
    let mut fixture = Fixture::new(policy());
    named(&mut fixture);
    open(&mut fixture, 1, "a");
    fixture.handle(Input::Connected(KEY));
    fixture.host.never_connects = true;
    open(&mut fixture, 2, "b");
    assert!(fixture.prompt(3, "b", &["hello"]).is_nothing(), "it is waited for");

    // Don't save this for agents without a version, or if the user has configured the connect timeout.
    let long = Policy { mcp_connect: WAIT, ..policy() };
    for (policy, version) in [(policy(), json!(null)), (long, json!("1.2"))] {
        let mut fixture = Fixture::new(policy);
        let info = json!({ "name": "agent", "version": version });
        fixture.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        fixture.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info }));
        open(&mut fixture, 1, "a");
        fixture.timer_ends(KEY);
        assert!(fixture.host.agents.is_empty());
    }
}

#[test]
fn a_configured_connect_timeout_is_always_used() {
    let policy = Policy { mcp_wait: WAIT, mcp_connect: WAIT, ..Policy::default() };
    let mut fixture = Fixture::new(policy).initialized("x", &json!({}));
    for (request, id, key) in [(1, "a", 1), (2, "b", 2)] {
        assert_eq!(waits(&open(&mut fixture, request, id)), [2000]);
        assert!(waits(&fixture.timer_ends(SessionKey(key))).is_empty());
    }
}

/// Opening a session again restarts the timeout.
#[test]
fn an_older_timer_does_not_end_a_newer_wait() {
    let mut fixture = fixture();
    open(&mut fixture, 1, "s");
    fixture.request(2, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
    assert_eq!(waits(&fixture.respond(2, &json!({}))), [300]);
    assert!(fixture.prompt(3, "s", &["hello"]).is_nothing());
    assert!(fixture.timer_ends(KEY).is_silence());
    assert_eq!(fixture.timer_ends(KEY).to_agent.len(), 1);
}

/// Kimi Code gives a copy of a session the servers of the original, and ignores those in the request.
#[test]
fn a_copy_can_have_the_tools_already() {
    for (agent, waits_for) in [("Kimi Code CLI", false), ("x", true)] {
        let policy = Policy { mcp_wait: WAIT, ..Policy::default() };
        let mut fixture = Fixture::new(policy).initialized(agent, &json!({}));
        open(&mut fixture, 1, "s");
        fixture.handle(Input::ToolsListed(KEY));
        fixture.prompt(2, "s", &["hello"]);
        fixture.request(3, "session/fork", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
        assert_eq!(waits(&fixture.respond(3, &json!({ "sessionId": "copy" }))).len(), usize::from(waits_for));
        let out = fixture.prompt(4, "copy", &["and now"]);
        assert_eq!(out.is_nothing(), waits_for, "{agent}: {out:?}");
        if !waits_for {
            assert_eq!(texts(out.agent()), ["and now"], "what it was told is in the copy");
        }
    }
}

#[test]
fn sessions_do_not_wait_for_each_other() {
    let mut fixture = fixture();
    fixture.new_session(1, "a");
    fixture.new_session(2, "b");
    fixture.handle(Input::ToolsListed(SessionKey(2)));
    assert!(fixture.prompt(3, "a", &["hello"]).is_nothing());
    assert_eq!(fixture.prompt(4, "b", &["hello"]).to_agent.len(), 1);
}

#[test]
fn waiting_prompts_can_be_cancelled() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["hello"]);
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } });
    let out = fixture.client(&cancel);
    assert_eq!(out.client(), &json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": "cancelled" } }));
    assert!(out.to_agent.is_empty());
    assert!(fixture.handle(Input::ToolsListed(KEY)).is_nothing());
    // There is no held prompt to cancel here, so this should be sent to the agent.
    assert_eq!(fixture.client(&cancel).to_agent.len(), 1);
    // The first prompt was never sent, so the catalog should be in the next one.
    assert_eq!(texts(fixture.prompt(3, "s", &["again"]).agent()).len(), 2);
}

#[test]
fn waiting_requests_can_be_cancelled_by_id() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["hello"]);
    fixture.prompt(3, "s", &["second"]);
    let cancel =
        |id: u64| json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } });
    let out = fixture.client(&cancel(2));
    assert_eq!((&out.client()["id"], &out.client()["error"]["code"]), (&json!(2), &json!(-32800)));
    assert_eq!(fixture.client(&cancel(99)).to_agent.len(), 1);
    let out = fixture.handle(Input::ToolsListed(KEY));
    assert_eq!(texts(out.agent())[1], "second");
}

#[test]
fn cancelling_reaches_an_agent_that_works() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.handle(Input::ToolsListed(KEY));
    fixture.prompt(2, "s", &["hello"]);
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } });
    let out = fixture.client(&cancel);
    assert_eq!((out.to_agent.len(), out.to_client.len()), (1, 0));
}

/// An earlier run may have sent the catalog with paths, and this run with tools, or the other way round.
#[test]
fn the_catalog_is_recognized_in_either_form() {
    let stored = |name: &str| {
        let stored = skills_core::Stored::new(std::path::Path::new("/skills").join(name), "SKILL.md");
        Skill::new(SkillName::new(name).unwrap(), "Does things.", skills_core::Source::Stored(stored))
    };
    let set: SkillSet = [stored("review")].into_iter().collect();
    // For agents that may not pass the tools to the model, the catalog should also include the paths.
    for (agent, first_connects, connects, told) in [
        ("x", false, false, 1),
        ("x", true, true, 1),
        ("x", true, false, 1),
        ("x", false, true, 2),
        ("agentao", true, false, 2),
    ] {
        let listed = |fixture: &mut Fixture, connects: bool| {
            if connects { fixture.handle(Input::ToolsListed(KEY)) } else { fixture.timer_ends(KEY) }
        };
        let policy = Policy { mcp_wait: WAIT, ..Policy::default() };
        let mut fixture = Fixture::with_skills(policy.clone(), set.clone()).initialized(agent, &json!({}));
        fixture.new_session(1, "s");
        fixture.prompt(2, "s", &["hello"]);
        let prompt = listed(&mut fixture, first_connects);
        let catalog = texts(prompt.agent())[0].to_owned();
        let mut fixture = Fixture::with_skills(policy, set.clone()).initialized(agent, &json!({}));
        fixture.request(1, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
        let chunk = json!({ "type": "text", "text": catalog });
        fixture.update("s", &json!({ "sessionUpdate": "user_message_chunk", "content": chunk }));
        fixture.respond(1, &json!({}));
        let mut out = fixture.prompt(2, "s", &["hello"]);
        if out.to_agent.is_empty() {
            out = listed(&mut fixture, connects);
        }
        assert_eq!(texts(out.agent()).len(), told, "{agent} {first_connects} {connects}");
        if !first_connects && connects {
            assert!(texts(out.agent())[0].contains("are available now"), "one line, not the whole list");
        }
    }
}

#[test]
fn a_model_without_tools_gets_the_paths() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().join("stored");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("SKILL.md"), "---\nname: stored\ndescription: On disk.\n---\nDo it.\n").unwrap();
    let (stored, _) = skills_core::discovery::load_dir(&dir).unwrap();
    let mut set = SkillSet::builder();
    set.add(stored, Vec::new());
    set.extend(&skills(&["virtual"]));
    let policy = Policy { mcp_wait: WAIT, ..Policy::default() };
    let mut fixture = Fixture::with_skills(policy, set.build()).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["hello"]);
    let out = fixture.timer_ends(KEY);
    let catalog = texts(out.agent())[0];
    let file = dir.join("SKILL.md");
    assert!(catalog.contains(file.to_str().unwrap()), "{catalog}");
    assert!(catalog.contains("Should you have the tools") && !catalog.contains("virtual"), "{catalog}");
    // The next prompt is sent right away and without any additional text.
    assert_eq!(texts(fixture.prompt(3, "s", &["second"]).agent()), ["second"]);
    // After the agent has connected, the model gets a line about the tools.
    fixture.handle(Input::ToolsListed(KEY));
    let out = fixture.prompt(4, "s", &["third"]);
    let [news, "third"] = texts(out.agent())[..] else { panic!("{out:?}") };
    // A catalog of paths cannot include skills without files, so this one is listed here.
    assert!(news.contains("activate_skill") && news.contains("<name>virtual</name>"), "{news}");
    assert_eq!(texts(fixture.prompt(5, "s", &["fourth"]).agent()), ["fourth"]);
}

#[test]
fn hybrid_activation_falls_back_to_the_proxy() {
    let policy = Policy { mcp_wait: WAIT, activation: Activation::Hybrid, ..Policy::default() };
    let mut fixture = Fixture::new(policy).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["please review"]);
    let out = fixture.timer_ends(KEY);
    assert!(matches!(out.wanted(), Wanted::BestFor { guide: Guide::Files, .. }), "{out:?}");
    let ticket = out.ticket();
    let out = fixture.handle(Input::Fetched {
        session: KEY,
        ticket,
        fetched: Fetched { text: Some("BODY".to_owned()), ..Fetched::default() },
    });
    assert!(texts(out.agent()).iter().any(|text| text.contains("BODY")));
}

#[test]
fn held_prompts_are_sent_when_the_client_is_gone() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["hello"]);
    assert_eq!(fixture.handle(Input::ClientGone).to_agent.len(), 1);
}

#[test]
fn the_proxy_activates_for_agents_without_tools() {
    for (activation, mode, fetched) in [
        (Activation::Model, McpMode::Off, false),
        (Activation::Hybrid, McpMode::Off, true),
        (Activation::Hybrid, McpMode::Stdio, false),
        (Activation::Prompt, McpMode::Stdio, true),
    ] {
        let mut fixture =
            Fixture::new(Policy { activation, mcp: mode, ..policy() }).initialized("x", &json!({}));
        fixture.new_session(1, "s");
        let out = fixture.prompt(2, "s", &["please review"]);
        if !fetched {
            assert_eq!(out.to_agent.len(), 1, "{activation:?}");
            continue;
        }
        let guide = if mode == McpMode::Off { Guide::Files } else { Guide::Tools };
        let wanted = Wanted::BestFor { words: "please review".to_owned(), guide };
        assert_eq!(out.wanted(), &wanted);
        let ticket = out.ticket();
        assert!(fixture.prompt(3, "s", &["/command"]).is_nothing());
        let out = fixture.handle(Input::Fetched {
            session: KEY,
            ticket,
            fetched: Fetched { text: Some("BODY".to_owned()), ..Fetched::default() },
        });
        let first = texts(&out.to_agent[0]);
        assert!(
            first.iter().any(|text| text.contains("BODY")) && first.last() == Some(&"please review"),
            "{out:?}"
        );
        assert_eq!(texts(&out.to_agent[1]), ["/command"]);
    }
}
