//! Removing our text from history. The user's text stays unchanged, no matter where chunks are cut, and our text is removed.

use acp_skills_intercept::{Policy, begins_with_ours};
use serde_json::{Value, json};

use super::{
    bytes::Bytes,
    fixture::{BODY, Fixture, Side, skill},
};

pub(super) fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let mut fixture = Fixture::with_session(Policy::default(), vec![skill("review", |_| {})]);
    for round in 0..=bytes.below(3) {
        let text = written(&mut bytes);
        let before = fixture.to_agent.len();
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": text }] });
        let id = 100 + round;
        fixture.send(
            Side::Client,
            &json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": prompt }),
        );
        fixture.settle();
        let Some(sent) = fixture.to_agent.get(before) else { continue };
        let sent: Value = serde_json::from_str(sent).expect("JSON");
        let blocks = sent["params"]["prompt"].as_array().expect("blocks").clone();
        let theirs = blocks.iter().filter(|block| !begins_with_ours(block["text"].as_str().expect("text")));
        let is_command = text.trim_start().starts_with('/');
        if !is_command {
            let theirs: Vec<_> = theirs.map(|block| block["text"].as_str().expect("text")).collect();
            assert_eq!(theirs, [&*text], "the agent receives the user's text");
        }
        let all: String = blocks.iter().map(|block| block["text"].as_str().expect("text")).collect();
        let kind = bytes.choose(&["user_message_chunk", "agent_message_chunk"]);
        let shown = replay(&mut fixture, kind, &pieces(&mut bytes, &all));
        assert!(!shown.contains(BODY) && !shown.contains("<available_skills>"), "{shown:?}");
        if is_command {
            assert_eq!(words(&shown), words(&text));
        } else if blocks.len() > 1 {
            // Some agents put a separator between blocks, which we have to remove as well.
            assert_eq!(without_separator(&shown), without_separator(&text));
        } else {
            assert_eq!(shown, text);
        }
        fixture.send(
            Side::Agent,
            &json!({ "jsonrpc": "2.0", "id": id, "result": { "stopReason": "end_turn" } }),
        );
    }
}

/// The length of `<acp-skills-proxy:` and nine digits. A mark of this length can be recognized by its digits.
const RECOGNIZABLE: usize = 18 + 9;

fn without_separator(text: &str) -> &str {
    let text = text.trim_start_matches(['\r', '\n']);
    text.strip_prefix(' ').unwrap_or(text)
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Returns a user's text: words, commands, and text that resembles our marks.
pub(super) fn written(bytes: &mut Bytes<'_>) -> String {
    let mark = Fixture::mark();
    let open = mark.open();
    let close = mark.close();
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
    // It's possible that these parts make up a whole mark, or that they contain something that's only used in our text. A user
    // would not write this by chance, so we don't use it here.
    let known = [&open[..RECOGNIZABLE], &close[..=RECOGNIZABLE], BODY, "<available_skills>"];
    if known.iter().any(|ours| text.contains(ours)) { "hello".to_owned() } else { text }
}

/// Cuts a text into pieces.
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
        let (piece, remaining) = rest.split_at(step.clamp(1, rest.len()));
        pieces.push(piece.iter().collect());
        rest = remaining;
    }
    pieces
}

/// Lets the agent send chunks, and returns the text that the client receives.
pub(super) fn replay(fixture: &mut Fixture, kind: &str, pieces: &[String]) -> String {
    let before = fixture.to_client.len();
    for piece in pieces {
        let update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": piece } });
        let params = json!({ "sessionId": "s", "update": update });
        fixture.send(Side::Agent, &json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }
    let end = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "x" });
    fixture.send(
        Side::Agent,
        &json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": end } }),
    );
    let lines =
        fixture.to_client[before..].iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines
        .filter_map(|line| line.pointer("/params/update/content/text")?.as_str().map(str::to_owned))
        .collect()
}
