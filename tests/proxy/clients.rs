//! The screens of real clients, tested with messages of these clients and agents from `tests/recordings`.

use std::{fs, path::Path};

use acp_skills::intercept::NOT_STARTED;
use expect_test::expect;
use serde_json::{Value, json};

use crate::{
    editor::{Editor, Ended, Proxy},
    fixture::{Fixture, texts},
    skills::Skills,
};

crate::trials!(
    a_failed_start_is_reported_to_every_client,
    a_failed_start_is_logged,
    an_agent_that_exits_is_logged,
    a_command_is_found_in_the_prompt_of_every_client,
    a_call_of_gemini_is_announced,
    a_call_of_claude_has_a_title_and_one_line_as_the_result,
    the_overview_is_readable,
    stderr_has_only_what_needs_action,
);

const CLIENTS: [&str; 5] = ["acp-el", "acpx", "avante", "codecompanion", "toad"];

/// Returns the messages of a recording: the sender (`client` or `agent`), the line, and the parsed message.
fn recorded(path: &str) -> Vec<(String, String, Value)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings").join(path);
    let text = fs::read_to_string(file.with_extension("jsonl")).expect("a recording");
    let entries = text.lines().map(|line| {
        let entry: Value = serde_json::from_str(line).expect("JSON");
        let (_, message) = line.split_once(r#""msg":"#).expect("a message");
        let message = message.strip_suffix('}').expect("the end of the entry").to_owned();
        (entry["dir"].as_str().expect("a side").to_owned(), message, entry["msg"].clone())
    });
    entries.collect()
}

/// Returns the first message of a recording for which `fits` returns true.
fn first(path: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let messages = recorded(path).into_iter().map(|(_, _, message)| message);
    messages.into_iter().find(fits).expect("there is such a message")
}

/// Creates a skill with the name that the recordings use.
fn demo() -> Skills {
    let skills = Skills::new();
    skills.add("demo", "Does the demo thing.", "# Demo\n\nDo the demo thing.");
    skills
}

fn write(editor: &mut Editor, line: &str) {
    editor.write(format!("{line}\n").as_bytes());
}

/// Editors drop stderr, so each client gets the reason as the answer to its `initialize`, without waiting.
fn a_failed_start_is_reported_to_every_client() {
    let skills = demo();
    let nowhere = skills.dir("nowhere");
    for client in CLIENTS {
        let (_, line, initialize) = recorded(&format!("clients/{client}")).swap_remove(0);
        assert_eq!(initialize["method"], "initialize");
        let mut editor = Proxy::new().skill(&nowhere).agent("scripted");
        write(&mut editor, &line);
        let ended = editor.ended();
        assert_eq!(ended.code(), Some(2), "{client}: {:#?}", ended.log);
        let answer = ended.answer(&initialize["id"]);
        assert_eq!(answer["error"]["code"], NOT_STARTED, "{client}");
        let message = answer["error"]["message"].as_str().expect("text");
        assert!(
            message.contains("no such skill directory: ") && message.contains("nowhere"),
            "{client}: {message}"
        );
    }
}

/// Covers every kind of failure at startup.
fn a_failed_start_is_logged() {
    let skills = demo();
    let config = skills.write("skills.yaml", "skill: x\n");
    let log = skills.path().join("log");
    let cases: [(Proxy, i32, &str); 5] = [
        (Proxy::new().skill(&skills.dir("nowhere")), 2, "no such skill directory"),
        (Proxy::new().flag("--config", &config), 2, "skills.yaml"),
        (Proxy::new().arg("--no-such-flag"), 2, "--no-such-flag"),
        (Proxy::new().flag("--events", skills.path()), 2, "cannot write events"),
        (Proxy::new(), 127, "no-such-agent-anywhere"),
    ];
    for (proxy, code, words) in cases {
        let mut editor = proxy.flag("--log-file", &log).arg("--").arg("no-such-agent-anywhere").start();
        let id = editor.request("initialize", json!({ "protocolVersion": 1 }));
        let ended = editor.ended();
        assert_eq!(ended.code(), Some(code), "{words}: {:#?}", ended.log);
        let reported = ended.answer(&id)["error"]["message"].as_str().expect("text");
        let logged = fs::read_to_string(&log).expect("a log");
        assert!(logged.contains("ERROR") && logged.contains(words), "{words}: {logged}");
        // Make sure the whole message and the hint are in the log, but only once.
        let logged: Vec<_> = logged.lines().map(str::trim).collect();
        for line in reported.lines().skip(1) {
            assert_eq!(
                logged.iter().filter(|logged| **logged == line.trim()).count(),
                1,
                "{line:?}: {logged:#?}"
            );
        }
        fs::remove_file(&log).expect("a log");
    }
}

