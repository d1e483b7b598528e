//! A conversation with messages and answers in any order. These invariants are checked:
//!
//! - A message that we don't change is forwarded at once and byte for byte.
//! - Each request of the client is answered exactly once.
//! - The client never sees text that was added for the model.
//! - The agent receives the blocks of each prompt in their order.

use std::collections::{HashMap, HashSet};

use acp_skills_intercept::{Activation, CatalogIn, Input, McpMode, Pass, Policy, begins_with_ours};
use serde_json::{Value, json};

use super::{
    bytes::Bytes,
    fixture::{BODY, Fixture, Side, skill},
    strip::{pieces, written},
};

/// The requests so far, and the lines that were checked.
#[derive(Default)]
struct Conversation {
    /// True if the drafts about skills are supported.
    drafts: bool,
    next: u64,
    /// The requests of the client by id: their method, and the blocks of a prompt.
    asked: HashMap<u64, (String, Vec<Value>)>,
    /// The requests that the agent has received and not answered.
    open: Vec<u64>,
    answered: HashSet<u64>,
    /// The number of lines of each side that were checked.
    seen_by_agent: usize,
    seen_by_client: usize,
    /// The texts that the agent received.
    remembered: Vec<String>,
    /// The opening marks of our texts that the agent received.
    marks: HashSet<String>,
}

pub(super) fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let mcp = bytes.choose(&[McpMode::Auto, McpMode::Stdio, McpMode::Off]);
    let catalog_in = bytes.choose(&[CatalogIn::Auto, CatalogIn::Prompt, CatalogIn::Off]);
    let activation = bytes.choose(&[Activation::Model, Activation::Prompt, Activation::Hybrid]);
    let switches = bytes.next();
    let policy = Policy {
        mcp,
        catalog_in,
        activation,
        dollar: switches % 2 == 1,
        drafts: switches & 2 == 2,
        ..Policy::default()
    };
    let skills = vec![
        skill("review", |_| {}),
        skill("hidden", |properties| properties.disable_model_invocation = true),
    ];
    let mut fixture = Fixture::with_session(policy, skills);
    let mut conversation = Conversation { next: 10, drafts: switches & 2 == 2, ..Conversation::default() };
    conversation.seen_by_agent = fixture.to_agent.len();
    conversation.seen_by_client = fixture.to_client.len();
    for _ in 0..64 {
        if bytes.is_empty() {
            break;
        }
        step(&mut fixture, &mut conversation, &mut bytes);
        conversation.check(&fixture);
    }
    // Make sure that all of the queries and requests are answered.
    for _ in 0..conversation.asked.len() + 2 {
        fixture.settle();
        conversation.check(&fixture);
        for id in std::mem::take(&mut conversation.open) {
            fixture.send(Side::Agent, &json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
        }
        conversation.check(&fixture);
    }
    for (id, (method, _)) in &conversation.asked {
        assert!(conversation.answered.contains(id), "{method} {id} has no answer");
    }
}

