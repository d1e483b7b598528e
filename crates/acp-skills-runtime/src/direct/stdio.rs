//! [`Connection`]: the connection to a client over stdin and stdout.
//!
//! Two threads copy bytes between the blocking streams and a pipe in memory, because a pipe, a file or a terminal can only be read
//! in this way on all systems.

use std::{
    io::{self, Read, Write},
    thread,
};

use rmcp::service::ServerInitializeError;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf},
    runtime::Handle,
    sync::oneshot,
};
use tokio_util::sync::CancellationToken;

use super::{connection::DirectConnection, sessions::Sessions};
use crate::{
    mcp::{
        self,
        responder::{self, Responder},
    },
    relay::Ends,
};

/// The size of the pipe in memory, in bytes. A client that doesn't read its input fills it, and is then not read any more.
const PIPE_BYTES: usize = 64 * 1024;
/// The size of one read, in bytes.
const CHUNK_BYTES: usize = 16 * 1024;

/// The connection to a client.
pub(super) struct Connection {
    stream: DuplexStream,
    /// Resolves when the client disconnects, even if some of its messages were not read yet. `None` if the platform can't tell.
    pub(super) gone: Option<oneshot::Receiver<()>>,
    /// Resolves when all answers were written, or when a write has failed.
    written: oneshot::Receiver<()>,
}

impl Connection {
    /// Starts the threads of a connection. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Returns an error if the operating system refuses a thread.
    pub(super) fn start(client: Ends) -> io::Result<Self> {
        let Ends { reader, writer, hangup, .. } = client;
        let (stream, theirs) = tokio::io::duplex(PIPE_BYTES);
        let (from_server, to_server) = tokio::io::split(theirs);
        let runtime = Handle::current();
        let reads = runtime.clone();
        start("from-client", move || read(&reads, reader, to_server))?;
        let (done, written) = oneshot::channel();
        start("to-client", move || {
            write(&runtime, from_server, writer);
            // This fails if nothing waits for it.
            let _ = done.send(());
        })?;
        let gone = match hangup {
            Some(hangup) => {
                let (gone, receiver) = oneshot::channel();
                start("client-hangup", move || {
                    hangup();
                    let _ = gone.send(());
                })?;
                Some(receiver)
            }
            None => None,
        };
        Ok(Self { stream, gone, written })
    }

    /// Serves the client until it disconnects, and all answers were written.
    pub(super) async fn serve(self, sessions: Sessions) {
        let Self { stream, mut written, .. } = self;
        let served = async {
            let responder = Responder::Client(Box::new(DirectConnection::new(sessions)));
            let transport = mcp::stdio::transport(stream);
            match responder::serve(responder, transport, CancellationToken::new()).await {
                Ok(()) => {}
                Err(error) if matches!(*error, ServerInitializeError::ConnectionClosed(_)) => {
                    tracing::debug!("MCP client disconnected before its first request");
                }
                // Don't log the error, because it contains the message.
                Err(_) => tracing::warn!("MCP client did not begin with `initialize`"),
            }
        };
        tokio::select! {
            () = served => drop(written.await),
            _ = &mut written => tracing::debug!("MCP client does not accept answers any more"),
        }
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Copies the client's output to the server.
fn read(runtime: &Handle, mut from: Box<dyn Read + Send>, mut to: WriteHalf<DuplexStream>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                tracing::debug!(%error, "cannot read from MCP client");
                break;
            }
        };
        if runtime.block_on(to.write_all(&buffer[..count])).is_err() {
            return;
        }
    }
    // This fails if the server has ended already.
    let _ = runtime.block_on(to.shutdown());
}

/// Copies the output of the server to the client.
fn write(runtime: &Handle, mut from: ReadHalf<DuplexStream>, mut to: Box<dyn Write + Send>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    while let Ok(count @ 1..) = runtime.block_on(from.read(&mut buffer)) {
        if let Err(error) = to.write_all(&buffer[..count]).and_then(|()| to.flush()) {
            return tracing::debug!(%error, "cannot write to MCP client");
        }
    }
}
