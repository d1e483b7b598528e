//! The agent's MCP client: rmcp's, over the transport that the entry in `mcpServers` names.

use rmcp::{
    ClientHandler, ClientLifecycleMode, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, GetPromptRequestParams, Implementation,
        ProtocolVersion, RequestParamsMeta, ServerNotification, SubscriptionFilter,
    },
    service::{ClientServiceExt, NotificationContext, RunningService},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use tokio::{
    process::Command,
    sync::{
        Mutex,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
};

/// A connection to a server.
pub(super) struct Client {
    running: RunningService<RoleClient, Listener>,
    heard: Mutex<UnboundedReceiver<&'static str>>,
}

/// A client handler that forwards notifications about changed lists.
pub(super) struct Listener {
    config: ClientConfig,
    heard: UnboundedSender<&'static str>,
}

impl Listener {
    fn hear(&self, what: &'static str) {
        // It's fine if this fails, because the test may have dropped the receiver by now.
        let _ = self.heard.send(what);
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hear("tools");
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hear("prompts");
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hear("resources");
    }
}

/// Connects to the server of `entry`, as a client of `revision`.
pub(super) async fn connect(entry: &Value, revision: &str) -> Result<Client, String> {
    let version: ProtocolVersion = serde_json::from_value(revision.into()).map_err(|e| e.to_string())?;
    let mut config =
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("scripted", "1.0.0"));
    let subscribes = !version.has_initialize();
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
    let (heard, hears) = unbounded_channel();
    let listener = Listener { config, heard: heard.clone() };
    let running = match entry["type"].as_str() {
        Some("http") => {
            let mut http = StreamableHttpClientTransportConfig::with_uri(text(&entry["url"]));
            for (name, value) in pairs("headers") {
                assert_eq!(name, "Authorization", "unexpected header");
                http = http.auth_header(value.strip_prefix("Bearer ").expect("a Bearer token"));
            }
            let transport = StreamableHttpClientTransport::from_config(http);
            listener.serve_with_lifecycle(transport, lifecycle).await.map_err(|e| e.to_string())?
        }
        None | Some("stdio") => {
            let args = entry["args"].as_array().expect("`args` is a list").iter().map(text);
            let mut command = Command::new(text(&entry["command"]));
            command.args(args).envs(pairs("env"));
            let transport = TokioChildProcess::new(command).map_err(|e| e.to_string())?;
            listener.serve_with_lifecycle(transport, lifecycle).await.map_err(|e| e.to_string())?
        }
        Some(other) => return Err(format!("this agent does not speak MCP over {other}")),
    };
    if subscribes {
        let filter = SubscriptionFilter::builder();
        let filter = filter.tools_list_changed().prompts_list_changed().resources_list_changed().build();
        let mut subscription = running.listen(filter).await.map_err(|e| e.to_string())?;
        tokio::spawn(async move {
            while let Ok(Some(notification)) = subscription.next().await {
                let what = match notification {
                    ServerNotification::ToolListChangedNotification(_) => "tools",
                    ServerNotification::PromptListChangedNotification(_) => "prompts",
                    ServerNotification::ResourceListChangedNotification(_) => "resources",
                    _ => "something else",
                };
                let _ = heard.send(what);
            }
        });
    }
    Ok(Client { running, heard: Mutex::new(hears) })
}

/// Waits until the server reports a changed list, and returns the name.
pub(super) async fn heard(client: &Client) -> Result<Value, String> {
    client.heard.lock().await.recv().await.map(Into::into).ok_or_else(|| "the server is gone".to_owned())
}

/// Returns the server's `initialize` result and its tools.
pub(super) async fn look(client: &Client) -> Result<Value, String> {
    let tools = client.running.list_all_tools().await.map_err(|error| error.to_string())?;
    Ok(json!({ "server": client.running.peer_info().map(|info| json!(*info)), "tools": tools }))
}

/// Lists all resources.
pub(super) async fn resources(client: &Client) -> Result<Value, String> {
    let resources = client.running.list_all_resources().await.map_err(|error| error.to_string())?;
    Ok(json!(resources))
}

/// Gets a prompt.
pub(super) async fn prompt(client: &Client, name: &str) -> Result<Value, String> {
    let request = GetPromptRequestParams::new(name.to_owned());
    client.running.get_prompt(request).await.map(|result| json!(result)).map_err(|error| error.to_string())
}

/// Calls a tool. If `arguments` is not an object, the call has none.
pub(super) async fn call(
    client: &Client,
    tool: &str,
    arguments: &Value,
    trace: Option<&str>,
) -> Result<Value, String> {
    let mut request = CallToolRequestParams::new(tool.to_owned());
    if let Some(arguments) = arguments.as_object() {
        request = request.with_arguments(arguments.clone());
    }
    if let Some(parent) = trace {
        request.set_traceparent(parent);
    }
    client.running.call_tool(request).await.map(|result| json!(result)).map_err(|error| error.to_string())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no string")).to_owned()
}
