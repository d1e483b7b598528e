//! Prompts that wait, and what happens when the agent does not connect.

use std::time::Duration;

use serde_json::json;

use super::*;

const WAIT: Duration = Duration::from_secs(2);

fn world() -> World {
    World::new(Policy { mcp_wait: WAIT, ..Policy::default() }).initialized("x", &json!({}))
}

const KEY: SessionKey = SessionKey(1);

#[test]
fn the_first_prompt_waits_for_the_tools() {
    let mut world = world();
    world.new_session(1, "s");
    let out = world.prompt(2, "s", &["hello"]);
    assert!(
        out.is_nothing() && out.tasks.is_empty(),
        "the time runs from the opening of the session: {out:?}"
    );
    // Everything else goes on, also in the same session.
    assert_eq!(world.request(3, "session/set_mode", &json!({ "sessionId": "s" })).to_agent.len(), 1);
    // A later prompt does not overtake it.
    assert!(world.prompt(4, "s", &["second"]).is_nothing());
    let out = world.handle(Input::ToolsListed(KEY));
    assert_eq!(out.to_agent.iter().map(|line| texts(line).len()).collect::<Vec<_>>(), [2, 1]);
    assert!(world.timer_ends(KEY).is_silence());
    assert_eq!(texts(world.prompt(5, "s", &["third"]).agent()), ["third"]);
}

/// The waits that something begins, in milliseconds.
fn waits(out: &Out) -> Vec<u128> {
    let wait = |task: &Task| match task {
        Task::ToolsTimer { time, .. } => Some(time.as_millis()),
        _ => None,
    };
    out.tasks.iter().filter_map(wait).collect()
}

/// Opens a session; returns what its answer led to.
fn open(world: &mut World, request: u64, id: &str) -> Out {
    world.request(request, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    world.respond(request, &json!({ "sessionId": id }))
}

#[test]
fn only_an_agent_that_has_connected_is_waited_for() {
    // What happens from the opening on, and what the agent is waited for in between.
    enum Step {
        Connects,
        TimeIsUp,
        Lists,
        Prompts,
    }
    use Step::{Connects, Lists, Prompts, TimeIsUp};
    for (steps, waited, sent, tools) in [
        (&[Prompts, TimeIsUp][..], &[300][..], 1, false),
        // The time is over before the user has written anything.
        (&[TimeIsUp, Prompts], &[300], 1, false),
        (&[Connects, Prompts, TimeIsUp], &[300, 1700], 0, false),
        (&[Connects, Prompts, TimeIsUp, Lists], &[300, 1700], 1, true),
        (&[Connects, Prompts, TimeIsUp, TimeIsUp], &[300, 1700], 1, false),
        (&[Prompts, Connects, Lists, TimeIsUp], &[300], 1, true),
        (&[TimeIsUp, Connects, Lists, Prompts], &[300], 1, true),
    ] {
        let mut world = world();
        let mut all = waits(&open(&mut world, 1, "s"));
        let mut said = Vec::new();
        for step in steps {
            let out = match step {
                Connects => world.handle(Input::Connected(KEY)),
                TimeIsUp => world.timer_ends(KEY),
                Lists => world.handle(Input::ToolsListed(KEY)),
                Prompts => world.prompt(2, "s", &["hello"]),
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
fn who_never_connects_is_not_waited_for_again() {
    let mut world = world();
    assert_eq!(waits(&open(&mut world, 1, "a")), [300]);
    world.timer_ends(KEY);
    open(&mut world, 2, "b");
    assert_eq!(world.prompt(3, "b", &["hello"]).to_agent.len(), 1);
    // When a tool is called, that says nothing of the next session.
    world.timer_ends(SessionKey(2));
    world.handle(Input::Connected(SessionKey(2)));
    open(&mut world, 4, "c");
    assert_eq!(world.prompt(5, "c", &["hello"]).to_agent.len(), 1);
    // Nor does it when it comes because of a prompt.
    world.handle(Input::Connected(SessionKey(3)));
    open(&mut world, 6, "d");
    assert_eq!(world.prompt(7, "d", &["hello"]).to_agent.len(), 1);
    // It connects after all, as soon as the session is open, so it may do so again.
    open(&mut world, 8, "e");
    world.handle(Input::Connected(SessionKey(5)));
    open(&mut world, 9, "f");
    assert!(world.prompt(10, "f", &["hello"]).is_nothing());
}

/// By name and version, for other runs.
#[test]
fn who_connects_is_remembered() {
    let named = |world: &mut World| {
        let info = json!({ "name": "agent", "version": "1.2" });
        world.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        world.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info }));
    };
    let policy = || Policy { mcp_wait: WAIT, ..Policy::default() };
    let mut world = World::new(policy());
    named(&mut world);
    open(&mut world, 1, "a");
    world.timer_ends(KEY);
    open(&mut world, 2, "b");
    world.timer_ends(SessionKey(2));
    assert_eq!(world.outside.agents, [("agent 1.2".to_owned(), false)]);
    world.handle(Input::Connected(KEY));
    assert_eq!(world.outside.agents.len(), 1, "too late to count");
    open(&mut world, 3, "c");
    world.handle(Input::Connected(SessionKey(3)));
    assert_eq!(world.outside.agents[1..], [("agent 1.2".to_owned(), true)]);

    // Another run.
    let mut world = World::new(policy());
    world.outside.never_connects = true;
    named(&mut world);
    open(&mut world, 1, "a");
    assert_eq!(world.prompt(2, "a", &["hello"]).to_agent.len(), 1, "it is not waited for");
    world.timer_ends(KEY);
    assert!(world.outside.agents.is_empty(), "nothing is new");

    // What this run has seen counts for more.
    let mut world = World::new(policy());
    named(&mut world);
    open(&mut world, 1, "a");
    world.handle(Input::Connected(KEY));
    world.outside.never_connects = true;
    open(&mut world, 2, "b");
    assert!(world.prompt(3, "b", &["hello"]).is_nothing(), "it is waited for");

    // An agent without a version may be another one tomorrow, and a time that the user named is waited anyway.
    let long = Policy { mcp_connect: WAIT, ..policy() };
    for (policy, version) in [(policy(), json!(null)), (long, json!("1.2"))] {
        let mut world = World::new(policy);
        let info = json!({ "name": "agent", "version": version });
        world.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        world.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info }));
        open(&mut world, 1, "a");
        world.timer_ends(KEY);
        assert!(world.outside.agents.is_empty());
    }
}

