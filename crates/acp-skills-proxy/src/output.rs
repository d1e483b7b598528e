//! What people read, on stdout and stderr: the only place that prints, and the only one that makes text safe to show.
//!
//! Names, descriptions, paths, files and what agents say were written by somebody else. What in them would steer a
//! terminal (escape sequences, carriage returns), reorder text (bidirectional controls) or hide it (characters without
//! width) is shown as an escape such as `\u{1b}`, whatever command prints it. Lints keep the rest of the program from
//! stdout and stderr.
//!
//! A reader who is gone is no fault: `list | head` has seen enough.

#![expect(clippy::disallowed_methods, reason = "this is the place that prints")]

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    path::Path,
};

use clap::builder::StyledStr;
use serde::Serialize;
use skills_core::{Diagnostic, name::is_deceptive};

/// Prints `text`. Returns whether somebody still reads what is printed.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn print(text: &str) -> io::Result<bool> {
    write(&escaped(text, Colors::Escaped))
}

/// The same for a text that may have colours, and nothing else that is for the terminal.
///
/// # Errors
/// As for [`print`].
pub(crate) fn print_colored(text: &str) -> io::Result<bool> {
    write(&escaped(text, Colors::Kept))
}

/// Prints `value` as JSON, in which no character is lost: those that are not safe to show are JSON's own escapes.
///
/// # Errors
/// As for [`print`].
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
    let text = escaped(text.trim_end(), Colors::Kept) + "\n";
    // As below.
    drop(io::stderr().write_all(text.as_bytes()));
}

/// Says on stderr what somebody may want to do.
pub(crate) fn advise(hint: &str) {
    tell(&format!("hint: {}", hint.replace('\n', "\n      ")));
}

fn tell(line: &str) {
    let line = escaped(line, Colors::Escaped) + "\n";
    // There is no other place to say that it cannot be said.
    drop(io::stderr().write_all(line.as_bytes()));
}

/// `text` on one line, as it is shown.
pub(crate) fn line(text: &str) -> String {
    escaped(text, Colors::Escaped).replace('\n', "\\n").replace('\t', "\\t")
}

/// A diagnostic whose message and remedy have one line each, as they are shown.
pub(crate) fn diagnostic(diagnostic: &Diagnostic) -> Diagnostic {
    let mut shown = diagnostic.clone();
    shown.message = line(&shown.message);
    shown.help = shown.help.as_deref().map(line);
    shown
}

/// A path on one line, as it is shown.
pub(crate) fn path(path: &Path) -> String {
    line(&path.to_string_lossy())
}

/// Messages for people on stderr; see [`LogLines`].
pub(crate) fn log_to_stderr() -> LogLines<io::Stderr> {
    LogLines(io::stderr())
}

/// A log in which each write is one message. What is not safe to show is escaped, and further lines of a message are
/// indented, so that none looks like a message of its own.
pub(crate) struct LogLines<W>(pub(crate) W);

impl<W: Write> Write for LogLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let message = String::from_utf8_lossy(bytes);
        let message = escaped(message.trim_end_matches('\n'), Colors::Escaped).replace('\n', "\n    ") + "\n";
        self.0.write_all(message.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn write(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// What becomes of the sequences that set colours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Colors {
    Kept,
    Escaped,
}

/// `text` without anything that is not safe to show.
fn escaped(text: &str, colors: Colors) -> Cow<'_, str> {
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let color = (colors == Colors::Kept).then(|| color(rest)).flatten();
        let (piece, after) = rest.split_at(color.unwrap_or(c.len_utf8()));
        match c {
            _ if color.is_some() || is_safe(c) => shown.push_str(piece),
            // The line ends of other systems.
            '\r' if after.starts_with('\n') => {}
            c => shown.extend(c.escape_unicode()),
        }
        rest = after;
    }
    Cow::Owned(shown)
}

/// How long the sequence is that sets a colour at the start of `text`: `ESC [ 1 ; 3 1 m`.
fn color(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some("\u{1b}[".len() + end + "m".len())
}

/// JSON, with escapes for what is not safe to show: that can only be inside of its strings.
fn json_escaped(json: &str) -> Cow<'_, str> {
    use std::fmt::Write;
    if json.chars().all(is_safe) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_safe(c) {
            shown.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(shown)
}

/// Whether `c` shows itself, and does nothing else to a terminal or to the text around it.
fn is_safe(c: char) -> bool {
    matches!(c, '\n' | '\t') || !(c.is_control() || is_deceptive(c) || matches!(c, '\u{2028}' | '\u{2029}'))
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
    fn what_steers_is_shown() {
        for c in HOSTILE {
            let text = format!("a{c}b");
            for colors in [Colors::Kept, Colors::Escaped] {
                assert_eq!(escaped(&text, colors), format!("a{}b", c.escape_unicode()), "{c:?}");
            }
            let json = json!({ "name": text }).to_string();
            let shown = json_escaped(&json);
            assert!(shown.chars().all(is_safe), "{shown:?}");
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), json!({ "name": text }));
        }
        for text in ["", "ein Wort\n\tund nöch eins", "代码 審査", "👩\u{200d}💻", "می\u{200c}خواهم"]
        {
            assert!(matches!(escaped(text, Colors::Escaped), Cow::Borrowed(same) if same == text));
            assert!(matches!(json_escaped(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!(escaped("a\r\nb\r", Colors::Escaped), "a\nb\\u{d}");
    }

    #[test]
    fn colors_and_nothing_else() {
        for (text, kept) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[1;31mred\u{1b}[0m"),
            ("\u{1b}[m", "\u{1b}[m"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{1b}[31", "\\u{1b}[31"),
            ("\u{1b}[?25m\u{1b}", "\\u{1b}[?25m\\u{1b}"),
        ] {
            assert_eq!(escaped(text, Colors::Kept), kept);
            assert_eq!(
                escaped(text, Colors::Escaped),
                text.replace('\u{1b}', "\\u{1b}").replace('\u{7}', "\\u{7}")
            );
        }
    }

    #[test]
    fn a_message_is_one() {
        let mut log = LogLines(Vec::new());
        log.write_all("WARN a\u{1b}[2J\n\nERROR forged\n".as_bytes()).unwrap();
        log.write_all(b"WARN b\n").unwrap();
        let text = String::from_utf8(log.0).unwrap();
        assert_eq!(text, "WARN a\\u{1b}[2J\n    \n    ERROR forged\nWARN b\n");
    }

    #[test]
    fn paths_have_one_line() {
        assert_eq!(path(Path::new("a\nb\tc")), "a\\nb\\tc");
    }
}
