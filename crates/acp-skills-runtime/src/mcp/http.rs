//! MCP over HTTP: the listener on loopback or at an address that the user has chosen, which routes requests to the MCP server of a session.
//!
//! | file | owns |
//! |---|---|
//! | `access` | access control |
//! | `memory` | the memory of all requests together |
//! | `sessions` | the MCP sessions of one endpoint, which are put aside while they are idle |

pub(crate) mod access;
mod memory;
mod sessions;

use std::{
    convert::Infallible,
    error::Error,
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use acp_skills_intercept::{Listen, MAX_MCP_MESSAGE};
use bytes::{Buf, BufMut, Bytes};
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
use skills_core::json::{MAX_VALUES, has_more_values_than};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use self::{
    memory::Share,
    sessions::{MAX_MCP_SESSIONS, Sessions},
};
use super::{
    ServerError, Servers,
    accept::{self, Accept},
    connection_end::ConnectionEnd,
    handler::Handler,
    responder::{Boxed, Responder},
    unauthenticated::Admission,
};

/// The memory for a part of a body is reserved in steps of this number of bytes, because the parts can be small.
const BODY_STEP: usize = 16 * 1024;
/// The last segment of the path of the MCP endpoint.
pub(crate) const MCP: &str = "mcp";

/// The timeout for reading the headers of a request, which includes the idle time between requests. It is longer than
/// the keep-alive times of known clients.
const HEADER_TIMEOUT: Duration = Duration::from_secs(150);

/// The timeout for reading the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// The header with the id of an MCP session. In the response to `initialize`, it starts a session.
const SESSION_ID: &str = "Mcp-Session-Id";

/// MCP over HTTP for one endpoint.
pub(crate) struct Service {
    http: StreamableHttpService<Responder, LocalSessionManager>,
    sessions: Sessions,
}

impl Service {
    /// Creates the service of one session.
    pub(super) fn of(handler: &Handler, end: CancellationToken) -> Self {
        let listeners = Arc::clone(&handler.listeners);
        let handler = handler.clone();
        let responder = move || Responder::Session(handler.clone());
        Self::new(responder, move || listeners.remove_disconnected(), end)
    }

    /// Creates the service. `handler` returns the handler of a new MCP session, or of a request without one. `put_aside` is called
    /// after idle sessions were put aside.
    pub(crate) fn new(
        handler: impl Fn() -> Responder + Send + Sync + 'static,
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
    pub(crate) async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: hyper::body::Body,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (mut request, share) = match read(request).await {
            Ok(read) => read,
            Err(refusal) => return refusal,
        };
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
                let _open = (&open, &connection, &share);
                frame
            });
            body.boxed()
        })
    }
}

/// Reads the body of a request. Also returns its share of the memory for requests. Returns the response to one that is not served, because it
/// is incomplete, too long, or would need too much memory.
async fn read<B>(request: Request<B>) -> Result<(Request<Full<Bytes>>, Share), Response<Body>>
where
    B: hyper::body::Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let busy = || refuse(StatusCode::SERVICE_UNAVAILABLE, "too many requests at the same time");
    let incomplete = || refuse(StatusCode::BAD_REQUEST, "message is incomplete");
    let (head, body) = request.into_parts();
    let mut body = pin!(body);
    let mut share = Share::of(0).await.ok_or_else(busy)?;
    let (mut bytes, mut counted) = (Vec::new(), 0);
    let deadline = Instant::now() + BODY_TIMEOUT;
    // Only what has arrived counts, because a client can announce more than it sends.
    while let Some(frame) = timeout_at(deadline, body.frame()).await.map_err(|_| incomplete())? {
        let Ok(data) = frame.map_err(|_| incomplete())?.into_data() else { continue };
        if bytes.len() + data.remaining() > MAX_MCP_MESSAGE {
            return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "message is too long"));
        }
        let missing = (bytes.len() + data.remaining()).saturating_sub(counted);
        if missing > 0 {
            let step = missing.max(BODY_STEP);
            share.add(u64::try_from(step).unwrap_or(u64::MAX)).await.ok_or_else(busy)?;
            counted += step;
        }
        bytes.put(data);
    }
    let bytes = Bytes::from(bytes);
    if has_more_values_than(&bytes, MAX_VALUES) {
        return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "message contains too many values"));
    }
    share.add(memory::of_values(&bytes)).await.ok_or_else(busy)?;
    Ok((Request::from_parts(head, Full::new(bytes)), share))
}

/// Returns the start of the URLs of the listener, which is in `open` once it is open. Opens the listener if necessary.
///
/// # Errors
/// Returns an error if the address cannot be used.
pub(super) fn base(
    servers: &Servers,
    open: &mut Option<Arc<str>>,
    chosen: Option<&Listen>,
) -> Result<Arc<str>, ServerError> {
    if let Some(base) = open {
        return Ok(Arc::clone(base));
    }
    let wanted = chosen.map_or((Ipv4Addr::LOCALHOST, 0).into(), |chosen| chosen.address);
    let address =
        listen(servers, &servers.0.runtime, wanted).map_err(|error| ServerError::Listen(wanted, error))?;
    tracing::debug!(%address, "listening for MCP connections");
    let base: Arc<str> = match chosen.and_then(|chosen| chosen.url.as_deref()) {
        Some(url) if access::has_port(url) => url.into(),
        Some(url) => format!("{url}:{}", address.port()).into(),
        None => format!("http://{address}").into(),
    };
    *open = Some(Arc::clone(&base));
    Ok(base)
}

/// Opens the listener on `address`. If its port is 0, the operating system chooses one.
fn listen(servers: &Servers, runtime: &Handle, address: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let _inside = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let weak = servers.downgrade();
    let upgrade = move || Some(Arc::new(Servers(weak.upgrade()?)) as Router);
    runtime.spawn(accept::run(listener, servers.end(), Box::new(upgrade), serve));
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

/// Answers the requests of HTTP connections. Its type is erased, so that hyper's code exists once.
pub(crate) type Router = Arc<dyn Route>;

/// Answers requests.
pub(crate) trait Route: Send + Sync {
    /// Answers a request. A connection whose request is authenticated may stay open.
    fn route<'a>(&'a self, request: Request<Incoming>, admission: &'a Admission)
    -> Boxed<'a, Response<Body>>;
}

/// Serves one connection until it closes, or until its admission expires.
pub(crate) async fn serve<S>(stream: S, admission: Admission, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let admission = Arc::new(admission);
    let shared = Arc::clone(&admission);
    let service = service_fn(move |request| {
        let router = Arc::clone(&router);
        let admission = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(router.route(request, &admission).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        biased;
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "MCP connection failed");
        },
        () = admission.expires() => tracing::debug!("closed connection: no token received in time"),
    }
}

impl Route for Servers {
    fn route<'a>(
        &'a self,
        request: Request<Incoming>,
        admission: &'a Admission,
    ) -> Boxed<'a, Response<Body>> {
        Box::pin(self.answer(request, admission))
    }
}

impl Servers {
    async fn answer(&self, mut request: Request<Incoming>, admission: &Admission) -> Response<Body> {
        let base = self.state().http_base.clone();
        if let Some(base) = base {
            access::accept_host_of(&base, request.headers_mut());
        }
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
