//! Splits a file into frontmatter and body.
//!
//! The [specification](https://agentskills.io/specification) requires a line `---` at the beginning of the file and another one
//! after the YAML. Files in the wild also start with a byte order mark or blank lines, indent a fence, or have no closing fence.
//! All of these can be read unambiguously.

use memchr::memchr2;

/// A text that was split into frontmatter and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split<'a> {
    /// The text between the fences.
    pub yaml: &'a str,
    /// The first line of `yaml`, starting at 1.
    pub line: u32,
    /// The line of the closing fence, or the first line of the body if there is no closing fence.
    pub end_line: u32,
    /// The byte offset of the body.
    pub body: usize,
    /// True if there are blank lines before the opening fence.
    pub leading_blank: bool,
    /// True if the opening fence is indented.
    pub indented_open: bool,
    /// The way in which the frontmatter ends.
    pub end: End,
}

/// The way in which the frontmatter ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// A line `---`.
    Fence,
    /// An indented line `---`.
    IndentedFence,
    /// A blank line, followed by a line that isn't a `key:`.
    Prose,
    /// The end of the text.
    Cut,
}

/// A line of a text, without its line break.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub text: &'a str,
    /// The byte offset of the line.
    pub start: usize,
    /// The byte offset of the next line.
    pub next: usize,
}

/// Returns the lines of `text`, starting at the byte offset `from`. Lines end with LF, CRLF or CR.
pub(super) fn lines(text: &str, from: usize) -> impl Iterator<Item = Line<'_>> + Clone {
    let mut start = from;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let bytes = rest.as_bytes();
        let (length, next) = match memchr2(b'\n', b'\r', bytes) {
            Some(at) if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') => (at, at + 2),
            Some(at) => (at, at + 1),
            None => (bytes.len(), bytes.len()),
        };
        let line = Line { text: &rest[..length], start, next: start + next };
        start = line.next;
        Some(line)
    })
}

/// Splits `text`, which must not have a byte order mark. Returns `None` if it doesn't start with a fence.
pub(super) fn split(text: &str) -> Option<Split<'_>> {
    let mut number = 0;
    let mut all = lines(text, 0);
    let open = all.by_ref().inspect(|_| number += 1).find(|line| !line.text.trim().is_empty())?;
    if open.text.trim() != "---" {
        return None;
    }
    let first = number + 1;
    let build = |end, yaml_end: usize, body, end_line| Split {
        yaml: &text[open.next..yaml_end],
        line: first,
        end_line,
        body,
        leading_blank: first > 2,
        indented_open: !open.text.starts_with('-'),
        end,
    };

    let mut indented = None;
    for line in lines(text, open.next) {
        number += 1;
        if line.text.trim_ascii_end() == "---" {
            return Some(build(End::Fence, line.start, line.next, number));
        }
        if indented.is_none() && line.text.trim() == "---" {
            indented = Some((line, number));
        }
    }
    if let Some((line, number)) = indented {
        return Some(build(End::IndentedFence, line.start, line.next, number));
    }
    let mut after_blank = false;
    for (line, number) in lines(text, open.next).zip(first..) {
        if after_blank
            && !line.text.starts_with([' ', '\t'])
            && !line.text.is_empty()
            && key(line.text).is_none()
        {
            return Some(build(End::Prose, line.start, line.start, number));
        }
        after_blank = line.text.trim().is_empty();
    }
    Some(build(End::Cut, text.len(), text.len(), number + 1))
}

/// Splits the same text at the first indented fence before the end that [`split`] found.
pub(super) fn split_earlier<'a>(text: &'a str, found: &Split<'a>) -> Option<Split<'a>> {
    let start = found.yaml.as_ptr() as usize - text.as_ptr() as usize;
    let (line, number) = lines(&text[..start + found.yaml.len()], start)
        .zip(found.line..)
        .find(|(line, _)| line.text.trim() == "---")?;
    Some(Split {
        yaml: &text[start..line.start],
        end_line: number,
        body: line.next,
        end: End::IndentedFence,
        ..*found
    })
}

