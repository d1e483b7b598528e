//! Sockets between processes of one user on one machine: a Unix socket in a private directory, or a named pipe on Windows. No
//! port is opened.
//!
//! | file | owns |
//! |---|---|
//! | `unix` | Unix sockets: listening, connecting and the check of the peer |
//! | `directory` | the private directories of Unix sockets, and removing those of processes that were killed |
//! | `windows` | named pipes |
//!
//! Both have the same interface:
//!
//! - [`bind`] creates a listener and its [`Address`]. Must be called within a tokio runtime. Dropping the address removes the socket.
//! - [`connect`] connects to an address. The two halves of the connection can be used by two threads, and block.
//! - [`remove_leftovers`] removes the sockets of processes that were killed.

#[cfg(unix)]
mod directory;
#[cfg_attr(unix, path = "local_socket/unix.rs")]
#[cfg_attr(windows, path = "local_socket/windows.rs")]
mod system;

pub(super) use self::system::{Address, Listener, Reader, Stream, Writer, bind, connect, remove_leftovers};
