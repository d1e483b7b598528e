//! [`UsageScanner`]: finds the reports of context usage that have to be read.
//!
//! Some agents report their usage with every chunk, so this check must be as cheap as that of [`mark_scanner`]. An agent writes
//! all of its reports in the same way, so it is enough to compare the bytes before the number, and then the number.
//!
//! [`mark_scanner`]: crate::mark_scanner

use acp_skills_wire::bytes::starts_with;

use crate::{keys::SessionKey, session::has_fallen};

const KIND: &[u8] = br#""usage_update""#;

/// The maximum length of the remembered bytes before the number.
const MAX_FRONT_BYTES: usize = 1024;

/// The maximum number of digits. More could be too large for the type.
const MAX_DIGITS: usize = 18;

/// Finds the reports in which the usage has fallen.
#[derive(Debug, Default)]
pub(crate) struct UsageScanner {
    /// The bytes of the last report before the value of `used`. Empty if they are not known.
    front: Vec<u8>,
    /// The session of the last report, and its value of `used`.
    last: Option<(SessionKey, u64)>,
}

impl UsageScanner {
    /// Returns true if a streaming update has to be parsed, because it is a report that may be of interest. `kind` is the offset of
    /// the kind.
    pub(crate) fn must_be_read(&mut self, line: &[u8], kind: usize) -> bool {
        // This is enough for chunks.
        if line.get(kind + 1) != Some(&b'u') || !line[kind..].starts_with(KIND) {
            return false;
        }
        let Some((_, last)) = &mut self.last else { return true };
        if !starts_with(line, &self.front) {
            return true;
        }
        match number(&line[self.front.len()..]) {
            Some(used) if !has_fallen(*last, used) => {
                *last = used;
                false
            }
            _ => true,
        }
    }

    /// Remembers the form of a report, whose number begins at `at`.
    pub(crate) fn remember(&mut self, line: &[u8], at: usize, session: SessionKey, used: u64) {
        if at <= MAX_FRONT_BYTES && number(&line[at..]).is_some() {
            self.front.clear();
            self.front.extend_from_slice(&line[..at]);
            self.last = Some((session, used));
        }
    }

    /// Forgets the last report. Returns its session, and its number.
    pub(crate) fn take(&mut self) -> Option<(SessionKey, u64)> {
        self.last.take()
    }
}

/// Reads the number at the start of `text`.
fn number(text: &[u8]) -> Option<u64> {
    let mut value = 0;
    for (count, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' if count < MAX_DIGITS => value = value * 10 + u64::from(byte - b'0'),
            b',' | b'}' | b' ' if count > 0 => return Some(value),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_falls_have_to_be_read() {
        let mut scanner = UsageScanner::default();
        let line = |used: &str| format!(r#"{{"sessionUpdate":"usage_update","used":{used},"size":200}}"#);
        let kind = 17;
        let mut read = |line: &str| scanner.must_be_read(line.as_bytes(), kind);
        assert!(read(&line("100")), "the form is not known");
        let first = line("100");
        let at = first.find("100").unwrap();
        scanner.remember(first.as_bytes(), at, SessionKey(1), 100);
        let mut read = |line: &str| scanner.must_be_read(line.as_bytes(), kind);
        for (text, expected) in [
            (line("110"), false),
            (line("60"), false),
            (line("29"), true),
            (line("0"), true),
            (line("30"), false),
            (line("1e2"), true),
            (line("3.5"), true),
            (line("-3"), true),
            (line("null"), true),
            (line("12345678901234567890"), true),
            (line("90").replace("\"used\"", "\"a\":1,\"used\""), true),
            (line("90").replace("usage_update", "agent_message_chunk"), false),
            (line("90").replace("usage_update", "user_message_chunk"), false),
        ] {
            assert_eq!(read(&text), expected, "{text}");
        }
        assert_eq!(scanner.take(), Some((SessionKey(1), 30)));
        assert!(scanner.must_be_read(line("100").as_bytes(), kind), "the last report is not known");
    }
}