fn an_agent_that_exits_is_logged() {
    let skills = demo();
    let log = skills.path().join("log");
    let mut editor = Proxy::new().skill(&skills.dir("demo")).flag("--log-file", &log).agent("no-such-part");
    editor.request("initialize", json!({ "protocolVersion": 1 }));
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(101), "{:#?}", ended.log);
    let logged = fs::read_to_string(&log).expect("a log");
    assert!(logged.contains("WARN the agent exited with code 101 during startup"), "{logged}");
}

/// Sends all recorded prompts unchanged. Each command is replaced by a block of ours, and blocks that aren't text stay as
/// they were.
fn a_command_is_found_in_the_prompt_of_every_client() {
    let skills = demo();
    let proxy =
        || Proxy::new().skill(&skills.dir("demo")).flag("--mcp-wait", "0").flag("--catalog-in", "off");
    // The three numbers count the prompts that load the skill, the prompts that the proxy answers, and the prompts that
    // are passed to the agent as they are.
    for (client, expected) in [
        ("acp-el", [5, 0, 4]),
        ("acpx", [5, 1, 3]),
        ("avante", [3, 1, 2]),
        ("codecompanion", [2, 0, 5]),
        ("toad", [1, 0, 3]),
    ] {
        let mut seen = [0; 3];
        let mut fixture = None::<Fixture>;
        let messages = recorded(&format!("clients/{client}"));
        for (at, (side, line, message)) in messages.iter().enumerate() {
            if side == "agent" {
                continue;
            }
            let Some(method) = message["method"].as_str().filter(|_| message["id"].is_number()) else {
                continue;
            };
            if method == "initialize" {
                if let Some(before) = fixture.take() {
                    before.finish();
                }
                fixture = Some(Fixture::new(proxy()));
            }
            let fixture = fixture.as_mut().expect("`initialize` comes first");
            write(&mut fixture.editor, line);
            if method != "session/prompt" {
                let received = fixture.agent_receives();
                let mut answers = messages[at..].iter().filter(|(side, _, _)| side == "agent");
                let answer = answers.find(|(_, _, answer)| answer["id"] == message["id"]).expect("an answer");
                let outcome = json!({ "result": answer.2["result"] });
                fixture.agent_replies(&received, outcome);
                fixture.editor.answer(&message["id"]);
                continue;
            }
            let typed = message["params"]["prompt"].as_array().expect("blocks");
            let first = texts_of(typed).first().copied();
            if first.is_some_and(|text| text == "/skills" || text.contains(">/skills<")) {
                assert_eq!(fixture.editor.answer(&message["id"])["result"]["stopReason"], "end_turn");
                assert_eq!(fixture.editor.unread().len(), 1);
                seen[1] += 1;
                continue;
            }
            let received = fixture.agent_receives();
            let blocks = received["params"]["prompt"].as_array().expect("blocks");
            assert_eq!(non_text_blocks(blocks), non_text_blocks(typed), "{client}: {line}");
            if texts_of(blocks).concat().contains("<skill_content name=\"demo\">") {
                seen[0] += 1;
            } else {
                assert_eq!(&received, message, "{client}");
                seen[2] += 1;
            }
            fixture.agent_replies(&received, json!({ "result": { "stopReason": "end_turn" } }));
            fixture.editor.answer(&message["id"]);
        }
        fixture.expect("a conversation").finish();
        assert_eq!(seen, expected, "{client}");
    }
}

fn texts_of(blocks: &[Value]) -> Vec<&str> {
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}

fn non_text_blocks(blocks: &[Value]) -> Vec<&Value> {
    blocks.iter().filter(|block| block["type"] != "text").collect()
}

/// Opens a session `s` in a proxy between CodeCompanion and this agent.
fn session(proxy: Proxy, agent: &str) -> Fixture {
    session_with_params(proxy, agent).0
}

