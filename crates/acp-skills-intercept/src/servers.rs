//! Chooses the transport and name of the skills server, and adds this server to `mcpServers`
//! ([session setup](https://agentclientprotocol.com/protocol/v1/session-setup#mcp-servers)).

use serde_json::{Value, json};

use acp_skills_wire::{Edit, Node};

use crate::{
    agent_facts::AgentFacts,
    policy::McpMode,
    queries::{Endpoint, Transport},
    version::Version,
};

/// The name of the skills server.
pub const SERVER_NAME: &str = "acp-skills";

/// Returns the transport to use for this agent, or `None` if the agent should not use a server.
pub(crate) fn choose(mode: McpMode, agent: &AgentFacts) -> Option<Transport> {
    match mode {
        McpMode::Off => None,
        McpMode::Acp => Some(Transport::Acp),
        McpMode::Http => Some(Transport::Http),
        McpMode::Auto if agent.mcp_acp => Some(Transport::Acp),
        McpMode::Auto if agent.mcp_http => Some(Transport::Http),
        McpMode::Auto if agent.no_mcp_stdio => None,
        McpMode::Auto | McpMode::Stdio => Some(Transport::Stdio),
    }
}

/// Returns `wanted`, with a number added if the name is already used in this session. For example, two proxies in a chain should
/// not replace the server of the other proxy.
pub(crate) fn free_name(wanted: &str, servers: Option<Node<'_>>) -> String {
    let taken = |name: &str| {
        servers.is_some_and(|servers| {
            servers.elements().any(|server| server.str("name").is_some_and(|other| other == name))
        })
    };
    let mut name = wanted.to_owned();
    let mut number = 1;
    while taken(&name) {
        number += 1;
        name = format!("{wanted}-{number}");
    }
    name
}

/// Returns the entry to add to `mcpServers`.
pub(crate) fn entry(name: &str, endpoint: &Endpoint, version: Version) -> Value {
    match endpoint {
        Endpoint::Acp { server_id } => json!({ "type": "acp", "name": name, "serverId": server_id }),
        Endpoint::Http { url, token } => json!({
            "type": "http",
            "name": name,
            "url": url,
            "headers": [{ "name": "Authorization", "value": format!("Bearer {token}") }],
        }),
        Endpoint::Stdio { command, args, env } => {
            let env: Vec<_> =
                env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
            let mut entry = json!({ "name": name, "command": command, "args": args, "env": env });
            if let Some(kind) = version.stdio_type() {
                entry["type"] = kind.into();
            }
            entry
        }
    }
}

/// Returns true if an entry can be added to the `mcpServers` of `params` without losing data: if the member is a list, an
/// empty object, `null` or missing.
pub(crate) fn has_room(params: Node<'_>) -> bool {
    let is_empty =
        |servers: Node<'_>| servers.is_null() || (servers.is_object() && servers.members().next().is_none());
    params.get("mcpServers").is_none_or(|servers| servers.is_array() || is_empty(servers))
}

/// Adds `entry` to the `mcpServers` of `params`.
pub(crate) fn inject(edit: &mut Edit, params: Node<'_>, entry: &Value) {
    match params.get("mcpServers") {
        Some(servers) if servers.is_array() => edit.push(servers, &entry.to_string()),
        Some(other) => edit.replace(other.span(), format!("[{entry}]")),
        None => edit.insert(params, "mcpServers", &format!("[{entry}]")),
    }
}
