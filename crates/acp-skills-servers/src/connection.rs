//! [`Connection`]: the connection to one running server.

mod extras;
mod forms;
mod host_side;
mod start;
mod tools;

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use acp_skills_intercept::{UserAnswer, UserQuestion};
use serde_json::{Map, Value, json};
use skills_core::{ToolOutput, json::has_more_values_than};
use tokio::{
    sync::{Notify, mpsc::Sender},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use self::{
    extras::{EXTRAS_LIMIT, Extras, LISTS, List},
    forms::Forms,
    host_side::HostSide,
    tools::output,
};
use super::{
    Address, Limits, ServerError, ToolServer,
    hidden::Hidden,
    http,
    listing::{Listed, Listing, Tally, Tools},
    messages::{Ask, Progress, Rpc},
    process::{Process, Program},
    stderr::Stderr,
    stdio,
};
use crate::processes::Processes;

/// The extension of MCP for skills (SEP-2640).
const SKILLS: &str = "io.modelcontextprotocol/skills";
/// The time limit for a subscription, after which there is another one.
const SUBSCRIPTION: Duration = Duration::from_hours(1);
/// The minimum time between two subscriptions.
const MIN_SUBSCRIPTION: Duration = Duration::from_mins(5);
/// The maximum number of pages of a list.
pub(super) const MAX_PAGES: usize = 50;
/// The maximum length of the sentence about a server, in characters.
const MAX_ABOUT: usize = 200;
/// The maximum length of a server's instructions, in characters.
const MAX_INSTRUCTIONS: usize = 8_000;

/// The maximum number of values in what a server says about itself.
const MAX_INFO_VALUES: usize = 4096;

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
    /// True if the server has announced that its resources have changed.
    resources_changed: Arc<AtomicBool>,
    /// Notified when the server announces that its skills have changed.
    pub(super) skills_changed: Arc<Notify>,
    forms: Forms,
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

/// The way in which a connection starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// With a session, in all revisions but the latest.
    Session,
    /// Without a session, in the latest revision.
    Stateless,
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
        Self::start_as(Start::Session, server, processes, cwd, session, end).await
    }

    /// Does the same as [`start`](Self::start), with or without a session of MCP.
    pub(super) async fn start_as(
        how: Start,
        server: &ToolServer,
        processes: &Processes,
        cwd: Option<&Path>,
        session: Option<Arc<dyn Session>>,
        end: CancellationToken,
    ) -> Result<Self, ServerError> {
        let changes = Arc::<AtomicU64>::default();
        let resources_changed = Arc::<AtomicBool>::default();
        let skill = server.skill.clone();
        let forms = Forms::default();
        let skills_changed = Arc::<Notify>::default();
        let host = HostSide {
            skill,
            session,
            changes: Arc::clone(&changes),
            resources_changed: Arc::clone(&resources_changed),
            skills_changed: Arc::clone(&skills_changed),
            forms: forms.clone(),
        };
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
            resources_changed,
            skills_changed,
            forms,
            hidden,
            stderr,
            _process: process,
            rpc,
        };
        let mut info = match how {
            Start::Session => connection.initialize().await?,
            Start::Stateless => connection.discover().await?,
        };
        if info["instructions"].as_str().is_none_or(|text| text.trim().is_empty()) {
            info["instructions"].take();
        }
        // Keep only what is used, because a server can send any number of other members.
        let used =
            ["serverInfo", "instructions", "capabilities"].map(|key| (key.to_owned(), info[key].take()));
        connection.info = used.into_iter().collect();
        if has_more_values_than(connection.info.to_string().as_bytes(), MAX_INFO_VALUES) {
            return Err(ServerError::Invalid("its description has too many values"));
        }
        Ok(connection)
    }

    /// Waits until the skills should be listed again because announcements may have been missed. Without a session, announcements have to
    /// be requested, and this request ends sometimes.
    pub(super) async fn subscribe(&self) {
        if !self.rpc.is_stateless() {
            return std::future::pending().await;
        }
        let started = Instant::now();
        let params = json!({ "notifications": { "resourcesListChanged": true } });
        let method = "subscriptions/listen";
        let ask = Ask { method, params, limit: SUBSCRIPTION, what: "announce changes", progress: None };
        // A server that offers no announcements is asked from time to time.
        let _ = self.rpc.ask(ask).await;
        sleep_until(started + MIN_SUBSCRIPTION).await;
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

    /// Lists the tools, and what the model can use as tools. A list that the server does not declare is not requested.
    async fn list(&self) -> Result<Listed, ServerError> {
        let mut tally = Tally::default();
        let mut extras = Extras::default();
        for list in LISTS {
            let capability = list.method.split('/').next().unwrap_or_default();
            if self.info["capabilities"][capability].is_null() {
                continue;
            }
            let limit =
                if list.is_of_tools() { self.limits.list } else { EXTRAS_LIMIT.min(self.limits.list) };
            let mut add = |item: &Value| extras.add(list, item, &mut tally);
            let listing = self.list_pages(list, &mut add);
            let expired = ServerError::Timeout { what: "list its tools", limit };
            match tokio::time::timeout(limit, listing).await.unwrap_or(Err(expired)) {
                // The tools are more important than the rest.
                Err(error) if list.is_of_tools() => return Err(error),
                Err(error) => tracing::warn!("{} of a server failed: {error}", list.method),
                Ok(()) => {}
            }
        }
        if let Some(tool) = extras.reader() {
            tally.add(&tool);
        }
        Ok(tally.into_listed(extras.tools()))
    }

    /// Requests the pages of a list, and passes its items to `add`. Ends if it returns false.
    async fn list_pages(
        &self,
        list: List,
        add: &mut (dyn FnMut(&Value) -> bool + Send),
    ) -> Result<(), ServerError> {
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page = self.request(list.method, params, "list its tools").await?;
            let listed = page[list.key].as_array().ok_or(ServerError::Invalid("no list of tools"))?;
            let has_room = listed.iter().all(&mut *add);
            match page["nextCursor"].as_str().filter(|_| has_room) {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => break,
            }
        }
        Ok(())
    }

    /// Notes that the skill is activated. Resources that have changed are listed again only then, because calls don't need the list.
    pub(super) fn activated(&self) {
        if self.resources_changed.swap(false, Ordering::Relaxed) {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns true if the server offers skills (SEP-2640).
    pub(super) fn offers_skills(&self) -> bool {
        self.info["capabilities"]["extensions"][SKILLS].is_object()
    }

    /// Waits for the end of the connection.
    pub(super) async fn ended(&self) {
        self.rpc.ended().await;
    }

    /// Sends another request. `what` is the action for the error if there is no answer within the time limit of lists.
    pub(super) async fn request(
        &self,
        method: &str,
        params: Value,
        what: &'static str,
    ) -> Result<Value, ServerError> {
        self.ask(Ask { method, params, limit: self.limits.list, what, progress: None }).await
    }

    /// Calls a tool. `is_own` is false for a tool that stands for a prompt or for resources.
    pub(super) async fn call(
        &self,
        (tool, is_own): (&str, bool),
        arguments: Option<Map<String, Value>>,
        progress: Option<Sender<Progress>>,
        trace: Map<String, Value>,
    ) -> Result<ToolOutput, ServerError> {
        // Some servers refuse calls without arguments, although the schema of the protocol allows them.
        let arguments = arguments.unwrap_or_default();
        let (method, mut params) = if is_own {
            ("tools/call", json!({ "name": tool, "arguments": arguments }))
        } else {
            extras::request(tool, arguments)?
        };
        params["_meta"] = Value::Object(trace);
        let limit = self.limits.call;
        let _open = self.forms.call();
        let result = self.ask(Ask { method, params, limit, what: "answer the call", progress }).await?;
        if is_own { output(result) } else { extras::output(result) }
    }

    /// Sends a request and waits for the answer. If the server does not start or has ended, the error contains its last output. Secrets
    /// are hidden in errors.
    async fn ask(&self, ask: Ask<'_>) -> Result<Value, ServerError> {
        let is_start = matches!(ask.method, "initialize" | "server/discover");
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

fn client_info() -> Value {
    json!({ "name": "acp-skills-proxy", "version": env!("CARGO_PKG_VERSION") })
}
