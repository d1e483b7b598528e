//! What a person wrote comes back as it was, whatever it was and however it is cut, and nothing of ours comes with it.

use acp_skills_intercept::Policy;
use serde_json::{Value, json};

use super::{
    bytes::Bytes,
    world::{BODY, Side, World, skill},
};

pub(super) fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let mut world = World::with_session(Policy::default(), vec![skill("review", |_| {})]);
    for round in 0..=bytes.below(3) {
        let text = written(&mut bytes);
        let before = world.to_agent.len();
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": text }] });
        let id = 100 + round;
        world.says(
            Side::Client,
            &json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": prompt }),
        );
        world.settle();
        let Some(sent) = world.to_agent.get(before) else { continue };
        let sent: Value = serde_json::from_str(sent).expect("JSON");
        let blocks = sent["params"]["prompt"].as_array().expect("blocks").clone();
        let ours = World::mark().open();
        let theirs = blocks.iter().filter(|it| !it["text"].as_str().expect("text").starts_with(&ours));
        let is_command = text.trim_start().starts_with('/');
        if !is_command {
            let theirs: Vec<_> = theirs.map(|it| it["text"].as_str().expect("text")).collect();
            assert_eq!(theirs, [&*text], "the agent gets what was written");
        }
        let all: String = blocks.iter().map(|it| it["text"].as_str().expect("text")).collect();
        let kind = bytes.choose(&["user_message_chunk", "agent_message_chunk"]);
        let shown = replay(&mut world, kind, &pieces(&mut bytes, &all));
        assert!(!shown.contains(BODY) && !shown.contains("<available_skills>"), "{shown:?}");
        if is_command {
            assert_eq!(words(&shown), words(&text));
        } else if blocks.len() > 1 {
            // Agents that join blocks put something in between, which is not shown.
            assert_eq!(without_separator(&shown), without_separator(&text));
        } else {
            assert_eq!(shown, text);
        }
        world.says(
            Side::Agent,
            &json!({ "jsonrpc": "2.0", "id": id, "result": { "stopReason": "end_turn" } }),
        );
    }
}

/// From here on in a mark, its digits follow from others: `<acp-skills-proxy:` and nine digits.
const DIGITS_TELL: usize = 18 + 9;

fn without_separator(text: &str) -> &str {
    let text = text.trim_start_matches(['\r', '\n']);
    text.strip_prefix(' ').unwrap_or(text)
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// What a person may write: words, commands, and what looks like our marks.
pub(super) fn written(bytes: &mut Bytes<'_>) -> String {
    let mark = World::mark();
    let (open, close) = (mark.open(), mark.close());
    let broken = open.replace(char::is_numeric, "a");
    let mut text = String::new();
    for _ in 0..bytes.below(8) {
        let parts = [
            "hello ",
            "/review ",
            "<",
            "</",
            "<acp-skills-proxy>",
            "<acp-skills-proxy:",
            "</acp-skills-proxy:",
            "\n",
            "é🎉",
            "<typed>",
            "</typed>",
            &open[..22],
            &close[..9],
            &broken,
            "<available",
            ">",
        ];
        text.push_str(bytes.choose(&parts));
        if bytes.below(3) == 0 {
            text.push_str(&bytes.text());
        }
    }
    // What was cut off may become whole with what follows; then it is a mark that nobody has written by chance.
    // So is what stands in our texts alone, by which they are known here.
    let known = [&open[..DIGITS_TELL], &close[..=DIGITS_TELL], BODY, "<available_skills>"];
    if known.iter().any(|ours| text.contains(ours)) { "hello".to_owned() } else { text }
}

/// The text, cut into pieces at any characters.
pub(super) fn pieces(bytes: &mut Bytes<'_>, text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut rest = &chars[..];
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let step = match bytes.below(4) {
            0 => rest.len(),
            1 => 1,
            _ => bytes.next().into(),
        };
        let (piece, others) = rest.split_at(step.clamp(1, rest.len()));
        pieces.push(piece.iter().collect());
        rest = others;
    }
    pieces
}

/// What the client is shown of these chunks.
pub(super) fn replay(world: &mut World, kind: &str, pieces: &[String]) -> String {
    let before = world.to_client.len();
    for piece in pieces {
        let update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": piece } });
        let params = json!({ "sessionId": "s", "update": update });
        world.says(Side::Agent, &json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }
    let end = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "x" });
    world.says(
        Side::Agent,
        &json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": end } }),
    );
    let lines =
        world.to_client[before..].iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines
        .filter_map(|line| line.pointer("/params/update/content/text")?.as_str().map(str::to_owned))
        .collect()
}
