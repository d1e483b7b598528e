//! The listener on loopback. It routes requests to the MCP server of a session, or to the stream of a bridge.
//!
//! | file | owns |
//! |---|---|
//! | `access` | access control |
//! | `backpressure` | back-pressure for agents that don't read the output of a bridge |
//! | `in_flight` | the limit for a bridge's requests in flight |
//! | `sessions` | the MCP sessions of one endpoint, which are put aside while they are idle |
//! | `unauthenticated` | connections that have not sent a token yet |

mod access;
mod backpressure;
mod in_flight;
mod sessions;
mod unauthenticated;

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
    header::{CONNECTION, HeaderValue, UPGRADE, WWW_AUTHENTICATE},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::{
    RoleServer,
    transport::{
        Transport,
        async_rw::AsyncRwTransport,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
};
use tokio_util::sync::CancellationToken;

use self::{
    in_flight::Limited,
    sessions::{MAX_MCP_SESSIONS, Sessions},
    unauthenticated::{Admission, Unauthenticated},
};
use super::{Server, Servers, bridge, handler::Handler};

/// The last segment of the path of the MCP endpoint.
pub(super) const MCP: &str = "mcp";

/// The timeout for reading the headers of a request, which includes the idle time between requests. It is longer than
/// the keep-alive times of known clients.
const HEADER_TIMEOUT: Duration = Duration::from_secs(150);

type Body = BoxBody<Bytes, Infallible>;

/// The header with the id of an MCP session. In the response to `initialize`, it starts a session.
const SESSION_ID: &str = "Mcp-Session-Id";

/// MCP over HTTP for one session.
pub(super) struct Service {
    http: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Sessions,
}

impl Service {
    pub(super) fn new(handler: Handler, end: CancellationToken) -> Self {
        // Use sessions for clients with older revisions. Otherwise, GET requests for the event stream are refused,
        // which makes some agents fail.
        let sessions = Sessions::new(handler.clone());
        let mut config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(true)
            .with_sse_retry(None)
            .enforce_origin_validation()
            .with_cancellation_token(end);
        config.session_store = Some(sessions.store());
        let http = StreamableHttpService::new(move || Ok(handler.clone()), sessions.manager(), config);
        Self { http, sessions }
    }

    /// Answers a request that was authenticated.
    async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: hyper::body::Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let may_begin = !request.headers().contains_key(SESSION_ID);
        let open = self.sessions.begin().await;
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
        // The body owns `open`, so that the sessions are not put aside while the client reads it.
        response.map(|body| {
            let body = body.map_frame(move |frame| {
                let _open = &open;
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
    let end = servers.end();
    let servers = servers.downgrade();
    let unauthenticated = Unauthenticated::default();
    runtime.spawn(async move {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = end.cancelled() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    // Use this to send small answers immediately. If it fails, answers are just slower.
                    let _ = stream.set_nodelay(true);
                    let admission = tokio::select! {
                        admission = unauthenticated.admit() => admission,
                        () = end.cancelled() => return,
                    };
                    let Some(servers) = servers.upgrade() else { return };
                    tokio::spawn(serve(stream, admission, Servers(servers)));
                }
                Err(error) => {
                    // We get here if there are no file descriptors left, so wait for other connections to be closed.
                    tracing::warn!(%error, "cannot accept MCP connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    });
    Ok(address)
}

/// Serves one connection until it closes, or until its admission expires.
async fn serve<S>(stream: S, admission: Admission, servers: Servers)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let admission = Arc::new(admission);
    let shared = Arc::clone(&admission);
    let service = service_fn(move |request| {
        let servers = servers.clone();
        let admission = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(route(request, &admission, &servers).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "MCP connection failed");
        },
        () = admission.expires() => tracing::debug!("closed connection: no token received in time"),
    }
}

async fn route(request: Request<Incoming>, admission: &Admission, servers: &Servers) -> Response<Body> {
    if !access::is_local(request.headers()) {
        return refuse(StatusCode::FORBIDDEN, "only programs on this machine may connect");
    }
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let Some((session, segment)) = path.split_once('/') else {
        return refuse(StatusCode::NOT_FOUND, "no such session");
    };
    let Some(server) = servers.by_path(session) else {
        return refuse(StatusCode::NOT_FOUND, "no such session");
    };
    if !access::is_authorized(request.headers(), &server.token) {
        let mut response = refuse(StatusCode::UNAUTHORIZED, "session token is missing or wrong");
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    admission.authenticated();
    server.connected();
    match segment {
        MCP => server.http.handle(request).await,
        bridge::SEGMENT => upgrade(request, server),
        _ => refuse(StatusCode::NOT_FOUND, "no such endpoint"),
    }
}

/// Upgrades the connection of a bridge to a stream of MCP messages.
fn upgrade(request: Request<Incoming>, server: Arc<Server>) -> Response<Body> {
    let wanted = request.headers().get(UPGRADE).is_some_and(|value| value == bridge::PROTOCOL);
    if !wanted {
        return refuse(StatusCode::UPGRADE_REQUIRED, "this endpoint is only for the stdio bridge");
    }
    tokio::spawn(async move {
        let stream = match hyper::upgrade::on(request).await {
            Ok(stream) => TokioIo::new(stream),
            Err(error) => return tracing::debug!(%error, "bridge upgrade failed"),
        };
        let served = rmcp::service::serve_server_with_ct(
            server.handler.clone(),
            transport(stream),
            server.end.child_token(),
        );
        match served.await {
            // Wait for the connection to be closed, and ignore the result.
            Ok(running) => {
                let _ = running.waiting().await;
            }
            Err(error) => tracing::debug!(%error, "bridge handshake failed"),
        }
    });
    let mut response = refuse(StatusCode::SWITCHING_PROTOCOLS, "");
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(bridge::PROTOCOL));
    response
}

/// Returns the MCP transport over a bridge's stream, with back-pressure and a limit for requests in flight.
fn transport<S>(stream: S) -> impl Transport<RoleServer> + 'static
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = backpressure::split(stream);
    Limited::new(AsyncRwTransport::new_server(reader, writer))
}

fn refuse(status: StatusCode, why: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests;
