//! [`ServerProvider`]: the tools of one server, as a provider of `skills-core`.

use std::{
    any::Any,
    path::Path,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use acp_skills_intercept::{UserAnswer, UserQuestion};
use serde_json::{Map, Value, json};
use skills_core::{
    CallContext, SkillSet, ToolOutput, estimate_tokens,
    tool::{Content, Offer, OfferedTool, ProviderError, ToolError, ToolProvider},
};
use tokio_util::sync::CancellationToken;

use super::{
    Ask, CallLink, ServerError, ToolServer,
    connection::{Connection, Session},
    listing::Listed,
    slot::{Slot, Use},
};
use crate::processes::Processes;

/// A future of a provider.
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The tools of one server. Cheap to clone; all clones share the running servers.
#[derive(Debug, Clone)]
pub struct ServerProvider(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The number of this provider, unique in this process.
    number: u64,
    server: ToolServer,
    processes: Processes,
    /// The server of all sessions, if it is shared.
    shared: Arc<Slot>,
    /// The estimated number of tokens of the tools, as they were listed last. 0 if it is not known.
    tokens: AtomicU64,
}

/// The description of a server for a catalog.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) text: String,
    /// The number of its tools.
    pub(super) tools: usize,
    /// The estimated number of tokens of its tools.
    pub(super) tokens: u64,
}

impl ServerProvider {
    /// Creates the provider of a server, which is not started yet. Its process is registered in `processes`.
    pub fn new(server: ToolServer, processes: Processes) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let tokens = AtomicU64::new(0);
        Self(Arc::new(Inner { number, server, processes, shared: Arc::default(), tokens }))
    }

    /// Starts the server once more, and describes it for a catalog.
    ///
    /// # Errors
    /// Returns an error if the server does not start, or does not list its tools.
    pub(super) async fn describe(&self, cwd: Option<&Path>) -> Result<Described, ServerError> {
        let end = CancellationToken::new();
        let connection = Connection::start(&self.0.server, &self.0.processes, cwd, None, end).await?;
        let listed = connection.tools().await?;
        let tools = self.0.offered(listed.now.own());
        let tokens = tools.iter().map(tokens).sum();
        self.set_tokens(tokens);
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let about = connection.about();
        let text = connection.hide(format!("{about} Tools: {}.", names.join(", ")));
        Ok(Described { text, tools: tools.len(), tokens })
    }

    /// Sets the estimated number of tokens of the tools, as they were listed by another process.
    pub(super) fn set_tokens(&self, tokens: u64) {
        self.0.tokens.store(tokens, Ordering::Relaxed);
    }

    /// Returns the numbers of the providers of these skills.
    pub fn numbers(skills: &SkillSet) -> Vec<u64> {
        let own = |provider: &Arc<dyn ToolProvider>| {
            let provider: &dyn Any = &**provider;
            provider.downcast_ref::<Self>().map(|provider| provider.0.number)
        };
        skills.iter().filter_map(|skill| own(skill.provider.as_ref()?)).collect()
    }

    /// Returns the description of the server.
    pub fn server(&self) -> &ToolServer {
        &self.0.server
    }
}

impl Inner {
    /// Returns the running server of the session. Starts it if necessary.
    async fn running(&self, usage: Use, context: &CallContext) -> Result<Arc<Connection>, ServerError> {
        let link = CallLink::of(context).map(|call| &call.session);
        let slot = match link {
            Some(session) if !self.server.shared => session.slot(self.number).ok_or(ServerError::Ended)?,
            _ => Arc::clone(&self.shared),
        };
        let start = |end| {
            let link = link.filter(|_| !self.server.shared).cloned();
            let link = link.map(|link| link as Arc<dyn Session>);
            Connection::start(&self.server, &self.processes, context.cwd.as_deref(), link, end)
        };
        slot.get(usage, start).await
    }

    /// Returns the tools that the model may use.
    fn offered(&self, listed: &[OfferedTool]) -> Vec<OfferedTool> {
        listed.iter().filter(|tool| self.server.tools.takes(&tool.name)).cloned().collect()
    }

    async fn offer(&self, context: CallContext) -> Result<Offer, ServerError> {
        let connection = self.running(Use::Activation, &context).await?;
        connection.activated();
        let listed = connection.tools().await?.now;
        let tokens = self.offered(listed.own()).iter().map(tokens).sum();
        self.tokens.store(tokens, Ordering::Relaxed);
        Ok(Offer::new(connection.instructions(), self.offered(&listed.tools)))
    }

