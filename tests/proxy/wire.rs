//! Messages that the proxy does not change pass byte for byte, in both directions.

use std::{fs, io::Write, thread};

use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};

use crate::{
    agent,
    editor::Proxy,
    fixture::{Fixture, cwd},
    skills::Skills,
};

crate::trials!(
    unusual_messages_pass_unchanged,
    random_lines_pass_unchanged,
    other_output_of_the_agent_is_dropped,
    a_last_line_without_a_line_break,
    huge_lines,
    deeply_nested_messages,
    only_our_entry_is_added,
    only_the_catalog_is_added,
    ids_of_any_type,
    both_sides_may_use_the_same_id,
);

/// The bytes that passed through a proxy.
pub(crate) struct Transcript {
    /// The bytes that the agent received.
    pub(crate) agent_received: Vec<u8>,
    /// The bytes that the editor received.
    pub(crate) editor_received: Vec<u8>,
    log: String,
}

/// Makes the editor send `sent` and the agent send `said`, both at once. The editor waits for `lines` lines of the agent
/// before it closes its end.
pub(crate) fn relay(proxy: Proxy, sent: &[u8], said: &[u8], lines: usize) -> Transcript {
    let dir = tempfile::tempdir().expect("a directory");
    let says = dir.path().join("says");
    let hears = dir.path().join("hears");
    fs::write(&says, said).expect("a file");
    let mut editor = proxy.env(agent::OUTPUT_FILE, &says).env(agent::INPUT_FILE, &hears).agent("tape");
    let mut stdin = editor.take_stdin();
    let sent = sent.to_vec();
    let writer = thread::spawn(move || {
        stdin.write_all(&sent).expect("the proxy reads");
        stdin
    });
    let mut read = Vec::new();
    for _ in 0..lines {
        read.extend(editor.line().expect("a line of the agent's"));
    }
    drop(writer.join().expect("everything is written"));
    while let Some(line) = editor.line() {
        read.extend(line);
    }
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(0), "{:#?}", ended.log);
    Transcript {
        agent_received: fs::read(hears).expect("the agent has written its input"),
        editor_received: read,
        log: ended.log.join("\n"),
    }
}

/// Fails unless `read` is `said`, followed only by the proxy's error responses to requests that the agent did not answer.
pub(crate) fn assert_read(read: &[u8], said: &[u8]) {
    let same = read.len() >= said.len() && read[..said.len()] == *said;
    assert!(same, "said: {}\nread: {}", shown(said), shown(read));
    for line in read[said.len()..].split_inclusive(|&byte| byte == b'\n') {
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        let text = message["error"]["message"].as_str().unwrap_or_default();
        assert!(text.starts_with("the agent exited"), "an unexpected line: {}", shown(line));
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned()
}

/// Messages that are in no schema, or that a peer should not send.
const ODD: &[&[u8]] = &[
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"_x/y\",\"params\":{\"n\":1.0000000000000000000000001,\"e\":1E+2,\"z\":-0}}\r\n",
    b"  {\t\"params\" : [ ] , \"method\":\"session\\/update\",\"id\" : 1e2 }  \n",
    b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{}},{\"jsonrpc\":\"2.0\",\"method\":\"a\"}]\n",
    b"[]\n",
    b"{}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"unknown\",\"update\":{\"sessionUpdate\":\"never_heard_of\",\"a\":{\"b\":[null]}},\"_meta\":{}}}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"user_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"\\u0068i < acp\"}}}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":\"\\u00e9\",\"result\":{\"models\":{\"x\":1},\"models\":2}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{},\"error\":{\"code\":1}}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"_latin\",\"params\":\"caf\xe9 \xff\xfe\"}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"_nul\",\"params\":\"\x00\x01\"}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"_surrogate\",\"params\":\"\\ud800 \\udc00\"}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"_cut\",\"params\":{\"a\":[1,2\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s\",\"options\":[]}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"mcp/message\",\"params\":{\"serverId\":\"somebody-else\",\"method\":\"tools/list\"}}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":99999999999999999999}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"session/set_mode\",\"params\":{\"sessionId\":\"s\",\"modeId\":\"m\"},\"extra\":true}\n",
];

fn unusual_messages_pass_unchanged() {
    let skills = Skills::review();
    let all = ODD.concat();
    // Only the editor sends lines that aren't JSON here. The proxy forwards them, and the agent decides what to do with
    // them.
    let sent = [&all[..], b"no JSON\n\n \r\n\"text\"\n{broken}\n\xff\n"].concat();
    for proxy in [Proxy::new(), skills.proxy()] {
        let transcript = relay(proxy, &sent, &all, ODD.len());
        assert_eq!(shown(&transcript.agent_received), shown(&sent));
        assert!(transcript.agent_received == sent, "the bytes differ");
        assert_read(&transcript.editor_received, &all);
    }
}

