//! Taking our text out of what comes back: history that is replayed, live echoes, titles.
//!
//! Agents return a prompt as one chunk per block, merged into one chunk with or without a separator, flattened to one
//! line, cut off, or split anywhere. Our text always stands between two marks that have no space in them, so all of
//! that leaves something to find; also when an earlier run with other skills wrote it. Where our text stands for a
//! command, the command takes its place (`marks`). What looks like a mark and is none, and what is never closed, is the
//! user's and comes back as it was.

use std::{mem, ops::Range};

use acp_skills_wire::{Edit, Message};

use crate::marks::{self, Mark, Next};

/// How many bytes of lines are held while the end of our text is awaited.
const MAX_HELD_BYTES: usize = 4 * 1024 * 1024;

/// How much of a mark at the end of a title is enough to take it for one, in bytes.
const MIN_CUT_BYTES: usize = 5;

/// Finds our texts in a text that may grow.
#[derive(Debug, Default)]
struct Scanner {
    state: State,
    /// What is to be taken out, in order.
    cuts: Vec<Cut>,
}

#[derive(Debug)]
enum State {
    /// Nothing of ours is open; what is before this offset is known to be the user's.
    Outside(usize),
    /// Our text ended where the text ends so far, but for its line break, which may come yet.
    Closed,
    /// A text of ours may be open.
    Inside(Inside),
}

impl Default for State {
    fn default() -> Self {
        Self::Outside(0)
    }
}

#[derive(Debug)]
struct Inside {
    mark: Mark,
    /// Where the mark begins.
    start: usize,
    /// Where the words behind it begin.
    words: usize,
    /// Up to here there is no mark that closes.
    searched: usize,
}

/// A text of ours with its marks.
#[derive(Debug)]
struct Cut {
    span: Range<usize>,
    /// The command that it stands for.
    command: String,
    /// Whether the arguments of that follow.
    has_arguments: bool,
    /// What it says.
    words: String,
}

impl Scanner {
    /// Looks on to the end of `text`. Returns how much of it is decided.
    fn scan(&mut self, text: &str) -> usize {
        loop {
            match &mut self.state {
                State::Outside(from) => match Next::find(text, *from) {
                    Next::Open(mark, span) => {
                        let (start, words) = (span.start, span.end);
                        self.state = State::Inside(Inside { mark, start, words, searched: words });
                    }
                    Next::Close(_, span) => *from = span.end,
                    Next::Cut(at) => {
                        *from = at;
                        return at;
                    }
                    Next::Nothing => {
                        *from = text.len();
                        return text.len();
                    }
                },
                State::Closed => return text.len(),
                State::Inside(inside) => match Next::find(text, inside.searched) {
                    Next::Close(mark, span) if mark == inside.mark => {
                        let ours = &text[inside.words..span.start];
                        let after = &text[span.end..];
                        // JSON in a string.
                        let is_nested = ours.starts_with("\\n");
                        let after = if is_nested { after.trim_start_matches("\\n") } else { after };
                        let end = text.len() - without_separator(after).len();
                        let command = marks::command(ours);
                        let floor = self.cuts.last().map_or(0, |cut| cut.span.end);
                        // Behind the user's words, what an agent puts between blocks comes before it.
                        let start = if command.is_empty() && end == text.len() {
                            floor + before_separator(&text[floor..inside.start], is_nested).len()
                        } else {
                            inside.start
                        };
                        self.cuts.push(Cut {
                            span: start..end,
                            command,
                            has_arguments: marks::has_arguments(ours),
                            words: ours.to_owned(),
                        });
                        if span.end == text.len() {
                            self.state = State::Closed;
                            return text.len();
                        }
                        self.state = State::Outside(end);
                    }
                    Next::Close(_, span) => inside.searched = span.end,
                    // There is no mark in a text of ours: what opened before was the user's.
                    Next::Open(mark, span) => {
                        let (start, words) = (span.start, span.end);
                        *inside = Inside { mark, start, words, searched: words };
                    }
                    Next::Cut(at) => {
                        inside.searched = at;
                        return inside.start;
                    }
                    Next::Nothing => {
                        inside.searched = text.len();
                        return inside.start;
                    }
                },
            }
        }
    }

