//! Unix sockets.

use std::{
    io,
    net::Shutdown,
    os::unix::net::{SocketAddr, UnixListener, UnixStream},
    path::Path,
    time::Duration,
};

use rustix::process::geteuid;

use super::directory::{self, Directory};

pub(in crate::mcp) use super::directory::remove_leftovers;

/// A connection of the listener.
pub(in crate::mcp) type Stream = tokio::net::UnixStream;

/// A listener for connections of this user.
pub(in crate::mcp) struct Listener(tokio::net::UnixListener);

/// The path of a socket. Dropping it removes the socket.
pub(in crate::mcp) struct Address {
    path: String,
    _directory: Directory,
}

impl Address {
    pub(in crate::mcp) fn as_str(&self) -> &str {
        &self.path
    }

    /// Returns false if something has removed the socket, for example a program that cleans the temporary directory.
    pub(in crate::mcp) fn exists(&self) -> bool {
        Path::new(&self.path).symlink_metadata().is_ok()
    }
}

/// Creates a socket in a new private directory.
///
/// # Errors
/// Returns the error for the last of the possible places.
pub(in crate::mcp) fn bind() -> io::Result<(Listener, Address)> {
    directory::create_in_any(|directory| {
        let path = directory.socket();
        let Some(path) = path.to_str().map(str::to_owned) else {
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, "path is not valid Unicode"));
        };
        // The maximum length of a path is about 100 bytes.
        let listener = UnixListener::bind_addr(&SocketAddr::from_pathname(&path)?)?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        Ok((Listener(listener), Address { path, _directory: directory }))
    })
}

impl Listener {
    /// Waits for the next connection of this user or of root. All others are closed, although the permissions of the directory
    /// already exclude them.
    pub(in crate::mcp) async fn accept(&mut self) -> io::Result<Stream> {
        loop {
            let (stream, _) = self.0.accept().await?;
            let peer = stream.peer_cred()?.uid();
            if peer == geteuid().as_raw() || peer == 0 {
                return Ok(stream);
            }
            tracing::warn!(
                "closed connection to the skills server: it came from another user, with id {peer}"
            );
        }
    }
}

/// The half of a connection for reading.
pub(in crate::mcp) type Reader = UnixStream;

/// The half of a connection for writing.
pub(in crate::mcp) struct Writer(UnixStream);

/// Connects to a socket. A Unix socket needs no timeout for this.
///
/// # Errors
/// Returns the system's error, for example if no process listens.
pub(in crate::mcp) fn connect(address: &str, _: Duration) -> io::Result<(Reader, Writer)> {
    let stream = UnixStream::connect(address)?;
    Ok((stream.try_clone()?, Writer(stream)))
}

impl Writer {
    /// Tells the other side that nothing more is written.
    pub(in crate::mcp) fn finish(self) {
        // This fails if the other side has closed the connection.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