/// Generates JSON with the words of the protocol in all the wrong places.
fn any_json() -> impl Strategy<Value = Value> {
    const WORDS: [&str; 18] = [
        "jsonrpc",
        "2.0",
        "id",
        "method",
        "params",
        "result",
        "error",
        "sessionId",
        "update",
        "sessionUpdate",
        "prompt",
        "session/update",
        "session/new",
        "session/prompt",
        "session/cancel",
        "initialize",
        "user_message_chunk",
        "title",
    ];
    let word =
        prop_oneof![4 => prop::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => any::<String>()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Generates a line that contains an object.
fn any_line() -> impl Strategy<Value = String> {
    let space = prop::sample::select(&["", " ", "\t ", "   "][..]);
    let end = prop::sample::select(&["\n", "\r\n", " \n"][..]);
    (any_json(), any::<bool>(), space, end).prop_map(|(value, wide, space, end)| {
        let value = if value.is_object() { value } else { json!({ "jsonrpc": "2.0", "params": value }) };
        let text = if wide { format!("{value:#}").replace('\n', " ") } else { value.to_string() };
        format!("{space}{text}{end}")
    })
}

/// Without skills, relaying is byte-identical.
fn random_lines_pass_unchanged() {
    let lines = || prop::collection::vec(any_line(), 1..60);
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() });
    let outcome = runner.run(&(lines(), lines()), |(sent, said)| {
        let count = said.len();
        let sent = sent.concat();
        let said = said.concat();
        let transcript = relay(Proxy::new(), sent.as_bytes(), said.as_bytes(), count);
        prop_assert_eq!(shown(&transcript.agent_received), shown(sent.as_bytes()));
        prop_assert!(transcript.agent_received == sent.as_bytes());
        assert_read(&transcript.editor_received, said.as_bytes());
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

fn other_output_of_the_agent_is_dropped() {
    let good = [ODD[0], ODD[1], ODD[3]];
    let junk: &[&[u8]] = &[
        b"Listening on port 3000\n",
        b"\n",
        b"   \r\n",
        b"\x1b[31mred\x1b[0m\n",
        b"12\n",
        b"null\n",
        b"\"text\"\n",
        b"{junk}\n",
        b"\xff\xfe\n",
        b"> npx some-agent\n",
    ];
    let said: Vec<&[u8]> =
        junk[..4].iter().chain(&good[..2]).chain(&junk[4..]).chain(&good[2..]).copied().collect();
    let transcript = relay(Proxy::new().flag("--log", "info"), b"", &said.concat(), good.len());
    assert_read(&transcript.editor_received, &good.concat());
    for words in ["Listening on port 3000", "npx some-agent", "{junk}"] {
        assert!(transcript.log.contains(words), "{words} is not in {}", transcript.log);
    }
    assert_eq!(
        transcript.log.matches("is not a message").count(),
        junk.len() - 2,
        "empty lines are not logged: {}",
        transcript.log
    );
}

fn a_last_line_without_a_line_break() {
    let line = br#"{"jsonrpc":"2.0","method":"_last","params":{}}"#;
    let both = [ODD[1], line].concat();
    let transcript = relay(Proxy::new(), &both, &both, 1);
    assert_eq!(shown(&transcript.agent_received), shown(&both));
    assert_eq!(shown(&transcript.editor_received), shown(&both));
}

fn huge_lines() {
    let skills = Skills::review();
    let text = "0123456789abcdef".repeat(50 * 1024 * 1024 / 16);
    let line = |front: &str| [front.as_bytes(), text.as_bytes(), b"\"}}}\n"].concat();
    let update = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","text":""#;
    let other = r#"{"jsonrpc":"2.0","method":"_huge","params":{"a":{"b":""#;
    for front in [update, other] {
        let line = line(front);
        let transcript = relay(skills.proxy(), &line, &line, 1);
        assert!(transcript.agent_received == line && transcript.editor_received == line, "the bytes differ");
    }
}

/// Fails unless `after` is `before` with a single insertion. Returns the inserted text.
fn inserted<'a>(before: &str, after: &'a str) -> &'a str {
    let from = before.as_bytes();
    let to = after.as_bytes();
    let front = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let back = from[front..].iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
    assert_eq!(front + back, from.len(), "more than one insertion:\n{before}\n{after}");
    &after[front..after.len() - back]
}

fn only_our_entry_is_added() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    for (servers, comma) in [
        (
            r#"[ { "name" : "mine", "command":"\/bin\/true","args":[ ],"env":[] , "x":1.50 }, {"type":"http","name":"acp","url":"http://x","headers":[]}]"#,
            true,
        ),
        ("[]", false),
        ("[ ]", false),
    ] {
        let line = format!(
            "{{\"jsonrpc\": \"2.0\",\"id\":\"n\" , \"method\":\"session/new\",\"params\":{{ \"_meta\":{{\"k\":[1e3]}},\"cwd\":{:?},\"mcpServers\":{servers} , \"unknown\":null}}}}\r\n",
            cwd()
        );
        fixture.editor.write(line.as_bytes());
        let received = fixture.line();
        let piece = inserted(&line, &received);
        let entry: Value = serde_json::from_str(piece.trim_start_matches(',')).expect("an entry");
        assert_eq!((&entry["name"], piece.starts_with(',')), (&json!("acp-skills"), comma), "{piece}");
        fixture.agent_writes(&[r#"{"jsonrpc":"2.0","id":"n","result":{"sessionId":"s","models":{"a":1}}}"#]);
        assert_eq!(fixture.editor.answer(&json!("n"))["result"]["models"], json!({ "a": 1 }));
    }
    fixture.finish();
}

fn only_the_catalog_is_added() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy().flag("--mcp", "off"));
    fixture.new_session("s");
    let line = "{ \"id\":9,\"method\":\"session/prompt\",\"params\":{\"prompt\": [ {\"text\":\"h\\u0069\",\"type\":\"text\"} , {\"type\":\"image\",\"data\":\"AAAA\"}],\"sessionId\":\"s\",\"messageId\":null},\"jsonrpc\":\"2.0\"}\n";
    fixture.editor.write(line.as_bytes());
    let received = fixture.line();
    let piece = inserted(line, &received);
    let block: Value = serde_json::from_str(piece.trim().trim_end_matches(',')).expect("a block");
    assert!(block["text"].as_str().is_some_and(|text| text.contains("available_skills")), "{piece}");
    fixture.agent_writes(&[r#"{"jsonrpc":"2.0","id":9,"result":{}}"#]);
    fixture.editor.answer(&json!(9));
    fixture.finish();
}

fn ids_of_any_type() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy().flag("--mcp", "off"));
    let ids = [
        r#""text""#,
        "-1",
        "0",
        "123456789012345678901234567890",
        "1.5",
        r#""1""#,
        "1",
        r#""\u00e9""#,
        "true",
    ];
    for (number, id) in ids.into_iter().enumerate() {
        let params = json!({ "cwd": "/", "mcpServers": [] });
        fixture.editor.write(
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/new\",\"params\":{params}}}\n")
                .as_bytes(),
        );
        assert!(fixture.line().contains(&format!("\"id\":{id},")), "{id}");
        let session = format!("s{number}");
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"sessionId":"{session}"}}}}"#);
        fixture.agent_writes(&[&line]);
        fixture.editor.wait_for(id, |message| message["result"]["sessionId"] == session);
        assert_eq!(fixture.prompt(&session, "hello").len(), 2, "the answer to {id} was not understood");
    }
    fixture.finish();
}

