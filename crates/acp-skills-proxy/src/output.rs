//! What people read, on stdout and stderr: the only place that prints, whatever command it is for.
//!
//! Names, descriptions, paths, files and what agents say were written by somebody else. What in them would steer a
//! terminal, reorder text or hide it is shown as an escape ([`skills_core::text`] says what that is). Lints keep the rest
//! of the program from stdout and stderr.
//!
//! A reader who is gone is no fault: `list | head` has seen enough.

#![expect(clippy::disallowed_methods, reason = "this is the place that prints")]

use std::{
    borrow::Cow,
    collections::HashSet,
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex},
};

use clap::builder::StyledStr;
use serde::Serialize;
use skills_core::text::shown_lines;

/// Prints `text`. Returns whether somebody still reads what is printed.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn print(text: &str) -> io::Result<bool> {
    write(&shown_lines(text))
}

/// Tells people something that is no result, in a line on stderr.
pub(crate) fn note(text: &str) {
    tell(text);
}

/// Whether people read what is told on stderr as it comes.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// The same for a text that may have colours, and nothing else that is for the terminal.
///
/// # Errors
/// As for [`print()`].
pub(crate) fn print_colored(text: &str) -> io::Result<bool> {
    write(&colored(text))
}

/// Prints the help or the version that clap has made of the command line.
///
/// # Errors
/// As for [`print()`].
pub(crate) fn print_help(help: &clap::Error) -> io::Result<bool> {
    somebody_reads(help.print().and_then(|()| io::stdout().flush()))
}

/// Prints `value` as JSON, in which no character is lost: those that are not safe to show are JSON's own escapes.
///
/// # Errors
/// As for [`print()`].
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<bool> {
    let text = serde_json::to_string_pretty(value)?;
    write(&json_escaped(&text)).and_then(|_| write("\n"))
}

/// Whether stdout is to have colours: it is a terminal, and nobody asked for none ([`NO_COLOR`](https://no-color.org)).
pub(crate) fn has_colors() -> bool {
    io::stdout().is_terminal() && wants_colors()
}

fn wants_colors() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Says on stderr what went wrong, and what to do about it.
pub(crate) fn complain(message: &str, hint: Option<&str>) {
    // Further lines are indented, so that none looks like a message of its own.
    tell(&format!("error: {}", message.replace('\n', "\n  ")));
    if let Some(hint) = hint {
        advise(hint);
    }
}

/// Says on stderr what is wrong with a command line, as clap does.
pub(crate) fn complain_as(error: &StyledStr) {
    let is_colored = io::stderr().is_terminal() && wants_colors();
    let text = if is_colored { error.ansi().to_string() } else { error.to_string() };
    let text = colored(text.trim_end()) + "\n";
    // As below.
    drop(io::stderr().write_all(text.as_bytes()));
}

/// Says on stderr what somebody may want to do.
pub(crate) fn advise(hint: &str) {
    tell(&format!("hint: {}", hint.replace('\n', "\n      ")));
}

/// Asks a question on stderr that a line from stdin answers. Only `y` and `yes` are a yes.
pub(crate) fn ask(question: &str) -> bool {
    drop(io::stderr().write_all(format!("{} [y/N] ", shown_lines(question)).as_bytes()));
    let mut answer = String::new();
    // Who says nothing, or cannot, says no.
    drop(io::stdin().read_line(&mut answer));
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

fn tell(line: &str) {
    let line = shown_lines(line) + "\n";
    // There is no other place to say that it cannot be said.
    drop(io::stderr().write_all(line.as_bytes()));
}

/// Messages for people on stderr; see [`LogLines`].
pub(crate) fn log_to_stderr() -> LogLines<io::Stderr> {
    LogLines(io::stderr())
}

/// The messages that were written, of a log that says each only once.
#[derive(Default)]
pub(crate) struct Logged(Mutex<HashSet<Vec<u8>>>);

/// The same, each message once. Clients show what comes on stderr, some of them each line as an error.
pub(crate) fn log_once_to_stderr(logged: &Arc<Logged>) -> Once<io::Stderr> {
    Once { logged: Arc::clone(logged), log: log_to_stderr() }
}

/// A log that says each message only once.
pub(crate) struct Once<W> {
    logged: Arc<Logged>,
    log: LogLines<W>,
}

impl<W: Write> Write for Once<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_new = self.logged.0.lock().is_ok_and(|mut logged| logged.insert(bytes.to_vec()));
        if is_new { self.log.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.flush()
    }
}

/// A log in which each write is one message. What is not safe to show is escaped, and further lines of a message are
/// indented, so that none looks like a message of its own.
pub(crate) struct LogLines<W>(pub(crate) W);

impl<W: Write> Write for LogLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let message = String::from_utf8_lossy(bytes);
        let message = shown_lines(message.trim_end_matches('\n')).replace('\n', "\n    ") + "\n";
        self.0.write_all(message.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn write(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    somebody_reads(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

fn somebody_reads(printed: io::Result<()>) -> io::Result<bool> {
    match printed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// `text` as it can be shown, with the sequences that set colours.
fn colored(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(ESCAPE) {
        let (before, sequence) = rest.split_at(at);
        let length = color(sequence);
        let (kept, after) = sequence.split_at(length.unwrap_or(ESCAPE.len_utf8()));
        shown.push_str(&shown_lines(before));
        shown.push_str(&if length.is_some() { kept.into() } else { shown_lines(kept) });
        rest = after;
    }
    shown + &shown_lines(rest)
}

const ESCAPE: char = '\u{1b}';

/// How long the sequence is that sets a colour at the start of `text`: `ESC [ 1 ; 3 1 m`.
fn color(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some("\u{1b}[".len() + end + "m".len())
}

/// JSON with escapes for what cannot be shown as it is: that can only be inside of its strings.
fn json_escaped(json: &str) -> Cow<'_, str> {
    use std::fmt::Write;
    if shown_lines(json) == json {
        return Cow::Borrowed(json);
    }
    // Joiners are shown where they belong, which a character alone does not tell. Nothing is lost by an escape.
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

    /// Escape, bell, carriage return, C1, bidirectional, no width, tag, line separator.
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
    fn json_loses_nothing() {
        for c in HOSTILE {
            let value = json!({ "name": format!("a{c}b") });
            let shown = json_escaped(&value.to_string()).into_owned();
            assert_eq!(shown_lines(&shown), shown);
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
            // Beside one that is hidden, a joiner in its place may be an escape, too.
            let value = json!(["👩\u{200d}💻", c]);
            assert_eq!(serde_json::from_str::<Value>(&json_escaped(&value.to_string())).unwrap(), value);
        }
        for text in ["{}", "\"ein Wort und nöch eins\"", "\"代码 審査\"", "\"👩\u{200d}💻\"", "[\n  1\n]"]
        {
            assert!(matches!(json_escaped(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn colors_and_nothing_else() {
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
    fn a_message_is_one() {
        let mut log = LogLines(Vec::new());
        log.write_all("WARN a\u{1b}[2J\n\nERROR forged\n".as_bytes()).unwrap();
        log.write_all(b"WARN b\n").unwrap();
        let text = String::from_utf8(log.0).unwrap();
        assert_eq!(text, "WARN a\\u{1b}[2J\n    \n    ERROR forged\nWARN b\n");
    }
}