    /// The text goes on behind `end`.
    fn goes_on(&mut self, text: &str, end: usize) {
        if !matches!(self.state, State::Closed) {
            return;
        }
        let line_break = usize::from(text[end..].starts_with('\n'));
        if line_break > 0 {
            let (command, words) = (String::new(), String::new());
            self.cuts.push(Cut { span: end..end + line_break, command, has_arguments: false, words });
        }
        self.state = State::Outside(end + line_break);
    }

    /// `text[span]` as the user sees it.
    fn clean(&self, text: &str, span: Range<usize>) -> String {
        let mut clean = String::new();
        let mut at = span.start;
        for cut in &self.cuts {
            if cut.span.end <= span.start {
                continue;
            }
            if cut.span.start >= span.end {
                break;
            }
            clean.push_str(&text[at..cut.span.start.max(at)]);
            if cut.span.end <= span.end {
                clean.push_str(&cut.command);
            }
            at = cut.span.end.min(span.end);
        }
        clean.push_str(&text[at..span.end]);
        clean
    }

    /// The first `length` bytes of the text are gone.
    fn forget(&mut self, length: usize) {
        self.cuts.retain(|cut| cut.span.end > length);
        for cut in &mut self.cuts {
            cut.span = cut.span.start.saturating_sub(length)..cut.span.end - length;
        }
        match &mut self.state {
            State::Outside(from) => *from = from.saturating_sub(length),
            State::Closed => {}
            State::Inside(inside) => {
                inside.start -= length;
                inside.words -= length;
                inside.searched -= length;
            }
        }
    }
}

/// Our text ends with a newline, and agents that merge blocks may put another separator behind it.
fn without_separator(text: &str) -> &str {
    let text = text.trim_start_matches(['\r', '\n']);
    text.strip_prefix(' ').unwrap_or(text)
}

/// What stands before the line breaks that `text` ends with.
fn before_separator(text: &str, is_nested: bool) -> &str {
    if is_nested { text.trim_end_matches("\\n") } else { text.trim_end_matches(['\r', '\n']) }
}

/// A title without our text, possibly empty; `None` when there is none of it. `words` is what the user began with, when
/// that is known.
pub(crate) fn title(text: &str, words: Option<&str>) -> Option<String> {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut scanner = Scanner::default();
    scanner.scan(text);
    if let State::Inside(Inside { start, words, .. }) = scanner.state {
        // A title is cut off anywhere.
        let clean = scanner.clean(text, 0..start) + &marks::cut_off(&text[words..]);
        return Some(one_line(&clean));
    }
    if !scanner.cuts.is_empty() {
        return Some(one_line(&scanner.clean(text, 0..text.len())));
    }
    // Cut off within the mark itself, with or without a sign of it.
    let end = text.trim_end().trim_end_matches(['…', '.']).trim_end();
    let Next::Cut(at) = Next::find(end, 0) else { return None };
    let cut = &end[at..];
    let is_the_users = words.is_some_and(|words| words.starts_with(&one_line(end)));
    // Less is enough behind all that the user wrote.
    let is_behind = words.is_some_and(|words| words == one_line(&end[..at]));
    let is_cut = (cut.len() >= MIN_CUT_BYTES || is_behind) && !cut.starts_with("</") && !is_the_users;
    is_cut.then(|| end[..at].trim_end().to_owned())
}

/// Any other string without our text; `None` when there is none of it. One that an agent has cut off ends where our text
/// begins, as far as that can be told from what a person may have written.
pub(crate) fn string(text: &str) -> Option<String> {
    let mut scanner = Scanner::default();
    let decided = scanner.scan(text);
    if let State::Inside(Inside { start, words, .. }) = scanner.state {
        let (clean, command) = (scanner.clean(text, 0..start), marks::cut_off(&text[words..]));
        let clean = if command.is_empty() { before_separator(&clean, false) } else { &clean };
        return Some(clean.to_owned() + &command);
    }
    let end = if marks::is_verified(&text[decided..]) { decided } else { text.len() };
    (!scanner.cuts.is_empty() || end < text.len()).then(|| scanner.clean(text, 0..end))
}

