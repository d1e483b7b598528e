//! [`UsageScanner`]: finds the reports of context usage that have to be read.
//!
//! Some agents report their usage with every chunk, so this check must be as cheap as that of [`mark_scanner`]. An agent writes
//! all of its reports in the same way, so it is enough to compare the bytes before the number, the number, and the size of the
//! context. The rest of the report must not name a subagent.
//!
//! [`mark_scanner`]: crate::mark_scanner

use acp_skills_wire::{Node, bytes::starts_with};
use memchr::memmem;

use crate::{keys::SessionKey, session::has_fallen};

const KIND: &[u8] = br#""usage_update""#;

/// The member of the metadata that names the parent of a subagent.
const PARENT: &str = "parentToolUseId";

/// The maximum length of the remembered bytes up to the end of the size.
const MAX_BYTES: usize = 1024;

/// The maximum number of digits. More could be too large for the type.
const MAX_DIGITS: usize = 18;

/// Returns true if the metadata of an update says that it belongs to a subagent, whose conversation is not that of the session.
pub(crate) fn is_of_subagent(meta: Option<Node<'_>>) -> bool {
    meta.and_then(|meta| meta.at(&["claudeCode", PARENT])).is_some_and(|parent| !parent.is_null())
}

/// A report that was parsed.
pub(crate) struct Report<'a> {
    /// The line of the report.
    pub(crate) line: &'a [u8],
    /// The agent's id of the session.
    pub(crate) session_id: Node<'a>,
    /// The number of used tokens.
    pub(crate) used: Node<'a>,
    /// The size of the context.
    pub(crate) size: Node<'a>,
}

/// Finds the reports in which the usage has fallen.
#[derive(Debug)]
pub(crate) struct UsageScanner {
    /// The bytes of the last report before the value of `used`. Valid only if `last` is set.
    front: Vec<u8>,
    /// The bytes of the last report after the value of `used`, up to the byte after the value of `size`. Empty if `size` comes
    /// before `used`.
    size: Vec<u8>,
    /// The session of the last report, and its value of `used`. `None` if the next report has to be parsed.
    last: Option<(SessionKey, u64)>,
    parent: memmem::Finder<'static>,
}

impl Default for UsageScanner {
    fn default() -> Self {
        Self { front: Vec::new(), size: Vec::new(), last: None, parent: memmem::Finder::new(PARENT) }
    }
}

impl UsageScanner {
    /// Returns true if a streaming update has to be parsed, because it is a report that may be of interest. `kind` is the offset of
    /// the kind.
    pub(crate) fn must_be_read(&mut self, line: &[u8], kind: usize) -> bool {
        // This is enough for chunks.
        line.get(kind + 1) == Some(&b'u') && self.is_of_interest(line, kind)
    }

    /// Performs the check of [`must_be_read`](Self::must_be_read) for an update whose kind begins with `u`. It is never inlined, so
    /// that chunks don't have to save its registers.
    #[inline(never)]
    fn is_of_interest(&mut self, line: &[u8], kind: usize) -> bool {
        if !line[kind..].starts_with(KIND) {
            return false;
        }
        let Some((_, last)) = &mut self.last else { return true };
        if !starts_with(line, &self.front) {
            return true;
        }
        let Some((used, rest)) = number(&line[self.front.len()..]) else { return true };
        if has_fallen(*last, used)
            || !starts_with(rest, &self.size)
            || self.parent.find(&rest[self.size.len()..]).is_some()
        {
            return true;
        }
        *last = used;
        false
    }