#[expect(clippy::too_many_lines, reason = "an arm for each kind of message")]
fn step(fixture: &mut Fixture, conversation: &mut Conversation, bytes: &mut Bytes<'_>) {
    let session = bytes.choose(&["s", "s", "t", "nobody"]);
    match bytes.below(14) {
        0 => {
            let side = bytes.choose(&[Side::Client, Side::Agent]);
            let line = json!({ "jsonrpc": "2.0", "method": "_x/opaque", "params": { "n": 1.50, "text": written(bytes) } });
            assert_eq!(fixture.send(side, &line), Pass::Untouched, "{line}");
            let way = if side == Side::Client { &fixture.to_agent } else { &fixture.to_client };
            assert_eq!(way.last(), Some(&line.to_string()), "the message is forwarded at once");
        }
        1 | 2 => {
            let blocks = (0..bytes.below(4)).map(|_| match bytes.below(4) {
                0 => json!({ "type": "image", "data": "AA==", "mimeType": "image/png" }),
                1 => json!({ "type": "resource_link", "uri": "file:///a", "name": bytes.text(), "n": 1.0 }),
                _ => json!({ "type": "text", "text": written(bytes) }),
            });
            let blocks: Vec<_> = blocks.collect();
            let params = json!({ "sessionId": session, "prompt": blocks });
            conversation.request(fixture, "session/prompt", params, blocks);
        }
        3 => {
            let text = bytes.choose(&[
                "/skills",
                "/skills reload",
                "/review",
                "$review x",
                "/hidden y",
                "/skills search a",
            ]);
            let blocks = vec![json!({ "type": "text", "text": text })];
            let params = json!({ "sessionId": session, "prompt": blocks });
            conversation.request(fixture, "session/prompt", params, blocks);
        }
        4 => {
            let method = bytes.choose(&[
                "session/new",
                "session/load",
                "session/resume",
                "session/fork",
                "_x/request",
                "session/close",
                "skills/list",
            ]);
            let mut params = json!({ "sessionId": session, "cwd": "/p", "mcpServers": [] });
            if conversation.next.is_multiple_of(3)
                && method.starts_with("session/")
                && method != "session/close"
            {
                // If drafts are enabled, this adds a skill to the session. If they're not, the field is just sent to the agent.
                params["agentSkills"] = json!([
                    { "name": "review", "description": "d", "content": BODY },
                    { "name": "new", "description": "d", "content": BODY },
                ]);
            }
            conversation.request(fixture, method, params, Vec::new());
        }
        5 => {
            let message = match bytes.below(2) {
                0 => {
                    json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } })
                }
                _ => {
                    json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": conversation.next.saturating_sub(1) } })
                }
            };
            fixture.send(Side::Client, &message);
        }
        6 | 7 => {
            fixture.answer(bytes.below(2) == 0, bytes.below(4) != 0);
        }
        8 => {
            let Some(key) = fixture.key(bytes.below(4)) else { return };
            let input = match bytes.below(4) {
                0 => Input::ToolsListed(key),
                1 => Input::ToolsTimerEnded { session: key, timer: fixture.oldest_timer(key) },
                2 => Input::MenuTimerEnded(key),
                _ => Input::SkillsChanged(std::time::Duration::ZERO),
            };
            fixture.handle(input);
        }
        9 | 10 => {
            if conversation.open.is_empty() {
                return;
            }
            let id = conversation.open.swap_remove(bytes.below(conversation.open.len().min(256)));
            let method = &conversation.asked[&id].0;
            let message = match (method.as_str(), bytes.below(4)) {
                (_, 0) => {
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": "mcpServers: no" } })
                }
                ("session/new" | "session/fork", _) => {
                    json!({ "jsonrpc": "2.0", "id": id, "result": { "sessionId": "t" } })
                }
                ("session/prompt", _) => {
                    json!({ "jsonrpc": "2.0", "id": id, "result": { "stopReason": bytes.choose(&["end_turn", "cancelled", "refusal"]) } })
                }
                _ => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
            };
            fixture.send(Side::Agent, &message);
        }
        11 => echo(fixture, conversation, bytes, session),
        12 => {
            let list = json!([{ "name": bytes.choose(&["web", "review", "skills", "mcp__acp-skills__review"]), "description": "x" }]);
            let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": list });
            fixture.send(Side::Agent, &json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": update } }));
        }
        _ => {
            // Send a line that contains any bytes.
            let text = bytes.text().replace('\n', " ");
            fixture.line(bytes.choose(&[Side::Client, Side::Agent]), text.as_bytes());
        }
    }
}