#[test]
fn a_time_that_the_user_named_is_waited() {
    let policy = Policy { mcp_wait: WAIT, mcp_connect: WAIT, ..Policy::default() };
    let mut world = World::new(policy).initialized("x", &json!({}));
    for (request, id, key) in [(1, "a", 1), (2, "b", 2)] {
        assert_eq!(waits(&open(&mut world, request, id)), [2000]);
        assert!(waits(&world.timer_ends(SessionKey(key))).is_empty());
    }
}

/// A session that is opened again has its time from then on.
#[test]
fn an_older_wait_does_not_end_a_newer_one() {
    let mut world = world();
    open(&mut world, 1, "s");
    world.request(2, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
    assert_eq!(waits(&world.respond(2, &json!({}))), [300]);
    assert!(world.prompt(3, "s", &["hello"]).is_nothing());
    assert!(world.timer_ends(KEY).is_silence());
    assert_eq!(world.timer_ends(KEY).to_agent.len(), 1);
}

/// Kimi Code gives a copy of a session the servers of that session, and connects to no other.
#[test]
fn a_copy_that_has_the_tools_already() {
    for (agent, waits_for) in [("Kimi Code CLI", false), ("x", true)] {
        let policy = Policy { mcp_wait: WAIT, ..Policy::default() };
        let mut world = World::new(policy).initialized(agent, &json!({}));
        open(&mut world, 1, "s");
        world.handle(Input::ToolsListed(KEY));
        world.prompt(2, "s", &["hello"]);
        world.request(3, "session/fork", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
        assert_eq!(waits(&world.respond(3, &json!({ "sessionId": "copy" }))).len(), usize::from(waits_for));
        let out = world.prompt(4, "copy", &["and now"]);
        assert_eq!(out.is_nothing(), waits_for, "{agent}: {out:?}");
        if !waits_for {
            assert_eq!(texts(out.agent()), ["and now"], "what it was told is in the copy");
        }
    }
}

/// An agent may take our server and fail on it with every prompt.
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
        // It has been at our server, so that is not what fails.
        (failure, true, HTTP),
        ("the model is overloaded", false, HTTP),
    ] {
        let mut world = World::new(policy()).initialized("x", &with_http);
        assert_eq!(transport(&world.new_session(1, "a")).as_deref(), Some(HTTP));
        if connects {
            world.handle(Input::Connected(KEY));
        }
        world.prompt(2, "a", &["hello"]);
        let error = json!({ "code": -32603, "message": message });
        let out = world.agent(&json!({ "jsonrpc": "2.0", "id": 2, "error": error }));
        assert_eq!(out.client()["error"], error, "the client learns of it");
        assert_eq!(transport(&world.new_session(3, "b")).as_deref(), Some(next), "{message}");
        if next == HTTP {
            continue;
        }
        // And when that does not work either, none.
        world.prompt(4, "b", &["hello"]);
        world.agent(&json!({ "jsonrpc": "2.0", "id": 4, "error": error }));
        assert_eq!(transport(&world.new_session(5, "c")), None);
    }
    // Known beforehand.
    let mut world = World::new(policy()).initialized("OpenHands CLI ACP Agent", &with_http);
    assert_eq!(transport(&world.new_session(1, "a")).as_deref(), Some("stdio"));
    // What the user wants is done.
    let http = Policy { mcp: McpMode::Http, ..policy() };
    let mut world = World::new(http).initialized("OpenHands CLI ACP Agent", &with_http);
    assert_eq!(transport(&world.new_session(1, "a")).as_deref(), Some(HTTP));
}

