//! Prompts that wait for our tools, and agents that do not connect or refuse our server.

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
    // Other messages are not delayed, even in the same session.
    assert_eq!(fixture.request(3, "session/set_mode", &json!({ "sessionId": "s" })).to_agent.len(), 1);
    // A later prompt does not overtake it.
    assert!(fixture.prompt(4, "s", &["second"]).is_nothing());
    let out = fixture.handle(Input::ToolsListed(KEY));
    assert_eq!(out.to_agent.iter().map(|line| texts(line).len()).collect::<Vec<_>>(), [2, 1]);
    assert!(fixture.timer_ends(KEY).is_silence());
    assert_eq!(texts(fixture.prompt(5, "s", &["third"]).agent()), ["third"]);
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
    // The steps after the session was opened.
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
    // A connection for a tool call does not count.
    fixture.timer_ends(SessionKey(2));
    fixture.handle(Input::Connected(SessionKey(2)));
    open(&mut fixture, 4, "c");
    assert_eq!(fixture.prompt(5, "c", &["hello"]).to_agent.len(), 1);
    // A connection because of a prompt does not count either.
    fixture.handle(Input::Connected(SessionKey(3)));
    open(&mut fixture, 6, "d");
    assert_eq!(fixture.prompt(7, "d", &["hello"]).to_agent.len(), 1);
    // The agent connects when the session opens, so later sessions wait again.
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

    // A later run.
    let mut fixture = Fixture::new(policy());
    fixture.host.never_connects = true;
    named(&mut fixture);
    open(&mut fixture, 1, "a");
    assert_eq!(fixture.prompt(2, "a", &["hello"]).to_agent.len(), 1, "it is not waited for");
    fixture.timer_ends(KEY);
    assert!(fixture.host.agents.is_empty(), "nothing is new");

    // Observations of this run take precedence.
    let mut fixture = Fixture::new(policy());
    named(&mut fixture);
    open(&mut fixture, 1, "a");
    fixture.handle(Input::Connected(KEY));
    fixture.host.never_connects = true;
    open(&mut fixture, 2, "b");
    assert!(fixture.prompt(3, "b", &["hello"]).is_nothing(), "it is waited for");

    // Nothing is saved for an agent without a version, or if the user has configured the connect timeout.
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

/// Some agents accept our server, and fail on it with every prompt.
#[test]
fn a_transport_that_fails_is_not_used_again() {
    const HTTP: &str = "http";
    let with_http = json!({ "mcpCapabilities": { "http": true } });
    let transport = |request: &serde_json::Value| {
        let servers = request["params"]["mcpServers"].as_array().unwrap();
        servers
            .first()
            .map(|ours| ours.get("type").map_or("stdio".to_owned(), |kind| kind.as_str().unwrap().to_owned()))
    };
    let failure = "6 validation errors for MCPConfig mcpServers.acp-skills.RemoteMCPServer.headers";
    for (message, connects, next) in [
        (failure, false, "stdio"),
        // The agent has connected to our server, so the server is not the reason.
        (failure, true, HTTP),
        ("the model is overloaded", false, HTTP),
    ] {
        let mut fixture = Fixture::new(policy()).initialized("x", &with_http);
        assert_eq!(transport(&fixture.new_session(1, "a")).as_deref(), Some(HTTP));
        if connects {
            fixture.handle(Input::Connected(KEY));
        }
        fixture.prompt(2, "a", &["hello"]);
        let error = json!({ "code": -32603, "message": message });
        let out = fixture.agent(&json!({ "jsonrpc": "2.0", "id": 2, "error": error }));
        assert_eq!(out.client()["error"], error, "the client learns of it");
        assert_eq!(transport(&fixture.new_session(3, "b")).as_deref(), Some(next), "{message}");
        if next == HTTP {
            continue;
        }
        // If the second transport fails too, the agent gets no server.
        fixture.prompt(4, "b", &["hello"]);
        fixture.agent(&json!({ "jsonrpc": "2.0", "id": 4, "error": error }));
        assert_eq!(transport(&fixture.new_session(5, "c")), None);
    }
    // An agent that is known to fail.
    let mut fixture = Fixture::new(policy()).initialized("OpenHands CLI ACP Agent", &with_http);
    assert_eq!(transport(&fixture.new_session(1, "a")).as_deref(), Some("stdio"));
    // A transport that the user has configured is always used.
    let http = Policy { mcp: McpMode::Http, ..policy() };
    let mut fixture = Fixture::new(http).initialized("OpenHands CLI ACP Agent", &with_http);
    assert_eq!(transport(&fixture.new_session(1, "a")).as_deref(), Some(HTTP));
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
    // Without a held prompt, the cancellation goes to the agent.
    assert_eq!(fixture.client(&cancel).to_agent.len(), 1);
    // The first prompt was never sent, so the next one has the catalog.
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
    // The catalog for an agent that may not pass tools to the model has the paths too.
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
    // The next prompt has no text and does not wait.
    assert_eq!(texts(fixture.prompt(3, "s", &["second"]).agent()), ["second"]);
    // The agent connects later: the model gets one line.
    fixture.handle(Input::ToolsListed(KEY));
    let out = fixture.prompt(4, "s", &["third"]);
    let [news, "third"] = texts(out.agent())[..] else { panic!("{out:?}") };
    // The catalog with paths had no skills without files.
    assert!(news.contains("activate_skill") && news.contains("<name>virtual</name>"), "{news}");
    assert_eq!(texts(fixture.prompt(5, "s", &["fourth"]).agent()), ["fourth"]);
}

