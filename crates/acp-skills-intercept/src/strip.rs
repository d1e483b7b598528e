//! Taking our text out of what comes back: history that is replayed, live echoes, titles.
//!
//! Agents return a prompt as one chunk per block, merged into one chunk with or without a separator, flattened to one
//! line, cut off, or split anywhere. Our text always stands between two marks that have no space in them, so all of
//! that leaves something to find; also when an earlier run with other skills wrote it. Where our text stands for a
//! command, the command takes its place (`marks`).

use std::mem;

use acp_skills_wire::{Edit, Message};

use crate::marks::{self, CLOSE, OPEN};

/// How many bytes of chunks are kept back while the end of our text is awaited.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// How much of [`OPEN`] at the end of a text is enough to suspect that the rest follows, in bytes.
const MIN_PREFIX_BYTES: usize = 5;

/// `text` without our text; `None` when there is none of it. The second value is what of our text was still open at the
/// end.
fn strip(text: &str) -> Option<(String, Option<&str>)> {
    let (before, mut rest) = text.split_once(OPEN)?;
    let mut clean = before.to_owned();
    loop {
        let Some((ours, after)) = rest.split_once(CLOSE) else { return Some((clean, Some(rest))) };
        clean.push_str(&marks::command(ours));
        let after = without_separator(after);
        if let Some((between, again)) = after.split_once(OPEN) {
            clean.push_str(between);
            rest = again;
        } else {
            clean.push_str(after);
            return Some((clean, None));
        }
    }
}

/// Our text ends with a newline, and agents that merge blocks may put another separator behind it.
fn without_separator(text: &str) -> &str {
    let text = text.trim_start_matches(['\r', '\n']);
    text.strip_prefix(' ').unwrap_or(text)
}

/// How many bytes at the end of `text` are the beginning of [`OPEN`].
fn open_prefix(text: &str) -> usize {
    (MIN_PREFIX_BYTES..OPEN.len()).rev().find(|&length| text.ends_with(&OPEN[..length])).unwrap_or(0)
}

/// A title without our text, possibly empty; `None` when there is none of it.
pub(crate) fn title(text: &str) -> Option<String> {
    if let Some((mut clean, open)) = strip(text) {
        clean.push_str(&open.map(marks::cut_off).unwrap_or_default());
        return Some(clean.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    // Cut off within the mark itself, with or without a sign of it.
    let end = text.trim_end().trim_end_matches(['…', '.']).trim_end();
    let cut = open_prefix(end);
    (cut > 0).then(|| end[..end.len() - cut].trim_end().to_owned())
}

/// What becomes of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// It goes on as it is.
    Untouched,
    /// It goes on with this text.
    Text(String),
    /// It does not go on, or not yet.
    Nothing,
}

/// The chunks of one session's user messages, in which our text may begin in one and end in another.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    /// A chunk ended with the beginning of our mark; it is kept back, with those that go on with the mark.
    Suspect { kept: Vec<Vec<u8>>, words: String, prefix: usize },
    /// Our text began and has not ended.
    Inside(Inside),
    /// Our text ended with the chunk, but for its last line break, which may come with the next one.
    Closed,
}

#[derive(Debug, Default)]
struct Inside {
    /// The chunk in which our text began, for its shape.
    first: Vec<u8>,
    /// The beginning of our text, as far as it may say what was typed.
    ours: String,
    /// Chunks that are kept back: if the end does not come, our text was cut off and they are the user's.
    kept: Vec<Vec<u8>>,
    bytes: usize,
    /// The end of the text so far: the closing mark may be split too.
    tail: String,
}

impl Stream {
    /// Whether nothing is awaited.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// The chunks that were kept back, to go on as they came.
    pub(crate) fn flush(&mut self) -> Vec<Vec<u8>> {
        match mem::take(&mut self.state) {
            State::Idle | State::Closed => Vec::new(),
            State::Suspect { kept, .. } => kept,
            State::Inside(inside) => inside.flush(),
        }
    }

    /// Decides about the next chunk: its text, and the line that it came in. Lines that were kept back and turn out
    /// to be the user's are added to `before`.
    pub(crate) fn chunk(&mut self, text: &str, line: &[u8], before: &mut Vec<Vec<u8>>) -> Chunk {
        match mem::take(&mut self.state) {
            State::Idle => self.outside(text, line),
            State::Suspect { mut kept, words, prefix } => {
                let missing = &OPEN[prefix..];
                if !text.is_empty() && text.len() < missing.len() && missing.starts_with(text) {
                    kept.push(line.to_vec());
                    self.state = State::Suspect { kept, words, prefix: prefix + text.len() };
                    return Chunk::Nothing;
                }
                let Some(rest) = text.strip_prefix(missing) else {
                    before.append(&mut kept);
                    return self.outside(text, line);
                };
                if !words.is_empty() {
                    before.extend(kept.first().map(|line| rewrite(line, &words)));
                }
                self.inside(rest, line, Inside { first: line.to_vec(), ..Inside::default() }, before)
            }
            State::Inside(inside) => self.inside(text, line, inside, before),
            State::Closed => {
                let Some(rest) = text.strip_prefix('\n') else { return self.outside(text, line) };
                match self.outside(rest, &rewrite(line, rest)) {
                    Chunk::Untouched if rest.is_empty() => Chunk::Nothing,
                    Chunk::Untouched => Chunk::Text(rest.to_owned()),
                    chunk => chunk,
                }
            }
        }
    }