/// Lets the agent repeat a text that it has received, in one of several ways.
fn echo(fixture: &mut Fixture, conversation: &Conversation, bytes: &mut Bytes<'_>, session: &str) {
    let Some(text) = conversation.remembered.get(bytes.below(conversation.remembered.len().clamp(1, 256)))
    else {
        return;
    };
    let send = |fixture: &mut Fixture, method: &str, params: Value| {
        fixture.send(Side::Agent, &json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    };
    match bytes.below(4) {
        0 => {
            let update = json!({ "sessionUpdate": "session_info_update", "title": text });
            send(fixture, "session/update", json!({ "sessionId": session, "update": update }));
        }
        1 => send(fixture, "_vendor/event", json!({ "sessionId": session, "said": [{ "text": text }] })),
        _ => {
            let kind = bytes.choose(&["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]);
            for piece in pieces(bytes, text) {
                let update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": piece } });
                send(fixture, "session/update", json!({ "sessionId": session, "update": update }));
            }
        }
    }
    let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "x" });
    send(fixture, "session/update", json!({ "sessionId": session, "update": update }));
}

impl Conversation {
    fn request(&mut self, fixture: &mut Fixture, method: &str, params: Value, blocks: Vec<Value>) {
        let id = self.next;
        self.next += 1;
        self.asked.insert(id, (method.to_owned(), blocks));
        fixture
            .send(Side::Client, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// Checks the lines that both sides have received since the last call.
    fn check(&mut self, fixture: &Fixture) {
        for line in &fixture.to_agent[self.seen_by_agent..] {
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            let Some(id) = message["id"].as_u64().filter(|_| message["method"].is_string()) else { continue };
            let Some((method, blocks)) = self.asked.get(&id) else { continue };
            assert_eq!(message["method"], **method);
            let has_skills = message["params"].get("agentSkills").is_some();
            assert!(!self.drafts || !has_skills, "skills of the client are not forwarded: {line}");
            assert!(!self.open.contains(&id) && !self.answered.contains(&id), "{id} is sent twice");
            self.open.push(id);
            if method == "session/prompt" {
                let sent = message["params"]["prompt"].as_array().expect("blocks");
                self.remembered.push(sent.iter().filter_map(|block| block["text"].as_str()).collect());
                let texts = sent.iter().filter_map(|block| block["text"].as_str());
                let ours = texts.filter(|text| begins_with_ours(text));
                self.marks.extend(ours.filter_map(|text| Some(text.split_inclusive('>').next()?.to_owned())));
                check_blocks(blocks, sent);
            }
        }
        self.seen_by_agent = fixture.to_agent.len();
        for line in &fixture.to_client[self.seen_by_client..] {
            // The client should never see the text of a skill, the catalog or one of our marks.
            let marks = self.marks.iter().map(String::as_str);
            for ours in [BODY, "<available_skills>"].into_iter().chain(marks) {
                assert!(!line.contains(ours), "the client sees {ours}: {line}");
            }
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            let Some(id) = message["id"].as_u64().filter(|_| message.get("method").is_none()) else {
                continue;
            };
            if self.asked.contains_key(&id) {
                self.open.retain(|open| *open != id);
                assert!(self.answered.insert(id), "{id} is answered twice");
            }
        }
        self.seen_by_client = fixture.to_client.len();
    }
}

/// Checks that the agent receives the user's blocks in their order. The text of a slash command can be rewritten.
fn check_blocks(blocks: &[Value], sent: &[Value]) {
    let text = |block: &Value| block["text"].as_str().map(str::to_owned);
    let is_ours = |block: &&Value| text(block).is_some_and(|text| begins_with_ours(&text));
    let theirs: Vec<&Value> = sent.iter().filter(|block| !is_ours(block)).collect();
    if theirs == blocks.iter().collect::<Vec<_>>() {
        return;
    }
    // If the blocks aren't the same, then one of them must be a command.
    let is_command =
        |block: &&Value| text(block).is_some_and(|text| text.trim_start().starts_with(['/', '$']));
    assert!(blocks.iter().any(|block| is_command(&block)), "{blocks:?} became {sent:?}");
    let others = blocks.iter().filter(|block| !is_command(block));
    let mut left = sent.iter();
    for block in others {
        assert!(left.any(|sent| sent == block), "{block} is lost: {sent:?}");
    }
}
