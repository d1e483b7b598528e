//! Requests for permission, as real agents send them.

use serde_json::{Value, json};
use skills_core::Properties;

use super::*;

const CLAUDE: &str = "@agentclientprotocol/claude-agent-acp";
const CODEX: &str = "@agentclientprotocol/codex-acp";

fn world(agent: &str, policy: Policy) -> World {
    let skill = |name: &str, allowed: &[&str]| {
        let mut properties = Properties::default();
        properties.allowed_tools = allowed.iter().map(|&it| it.to_owned()).collect();
        Skill::builder(name, "x").body("x").properties(properties).build().unwrap()
    };
    let set = [
        skill("git", &["Bash(git status:*)", "Read"]),
        skill("vague", &["Bash(git:*)"]),
        skill("notes", &["Edit(notes/**)"]),
        skill("free", &[]),
    ];
    let mut world = World::with_skills(policy, set.into_iter().collect()).initialized(agent, &json!({}));
    world.new_session(1, "s");
    world
}

fn ask(world: &mut World, call: &Value, meta: Option<Value>) -> Out {
    let mut params = json!({
        "sessionId": "s",
        "toolCall": call,
        "options": [
            { "optionId": "always", "name": "Always Allow", "kind": "allow_always" },
            { "optionId": "proceed_once", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ],
    });
    if let Some(meta) = meta {
        params["_meta"] = meta;
    }
    world.agent(
        &json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params }),
    )
}

