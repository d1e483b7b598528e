//! Reads a record of events. Invalid lines are reported with their number, and never stop the reading.

use std::io::{self, BufRead, Read};

use serde::Deserialize;

use super::{Event, VERSION};

/// The maximum length of a line in bytes. Longer lines are invalid. The event of a session with 100,000 skills fits.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// One line of a record.
#[derive(Debug, PartialEq)]
pub enum Line {
    /// An event.
    Event(Box<Event>),
    /// An event of a newer version of the proxy.
    Unknown {
        /// The name of the event.
        event: String,
        /// The version of its schema.
        version: u32,
    },
    /// An invalid line, with the reason.
    Bad(String),
}

/// The fields that every event has, in any version of the schema.
#[derive(Deserialize)]
struct Head {
    v: u32,
    event: String,
}

/// Parses a line. Returns `None` if it is empty.
pub fn line(bytes: &[u8]) -> Option<Line> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return None;
    }
    Some(match serde_json::from_slice::<Event>(bytes) {
        Ok(event) if event.v <= VERSION => Line::Event(Box::new(event)),
        Ok(event) => Line::Unknown { event: event.what.name().to_owned(), version: event.v },
        Err(error) => match serde_json::from_slice::<Head>(bytes) {
            Ok(head) if head.v > VERSION || !is_known(&head.event) => {
                Line::Unknown { event: head.event, version: head.v }
            }
            // Only keep the column here. The line number will be added by the caller.
            _ => Line::Bad(error.to_string().replace(" at line 1 column ", ", at column ")),
        },
    })
}

/// Returns true if our version of the schema has an event of this name.
fn is_known(event: &str) -> bool {
    const NAMES: [&str; 12] = [
        "session_started",
        "skill_activated",
        "file_read",
        "tool_called",
        "script_run",
        "search",
        "permission",
        "reload",
        "fallback",
        "skills_joined",
        "restored",
        "events_dropped",
    ];
    NAMES.contains(&event)
}

/// Reads all lines. Calls `see` with the number of each line, counted from 1, and its contents. Empty lines are
/// skipped.
///
/// # Errors
/// Returns an error if the source cannot be read.
pub fn lines(source: impl Read, mut see: impl FnMut(usize, Line)) -> io::Result<()> {
    let mut source = io::BufReader::with_capacity(64 * 1024, source);
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if source.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() as u64 == MAX_LINE_BYTES && !bytes.ends_with(b"\n") {
            see(number, Line::Bad("line is too long".to_owned()));
            skip_line(&mut source)?;
        } else if let Some(line) = line(&bytes) {
            see(number, line);
        }
    }
    Ok(())
}

fn skip_line(source: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = source.fill_buf()?;
        let (used, done) = match memchr::memchr(b'\n', buffer) {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        source.consume(used);
        if done {
            return Ok(());
        }
    }
}
