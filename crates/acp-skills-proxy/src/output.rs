//! Prints to stdout and stderr, for all commands. Lints prevent the rest of the program from printing.
//!
//! Names, descriptions, paths, files and messages of agents are untrusted. Characters that control a terminal, reorder text or
//! hide it are printed as escapes (see [`skills_core::text`]).
//!
//! A closed pipe is not an error, so `list | head` works.

#![expect(clippy::disallowed_methods, reason = "only this module prints")]

mod displayed;
mod log_lines;
mod stderr;

use std::{
    borrow::Cow,
    fmt,
    fs::File,
    io::{self, BufWriter, IsTerminal, Write},
    process::{Command, Stdio},
};

use clap::builder::StyledStr;
use serde::Serialize;
use skills_core::text::shown_lines;

use self::{
    displayed::{displayed, json_displayed},
    stderr::Stderr,
};
pub(crate) use self::{
    log_lines::{LogLines, log_once_to_stderr, log_to_stderr},
    stderr::{flush, never_block},
};

/// Prints `text` on stdout. Returns false if the reader has closed the pipe.
///
/// # Errors
/// Returns an error if stdout cannot be written.
pub(crate) fn print(text: &str) -> io::Result<bool> {
    write(&displayed(text))
}

/// Prints a text that may be long on stdout, before it is approved. It is not built in memory: `print` writes it piece by piece. If
/// `asks` is true, the user is asked about it later; the text is then shown with the program in `PAGER`, if there is one and stdin and
/// stdout are terminals.
///
/// # Errors
/// Returns an error if stdout cannot be written, or if its reader has closed it.
pub(crate) fn page(asks: bool, print: impl Fn(&mut dyn fmt::Write) -> fmt::Result) -> io::Result<()> {
    if asks && io::stdin().is_terminal() && io::stdout().is_terminal() && paged(&print) {
        return Ok(());
    }
    all_read(is_read(write_escaped(stdout()?, &print))?)
}

/// Prints `value` like [`print_json`]. If `approves` is true, something in it is approved afterwards.
///
/// # Errors
/// Returns an error if stdout cannot be written, or if `approves` is true and the reader has closed the pipe.
pub(crate) fn page_json(approves: bool, value: &impl Serialize) -> io::Result<()> {
    all_read(is_read(write_json(stdout()?, value))? || !approves)
}

/// Returns stdout without the buffer of the standard library, which ignores the error if stdout is not open for writing.
fn stdout() -> io::Result<File> {
    io::stdout().flush()?;
    #[cfg(unix)]
    let stdout = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
    #[cfg(windows)]
    let stdout = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
    Ok(stdout.into())
}

fn all_read(is_read: bool) -> io::Result<()> {
    let why = "nothing is approved, because stdout was closed before all of it was shown";
    if is_read { Ok(()) } else { Err(io::Error::other(why)) }
}

/// Shows a text with the user's pager. Returns false if there is none, or if it fails.
fn paged(print: &impl Fn(&mut dyn fmt::Write) -> fmt::Result) -> bool {
    let pager = std::env::var("PAGER").unwrap_or_default();
    let mut words = pager.split_whitespace();
    let Some(program) = words.next() else { return false };
    let Ok(mut child) = Command::new(program).args(words).stdin(Stdio::piped()).spawn() else { return false };
    if let Some(stdin) = child.stdin.take() {
        // If there is an error, the user has left the pager before the end.
        let _ = write_escaped(stdin, print);
    }
    child.wait().is_ok_and(|status| status.success())
}

/// Writes a text with escapes.
fn write_escaped(target: impl Write, print: &impl Fn(&mut dyn fmt::Write) -> fmt::Result) -> io::Result<()> {
    let mut escaped = Escaped { target: BufWriter::new(target), failed: None };
    let printed = print(&mut escaped);
    match escaped.failed {
        Some(error) => Err(error),
        None => printed.map_err(io::Error::other).and_then(|()| escaped.target.flush()),
    }
}