/// What became of a request.
fn outcome(out: &Out) -> &str {
    match (&out.to_client[..], &out.to_agent[..]) {
        ([_], []) => "asked",
        // The client may have to be told of the call.
        (told, [answer]) if told.iter().all(|it| it["params"]["update"]["sessionUpdate"] == "tool_call") => {
            assert_eq!(answer["id"], 7);
            assert_eq!(answer["result"]["outcome"]["outcome"], "selected");
            answer["result"]["outcome"]["optionId"].as_str().unwrap()
        }
        _ => panic!("{out:?}"),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of calls")]
fn our_own_calls() {
    let claude = |tool: &str| {
        let name = format!("mcp__acp-skills__{tool}");
        let input = match tool {
            "read_skill_file" => json!({ "skill": "git", "path": "a.md" }),
            "search_skills" => json!({ "query": "words" }),
            _ => json!({ "name": "git" }),
        };
        json!({
            "toolCallId": "toolu_1", "title": name, "name": name, "kind": "other",
            "rawInput": input, "_meta": { "claudeCode": { "toolName": name } },
        })
    };
    let codex = |title: &str| json!({ "toolCallId": "call_1", "title": title, "kind": "execute", "status": "pending" });
    let gemini = |function: &str, server: &str| {
        json!({
            "toolCallId": format!("{function}__{function}_1795307132527_0"), "status": "pending", "kind": "other",
            "title": format!("activate_skill ({server} MCP Server)"), "locations": [],
            "content": [{ "type": "content", "content": { "type": "text", "text": "{\"name\":\"git\"}" } }],
        })
    };
    let open_code = |title: &str, kind: &str, input: Value| {
        json!({
            "toolCallId": "call_1", "title": title, "kind": kind, "status": "pending", "locations": [],
            "rawInput": input,
        })
    };
    let qwen = |name: &str, kind: &str| {
        json!({
            "toolCallId": "call_1", "title": "{\"name\":\"git\"}", "kind": kind, "status": "pending", "content": [],
            "locations": [], "rawInput": { "name": "git" }, "_meta": { "toolName": name },
        })
    };
    let fast_agent = |title: &str, kind: &str| {
        json!({
            "toolCallId": "1", "title": title, "kind": kind, "status": "pending", "rawInput": { "name": "git" },
        })
    };
    let approval = || Some(json!({ "is_mcp_tool_approval": true }));
    let mut mixed = claude("activate_skill");
    mixed["_meta"]["claudeCode"]["toolName"] = json!("Bash");
    let mut only_meta = claude("activate_skill");
    only_meta.as_object_mut().unwrap().remove("name");
    let mut only_name = claude("activate_skill");
    only_name.as_object_mut().unwrap().remove("_meta");
    let with = |key: &str, value: Value| {
        let mut call = claude("activate_skill");
        call[key] = value;
        call
    };
    let titled = json!({ "toolCallId": "1", "title": "mcp__acp-skills__activate_skill", "kind": "other" });
    for (agent, call, meta, expected) in [
        (CLAUDE, claude("activate_skill"), None, "proceed_once"),
        (CLAUDE, claude("read_skill_file"), None, "proceed_once"),
        (CLAUDE, claude("search_skills"), None, "proceed_once"),
        (CLAUDE, claude("call_skill_tool"), None, "asked"),
        (CLAUDE, claude("run_skill_script"), None, "asked"),
        (CLAUDE, claude("something_else"), None, "asked"),
        (CLAUDE, only_meta, None, "proceed_once"),
        (CLAUDE, only_name, None, "proceed_once"),
        // What changes or runs something, or takes something else, is not ours whatever its name.
        (CLAUDE, with("kind", json!("execute")), None, "asked"),
        (CLAUDE, with("kind", json!("delete")), None, "asked"),
        (CLAUDE, with("kind", json!("read")), None, "proceed_once"),
        (CLAUDE, with("rawInput", json!({ "command": "rm -rf ~" })), None, "asked"),
        (CLAUDE, with("rawInput", json!({ "name": "git", "command": "rm" })), None, "asked"),
        (CLAUDE, with("rawInput", json!("rm -rf ~")), None, "asked"),
        (CLAUDE, with("rawInput", json!({})), None, "proceed_once"),
        (CLAUDE, with("rawInput", Value::Null), None, "proceed_once"),
        // Two names that differ, a title alone, the name of another server.
        (CLAUDE, mixed, None, "asked"),
        (CLAUDE, titled.clone(), None, "asked"),
        (CLAUDE, json!({ "toolCallId": "1", "name": "mcp__acp-skills-2__activate_skill" }), None, "asked"),
        (CLAUDE, json!({ "toolCallId": "1", "name": "activate_skill" }), None, "asked"),
        (CODEX, codex("mcp.acp-skills.activate_skill"), approval(), "proceed_once"),
        (CODEX, codex("mcp.acp-skills.call_skill_tool"), approval(), "asked"),
        (CODEX, codex("mcp.other.activate_skill"), approval(), "asked"),
        // A command may have any title.
        (CODEX, codex("mcp.acp-skills.activate_skill"), None, "asked"),
        (
            CODEX,
            codex("mcp.acp-skills.activate_skill"),
            Some(json!({ "is_mcp_tool_approval": false })),
            "asked",
        ),
        ("claude-look-alike", claude("activate_skill"), None, "asked"),
        ("other", codex("mcp.acp-skills.activate_skill"), approval(), "asked"),
        // Gemini begins the id with the function's name; a title or an id alone is not enough.
        ("gemini-cli", gemini("mcp_acp-skills_activate_skill", "acp-skills"), None, "proceed_once"),
        ("gemini-cli", gemini("mcp_acp-skills_call_skill_tool", "acp-skills"), None, "asked"),
        ("gemini-cli", gemini("activate_skill", "acp-skills"), None, "asked"),
        ("gemini-cli", gemini("mcp_acp-skills_activate_skill", "acp-skills_activate"), None, "asked"),
        ("gemini-cli", gemini("mcp_other_activate_skill", "other"), None, "asked"),
        ("other", gemini("mcp_acp-skills_activate_skill", "acp-skills"), None, "asked"),
        // fast-agent: server and tool are the title, and nothing else is.
        ("fast-agent-acp", fast_agent("acp-skills/activate_skill", "other"), None, "proceed_once"),
        ("fast-agent-acp", fast_agent("acp-skills/read_skill_file", "other"), None, "asked"),
        ("fast-agent-acp", fast_agent("acp-skills/call_skill_tool", "other"), None, "asked"),
        ("fast-agent-acp", fast_agent("acp-skills-2/activate_skill", "other"), None, "asked"),
        ("fast-agent-acp", fast_agent("acp-skills/activate_skill", "execute"), None, "asked"),
        ("fast", fast_agent("acp-skills/activate_skill", "other"), None, "asked"),
        (
            "fast-agent-acp",
            json!({
                "toolCallId": "1", "title": "acp-skills/activate_skill(name=git)", "kind": "other",
                "rawInput": { "name": "git" }, "status": "pending",
            }),
            None,
            "asked",
        ),
        // OpenCode makes the tool's name the title, and gives no input.
        ("OpenCode", open_code("acp-skills_activate_skill", "other", json!({})), None, "proceed_once"),
        ("OpenCode", open_code("acp-skills_read_skill_file", "other", json!({})), None, "proceed_once"),
        ("OpenCode", open_code("acp-skills_call_skill_tool", "other", json!({})), None, "asked"),
        ("OpenCode", open_code("acp-skills-2_activate_skill", "other", json!({})), None, "asked"),
        ("OpenCode", open_code("acp-skills_activate_skill", "execute", json!({})), None, "asked"),
        (
            "OpenCode",
            open_code("acp-skills_activate_skill", "other", json!({ "command": "rm" })),
            None,
            "asked",
        ),
        ("opencode-look-alike", open_code("acp-skills_activate_skill", "other", json!({})), None, "asked"),
        ("qwen-code", qwen("mcp__acp-skills__activate_skill", "read"), None, "proceed_once"),
        ("qwen-code", qwen("mcp__other__activate_skill", "read"), None, "asked"),
        ("qwen-code", qwen("run_shell_command", "execute"), None, "asked"),
        ("qwen-code", qwen("mcp__acp-skills__activate_skill", "execute"), None, "asked"),
    ] {
        let mut world = world(agent, policy());
        let out = ask(&mut world, &call, meta.clone());
        assert_eq!(outcome(&out), expected, "{agent}: {call} {meta:?}");
        let mut world = self::world(agent, Policy { approve: Approve::None, ..policy() });
        assert_eq!(outcome(&ask(&mut world, &call, meta)), "asked", "{agent}: {call}");
    }
}

/// The adapter of before names the tool when it announces a call, and only shows a title when it asks.
#[test]
fn a_request_without_a_name_is_about_the_call_that_was_announced() {
    const NAME: &str = "mcp__acp-skills__activate_skill";
    let input = json!({ "name": "git" });
    let rm = json!({ "command": "rm -rf ~" });
    for (announced, id, asked_with, title, expected) in [
        (Some(NAME), "t1", &input, NAME, "proceed_once"),
        // Not announced, another call, or announced as something else: a title is for people.
        (None, "t1", &input, NAME, "asked"),
        (Some(NAME), "t2", &input, NAME, "asked"),
        (Some("Bash"), "t1", &input, NAME, "asked"),
        (Some("Task"), "t1", &input, NAME, "asked"),
        (Some("mcp__other__activate_skill"), "t1", &input, NAME, "asked"),
        (Some("mcp__acp-skills__call_skill_tool"), "t1", &input, NAME, "asked"),
        // What is asked for takes what the tool does not.
        (Some(NAME), "t1", &rm, NAME, "asked"),
    ] {
        let mut world = world("@zed-industries/claude-code-acp", policy());
        if let Some(name) = announced {
            world.agent(&json!({
                "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": {
                    "sessionUpdate": "tool_call", "toolCallId": "t1", "title": name, "kind": "other", "rawInput": {},
                    "status": "pending", "content": [], "_meta": { "claudeCode": { "toolName": name } },
                } },
            }));
        }
        let call = json!({ "toolCallId": id, "rawInput": asked_with, "title": title });
        assert_eq!(outcome(&ask(&mut world, &call, None)), expected, "{announced:?} {call}");
        // A name of its own counts, whatever was announced.
        let mut call = call;
        call["_meta"] = json!({ "claudeCode": { "toolName": "Bash" } });
        assert_eq!(outcome(&ask(&mut world, &call, None)), "asked", "{call}");
    }
}

/// Grok gives no name and has one tool that calls those of servers; Droid says only in its offers that a call is one of a
/// server's tools.
#[test]
fn our_own_calls_of_agents_that_say_it_in_their_own_way() {
    let grok = |called: &str, own: &str, input: Value| {
        json!({
            "toolCallId": "call_1", "kind": "other", "title": "acp-skills__activate_skill",
            "rawInput": { "variant": "UseTool", "tool_name": called, "tool_input": input },
            "_meta": { "x.ai/tool": { "version": 1, "name": own, "namespace": "grok_build" } },
        })
    };
    for (call, expected) in [
        (grok("acp-skills__activate_skill", "use_tool", json!({ "name": "git" })), "proceed_once"),
        (grok("acp-skills__call_skill_tool", "use_tool", json!({})), "asked"),
        (grok("other__activate_skill", "use_tool", json!({ "name": "git" })), "asked"),
        // A command whose input says what it likes.
        (grok("acp-skills__activate_skill", "bash", json!({ "name": "git" })), "asked"),
        (grok("acp-skills__activate_skill", "use_tool", json!({ "command": "rm" })), "asked"),
        (grok("acp-skills__activate_skill", "use_tool", json!("rm")), "asked"),
    ] {
        let mut world = World::new(policy());
        world.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        let meta = json!({ "x.ai/fs_notify": true, "x.ai/capabilities": {} });
        world.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": { "_meta": meta } }));
        world.new_session(1, "s");
        assert_eq!(outcome(&ask(&mut world, &call, None)), expected, "{call}");
    }
    let droid = |title: &str, server: &str, input: Value| {
        let call = json!({ "toolCallId": "call_1", "title": title, "kind": "read", "rawInput": input });
        let all = format!("Always allow all \"{server}\" tools");
        json!({
            "sessionId": "s", "toolCall": call,
            "options": [
                { "optionId": "proceed_once", "name": "Allow", "kind": "allow_once" },
                { "optionId": "proceed_always_server", "name": all, "kind": "allow_always" },
                { "optionId": "cancel", "name": "No, cancel", "kind": "reject_once" },
            ],
        })
    };
    for (params, expected) in [
        (droid("acp-skills___activate_skill", "acp-skills", json!({ "name": "git" })), "proceed_once"),
        (droid("acp-skills___call_skill_tool", "acp-skills", json!({})), "asked"),
        (droid("acp-skills___activate_skill", "other", json!({ "name": "git" })), "asked"),
        (droid("acp-skills___activate_skill", "acp-skills", json!({ "command": "rm" })), "asked"),
        (droid("activate_skill", "acp-skills", json!({ "name": "git" })), "asked"),
    ] {
        let mut world = world("@factory/cli", policy());
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params });
        assert_eq!(outcome(&world.agent(&request)), expected, "{params}");
    }
}

