//! Tells Claude's adapter in advance that our read-only tools need no permission.

use acp_skills_wire::{Edit, Message, Node};
use serde_json::{Value, json};

use crate::{
    agent_facts::AgentFacts,
    calls::{HARMLESS, qualified},
    policy::{Approve, Policy},
};

/// Adds our read-only tools to the tools without permission, in a request that sets up a session. Returns `None` if nothing
/// changes.
pub(crate) fn allow_ours(line: &[u8], server: &str, agent: &AgentFacts, policy: &Policy) -> Option<Vec<u8>> {
    if !agent.quirks.takes_allowed_tools_in_meta || policy.approve != Approve::Own {
        return None;
    }
    let message = Message::parse(line)?;
    let params = message.params.filter(Node::is_object)?;
    // We add `(*)` to avoid a warning. If we just used the name, Claude's SDK would warn on stderr that the client won't be
    // asked, and editors show this to the user.
    let names: Vec<Value> =
        HARMLESS.iter().map(|tool| format!("{}(*)", qualified(server, tool)).into()).collect();
    let mut edit = Edit::new();
    // Follow the path to the list for as long as the client has set it.
    let mut place = params;
    let path = ["_meta", "claudeCode", "options", "allowedTools"];
    for (depth, key) in path.iter().enumerate() {
        let rest = path[depth + 1..].iter().rev();
        let ours = || rest.clone().fold(Value::from(names.clone()), |value, key| json!({ *key: value }));
        match place.get(key) {
            None => edit.insert(place, key, &ours().to_string()),
            Some(list) if depth + 1 == path.len() && list.is_array() => {
                edit.push(list, &names.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
            }
            Some(next) if next.is_object() && depth + 1 < path.len() => {
                place = next;
                continue;
            }
            Some(null) if null.is_null() => edit.set(null, &ours()),
            // This should be a list. We just forward the request, so that the agent can report the error.
            Some(_) => return None,
        }
        break;
    }
    Some(edit.apply(line))
}