/// A text that is written with escapes.
struct Escaped<W: Write> {
    target: BufWriter<W>,
    /// The first error of the target, because [`fmt::Error`] can't contain it.
    failed: Option<io::Error>,
}

impl<W: Write> fmt::Write for Escaped<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One line at a time, because escapes of a large text need a lot of memory.
        for line in text.split_inclusive('\n') {
            if let Err(error) = self.target.write_all(displayed(line).as_bytes()) {
                self.failed = Some(error);
                return Err(fmt::Error);
            }
        }
        Ok(())
    }
}

/// Prints a line that is not part of the result, on stderr.
pub(crate) fn note(text: &str) {
    print_line(text);
}

/// Returns true if stderr is a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Prints `text` on stdout and keeps its color sequences. All other control characters are escaped. Returns false if the reader
/// has closed the pipe.
///
/// # Errors
/// Returns an error if stdout cannot be written.
pub(crate) fn print_colored(text: &str) -> io::Result<bool> {
    write(&colored(text))
}

/// Prints clap's help or version. Returns false if the reader has closed the pipe.
///
/// # Errors
/// Returns an error if stdout cannot be written.
pub(crate) fn print_help(help: &clap::Error) -> io::Result<bool> {
    is_read(help.print().and_then(|()| io::stdout().flush()))
}

/// Prints `value` as JSON. Unsafe characters are written as escapes of JSON, so a parser reads the original text. The JSON is not built
/// in memory, because it can contain the files of a source. Returns false if the reader has closed the pipe.
///
/// # Errors
/// Returns an error if stdout cannot be written.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<bool> {
    is_read(write_json(io::stdout().lock(), value))
}

fn write_json(target: impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut json = EscapedJson(BufWriter::new(target));
    serde_json::to_writer_pretty(&mut json, value)?;
    json.0.write_all(b"\n")?;
    json.0.flush()
}

/// JSON that is written with escapes. Each write has to be a text, which is true for the serializer.
struct EscapedJson<W: Write>(BufWriter<W>);

