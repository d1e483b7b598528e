//! Tests that our text is removed from messages between an agent and its subagents.

use super::*;

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[test]
fn session_messages() {
    let command = Mark::new(7).wrap("<typed>/review <rest>src</rest></typed>\nDo it.");
    let ours_whole = ours();
    let (front, back) = ours_whole.split_at(30);
    for (content, expected) in [
        (json!([text("hello")]), json!([text("hello")])),
        (json!([text(&ours()), text("hello")]), json!([text("hello")])),
        (json!([text(front), text(&format!("{back}hello"))]), json!([text("hello")])),
        (json!([text(&command), text("src")]), json!([text("/review src")])),
        (json!([text("<acp-skills-proxy> is mine")]), json!([text("<acp-skills-proxy> is mine")])),
        (json!(null), json!(null)),
    ] {
        let mut fixture = fixture();
        let update = json!({ "sessionUpdate": "session_message", "messageId": "m", "senderSessionId": "s", "content": content });
        let out = fixture.update("child", &update);
        let seen = &out.client()["params"]["update"];
        assert_eq!((&seen["content"], &seen["senderSessionId"]), (&expected, &json!("s")), "{content}");
        // It is not a prompt, so the catalog is still due.
        assert!(texts(fixture.prompt(2, "s", &["hi"]).agent())[0].contains("<name>review</name>"));
    }
}

#[test]
fn chunks_of_session_messages() {
    let chunk = |words: &str| json!({ "sessionUpdate": "session_message_chunk", "messageId": "m", "content": text(words) });
    let whole = format!("before {}after", ours());
    for cut in (1..whole.len()).filter(|&at| whole.is_char_boundary(at)) {
        let mut fixture = fixture();
        let mut lines = fixture.update("child", &chunk(&whole[..cut])).to_client;
        lines.extend(fixture.update("child", &chunk(&whole[cut..])).to_client);
        lines.extend(
            fixture.update("child", &json!({ "sessionUpdate": "agent_message", "messageId": "n" })).to_client,
        );
        let seen: String =
            lines.iter().filter_map(|line| line["params"]["update"]["content"]["text"].as_str()).collect();
        assert_eq!(seen, "before after", "{cut}");
    }
}

#[test]
fn titles_of_subagents() {
    let open = Mark::new(7).open();
    for (title, expected) in [
        (json!("Reviewer"), json!("Reviewer")),
        (json!(format!("{}Review it", ours())), json!("Review it")),
        (json!(format!("{open} <available_sk…")), Value::Null),
        (json!("<acp-skills-pr…"), Value::Null),
        (json!("a < b"), json!("a < b")),
        (json!(null), Value::Null),
    ] {
        let mut fixture = fixture();
        let update = json!({
            "sessionUpdate": "subagent_update", "sessionId": "child", "title": title, "description": format!("{}Reads", ours()),
        });
        let out = fixture.update("s", &update);
        let seen = &out.client()["params"]["update"];
        assert_eq!((&seen["title"], &seen["description"]), (&expected, &json!("Reads")), "{title}");
        assert_eq!(seen["sessionId"], "child");
    }
}
