//! [`DirectConnection`]: the MCP handler of one connection. It opens the session of the connection, and passes requests to the handler of the
//! session.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        DiscoverResult, InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams,
    },
    service::{NotificationContext, RequestContext},
};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};

use super::{
    roots,
    sessions::{Session, Sessions},
    settling::Cause,
    trust,
};
use crate::mcp::{
    conversion,
    handler::Handler,
    responder::{self, Boxed},
};

/// The timeout for the client's answer about its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time that requests wait for the roots. A client that answers one request at a time would otherwise wait forever.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The handler of one connection, or of one request of a client that keeps no connection.
pub(super) struct DirectConnection {
    sessions: Sessions,
    /// True if requests without a connection use a session that they share.
    is_shared: bool,
    /// The session of the connection. No other lock is taken while it is held.
    session: AsyncMutex<Option<Arc<Session>>>,
}

impl DirectConnection {
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
            if timeout(SETTLE_TIMEOUT, session.settling.finished()).await.is_err() {
                session.settling.finish();
            }
            return Ok(session);
        }
        let info = context.client_info();
        let name = info.as_ref().map(|info| info.name.as_str());
        if self.is_shared {
            return self.sessions.shared(name).await;
        }
        let session = self.own(name).await?;
        session.settling.finish();
        Ok(session)
    }

    /// Asks the client for its roots, and then the user about skills, in the background. This is repeated if the roots change in the
    /// meantime.
    fn settle(&self, session: &Arc<Session>, client: Peer<RoleServer>, cause: Cause) {
        if !session.settling.begins(cause) {
            return;
        }
        let sessions = self.sessions.clone();
        let session = Arc::clone(session);
        tokio::spawn(async move {
            let mut has_roots = cause == Cause::RootsChanged
                || client.peer_info().is_some_and(|info| has_roots(&info.capabilities));
            loop {
                if has_roots {
                    use_roots(&sessions, &session, &client).await;
                }
                if !session.settling.ends() {
                    break;
                }
                has_roots = true;
            }
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

impl AsRef<Handler> for Session {
    fn as_ref(&self) -> &Handler {
        &self.handler
    }
}

impl responder::ClientHandler for DirectConnection {
    fn session<'a>(
        &'a self,
        context: &'a RequestContext<RoleServer>,
    ) -> Boxed<'a, Result<responder::Session, ErrorData>> {
        Box::pin(async { Ok(self.session(context).await? as responder::Session) })
    }

    fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Boxed<'_, Result<InitializeResult, ErrorData>> {
        Box::pin(async move {
            context.peer.set_peer_info(request.clone());
            let session = self.own(Some(&request.client_info.name)).await?;
            let capabilities = &request.capabilities;
            session.forms.connect(&context.peer, capabilities);
            if !has_roots(capabilities) {
                session.settling.finish();
            }
            let mut result = session.handler.negotiate_initialize(&request)?;
            result.instructions = session.instructions(&self.sessions);
            Ok(result)
        })
    }

    fn discover(&self, context: RequestContext<RoleServer>) -> Boxed<'_, Result<DiscoverResult, ErrorData>> {
        Box::pin(async move {
            let session = self.session(&context).await?;
            let mut info = conversion::info();
            info.instructions = session.instructions(&self.sessions);
            let versions = session.handler.supported_protocol_versions().into_owned();
            Ok(DiscoverResult::from_server_info(versions, info))
        })
    }

    fn on_initialized(&self, context: NotificationContext<RoleServer>) -> Boxed<'_, ()> {
        Box::pin(async move {
            let Some(session) = self.current().await else { return };
            self.settle(&session, context.peer.clone(), Cause::Initialized);
            session.handler.on_initialized(context).await;
        })
    }

    fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) -> Boxed<'_, ()> {
        Box::pin(async move {
            if let Some(session) = self.current().await {
                self.settle(&session, context.peer, Cause::RootsChanged);
            }
        })
    }

    fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Boxed<'_, Result<ListToolsResult, ErrorData>> {
        Box::pin(async move {
            let session = self.session(&context).await?;
            let mut result = session.handler.list_tools(request, context).await?;
            session.describe(&self.sessions, &mut result.tools);
            Ok(result)
        })
    }
}

fn has_roots(capabilities: &rmcp::model::ClientCapabilities) -> bool {
    capabilities.roots.is_some()
}