/// What Agentao and Kimi say of a call when they ask.
#[test]
fn agents_that_say_it_twice() {
    let ask = |title: &str, kind: Option<&str>, says: &str| {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": says } }]);
        let mut call = json!({ "toolCallId": "1", "title": title, "content": content });
        if let Some(kind) = kind {
            call["kind"] = kind.into();
            call["rawInput"] = json!({ "name": "git" });
        }
        call
    };
    let options = json!([{ "optionId": "once", "name": "Once", "kind": "allow_once" }]);
    for (agent, call, expected) in [
        ("agentao", ask("mcp_acp_skills_activate_skill", Some("other"), "[MCP:acp-skills] Loads"), "once"),
        ("agentao", ask("mcp_acp_skills_activate_skill", Some("other"), "[MCP:acp] Loads"), "asked"),
        ("agentao", ask("mcp_acp_skills_call_skill_tool", Some("other"), "[MCP:acp-skills] Calls"), "asked"),
        ("agentao", ask("activate_skill", Some("other"), "[MCP:acp-skills] Loads"), "asked"),
        (
            "Kimi Code CLI",
            ask(
                "mcp__acp-skills__activate_skill",
                None,
                "Requesting approval to Approve mcp__acp-skills__activate_skill",
            ),
            "once",
        ),
        (
            "Kimi Code CLI",
            ask("mcp__acp-skills__activate_skill", None, "Requesting approval to run command"),
            "asked",
        ),
        (
            "Kimi Code CLI",
            ask(
                "activate_skill: {}",
                None,
                "Requesting approval to perform: Call MCP tool `activate_skill`.",
            ),
            "asked",
        ),
    ] {
        let mut world = world(agent, policy());
        let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params });
        assert_eq!(outcome(&world.agent(&request)), expected, "{params}");
    }
}