/// What goes on when a chunk has come.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// The lines, in order; nothing when the chunk goes on as it is and nothing before it.
    pub(crate) lines: Option<Vec<Vec<u8>>>,
    /// The text in them.
    pub(crate) clean: String,
    /// What the texts of ours said that ended.
    pub(crate) ours: Vec<String>,
    /// The last of them is a command, and its arguments are what comes next.
    pub(crate) awaits_arguments: bool,
}

/// The chunks of one message of a session, in which our text may begin in one and end in another.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Lines that wait until it is known whose their text is.
    held: Vec<Held>,
    /// Their texts, one behind the other.
    text: String,
    /// The length of the lines.
    bytes: usize,
    scanner: Scanner,
}

#[derive(Debug)]
struct Held {
    line: Vec<u8>,
    /// Where its text ends.
    end: usize,
}

impl Stream {
    /// Whether nothing is awaited.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty() && !matches!(self.scanner.state, State::Closed)
    }

    /// Whether a mark of ours is open, whose end is awaited.
    pub(crate) fn is_inside(&self) -> bool {
        matches!(self.scanner.state, State::Inside(_))
    }

    /// Decides about the next chunk: its text, and the line that it came in.
    pub(crate) fn chunk(&mut self, text: &str, line: &[u8]) -> Passed {
        if self.is_idle() && !text.contains('<') {
            return Passed { clean: text.to_owned(), ..Passed::default() };
        }
        let end = self.text.len();
        self.text.push_str(text);
        self.bytes += line.len();
        self.held.push(Held { line: line.to_vec(), end: self.text.len() });
        if !text.is_empty() {
            self.scanner.goes_on(&self.text, end);
        }
        let mut decided = self.scanner.scan(&self.text);
        if self.bytes > MAX_HELD_BYTES {
            decided = self.text.len();
            self.scanner.state = State::Outside(decided);
        }
        let mut passed = self.release(decided);
        if let Some([only]) = passed.lines.as_deref()
            && only == line
        {
            passed.lines = None;
        }
        passed
    }

    /// Nothing follows: the lines that were held go on, as they came if there is nothing of ours in them.
    pub(crate) fn flush(&mut self) -> Vec<Vec<u8>> {
        let passed = self.release(self.text.len());
        self.scanner = Scanner::default();
        passed.lines.unwrap_or_default()
    }

    /// Lets go of the lines whose texts end at or before `decided`.
    fn release(&mut self, decided: usize) -> Passed {
        let mut passed = Passed::default();
        let count = self.held.iter().take_while(|held| held.end <= decided).count();
        let mut lines = Vec::new();
        let mut start = 0;
        for Held { line, end } in self.held.drain(..count) {
            self.bytes -= line.len();
            let clean = self.scanner.clean(&self.text, start..end);
            let is_inside = |cut: &Cut| cut.span.start < end && end < cut.span.end;
            if clean == self.text[start..end]
                && !(clean.is_empty() && self.scanner.cuts.iter().any(is_inside))
            {
                lines.push(line);
            } else if !clean.is_empty() {
                lines.push(rewrite(&line, &clean));
            }
            passed.clean.push_str(&clean);
            start = end;
        }
        if let Some(cut) = self.scanner.cuts.last() {
            passed.awaits_arguments = cut.has_arguments && cut.span.end == self.text.len();
        }
        for cut in &mut self.scanner.cuts {
            if !cut.words.is_empty() {
                passed.ours.push(mem::take(&mut cut.words));
            }
        }
        self.text.drain(..start);
        for held in &mut self.held {
            held.end -= start;
        }
        if self.held.is_empty() && !matches!(self.scanner.state, State::Closed) {
            self.scanner = Scanner::default();
        } else {
            self.scanner.forget(start);
        }
        passed.lines = Some(lines);
        passed
    }
}

/// The chunk in `line` with another text.
fn rewrite(line: &[u8], text: &str) -> Vec<u8> {
    let content = Message::parse(line).and_then(|message| message.param(&["update", "content"]));
    let Some((content, node)) = content.and_then(|content| Some((content, content.get("text")?))) else {
        return line.to_vec();
    };
    let mut edit = Edit::new();
    edit.set(node, &text.into());
    if node.as_text().is_some_and(|text| marks::begins_with_ours(&text)) {
        // They are of our block, which is for the model alone.
        edit.remove(content, "annotations");
    }
    edit.apply(line)
}

#[cfg(test)]
mod tests;