fn both_sides_may_use_the_same_id() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy().flag("--mcp", "off"));
    let id = fixture.editor.request("session/new", json!({ "cwd": "/", "mcpServers": [] }));
    let request = fixture.agent_receives();
    // First, send a request from the agent that happens to have the same id.
    let question =
        json!({ "jsonrpc": "2.0", "id": id, "method": "fs/read_text_file", "params": { "path": "/x" } });
    fixture.agent_sends(&question);
    assert_eq!(
        fixture.editor.wait_for("the question", |message| message["method"] == question["method"]),
        question
    );
    let refusal = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": "no" } });
    fixture.editor.send(&refusal);
    assert_eq!(fixture.agent_receives(), refusal);
    fixture.agent_replies(&request, json!({ "result": { "sessionId": "s" } }));
    assert_eq!(fixture.editor.answer(&id)["result"]["sessionId"], "s");
    assert_eq!(fixture.prompt("s", "hello").len(), 2);
    fixture.finish();
}

/// Prompts and updates that are nested 100,000 levels deep, in the places that the proxy reads.
fn deeply_nested_messages() {
    let depth = 100_000;
    let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let text = r#"{"type":"text","text":"/review it"}"#;
    let prompts = [
        nested(text),
        nested(""),
        format!("[{objects}]"),
        format!(r#"[{{"type":"text","text":{objects}}}]"#),
    ];
    let line = |message: &str, params: &str, name: &str, value: &str| {
        format!(r#"{{"jsonrpc":"2.0",{message},"params":{{{params},"{name}":{value}}}}}"#) + "\n"
    };
    let prompt =
        |prompt: &String| line(r#""id":1,"method":"session/prompt""#, r#""sessionId":"s""#, "prompt", prompt);
    let update =
        |update: &String| line(r#""method":"session/update""#, r#""sessionId":"s""#, "update", update);
    let sent: String = prompts.iter().map(prompt).collect();
    let said: String = [nested(text), objects.clone()].iter().map(update).collect();
    let skills = Skills::review();
    let transcript = relay(skills.proxy(), sent.as_bytes(), said.as_bytes(), said.lines().count());
    assert!(transcript.agent_received == sent.as_bytes(), "the prompts are unchanged");
    // After the updates, the editor gets errors for the prompts, which the agent has not answered.
    assert!(transcript.editor_received.starts_with(said.as_bytes()), "the updates are unchanged");
}
