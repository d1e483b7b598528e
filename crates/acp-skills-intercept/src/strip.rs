//! Removes the text that the proxy injects into prompts from messages of the agent: replayed history, live echoes, and titles.
//!
//! Agents return a prompt as one chunk per block, merged into one chunk with or without a separator, flattened to one line,
//! truncated, or split anywhere. The injected text is always enclosed in two marks without spaces, so we can find it in all of
//! these cases, even if an earlier run with other skills wrote it. If the injected text represents a command, it is replaced by
//! the command (see `marks`). A text that only looks like a mark, or that has no closing mark, belongs to the user and stays as
//! it is.

use std::{mem, ops::Range};

use acp_skills_wire::{Edit, Message};

use crate::marks::{self, Mark, Next};

/// The maximum size of the lines that are held back until the closing mark arrives, in bytes.
const MAX_HELD_BYTES: usize = 4 * 1024 * 1024;

/// The minimum length of a truncated mark at the end of a title or before another update, in bytes. A shorter one is taken for the
/// user's text.
const MIN_CUT_BYTES: usize = 5;

/// Finds the injected texts in a text to which chunks are added.
#[derive(Debug, Default)]
struct Scanner {
    state: State,
    /// The parts to remove, in order.
    cuts: Vec<Cut>,
}

#[derive(Debug)]
enum State {
    /// No injected text is open. The text before this offset is decided.
    Outside(usize),
    /// The injected text ends at the end of the text so far. Its line break may still arrive.
    Closed,
    /// A mark is open. The text is ours if the closing mark arrives.
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
    /// The offset of the opening mark.
    start: usize,
    /// The offset of the text after the opening mark.
    words: usize,
    /// The offset up to which we have searched for the closing mark.
    searched: usize,
}

/// An injected text, including its marks.
#[derive(Debug)]
struct Cut {
    span: Range<usize>,
    /// The command that the text represents, or an empty string.
    command: String,
    /// True if the arguments of the command follow.
    has_arguments: bool,
    /// The text between the marks.
    words: String,
}

impl Inside {
    fn new(mark: Mark, span: &Range<usize>) -> Self {
        Self { mark, start: span.start, words: span.end, searched: span.end }
    }
}

