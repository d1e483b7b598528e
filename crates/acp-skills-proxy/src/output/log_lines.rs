//! The log on stderr: each write is one message, which is made safe to display.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    io::{self, Write},
    sync::{Arc, Mutex},
};

use super::{displayed::displayed, stderr::Stderr};

/// The maximum number of messages to remember. Messages from before can be repeated once.
const MAX_REMEMBERED: usize = 1_000;
/// The maximum length of a message in bytes. It can contain a text of an agent or a server, which can be any length.
const MAX_MESSAGE: usize = 16 * 1024;

/// Returns a log that writes to stderr.
pub(crate) fn log_to_stderr() -> LogLines<impl Write> {
    LogLines(Stderr)
}

/// The messages that a log has written, if it writes each message only once.
#[derive(Default)]
pub(crate) struct Logged {
    hasher: RandomState,
    /// The hashes of the messages.
    seen: Mutex<HashSet<u64>>,
}

/// Returns a log that writes each message to stderr only once, because some clients show each line of stderr as an error.
pub(crate) fn log_once_to_stderr(logged: &Arc<Logged>) -> Once<impl Write + use<>> {
    Once { logged: Arc::clone(logged), log: log_to_stderr() }
}

/// A log that drops repeated messages.
pub(crate) struct Once<W> {
    logged: Arc<Logged>,
    log: LogLines<W>,
}

impl<W: Write> Write for Once<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let hash = self.logged.hasher.hash_one(bytes);
        let is_new = self.logged.seen.lock().is_ok_and(|mut seen| {
            if seen.len() >= MAX_REMEMBERED {
                seen.clear();
            }
            seen.insert(hash)
        });
        if is_new { self.log.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.flush()
    }
}

/// A log in which each write is one message. Unsafe characters are escaped, further lines of a message are indented, so that they don't
/// look like separate messages, and long messages are cut.
pub(crate) struct LogLines<W>(pub(crate) W);

impl<W: Write> Write for LogLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let message = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_MESSAGE)]);
        let end = if bytes.len() > MAX_MESSAGE { "…\n" } else { "\n" };
        let message = displayed(message.trim_end_matches('\n')).replace('\n', "\n    ") + end;
        self.0.write_all(message.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_logged_once() {
        let logged = Arc::new(Logged::default());
        let mut text = Vec::new();
        for message in ["WARN a\n", "WARN b\n", "WARN a\n"] {
            let mut log = Once { logged: Arc::clone(&logged), log: LogLines(&mut text) };
            log.write_all(message.as_bytes()).unwrap();
        }
        assert_eq!(String::from_utf8(text).unwrap(), "WARN a\nWARN b\n");
    }

    #[test]
    fn long_messages_are_cut() {
        let mut log = LogLines(Vec::new());
        log.write_all("é".repeat(MAX_MESSAGE).as_bytes()).unwrap();
        let text = String::from_utf8(log.0).unwrap();
        assert!(text.len() < MAX_MESSAGE + 10 && text.ends_with("é…\n"), "{}", text.len());
    }

    #[test]
    fn a_message_cannot_forge_another_one() {
        let mut log = LogLines(Vec::new());
        log.write_all("WARN a\u{1b}[2J\n\nERROR forged\n".as_bytes()).unwrap();
        log.write_all(b"WARN b\n").unwrap();
        let text = String::from_utf8(log.0).unwrap();
        assert_eq!(text, "WARN a\\u{1b}[2J\n    \n    ERROR forged\nWARN b\n");
    }
}
