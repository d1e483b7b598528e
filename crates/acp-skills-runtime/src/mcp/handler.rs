//! The MCP server of one session: `skills-core`'s toolbox, spoken as MCP.
//!
//! rmcp answers `initialize` of the older revisions and the stateless requests of 2026-07-28 from this one handler.

use std::{sync::Arc, time::Instant};

use parking_lot::Mutex;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
        GetPromptResponse, GetSkillRequestParams, GetSkillResult, Implementation, ListPromptsResult,
        ListResourcesResult, ListSkillsResult, ListToolsResult, MetaObject, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
        SubscriptionFilter, Tool, ToolAnnotations,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use skills_core::{
    CallContext, SkillName, SkillSet, ToolDefinition, ToolOutput,
    activation::BodyCache,
    toolbox::{ACTIVATE_SKILL, Content},
};

use super::{
    Inputs,
    calls::Call,
    changes::{Listeners, Lists},
    progress, prompts, resources,
    serving::Serving,
};
use crate::{
    activity::{Activity, Observer, ToolCall},
    events::EventKind,
};
use acp_skills_intercept::Input;
use acp_skills_intercept::SessionKey;

/// The tools of one session. All clones are the same.
#[derive(Clone)]
pub(super) struct Handler {
    session: SessionKey,
    /// Guards what is served now. Taken alone, and for a moment.
    serving: Arc<Mutex<Serving>>,
    inputs: Inputs,
    observer: Option<Observer>,
    pub(super) listeners: Arc<Listeners>,
    /// Bodies that were fetched for resources.
    bodies: BodyCache,
}

impl Handler {
    pub(super) fn new(
        session: SessionKey,
        serving: Serving,
        inputs: Inputs,
        observer: Option<Observer>,
    ) -> Self {
        let serving = Arc::new(Mutex::new(serving));
        let listeners = Arc::default();
        Self { session, serving, inputs, observer, listeners, bodies: BodyCache::default() }
    }

    /// Serves these skills from now on. Returns which lists differ from before.
    pub(super) fn serve(&self, skills: &SkillSet, context: CallContext) -> Lists {
        let mut serving = self.serving.lock();
        let toolbox = serving.toolbox.with_skills(skills.clone());
        let before = std::mem::replace(&mut *serving, Serving { toolbox, context });
        Lists::between(&before.toolbox, &serving.toolbox)
    }

    pub(super) fn now(&self) -> Serving {
        self.serving.lock().clone()
    }

    /// Runs `work`, which blocks, on a thread for that.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Serving, &BodyCache) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let (serving, bodies) = (self.now(), self.bodies.clone());
        let done = tokio::task::spawn_blocking(move || work(&serving, &bodies)).await;
        done.unwrap_or_else(|_| Err(ErrorData::internal_error("interrupted", None)))
    }

    /// Somebody has come who knows the token.
    pub(super) fn connected(&self) {
        // Fails only while the relay is being taken down.
        drop(self.inputs.send(Input::Connected(self.session)));
    }

    /// A skill was activated, by the model, or by the user through the agent.
    pub(super) fn activated(&self, skill: &SkillName) {
        // Fails only while the relay is being taken down.
        drop(self.inputs.send(Input::Activated(self.session, skill.clone())));
    }

    fn recorded(&self, what: EventKind) {
        // As above.
        drop(self.inputs.send(Input::Recorded(self.session, what)));
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder();
        let capabilities = capabilities.enable_tools().enable_prompts().enable_resources().enable_skills();
        let capabilities = capabilities.enable_tool_list_changed().enable_prompts_list_changed();
        let capabilities = capabilities.enable_resources_list_changed();
        let mut info = ServerConfig::new(capabilities.build());
        info.server_info = Implementation::new("acp-skills", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.listeners.connected(context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(Listeners::accept(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let _open = self.listeners.subscribed(context.sink().clone());
        context.cancelled().await;
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.now().toolbox.definitions().into_iter().map(tool).collect();
        // Fails only while the relay is being taken down.
        let _ = self.inputs.send(Input::ToolsListed(self.session));
        if let Some(observer) = &self.observer {
            let revision = context.protocol_version().map(|revision| revision.to_string());
            observer(&Activity::Listed { session: self.session, revision });
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let started = Instant::now();
        let Serving { toolbox, context: caller } = self.now();
        let call = Call { toolbox: &toolbox, context: &caller, tool: &request.name, arguments: &arguments };
        tokio::select! {
            output = toolbox.call(&request.name, arguments.clone(), &caller) => {
                let is_activation = request.name == ACTIVATE_SKILL && !output.is_error;
                if let Some(skill) = call.skill().filter(|_| is_activation) {
                    self.activated(&skill.name);
                }
                self.recorded(call.event(Some(&output), started.elapsed()));
                tracing::info!(tool = %request.name, failed = output.is_error, "tool call");
                if let Some(observer) = &self.observer {
                    let duration = started.elapsed();
                    let (session, tool) = (self.session, request.name.into_owned());
                    let call = ToolCall { session, tool, arguments, output: output.clone(), duration };
                    observer(&Activity::Called(Box::new(call)));
                }
                Ok(result(output).into())
            }
            never = progress::report(&request.name, &context) => never,
            // Dropping the call ends what it runs; nobody reads the answer.
            () = context.ct.cancelled() => {
                self.recorded(call.event(None, started.elapsed()));
                Err(ErrorData::internal_error("cancelled", None))
            }
        }
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list(&self.now().toolbox))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (result, skill, what) = prompts::get(&self.now().toolbox, request).await?;
        self.activated(&skill);
        self.recorded(what);
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.blocking(move |serving, _| resources::list(serving, cursor.as_deref())).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let read =
            move |serving: &Serving, bodies: &BodyCache| resources::read(serving, bodies, &request.uri);
        let read = self.blocking(read).await?;
        if let (Some(observer), Some((skill, path))) = (&self.observer, resources::parse(&uri)) {
            observer(&Activity::ResourceRead { session: self.session, skill, path });
        }
        Ok(read.into())
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.blocking(move |serving, _| resources::list_skills(serving, cursor.as_deref())).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.blocking(move |serving, _| resources::get_skill(serving, &request.uri)).await
    }
}

fn tool(definition: ToolDefinition) -> Tool {
    // Some agents give the model all of a definition, so nothing is said twice and no default spelled out: what is not
    // said to be read-only may destroy things. The title is a member of its own.
    let annotations = ToolAnnotations::new().read_only(definition.read_only);
    let mut tool = Tool::new(definition.name, definition.description, definition.input_schema);
    tool.title = Some(definition.title.into_owned());
    tool.annotations = Some(annotations);
    // Claude Code hides tools behind a search of its own unless they say that they are always needed.
    let mut meta = MetaObject::new();
    meta.insert("anthropic/alwaysLoad".to_owned(), true.into());
    tool.meta = Some(meta);
    tool
}

fn result(output: ToolOutput) -> CallToolResult {
    let content = output.content.into_iter().map(block).collect();
    let mut result =
        if output.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = output.structured;
    result
}

fn block(content: Content) -> ContentBlock {
    use base64::{Engine, engine::general_purpose::STANDARD};
    match content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Image { media_type, data } => ContentBlock::image(STANDARD.encode(data), media_type),
        // A kind of content that a newer core has; its debug form is better than nothing.
        other => ContentBlock::text(format!("{other:?}")),
    }
}
