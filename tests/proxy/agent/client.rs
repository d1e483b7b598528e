//! The agent's side of MCP: rmcp's client, over whatever the entry in `mcpServers` says.

use rmcp::{
    ClientLifecycleMode, RoleClient,
    model::{CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion},
    service::{ClientServiceExt, RunningService},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use tokio::process::Command;

/// A connection to one server.
pub(super) type Client = RunningService<RoleClient, ClientConfig>;

/// Connects to the server of `entry`, as a client of `revision`.
pub(super) async fn connect(entry: &Value, revision: &str) -> Result<Client, String> {
    let version: ProtocolVersion = serde_json::from_value(revision.into()).map_err(|e| e.to_string())?;
    let mut config = ClientConfig::new(ClientCapabilities::default(), Implementation::new("puppet", "1.0.0"));
    let lifecycle = if version.has_initialize() {
        config.protocol_version = version;
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover { preferred_versions: vec![version] }
    };
    let pairs = |key: &str| {
        let list = entry[key].as_array().cloned().unwrap_or_default();
        list.into_iter().map(|pair| (text(&pair["name"]), text(&pair["value"])))
    };
    match entry["type"].as_str() {
        Some("http") => {
            let mut http = StreamableHttpClientTransportConfig::with_uri(text(&entry["url"]));
            for (name, value) in pairs("headers") {
                assert_eq!(name, "Authorization", "another header than ours");
                http = http.auth_header(value.strip_prefix("Bearer ").expect("a Bearer token"));
            }
            let transport = StreamableHttpClientTransport::from_config(http);
            config.serve_with_lifecycle(transport, lifecycle).await.map_err(|e| e.to_string())
        }
        None | Some("stdio") => {
            let args = entry["args"].as_array().expect("`args` is a list").iter().map(text);
            let mut command = Command::new(text(&entry["command"]));
            command.args(args).envs(pairs("env"));
            let transport = TokioChildProcess::new(command).map_err(|e| e.to_string())?;
            config.serve_with_lifecycle(transport, lifecycle).await.map_err(|e| e.to_string())
        }
        Some(other) => Err(format!("this agent does not speak MCP over {other}")),
    }
}

/// What the server says of itself, and its tools.
pub(super) async fn look(client: &Client) -> Result<Value, String> {
    let tools = client.list_all_tools().await.map_err(|error| error.to_string())?;
    Ok(json!({ "server": client.peer_info().map(|info| json!(*info)), "tools": tools }))
}

/// Calls a tool; `arguments` is an object, or nothing at all.
pub(super) async fn call(client: &Client, tool: &str, arguments: &Value) -> Result<Value, String> {
    let mut request = CallToolRequestParams::new(tool.to_owned());
    if let Some(arguments) = arguments.as_object() {
        request = request.with_arguments(arguments.clone());
    }
    client.call_tool(request).await.map(|result| json!(result)).map_err(|error| error.to_string())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no string")).to_owned()
}
