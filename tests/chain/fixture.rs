//! The two ends of each chain: an agent and a client with the SDK's types.

use std::{
    future::Future,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, Responder, Result, V1,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            AgentCapabilities, ContentBlock, ContentChunk, InitializeRequest, InitializeResponse,
            McpCapabilities, McpServer, NewSessionRequest, NewSessionResponse, PermissionOption,
            PermissionOptionKind, PromptRequest, PromptResponse, RequestPermissionOutcome,
            RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
            SessionNotification, SessionUpdate, StopReason, ToolCallUpdate, ToolCallUpdateFields,
        },
    },
};
use rmcp::{
    ServiceExt,
    model::CallToolRequestParams,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use skills_core::{Skill, SkillSet};
use tokio::sync::watch;

/// The timeout of each test. A passing test never reaches it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(50);

/// Runs a test with the timeout [`DEADLINE`].
pub(crate) async fn within<T>(test: impl Future<Output = Result<T>>) -> T {
    tokio::time::timeout(DEADLINE, test).await.expect("the test ends in time").expect("the chain succeeds")
}

/// Returns one skill of this name with the tool `greet`.
pub(crate) fn skills(name: &str) -> SkillSet {
    let greeting = format!("hello from {name}");
    let skill = Skill::builder(name, format!("Knows {name}."))
        .body(format!("# The body of {name}"))
        .tool("greet", "Greets.", move |_: Value| {
            let greeting = greeting.clone();
            async move { Ok(greeting) }
        })
        .build();
    [skill.expect("a valid skill")].into_iter().collect()
}

/// The requests that the agent has received.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Value>>>);

impl Log {
    fn add(&self, request: &impl serde::Serialize) {
        let request = serde_json::to_value(request).expect("JSON");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }

    pub(crate) fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the names of the MCP servers of the first session.
    pub(crate) fn servers(&self) -> Vec<String> {
        let servers = &self.all()[0]["mcpServers"];
        let servers = servers.as_array().expect("servers").iter();
        servers.map(|server| server["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Returns the texts of the prompt at `index`.
    pub(crate) fn prompt(&self, index: usize) -> Vec<String> {
        let mut prompts = self.all().into_iter().filter(|received| received.get("prompt").is_some());
        let prompt = prompts.nth(index).expect("a prompt");
        let blocks = prompt["prompt"].as_array().expect("blocks").iter();
        blocks.map(|block| block["text"].as_str().expect("a text").to_owned()).collect()
    }
}

/// Returns an agent that logs all requests, echoes each prompt, and executes three commands: `call SERVER TOOL JSON` calls a
/// tool, `ask` asks for permission, and `park` waits until the turn is cancelled.
pub(crate) fn agent(log: Log) -> impl ConnectTo<Client> {
    agent_with_transports(log, McpCapabilities::new().http(true))
}

/// Returns the same agent with support for MCP servers over these transports. Stdio is always supported.
pub(crate) fn agent_with_transports(log: Log, transports: McpCapabilities) -> impl ConnectTo<Client> {
    let servers = Arc::new(Mutex::new(Vec::<McpServer>::new()));
    let known = Arc::clone(&servers);
    let prompts = log.clone();
    Agent
        .v1()
        .name("fixture")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _: ConnectionTo<Client>| {
                let capabilities = AgentCapabilities::new().mcp_capabilities(transports.clone());
                responder.respond(
                    InitializeResponse::new(request.protocol_version).agent_capabilities(capabilities),
                )
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, _: ConnectionTo<Client>| {
                log.add(&request);
                *known.lock().unwrap_or_else(PoisonError::into_inner) = request.mcp_servers;
                responder.respond(NewSessionResponse::new("session"))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest,
                        responder: Responder<PromptResponse, V1>,
                        client: ConnectionTo<Client>| {
                prompts.add(&request);
                let servers = servers.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let turn = turn(request, servers, client.clone(), responder);
                client.spawn(turn)
            },
            agent_client_protocol::on_receive_request!(),
        )
}

async fn turn(
    request: PromptRequest,
    servers: Vec<McpServer>,
    client: ConnectionTo<Client>,
    responder: Responder<PromptResponse, V1>,
) -> Result<()> {
    let say = |update| client.send_notification(SessionNotification::new(request.session_id.clone(), update));
    let mut words = String::new();
    for block in &request.prompt {
        if let ContentBlock::Text(text) = block {
            words.clone_from(&text.text);
        }
        say(SessionUpdate::UserMessageChunk(ContentChunk::new(block.clone())))?;
    }
    let answer = match words.split_once(' ').unwrap_or((&words, "")) {
        ("call", command) => call(&servers, command).await,
        ("ask", _) => ask(&client, &request).await?,
        ("park", _) => {
            let cancelled = responder.cancellation();
            let pending = std::future::pending::<Result<PromptResponse>>();
            let result = cancelled.run_until_cancelled(pending).await;
            return responder.respond_with_result(result);
        }
        _ => "done".to_owned(),
    };
    say(SessionUpdate::AgentMessageChunk(ContentChunk::new(answer.into())))?;
    responder.respond(PromptResponse::new(StopReason::EndTurn))
}

async fn ask(client: &ConnectionTo<Client>, request: &PromptRequest) -> Result<String> {
    let options = vec![PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce)];
    let call = ToolCallUpdate::new("call", ToolCallUpdateFields::new().title("rm -rf"));
    let request = RequestPermissionRequest::new(request.session_id.clone(), call, options);
    let answer = client.send_request(request).block_task().await?;
    Ok(serde_json::to_string(&answer.outcome).expect("JSON"))
}

/// Calls a tool of a server as agents do, and returns the text of the result.
async fn call(servers: &[McpServer], command: &str) -> String {
    let mut words = command.splitn(3, ' ');
    let mut word = || words.next().expect("call SERVER TOOL JSON").to_owned();
    let server = word();
    let tool = word();
    let arguments = word();
    let http = servers.iter().find_map(|entry| match entry {
        McpServer::Http(http) if http.name == server => Some(http),
        _ => None,
    });
    let http = http.unwrap_or_else(|| panic!("no server {server} in {servers:?}"));
    let token = http.headers[0].value.strip_prefix("Bearer ").expect("a token");
    let config = StreamableHttpClientTransportConfig::with_uri(http.url.clone()).auth_header(token);
    let client = ().serve(StreamableHttpClientTransport::from_config(config)).await.expect("a server");
    client.list_all_tools().await.expect("tools");
    let arguments = serde_json::from_str(&arguments).expect("arguments");
    let call = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = client.call_tool(call).await.expect("a result");
    let text = result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.clone());
    let text = text.collect();
    client.cancel().await.expect("an end");
    text
}

/// The messages of one turn that the client received.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The user's message, as the agent echoes it.
    pub(crate) user: String,
    /// The agent's message.
    pub(crate) agent: String,
}

/// An open session of the client.
pub(crate) struct Session {
    agent: ConnectionTo<Agent>,
    seen: Arc<Mutex<Turn>>,
    /// The names of the commands in the last list from the agent.
    commands: watch::Receiver<Vec<String>>,
}

impl Session {
    /// Sends a prompt and waits for the end of its turn.
    pub(crate) async fn turn(&self, words: &str) -> Result<Turn> {
        self.prompt(words).block_task().await?;
        Ok(std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Sends a prompt without waiting for its answer.
    pub(crate) fn prompt(&self, words: &str) -> agent_client_protocol::v1::SentRequest<PromptResponse> {
        self.agent.send_request(PromptRequest::new("session", vec![words.into()]))
    }

    /// Waits until the client has received all these commands.
    pub(crate) async fn shows(&mut self, names: &[&str]) {
        let all = |shown: &Vec<String>| names.iter().all(|name| shown.iter().any(|shown| shown == name));
        self.commands.wait_for(all).await.expect("the client runs");
    }
}

/// Connects a client to `agent`, opens a session, and runs `play` with it.
pub(crate) async fn with_client<T: Send + 'static>(
    agent: impl ConnectTo<Client>,
    play: impl AsyncFnOnce(Session) -> Result<T>,
) -> Result<T> {
    let seen = Arc::new(Mutex::new(Turn::default()));
    let (shows, commands) = watch::channel(Vec::new());
    let sees = Arc::clone(&seen);
    Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _: ConnectionTo<Agent>| {
                let mut turn = sees.lock().unwrap_or_else(PoisonError::into_inner);
                match notification.update {
                    SessionUpdate::UserMessageChunk(chunk) => turn.user += &text(&chunk)?,
                    SessionUpdate::AgentMessageChunk(chunk) => turn.agent += &text(&chunk)?,
                    SessionUpdate::AvailableCommandsUpdate(update) => {
                        let names = update.available_commands.into_iter().map(|command| command.name);
                        shows.send_replace(names.collect());
                    }
                    _ => {}
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async |request: RequestPermissionRequest, responder, _: ConnectionTo<Agent>| {
                let option = request.options[0].option_id.clone();
                responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Selected(
                    SelectedPermissionOutcome::new(option),
                )))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(agent, async |agent: ConnectionTo<Agent>| {
            let answer = agent.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            assert_eq!(answer.protocol_version, ProtocolVersion::V1);
            agent.send_request(NewSessionRequest::new(cwd())).block_task().await?;
            play(Session { agent, seen, commands }).await
        })
        .await
}

fn text(chunk: &ContentChunk) -> Result<String> {
    match &chunk.content {
        ContentBlock::Text(text) => Ok(text.text.clone()),
        other => Err(Error::internal_error().data(json!({ "not text": other }))),
    }
}

fn cwd() -> PathBuf {
    std::env::temp_dir()
}
