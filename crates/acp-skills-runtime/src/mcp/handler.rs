//! [`Handler`]: the MCP server of one session, which offers the toolbox of `skills-core` over MCP.
//!
//! rmcp uses this handler both for the older revisions of MCP, which begin with `initialize`, and for the stateless requests of
//! 2026-07-28.

mod resource_read;

use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use acp_skills_intercept::{Input, SessionKey, reminder};
use acp_skills_servers::{CallLink, Progress, ServerProvider, SessionLink, progress_channel};
use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, GetPromptRequestParams,
        GetPromptResponse, GetSkillRequestParams, GetSkillResult, ListPromptsResult, ListResourcesResult,
        ListSkillsResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ServerConfig, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::{Map, Value};
use skills_core::{
    CallContext, Caller, Skill, SkillName, SkillSet, ToolOutput,
    activation::BodyCache,
    toolbox::{ACTIVATE_SKILL, Content, RUN_SKILL_SCRIPT},
};
use tokio::sync::mpsc::Sender;
use tracing::{Instrument, Span, debug_span};

use super::{
    Inputs,
    calls::Call,
    changes::{Listeners, Lists},
    connection_end::{self, ConnectionEnd},
    conversion, progress, prompts,
    queued_calls::QueuedCalls,
    resources,
    serving::Serving,
    tool_list::{ToolList, prepare_search},
};
use crate::{
    activity::{Activity, Observer, ToolCall},
    events::EventKind,
    spans::Spans,
};

/// The receivers of everything that happens on a server: the interceptor, the observer and the log.
#[derive(Clone)]
pub(super) struct Reports {
    pub(super) inputs: Inputs,
    pub(super) observer: Option<Observer>,
    pub(super) spans: Spans,
}

/// The MCP server of one session. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub(crate) struct Handler {
    session: SessionKey,
    /// Guards the tools that are served, and the list of tools that the agent has received. No other lock is taken while it is held.
    served: Arc<Mutex<(Serving, ToolList)>>,
    /// Guards the skills that results remind of. No other lock is taken while it is held.
    lost: Arc<Mutex<Vec<SkillName>>>,
    /// The session, as far as MCP servers behind skills are concerned.
    pub(super) link: Arc<SessionLink>,
    /// The calls that wait to run a program.
    pub(super) queued: QueuedCalls,
    reports: Reports,
    pub(super) listeners: Arc<Listeners>,
    /// A cache of the instructions of skills that were read as resources.
    bodies: BodyCache,
}

impl Handler {
    pub(super) fn new(session: SessionKey, serving: Serving, reports: Reports) -> Self {
        let link = Arc::new(SessionLink::new(session, &reports.inputs));
        Self {
            session,
            link,
            served: Arc::new(Mutex::new((serving, ToolList::default()))),
            lost: Arc::default(),
            queued: QueuedCalls::default(),
            reports,
            listeners: Arc::default(),
            bodies: BodyCache::default(),
        }
    }

    /// Replaces the skills that are served. `is_setup` is true if the session is being set up. Returns the lists that the agent has
    /// to ask for again.
    pub(super) fn serve(&self, skills: &SkillSet, context: CallContext, is_setup: bool) -> Lists {
        // The servers of skills that are gone end here.
        self.link.serve(ServerProvider::numbers(skills));
        let mut served = self.served.lock();
        let (serving, list) = &mut *served;
        let toolbox = serving.toolbox.with_skills(skills.clone());
        let before = mem::replace(serving, Serving::new(toolbox, context));
        before.replaced.cancel();
        if is_setup {
            list.set_up();
        }
        Lists::between(&before.toolbox, &serving.toolbox, list)
    }

    /// Leaves the names of skills out of the schemas from now on.
    pub(super) fn leave_names_open(&self) {
        let mut served = self.served.lock();
        let toolbox = served.0.toolbox.clone().with_open_names();
        served.0.toolbox = toolbox;
    }

    /// Offers the current list of tools from now on, also if the client has received another one. This is for clients that learn
    /// about new skills from this list only.
    pub(crate) fn follow(&self) {
        self.served.lock().1.follow();
    }

    /// Offers the search tool from now on.
    pub(crate) fn offer_search(&self) {
        let mut served = self.served.lock();
        let toolbox = served.0.toolbox.clone().with_search();
        served.0.toolbox = toolbox;
    }

    /// Returns the skills that are served now.
    pub(crate) fn skills(&self) -> SkillSet {
        self.served.lock().0.toolbox.skills().clone()
    }

    /// Sets the skills that results remind of, because the model has lost their instructions.
    pub(super) fn remind(&self, skills: Vec<SkillName>) {
        *self.lost.lock() = skills;
    }

    /// Returns the session as the caller of one call, which uses `skill`.
    fn caller(&self, context: &RequestContext<RoleServer>, skill: Option<&Arc<Skill>>) -> Caller {
        let served = Arc::clone(&self.served);
        let connection = ConnectionEnd::of(&context.extensions);
        self.queued.caller(connection, skill.cloned(), move || served.lock().0.clone())
    }

    /// Adds the session to a context, so that MCP servers behind skills can use it. `progress` receives what they report,
    /// and `trace` is passed on to them.
    pub(super) fn linked(
        &self,
        context: CallContext,
        progress: Option<Sender<Progress>>,
        trace: Map<String, Value>,
    ) -> CallContext {
        context.with_host_data(Arc::new(CallLink { session: Arc::clone(&self.link), progress, trace }))
    }