#[test]
fn sessions_do_not_wait_for_each_other() {
    let mut world = world();
    world.new_session(1, "a");
    world.new_session(2, "b");
    world.handle(Input::ToolsListed(SessionKey(2)));
    assert!(world.prompt(3, "a", &["hello"]).is_nothing());
    assert_eq!(world.prompt(4, "b", &["hello"]).to_agent.len(), 1);
}

#[test]
fn waiting_prompts_can_be_cancelled() {
    let mut world = world();
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } });
    let out = world.client(&cancel);
    assert_eq!(out.client(), &json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": "cancelled" } }));
    assert!(out.to_agent.is_empty());
    assert!(world.handle(Input::ToolsListed(KEY)).is_nothing());
    // Nothing waits any more: it is the agent's.
    assert_eq!(world.client(&cancel).to_agent.len(), 1);
    // It was never sent, so the next one carries the catalog.
    assert_eq!(texts(world.prompt(3, "s", &["again"]).agent()).len(), 2);
}

#[test]
fn waiting_requests_can_be_cancelled_by_id() {
    let mut world = world();
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    world.prompt(3, "s", &["second"]);
    let cancel =
        |id: u64| json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } });
    let out = world.client(&cancel(2));
    assert_eq!((&out.client()["id"], &out.client()["error"]["code"]), (&json!(2), &json!(-32800)));
    assert_eq!(world.client(&cancel(99)).to_agent.len(), 1);
    let out = world.handle(Input::ToolsListed(KEY));
    assert_eq!(texts(out.agent())[1], "second");
}

#[test]
fn cancelling_reaches_an_agent_that_works() {
    let mut world = world();
    world.new_session(1, "s");
    world.handle(Input::ToolsListed(KEY));
    world.prompt(2, "s", &["hello"]);
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } });
    let out = world.client(&cancel);
    assert_eq!((out.to_agent.len(), out.to_client.len()), (1, 0));
}

