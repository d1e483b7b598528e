//! The envelopes of proxy chains. Unwrapping and wrapping a message keeps it unchanged, and no message is lost.

use acp_skills_wire::{
    Message,
    successor::{Origin, Sorted, Switch},
};
use serde_json::Value;

const BEGIN: &[u8] =
    br#"{"jsonrpc":"2.0","id":0,"method":"proxy/initialize","params":{"protocolVersion":1}}"#;

pub(super) fn run(lines: &[u8]) {
    let mut switch = Switch::default();
    let begins = lines.first().is_none_or(|first| first % 4 != 0);
    if begins {
        let begun = switch.sort(BEGIN);
        assert!(matches!(begun, Sorted::From(Origin::Client, _)) && switch.has_begun(), "{begun:?}");
    }
    for line in lines.split(|&byte| byte == b'\n').take(64) {
        let message = Message::parse(line);
        match switch.sort(line) {
            Sorted::From(origin, inner) => {
                let message = message.expect("only messages are forwarded");
                let Ok(outer) = serde_json::from_slice::<Value>(line) else { continue };
                let inner_value: Value = serde_json::from_slice(&inner).expect("valid JSON stays valid");
                assert_eq!(inner_value.get("id"), outer.get("id"), "the id stays the same");
                // Now wrap the message, to make sure that we get the same one as before.
                let method = message.method();
                if origin == Origin::Successor && method.ends_with("proxy/successor") {
                    assert_eq!(inner_value["method"], outer["params"]["method"]);
                    let mut again = Switch::default();
                    again.sort(BEGIN);
                    let wrapped: Value = serde_json::from_slice(&again.to_successor(&inner)).expect("JSON");
                    assert_eq!(wrapped["params"]["method"], outer["params"]["method"]);
                    let params = wrapped["params"].get("params");
                    let before = outer["params"].get("params");
                    assert_eq!(params, before.filter(|params| !params.is_null()));
                }
            }
            Sorted::Answer(answer) | Sorted::NoChain(answer) => {
                let answer: Value = serde_json::from_slice(&answer).expect("JSON");
                assert!(answer["error"]["code"].is_i64(), "{answer}");
            }
            Sorted::Dropped(why) => assert!(!why.is_empty()),
        }
        let sent = switch.to_successor(line);
        if serde_json::from_slice::<Value>(line).is_ok() {
            serde_json::from_slice::<Value>(&sent).expect("valid JSON stays valid");
        }
    }
}