/// Opens the session `s`. Also returns the params that the agent received.
fn session_with_params(proxy: Proxy, agent: &str) -> (Fixture, Value) {
    let mut fixture = Fixture::new(proxy);
    let hello = first("clients/codecompanion", |message| message["method"] == "initialize")["params"].take();
    let capabilities = json!({ "mcpCapabilities": { "http": true } });
    let about =
        json!({ "protocolVersion": 1, "agentInfo": { "name": agent }, "agentCapabilities": capabilities });
    fixture.exchange("initialize", hello, json!({ "result": about }));
    let params = fixture.new_session("s");
    (fixture, params)
}

/// Moves an agent's message to the session `s`.
fn in_session(mut message: Value) -> Value {
    message["params"]["sessionId"] = json!("s");
    message
}

/// Gemini announces a call only in its request for permission. If the proxy answers that request, it has to announce the
/// call to the editor.
fn a_call_of_gemini_is_announced() {
    let skills = demo();
    let mut fixture = session(Proxy::new().skill(&skills.dir("demo")), "gemini-cli");
    let asks = first("proxied/gemini", |message| message["method"] == "session/request_permission");
    let done =
        first("proxied/gemini", |message| message["params"]["update"]["sessionUpdate"] == "tool_call_update");
    fixture.agent_sends(&in_session(asks.clone()));
    let answered = fixture.agent_receives();
    assert_eq!(answered["result"]["outcome"], json!({ "outcome": "selected", "optionId": "proceed_once" }));
    fixture.agent_sends(&in_session(done));
    let [announced, done] = [0, 1].map(|_| fixture.editor.message()["params"]["update"].take());
    let call = &asks["params"]["toolCall"];
    assert_eq!(announced["sessionUpdate"], "tool_call");
    for key in ["toolCallId", "status", "content", "locations"] {
        assert_eq!(announced[key], call[key], "{key}");
    }
    // We don't use a colon in the title here, because CodeCompanion would cut it off at that point.
    assert_eq!([&announced["title"], &announced["kind"]], ["Skill demo", "read"]);
    assert_eq!(done["sessionUpdate"], "tool_call_update");
    assert_eq!([&done["toolCallId"], &done["title"]], [&call["toolCallId"], &json!("Skill demo")]);
    fixture.finish();
}

/// Checks the title and kind that a client shows after each message about a call, including the request for permission.
fn a_call_of_claude_has_a_title_and_one_line_as_the_result() {
    let skills = demo();
    for (flags, expected) in [
        (
            &[][..],
            [
                ("Skill", "read"),
                ("Skill demo", "read"),
                ("Skill demo", "read"),
                ("Skill demo", "read"),
                ("Skill demo", "read"),
            ],
        ),
        (&["--titles", "agent"], [("mcp__acp-skills__activate_skill", "other"); 5]),
    ] {
        let mut proxy = Proxy::new().skill(&skills.dir("demo")).flag("--approve", "none");
        for flag in flags {
            proxy = proxy.arg(flag);
        }
        let mut fixture = session(proxy, "@agentclientprotocol/claude-agent-acp");
        let messages = recorded("proxied/claude").into_iter().filter(|(side, _, message)| {
            let call = &message["params"]["toolCall"]["toolCallId"];
            side == "agent" && (message["params"]["update"]["toolCallId"].is_string() || call.is_string())
        });
        let mut title = Value::Null;
        let mut kind = Value::Null;
        let mut loaded = 0;
        for ((_, _, message), expected) in messages.zip(expected) {
            fixture.agent_sends(&in_session(message.clone()));
            let mut seen = fixture.editor.message();
            let place = if message["method"] == "session/update" { "update" } else { "toolCall" };
            let before = &message["params"][place];
            let shown = &mut seen["params"][place];
            for (key, kept) in [("title", &mut title), ("kind", &mut kind)] {
                if let Some(value) = shown.get(key) {
                    kept.clone_from(value);
                }
                // Restore the original value, so that we can check below that the rest of the call has not changed.
                match before.get(key) {
                    Some(value) => shown[key] = value.clone(),
                    None => {
                        shown.as_object_mut().expect("a call").remove(key);
                    }
                }
            }
            assert_eq!((title.as_str(), kind.as_str()), (Some(expected.0), Some(expected.1)), "{message}");
            let result = [&before["rawOutput"][0]["text"], &before["content"][0]["content"]["text"]];
            if flags.is_empty() && message["params"]["update"]["status"] == "completed" {
                assert!(result.iter().all(|text| text.as_str().is_some_and(|text| text.contains("# Demo"))));
                for text in
                    ["/rawOutput/0/text", "/content/0/content/text"].map(|path| shown.pointer(path).cloned())
                {
                    assert_eq!(text, Some(json!("Loaded the instructions (6 words)")));
                }
                shown["rawOutput"] = before["rawOutput"].clone();
                shown["content"] = before["content"].clone();
                loaded += 1;
            }
            assert_eq!(shown, before);
        }
        assert_eq!(loaded, usize::from(flags.is_empty()));
        fixture.finish();
    }
}