/// A client can send a prompt before its session is open, and then the agent can refuse our server.
#[test]
fn a_prompt_goes_on_if_the_agent_refuses_our_server() {
    let mut fixture = fixture();
    fixture.request(1, "session/resume", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
    assert!(fixture.prompt(2, "s", &["hello"]).to_agent.is_empty());
    let again = fixture.refuse(1, -32602);
    assert_eq!(again.agent()["params"]["mcpServers"], json!([]));
    let out = fixture.respond(1, &json!({}));
    assert_eq!(texts(out.agent()).last(), Some(&"hello"), "{out:?}");
    // The timer also ends the wait if the request is not answered.
    fixture.request(3, "session/resume", &json!({ "sessionId": "t", "cwd": "/project", "mcpServers": [] }));
    assert!(fixture.prompt(4, "t", &["hello"]).to_agent.is_empty());
    fixture.refuse(3, -32602);
    let out = fixture.timer_ends(SessionKey(2));
    assert_eq!(texts(out.agent()).last(), Some(&"hello"), "{out:?}");
}

#[test]
fn a_refused_request_is_retried_without_our_server() {
    for method in ["session/new", "session/load"] {
        let mut fixture = fixture();
        let params = json!({ "cwd": "/p", "sessionId": "s", "mcpServers": [{ "name": "theirs" }] });
        fixture.request(1, method, &params);
        let out = fixture.refuse(1, -32602);
        assert!(out.to_client.is_empty(), "{method}");
        assert_eq!(out.agent()["params"]["mcpServers"], json!([{ "name": "theirs" }]), "{method}");
        assert_eq!(fixture.host.closed, [KEY], "{method}");
        fixture.respond(1, &json!({ "sessionId": "s" }));
        // Prompts do not wait.
        assert_eq!(fixture.prompt(2, "s", &["hello"]).to_agent.len(), 1, "{method}");
    }
}

#[test]
fn a_second_refusal_goes_to_the_client() {
    let mut fixture = fixture();
    fixture.request(1, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
    fixture.refuse(1, -32603);
    let out = fixture.refuse(1, -32603);
    assert_eq!(out.client()["error"]["code"], -32603);
    assert_eq!(fixture.sessions(), 0);
}

#[test]
fn other_errors_are_not_retried() {
    let answers = [json!({ "error": { "code": -32800, "message": "cancelled" } }), json!({})];
    for mut answer in answers {
        let mut fixture = fixture();
        fixture.request(1, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = 1.into();
        let out = fixture.agent(&answer);
        assert_eq!((out.to_agent.len(), out.to_client.len()), (0, 1), "{answer}");
        assert_eq!(fixture.sessions(), 0, "{answer}");
    }
}

#[test]
fn a_failed_load_does_not_break_the_session() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.handle(Input::ToolsListed(KEY));
    fixture.prompt(2, "s", &["hello"]);
    fixture.request(3, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
    let out = fixture.refuse(3, -32603);
    assert_eq!((out.to_agent.len(), out.client()["id"].clone()), (0, json!(3)));
    assert!(fixture.host.closed.is_empty());
    assert_eq!(texts(fixture.prompt(4, "s", &["again"]).agent()), ["again"]);
}

#[test]
fn held_prompts_are_cancelled_when_their_session_is_closed() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["hello"]);
    fixture.request(3, "session/close", &json!({ "sessionId": "s" }));
    let out = fixture.respond(3, &json!({}));
    let ids: Vec<_> = out.to_client.iter().map(|line| line["id"].clone()).collect();
    assert_eq!(
        (ids, &out.to_client[0]["result"]["stopReason"]),
        (vec![json!(2), json!(3)], &json!("cancelled"))
    );
    assert!(fixture.gone().is_empty());
}

#[test]
fn hybrid_activation_falls_back_to_the_proxy() {
    let policy = Policy { mcp_wait: WAIT, activation: Activation::Hybrid, ..Policy::default() };
    let mut fixture = Fixture::new(policy).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["please review"]);
    let out = fixture.timer_ends(KEY);
    assert!(matches!(out.wanted(), Wanted::BestFor(_)), "{out:?}");
    let ticket = out.ticket();
    let out = fixture.handle(Input::Fetched {
        session: KEY,
        ticket,
        fetched: Fetched { text: Some("BODY".to_owned()), activations: Vec::new() },
    });
    assert!(texts(out.agent()).iter().any(|text| text.contains("BODY")));
}

#[test]
fn a_missing_login_is_not_retried() {
    let mut fixture = fixture();
    fixture.request(1, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
    assert_eq!(fixture.refuse(1, -32000).client()["error"]["code"], -32000);
    assert_eq!((fixture.sessions(), fixture.host.closed.len()), (0, 1));
    fixture.request(2, "authenticate", &json!({ "methodId": "x" }));
    fixture.respond(2, &json!({}));
    let new = fixture.new_session(3, "s");
    assert_eq!(new["params"]["mcpServers"].as_array().unwrap().len(), 1);
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
        let wanted = Wanted::BestFor("please review".to_owned());
        assert_eq!(out.wanted(), &wanted);
        let ticket = out.ticket();
        assert!(fixture.prompt(3, "s", &["/command"]).is_nothing());
        let out = fixture.handle(Input::Fetched {
            session: KEY,
            ticket,
            fetched: Fetched { text: Some("BODY".to_owned()), activations: Vec::new() },
        });
        let first = texts(&out.to_agent[0]);
        assert!(
            first.iter().any(|text| text.contains("BODY")) && first.last() == Some(&"please review"),
            "{out:?}"
        );
        assert_eq!(texts(&out.to_agent[1]), ["/command"]);
    }
}