/// Parses a line `key:` or `key: value`. Returns the key without quotes, and the byte offset after the colon.
///
/// A key is a word of letters, digits, `_`, `-` and `.`, so that prose such as `Note that: …` is not a key.
pub(super) fn key(line: &str) -> Option<(&str, usize)> {
    let (quote, inner) = match line.as_bytes().first() {
        Some(quote @ (b'"' | b'\'')) => (Some(char::from(*quote)), &line[1..]),
        _ => (None, line),
    };
    let length = inner
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')))
        .filter(|&length| length > 0)?;
    let (name, rest) = inner.split_at(length);
    let rest = match quote {
        Some(quote) => rest.strip_prefix(quote)?,
        None => rest,
    };
    let value = rest.trim_start_matches([' ', '\t']).strip_prefix(':')?;
    (value.is_empty() || value.starts_with([' ', '\t'])).then(|| (name, line.len() - value.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "`expect-test` updates snapshots that are passed by value"
    )]
    fn check(text: &str, expect: Expect) {
        let actual = split(text).map_or_else(
            || "none".to_owned(),
            |split| {
                let mut flags = String::new();
                if split.leading_blank {
                    flags += " blank";
                }
                if split.indented_open {
                    flags += " indented";
                }
                format!(
                    "{:?}{flags} {}..{} {:?} | {:?}",
                    split.end,
                    split.line,
                    split.end_line,
                    split.yaml,
                    &text[split.body..]
                )
            },
        );
        expect.assert_eq(&actual);
    }

    #[test]
    fn closed_frontmatter() {
        check("---\nname: a\n---\nBody\n", expect![[r#"Fence 2..3 "name: a\n" | "Body\n""#]]);
        check("---\r\nname: a\r\n---\r\nBody", expect![[r#"Fence 2..3 "name: a\r\n" | "Body""#]]);
        check("---\rname: a\r---\rBody", expect![[r#"Fence 2..3 "name: a\r" | "Body""#]]);
        check("--- \nname: a\n---\t\n", expect![[r#"Fence 2..3 "name: a\n" | """#]]);
        check("---\n---\nBody", expect![[r#"Fence 2..2 "" | "Body""#]]);
        check("---\nname: a\n---", expect![[r#"Fence 2..3 "name: a\n" | """#]]);
        check("\n \n---\nname: a\n---\n", expect![[r#"Fence blank 4..5 "name: a\n" | """#]]);
        check(
            "  ---\nname: a\n  ---\nBody",
            expect![[r#"IndentedFence indented 2..3 "name: a\n" | "Body""#]],
        );
        check(
            "---\na: |\n  x\n  ---\n  y\n---\nBody",
            expect![[r#"Fence 2..6 "a: |\n  x\n  ---\n  y\n" | "Body""#]],
        );
        check("---\na: b --- c\n---\n", expect![[r#"Fence 2..3 "a: b --- c\n" | """#]]);
    }

    #[test]
    fn unclosed_frontmatter() {
        check("---\nname: a\n\n# Title\ntext", expect![[r##"Prose 2..4 "name: a\n\n" | "# Title\ntext""##]]);
        check(
            "---\na: b\n\nc: d\n\nText: is no key here\n",
            expect![[r#"Cut 2..7 "a: b\n\nc: d\n\nText: is no key here\n" | """#]],
        );
        check("---\na: b\n\nSome text: more\n", expect![[r#"Prose 2..4 "a: b\n\n" | "Some text: more\n""#]]);
        check("---\na: |\n  x\n\n  y\n", expect![[r#"Cut 2..6 "a: |\n  x\n\n  y\n" | """#]]);
        check("---", expect![[r#"Cut 2..2 "" | """#]]);
    }

    #[test]
    fn no_frontmatter() {
        check("", expect!["none"]);
        check("\n\n", expect!["none"]);
        check("# Title\n---\n", expect!["none"]);
        check("----\na: b\n----\n", expect!["none"]);
        check("--- a\nb: c\n---\n", expect!["none"]);
    }

    #[test]
    fn keys_of_lines() {
        assert_eq!(key("name: a"), Some(("name", 5)));
        assert_eq!(key("name:"), Some(("name", 5)));
        assert_eq!(key("\"name\" : a"), Some(("name", 8)));
        assert_eq!(key("allowed-tools:\t a"), Some(("allowed-tools", 14)));
        for line in ["", ":", "a b: c", "name", "http://x", "- a: b", "'a: b", "# a: b"] {
            assert_eq!(key(line), None, "{line}");
        }
    }
}
