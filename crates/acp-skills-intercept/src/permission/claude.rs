//! Telling Claude's adapter in advance that our reading tools need no permission.

use acp_skills_wire::{Edit, Message, Node};
use serde_json::{Value, json};

use crate::{
    agent_facts::AgentFacts,
    calls::{HARMLESS, qualified},
    policy::{Approve, Policy},
};

/// Tells Claude's adapter, in a request that sets up a session, that our reading tools need no permission.
pub(crate) fn allow_ours(line: &[u8], server: &str, agent: &AgentFacts, policy: &Policy) -> Option<Vec<u8>> {
    if !agent.quirks.takes_allowed_tools_in_meta || policy.approve != Approve::Own {
        return None;
    }
    let message = Message::parse(line)?;
    let params = message.params.filter(Node::is_object)?;
    // Claude's SDK warns of bare names, on a stderr that editors show: with them nobody asks the client.
    let names: Vec<Value> =
        HARMLESS.iter().map(|tool| format!("{}(*)", qualified(server, tool)).into()).collect();
    let mut edit = Edit::new();
    // Down to the list, as far as the client has been there.
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
            // Not what it should be; that is between the client and the agent.
            Some(_) => return None,
        }
        break;
    }
    Some(edit.apply(line))
}
