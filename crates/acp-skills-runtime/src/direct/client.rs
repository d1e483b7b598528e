//! [`Client`]: the MCP handler of one connection. It opens the session of the connection, and passes requests to the handler of the
//! session.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, DiscoverResult,
        GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams, GetSkillResult,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourcesResult, ListSkillsResult,
        ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ServerConfig, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};

use super::{
    roots,
    sessions::{Session, Sessions},
    trust,
};
use crate::mcp::{changes::Listeners, conversion};

/// The timeout for the client's answer about its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time that requests wait for the roots. A client that answers one request at a time would otherwise wait forever.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The handler of one connection, or of one request of a client that keeps no connection.
pub(super) struct Client {
    sessions: Sessions,
    /// True if requests without a connection use a session that they share.
    is_shared: bool,
    /// The session of the connection. No other lock is taken while it is held.
    session: AsyncMutex<Option<Arc<Session>>>,
}

impl Client {
    /// Creates the handler of one connection.
    pub(super) fn new(sessions: Sessions) -> Self {
        Self { sessions, is_shared: false, session: AsyncMutex::default() }
    }

    /// Creates the handler of one MCP session over HTTP, or of one request without a session.
    pub(super) fn over_http(sessions: Sessions) -> Self {
        Self { is_shared: true, ..Self::new(sessions) }
    }

    /// Returns the session of the connection, if it is open.
    async fn current(&self) -> Option<Arc<Session>> {
        self.session.lock().await.clone()
    }

    /// Returns the session of the connection. Opens it if necessary. A session that was opened before the client has named itself is
    /// replaced.
    async fn own(&self, name: Option<&str>) -> Result<Arc<Session>, ErrorData> {
        let mut current = self.session.lock().await;
        if let Some(session) = current.as_ref().filter(|session| session.is_of(name)) {
            return Ok(Arc::clone(session));
        }
        let session = self.sessions.open(name).await?;
        *current = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Returns the session of a request, once its directories are known.
    async fn session(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Session>, ErrorData> {
        if let Some(session) = self.current().await {
            if timeout(SETTLE_TIMEOUT, session.settled.cancelled()).await.is_err() {
                session.settled.cancel();
            }
            return Ok(session);
        }
        let info = context.client_info();
        let name = info.as_ref().map(|info| info.name.as_str());
        if self.is_shared {
            return self.sessions.shared(name).await;
        }
        let session = self.own(name).await?;
        session.settled.cancel();
        Ok(session)
    }

    /// Asks the client for its roots, and then the user about skills, in the background.
    fn settle(&self, session: &Arc<Session>, client: Peer<RoleServer>, has_roots: bool) {
        let sessions = self.sessions.clone();
        let session = Arc::clone(session);
        tokio::spawn(async move {
            if has_roots {
                use_roots(&sessions, &session, &client).await;
            }
            session.settled.cancel();
            trust::ask(&sessions, &session);
        });
    }
}

/// Moves a session to the roots of its client.
#[expect(deprecated, reason = "the revisions of MCP with sessions have roots")]
async fn use_roots(sessions: &Sessions, session: &Session, client: &Peer<RoleServer>) {
    let listed = timeout(ROOTS_TIMEOUT, client.list_roots()).await;
    let roots = match listed {
        Ok(Ok(result)) => result.roots,
        Ok(Err(error)) => return tracing::debug!(%error, "client has no roots"),
        Err(_) => return tracing::debug!("client did not answer with its roots in time"),
    };
    if let Some(workspace) = roots::workspace(roots.iter().map(|root| root.uri.as_str())) {
        sessions.move_to(session, workspace).await;
    }
}

impl ServerHandler for Client {
    fn get_info(&self) -> ServerConfig {
        conversion::info()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let session = self.own(Some(&request.client_info.name)).await?;
        let capabilities = &request.capabilities;
        if trust::shows_forms(capabilities) {
            *session.forms.lock() = Some(context.peer.clone());
        }
        if !has_roots(capabilities) {
            session.settled.cancel();
        }
        let mut result = self.negotiate_initialize(&request)?;
        result.instructions = session.instructions(&self.sessions);
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let session = self.session(&context).await?;
        let mut info = self.get_info();
        info.instructions = session.instructions(&self.sessions);
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(session) = self.current().await else { return };
        let client = context.peer.clone();
        let info = client.peer_info();
        self.settle(&session, client, info.is_some_and(|info| has_roots(&info.capabilities)));
        session.handler.on_initialized(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        if let Some(session) = self.current().await {
            self.settle(&session, context.peer, true);
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(Listeners::accept(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let session = self.session(context.request_context()).await?;
        session.handler.listen(context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let session = self.session(&context).await?;
        let mut result = session.handler.list_tools(request, context).await?;
        session.describe(&self.sessions, &mut result.tools);
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = self.session(&context).await?;
        session.handler.call_tool(request, context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let session = self.session(&context).await?;
        session.handler.on_custom_request(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let session = self.session(&context).await?;
        session.handler.list_prompts(request, context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let session = self.session(&context).await?;
        session.handler.get_prompt(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let session = self.session(&context).await?;
        session.handler.list_resources(request, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.session(&context).await?;
        session.handler.read_resource(request, context).await
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let session = self.session(&context).await?;
        session.handler.list_skills(request, context).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let session = self.session(&context).await?;
        session.handler.get_skill(request, context).await
    }
}

fn has_roots(capabilities: &rmcp::model::ClientCapabilities) -> bool {
    capabilities.roots.is_some()
}
