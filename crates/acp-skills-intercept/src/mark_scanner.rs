//! [`MarkScanner`]: finds the streaming updates that may contain the injected text, or that are a message about a compaction.
//!
//! Every streaming update passes through this check, so it must be very cheap. A mark is found by its name, which no serializer
//! escapes. A mark may also be split between the chunks of a message. An agent writes the same bytes after the text of every
//! chunk, so we know where the text ends from the last chunk that was parsed, and only check if the text ends like the start of a
//! mark.

use acp_skills_wire::{
    Classifier, Message,
    bytes::{MANY, contains, strip_suffix},
};
use memchr::memmem;

use crate::{
    compaction,
    marks::{DIGITS, NAME},
};

/// The maximum length of a text that is too short for a whole mark, in bytes.
const MIN_BYTES: usize = NAME.len() + DIGITS + 1;

/// The maximum length of the remembered bytes after a text.
const MAX_TAIL_BYTES: usize = 1024;

/// The minimum length of the start of a mark that is followed by another string, such as `<","":"`, in bytes.
const MIN_TWO_STRINGS: usize = 7;

/// The number of remembered bytes before a text that comes first, such as `content":{"type":"text","text":"`.
const LEAD_BYTES: usize = 32;

/// The maximum length of the start of a mark, with a slash and with the angle bracket written as `\u003c`.
const MAX_CUT_BYTES: usize = NAME.len() + DIGITS + 7;

