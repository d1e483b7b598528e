//! [`Connection`]: the connection to one running server.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use acp_skills_intercept::{UserAnswer, UserQuestion};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value, json};
use skills_core::{ToolOutput, tool::Content};
use tokio::sync::{mpsc::Sender, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    Address, Limits, ServerError, ToolServer, form,
    hidden::Hidden,
    http,
    listing::{Listed, Listing, Tally, Tools},
    messages::{Answer, Ask, Listener, Progress, Rpc},
    process::{Process, Program},
    stderr::Stderr,
    stdio,
};
use crate::processes::Processes;

/// The revision of MCP that we ask for. Servers can answer with an older one.
const REVISION: &str = "2025-11-25";
/// The maximum number of pages of a list.
const MAX_PAGES: usize = 50;
/// The maximum length of the sentence about a server, in characters.
const MAX_ABOUT: usize = 200;
/// The maximum length of a server's instructions, in characters.
const MAX_INSTRUCTIONS: usize = 8_000;

/// The connection to one running server. Dropping it ends the server.
#[derive(Debug)]
pub(super) struct Connection {
    rpc: Rpc,
    info: Value,
    limits: Limits,
    /// The tools, as they were listed last.
    listing: Listing,
    /// The number of times that the server has announced that its tools have changed.
    changes: Arc<AtomicU64>,
    /// The values of the configuration that are not shown.
    hidden: Arc<Hidden>,
    /// The server's standard error, if it is a program.
    stderr: Option<Stderr>,
    /// The server's process, if it is a program. It is dropped after the transport.
    _process: Option<Process>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.rpc.end();
    }
}

/// The session that a server belongs to.
pub(super) trait Session: Send + Sync {
    /// Returns the directories of the session.
    fn roots(&self) -> Vec<PathBuf>;

    /// Asks the user. Returns `None` if there is no answer.
    fn ask(
        self: Arc<Self>,
        question: UserQuestion,
    ) -> Pin<Box<dyn Future<Output = Option<UserAnswer>> + Send>>;
}

impl Connection {
    /// Starts a server and initializes the connection. The server is ended if `end` is cancelled.
    pub(super) async fn start(
        server: &ToolServer,
        processes: &Processes,
        cwd: Option<&Path>,
        session: Option<Arc<dyn Session>>,
        end: CancellationToken,
    ) -> Result<Self, ServerError> {
        let changes = Arc::<AtomicU64>::default();
        let skill = server.skill.clone();
        let asks = Arc::default();
        let host = HostSide { skill, session, changes: Arc::clone(&changes), asks };
        let (rpc, outgoing) = Rpc::new(Box::new(host), end);
        let (process, hidden) = match &server.address {
            Address::Command { program, args, env, cwd: own } => {
                let cwd = own.as_deref().or(cwd);
                let limit = server.limits.start;
                let program = Program { name: program, args, env, secrets: &server.secrets, cwd, limit };
                let started = program.start(processes).await?;
                stdio::connect(&rpc, outgoing, started.stdin, started.stdout);
                (Some((started.process, started.stderr)), started.hidden)
            }
            Address::Http { url, headers } => {
                let headers = server.secrets.resolve(headers, processes, server.limits.start).await?;
                let hidden = Arc::new(Hidden::of(&headers));
                http::connect(&rpc, outgoing, url, headers);
                (None, hidden)
            }
        };
        let (process, stderr) = process.unzip();
        let mut connection = Self {
            info: Value::Null,
            limits: server.limits,
            listing: Listing::default(),
            changes,
            hidden,
            stderr,
            _process: process,
            rpc,
        };
        let mut info = connection.initialize().await?;
        connection.rpc.set_revision(info["protocolVersion"].as_str().unwrap_or(REVISION));
        connection.rpc.notify("notifications/initialized", &json!({}));
        if info["instructions"].as_str().is_none_or(|text| text.trim().is_empty()) {
            info["instructions"].take();
        }
        connection.info = info;
        Ok(connection)
    }