/// What an earlier run told with files is not told again because this one hopes for tools, and the other way round.
#[test]
fn what_was_told_in_another_way_is_known() {
    let stored = |name: &str| {
        let stored = skills_core::Stored::new(std::path::Path::new("/skills").join(name), "SKILL.md");
        Skill::new(SkillName::new(name).unwrap(), "Does things.", skills_core::Source::Stored(stored))
    };
    let set: SkillSet = [stored("review")].into_iter().collect();
    // An agent that is not known to pass tools on was told with the tools what to do without them.
    for (agent, first_connects, connects, told) in [
        ("x", false, false, 1),
        ("x", true, true, 1),
        ("x", true, false, 1),
        ("x", false, true, 2),
        ("agentao", true, false, 2),
    ] {
        let listed = |world: &mut World, connects: bool| {
            if connects { world.handle(Input::ToolsListed(KEY)) } else { world.timer_ends(KEY) }
        };
        let policy = Policy { mcp_wait: WAIT, ..Policy::default() };
        let mut world = World::with_skills(policy.clone(), set.clone()).initialized(agent, &json!({}));
        world.new_session(1, "s");
        world.prompt(2, "s", &["hello"]);
        let prompt = listed(&mut world, first_connects);
        let catalog = texts(prompt.agent())[0].to_owned();
        let mut world = World::with_skills(policy, set.clone()).initialized(agent, &json!({}));
        world.request(1, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
        let chunk = json!({ "type": "text", "text": catalog });
        world.update("s", &json!({ "sessionUpdate": "user_message_chunk", "content": chunk }));
        world.respond(1, &json!({}));
        let mut out = world.prompt(2, "s", &["hello"]);
        if out.to_agent.is_empty() {
            out = listed(&mut world, connects);
        }
        assert_eq!(texts(out.agent()).len(), told, "{agent} {first_connects} {connects}");
        if !first_connects && connects {
            assert!(texts(out.agent())[0].contains("are available now"), "one line, not the whole list");
        }
    }
}

#[test]
fn an_agent_that_does_not_connect_is_told_about_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().join("stored");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("SKILL.md"), "---\nname: stored\ndescription: On disk.\n---\nDo it.\n").unwrap();
    let (stored, _) = skills_core::discovery::load_dir(&dir).unwrap();
    let mut set = SkillSet::builder();
    set.add(stored, Vec::new());
    set.extend(&skills(&["virtual"]));
    let policy = Policy { mcp_wait: WAIT, ..Policy::default() };
    let mut world = World::with_skills(policy, set.build()).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    let out = world.timer_ends(KEY);
    let catalog = texts(out.agent())[0];
    let file = dir.join("SKILL.md");
    assert!(catalog.contains(file.to_str().unwrap()), "{catalog}");
    assert!(catalog.contains("Should you have the tools") && !catalog.contains("virtual"), "{catalog}");
    // Not again, and no more waiting.
    assert_eq!(texts(world.prompt(3, "s", &["second"]).agent()), ["second"]);
    // It connects after all: said once.
    world.handle(Input::ToolsListed(KEY));
    let out = world.prompt(4, "s", &["third"]);
    let [news, "third"] = texts(out.agent())[..] else { panic!("{out:?}") };
    // A skill without files was not in the list.
    assert!(news.contains("activate_skill") && news.contains("<name>virtual</name>"), "{news}");
    assert_eq!(texts(world.prompt(5, "s", &["fourth"]).agent()), ["fourth"]);
}

