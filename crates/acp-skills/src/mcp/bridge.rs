//! The stdio transport: a process of our own binary that an agent starts as an MCP server, and that copies bytes
//! between its stdin and stdout and the proxy. It holds no state and knows no MCP.
//!
//! It connects to the listener of the proxy and asks for an upgrade, so there is one door with one lock. Address and
//! token come in the environment: arguments can be read by everybody.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Context, bail, ensure};

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "mcp-bridge";

/// The last part of the path of a bridge's endpoint.
pub(super) const PLACE: &str = "bridge";
/// The name of the protocol that a bridge upgrades to: newline-delimited MCP.
pub(super) const PROTOCOL: &str = "mcp-stdio";

const ADDRESS: &str = "ACP_SKILLS_BRIDGE_ADDRESS";
const SESSION: &str = "ACP_SKILLS_BRIDGE_SESSION";
const TOKEN: &str = "ACP_SKILLS_BRIDGE_TOKEN";

const CONNECT_TIME: Duration = Duration::from_secs(10);

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
pub fn run() -> anyhow::Result<()> {
    let variable = |name: &str| {
        env::var(name).with_context(|| {
            format!("{name} is not set: `{SUBCOMMAND}` is started by agents, with what the proxy tells them")
        })
    };
    let address: SocketAddr =
        variable(ADDRESS)?.parse().with_context(|| format!("{ADDRESS} is no address"))?;
    let (session, token) = (variable(SESSION)?, variable(TOKEN)?);
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIME).context("the proxy is gone")?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    upgrade(&stream, &mut reader, address, &session, &token)?;

    let writer = stream.try_clone()?;
    thread::spawn(move || {
        // Either end may go first; the other direction ends with it.
        drop(copy(io::stdin().lock(), &writer));
        drop(writer.shutdown(Shutdown::Write));
    });
    // The agent may stop listening at any time.
    drop(copy(reader, io::stdout().lock()));
    Ok(())
}

fn upgrade(
    mut stream: &TcpStream,
    reader: &mut BufReader<TcpStream>,
    address: SocketAddr,
    session: &str,
    token: &str,
) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(CONNECT_TIME))?;
    write!(
        stream,
        "GET /{session}/{PLACE} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Connection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n"
    )?;
    let mut line = String::new();
    reader.read_line(&mut line).context("the proxy does not answer")?;
    ensure!(line.starts_with("HTTP/1.1 101"), "the proxy refuses: {}", line.trim());
    loop {
        line.clear();
        if reader.read_line(&mut line).context("the proxy does not answer")? == 0 {
            bail!("the proxy is gone");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    stream.set_read_timeout(None)?;
    Ok(())
}

/// Like [`io::copy`], but what was read is written at once.
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