/// Gemini announces a call only by asking for permission: whoever answers in the user's place has to tell of it.
#[test]
fn a_call_that_nobody_announced_is_announced() {
    let call = json!({
        "toolCallId": "mcp_acp-skills_activate_skill__mcp_acp-skills_activate_skill_1795307132527_0",
        "status": "pending", "title": "activate_skill (acp-skills MCP Server)", "locations": [], "kind": "other",
        "content": [{ "type": "content", "content": { "type": "text", "text": "{\"name\":\"git\"}" } }], "x": 1.0,
    });
    for (titles, title, kind) in [
        (Titles::People, "Skill: git", "read"),
        (Titles::Agent, "activate_skill (acp-skills MCP Server)", "other"),
    ] {
        let mut world = world("gemini-cli", Policy { titles, ..policy() });
        let out = ask(&mut world, &call, None);
        assert_eq!(outcome(&out), "proceed_once");
        let mut update = call.clone();
        update["sessionUpdate"] = json!("tool_call");
        update["title"] = json!(title);
        update["kind"] = json!(kind);
        let params = json!({ "sessionId": "s", "update": update });
        assert_eq!(out.client(), &json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
        // Once.
        assert_eq!(ask(&mut world, &call, None).to_client.len(), 0);
        // What follows is of the same call.
        let mut done = call.clone();
        done["sessionUpdate"] = json!("tool_call_update");
        done["content"] = json!([]);
        let out = world.update("s", &done);
        assert_eq!(out.client()["params"]["update"]["title"], title);
    }
}

/// The same for calls that are not ours, and only where nobody else announced them.
#[test]
fn a_call_that_was_announced_is_not_announced_again() {
    let rm = call("Bash", &json!({ "command": "rm x" }));
    for is_announced in [false, true] {
        let mut world = world(CLAUDE, Policy { tool_policy: ToolPolicy::Strict, ..policy() });
        invoke(&mut world, "git");
        if is_announced {
            let mut announced = rm.clone();
            announced["sessionUpdate"] = json!("tool_call");
            assert_eq!(world.update("s", &announced).client()["params"]["update"], announced);
        }
        let out = ask(&mut world, &rm, None);
        assert_eq!((outcome(&out), out.to_client.len()), ("no", usize::from(!is_announced)));
    }
}

#[test]
fn only_once_and_only_what_is_offered() {
    let mut world = world(CLAUDE, policy());
    let name = "mcp__acp-skills__activate_skill";
    for (session, options, expected) in [
        ("s", json!([{ "optionId": "a", "kind": "allow_always" }]), "asked"),
        ("s", json!([]), "asked"),
        ("other", json!([{ "optionId": "a", "kind": "allow_once" }]), "asked"),
        ("s", json!([{ "optionId": "a", "kind": "allow_once" }]), "a"),
    ] {
        let params = json!({ "sessionId": session, "toolCall": { "name": name }, "options": options });
        let out = world.agent(
            &json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params }),
        );
        assert_eq!(outcome(&out), expected, "{options}");
    }
}

