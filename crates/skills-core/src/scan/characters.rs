//! Finds characters that are invisible, or that change how other characters are displayed.

use super::rules::Detector;
use crate::text::hidden;

/// The number of invisible characters in a row that counts as hidden data. Eight of them can encode a byte.
const MIN_RUN: usize = 8;

/// The maximum number of findings of one kind in one text.
const MAX_OF_A_KIND: usize = 10;

/// The flags that are encoded with tag characters: England, Scotland and Wales.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];

/// A run of hidden characters of one kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) detector: Detector,
    /// The byte offset of the first character.
    pub(super) start: usize,
    /// The byte offset after the last character.
    pub(super) end: usize,
    /// The ASCII text that tag characters encode; `None` for other kinds.
    pub(super) spells: Option<String>,
}

/// Finds the runs in `text`. A byte order mark at the start is ignored.
pub(super) fn find(text: &str) -> Vec<Run> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')) {
        return Vec::new();
    }
    let mut runs: Vec<(Run, usize)> = Vec::new();
    for (start, c) in hidden(text) {
        let Some(detector) = kind(c) else { continue };
        if start == 0 && c == '\u{FEFF}' {
            continue;
        }
        let end = start + c.len_utf8();
        match runs.last_mut() {
            Some((run, length)) if run.end == start && run.detector == detector => {
                run.end = end;
                *length += 1;
            }
            _ => runs.push((Run { detector, start, end, spells: None }, 1)),
        }
    }
    let mut counts = [0_usize; 5];
    let mut scripts = RightToLeft { text, line_end: 0, in_line: false, anywhere: None };
    let runs = runs.into_iter().filter_map(|(run, length)| judge(text, run, length, &mut scripts));
    runs.filter(|run| {
        let count = &mut counts[run.detector as usize];
        *count += 1;
        *count <= MAX_OF_A_KIND
    })
    .collect()
}

/// Classifies a hidden character. Returns `None` for line breaks and tabs.
fn kind(c: char) -> Option<Detector> {
    Some(match c {
        '\n' | '\r' | '\t' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => return None,
        '\u{E0000}'..='\u{E007F}' => Detector::TagCharacters,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => Detector::BidirectionalCharacters,
        c if c.is_control() => Detector::ControlCharacters,
        _ => Detector::InvisibleCharacters,
    })
}

/// Checks the lines of a text for right-to-left letters. Queries must be in the order of the text; each line is read once.
struct RightToLeft<'t> {
    text: &'t str,
    line_end: usize,
    in_line: bool,
    anywhere: Option<bool>,
}

impl RightToLeft<'_> {
    /// Returns true if the line that contains the byte `at` has right-to-left letters.
    fn in_line(&mut self, at: usize) -> bool {
        if at >= self.line_end {
            let start = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
            self.line_end = self.text[at..].find('\n').map_or(self.text.len(), |more| at + more);
            self.in_line = self.text[start..self.line_end].chars().any(is_right_to_left);
        }
        self.in_line
    }

    /// Returns true if the text has right-to-left letters.
    fn anywhere(&mut self) -> bool {
        *self.anywhere.get_or_insert_with(|| self.text.chars().any(is_right_to_left))
    }
}

/// Returns the run if it is suspicious in its context, and `None` if it is legitimate. `length` is in characters.
fn judge(text: &str, run: Run, length: usize, scripts: &mut RightToLeft<'_>) -> Option<Run> {
    let found = &text[run.start..run.end];
    match run.detector {
        Detector::TagCharacters => {
            let letters = found
                .chars()
                .filter_map(|c| char::from_u32(u32::from(c) - 0xE0000).filter(|c| matches!(c, ' '..='~')));
            let spells: String = letters.collect();
            let is_flag = text[..run.start].ends_with('\u{1F3F4}')
                && found.ends_with('\u{E007F}')
                && FLAGS.contains(&spells.as_str());
            (!is_flag).then_some(Run { spells: Some(spells).filter(|spells| !spells.is_empty()), ..run })
        }
        // These characters are legitimate in lines with right-to-left letters, except for overrides.
        Detector::BidirectionalCharacters => {
            let is_override = found.contains(['\u{202D}', '\u{202E}']);
            (is_override || !scripts.in_line(run.start)).then_some(run)
        }
        Detector::InvisibleCharacters => {
            // Direction marks are legitimate in texts with both directions.
            let is_mark = found.chars().all(|c| matches!(c, '\u{200E}' | '\u{200F}' | '\u{61C}'));
            if is_mark && length < MIN_RUN && scripts.anywhere() {
                return None;
            }
            let detector = if length < MIN_RUN { run.detector } else { Detector::HiddenData };
            Some(Run { detector, ..run })
        }
        _ => Some(run),
    }
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[Detector]) {
        let found: Vec<_> = find(text).into_iter().map(|run| run.detector).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn hidden_characters_are_classified() {
        use Detector::{
            BidirectionalCharacters as Bidi, ControlCharacters as Control, HiddenData,
            InvisibleCharacters as Invisible, TagCharacters as Tag,
        };
        for text in [
            "",
            "plain\ttext\r\n",
            "\u{FEFF}bom",
            "naïve 日本語 👩\u{200d}💻 ❤\u{fe0f}",
            "نمی\u{200c}خواهم",
            "שלום \u{200f}ab",
            "\u{2067}שלום\u{2069} ab",
        ] {
            check(text, &[]);
        }
        check("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", &[]);
        check("🏴\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}\u{e007f}", &[Tag]);
        check("a\u{e0041}\u{e0042}b", &[Tag]);
        check("if (a\u{202e} /* \u{2066}b", &[Bidi, Bidi]);
        check("שלום \u{202e}ab", &[Bidi]);
        check("a\u{200b}b", &[Invisible]);
        check("a\u{feff}b\u{ad}c", &[Invisible, Invisible]);
        check(&format!("a{}b", "\u{200b}\u{200c}".repeat(4)), &[HiddenData]);
        check(&format!("😀{}", "\u{fe01}".repeat(20)), &[HiddenData]);
        check(&format!("😀{}", "\u{e0101}".repeat(20)), &[HiddenData]);
        check("\u{1b}[2Jx\u{7}", &[Control, Control]);
        check(&"a\u{200b}".repeat(100), &[Invisible; 10]);
        let spelled = find("x\u{e0068}\u{e0069}").remove(0).spells;
        assert_eq!(spelled.as_deref(), Some("hi"));
    }
}
