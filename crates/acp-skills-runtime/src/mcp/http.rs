//! MCP over HTTP: the listener on loopback, which routes requests to the MCP server of a session.
//!
//! | file | owns |
//! |---|---|
//! | `access` | access control |
//! | `sessions` | the MCP sessions of one endpoint, which are put aside while they are idle |

mod access;
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
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
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
    handler::Handler,
    unauthenticated::Admission,
};

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
    runtime.spawn(accept::run(listener, servers, serve));
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
        .serve_connection(TokioIo::new(stream), service);
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
        _ => refuse(StatusCode::NOT_FOUND, "no such endpoint"),
    }
}

fn refuse(status: StatusCode, why: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests;