/// Options that allow a call once may differ in what else they do: another mode, an answer to a question.
#[test]
fn of_several_ways_to_allow_the_user_chooses() {
    let options = json!([
        { "optionId": "auto", "kind": "allow_once", "name": "Yes, and accept all edits" },
        { "optionId": "yes", "kind": "allow_once", "name": "Yes" },
        { "optionId": "no", "kind": "reject_once", "name": "No" },
        { "optionId": "never", "kind": "reject_once", "name": "No, and say why" },
    ]);
    let read = call("Read", &json!({ "file_path": "/project/a" }));
    let rm = call("Bash", &json!({ "command": "rm x" }));
    let ours = call("mcp__acp-skills__activate_skill", &json!({ "name": "git" }));
    for (tool_policy, call, expected) in [
        (ToolPolicy::Approval, &read, "asked"),
        (ToolPolicy::Strict, &rm, "no"),
        // Ours changes nothing, whichever it is.
        (ToolPolicy::Approval, &ours, "auto"),
    ] {
        let mut world = world(CLAUDE, Policy { tool_policy, ..policy() });
        invoke(&mut world, "git");
        let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params });
        let mut out = world.agent(&request);
        // A path is resolved first.
        out.tasks.clear();
        assert_eq!(outcome(&out), expected, "{call}");
    }
}

