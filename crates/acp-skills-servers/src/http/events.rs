//! Reads server-sent events.
//!
//! [HTML: server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation)

use std::{
    io::{BufRead, BufReader, Read},
    time::Duration,
};

use super::MAX_BYTES;

/// The maximum length of an event's id in bytes. A stream with a longer id can't be continued.
const MAX_ID_BYTES: usize = 1024;
/// The maximum time to wait before a stream is opened again.
const MAX_RETRY: Duration = Duration::from_mins(5);

/// The position in a stream, for continuing it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Position {
    /// The id of the last event.
    pub(super) last_id: Option<String>,
    /// The time that the server asks to wait before the stream is opened again.
    pub(super) retry: Option<Duration>,
}

impl Position {
    /// Reads events until the end of the stream, and passes their data to `receive`. Returns true if there was at least one message.
    pub(super) fn read(&mut self, stream: impl Read, mut receive: impl FnMut(&[u8])) -> bool {
        let mut reader = BufReader::new(stream);
        let mut data = Vec::new();
        let mut line = Vec::new();
        let mut has_messages = false;
        loop {
            line.clear();
            match (&mut reader).take(MAX_BYTES).read_until(b'\n', &mut line) {
                Ok(read) if read > 0 && (read as u64) < MAX_BYTES => {}
                _ => return has_messages,
            }
            let text = line.trim_ascii_end();
            if text.is_empty() {
                // Events without data only set the position.
                if !data.trim_ascii().is_empty() {
                    receive(&data);
                    has_messages = true;
                }
                data.clear();
            } else if let Some(part) = text.strip_prefix(b"data:") {
                if data.len() as u64 + part.len() as u64 > MAX_BYTES {
                    return has_messages;
                }
                data.extend_from_slice(part.trim_ascii_start());
                data.push(b'\n');
            } else if let Some(id) = text.strip_prefix(b"id:") {
                // The id is sent back in a header.
                let id = str::from_utf8(id.trim_ascii()).ok();
                let is_valid = |id: &&str| id.len() <= MAX_ID_BYTES && !id.contains(char::is_control);
                self.last_id = id.filter(is_valid).filter(|id| !id.is_empty()).map(str::to_owned);
            } else if let Some(millis) = text.strip_prefix(b"retry:") {
                let millis = str::from_utf8(millis).ok().and_then(|millis| millis.trim().parse().ok());
                self.retry = millis.map(|millis| Duration::from_millis(millis).min(MAX_RETRY)).or(self.retry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_read() {
        let position = |last_id: Option<&str>, retry: Option<u64>| Position {
            last_id: last_id.map(str::to_owned),
            retry: retry.map(Duration::from_millis),
        };
        for (stream, messages, expected) in [
            ("", &[][..], position(None, None)),
            ("data: a\n\ndata:b\r\ndata: c\r\n\r\n", &["a\n", "b\nc\n"], position(None, None)),
            // An event without an empty line at its end is incomplete.
            ("data: a\n\ndata: b\n", &["a\n"], position(None, None)),
            (": comment\nevent: message\nid: 1\ndata: a\n\nid: 2\n\n", &["a\n"], position(Some("2"), None)),
            // Servers begin a stream that they will close with an id and no data.
            ("id: 1\nretry: 20\ndata:\n\n", &[], position(Some("1"), Some(20))),
            ("id: 1\n\nid\nid:\n\n", &[], position(None, None)),
            ("id: a\tb\n\n", &[], position(None, None)),
            ("retry: 20\nretry: x\n\n", &[], position(None, Some(20))),
            ("retry: 999999999\n\n", &[], position(None, Some(300_000))),
        ] {
            let mut found = Position::default();
            let mut received = Vec::new();
            let has_messages = found
                .read(stream.as_bytes(), |data| received.push(String::from_utf8(data.to_owned()).unwrap()));
            assert_eq!(
                (has_messages, &received[..]),
                (!messages.is_empty(), &messages.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
                "{stream:?}"
            );
            assert_eq!(found, expected, "{stream:?}");
        }
    }
}
