//! The stdio transport: our own binary as a process that an agent starts as an MCP server. It copies bytes between
//! its stdin and stdout and the proxy. There is no state, and messages are not parsed.
//!
//! The bridge connects to the listener of the proxy and asks for a protocol upgrade, so that access control is in one
//! place. The address and the token are passed in environment variables, because any user can read command-line
//! arguments.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "mcp-bridge";

/// The last segment of the path of the bridge's endpoint.
pub(super) const SEGMENT: &str = "bridge";
/// The name of the protocol that the bridge upgrades to: newline-delimited MCP.
pub(super) const PROTOCOL: &str = "mcp-stdio";

const ADDRESS: &str = "ACP_SKILLS_BRIDGE_ADDRESS";
const SESSION: &str = "ACP_SKILLS_BRIDGE_SESSION";
const TOKEN: &str = "ACP_SKILLS_BRIDGE_TOKEN";

/// The maximum size of the head of the response.
const MAX_HEAD_BYTES: u64 = 16 * 1024;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An error of the stdio bridge.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// An environment variable is missing or invalid, so the bridge was not started from the proxy's entry in
    /// `mcpServers`.
    #[error(
        "{variable} is not set: `{SUBCOMMAND}` should only be started by agents, using the environment from the proxy"
    )]
    Environment {
        /// The name of the variable.
        variable: &'static str,
        /// The problem with the variable.
        source: env::VarError,
    },
    /// The address in the environment is invalid.
    #[error("{ADDRESS} is not a valid address")]
    Address(#[source] std::net::AddrParseError),
    /// The connection to the proxy failed.
    #[error("cannot connect to proxy")]
    Gone(#[source] io::Error),
    /// The proxy did not answer in time.
    #[error("proxy did not respond in time")]
    NoAnswer(#[source] io::Error),
    /// The operating system refused to start a thread.
    #[error("cannot start bridge thread")]
    NoThread(#[source] io::Error),
    /// The proxy refused the connection, because the session has ended or the token is wrong.
    #[error("proxy refused the connection: {0}")]
    Refused(String),
}

/// Returns the environment variables of a bridge.
pub(super) fn environment(address: SocketAddr, session: &str, token: &str) -> Vec<(String, String)> {
    vec![
        (ADDRESS.to_owned(), address.to_string()),
        (SESSION.to_owned(), session.to_owned()),
        (TOKEN.to_owned(), token.to_owned()),
    ]
}

/// Copies bytes between stdin, stdout and the proxy until one side closes.
///
/// # Errors
/// Returns an error if the environment is not that of a bridge, or if the proxy cannot be reached or refuses the
/// connection.
pub fn run() -> Result<(), BridgeError> {
    let variable =
        |variable| env::var(variable).map_err(|source| BridgeError::Environment { variable, source });
    let address: SocketAddr = variable(ADDRESS)?.parse().map_err(BridgeError::Address)?;
    let session = variable(SESSION)?;
    let token = variable(TOKEN)?;
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map_err(BridgeError::Gone)?;
    stream.set_nodelay(true).map_err(BridgeError::Gone)?;
    let mut reader = BufReader::new(stream.try_clone().map_err(BridgeError::Gone)?);
    let answer = upgrade(&stream, &mut reader, address, &session, &token).map_err(BridgeError::NoAnswer)?;
    if !answer.starts_with("HTTP/1.1 101") {
        return Err(BridgeError::Refused(answer.trim().to_owned()));
    }

    let writer = stream.try_clone().map_err(BridgeError::Gone)?;
    let copies = move || {
        // If either side is closed, this ends, and then so does the other direction.
        let _ = copy(io::stdin().lock(), &writer);
        let _ = writer.shutdown(Shutdown::Write);
    };
    thread::Builder::new().spawn(copies).map_err(BridgeError::NoThread)?;
    // This fails if the agent stops reading, which it's allowed to do.
    let _ = copy(reader, io::stdout().lock());
    Ok(())
}

/// Requests the upgrade to a stream of MCP messages. Returns the first line of the answer. The reader is left at the
/// start of the stream.
fn upgrade(
    mut stream: &TcpStream,
    reader: &mut BufReader<TcpStream>,
    address: SocketAddr,
    session: &str,
    token: &str,
) -> io::Result<String> {
    stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
    write!(
        stream,
        "GET /{session}/{SEGMENT} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Connection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n"
    )?;
    // Another program may listen on this port by now.
    let mut head = reader.take(MAX_HEAD_BYTES);
    let mut status = String::new();
    let mut line = String::new();
    head.read_line(&mut status)?;
    loop {
        line.clear();
        if head.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.trim().is_empty() {
            break;
        }
    }
    stream.set_read_timeout(None)?;
    Ok(status)
}

/// Copies bytes like [`io::copy`], but flushes after each read.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&buffer[..read])?;
        to.flush()?;
    }
}
