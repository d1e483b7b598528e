//! [`Responder`]: the handler of a connection, as rmcp sees it.
//!
//! rmcp's server loop and HTTP service are compiled again for each type of handler and of transport. So all connections share one
//! type of handler, and all but those over HTTP share one type of transport.

use std::{io, pin::Pin, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, ClientJsonRpcMessage, CustomRequest, CustomResult,
        DiscoverResult, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams, GetSkillResult,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourcesResult, ListSkillsResult,
        ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ServerConfig, ServerJsonRpcMessage, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, ServerInitializeError, SubscriptionContext},
    transport::Transport,
};
use tokio_util::sync::CancellationToken;

use super::{changes::Listeners, conversion, handler::Handler};

/// A future whose type is erased.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The session that a request belongs to. It stays open while this value exists.
pub(crate) type Session = Arc<dyn AsRef<Handler> + Send + Sync>;

/// A client that opens sessions with its requests. The methods with a default in [`ServerHandler`] are those that differ from the
/// ones of a session's handler.
pub(crate) trait ClientHandler: Send + Sync {
    /// Returns the session of a request. Opens it if necessary.
    fn session<'a>(
        &'a self,
        context: &'a RequestContext<RoleServer>,
    ) -> Boxed<'a, Result<Session, ErrorData>>;

    /// Answers `initialize`.
    fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Boxed<'_, Result<InitializeResult, ErrorData>>;

    /// Answers `server/discover`.
    fn discover(&self, context: RequestContext<RoleServer>) -> Boxed<'_, Result<DiscoverResult, ErrorData>>;

    /// Handles `notifications/initialized`.
    fn on_initialized(&self, context: NotificationContext<RoleServer>) -> Boxed<'_, ()>;

    /// Handles `notifications/roots/list_changed`.
    fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) -> Boxed<'_, ()>;

    /// Answers `tools/list`.
    fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Boxed<'_, Result<ListToolsResult, ErrorData>>;
}

/// The handler of a connection.
pub(crate) enum Responder {
    /// The connection belongs to one session.
    Session(Handler),
    /// The client opens sessions.
    Client(Box<dyn ClientHandler>),
}

impl Responder {
    async fn session(&self, context: &RequestContext<RoleServer>) -> Result<Session, ErrorData> {
        match self {
            Self::Session(handler) => Ok(Arc::new(handler.clone())),
            Self::Client(client) => client.session(context).await,
        }
    }
}

impl AsRef<Handler> for Handler {
    fn as_ref(&self) -> &Handler {
        self
    }
}

impl ServerHandler for Responder {
    fn get_info(&self) -> ServerConfig {
        conversion::info()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        match self {
            Self::Session(handler) => handler.initialize(request, context).await,
            Self::Client(client) => client.initialize(request, context).await,
        }
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        match self {
            Self::Session(handler) => handler.discover(context).await,
            Self::Client(client) => client.discover(context).await,
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        match self {
            Self::Session(handler) => handler.on_initialized(context).await,
            Self::Client(client) => client.on_initialized(context).await,
        }
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        if let Self::Client(client) = self {
            client.on_roots_list_changed(context).await;
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(Listeners::accept(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let session = self.session(context.request_context()).await?;
        (*session).as_ref().listen(context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        match self {
            Self::Session(handler) => handler.list_tools(request, context).await,
            Self::Client(client) => client.list_tools(request, context).await,
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = self.session(&context).await?;
        (*session).as_ref().call_tool(request, context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let session = self.session(&context).await?;
        (*session).as_ref().on_custom_request(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let session = self.session(&context).await?;
        (*session).as_ref().list_prompts(request, context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let session = self.session(&context).await?;
        (*session).as_ref().get_prompt(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let session = self.session(&context).await?;
        (*session).as_ref().list_resources(request, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.session(&context).await?;
        (*session).as_ref().read_resource(request, context).await
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let session = self.session(&context).await?;
        (*session).as_ref().list_skills(request, context).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let session = self.session(&context).await?;
        (*session).as_ref().get_skill(request, context).await
    }
}

/// A transport whose type is erased.
pub(crate) struct AnyTransport(Box<dyn Erased>);

impl AnyTransport {
    pub(super) fn new(transport: impl Transport<RoleServer> + 'static) -> Self {
        Self(Box::new(transport))
    }
}

/// The methods of [`Transport`] with erased types.
trait Erased: Send {
    fn send(&mut self, message: ServerJsonRpcMessage) -> Boxed<'static, io::Result<()>>;
    fn receive(&mut self) -> Boxed<'_, Option<ClientJsonRpcMessage>>;
    fn close(&mut self) -> Boxed<'_, io::Result<()>>;
}

impl<T: Transport<RoleServer>> Erased for T {
    fn send(&mut self, message: ServerJsonRpcMessage) -> Boxed<'static, io::Result<()>> {
        let sends = Transport::send(self, message);
        Box::pin(async { sends.await.map_err(io::Error::other) })
    }

    fn receive(&mut self) -> Boxed<'_, Option<ClientJsonRpcMessage>> {
        Box::pin(Transport::receive(self))
    }

    fn close(&mut self) -> Boxed<'_, io::Result<()>> {
        Box::pin(async { Transport::close(self).await.map_err(io::Error::other) })
    }
}

impl Transport<RoleServer> for AnyTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.0.receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.0.close().await
    }
}

/// Serves a connection until it is closed, or until `end` is cancelled.
///
/// # Errors
/// Returns an error if the client does not begin as MCP requires it.
pub(crate) async fn serve(
    responder: Responder,
    transport: AnyTransport,
    end: CancellationToken,
) -> Result<(), Box<ServerInitializeError>> {
    let running = rmcp::service::serve_server_with_ct(responder, transport, end).await?;
    // The reason for the end doesn't matter.
    let _ = running.waiting().await;
    Ok(())
}