/// A call of Claude's.
fn call(name: &str, input: &Value) -> Value {
    json!({ "toolCallId": "1", "title": "x", "name": name, "rawInput": input })
}

fn invoke(world: &mut World, skill: &str) {
    let out = world.prompt(2, "s", &[&format!("/{skill}")]);
    let [.., Task::Ask(Query::Fetch { session, ticket, .. })] = out.tasks[..] else { panic!("{out:?}") };
    world.handle(Input::Fetched {
        session,
        ticket,
        fetched: Fetched { text: Some("x".into()), activations: Vec::new() },
    });
}

fn activate(world: &mut World, skill: &str) {
    world.handle(Input::Activated(SessionKey(1), SkillName::new(skill).unwrap()));
}

#[test]
fn policies() {
    use ToolPolicy::{Approval, Permissive, Strict};
    let git = call("Bash", &json!({ "command": "git status" }));
    let rm = call("Bash", &json!({ "command": "rm -rf x" }));
    let both = call("Bash", &json!({ "command": "git status -s; rm -rf x" }));
    let read = call("Read", &json!({ "file_path": "/project/a" }));
    let note = call("Edit", &json!({ "file_path": "/project/notes/a.md" }));
    let linked = call("Edit", &json!({ "file_path": "notes/link/passwd" }));
    let nameless = json!({ "toolCallId": "1", "title": "Bash(rm)", "rawInput": { "command": "rm -rf x" } });
    let ours = call("mcp__acp-skills__call_skill_tool", &json!({}));
    // Active by the user, by the model; the call; and what each policy makes of it.
    for (by_user, by_model, call, [permissive, approval, strict]) in [
        (None, None, &rm, ["asked", "asked", "asked"]),
        (Some("free"), None, &rm, ["asked", "asked", "asked"]),
        (Some("git"), None, &git, ["asked", "proceed_once", "asked"]),
        (Some("git"), None, &read, ["asked", "proceed_once", "asked"]),
        (Some("git"), None, &rm, ["asked", "asked", "no"]),
        (Some("git"), None, &both, ["asked", "asked", "asked"]),
        (Some("git"), None, &nameless, ["asked", "asked", "asked"]),
        (Some("git"), None, &ours, ["asked", "asked", "asked"]),
        (None, Some("git"), &git, ["asked", "asked", "asked"]),
        (None, Some("git"), &rm, ["asked", "asked", "no"]),
        // The union; what the model activated grants nothing.
        (Some("git"), Some("notes"), &note, ["asked", "asked", "asked"]),
        (Some("notes"), Some("git"), &note, ["asked", "proceed_once", "asked"]),
        (Some("git"), None, &note, ["asked", "asked", "no"]),
        // The name of a program that runs others grants nothing.
        (Some("vague"), None, &git, ["asked", "asked", "asked"]),
        // Inside as it is written, and outside where it leads.
        (Some("notes"), None, &linked, ["asked", "asked", "asked"]),
    ] {
        for (tool_policy, expected) in [(Permissive, permissive), (Approval, approval), (Strict, strict)] {
            let mut world = world(CLAUDE, Policy { tool_policy, ..policy() });
            if let Some(skill) = by_user {
                invoke(&mut world, skill);
            }
            if let Some(skill) = by_model {
                activate(&mut world, skill);
            }
            let found = ask(&mut world, call, None);
            assert_eq!(outcome(&found), expected, "{tool_policy:?} {by_user:?} {by_model:?} {call}");
        }
    }
}

