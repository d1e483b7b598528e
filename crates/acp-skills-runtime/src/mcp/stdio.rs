//! MCP over stdio: serves the bridges that agents start, over a private socket.
//!
//! | file | owns |
//! |---|---|
//! | `backpressure` | back-pressure for agents that don't read the output of a bridge |
//! | `in_flight` | the limit for a bridge's requests in flight |
//!
//! A connection begins with one line from the bridge: the session and its token, each [`ID_LENGTH`] characters long, with a space
//! between them. The answer is one line as well: [`WELCOME`] or the reason for the refusal. After that, both sides send MCP messages.

mod backpressure;
mod in_flight;

use std::{io, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::transport::async_rw::AsyncRwTransport;
use subtle::ConstantTimeEq;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    runtime::Handle,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::in_flight::Limited;
use super::{
    Server, ServerError, Servers,
    accept::{self, Accept},
    local_socket::{self, Address, Listener},
    random::ID_LENGTH,
    responder::{self, AnyTransport, Responder},
    unauthenticated::Admission,
};

/// The answer to a bridge with the right token.
pub(super) const WELCOME: &str = "welcome";

/// The timeout for an answer to be written to a bridge that is refused.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The socket for bridges, which is opened when the first session needs it.
#[derive(Default)]
pub(super) struct Socket {
    /// Guards the state. No other lock is taken while it is held. It is held while the socket is opened or removed, which are a few
    /// system calls.
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Unopened,
    Open(Open),
    /// The proxy ends. The socket is not opened again.
    Closed,
}

/// An open socket. Dropping it ends the listener and removes the socket. Connections stay open.
struct Open {
    address: Address,
    _end: DropGuard,
}

impl Socket {
    /// Returns the address of the socket. Opens it if necessary, or if something has removed it.
    ///
    /// # Errors
    /// Returns [`ServerError::Socket`] if the socket cannot be created.
    pub(super) fn address(&self, servers: &Servers, runtime: &Handle) -> Result<String, ServerError> {
        let mut state = self.state.lock();
        match &*state {
            State::Open(open) if open.address.exists() => return Ok(open.address.as_str().to_owned()),
            State::Closed => return Err(ServerError::Socket(io::Error::other("proxy is ending"))),
            State::Open(_) | State::Unopened => {}
        }
        let open = listen(servers, runtime).map_err(ServerError::Socket)?;
        let address = open.address.as_str().to_owned();
        tracing::debug!(%address, "listening for bridges");
        *state = State::Open(open);
        Ok(address)
    }

    /// Removes the socket for good.
    pub(super) fn close(&self) {
        *self.state.lock() = State::Closed;
    }
}

fn listen(servers: &Servers, runtime: &Handle) -> io::Result<Open> {
    let _inside = runtime.enter();
    let (listener, address) = local_socket::bind()?;
    let end = CancellationToken::new();
    let ended = end.clone().cancelled_owned();
    let weak = servers.downgrade();
    let upgrade = move || Some(Servers(weak.upgrade()?));
    let accepts = accept::run(listener, servers.end(), Box::new(upgrade), serve);
    runtime.spawn(async move {
        tokio::select! {
            () = accepts => {}
            () = ended => {}
        }
    });
    // Nothing waits for this, and reading a large directory can take a while.
    runtime.spawn_blocking(local_socket::remove_leftovers);
    Ok(Open { address, _end: end.drop_guard() })
}

impl Accept for Listener {
    type Stream = local_socket::Stream;

    async fn accept(&mut self) -> io::Result<Self::Stream> {
        Listener::accept(self).await
    }
}

/// Serves one bridge until it closes the connection, or until its admission expires.
async fn serve<S>(mut stream: S, admission: Admission, servers: Servers)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let server = tokio::select! {
        biased;
        server = authenticate(&mut stream, servers) => server,
        () = admission.expires() => return tracing::debug!("closed bridge: no token received in time"),
    };
    let server = match server {
        Ok(Ok(server)) => server,
        Ok(Err(reason)) => {
            tracing::debug!("refused bridge: {reason}");
            // This fails if the bridge has ended.
            let _ = tokio::time::timeout(REFUSAL_TIMEOUT, answer(&mut stream, reason)).await;
            return;
        }
        Err(error) => return tracing::debug!(%error, "bridge handshake failed"),
    };
    admission.authenticated();
    drop(admission);
    server.connected();
    if let Err(error) = answer(&mut stream, WELCOME).await {
        return tracing::debug!(%error, "bridge handshake failed");
    }
    let responder = Responder::Session(server.handler.clone());
    if let Err(error) = responder::serve(responder, transport(stream), server.end.child_token()).await {
        tracing::debug!(%error, "bridge handshake failed");
    }
}

/// Reads the first line of a bridge. Returns the server of its session, or the reason to refuse the bridge.
async fn authenticate(
    stream: &mut (impl AsyncRead + Unpin),
    servers: Servers,
) -> io::Result<Result<Arc<Server>, &'static str>> {
    let mut line = [0; 2 * ID_LENGTH + 2];
    stream.read_exact(&mut line).await?;
    let (session, rest) = line.split_at(ID_LENGTH);
    let token = &rest[1..=ID_LENGTH];
    let Some(server) = str::from_utf8(session).ok().and_then(|session| servers.by_path(session)) else {
        return Ok(Err("no such session"));
    };
    if bool::from(token.ct_eq(server.token.as_bytes())) {
        return Ok(Ok(server));
    }
    Ok(Err("session token is wrong"))
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin), text: &str) -> io::Result<()> {
    stream.write_all(format!("{text}\n").as_bytes()).await?;
    stream.flush().await
}

/// Returns the MCP transport over a stream of lines, with back-pressure and a limit for requests in flight.
pub(crate) fn transport<S>(stream: S) -> AnyTransport
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = backpressure::split(Box::pin(stream));
    AnyTransport::new(Limited::new(AsyncRwTransport::new_server(reader, writer)))
}

#[cfg(test)]
mod tests;