    fn outside(&mut self, text: &str, line: &[u8]) -> Chunk {
        let Some((clean, open)) = strip(text) else {
            let prefix = open_prefix(text);
            if prefix == 0 {
                return Chunk::Untouched;
            }
            let words = text[..text.len() - prefix].to_owned();
            self.state = State::Suspect { kept: vec![line.to_vec()], words, prefix };
            return Chunk::Nothing;
        };
        if let Some(ours) = open {
            let mut inside = Inside { first: line.to_vec(), tail: tail(text), ..Inside::default() };
            inside.read(ours);
            self.state = State::Inside(inside);
        } else if text.ends_with(CLOSE) {
            self.state = State::Closed;
        }
        if clean.is_empty() { Chunk::Nothing } else { Chunk::Text(clean) }
    }

    fn inside(&mut self, text: &str, line: &[u8], mut inside: Inside, before: &mut Vec<Vec<u8>>) -> Chunk {
        let joined = format!("{}{text}", inside.tail);
        inside.read(text);
        if let Some((_, after)) = joined.split_once(CLOSE) {
            if after.is_empty() {
                self.state = State::Closed;
                let clean = marks::command(&inside.ours);
                return if clean.is_empty() { Chunk::Nothing } else { Chunk::Text(clean) };
            }
            let after = without_separator(after);
            let clean = marks::command(&inside.ours);
            let clean = match self.outside(after, &rewrite(line, after)) {
                Chunk::Untouched => clean + after,
                Chunk::Text(text) => clean + &text,
                Chunk::Nothing => clean,
            };
            return if clean.is_empty() { Chunk::Nothing } else { Chunk::Text(clean) };
        }
        inside.bytes += line.len();
        inside.kept.push(line.to_vec());
        if inside.bytes > MAX_KEPT_BYTES {
            before.append(&mut inside.flush());
            return Chunk::Nothing;
        }
        inside.tail = tail(&joined);
        self.state = State::Inside(inside);
        Chunk::Nothing
    }
}

impl Inside {
    /// Our text goes on with this.
    fn read(&mut self, text: &str) {
        if self.ours.len() < marks::MAX_TYPED_BYTES {
            self.ours.extend(text.chars().take(marks::MAX_TYPED_BYTES));
        }
    }

    /// Our text does not end: what was typed, and the chunks behind it.
    fn flush(self) -> Vec<Vec<u8>> {
        // What follows are the arguments.
        let command = if self.kept.is_empty() { marks::cut_off } else { marks::command };
        let typed = command(&self.ours);
        let typed = (!typed.is_empty()).then(|| rewrite(&self.first, &typed));
        typed.into_iter().chain(self.kept).collect()
    }
}

