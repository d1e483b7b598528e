//! Tests of the classifier.

use proptest::prelude::*;

use super::*;

/// The kinds of update that the caller reads in these tests.
const READ: [&[u8]; 3] = [br#""user_message_chunk""#, br#""session_info_update""#, br#""state_update""#];

fn classifier() -> Classifier {
    Classifier::new(&READ)
}

fn class(line: &[u8]) -> Class {
    classifier().classify(line)
}

#[test]
fn classes() {
    for (line, expected) in [
        (
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{}}}}"#,
            Class::Streaming,
        ),
        (
            r#" { "method" : "session/update" , "params" : { "update" : { "x":[{}], "sessionUpdate" : "plan" } } }"#,
            Class::Streaming,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk"}}}"#,
            Class::Other,
        ),
        (
            r#"{"method":"session/update","params":{"update":{"messageId":"m","content":[],"sessionUpdate":"state_update"}}}"#,
            Class::Other,
        ),
        (
            r#"{"method":"session/update","params":{"update":{"sessionUpdate":"state_update","state":"idle"}}}"#,
            Class::Other,
        ),
        (
            r#"{"method":"session/update","params":{"update":{"title":"\"sessionUpdate\":\"plan\"","sessionUpdate":"session_info_update"}}}"#,
            Class::Other,
        ),
        (r#"{"params":{"update":{"sessionUpdate":"plan"}},"method":"session/update"}"#, Class::Other),
        (r#"{"id":1,"method":"session/update","params":{"update":{"sessionUpdate":"plan"}}}"#, Class::Other),
        (r#"{"method":"session/update_later","params":{"update":{"sessionUpdate":"plan"}}}"#, Class::Other),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Class::Other),
        (r#"{"method":"session/update","params":{"update":{"sessionUpdate":7}}}"#, Class::Other),
        (r#"{"method":"session/update","params":{"update":{}}}"#, Class::Other),
        (r#"{"method":"session/update","par"#, Class::Other),
        ("[]", Class::Other),
        ("{}", Class::Other),
        ("{ }", Class::Other),
        ("", Class::NotAMessage),
        ("\n", Class::NotAMessage),
        ("Listening on port 3000", Class::NotAMessage),
        ("{junk}", Class::NotAMessage),
        ("{\"a\"}", Class::NotAMessage),
        ("12", Class::NotAMessage),
    ] {
        assert_eq!(class(line.as_bytes()), expected, "{line}");
    }
}

const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}"#;

#[test]
fn learns_how_an_agent_writes() {
    for (line, head, front) in [
        (
            UPDATE,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#,
            r#"","update":{"sessionUpdate":"#,
        ),
        (
            r#"{"method":"session/update","params":{"update":{"sessionUpdate":"plan"},"sessionId":"s"}}"#,
            "",
            r#"{"method":"session/update","params":{"update":{"sessionUpdate":"#,
        ),
        (
            r#"{"method":"session/update","params":{"sessionId":7,"update":{"sessionUpdate":"plan"}}}"#,
            "",
            r#"{"method":"session/update","params":{"sessionId":7,"update":{"sessionUpdate":"#,
        ),
    ] {
        let mut learned = classifier();
        assert_eq!(learned.classify(line.as_bytes()), Class::Streaming, "{line}");
        let expected = Shape { head: head.into(), front: front.into(), kind: front.len() };
        assert_eq!(learned.shape, Some(expected), "{line}");
    }
    let mut learned = classifier();
    for known in [0, 95, 95] {
        learned.classify(UPDATE.as_bytes());
        assert_eq!((learned.kind(), learned.known()), (95, known));
    }
    // The id doesn't end at the escaped quote, so this line only looks like it has the learned shape.
    let escaped = UPDATE.replace(r#""s""#, r#""s\""#);
    let mut learned = classifier();
    learned.classify(UPDATE.as_bytes());
    assert_eq!(learned.classify(escaped.as_bytes()), Class::Other);
    // An additional space should not change the class.
    let spaced = UPDATE.replace(":\"plan", ": \"plan");
    let mut learned = classifier();
    learned.classify(UPDATE.as_bytes());
    assert_eq!(learned.classify(spaced.as_bytes()), Class::Streaming);
    // Don't learn a shape if there is an escaped quote in the id.
    let mut learned = classifier();
    learned.classify(UPDATE.replace(r#""s""#, r#""\"""#).as_bytes());
    assert_eq!(learned.shape, None);
}

#[test]
fn an_extended_shape_is_compared_as_a_whole() {
    let chunk = UPDATE.replace(r#""plan""#, r#""chunk","text":"x""#);
    let text = chunk.find("x\"").unwrap();
    let mut learned = classifier();
    learned.classify(chunk.as_bytes());
    learned.extend(chunk.as_bytes(), text);
    for (line, expected) in [
        (chunk.clone(), (Class::Streaming, text)),
        (chunk.replace("\"s\"", "\"other\""), (Class::Streaming, text + 4)),
        (chunk.replace("chunk", "state_update"), (Class::Other, 95)),
        (chunk.replace("text", "data"), (Class::Streaming, 95)),
        (chunk.clone(), (Class::Streaming, text)),
        (chunk.replace("{\"jsonrpc", "{ \"jsonrpc"), (Class::Streaming, 0)),
        (chunk.clone(), (Class::Streaming, 0)),
        (chunk.clone(), (Class::Streaming, 95)),
    ] {
        assert_eq!((learned.classify(line.as_bytes()), learned.known()), expected, "{line}");
    }
}

#[test]
fn a_shape_never_ends_within_a_kind() {
    let chunk = UPDATE.replace("plan", "user_thought");
    let kind = chunk.find("\"user_thought").unwrap();
    for to in 0..=kind + "\"user_thought".len() {
        let mut learned = classifier();
        learned.classify(chunk.as_bytes());
        learned.extend(chunk.as_bytes(), to);
        let read = UPDATE.replace("plan", "user_message_chunk");
        assert_eq!(learned.classify(read.as_bytes()), Class::Other, "{to}");
    }
}

proptest! {
    /// A learned shape never changes the class of a line.
    #[test]
    fn classes_do_not_depend_on_earlier_lines(
        changes in proptest::collection::vec((0..UPDATE.len(), 0_usize..8, "[a-z\"\\\\{}:, ]{0,12}"), 0..3),
        kind in "(plan|user_message_chunk|user_message|user_messages|state_update|agent_message_chunk)",
        to in 0..UPDATE.len(),
    ) {
        let mut line = UPDATE.replace("plan", &kind);
        for (at, length, with) in changes {
            let at = at.min(line.len());
            let end = (at + length).min(line.len());
            line.replace_range(at..end, &with);
        }
        let mut learned = classifier();
        learned.classify(UPDATE.as_bytes());
        prop_assert_eq!(learned.classify(line.as_bytes()), class(line.as_bytes()), "{}", line);
        let mut learned = classifier();
        learned.classify(UPDATE.as_bytes());
        learned.extend(UPDATE.as_bytes(), to);
        prop_assert_eq!(learned.classify(line.as_bytes()), class(line.as_bytes()), "{}", line);
    }
}