    /// Remembers the form of a report, in which the session has used this number of tokens.
    pub(crate) fn remember(&mut self, report: Report<'_>, session: SessionKey, used: u64) {
        let Report { line, session_id, used: number_node, size } = report;
        let (used_at, size_at) = (number_node.span(), size.span());
        // If the id of the session comes later, the reports of all sessions begin with the same bytes.
        let is_of_session = session_id.span().end <= used_at.start;
        let end = used_at.end.max(size_at.end + 1);
        if !is_of_session || end > MAX_BYTES.min(line.len()) || number(&line[used_at.start..]).is_none() {
            return;
        }
        self.front.clear();
        self.front.extend_from_slice(&line[..used_at.start]);
        self.size.clear();
        if size_at.start > used_at.end {
            self.size.extend_from_slice(&line[used_at.end..end]);
        }
        self.last = Some((session, used));
    }

    /// Forgets the last report if it is one of this session, because the session was closed or is opened again.
    pub(crate) fn forget(&mut self, session: SessionKey) {
        self.last.take_if(|(last, _)| *last == session);
    }

    /// Forgets the last report. Returns its session, and its number.
    pub(crate) fn take(&mut self) -> Option<(SessionKey, u64)> {
        self.last.take()
    }
}

/// Reads the number at the start of `text`. Returns the number and the rest of the text.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (count, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' if count < MAX_DIGITS => value = value * 10 + u64::from(byte - b'0'),
            b',' | b'}' | b' ' if count > 0 => return Some((value, &text[count..])),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str =
        r#"{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":USED,"size":200,"cost":1}}"#;
    const SIZE_FIRST: &str =
        r#"{"sessionId":"s","update":{"sessionUpdate":"usage_update","size":200,"used":USED}}"#;
    const SESSION_LAST: &str =
        r#"{"update":{"sessionUpdate":"usage_update","used":USED,"size":200},"sessionId":"s"}"#;

    fn read(scanner: &mut UsageScanner, line: &str) -> bool {
        let kind = line.find("\"usage").or_else(|| line.find("\"agent")).or_else(|| line.find("\"user"));
        scanner.must_be_read(line.as_bytes(), kind.unwrap())
    }

    fn remember(scanner: &mut UsageScanner, line: &str, used: u64) {
        let root = Node::parse(line.as_bytes()).unwrap();
        let update = |key| root.at(&["update", key]).unwrap();
        let session_id = root.get("sessionId").unwrap();
        let report = Report { line: line.as_bytes(), session_id, used: update("used"), size: update("size") };
        scanner.remember(report, SessionKey(1), used);
    }

    #[test]
    fn only_falls_have_to_be_read() {
        for form in [FORM, SIZE_FIRST] {
            let mut scanner = UsageScanner::default();
            let line = |used: &str| form.replace("USED", used);
            assert!(read(&mut scanner, &line("100")), "the form is not known");
            remember(&mut scanner, &line("100"), 100);
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
                (line("90").replace("\"s\"", "\"t\""), true),
                (line("90").replace("200", "2000"), true),
                (line("90").replace("200", "100"), true),
                (line("90").replace("}}", r#","_meta":{"claudeCode":{"parentToolUseId":"p"}}}}"#), true),
                (line("90").replace("usage_update", "agent_message_chunk"), false),
                (line("90").replace("usage_update", "user_message_chunk"), false),
            ] {
                assert_eq!(read(&mut scanner, &text), expected, "{text}");
            }
            // The other members can change.
            let other = line("30").replace("}}", r#","cost":2,"_meta":{"claudeCode":{}}}}"#);
            assert!(!read(&mut scanner, &other), "{other}");
            scanner.forget(SessionKey(2));
            assert_eq!(scanner.take(), Some((SessionKey(1), 30)));
            assert!(read(&mut scanner, &line("100")), "the last report is not known");
            remember(&mut scanner, &line("100"), 100);
            scanner.forget(SessionKey(1));
            assert!(read(&mut scanner, &line("100")), "the session is gone");
        }
    }

    #[test]
    fn reports_of_any_session_have_to_be_read_if_the_session_comes_last() {
        let mut scanner = UsageScanner::default();
        let line = SESSION_LAST.replace("USED", "100");
        remember(&mut scanner, &line, 100);
        assert!(read(&mut scanner, &line));
    }
}