#[test]
fn decisions_are_shown() {
    let mut world = world(CLAUDE, Policy { tool_policy: ToolPolicy::Strict, ..policy() });
    invoke(&mut world, "git");
    ask(&mut world, &call("Bash", &json!({ "command": "rm x" })), None);
    for _ in 0..2 {
        ask(&mut world, &call("mcp__acp-skills__activate_skill", &json!({})), None);
    }
    let out = world.prompt(9, "s", &["/skills"]);
    let text = out.to_client[0]["params"]["update"]["content"]["text"].as_str().unwrap();
    for line in [
        "**Permissions decided for you**",
        "- refused `Bash`: not in `allowed-tools` of the active skills",
        "- allowed `activate_skill`: a tool of the skills (2 times)\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn claude_is_told_not_to_ask() {
    let ours = json!([
        "mcp__acp-skills__activate_skill(*)",
        "mcp__acp-skills__read_skill_file(*)",
        "mcp__acp-skills__search_skills(*)"
    ]);
    let with = |first: &str| {
        let mut list = ours.clone();
        list.as_array_mut().unwrap().insert(0, first.into());
        list
    };
    for (meta, expected) in [
        (None, json!({ "options": { "allowedTools": ours } })),
        (Some(Value::Null), json!({ "options": { "allowedTools": ours } })),
        (Some(json!({ "x": 1 })), json!({ "options": { "allowedTools": ours } })),
        (Some(json!({ "claudeCode": { "a": 1 } })), json!({ "a": 1, "options": { "allowedTools": ours } })),
        (
            Some(json!({ "claudeCode": { "options": { "model": "m", "allowedTools": ["Read"] } } })),
            json!({ "options": { "model": "m", "allowedTools": with("Read") } }),
        ),
        (Some(json!({ "claudeCode": 7 })), json!(7)),
    ] {
        for (method, extra) in [("session/new", json!({})), ("session/load", json!({ "sessionId": "q" }))] {
            let mut world = World::new(policy()).initialized(CLAUDE, &json!({}));
            let mut params = json!({ "cwd": "/project", "mcpServers": [] });
            params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            if let Some(meta) = &meta {
                params["_meta"] = meta.clone();
            }
            let out = world.request(1, method, &params);
            assert_eq!(out.agent()["params"]["_meta"]["claudeCode"], expected, "{method} {meta:?}");
            // The system prompt is there too, for this adapter.
            let system = &out.agent()["params"]["_meta"]["systemPrompt"]["append"];
            assert!(system.is_string(), "{out:?}");
        }
    }
    for (agent, policy) in [(CODEX, policy()), (CLAUDE, Policy { approve: Approve::None, ..policy() })] {
        let mut world = World::new(policy).initialized(agent, &json!({}));
        assert!(world.new_session(1, "s")["params"]["_meta"].get("claudeCode").is_none());
    }
}

/// An agent that asks in the name of our tools, and calls something else.
#[test]
fn a_broken_word_counts_no_more() {
    let ours = call("mcp__acp-skills__activate_skill", &json!({ "name": "git" }));
    let end = |world: &mut World, id: u64, reason: &str| world.respond(id, &json!({ "stopReason": reason }));
    let arrives = |world: &mut World| {
        let end = crate::events::End {
            outcome: crate::events::Outcome::Ok,
            error: None,
            bytes: 1,
            ms: Duration::ZERO.into(),
        };
        let kind = EventKind::FileRead { skill: None, file: None, end };
        world.handle(Input::Recorded(SessionKey(1), kind));
    };
    let mut world = world(CLAUDE, policy());
    // As long as all calls arrive, or their turn is cancelled, it is believed.
    for (id, reason, arrived) in [(2, "end_turn", true), (3, "cancelled", false), (4, "end_turn", true)] {
        world.prompt(id, "s", &["hello"]);
        assert_eq!(outcome(&ask(&mut world, &ours, None)), "proceed_once", "{id}");
        if arrived {
            arrives(&mut world);
        }
        end(&mut world, id, reason);
    }
    world.prompt(5, "s", &["hello"]);
    assert_eq!(outcome(&ask(&mut world, &ours, None)), "proceed_once");
    end(&mut world, 5, "end_turn");
    world.prompt(6, "s", &["hello"]);
    assert_eq!(outcome(&ask(&mut world, &ours, None)), "asked");
    let out = world.prompt(7, "s", &["/skills"]);
    let text = out.to_client[0]["params"]["update"]["content"]["text"].as_str().unwrap();
    assert!(text.contains("called something else"), "{text}");
}

#[test]
fn a_request_that_waits_for_the_disk_holds_up_nothing() {
    let mut world = world(CLAUDE, Policy { tool_policy: ToolPolicy::Approval, ..policy() });
    invoke(&mut world, "notes");
    world.outside.is_slow = true;
    let note = call("Edit", &json!({ "file_path": "/project/notes/a.md" }));
    assert!(ask(&mut world, &note, None).is_nothing());
    let said = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a" } });
    assert_eq!(world.update("s", &said).to_client.len(), 1);
    assert_eq!(outcome(&world.answer()), "proceed_once");
    // The user is asked in the words of the agent, byte for byte.
    let linked = call("Edit", &json!({ "file_path": "notes/link/passwd" }));
    assert!(ask(&mut world, &linked, None).is_nothing());
    let out = world.answer();
    assert_eq!((outcome(&out), &out.client()["params"]["toolCall"]), ("asked", &linked));
}

/// Who cancels meanwhile is heard: nothing is granted any more.
#[test]
fn a_request_that_waits_for_the_disk_can_be_cancelled() {
    let note = call("Edit", &json!({ "file_path": "/project/notes/a.md" }));
    let waiting = || {
        let mut world = world(CLAUDE, Policy { tool_policy: ToolPolicy::Approval, ..policy() });
        invoke(&mut world, "notes");
        world.outside.is_slow = true;
        assert!(ask(&mut world, &note, None).is_nothing());
        world
    };
    // By the user: the client answers what it has, and we what it has not.
    let mut world = waiting();
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } });
    let out = world.client(&cancel);
    let cancelled = json!({ "jsonrpc": "2.0", "id": 7, "result": { "outcome": { "outcome": "cancelled" } } });
    assert!(out.to_agent.contains(&cancelled) && out.to_agent.contains(&cancel), "{out:?}");
    assert!(world.answer().is_nothing());
    // Of another session.
    let mut world = waiting();
    world.client(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "t" } }));
    assert_eq!(outcome(&world.answer()), "proceed_once");
    // By the agent: the client gets both, in their order.
    let mut world = waiting();
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 7 } });
    let out = world.agent(&cancel);
    assert_eq!(out.to_client.len(), 2, "{out:?}");
    assert_eq!((&out.to_client[0]["params"]["toolCall"], &out.to_client[1]), (&note, &cancel));
    assert!(world.answer().is_nothing());
}

/// Some agents count their calls anew in each turn, and do not always name the tool.
#[test]
fn a_name_is_that_of_the_last_call_with_its_id() {
    let announce = |world: &mut World, name: Option<&str>| {
        let mut update = json!({ "sessionUpdate": "tool_call", "toolCallId": "call_0", "title": "x" });
        if let Some(name) = name {
            update["name"] = name.into();
        }
        world.update("s", &update);
    };
    let nameless = json!({ "toolCallId": "call_0", "title": "x", "rawInput": { "command": "rm -rf ~" } });
    for (second, expected) in [(Some("Read"), "proceed_once"), (Some("Bash"), "asked"), (None, "asked")] {
        let mut world = world(CLAUDE, Policy { tool_policy: ToolPolicy::Approval, ..policy() });
        invoke(&mut world, "git");
        announce(&mut world, Some("Read"));
        announce(&mut world, second);
        assert_eq!(outcome(&ask(&mut world, &nameless, None)), expected, "{second:?}");
    }
}