/// As much of the end of `text` as could be the beginning of [`CLOSE`].
fn tail(text: &str) -> String {
    let start = text.len().saturating_sub(CLOSE.len() - 1);
    let start = (start..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    text[start..].to_owned()
}

/// The chunk in `line` with another text.
pub(crate) fn rewrite(line: &[u8], text: &str) -> Vec<u8> {
    let content = Message::parse(line).and_then(|message| message.param(&["update", "content"]));
    let Some((content, node)) = content.and_then(|content| Some((content, content.get("text")?))) else {
        return line.to_vec();
    };
    let mut edit = Edit::new();
    edit.set(node, &text.into());
    if node.as_str().is_some_and(|text| text.starts_with(OPEN)) {
        // They are of our block, which is for the model alone.
        edit.remove(content, "annotations");
    }
    edit.apply(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "<acp-skills-proxy>\n<available_skills>…\nUse them.\n</acp-skills-proxy>\n";

    const COMMAND: &str =
        "<acp-skills-proxy>\n<typed>/review <rest>src/main.rs</rest></typed>\nDo it.\n</acp-skills-proxy>\n";

    #[test]
    fn titles() {
        for (title_text, clean) in [
            ("Fix the bug", None),
            ("a < b and <acp", None),
            (&format!("{OURS}Fix the bug"), Some("Fix the bug")),
            ("<acp-skills-proxy> <available_skills> … </acp-skills-proxy> Fix the bug", Some("Fix the bug")),
            ("<acp-skills-proxy> <available_skills> <skill> <na", Some("")),
            ("<acp-skills-pr…", Some("")),
            ("Fix it <acp-skills-proxy>...", Some("Fix it")),
            ("<acp-skills-proxy>", Some("")),
            (&format!("{COMMAND}src/main.rs"), Some("/review src/main.rs")),
            (&format!("{OURS}{COMMAND}src/main.rs"), Some("/review src/main.rs")),
            (
                "<acp-skills-proxy> <typed>/review <rest>src/main.rs</rest></typed> The user inv…",
                Some("/review src/main.rs"),
            ),
            ("<acp-skills-proxy> <typed>/review <rest>src/ma…", Some("/review src/ma…")),
            ("<acp-skills-proxy> <typed>/rev", Some("/rev")),
            ("<acp-skills-proxy> <typ…", Some("")),
        ] {
            assert_eq!(title(title_text).as_deref(), clean, "{title_text}");
        }
    }

    fn line(text: &str) -> Vec<u8> {
        let params = serde_json::json!({ "update": { "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } } });
        acp_skills_wire::build::notification("session/update", &params)
    }

    fn text_of(line: &[u8]) -> String {
        Message::parse(line)
            .unwrap()
            .param(&["update", "content", "text"])
            .unwrap()
            .as_str()
            .unwrap()
            .into_owned()
    }

    /// What the client sees of these chunks.
    fn seen(chunks: &[&str]) -> Vec<String> {
        let (mut stream, mut seen) = (Stream::default(), Vec::new());
        for text in chunks {
            let mut before = Vec::new();
            let decided = stream.chunk(text, &line(text), &mut before);
            seen.extend(before.iter().map(|line| text_of(line)));
            match decided {
                Chunk::Untouched => seen.push((*text).to_owned()),
                Chunk::Text(text) => seen.push(text),
                Chunk::Nothing => {}
            }
        }
        seen.extend(stream.flush().iter().map(|line| text_of(line)));
        seen
    }

    #[test]
    fn chunks() {
        let merged = format!("{OURS}hello");
        let spaced = format!("{OURS}\n hello");
        let around = format!("before {OURS}after");
        let command = format!("{COMMAND}src/main.rs");
        let twice = format!("{OURS}a {OURS}b");
        for (chunks, expected) in [
            (vec!["hello"], vec!["hello"]),
            (vec![OURS, "hello"], vec!["hello"]),
            (vec![&merged], vec!["hello"]),
            (vec![&spaced], vec!["hello"]),
            (vec![&around], vec!["before after"]),
            (vec![&twice], vec!["a b"]),
            (
                vec!["<acp-skills-proxy>\nskills", "more", "end</acp-skills-proxy>\nhello", "you"],
                vec!["hello", "you"],
            ),
            (vec!["<acp-skills-proxy>\nskills</acp-skil", "ls-proxy>\nhello"], vec!["hello"]),
            (vec!["say <acp-ski", "lls-proxy>\nskills</acp-skills-proxy>hello"], vec!["say ", "hello"]),
            (vec!["<acp-ski", "lled people"], vec!["<acp-ski", "lled people"]),
            (vec!["<acp-skills-proxy> cut off", "the user's"], vec!["the user's"]),
            (vec!["x <acp-skills-proxy> cut"], vec!["x "]),
            (vec!["<acp-skills-proxy>\nskills</acp-skills-proxy>", "\nhello"], vec!["hello"]),
            (vec!["<acp-skills-proxy>\nski", "lls</acp-skills-proxy>", "\n", "\nhello"], vec!["\nhello"]),
            (vec![OURS, "\nhello"], vec!["\nhello"]),
            (vec![COMMAND, "src/main.rs"], vec!["/review ", "src/main.rs"]),
            (vec![OURS, COMMAND, "src/main.rs"], vec!["/review ", "src/main.rs"]),
            (vec![&command], vec!["/review src/main.rs"]),
            (vec![&command[..30], &command[30..60], &command[60..]], vec!["/review src/main.rs"]),
            (vec![&command[..90]], vec!["/review src/main.rs"]),
            (vec![&command[..90], "src/main.rs"], vec!["/review ", "src/main.rs"]),
        ] {
            assert_eq!(seen(&chunks), expected, "{chunks:?}");
        }
    }

    proptest::proptest! {
        /// However our text is split, the user's words come out whole.
        #[test]
        fn any_split(words in "[a-z<>/ -]{0,20}", cuts in proptest::collection::vec(0_usize..200, 0..6)) {
            let whole = format!("{OURS}{}", words.trim_start());
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(whole.len()))
                .filter(|&cut| whole.is_char_boundary(cut) && cut >= MIN_PREFIX_BYTES).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            cuts.dedup();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
            proptest::prop_assert_eq!(seen(&chunks).concat(), words.trim_start());
        }

        /// The same for a command.
        #[test]
        fn any_split_of_a_command(cuts in proptest::collection::vec(0_usize..200, 0..6)) {
            let whole = format!("{COMMAND}src/main.rs");
            let mut cuts: Vec<_> = cuts.into_iter().filter(|&cut| cut >= MIN_PREFIX_BYTES && cut < whole.len()).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            cuts.dedup();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
            proptest::prop_assert_eq!(seen(&chunks).concat(), "/review src/main.rs");
        }
    }
}