    async fn call(
        &self,
        name: &str,
        input: Option<Value>,
        context: &CallContext,
    ) -> Result<Result<ToolOutput, ProviderError>, ServerError> {
        let connection = self.running(Use::Call, context).await?;
        let listed = connection.tools().await?;
        let tools = &listed.now.tools;
        let is_wanted = |tool: &OfferedTool| tool.name == name && self.server.tools.takes(name);
        let Some(place) = tools.iter().position(is_wanted) else {
            let tools = self.offered(tools).into_iter().map(|tool| tool.name).collect();
            return Ok(Err(ProviderError::UnknownTool { tools }));
        };
        let arguments = arguments(input)?;
        self.permit(&tools[place], arguments.as_ref(), context).await?;
        // Starting the server and asking the user can take long.
        if context.caller.has_left() {
            return Err(ServerError::Cancelled);
        }
        let link = CallLink::of(context);
        let progress = link.and_then(|call| call.progress.clone());
        let trace = link.map(|call| call.trace.clone()).unwrap_or_default();
        let is_own = place < listed.now.own().len();
        let mut output = connection.call((name, is_own), arguments, progress, trace).await?;
        if let Some(before) = &listed.before {
            output.content.extend(self.changes(before, &listed.now).map(Content::Text));
        }
        Ok(Ok(output))
    }

    /// Waits until the call is allowed.
    async fn permit(
        &self,
        tool: &OfferedTool,
        arguments: Option<&Map<String, Value>>,
        context: &CallContext,
    ) -> Result<(), ServerError> {
        let needs_user = match self.server.ask {
            Ask::Always => true,
            Ask::Writes => !tool.read_only,
            Ask::Never => false,
        };
        let Some(call) = CallLink::of(context) else {
            return if needs_user { Err(ServerError::CannotAsk) } else { Ok(()) };
        };
        let question = UserQuestion::Call {
            skill: self.server.skill.clone(),
            tool: tool.name.clone(),
            input: arguments.cloned().unwrap_or_default(),
            needs_user,
        };
        match call.session.ask_user(question).await {
            Some(UserAnswer::Allowed) => Ok(()),
            Some(UserAnswer::Refused) => Err(ServerError::Declined),
            Some(UserAnswer::NotAllowed) => Err(ServerError::NotAllowed),
            Some(UserAnswer::Unavailable | UserAnswer::Form(_)) | None => Err(ServerError::CannotAsk),
        }
    }

    /// Tells the model which tools are new and which are gone, if there are any.
    fn changes(&self, before: &Listed, now: &Listed) -> Option<String> {
        let names = |listed: &Listed| {
            self.offered(&listed.tools).into_iter().map(|tool| tool.name).collect::<Vec<_>>()
        };
        let before = names(before);
        let now = names(now);
        let count =
            |some: &[String], others: &[String]| some.iter().filter(|name| !others.contains(name)).count();
        let added = count(&now, &before);
        let removed = count(&before, &now);
        (added + removed > 0).then(|| {
            let skill = &self.server.skill;
            format!("[The tools of {skill} have changed: {added} new, {removed} gone. Activate it again to see them.]")
        })
    }
}

impl ToolProvider for ServerProvider {
    fn offer(&self, context: CallContext) -> BoxFuture<Result<Offer, ToolError>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.offer(context).await.map_err(Into::into) })
    }

    fn tokens(&self) -> u64 {
        self.0.tokens.load(Ordering::Relaxed)
    }

    fn call(
        &self,
        tool: String,
        input: Option<Value>,
        context: CallContext,
    ) -> BoxFuture<Result<ToolOutput, ProviderError>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let answer = inner.call(&tool, input, &context).await;
            answer.unwrap_or_else(|error| Err(ProviderError::Failed(error.into())))
        })
    }
}

/// Estimates the number of tokens that a tool takes in each request, if the agent gets it directly.
fn tokens(tool: &OfferedTool) -> u64 {
    let OfferedTool { name, description, input_schema, .. } = tool;
    let json = json!({ "name": name, "description": description, "inputSchema": input_schema });
    estimate_tokens(&json.to_string()) as u64
}

/// Returns the arguments of a call. Some models write an object as a string.
fn arguments(input: Option<Value>) -> Result<Option<Map<String, Value>>, ServerError> {
    match input {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(arguments)) => Ok(Some(arguments)),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => serde_json::from_str(&text).map(Some).map_err(|_| ServerError::Input),
        Some(_) => Err(ServerError::Input),
    }
}
