//! Chooses the transport and name of the skills server, and adds this server to `mcpServers`
//! ([session setup](https://agentclientprotocol.com/protocol/v1/session-setup#mcp-servers)).

use serde_json::{Value, json};

use acp_skills_wire::{Edit, Node};

use crate::{
    agent_facts::AgentFacts,
    policy::{McpMode, OnDemand, Policy},
    queries::{ClientServer, Endpoint, Transport},
    version::Version,
};

/// The name of the skills server.
pub const SERVER_NAME: &str = "acp-skills";

/// Returns the transport to use for this agent, or `None` if the agent should not use a server.
pub(crate) fn choose(policy: &Policy, agent: &AgentFacts) -> Option<Transport> {
    match policy.mcp {
        McpMode::Off => None,
        McpMode::Acp => Some(Transport::Acp),
        McpMode::Http => Some(Transport::Http),
        McpMode::Auto if agent.mcp_acp => Some(Transport::Acp),
        McpMode::Auto if policy.elsewhere => {
            // An agent elsewhere reaches neither our loopback address nor our program.
            (agent.mcp_http && policy.listen.is_some()).then_some(Transport::Http)
        }
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

/// Returns true if a server with this name becomes a skill.
pub(crate) fn takes(policy: &OnDemand, name: &str) -> bool {
    // Such a server can belong to another proxy in front of this one.
    let is_of_a_proxy = *policy == OnDemand::All && name.starts_with(SERVER_NAME);
    policy.takes(name) && !is_of_a_proxy
}

/// Returns true if a server is asked for skills.
fn offers(policy: &OnDemand, server: Node<'_>, name: &str) -> bool {
    let is_http = || server.str("type").is_some_and(|kind| kind == "http");
    takes(policy, name) && (*policy != OnDemand::All || is_http())
}

/// Returns the servers in the `mcpServers` of a request that become skills, or that are asked for skills.
pub(crate) fn of_client(params: Option<Node<'_>>, policy: &Policy) -> Vec<ClientServer> {
    if policy.mcp_on_demand == OnDemand::None && policy.mcp_skills == OnDemand::None {
        return Vec::new();
    }
    let servers = params.and_then(|params| params.get("mcpServers")).filter(Node::is_array);
    let servers = servers.into_iter().flat_map(|servers| servers.elements());
    let taken = servers.filter_map(|server| {
        let name = server.str("name")?;
        let on_demand = takes(&policy.mcp_on_demand, &name);
        let offers = offers(&policy.mcp_skills, server, &name);
        let entry = || server.raw().to_vec();
        (on_demand || offers).then(|| ClientServer {
            on_demand,
            offers,
            entry: entry(),
            name: name.into_owned(),
        })
    });
    taken.collect()
}

/// Adds `entry` to the `mcpServers` of `params`, and removes the servers for which `is_taken` returns true. The other entries
/// stay as they are.
pub(crate) fn inject(edit: &mut Edit, params: Node<'_>, entry: &Value, is_taken: impl Fn(Node<'_>) -> bool) {
    let servers = params.get("mcpServers").filter(Node::is_array);
    if let Some(servers) = servers.filter(|servers| servers.elements().any(&is_taken)) {
        let mut list = vec![b'['];
        for server in servers.elements().filter(|server| !is_taken(*server)) {
            list.extend_from_slice(server.raw());
            list.push(b',');
        }
        list.extend_from_slice(format!("{entry}]").as_bytes());
        edit.replace(servers.span(), list);
        return;
    }
    match params.get("mcpServers") {
        Some(servers) if servers.is_array() => edit.push(servers, &entry.to_string()),
        Some(other) => edit.replace(other.span(), format!("[{entry}]")),
        None => edit.insert(params, "mcpServers", &format!("[{entry}]")),
    }
}
