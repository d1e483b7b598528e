//! The connections over HTTP, on an address of the loopback interface that the user chooses. Each request needs the token.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, TcpListener},
    sync::Arc,
};

use hyper::{Request, Response, StatusCode, body::Incoming};
use tokio_util::sync::CancellationToken;

use super::{connection::DirectConnection, sessions::Sessions};
use crate::mcp::{
    accept,
    http::{Body, MCP, Route, Router, Service, access, not_local, refuse, serve, unauthorized},
    random_hex,
    responder::{Boxed, Responder},
    unauthenticated::Admission,
};

/// The minimum length of a token that the user chooses, in characters.
const MIN_TOKEN: usize = 16;

/// The token that clients send. It is not shown by [`fmt::Debug`].
#[derive(Clone)]
pub struct Token(Arc<str>);

impl Token {
    /// Creates a random token.
    ///
    /// # Errors
    /// Returns an error if the system has no random numbers.
    pub fn random() -> io::Result<Self> {
        random_hex().map(|text| Self(text.into())).map_err(|error| io::Error::other(error.to_string()))
    }

    /// Returns the token with this text. `None` if it is shorter than 16 characters, or if a header can't contain it.
    pub fn new(text: &str) -> Option<Self> {
        let is_valid = text.len() >= MIN_TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then(|| Self(text.into()))
    }

    /// Returns the text for the `Authorization` header of clients.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token")
    }
}

/// A listener for clients.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    token: Token,
}

impl Listener {
    /// Opens a listener. The port 0 selects a free one.
    ///
    /// # Errors
    /// Returns an error if the address is not a loopback address, or if it can't be used.
    pub fn open(address: SocketAddr, token: Token) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let kind = io::ErrorKind::InvalidInput;
            return Err(io::Error::new(kind, "not an address of the loopback interface"));
        }
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, token })
    }

    /// Returns the URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}/{MCP}", self.address)
    }

    /// Serves clients. Never returns, unless the operating system refuses the listener.
    pub(super) async fn serve(self, sessions: Sessions) {
        let listener = match tokio::net::TcpListener::from_std(self.socket) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!("cannot listen for MCP clients: {error}"),
        };
        let end = CancellationToken::new();
        let new_client = move || Responder::Client(Box::new(DirectConnection::over_http(sessions.clone())));
        // The sessions that are put aside are closed, because their handlers are dropped.
        let service = Service::new(new_client, || {}, end.child_token());
        let address = self.address.ip();
        let endpoint: Router = Arc::new(Endpoint { service, address, token: self.token });
        accept::run(listener, end, Box::new(move || Some(Arc::clone(&endpoint))), serve).await;
    }
}

/// The MCP endpoint of all clients.
struct Endpoint {
    service: Service,
    /// The address of the listener.
    address: IpAddr,
    token: Token,
}

impl Route for Endpoint {
    fn route<'a>(
        &'a self,
        request: Request<Incoming>,
        admission: &'a Admission,
    ) -> Boxed<'a, Response<Body>> {
        Box::pin(self.answer(request, admission))
    }
}

impl Endpoint {
    async fn answer(&self, mut request: Request<Incoming>, admission: &Admission) -> Response<Body> {
        access::ignore_own_origin(request.headers_mut());
        if !access::is_local(request.headers(), self.address) {
            return not_local();
        }
        if request.uri().path().trim_matches('/') != MCP {
            return refuse(StatusCode::NOT_FOUND, "no such endpoint");
        }
        if !access::is_authorized(request.headers(), self.token.text()) {
            return unauthorized();
        }
        admission.authenticated();
        self.service.handle(request).await
    }
}
