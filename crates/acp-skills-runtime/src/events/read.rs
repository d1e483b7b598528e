//! Reading a record, whatever is in it: what is no event is named with its line, and never an error.

use std::io::{self, BufRead, Read};

use serde::Deserialize;

use super::{Record, VERSION};

/// Longer lines are none of ours, in bytes. A session with 100,000 skills fits.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// One line of a file.
#[derive(Debug, PartialEq)]
pub enum Line {
    /// An event.
    Event(Box<Record>),
    /// An event of a newer proxy's: its name, and the version of its schema.
    Unknown {
        /// `event`.
        event: String,
        /// `v`.
        version: u32,
    },
    /// Something else, and why.
    Bad(String),
}

/// What is left of an event that we do not know.
#[derive(Deserialize)]
struct Head {
    v: u32,
    event: String,
}

/// What a line says; `None` for an empty one.
pub fn line(bytes: &[u8]) -> Option<Line> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return None;
    }
    Some(match serde_json::from_slice::<Record>(bytes) {
        Ok(record) if record.v <= VERSION => Line::Event(Box::new(record)),
        Ok(record) => Line::Unknown { event: record.what.name().to_owned(), version: record.v },
        Err(error) => match serde_json::from_slice::<Head>(bytes) {
            Ok(head) if head.v > VERSION || !is_known(&head.event) => {
                Line::Unknown { event: head.event, version: head.v }
            }
            // Where the line is in its file is said elsewhere.
            _ => Line::Bad(error.to_string().replace(" at line 1 column ", ", at column ")),
        },
    })
}

/// Whether there is an event of this name in our version of the schema.
fn is_known(event: &str) -> bool {
    const NAMES: [&str; 10] = [
        "session_started",
        "skill_activated",
        "file_read",
        "tool_called",
        "script_run",
        "search",
        "permission",
        "reload",
        "fallback",
        "events_dropped",
    ];
    NAMES.contains(&event)
}

/// Reads all lines; `see` gets each with its number, from 1.
///
/// # Errors
/// The source cannot be read any further.
pub fn lines(source: impl Read, mut see: impl FnMut(usize, Line)) -> io::Result<()> {
    let mut source = io::BufReader::with_capacity(64 * 1024, source);
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if source.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() as u64 == MAX_LINE_BYTES && !bytes.ends_with(b"\n") {
            see(number, Line::Bad("the line is too long".to_owned()));
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