/// A client may send a prompt before its session is open, and the agent may refuse our server then.
#[test]
fn a_prompt_that_waits_for_a_refused_entry_goes_on() {
    let mut world = world();
    world.request(1, "session/resume", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
    assert!(world.prompt(2, "s", &["hello"]).to_agent.is_empty());
    let again = world.refuse(1, -32602);
    assert_eq!(again.agent()["params"]["mcpServers"], json!([]));
    let out = world.respond(1, &json!({}));
    assert_eq!(texts(out.agent()).last(), Some(&"hello"), "{out:?}");
    // Also when the session is not answered.
    world.request(3, "session/resume", &json!({ "sessionId": "t", "cwd": "/project", "mcpServers": [] }));
    assert!(world.prompt(4, "t", &["hello"]).to_agent.is_empty());
    world.refuse(3, -32602);
    let out = world.timer_ends(SessionKey(2));
    assert_eq!(texts(out.agent()).last(), Some(&"hello"), "{out:?}");
}

#[test]
fn a_refused_entry_is_taken_back_once() {
    for method in ["session/new", "session/load"] {
        let mut world = world();
        let params = json!({ "cwd": "/p", "sessionId": "s", "mcpServers": [{ "name": "theirs" }] });
        world.request(1, method, &params);
        let out = world.refuse(1, -32602);
        assert!(out.to_client.is_empty(), "{method}");
        assert_eq!(out.agent()["params"]["mcpServers"], json!([{ "name": "theirs" }]), "{method}");
        assert_eq!(world.outside.closed, [KEY], "{method}");
        world.respond(1, &json!({ "sessionId": "s" }));
        // There is nothing to wait for.
        assert_eq!(world.prompt(2, "s", &["hello"]).to_agent.len(), 1, "{method}");
    }
}

#[test]
fn a_session_that_fails_anyway_fails_for_the_client() {
    let mut world = world();
    world.request(1, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
    world.refuse(1, -32603);
    let out = world.refuse(1, -32603);
    assert_eq!(out.client()["error"]["code"], -32603);
    assert_eq!(world.sessions(), 0);
}

#[test]
fn what_is_not_about_our_server_is_not_tried_again() {
    let answers = [json!({ "error": { "code": -32800, "message": "cancelled" } }), json!({})];
    for mut answer in answers {
        let mut world = world();
        world.request(1, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = 1.into();
        let out = world.agent(&answer);
        assert_eq!((out.to_agent.len(), out.to_client.len()), (0, 1), "{answer}");
        assert_eq!(world.sessions(), 0, "{answer}");
    }
}

#[test]
fn a_load_that_fails_leaves_a_session_that_works() {
    let mut world = world();
    world.new_session(1, "s");
    world.handle(Input::ToolsListed(KEY));
    world.prompt(2, "s", &["hello"]);
    world.request(3, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
    let out = world.refuse(3, -32603);
    assert_eq!((out.to_agent.len(), out.client()["id"].clone()), (0, json!(3)));
    assert!(world.outside.closed.is_empty());
    assert_eq!(texts(world.prompt(4, "s", &["again"]).agent()), ["again"]);
}

#[test]
fn prompts_that_wait_are_answered_when_their_session_ends() {
    let mut world = world();
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    world.request(3, "session/close", &json!({ "sessionId": "s" }));
    let out = world.respond(3, &json!({}));
    let ids: Vec<_> = out.to_client.iter().map(|line| line["id"].clone()).collect();
    assert_eq!(
        (ids, &out.to_client[0]["result"]["stopReason"]),
        (vec![json!(2), json!(3)], &json!("cancelled"))
    );
    assert!(world.gone().is_empty());
}

#[test]
fn hybrid_activation_begins_when_the_tools_do_not_come() {
    let policy = Policy { mcp_wait: WAIT, activation: Activation::Hybrid, ..Policy::default() };
    let mut world = World::new(policy).initialized("x", &json!({}));
    world.new_session(1, "s");
    world.prompt(2, "s", &["please review"]);
    let out = world.timer_ends(KEY);
    assert!(matches!(out.wanted(), Wanted::BestFor(_)), "{out:?}");
    let ticket = out.ticket();
    let out = world.handle(Input::Fetched {
        session: KEY,
        ticket,
        fetched: Fetched { text: Some("BODY".to_owned()), activations: Vec::new() },
    });
    assert!(texts(out.agent()).iter().any(|text| text.contains("BODY")));
}

#[test]
fn logging_in_comes_first() {
    let mut world = world();
    world.request(1, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
    assert_eq!(world.refuse(1, -32000).client()["error"]["code"], -32000);
    assert_eq!((world.sessions(), world.outside.closed.len()), (0, 1));
    world.request(2, "authenticate", &json!({ "methodId": "x" }));
    world.respond(2, &json!({}));
    let new = world.new_session(3, "s");
    assert_eq!(new["params"]["mcpServers"].as_array().unwrap().len(), 1);
}

#[test]
fn a_client_that_leaves_leaves_its_prompts() {
    let mut world = world();
    world.new_session(1, "s");
    world.prompt(2, "s", &["hello"]);
    assert_eq!(world.handle(Input::ClientGone).to_agent.len(), 1);
}

#[test]
fn the_proxy_activates_for_agents_without_tools() {
    for (activation, mode, fetched) in [
        (Activation::Model, McpMode::Off, false),
        (Activation::Hybrid, McpMode::Off, true),
        (Activation::Hybrid, McpMode::Stdio, false),
        (Activation::Prompt, McpMode::Stdio, true),
    ] {
        let mut world = World::new(Policy { activation, mcp: mode, ..policy() }).initialized("x", &json!({}));
        world.new_session(1, "s");
        let out = world.prompt(2, "s", &["please review"]);
        if !fetched {
            assert_eq!(out.to_agent.len(), 1, "{activation:?}");
            continue;
        }
        let wanted = Wanted::BestFor("please review".to_owned());
        assert_eq!(out.wanted(), &wanted);
        let ticket = out.ticket();
        assert!(world.prompt(3, "s", &["/command"]).is_nothing());
        let out = world.handle(Input::Fetched {
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