const CHUNKS: [&[u8]; 2] = [br#""agent_message_chunk""#, br#""agent_thought_chunk""#];

/// Finds lines that may contain a mark.
#[derive(Debug)]
pub(crate) struct MarkScanner {
    name: memmem::Finder<'static>,
    /// The bytes after the text of a chunk, beginning with the closing quote. Empty if they are not known.
    tail: Vec<u8>,
    /// True if the text comes before the kind of the update. The start of the text is not known then.
    is_text_first: bool,
    /// The bytes before a text that comes first, up to its opening quote.
    lead: Vec<u8>,
}

impl Default for MarkScanner {
    fn default() -> Self {
        Self { name: memmem::Finder::new(NAME), tail: Vec::new(), is_text_first: false, lead: Vec::new() }
    }
}

impl MarkScanner {
    /// Returns true if this line of JSON may contain a whole mark.
    pub(crate) fn has_mark(&self, line: &[u8]) -> bool {
        self.name.find(line).is_some()
    }

    /// Returns true if a streaming update has to be parsed, because it may contain a mark, end with the start of one, or be the
    /// message about a compaction.
    pub(crate) fn must_be_read(&mut self, line: &[u8], classifier: &mut Classifier) -> bool {
        let known = classifier.known();
        // The classifier only knows more than the kind if the shape was extended by `learn`.
        if (known > classifier.kind() || (self.is_text_first && is_chunk(line, classifier)))
            && !self.tail.is_empty()
            && let Some(text) = strip_suffix(&line[known..], &self.tail)
            && (self.is_one_string(text) || self.ends_with_text(text))
        {
            return ends_in_mark(&line[..known + text.len()])
                || (text.len() > MIN_BYTES && (self.has_mark(text) || self.may_be_message(text)));
        }
        self.must_be_read_whole(line, classifier)
    }

    /// Returns true if `text` is certainly one string, so that it is the text of the chunk.
    #[inline]
    fn is_one_string(&self, text: &[u8]) -> bool {
        !self.is_text_first && (text.len() < MIN_TWO_STRINGS || !contains(text, b'"'))
    }

    /// Returns true if `bytes` ends with the text of the chunk. The bytes after the text of the last chunk can also follow another string,
    /// for example a value of `_meta`.
    #[inline(never)]
    fn ends_with_text(&self, bytes: &[u8]) -> bool {
        let mut end = bytes.len();
        loop {
            let quote = if end < MANY {
                bytes[..end].iter().rposition(|&byte| byte == b'"')
            } else {
                memchr::memrchr(b'"', &bytes[..end])
            };
            match quote {
                None => return !self.is_text_first,
                // The quote may be escaped. Otherwise the backslash before it is escaped, and another quote comes before the text.
                Some(at) if at > 0 && bytes[at - 1] == b'\\' => end = at,
                Some(at) => return self.is_text_first && bytes[..=at].ends_with(&self.lead),
            }
        }
    }

    /// Performs the check of [`must_be_read`](Self::must_be_read) for a line that doesn't end like the last chunk. It is never
    /// inlined, so that other lines don't have to save its registers.
    #[inline(never)]
    fn must_be_read_whole(&mut self, line: &[u8], classifier: &mut Classifier) -> bool {
        (is_chunk(line, classifier) && self.learn(line, classifier))
            || self.has_mark(&line[classifier.known()..])
    }

    /// Returns true if `text` may be the message about a compaction. If the start of the text is not known, the end decides.
    fn may_be_message(&self, text: &[u8]) -> bool {
        if self.is_text_first {
            compaction::may_end_in_message(text)
        } else {
            compaction::may_be_message(text)
        }
    }

    /// Remembers the form of a chunk. Returns true if its text ends with the start of a mark, or may be the message about a
    /// compaction.
    fn learn(&mut self, line: &[u8], classifier: &mut Classifier) -> bool {
        let text = Message::parse(line).and_then(|message| message.param(&["update", "content", "text"]));
        let Some(text) = text.filter(|text| text.raw().len() > 1) else { return false };
        let start = text.span().start + 1;
        let end = text.span().end - 1;
        self.is_text_first = start < classifier.kind();
        if !self.is_text_first {
            classifier.extend(line, start);
        }
        self.lead.clear();
        self.lead.extend_from_slice(&line[start.saturating_sub(LEAD_BYTES)..start]);
        self.tail.clear();
        if line.len() - end <= MAX_TAIL_BYTES {
            self.tail.extend_from_slice(&line[end..]);
        }
        ends_in_mark(&line[..end]) || compaction::may_be_message(&line[start..end])
    }
}

/// Returns true if the update that was classified last is a chunk of a message or of a thought.
fn is_chunk(line: &[u8], classifier: &Classifier) -> bool {
    CHUNKS.iter().any(|chunk| line[classifier.kind()..].starts_with(chunk))
}

/// The pairs of bytes with which the start of a mark can end: the bytes before the last one, and the last bytes. A mark can also
/// end with any byte and `<`.
const PAIRS: [(&[u8], &[u8]); 16] = [
    (b"3", b"cC"),
    (b"<cC", b"/a"),
    (b"/", b"a"),
    (b"a", b"c"),
    (b"c", b"p"),
    (b"p", b"-r"),
    (b"-", b"sp"),
    (b"s", b"k-"),
    (b"k", b"i"),
    (b"i", b"l"),
    (b"l", b"ls"),
    (b"r", b"o"),
    (b"o", b"x"),
    (b"x", b"y"),
    (b"y", b":"),
    (b":0123456789abcdef", b"0123456789abcdef"),
];

/// [`PAIRS`] as tables. For each byte, the first table has the set of pairs in which it is before the last one, and the second table
/// has the set of pairs in which it is the last one. In both, bit `N` is for pair `N`, and the bit after those is for `<`.
static SETS: [[u32; 256]; 2] = {
    const ANGLE: u32 = 1 << PAIRS.len();
    let mut sets = [[ANGLE; 256], [0; 256]];
    sets[1][b'<' as usize] = ANGLE;
    let mut pair = 0;
    while pair < PAIRS.len() {
        let (before, last) = PAIRS[pair];
        let mut at = 0;
        while at < before.len() * last.len() {
            sets[0][before[at % before.len()] as usize] |= 1 << pair;
            sets[1][last[at / before.len()] as usize] |= 1 << pair;
            at += 1;
        }
        pair += 1;
    }
    sets
};

/// Returns true if `text` ends with what may be the start of a mark. `text` is a JSON string without its closing quote, and can
/// include the bytes before the string.
#[inline]
fn ends_in_mark(text: &[u8]) -> bool {
    // For nearly all texts, it's enough to look at the last two bytes to rule out a mark.
    let Some(&[before, last]) = text.last_chunk() else { return false };
    SETS[0][usize::from(before)] & SETS[1][usize::from(last)] != 0 && is_cut(text)
}

/// Performs the complete check of [`ends_in_mark`]. It is never inlined, so that each text doesn't have to save its registers.
#[cold]
#[inline(never)]
fn is_cut(text: &[u8]) -> bool {
    let end = &text[text.len().saturating_sub(MAX_CUT_BYTES)..];
    let Some(at) = memchr::memrchr2(b'<', b'\\', end) else { return false };
    let ([b'<', rest @ ..] | [b'\\', b'u', b'0', b'0', b'3', b'c' | b'C', rest @ ..]) = &end[at..] else {
        return false;
    };
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    rest.strip_prefix(NAME.as_bytes()).map_or_else(
        || NAME.as_bytes().starts_with(rest),
        |id| id.len() <= DIGITS && id.iter().all(u8::is_ascii_hexdigit),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{marks::Mark, updates};

    const PLAIN: &str = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"TEXT"}}}}"#;
    const OTHER: &str = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_thought_chunk","content":{"text":"TEXT","type":"text"},"messageId":"m"}}}"#;
    const FIRST: &str = r#"{"method":"session/update","params":{"update":{"content":{"text":"TEXT"},"sessionUpdate":"agent_message_chunk"}}}"#;
    const PLAN: &str = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","x":"TEXT"}}}"#;

    /// Returns the result for each of these texts, in lines of this form.
    fn seen(frame: &str, texts: &[&str]) -> Vec<bool> {
        let mut scanner = MarkScanner::default();
        let mut classifier = Classifier::new(updates::READ);
        let look = |text: &&str| {
            let line = frame.replace("TEXT", text) + "\n";
            classifier.classify(line.as_bytes());
            scanner.must_be_read(line.as_bytes(), &mut classifier)
        };
        texts.iter().map(look).collect()
    }

    #[test]
    fn marks_are_found() {
        let whole = Mark::new(7).open();
        for (text, expected) in [
            ("", false),
            ("a < b <acp-skill more", false),
            ("x<", true),
            ("<", true),
            ("</", true),
            ("<acp-skills", true),
            ("</acp-skills-proxy:", true),
            ("<acp-skills-proxy:0123abcd07757998", true),
            ("\\u003c", true),
            ("\\u003Cacp-skills", true),
            ("\\u003c/acp-skills-proxy:01", true),
            ("<acp\\n", false),
            ("<acp-skillet", false),
            ("<table", false),
            ("made", false),
            ("\\u003", false),
            ("\\u003e", false),
            ("c", false),
            (&whole, true),
            (&format!("before {whole} behind"), true),
            (&whole.replace('<', "\\u003c").replace('>', "\\u003e and more"), true),
        ] {
            for frame in [PLAIN, OTHER, FIRST] {
                assert_eq!(seen(frame, &[text, "x", text]), [expected, false, expected], "{text} in {frame}");
            }
            if text.contains(":00000007") {
                assert_eq!(seen(PLAN, &[text, "", text]), [true, false, true], "{text} in a plan");
            }
        }
        // The bytes after the text of the last line can also follow another string.
        for (frame, other) in [
            (PLAIN, PLAIN.replace(r#"TEXT"}}}}"#, r#"TEXT"},"_meta":{"k":"v"}}}}"#)),
            (PLAIN, PLAIN.replace(r#"TEXT"}}}}"#, r#"TEXT"},"_meta":{"k":"\\\\"}}}}"#)),
            (FIRST, FIRST.replace(r#"TEXT"},"#, r#"TEXT"},"_meta":{"text":"v"},"#)),
            (FIRST, FIRST.replace(r#"TEXT"},"#, r#"TEXT","annotations":"text"},"#)),
        ] {
            let mut scanner = MarkScanner::default();
            let mut classifier = Classifier::new(updates::READ);
            for (frame, text, expected) in
                [(frame, "x", false), (frame, "x", false), (&*other, "say \\\"a\\\" <acp-skills", true)]
            {
                let line = frame.replace("TEXT", text) + "\n";
                classifier.classify(line.as_bytes());
                assert_eq!(scanner.must_be_read(line.as_bytes(), &mut classifier), expected, "{line}");
            }
        }
        // When the lines start to look different, the scanner learns the new form.
        for frames in [[PLAIN, OTHER], [OTHER, PLAIN], [PLAIN, FIRST]] {
            let mut scanner = MarkScanner::default();
            let mut classifier = Classifier::new(updates::READ);
            for frame in frames.repeat(2) {
                let line = frame.replace("TEXT", "a <acp");
                classifier.classify(line.as_bytes());
                assert!(scanner.must_be_read(line.as_bytes(), &mut classifier), "{line}");
            }
        }
    }

    proptest! {
        /// The first piece of a split mark is always found.
        #[test]
        fn finds_the_start_of_a_split_mark(before in "[a-z <\\-]{0,40}", run: u32, close: bool, escaped: bool, cut in 1_usize..36) {
            let mark = Mark::new(run);
            let mark = if close { mark.close() } else { mark.open() };
            let text = format!("{before}{}", &mark[..cut.min(mark.len())]);
            let text = if escaped { text.replace('<', "\\u003c") } else { text };
            prop_assert_eq!(seen(PLAIN, &["x", &text]), [false, true]);
        }
    }
}
