//! A conversation, in any order, with answers that come when they come. What must hold:
//!
//! - a message that is none of our business passes at once, as its own bytes;
//! - each request of the client gets one answer, whatever happens in between;
//! - the client never sees what was added for the model; the agent gets each prompt's own blocks, in their order.

use std::collections::{HashMap, HashSet};

use acp_skills_intercept::{Activation, CatalogIn, Input, McpMode, Pass, Policy};
use serde_json::{Value, json};

use super::{
    bytes::Bytes,
    strip::{pieces, written},
    world::{BODY, Side, World, skill},
};

/// What the two sides know.
#[derive(Default)]
struct Talk {
    /// The drafts about skills are spoken.
    drafts: bool,
    next: u64,
    /// Requests of the client's: their methods, and the blocks of a prompt.
    asked: HashMap<u64, (String, Vec<Value>)>,
    /// Those that reached the agent and have no answer.
    open: Vec<u64>,
    answered: HashSet<u64>,
    /// What each side has got that was looked at.
    seen_by_agent: usize,
    seen_by_client: usize,
    /// Texts that the agent was sent.
    remembered: Vec<String>,
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
    let skills = vec![skill("review", |_| {}), skill("hidden", |it| it.disable_model_invocation = true)];
    let mut world = World::with_session(policy, skills);
    let mut talk = Talk { next: 10, drafts: switches & 2 == 2, ..Talk::default() };
    talk.seen_by_agent = world.to_agent.len();
    talk.seen_by_client = world.to_client.len();
    for _ in 0..64 {
        if bytes.is_empty() {
            break;
        }
        step(&mut world, &mut talk, &mut bytes);
        talk.look(&world);
    }
    // Everybody answers, and nothing waits.
    for _ in 0..talk.asked.len() + 2 {
        world.settle();
        talk.look(&world);
        for id in std::mem::take(&mut talk.open) {
            world.says(Side::Agent, &json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
        }
        talk.look(&world);
    }
    for (id, (method, _)) in &talk.asked {
        assert!(talk.answered.contains(id), "{method} {id} has no answer");
    }
}

#[expect(clippy::too_many_lines, reason = "an arm for each thing that can happen")]
fn step(world: &mut World, talk: &mut Talk, bytes: &mut Bytes<'_>) {
    let session = bytes.choose(&["s", "s", "t", "nobody"]);
    match bytes.below(14) {
        0 => {
            let side = bytes.choose(&[Side::Client, Side::Agent]);
            let line = json!({ "jsonrpc": "2.0", "method": "_x/opaque", "params": { "n": 1.50, "text": written(bytes) } });
            assert_eq!(world.says(side, &line), Pass::Untouched, "{line}");
            let way = if side == Side::Client { &world.to_agent } else { &world.to_client };
            assert_eq!(way.last(), Some(&line.to_string()), "it is not held back");
        }
        1 | 2 => {
            let blocks = (0..bytes.below(4)).map(|_| match bytes.below(4) {
                0 => json!({ "type": "image", "data": "AA==", "mimeType": "image/png" }),
                1 => json!({ "type": "resource_link", "uri": "file:///a", "name": bytes.text(), "n": 1.0 }),
                _ => json!({ "type": "text", "text": written(bytes) }),
            });
            let blocks: Vec<_> = blocks.collect();
            let params = json!({ "sessionId": session, "prompt": blocks });
            talk.request(world, "session/prompt", params, blocks);
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
            talk.request(world, "session/prompt", params, blocks);
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
            if talk.next.is_multiple_of(3) && method.starts_with("session/") && method != "session/close" {
                // With the drafts on it is a skill of the session; else it is the agent's to judge.
                params["agentSkills"] = json!([
                    { "name": "review", "description": "d", "content": BODY },
                    { "name": "new", "description": "d", "content": BODY },
                ]);
            }
            talk.request(world, method, params, Vec::new());
        }
        5 => {
            let message = match bytes.below(2) {
                0 => {
                    json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } })
                }
                _ => {
                    json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": talk.next.saturating_sub(1) } })
                }
            };
            world.says(Side::Client, &message);
        }
        6 | 7 => {
            world.answer(bytes.below(2) == 0, bytes.below(4) != 0);
        }
        8 => {
            let Some(key) = world.key(bytes.below(4)) else { return };
            let input = match bytes.below(4) {
                0 => Input::ToolsListed(key),
                1 => Input::ToolsTimerEnded { session: key, timer: world.oldest_timer(key) },
                2 => Input::MenuTimerEnded(key),
                _ => Input::SkillsChanged(std::time::Duration::ZERO),
            };
            world.handle(input);
        }
        9 | 10 => {
            if talk.open.is_empty() {
                return;
            }
            let id = talk.open.swap_remove(bytes.below(talk.open.len().min(256)));
            let method = &talk.asked[&id].0;
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
            world.says(Side::Agent, &message);
        }
        11 => echo(world, talk, bytes, session),
        12 => {
            let list = json!([{ "name": bytes.choose(&["web", "review", "skills", "mcp__acp-skills__review"]), "description": "x" }]);
            let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": list });
            world.says(Side::Agent, &json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": update } }));
        }
        _ => {
            // Any bytes at all, in one line.
            let text = bytes.text().replace('\n', " ");
            world.line(bytes.choose(&[Side::Client, Side::Agent]), text.as_bytes());
        }
    }
}