    async fn initialize(&self) -> Result<Value, ServerError> {
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": { "roots": {}, "elicitation": {} },
            "clientInfo": { "name": "acp-skills-proxy", "version": env!("CARGO_PKG_VERSION") },
        });
        let ask =
            Ask { method: "initialize", params, limit: self.limits.start, what: "start", progress: None };
        let info = self.ask(ask).await?;
        if info.is_object() { Ok(info) } else { Err(ServerError::Invalid("result is not an object")) }
    }

    /// Returns true if the server has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.rpc.has_ended()
    }

    /// Returns the server's instructions for using its tools.
    pub(super) fn instructions(&self) -> Option<String> {
        let text = self.hide(self.info["instructions"].as_str()?.to_owned());
        Some(text.chars().take(MAX_INSTRUCTIONS).collect())
    }

    /// Returns a sentence about the server: its title, and the beginning of its description or instructions.
    pub(super) fn about(&self) -> String {
        let info = &self.info["serverInfo"];
        let text =
            |node: &Value| node.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let title = text(&info["title"]).or_else(|| text(&info["name"])).unwrap_or_default();
        let more =
            text(&info["description"]).or_else(|| text(&self.info["instructions"])).unwrap_or_default();
        let first = more.lines().next().unwrap_or_default();
        let first = first.trim_start_matches(['#', ' ']);
        self.hide(format!("{title}: {first}"))
            .trim_end_matches([' ', ':', '.'])
            .chars()
            .take(MAX_ABOUT)
            .collect::<String>()
            + "."
    }

    /// Replaces the secrets of the configuration in a text of the server.
    pub(super) fn hide(&self, text: String) -> String {
        self.hidden.hide(text)
    }

    /// Returns the tools. Lists them if this was not done before, or if they have changed.
    pub(super) async fn tools(&self) -> Result<Tools, ServerError> {
        self.listing.tools(&self.changes, || self.list()).await
    }

    async fn list(&self) -> Result<Listed, ServerError> {
        if self.info["capabilities"]["tools"].is_null() {
            return Ok(Listed::default());
        }
        let listing = async {
            let mut tools = Tally::default();
            let mut params = json!({});
            for _ in 0..MAX_PAGES {
                let limit = self.limits.list;
                let ask = Ask { method: "tools/list", params, limit, what: "list its tools", progress: None };
                let page = self.ask(ask).await?;
                let listed = page["tools"].as_array().ok_or(ServerError::Invalid("no list of tools"))?;
                let has_room = listed.iter().all(|tool| tools.add(tool));
                match page["nextCursor"].as_str().filter(|_| has_room) {
                    Some(cursor) => params = json!({ "cursor": cursor }),
                    None => break,
                }
            }
            Ok(tools.into_listed())
        };
        let expired = ServerError::Timeout { what: "list its tools", limit: self.limits.list };
        tokio::time::timeout(self.limits.list, listing).await.unwrap_or(Err(expired))
    }

    /// Calls a tool.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Option<Map<String, Value>>,
        progress: Option<Sender<Progress>>,
        trace: Map<String, Value>,
    ) -> Result<ToolOutput, ServerError> {
        let mut params = json!({ "name": tool, "_meta": trace });
        // Some servers refuse calls without arguments, although the schema of the protocol allows them.
        params["arguments"] = Value::Object(arguments.unwrap_or_default());
        let limit = self.limits.call;
        let ask = Ask { method: "tools/call", params, limit, what: "answer the call", progress };
        output(self.ask(ask).await?)
    }

    /// Sends a request and waits for the answer. If the server does not start or has ended, the error contains its last output. Secrets
    /// are hidden in errors.
    async fn ask(&self, ask: Ask<'_>) -> Result<Value, ServerError> {
        let is_start = ask.method == "initialize";
        let error = match self.rpc.ask(ask).await {
            Err(error @ ServerError::Ended) => error,
            Err(error @ ServerError::Timeout { .. }) if is_start => error,
            Err(ServerError::Refused { code, message }) => {
                return Err(ServerError::Refused { code, message: self.hidden.error(message) });
            }
            other => return other,
        };
        let lines = match &self.stderr {
            Some(stderr) => stderr.last_lines().await,
            None => None,
        };
        Err(match lines {
            Some(lines) => ServerError::Explained { error: Box::new(error), lines },
            None => error,
        })
    }
}