impl<W: Write> Write for EscapedJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.write_all(json_displayed(json_escaped(text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns true if stdout is a terminal and the user did not turn colors off with [`NO_COLOR`](https://no-color.org).
pub(crate) fn has_colors() -> bool {
    io::stdout().is_terminal() && wants_colors()
}

fn wants_colors() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints an error and its hint on stderr.
pub(crate) fn complain(message: &str, hint: Option<&str>) {
    // Indent further lines, so that they don't look like separate messages.
    print_line(&format!("error: {}", message.replace('\n', "\n  ")));
    if let Some(hint) = hint {
        advise(hint);
    }
}

/// Prints an error about the command line on stderr, in clap's style.
pub(crate) fn complain_as(error: &StyledStr) {
    let is_colored = io::stderr().is_terminal() && wants_colors();
    let text = if is_colored { error.ansi().to_string() } else { error.to_string() };
    let text = colored(text.trim_end()) + "\n";
    // If we can't write to stderr, there is nowhere to report the error to.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints a hint on stderr.
pub(crate) fn advise(hint: &str) {
    print_line(&format!("hint: {}", hint.replace('\n', "\n      ")));
}

/// Asks a question on stderr and reads a line from stdin. Returns true if the answer is `y` or `yes`.
pub(crate) fn ask(question: &str) -> bool {
    matches!(answer(&format!("{question} [y/N]")).as_str(), "y" | "yes")
}

/// Asks a question that only `word` answers with yes.
pub(crate) fn ask_for(word: &str, question: &str) -> bool {
    answer(&format!("{question} To approve, type `{word}`:")) == word
}

/// Asks a question on stderr. Returns the line that the user types, in lower case. Empty if there is an error.
pub(crate) fn answer(question: &str) -> String {
    let _ = io::stderr().write_all(format!("{} ", displayed(question)).as_bytes());
    let mut answer = String::new();
    // If there is an error, the answer will be empty.
    let _ = io::stdin().read_line(&mut answer);
    answer.trim().to_lowercase()
}

fn print_line(line: &str) {
    let line = displayed(line) + "\n";
    // If we can't write to stderr, there is nowhere to report the error to.
    let _ = Stderr.write_all(line.as_bytes());
}

fn write(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    is_read(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Returns false instead of an error if the reader has closed the pipe.
fn is_read(printed: io::Result<()>) -> io::Result<bool> {
    match printed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Escapes unsafe characters, except for the sequences that set colors.
fn colored(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(ESCAPE) {
        let (before, sequence) = rest.split_at(at);
        let length = color(sequence);
        let (kept, after) = sequence.split_at(length.unwrap_or(ESCAPE.len_utf8()));
        shown.push_str(&displayed(before));
        shown.push_str(&if length.is_some() { kept.into() } else { displayed(kept) });
        rest = after;
    }
    shown + &displayed(rest)
}

const ESCAPE: char = '\u{1b}';

/// Returns the length of the sequence that sets a color at the start of `text`, such as `ESC [ 1 ; 3 1 m`. `None` if there is no
/// such sequence.
fn color(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some("\u{1b}[".len() + end + "m".len())
}

/// Escapes unsafe characters in JSON. They can only occur inside of strings.
fn json_escaped(json: &str) -> Cow<'_, str> {
    use std::fmt::Write;
    if shown_lines(json) == json {
        return Cow::Borrowed(json);
    }
    // We look at each character on its own, so joiners are also escaped where they would be safe as part of a
    // sequence. That's fine, because we get the same text when it's parsed.
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        let mut alone = [0; 4];
        let alone = c.encode_utf8(&mut alone);
        if shown_lines(alone) == *alone {
            escaped.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Escape, bell, carriage return, C1, delete, bidirectional, zero width, tag, line separator.
    const HOSTILE: [char; 10] = [
        '\u{1b}',
        '\u{7}',
        '\r',
        '\u{9b}',
        '\u{7f}',
        '\u{202e}',
        '\u{2066}',
        '\u{200b}',
        '\u{e0041}',
        '\u{2028}',
    ];

    #[test]
    fn json_keeps_all_characters() {
        for c in HOSTILE {
            let value = json!({ "name": format!("a{c}b") });
            let shown = json_escaped(&value.to_string()).into_owned();
            assert_eq!(shown_lines(&shown), shown);
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
            // Joiners can be escaped as well if there is an unsafe character in the text.
            let value = json!(["👩\u{200d}💻", c]);
            assert_eq!(serde_json::from_str::<Value>(&json_escaped(&value.to_string())).unwrap(), value);
        }
        for text in ["{}", "\"ein Wort und nöch eins\"", "\"代码 審査\"", "\"👩\u{200d}💻\"", "[\n  1\n]"]
        {
            assert!(matches!(json_escaped(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn json_is_written_piece_by_piece() {
        let long = "line \u{1b} \"👩\u{200d}💻\"\n\u{202e}".repeat(10_000);
        let value = json!({ "a\u{200b}": [long, 1.5, null, {}], "b": HOSTILE });
        let mut written = Vec::new();
        write_json(&mut written, &value).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert_eq!(shown_lines(&written), written);
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        let plain = json!({ "a": [1, "ü"] });
        let mut written = Vec::new();
        write_json(&mut written, &plain).unwrap();
        assert_eq!(written, format!("{plain:#}\n").as_bytes());
    }

    #[test]
    fn only_color_sequences_are_kept() {
        for (text, shown) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[1;31mred\u{1b}[0m"),
            ("\u{1b}[m\u{202e}a\r\nb", "\u{1b}[m\\u{202e}a\nb"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{1b}[31", "\\u{1b}[31"),
            ("\u{1b}[?25m\u{1b}", "\\u{1b}[?25m\\u{1b}"),
        ] {
            assert_eq!(colored(text), shown, "{text:?}");
        }
    }
}