/// The agent says what it was sent, in one of the ways in which agents do.
fn echo(world: &mut World, talk: &Talk, bytes: &mut Bytes<'_>, session: &str) {
    let Some(text) = talk.remembered.get(bytes.below(talk.remembered.len().clamp(1, 256))) else { return };
    let says = |world: &mut World, method: &str, params: Value| {
        world.says(Side::Agent, &json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    };
    match bytes.below(4) {
        0 => {
            let update = json!({ "sessionUpdate": "session_info_update", "title": text });
            says(world, "session/update", json!({ "sessionId": session, "update": update }));
        }
        1 => says(world, "_vendor/event", json!({ "sessionId": session, "said": [{ "text": text }] })),
        _ => {
            let kind = bytes.choose(&["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]);
            for piece in pieces(bytes, text) {
                let update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": piece } });
                says(world, "session/update", json!({ "sessionId": session, "update": update }));
            }
        }
    }
    let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "x" });
    says(world, "session/update", json!({ "sessionId": session, "update": update }));
}

impl Talk {
    fn request(&mut self, world: &mut World, method: &str, params: Value, blocks: Vec<Value>) {
        let id = self.next;
        self.next += 1;
        self.asked.insert(id, (method.to_owned(), blocks));
        world.says(Side::Client, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// Looks at what the two sides got since.
    fn look(&mut self, world: &World) {
        for line in &world.to_agent[self.seen_by_agent..] {
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            let Some(id) = message["id"].as_u64().filter(|_| message["method"].is_string()) else { continue };
            let Some((method, blocks)) = self.asked.get(&id) else { continue };
            assert_eq!(message["method"], **method);
            let brings = message["params"].get("agentSkills").is_some();
            assert!(!self.drafts || !brings, "what the client brings stays here: {line}");
            assert!(!self.open.contains(&id) && !self.answered.contains(&id), "{id} is sent once");
            self.open.push(id);
            if method == "session/prompt" {
                let sent = message["params"]["prompt"].as_array().expect("blocks");
                self.remembered.push(sent.iter().filter_map(|it| it["text"].as_str()).collect());
                own_blocks(blocks, sent);
            }
        }
        self.seen_by_agent = world.to_agent.len();
        for line in &world.to_client[self.seen_by_client..] {
            // What the model gets of a skill, and the list of them all.
            for ours in [BODY, "<available_skills>", &World::mark().open()] {
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
        self.seen_by_client = world.to_client.len();
    }
}

/// The user's blocks are there, in their order, but for a command, which is written anew.
fn own_blocks(blocks: &[Value], sent: &[Value]) {
    let text = |block: &Value| block["text"].as_str().map(str::to_owned);
    let is_ours = |block: &&Value| text(block).is_some_and(|it| it.starts_with(&World::mark().open()));
    let theirs: Vec<&Value> = sent.iter().filter(|block| !is_ours(block)).collect();
    if theirs == blocks.iter().collect::<Vec<_>>() {
        return;
    }
    // One of them was a command: what stood behind it is the user's, too.
    let is_command = |block: &&Value| text(block).is_some_and(|it| it.trim_start().starts_with(['/', '$']));
    assert!(blocks.iter().any(|block| is_command(&block)), "{blocks:?} became {sent:?}");
    let others = blocks.iter().filter(|block| !is_command(block));
    let mut left = sent.iter();
    for block in others {
        assert!(left.any(|it| it == block), "{block} is lost: {sent:?}");
    }
}
