//! A line. Our parser finds the same values as a full parser, and edits change only their target.

use acp_skills_wire::{Class, Classifier, Edit, Id, Message, Node};
use serde_json::Value;

const UPDATE: &[u8] =
    br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}"#;

pub(super) fn run(line: &[u8]) {
    // The classifier keeps some state, but the result for a line should not depend on the lines before it.
    let class = Classifier::new(&[b"\"tool_call\""]).classify(line);
    let mut learned = Classifier::new(&[b"\"tool_call\""]);
    learned.classify(UPDATE);
    assert_eq!(learned.classify(line), class);
    learned.classify(line);
    assert_eq!(learned.classify(line), class);
    let message = Message::parse(line);
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        if let Some(message) = message {
            // The line isn't valid JSON, so all we can check is that none of these panic.
            visit(message.root, 0);
            message.id();
            message.method();
            message.session_id();
        }
        return;
    };
    let Value::Object(members) = &value else {
        assert!(message.is_none());
        return;
    };
    assert_ne!(class, Class::NotAMessage);
    let message = message.expect("an object is a message");
    compare(message.root, &value);
    assert_eq!(message.method(), value["method"].as_str().unwrap_or_default());
    assert_eq!(message.id.is_some(), members.contains_key("id"));
    if let Some(Id::Text(id)) = message.id() {
        assert_eq!(value["id"], id);
    }
    assert_eq!(message.session_id().as_deref(), value["params"]["sessionId"].as_str());
    if let Some(params) = message.params.filter(Node::is_object) {
        edits(line, &value, params);
    }
    let mut with = Edit::new();
    with.insert(message.root, "ours", "[1]");
    let with: Value = serde_json::from_slice(&with.apply(line)).expect("JSON");
    assert_eq!(with["ours"], serde_json::json!([1]));
}

/// Compares a node with the value of a full parser. If a name appears twice, the last one counts.
fn compare(node: Node<'_>, value: &Value) {
    match value {
        Value::Object(members) => {
            assert!(node.is_object());
            for (name, value) in members {
                let last = node.members().filter(|(key, _)| key.is_str(name)).last();
                let (_, found) = last.unwrap_or_else(|| panic!("no {name:?} in {:?}", node.raw()));
                compare(found, value);
            }
        }
        Value::Array(elements) => {
            assert!(node.is_array());
            assert_eq!(node.elements().count(), elements.len());
            node.elements().zip(elements).for_each(|(node, value)| compare(node, value));
        }
        Value::String(text) => {
            assert_eq!(node.as_str().as_deref(), Some(&**text));
            assert!(node.is_str(text));
        }
        Value::Bool(value) => assert_eq!(node.as_bool(), Some(*value)),
        Value::Null => assert!(node.is_null()),
        Value::Number(number) => {
            let raw: Value = serde_json::from_slice(node.raw()).expect("a number");
            assert_eq!(raw.as_number(), Some(number));
        }
    }
}

fn visit(node: Node<'_>, depth: usize) {
    node.as_str();
    if depth < 8 {
        node.members().take(100).for_each(|(_, node)| visit(node, depth + 1));
        node.elements().take(100).for_each(|node| visit(node, depth + 1));
    }
}

/// Checks that edits change their target and no other byte.
fn edits(line: &[u8], value: &Value, params: Node<'_>) {
    for (key, node) in params.members() {
        let mut edit = Edit::new();
        edit.replace(node.span(), node.raw());
        assert_eq!(edit.apply(line), line);
        let Some(key) = key.as_str() else { continue };
        if params.members().filter(|(other, _)| other.is_str(&key)).count() > 1 {
            continue;
        }
        let mut edit = Edit::new();
        edit.set(node, &Value::from("ours"));
        let mut expected = value.clone();
        expected["params"][&*key] = Value::from("ours");
        assert_eq!(serde_json::from_slice::<Value>(&edit.apply(line)).expect("JSON"), expected);
        let mut edit = Edit::new();
        edit.remove(params, &key);
        let mut expected = value.clone();
        expected["params"].as_object_mut().expect("an object").remove(&*key);
        assert_eq!(serde_json::from_slice::<Value>(&edit.apply(line)).expect("JSON"), expected);
        if node.is_array() {
            for is_first in [true, false] {
                let mut edit = Edit::new();
                if is_first {
                    edit.unshift(node, "1");
                } else {
                    edit.push(node, "1");
                }
                let mut expected = value.clone();
                let elements = expected["params"][&*key].as_array_mut().expect("an array");
                let at = if is_first { 0 } else { elements.len() };
                elements.insert(at, Value::from(1));
                assert_eq!(serde_json::from_slice::<Value>(&edit.apply(line)).expect("JSON"), expected);
            }
        }
    }
}