impl Scanner {
    /// Continues to the end of `text`. Returns the length of the part that is decided.
    fn scan(&mut self, text: &str) -> usize {
        loop {
            match &mut self.state {
                State::Outside(from) => match Next::find(text, *from) {
                    Next::Open(mark, span) => {
                        self.state = State::Inside(Inside::new(mark, &span));
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
                        // The text is JSON inside a string here, so line breaks are escaped.
                        let is_nested = ours.starts_with("\\n");
                        let after = if is_nested { after.trim_start_matches("\\n") } else { after };
                        let end = text.len() - without_separator(after).len();
                        let command = marks::command(ours);
                        let floor = self.cuts.last().map_or(0, |cut| cut.span.end);
                        // The injected text is at the end, so the separator that the agent added is in front of it.
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
                    // We never put a mark into our text, so the previous opening mark must have been written by the user.
                    Next::Open(mark, span) => {
                        *inside = Inside::new(mark, &span);
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

    /// Removes the line break after the last injected text. It is called when more text arrives, which begins at `end`.
    fn goes_on(&mut self, text: &str, end: usize) {
        if !matches!(self.state, State::Closed) {
            return;
        }
        let line_break = usize::from(text[end..].starts_with('\n'));
        if line_break > 0 {
            self.cuts.push(Cut {
                span: end..end + line_break,
                command: String::new(),
                has_arguments: false,
                words: String::new(),
            });
        }
        self.state = State::Outside(end + line_break);
    }

    /// Returns `text[span]` as the user should see it.
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

    /// Shifts all offsets, because the first `length` bytes of the text were removed.
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

/// Removes the separators at the start of `text`: the injected text ends with a newline, and agents that merge blocks may add
/// another separator.
fn without_separator(text: &str) -> &str {
    let text = text.trim_start_matches(['\r', '\n']);
    text.strip_prefix(' ').unwrap_or(text)
}

/// Removes the line breaks at the end of `text`. If `is_nested`, they are escaped as `\n`.
fn before_separator(text: &str, is_nested: bool) -> &str {
    if is_nested { text.trim_end_matches("\\n") } else { text.trim_end_matches(['\r', '\n']) }
}

/// Removes the injected text from a title. Returns `None` if the title contains none of it; the result can be empty. `words` is
/// the start of the user's first prompt, if it is known.
pub(crate) fn title(text: &str, words: Option<&str>) -> Option<String> {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut scanner = Scanner::default();
    scanner.scan(text);
    if let State::Inside(Inside { start, words, .. }) = scanner.state {
        // The title was truncated in the middle of our text.
        let clean = scanner.clean(text, 0..start) + &marks::cut_off(&text[words..]);
        return Some(one_line(&clean));
    }
    if !scanner.cuts.is_empty() {
        return Some(one_line(&scanner.clean(text, 0..text.len())));
    }
    // It's also possible that the agent truncated the title in the middle of the mark, with or without an ellipsis.
    let end = text.trim_end().trim_end_matches(['…', '.']).trim_end();
    let Next::Cut(at) = Next::find(end, 0) else { return None };
    let cut = &end[at..];
    let is_the_users = words.is_some_and(|words| words.starts_with(&one_line(end)));
    // If the title already includes all of the user's words, a shorter piece must be part of a mark as well.
    let is_behind = words.is_some_and(|words| words == one_line(&end[..at]));
    let is_cut = (cut.len() >= MIN_CUT_BYTES || is_behind) && !cut.starts_with("</") && !is_the_users;
    is_cut.then(|| end[..at].trim_end().to_owned())
}

/// Removes the injected text from any other string. Returns `None` if the string contains none of it. If the agent truncated the
/// string, the result ends where the injected text begins, provided that the rest can't be text of the user.
pub(crate) fn string(text: &str) -> Option<String> {
    let mut scanner = Scanner::default();
    let decided = scanner.scan(text);
    if let State::Inside(Inside { start, words, .. }) = scanner.state {
        let clean = scanner.clean(text, 0..start);
        let command = marks::cut_off(&text[words..]);
        let clean = if command.is_empty() { before_separator(&clean, false) } else { &clean };
        return Some(clean.to_owned() + &command);
    }
    let end = if marks::is_verified(&text[decided..]) { decided } else { text.len() };
    (!scanner.cuts.is_empty() || end < text.len()).then(|| scanner.clean(text, 0..end))
}

/// The result of adding a chunk to a [`Stream`].
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// The lines to forward, in order; `None` if only this chunk is forwarded, unchanged.
    pub(crate) lines: Option<Vec<Vec<u8>>>,
    /// The text in these lines, without injected text.
    pub(crate) clean: String,
    /// Injected texts that ended in this chunk.
    pub(crate) ours: Vec<String>,
    /// True if the last injected text represents a command whose arguments follow in the user's own text.
    pub(crate) awaits_arguments: bool,
}

/// The chunks of one message. The injected text may begin in one chunk and end in another.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Lines that are held back until their text is decided.
    held: Vec<Held>,
    /// The concatenated texts of the lines in `held`.
    text: String,
    /// The size of the lines in `held`, in bytes.
    bytes: usize,
    scanner: Scanner,
}

#[derive(Debug)]
struct Held {
    line: Vec<u8>,
    /// The end of the line's text in [`Stream::text`].
    end: usize,
}

impl Stream {
    /// Returns true if no line is held back and the next chunk needs no special handling.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty() && !matches!(self.scanner.state, State::Closed)
    }

    /// Returns true if an opening mark was found, or most probably the start of one, and the closing mark has not arrived.
    pub(crate) fn is_inside(&self) -> bool {
        match &self.scanner.state {
            State::Outside(decided) => self.text.len() >= decided + MIN_CUT_BYTES,
            State::Inside(_) => true,
            State::Closed => false,
        }
    }

    /// Processes the next chunk. `text` is its text, and `line` the whole line.
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

    /// Ends the message and returns the held lines. Lines without the injected text are unchanged.
    pub(crate) fn flush(&mut self) -> Vec<Vec<u8>> {
        let passed = self.release(self.text.len());
        self.scanner = Scanner::default();
        passed.lines.unwrap_or_default()
    }

    /// Releases all lines with texts that end at or before `decided`.
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

/// Returns the chunk in `line` with another text.
fn rewrite(line: &[u8], text: &str) -> Vec<u8> {
    let content = Message::parse(line).and_then(|message| message.param(&["update", "content"]));
    let Some((content, node)) = content.and_then(|content| Some((content, content.get("text")?))) else {
        return line.to_vec();
    };
    let mut edit = Edit::new();
    edit.set(node, &text.into());
    if node.as_text().is_some_and(|text| marks::begins_with_ours(&text)) {
        // Remove the annotations, because they say that the block is meant for the model.
        edit.remove(content, "annotations");
    }
    edit.apply(line)
}

#[cfg(test)]
mod tests;