/// Converts the result of a call. Its content is passed on as it is.
fn output(mut result: Value) -> Result<ToolOutput, ServerError> {
    // `take` panics if the value is not an object.
    if !result.is_object() {
        return Err(ServerError::Invalid("result is not an object"));
    }
    let content = match result["content"].take() {
        Value::Array(parts) => parts,
        Value::Null if result["structuredContent"].is_object() => Vec::new(),
        _ => return Err(ServerError::Invalid("result has no content")),
    };
    let is_error = result["isError"] == true;
    let mut output = if is_error { ToolOutput::error("") } else { ToolOutput::text("") };
    output.content = content.into_iter().map(part).collect();
    output.structured = Some(result["structuredContent"].take()).filter(Value::is_object);
    Ok(output)
}

fn part(part: Value) -> Content {
    match (part["text"].as_str(), part.as_object()) {
        (Some(text), Some(members)) if members.len() == 2 && part["type"] == "text" => {
            Content::Text(text.to_owned())
        }
        _ => Content::Raw(part),
    }
}

/// Our side of the connection: what the server can ask for.
struct HostSide {
    skill: String,
    session: Option<Arc<dyn Session>>,
    changes: Arc<AtomicU64>,
    /// True while the user is asked. Other questions are declined.
    asks: Arc<AtomicBool>,
}

impl Listener for HostSide {
    fn asked(&self, method: &str, params: Value) -> Option<Answer> {
        Some(match method {
            "ping" => Answer::Now(json!({})),
            "roots/list" => {
                let roots = self.session.as_ref().map(|session| session.roots()).unwrap_or_default();
                let roots: Vec<_> = roots.iter().map(|root| json!({ "uri": file_uri(root) })).collect();
                Answer::Now(json!({ "roots": roots }))
            }
            "elicitation/create" => self.form(params),
            // Sampling too: the proxy has no model.
            _ => return None,
        })
    }

    fn notified(&self, method: &str) {
        if method == "notifications/tools/list_changed" {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl HostSide {
    /// Shows a form of the server to the user, or declines it.
    fn form(&self, params: Value) -> Answer {
        let declined = || json!({ "action": "decline" });
        let is_form = params["mode"].as_str().is_none_or(|mode| mode == "form");
        let Some(session) = self.session.clone().filter(|_| is_form) else { return Answer::Now(declined()) };
        let (message, schema) = match form::read(params) {
            Ok(form) => form,
            Err(why) => return Answer::Refused(why),
        };
        if self.asks.swap(true, Ordering::Relaxed) {
            return Answer::Now(declined());
        }
        let (answer, answered) = oneshot::channel();
        let asks = Arc::clone(&self.asks);
        let skill = self.skill.clone();
        tokio::spawn(async move {
            let question = UserQuestion::Form { skill, message, schema };
            let result = match session.ask(question).await {
                Some(UserAnswer::Form(result)) => result,
                _ => declined(),
            };
            asks.store(false, Ordering::Relaxed);
            // This fails if the server has ended.
            let _ = answer.send(result);
        });
        Answer::Later(answered)
    }
}

/// The characters of a path that have a meaning in a URL.
const RESERVED: AsciiSet =
    CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

fn file_uri(path: &Path) -> String {
    let path = path.to_string_lossy().replace('\\', "/");
    let path = utf8_percent_encode(&path, &RESERVED);
    let slash = if path.to_string().starts_with('/') { "" } else { "/" };
    format!("file://{slash}{path}")
}
