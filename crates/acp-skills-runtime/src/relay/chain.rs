//! Chain mode: one connection to a conductor, which has the client on its far side and the agent too.
//!
//! The same interceptor and the same lanes as between an editor and an agent; only that both lanes end in one writer and
//! one reader feeds both directions.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    sync::Arc,
    thread,
};

use parking_lot::Mutex;

use tokio::sync::oneshot;

use super::{
    Ends,
    hub::{Hub, Side},
    pump::is_departure,
};
use crate::host::Host;
use acp_skills_intercept::Policy;
use acp_skills_wire::{
    build,
    successor::{Origin, Sorted, Switch},
};

/// How the connection to a conductor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainEnd {
    /// The conductor closed it.
    Closed,
    /// There was no conductor. A client that took us for an agent was told that we have none.
    NoConductor,
}

/// Runs the proxy under the conductor at these ends, until it closes the connection. Needs a tokio runtime around it.
///
/// # Errors
/// Reading or writing failed, or the thread for it cannot be started.
pub async fn run(policy: Policy, host: Host, conductor: Ends) -> io::Result<ChainEnd> {
    let switch = Arc::new(Mutex::new(Switch::default()));
    let writer = Arc::new(Mutex::new(conductor.writer));
    let outlet = |side, writer| Outlet { side, writer, switch: Arc::clone(&switch), line: Vec::new() };
    let to_client = outlet(Side::Client, Arc::clone(&writer));
    let to_agent = outlet(Side::Agent, writer);
    let hub = super::hub(policy, host, Box::new(to_client), Box::new(to_agent));
    let (done, ended) = oneshot::channel();
    let reader = conductor.reader;
    thread::Builder::new().name("from-conductor".to_owned()).spawn(move || {
        let end = pump(reader, &hub, &switch).or_else(|error| match error {
            // It has gone before it heard all.
            error if is_departure(&error) => Ok(ChainEnd::Closed),
            error => Err(error),
        });
        hub.client_gone();
        hub.lane_to(Side::Agent).close();
        hub.lane_to(Side::Client).close();
        // Whoever waits may have given up already.
        drop(done.send(end));
    })?;
    ended.await.unwrap_or_else(|_| Err(io::Error::other("the thread that reads has ended without a word")))
}

fn pump(source: impl Read, hub: &Arc<Hub>, switch: &Mutex<Switch>) -> io::Result<ChainEnd> {
    let mut lines = BufReader::with_capacity(super::pump::READ_BYTES, source);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            let begun = switch.lock().has_begun();
            return Ok(if begun { ChainEnd::Closed } else { ChainEnd::NoConductor });
        }
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        let sorted = switch.lock().sort(&line);
        match sorted {
            Sorted::From(origin, mut message) => {
                let (from, to) = match origin {
                    Origin::Client => (Side::Client, Side::Agent),
                    Origin::Successor => (Side::Agent, Side::Client),
                };
                let len = message.len();
                if hub.batch(from, &mut message, len) {
                    hub.lane_to(to).drain()?;
                }
            }
            Sorted::Answer(answer) => {
                hub.lane_to(Side::Client).push(answer);
                hub.lane_to(Side::Client).drain()?;
            }
            Sorted::Dropped(why) => tracing::warn!("the conductor sent {why}"),
            Sorted::NoChain(answer) => {
                hub.lane_to(Side::Client).push(answer);
                hub.lane_to(Side::Client).drain()?;
                return Ok(ChainEnd::NoConductor);
            }
        }
    }
}

/// One lane's end of the connection. Whole lines go out at once, because the other lane writes to the same place.
struct Outlet {
    side: Side,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    /// Puts the envelope around what goes to the successor.
    switch: Arc<Mutex<Switch>>,
    /// The beginning of a line.
    line: Vec<u8>,
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let line = match self.side {
                    Side::Agent => self.switch.lock().to_successor(&line),
                    Side::Client => {
                        if build::is_own_request(&line) {
                            self.switch.lock().to_client(&line);
                        }
                        line
                    }
                };
                self.writer.lock().write_all(&line)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.lock().flush()
    }
}
