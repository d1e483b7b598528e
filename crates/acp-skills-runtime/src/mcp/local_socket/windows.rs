//! Named pipes.
//!
//! The default security descriptor of a named pipe grants full control to its creator, administrators and the system, and allows
//! others only to read. So other users can connect, but they can't write the token, and the connection is closed after a timeout.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf},
    net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions},
    runtime::{Builder, Handle},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The beginning of the names of all pipes.
const PREFIX: &str = r"\\.\pipe\acp-skills-";
/// The error code of Windows if all instances of a pipe are connected.
const ERROR_PIPE_BUSY: i32 = 231;
/// The interval at which a client tries again to connect to a pipe that is busy.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// The time without an answer after which a connection ends that nothing more is written to. A pipe cannot be closed for writing
/// only.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// A connection of the listener.
pub(in crate::mcp) type Stream = NamedPipeServer;

/// A listener for connections from this machine.
pub(in crate::mcp) struct Listener {
    name: String,
    /// The instance for the next client.
    next: NamedPipeServer,
}

/// The name of a pipe. The system removes the pipe with its last instance.
pub(in crate::mcp) struct Address(String);

impl Address {
    pub(in crate::mcp) fn as_str(&self) -> &str {
        &self.0
    }

    #[expect(clippy::unused_self, reason = "a pipe cannot be removed by another process")]
    pub(in crate::mcp) fn exists(&self) -> bool {
        true
    }
}

/// Creates a pipe with a random name.
///
/// # Errors
/// Returns the system's error, for example if another process has created a pipe with this name.
pub(in crate::mcp) fn bind() -> io::Result<(Listener, Address)> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    let name = format!("{PREFIX}{:032x}", u128::from_ne_bytes(bytes));
    let next = options().first_pipe_instance(true).create(&name)?;
    Ok((Listener { name: name.clone(), next }, Address(name)))
}

fn options() -> ServerOptions {
    let mut options = ServerOptions::new();
    options.reject_remote_clients(true);
    options
}

impl Listener {
    /// Waits for the next connection.
    pub(in crate::mcp) async fn accept(&mut self) -> io::Result<Stream> {
        if let Err(error) = self.next.connect().await {
            // The client has already disconnected, and then an instance can't be used again.
            self.next = options().create(&self.name)?;
            return Err(error);
        }
        let next = options().create(&self.name)?;
        Ok(std::mem::replace(&mut self.next, next))
    }
}

/// Does nothing, because the system removes the pipes of a process that was killed.
pub(in crate::mcp) fn remove_leftovers() {}

/// The half of a connection for reading.
pub(in crate::mcp) struct Reader {
    half: ReadHalf<NamedPipeClient>,
    runtime: Handle,
    read_timeout: Option<Duration>,
    /// Cancelled when nothing more is written.
    finished: CancellationToken,
}

/// The half of a connection for writing.
pub(in crate::mcp) struct Writer {
    half: WriteHalf<NamedPipeClient>,
    runtime: Handle,
    finished: CancellationToken,
}

/// Connects to a pipe. Waits for at most `time` if the pipe is busy.
///
/// # Errors
/// Returns the system's error, for example if no process listens.
pub(in crate::mcp) fn connect(address: &str, time: Duration) -> io::Result<(Reader, Writer)> {
    // Use overlapped I/O, because a blocking read would block writes to the same pipe.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("pipe".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    let _inside = handle.enter();
    let deadline = Instant::now() + time;
    let client = loop {
        match ClientOptions::new().open(address) {
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY) && Instant::now() < deadline => {
                thread::sleep(RETRY_INTERVAL);
            }
            client => break client?,
        }
    };
    let (reader, writer) = tokio::io::split(client);
    let finished = CancellationToken::new();
    let reader =
        Reader { half: reader, runtime: handle.clone(), read_timeout: None, finished: finished.clone() };
    Ok((reader, Writer { half: writer, runtime: handle.clone(), finished }))
}

impl Reader {
    /// Sets the timeout for reads. `None` means that a read waits forever.
    #[expect(clippy::unnecessary_wraps, reason = "this can fail on Unix")]
    pub(in crate::mcp) fn set_read_timeout(&mut self, time: Option<Duration>) -> io::Result<()> {
        self.read_timeout = time;
        Ok(())
    }
}

impl io::Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Self { half, runtime, read_timeout, finished } = self;
        runtime.block_on(async {
            let read = half.read(buffer);
            let read = async {
                match read_timeout {
                    Some(time) => {
                        timeout(*time, read).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
                    }
                    None => read.await,
                }
            };
            tokio::select! {
                read = read => read,
                () = async {
                    finished.cancelled().await;
                    tokio::time::sleep(LAST_ANSWERS).await;
                } => Ok(0),
            }
        })
    }
}

impl Writer {
    /// Makes reads of the other half end soon, because nothing more is written.
    pub(in crate::mcp) fn finish(self) {
        self.finished.cancel();
    }
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.runtime.block_on(self.half.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.runtime.block_on(self.half.flush())
    }
}
