//! The stdio transport: a process of our own binary that an agent starts as an MCP server, and that copies bytes
//! between its stdin and stdout and the proxy. It holds no state and knows no MCP.
//!
//! It connects to the listener of the proxy and asks for an upgrade, so that one place decides who may come in. Address and
//! token come in the environment: arguments can be read by everybody.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "mcp-bridge";

/// The last segment of the path of a bridge's endpoint.
pub(super) const SEGMENT: &str = "bridge";
/// The name of the protocol that a bridge upgrades to: newline-delimited MCP.
pub(super) const PROTOCOL: &str = "mcp-stdio";

const ADDRESS: &str = "ACP_SKILLS_BRIDGE_ADDRESS";
const SESSION: &str = "ACP_SKILLS_BRIDGE_SESSION";
const TOKEN: &str = "ACP_SKILLS_BRIDGE_TOKEN";

const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Why a bridge cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// A variable is missing: it was not the proxy's entry that started the bridge.
    #[error("{variable} is not set: `{SUBCOMMAND}` is started by agents, with what the proxy tells them")]
    Environment {
        /// Its name.
        variable: &'static str,
        /// What is wrong with it.
        source: env::VarError,
    },
    /// A variable holds no address.
    #[error("{ADDRESS} is no address")]
    Address(#[source] std::net::AddrParseError),
    /// Nobody listens at the address, or the connection broke.
    #[error("the proxy is gone")]
    Gone(#[source] io::Error),
    /// The proxy does not answer in time.
    #[error("the proxy does not answer")]
    NoAnswer(#[source] io::Error),
    /// The system has no more threads for us.
    #[error("the bridge cannot start a thread")]
    NoThread(#[source] io::Error),
    /// The session has ended, or the token is wrong.
    #[error("the proxy refuses: {0}")]
    Refused(String),
}

/// What a bridge needs to know.
pub(super) fn environment(address: SocketAddr, session: &str, token: &str) -> Vec<(String, String)> {
    vec![
        (ADDRESS.to_owned(), address.to_string()),
        (SESSION.to_owned(), session.to_owned()),
        (TOKEN.to_owned(), token.to_owned()),
    ]
}

/// Copies until one side ends.
///
/// # Errors
/// The environment is not a bridge's, or the proxy is gone.
pub fn run() -> Result<(), BridgeError> {
    let variable =
        |variable| env::var(variable).map_err(|source| BridgeError::Environment { variable, source });
    let address: SocketAddr = variable(ADDRESS)?.parse().map_err(BridgeError::Address)?;
    let (session, token) = (variable(SESSION)?, variable(TOKEN)?);
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIME).map_err(BridgeError::Gone)?;
    stream.set_nodelay(true).map_err(BridgeError::Gone)?;
    let mut reader = BufReader::new(stream.try_clone().map_err(BridgeError::Gone)?);
    let answer = upgrade(&stream, &mut reader, address, &session, &token).map_err(BridgeError::NoAnswer)?;
    if !answer.starts_with("HTTP/1.1 101") {
        return Err(BridgeError::Refused(answer.trim().to_owned()));
    }

    let writer = stream.try_clone().map_err(BridgeError::Gone)?;
    let copies = move || {
        // Either end may go first; the other direction ends with it.
        drop(copy(io::stdin().lock(), &writer));
        drop(writer.shutdown(Shutdown::Write));
    };
    thread::Builder::new().spawn(copies).map_err(BridgeError::NoThread)?;
    // The agent may stop listening at any time.
    drop(copy(reader, io::stdout().lock()));
    Ok(())
}

/// Asks for the stream of MCP messages. Returns the first line of the answer, and leaves the reader behind its head.
fn upgrade(
    mut stream: &TcpStream,
    reader: &mut BufReader<TcpStream>,
    address: SocketAddr,
    session: &str,
    token: &str,
) -> io::Result<String> {
    stream.set_read_timeout(Some(CONNECT_TIME))?;
    write!(
        stream,
        "GET /{session}/{SEGMENT} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Connection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n"
    )?;
    let (mut status, mut line) = (String::new(), String::new());
    reader.read_line(&mut status)?;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.trim().is_empty() {
            break;
        }
    }
    stream.set_read_timeout(None)?;
    Ok(status)
}

/// Like [`io::copy`], but what was read is flushed at once.
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
