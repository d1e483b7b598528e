//! Measures the latency and the throughput of `activate_skill` over HTTP.
//!
//! To measure the server and not a client library, requests are written and responses are read by hand, over connections that
//! stay open.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::{Plan, line::Line, peers::Peer};

/// The number of concurrent connections.
pub(crate) const CONNECTIONS: usize = 32;

/// The measurements of one round.
pub(crate) struct Calls {
    /// The durations of sequential calls over one connection.
    pub(crate) times: Vec<Duration>,
    /// Calls per second over [`CONNECTIONS`] connections.
    pub(crate) rate: f64,
}

pub(crate) fn measure(peer: &Peer, plan: &Plan) -> anyhow::Result<Calls> {
    let mut line = Line::start(peer, &[])?;
    let session = line.session()?;
    let request = Request::new(&session["_meta"]["servers"][0])?;
    let mut connection = request.connect()?;
    // The first call is not measured, because it's used to initialize the server.
    request.call(&mut connection)?;
    let mut times = Vec::new();
    for _ in 0..plan.calls.0 {
        let started = Instant::now();
        request.call(&mut connection)?;
        times.push(started.elapsed());
    }
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = request.connect()?;
        request.call(&mut connection)?;
        connections.push(connection);
    }
    let started = Instant::now();
    thread::scope(|scope| {
        let callers = connections.into_iter().map(|mut connection| {
            let request = &request;
            scope.spawn(move || (0..plan.calls.1).try_for_each(|_| request.call(&mut connection)))
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().try_for_each(|caller| caller.join().expect("no panic"))
    })?;
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let rate = (CONNECTIONS * plan.calls.1) as f64 / started.elapsed().as_secs_f64();
    line.end()?;
    Ok(Calls { times, rate })
}

/// The bytes of a call.
struct Request {
    address: String,
    bytes: Vec<u8>,
}

impl Request {
    /// Creates a call to the server of an entry in `mcpServers`.
    fn new(entry: &Value) -> anyhow::Result<Self> {
        let url = entry["url"].as_str().context("a server over HTTP")?;
        let (address, path) =
            url.strip_prefix("http://").and_then(|url| url.split_once('/')).context("an address")?;
        let authorization = entry["headers"][0]["value"].as_str().context("a token")?;
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {
                "name": "activate_skill",
                "arguments": { "name": "skill-3" },
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        })
        .to_string();
        let length = body.len();
        let head = [
            format!("POST /{path} HTTP/1.1"),
            format!("Host: {address}"),
            format!("Authorization: {authorization}"),
            "Content-Type: application/json".to_owned(),
            "Accept: application/json, text/event-stream".to_owned(),
            "MCP-Protocol-Version: 2026-07-28".to_owned(),
            "Mcp-Method: tools/call".to_owned(),
            "Mcp-Name: activate_skill".to_owned(),
            format!("Content-Length: {length}"),
        ];
        let bytes = format!("{}\r\n\r\n{body}", head.join("\r\n")).into_bytes();
        Ok(Self { address: address.to_owned(), bytes })
    }

    fn connect(&self) -> anyhow::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }

    /// Makes a call and reads its response.
    fn call(&self, connection: &mut BufReader<TcpStream>) -> anyhow::Result<()> {
        connection.get_mut().write_all(&self.bytes)?;
        let mut line = String::new();
        connection.read_line(&mut line)?;
        ensure!(line.starts_with("HTTP/1.1 200"), "{line}");
        let mut length = None;
        loop {
            line.clear();
            connection.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.parse::<usize>()?);
            }
        }
        let body = match length {
            Some(length) => {
                let mut body = vec![0; length];
                connection.read_exact(&mut body)?;
                body
            }
            None => chunks(connection)?,
        };
        let answer = memchr::memmem::find(&body, b"skill_content").is_some();
        ensure!(answer, "no skill in {}", String::from_utf8_lossy(&body));
        Ok(())
    }
}

/// Reads a body with chunked transfer encoding.
fn chunks(connection: &mut BufReader<TcpStream>) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line)?;
        let Ok(length) = usize::from_str_radix(line.trim_end(), 16) else { bail!("not a chunk: {line:?}") };
        let start = body.len();
        body.resize(start + length + 2, 0);
        connection.read_exact(&mut body[start..])?;
        body.truncate(start + length);
        if length == 0 {
            return Ok(body);
        }
    }
}