    /// Returns the reminder for the result of a call, if there is one. A skill that the call activates is left out.
    fn reminder(&self, call: &Call<'_>) -> Option<String> {
        let activated = call.skill().filter(|_| call.tool == ACTIVATE_SKILL).map(|skill| skill.name.key());
        let lost = self.lost.lock();
        let is_lost = |name: &&SkillName| {
            call.toolbox.skills().get(name.as_str()).is_some() && activated.as_ref() != Some(&name.key())
        };
        reminder(lost.iter().filter(is_lost))
    }

    /// Returns the tools that are served now.
    pub(super) fn now(&self) -> Serving {
        self.served.lock().0.clone()
    }

    /// Runs `work`, which may block, on another thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Serving, &BodyCache) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let serving = self.now();
        let bodies = self.bodies.clone();
        let done = tokio::task::spawn_blocking(move || work(&serving, &bodies)).await;
        done.unwrap_or_else(|_| Err(ErrorData::internal_error("interrupted", None)))
    }

    /// Reports that the agent has connected with the token.
    pub(super) fn connected(&self) {
        self.report(Input::Connected(self.session));
    }

    /// Reports that a skill was activated by the model, or by the user with an MCP prompt.
    pub(super) fn activated(&self, skill: &SkillName) {
        self.report(Input::Activated(self.session, skill.clone()));
    }

    /// Reports the start of a call, which may have been granted without the user.
    fn arrived(&self, call: &Call<'_>) {
        self.report(Input::CallArrived {
            session: self.session,
            tool: call.tool.to_owned(),
            arguments: call.arguments.clone(),
        });
    }

    pub(super) fn recorded(&self, kind: EventKind) {
        self.report(Input::Recorded(self.session, kind));
    }

    fn report(&self, input: Input) {
        // This fails if the relay is being shut down, so we can ignore the error.
        let _ = self.reports.inputs.send(input);
    }

    /// Returns the span of a tool call. The span of a script is inside it, because a script can run for a long time.
    fn span_of(&self, call: &Call<'_>) -> Span {
        let skill = call.skill().map(|skill| skill.name.as_str());
        let span = debug_span!(parent: self.reports.spans.current(self.session), "tool_call", tool = call.tool, skill);
        if call.tool == RUN_SKILL_SCRIPT {
            return debug_span!(parent: &span, "script", script = call.text("script"));
        }
        span
    }

    /// Reports the end of a call to the record, the log and the observer.
    fn called(&self, call: &Call<'_>, output: &ToolOutput, duration: Duration) {
        if call.tool == ACTIVATE_SKILL
            && !output.is_error
            && let Some(skill) = call.skill()
        {
            self.activated(&skill.name);
        }
        self.recorded(call.event(Some(output), duration));
        tracing::info!(tool = %call.tool, failed = output.is_error, "tool call");
        if let Some(observer) = &self.reports.observer {
            observer(&Activity::Called(Box::new(ToolCall {
                session: self.session,
                tool: call.tool.to_owned(),
                arguments: call.arguments.clone(),
                output: output.clone(),
                duration,
            })));
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        conversion::info()
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
        let tools = {
            let mut served = self.served.lock();
            let (serving, list) = &mut *served;
            list.received(&serving.toolbox)
        };
        prepare_search(&self.now().toolbox);
        self.report(Input::ToolsListed(self.session));
        if let Some(observer) = &self.reports.observer {
            let revision = context.protocol_version().map(|revision| revision.to_string());
            observer(&Activity::Listed { session: self.session, revision });
        }
        Ok(ListToolsResult::with_all_items(tools.into_iter().map(conversion::tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let started = Instant::now();
        let Serving { toolbox, context: caller, .. } = self.now();
        let skill = arguments.get("skill").and_then(Value::as_str);
        let skill = skill.and_then(|name| toolbox.usable(name, &caller));
        // Without a token, the client does not want to know.
        let is_followed = context.meta.get_progress_token().is_some();
        let (progress, server_progress) = is_followed.then(progress_channel).unzip();
        let caller = caller.called_by(self.caller(&context, skill));
        let caller = self.linked(caller, progress, conversion::passed_on(&context.meta));
        let call = Call {
            toolbox: &toolbox,
            context: &caller,
            tool: &request.name,
            arguments: &arguments,
            trace: conversion::trace(&context.meta),
        };
        let span = self.span_of(&call);
        self.arrived(&call);
        let answer = async {
            tracing::debug!("tool call started");
            tokio::select! {
                output = toolbox.call(&request.name, arguments.clone(), &caller) => {
                    self.called(&call, &output, started.elapsed());
                    let mut output = output;
                    output.content.extend(self.reminder(&call).map(Content::Text));
                    Ok(conversion::result(output).into())
                }
                never = progress::report(&request.name, &context, server_progress) => never,
                // The call is dropped here, which ends its programs. The agent no longer reads the answer.
                () = connection_end::cancelled(&context) => {
                    tracing::debug!("tool call cancelled");
                    self.recorded(call.event(None, started.elapsed()));
                    Err(ErrorData::internal_error("cancelled", None))
                }
            }
        };
        answer.instrument(span).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(conversion::refusal(&request.method))
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
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Serving { toolbox, context: caller, .. } = self.now();
        let caller = self.linked(caller.called_by(self.caller(&context, None)), None, Map::new());
        let (result, skill, event) = tokio::select! {
            answer = prompts::get(&toolbox, request, &caller) => answer?,
            // The server of a skill may be hanging.
            () = connection_end::cancelled(&context) => return Err(ErrorData::internal_error("cancelled", None)),
        };
        self.activated(&skill);
        self.recorded(event);
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
        let turn = resources::turn(&self.now(), &uri).await;
        let read = move |serving: &_, bodies: &_| turn.run(|| resources::read(serving, bodies, &request.uri));
        let (started, read) = (Instant::now(), self.blocking(read).await);
        self.resource_read(&uri, &read, started.elapsed());
        Ok(read?.into())
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