/// The overview lists skills first, then each problem with the command that explains it, then the number of decisions.
fn the_overview_is_readable() {
    let skills = demo();
    skills.write("broken/SKILL.md", "---\nname: broken\n---\nBody.\n");
    skills.write("loud/SKILL.md", "---\nname: LOUD\ndescription: Is loud.\nauthor: me\n---\nBody.\n");
    let (mut fixture, params) =
        session_with_params(Proxy::new().flag("--skills", skills.path()), "gemini-cli");
    let connection = fixture.connect(&crate::fixture::entry(&params), crate::fixture::MCP_2025);
    let asks = first("proxied/gemini", |message| message["method"] == "session/request_permission");
    for _ in 0..3 {
        fixture.agent_sends(&in_session(asks.clone()));
        fixture.agent_receives();
        fixture.call(&connection, "activate_skill", json!({ "name": "demo" }));
    }
    fixture.editor.message();
    fixture.prompt("s", "/demo");
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills" }] });
    let id = fixture.editor.request("session/prompt", prompt);
    fixture.editor.answer(&id);
    let said = fixture.editor.unread();
    let text = said[0]["params"]["update"]["content"]["text"].as_str().expect("text").to_owned();
    // Replace the path and the separators, which depend on the machine and on the platform.
    let place = dunce::canonicalize(skills.path()).expect("a directory");
    let text = text.replace(&place.display().to_string(), "/skills").replace('\\', "/");
    expect![[r#"
        **2 skills in this session**

        - `/demo` (active, by you): Does the demo thing. _(`/skills/demo`)_
        - `/LOUD`: Is loud. _(`/skills/loud`)_

        **Problems**

        - `LOUD`: name `LOUD` contains upper-case letters, and 1 more; run `acp-skills-proxy check /skills/loud` for details
        - `broken` was skipped: skill has no description; run `acp-skills-proxy check /skills/broken` for details

        **Permissions decided for you**

        - allowed `activate_skill`: read-only skill tool (3 times)

        `/skills` lists the skills, `/skills reload` looks for new ones, `/skills search WORDS` finds those that fit, `/skills off NAME` and `/skills on NAME` turn one off and on (with `--here` in new sessions of this directory, too)."#]]
    .assert_eq(&text);
    fixture.finish();
}

/// Some clients show each line of stderr as an error.
fn stderr_has_only_what_needs_action() {
    let log = |ended: Ended| {
        let lines = ended.log.into_iter().filter(|line| !line.starts_with("agent: "));
        lines.collect::<Vec<_>>()
    };
    // First, a normal conversation that uses the skills server, for which we don't expect any warnings.
    let skills = Skills::review();
    let mut fixture = session(Proxy::new().flag("--skills", skills.path()), "gemini-cli");
    let request = fixture.new_session("t");
    let connection = fixture.connect(&crate::fixture::entry(&request), crate::fixture::MCP_2025);
    fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    let blocks = fixture.prompt("t", "/review it");
    assert!(texts(&blocks).concat().contains("it"));
    skills.add("greet", "Greets.", "Hello.");
    fixture.wait_for_command("greet");
    assert_eq!(log(fixture.finish()), Vec::<String>::new());
    // Now add a skill that can't be loaded, and scan it three times.
    skills.write("broken/SKILL.md", "---\nname: broken\n---\nBody.\n");
    let mut fixture = session(Proxy::new().flag("--skills", skills.path()), "gemini-cli");
    for _ in 0..2 {
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills reload" }] });
        let id = fixture.editor.request("session/prompt", prompt);
        fixture.editor.answer(&id);
    }
    fixture.editor.unread();
    let lines = log(fixture.finish());
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("broken") && lines[0].contains("add `description:`"), "{lines:#?}");
}
