//! Where the frontmatter ends and the body begins.
//!
//! The specification wants `---` in the first line and again behind the YAML. Files in the wild have a byte order
//! mark, blank lines before it, an indented fence, or none at the end; each of them has one obvious reading.

use memchr::memchr2;

/// A text in two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split<'a> {
    /// What stands between the fences.
    pub yaml: &'a str,
    /// The line on which `yaml` begins, from 1.
    pub line: u32,
    /// The line of the closing fence, or of the first line of the body where there is none.
    pub end_line: u32,
    /// The byte at which the body begins.
    pub body: usize,
    /// Whether blank lines stand before the opening fence.
    pub leading_blank: bool,
    /// Whether the opening fence is indented.
    pub indented_open: bool,
    /// What ended the frontmatter.
    pub end: End,
}

/// What ended the frontmatter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// `---` at the start of a line.
    Fence,
    /// `---` behind blanks.
    IndentedFence,
    /// A blank line, followed by text that is no `key:`.
    Prose,
    /// Nothing; the text ends.
    Cut,
}

/// A line of a text, without its line break.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub text: &'a str,
    /// The byte at which the line begins.
    pub start: usize,
    /// The byte at which the next one begins.
    pub next: usize,
}

/// The lines of `text` from the byte `from` on; LF, CRLF and CR end a line.
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

/// Splits `text`, which has no byte order mark; `None` when it does not begin with a fence.
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

/// The same text, split at the first indented fence before the one that [`split`] found.
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

/// The key of a line that reads `key:` or `key: value`, as written and without quotes, and the byte behind the colon.
///
/// A key is one word of letters, digits, `_`, `-` and `.`: prose such as `Note that: …` is not a key.
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

    #[expect(clippy::needless_pass_by_value, reason = "the form in which expect-test updates snapshots")]
    fn check(text: &str, expect: Expect) {
        let actual = split(text).map_or_else(
            || "none".to_owned(),
            |it| {
                let mut flags = String::new();
                if it.leading_blank {
                    flags += " blank";
                }
                if it.indented_open {
                    flags += " indented";
                }
                format!(
                    "{:?}{flags} {}..{} {:?} | {:?}",
                    it.end,
                    it.line,
                    it.end_line,
                    it.yaml,
                    &text[it.body..]
                )
            },
        );
        expect.assert_eq(&actual);
    }

    #[test]
    fn fences() {
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
    fn unclosed() {
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
    fn keys() {
        assert_eq!(key("name: a"), Some(("name", 5)));
        assert_eq!(key("name:"), Some(("name", 5)));
        assert_eq!(key("\"name\" : a"), Some(("name", 8)));
        assert_eq!(key("allowed-tools:\t a"), Some(("allowed-tools", 14)));
        for line in ["", ":", "a b: c", "name", "http://x", "- a: b", "'a: b", "# a: b"] {
            assert_eq!(key(line), None, "{line}");
        }
    }
}
