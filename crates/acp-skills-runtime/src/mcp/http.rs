//! MCP over HTTP: the listener on loopback, which routes requests to the MCP server of a session.
//!
//! | file | owns |
//! |---|---|
//! | `access` | access control |
//! | `sessions` | the MCP sessions of one endpoint, which are put aside while they are idle |

pub(crate) mod access;
mod sessions;

use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{HeaderValue, WWW_AUTHENTICATE},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
};
use tokio_util::sync::CancellationToken;

use self::sessions::{MAX_MCP_SESSIONS, Sessions};
use super::{
    Servers,
    accept::{self, Accept},
    connection_end::ConnectionEnd,
    unauthenticated::Admission,
};

/// The last segment of the path of the MCP endpoint.
pub(crate) const MCP: &str = "mcp";

/// The timeout for reading the headers of a request, which includes the idle time between requests. It is longer than
/// the keep-alive times of known clients.
const HEADER_TIMEOUT: Duration = Duration::from_secs(150);

pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// The header with the id of an MCP session. In the response to `initialize`, it starts a session.
const SESSION_ID: &str = "Mcp-Session-Id";

/// MCP over HTTP for one endpoint.
pub(crate) struct Service<H: ServerHandler> {
    http: StreamableHttpService<H, LocalSessionManager>,
    sessions: Sessions,
}

impl<H: ServerHandler> Service<H> {
    /// Creates the service. `handler` returns the handler of a new MCP session, or of a request without one. `put_aside` is called
    /// after idle sessions were put aside.
    pub(crate) fn new(
        handler: impl Fn() -> H + Send + Sync + 'static,
        put_aside: impl Fn() + Send + Sync + 'static,
        end: CancellationToken,
    ) -> Self {
        // Use sessions for clients with older revisions. Otherwise, GET requests for the event stream are refused,
        // which makes some agents fail.
        let sessions = Sessions::new(put_aside);
        let mut config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(true)
            .with_sse_retry(None)
            .enforce_origin_validation()
            // `access` has checked `Host`.
            .disable_allowed_hosts()
            .with_cancellation_token(end);
        config.session_store = Some(sessions.store());
        let http = StreamableHttpService::new(move || Ok(handler()), sessions.manager(), config);
        Self { http, sessions }
    }

    /// Answers a request that was authenticated.
    pub(crate) async fn handle<B>(&self, mut request: Request<B>) -> Response<Body>
    where
        B: hyper::body::Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let session = request.headers().get(SESSION_ID);
        let may_begin = session.is_none();
        let open = self.sessions.begin(session.and_then(|id| id.to_str().ok())).await;
        // Dropped with this future or with the body, because both end with the connection.
        let (end, connection) = ConnectionEnd::new();
        request.extensions_mut().insert(end.or_of(open.end.clone()));
        let response = self.http.handle(request).await;
        if may_begin
            && let Some(id) = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok())
            && !self.sessions.is_kept(id)
        {
            return if self.sessions.count() < MAX_MCP_SESSIONS {
                refuse(StatusCode::PAYLOAD_TOO_LARGE, "params of `initialize` are too long")
            } else {
                refuse(StatusCode::SERVICE_UNAVAILABLE, "too many MCP sessions: close unused sessions")
            };
        }
        // The body owns `open` and `connection`, so that the session is not put aside while the client reads it.
        response.map(|body| {
            let body = body.map_frame(move |frame| {
                let _open = (&open, &connection);
                frame
            });
            body.boxed()
        })
    }
}

/// Opens the listener on a port that the operating system chooses.
pub(super) fn listen(servers: &Servers, runtime: &Handle) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let _inside = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let weak = servers.downgrade();
    let upgrade = move || Some(Servers(weak.upgrade()?));
    runtime.spawn(accept::run(listener, servers.end(), upgrade, serve));
    Ok(address)
}

impl Accept for tokio::net::TcpListener {
    type Stream = tokio::net::TcpStream;

    async fn accept(&mut self) -> io::Result<Self::Stream> {
        let (stream, _) = tokio::net::TcpListener::accept(self).await?;
        // Use this to send small answers immediately. If it fails, answers are just slower.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

/// Answers the requests of HTTP connections.
pub(crate) trait Route: Clone + Send + Sync + 'static {
    /// Answers a request. A connection whose request is authenticated may stay open.
    fn route(
        &self,
        request: Request<Incoming>,
        admission: &Admission,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// Serves one connection until it closes, or until its admission expires.
pub(crate) async fn serve<S, R: Route>(stream: S, admission: Admission, router: R)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let admission = Arc::new(admission);
    let shared = Arc::clone(&admission);
    let service = service_fn(move |request| {
        let router = router.clone();
        let admission = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(router.route(request, &admission).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "MCP connection failed");
        },
        () = admission.expires() => tracing::debug!("closed connection: no token received in time"),
    }
}

impl Route for Servers {
    async fn route(&self, request: Request<Incoming>, admission: &Admission) -> Response<Body> {
        if !access::is_local(request.headers(), Ipv4Addr::LOCALHOST.into()) {
            return not_local();
        }
        let path = request.uri().path().trim_start_matches('/').to_owned();
        let Some((session, segment)) = path.split_once('/') else {
            return refuse(StatusCode::NOT_FOUND, "no such session");
        };
        let Some(server) = self.by_path(session) else {
            return refuse(StatusCode::NOT_FOUND, "no such session");
        };
        if !access::is_authorized(request.headers(), &server.token) {
            return unauthorized();
        }
        admission.authenticated();
        server.connected();
        match segment {
            MCP => server.http.handle(request).await,
            _ => refuse(StatusCode::NOT_FOUND, "no such endpoint"),
        }
    }
}

/// Returns the response to a request of a web page, or of a program on another machine.
pub(crate) fn not_local() -> Response<Body> {
    refuse(StatusCode::FORBIDDEN, "only programs on this machine may connect")
}

/// Returns the response to a request without the right token.
pub(crate) fn unauthorized() -> Response<Body> {
    let mut response = refuse(StatusCode::UNAUTHORIZED, "session token is missing or wrong");
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Returns the response to a request that is not served.
pub(crate) fn refuse(status: StatusCode, why: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests;
