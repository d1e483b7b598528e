//! Chain mode: the proxy has a single connection to a conductor, which connects it to both the client and the agent.
//!
//! This mode uses the same interceptor and the same lanes as the standalone mode. The difference is that both lanes end in one
//! writer, and one reader feeds both directions.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    mem,
    sync::Arc,
    thread,
    time::Duration,
};

use acp_skills_intercept::Policy;
use acp_skills_wire::{
    Skim, build,
    successor::{Origin, Sorted, Switch},
};
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::sleep};

use super::{
    Ends,
    hub::Hub,
    oversize::{self, Replacement},
    side::{Side, is_disconnect},
};
use crate::host::Host;

/// The time to write the last messages after the conductor has closed our input. A conductor that doesn't read them would
/// otherwise keep the proxy alive.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(5);

/// The end of a connection to a conductor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainEnd {
    /// The conductor closed the connection, or no longer reads from it.
    Closed,
    /// The other end is not a conductor. If it is a client that expected an agent, its request was answered with an error.
    NoConductor,
}

/// Runs the proxy until the conductor closes the connection or stops reading from it. Must be called within a tokio runtime.
///
/// # Errors
/// Returns an error if reading or writing fails, or if the reading thread cannot be started.
pub async fn run(policy: Policy, host: Host, conductor: Ends) -> io::Result<ChainEnd> {
    let switch = Arc::new(Mutex::new(Switch::default()));
    let writer = Arc::new(Mutex::new(conductor.writer));
    let outlet = |side, writer| Outlet { side, writer, switch: Arc::clone(&switch), line: Vec::new() };
    let to_client = outlet(Side::Client, Arc::clone(&writer));
    let to_agent = outlet(Side::Agent, writer);
    let hub = super::start_hub(policy, host, Box::new(to_client), Box::new(to_agent));
    let failed = [Side::Client, Side::Agent].map(|side| hub.lane_to(side).failed());
    let gone = watch(conductor.hangup)?;
    let (done, ended) = oneshot::channel();
    let reader = conductor.reader;
    let max_message = conductor.max_message;
    let own_hub = Arc::clone(&hub);
    thread::Builder::new().name("from-conductor".to_owned()).spawn(move || {
        let end = pump(reader, max_message, &hub, &switch).or_else(|error| match error {
            // The conductor may close the connection before it has read all messages.
            error if is_disconnect(&error) => Ok(ChainEnd::Closed),
            error => Err(error),
        });
        hub.client_gone();
        hub.lane_to(Side::Agent).close();
        hub.lane_to(Side::Client).close();
        // Ignore the error if the receiver was dropped.
        let _ = done.send(end);
    })?;
    let end = tokio::select! {
        // If the reading thread has ended too, it knows the reason.
        biased;
        end = ended => end.unwrap_or_else(|_| Err(io::Error::other("reading thread panicked"))),
        // A message that we sent on our own, such as a changed list of commands, could not be written. The reading thread may
        // not notice, because it waits for the next message.
        () = failed[0].notified() => Ok(ChainEnd::Closed),
        () = failed[1].notified() => Ok(ChainEnd::Closed),
        () = async {
            gone.await;
            sleep(LAST_OUTPUT_TIMEOUT).await;
        } => {
            tracing::warn!("the conductor has closed the connection and does not read its last messages");
            Ok(ChainEnd::Closed)
        }
    };
    // The reading thread may still be blocked.
    own_hub.clean_up();
    end
}

/// Returns a future that ends when the conductor has closed our input. It never ends if the platform doesn't support this.
fn watch(hangup: Option<Box<dyn FnOnce() + Send>>) -> io::Result<impl Future<Output = ()>> {
    let (gone, is_gone) = oneshot::channel();
    if let Some(hangup) = hangup {
        thread::Builder::new().name("conductor-hangup".to_owned()).spawn(move || {
            hangup();
            // Ignore the error if the receiver was dropped.
            let _ = gone.send(());
        })?;
    }
    Ok(async {
        if is_gone.await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

fn pump(
    source: impl Read,
    max_message: usize,
    hub: &Arc<Hub>,
    switch: &Mutex<Switch>,
) -> io::Result<ChainEnd> {
    let mut lines = BufReader::with_capacity(super::pump::READ_BYTES, source);
    let mut line = Vec::new();
    loop {
        line.clear();
        // Read one byte more than the maximum, for the line break.
        let limit = (max_message as u64).saturating_add(1);
        if (&mut lines).take(limit).read_until(b'\n', &mut line)? == 0 {
            let begun = switch.lock().has_begun();
            return Ok(if begun { ChainEnd::Closed } else { ChainEnd::NoConductor });
        }
        if line.len() > max_message && !line.ends_with(b"\n") {
            let skim = skip_line(mem::take(&mut line), &mut lines)?;
            match oversize::replace(&skim, "the conductor", max_message) {
                Replacement::Answer(answer) => {
                    hub.lane_to(Side::Client).push(answer);
                    hub.lane_to(Side::Client).drain()?;
                    continue;
                }
                Replacement::Response(response) => line = response,
                Replacement::Nothing => continue,
            }
        }
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        let sorted = switch.lock().sort(&line);
        match sorted {
            Sorted::From(origin, mut message) => {
                let from = match origin {
                    Origin::Client => Side::Client,
                    Origin::Successor => Side::Agent,
                };
                if from == Side::Client {
                    hub.await_room()?;
                }
                let len = message.len();
                if hub.batch(from, &mut message, len) {
                    hub.lane_to(from.other()).drain()?;
                }
            }
            Sorted::Answer(answer) => {
                hub.lane_to(Side::Client).push(answer);
                hub.lane_to(Side::Client).drain()?;
            }
            Sorted::Dropped(why) => tracing::warn!("ignored message from conductor: {why}"),
            Sorted::NoChain(answer) => {
                hub.lane_to(Side::Client).push(answer);
                hub.lane_to(Side::Client).drain()?;
                return Ok(ChainEnd::NoConductor);
            }
        }
    }
}

/// Reads the rest of a line that begins with `start`, without keeping it.
#[cold]
fn skip_line(start: Vec<u8>, lines: &mut impl BufRead) -> io::Result<Skim> {
    let mut skim = Skim::default();
    skim.read(&start);
    drop(start);
    loop {
        let bytes = match lines.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let line_break = memchr::memchr(b'\n', bytes);
        let used = line_break.unwrap_or(bytes.len());
        skim.read(&bytes[..used]);
        let is_over = line_break.is_some() || bytes.is_empty();
        lines.consume(used + usize::from(line_break.is_some()));
        if is_over {
            return Ok(skim);
        }
    }
}

/// The writer of one lane. It writes only complete lines, because both lanes share the connection.
struct Outlet {
    side: Side,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    /// Adds the envelope to messages for the successor.
    switch: Arc<Mutex<Switch>>,
    /// An incomplete line.
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
