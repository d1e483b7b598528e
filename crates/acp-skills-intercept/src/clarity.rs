//! Finds messages of the agent that the client may read in another way than the proxy.
//!
//! JSON allows several members with the same name, and names with escapes, and programs treat them differently. The proxy usually forwards
//! such messages as they are. While the user is asked about a call, they could change what the client shows.

use std::collections::HashSet;

use acp_skills_wire::Node;

/// Returns true if a line is a batch, no valid JSON, or if the message or its update has a name twice or with an escape.
pub(crate) fn is_unclear(line: &[u8]) -> bool {
    let Some(root) = Node::parse(line).filter(Node::is_object) else { return true };
    let params = root.get("params");
    let update = params.and_then(|params| params.get("update"));
    [Some(root), params, update].into_iter().flatten().any(has_unclear_name)
}

fn has_unclear_name(object: Node<'_>) -> bool {
    let mut names = HashSet::new();
    object.members().any(|(name, _)| name.raw().contains(&b'\\') || !names.insert(name.raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_with_two_meanings() {
        for (line, expected) in [
            (
                r#"{"jsonrpc":"2.0","method":"x","params":{"update":{"a":"\u0061","b":[{"c":1,"c":2}]}}}"#,
                false,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, false),
            (r#"{"method":"x","method":"y"}"#, true),
            (r#"{"m\u0065thod":"x"}"#, true),
            (r#"{"method":"x","params":{"sessionId":"a","sessionId":"b"}}"#, true),
            (r#"{"method":"x","params":{"update":{"rawInput":1,"rawInput":{}}}}"#, true),
            (r#"{"method":"x","params":{"update":{"sessionU\u0070date":"y"}}}"#, true),
            (r#"[{"method":"x"}]"#, true),
            ("", true),
        ] {
            assert_eq!(is_unclear(line.as_bytes()), expected, "{line}");
        }
    }
}
