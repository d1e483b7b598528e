//! The bridge: our own binary as a process that an agent starts as an MCP server over stdio. It copies bytes between its stdin and
//! stdout and the proxy. There is no state, and messages are not parsed.
//!
//! The bridge connects to the proxy's socket. The address and the token are passed in environment variables, because any user can
//! read command-line arguments.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    thread,
    time::Duration,
};

use super::{local_socket, stdio};

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "mcp-bridge";

const ADDRESS: &str = "ACP_SKILLS_BRIDGE_ADDRESS";
const SESSION: &str = "ACP_SKILLS_BRIDGE_SESSION";
const TOKEN: &str = "ACP_SKILLS_BRIDGE_TOKEN";

/// The maximum size of the proxy's answer.
const MAX_ANSWER_BYTES: u64 = 16 * 1024;

/// The timeout for connecting, and for the proxy's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

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
pub(super) fn environment(address: &str, session: &str, token: &str) -> Vec<(String, String)> {
    vec![
        (ADDRESS.to_owned(), address.to_owned()),
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
    let address = variable(ADDRESS)?;
    let session = variable(SESSION)?;
    let token = variable(TOKEN)?;
    let (reader, mut writer) = local_socket::connect(&address, TIMEOUT).map_err(BridgeError::Gone)?;
    let mut reader = BufReader::new(reader);
    let answer = authenticate(&mut reader, &mut writer, &session, &token).map_err(BridgeError::NoAnswer)?;
    if answer != stdio::WELCOME {
        return Err(BridgeError::Refused(answer));
    }
    let copies = move || {
        // If either side is closed, this ends, and then so does the other direction.
        let _ = copy(io::stdin().lock(), &mut writer);
        writer.finish();
    };
    thread::Builder::new().spawn(copies).map_err(BridgeError::NoThread)?;
    // This fails if the agent stops reading, which it's allowed to do.
    let _ = copy(reader, io::stdout().lock());
    Ok(())
}

/// Sends the session and the token. Returns the proxy's answer. The reader is left at the start of the stream.
fn authenticate(
    reader: &mut BufReader<local_socket::Reader>,
    writer: &mut local_socket::Writer,
    session: &str,
    token: &str,
) -> io::Result<String> {
    reader.get_mut().set_read_timeout(Some(TIMEOUT))?;
    writer.write_all(format!("{session} {token}\n").as_bytes())?;
    writer.flush()?;
    let mut answer = String::new();
    // Another program may listen at this address by now.
    if reader.by_ref().take(MAX_ANSWER_BYTES).read_line(&mut answer)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    reader.get_mut().set_read_timeout(None)?;
    answer.truncate(answer.trim_end().len());
    Ok(answer)
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
