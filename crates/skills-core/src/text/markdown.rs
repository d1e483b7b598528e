//! Escapes untrusted text for Markdown, for example in an answer in a chat.

use std::path::Path;

use super::{shown, shown_path};

/// Escapes `text` for display on one line of Markdown.
///
/// Hidden characters are escaped as in [`shown`]. A backslash is added before each character that would otherwise be Markdown
/// or HTML, so that the text contains no images, links or styles. A URL stays as it is, because it shows where it leads.
///
/// ```
/// use skills_core::text::markdown;
///
/// assert_eq!(markdown("Reviews snake_case code & docs."), "Reviews snake_case code & docs.");
/// assert_eq!(markdown("![](https://a.example) **now**"), r"!\[](https://a.example) \*\*now\*\*");
/// ```
pub fn markdown(text: &str) -> String {
    let text = shown(text);
    let mut escaped = String::with_capacity(text.len() + 8);
    let mut before = None;
    let mut rest = text.chars().peekable();
    // The first is true if there were only spaces so far. The second is true if there were only digits, which could be
    // the number of a list item.
    let mut is_start = true;
    let mut is_number = true;
    while let Some(c) = rest.next() {
        let after = rest.peek().copied();
        let is_word = |other: Option<char>| other.is_some_and(char::is_alphanumeric);
        let is_active = match c {
            '*' | '`' | '[' | '~' | '$' => true,
            '_' => !(is_word(before) && is_word(after)),
            '<' => after.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')),
            '&' => after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '#'),
            '\\' => after.is_none_or(|c| c.is_ascii_punctuation()),
            '#' | '>' | '-' | '+' => is_start,
            '.' | ')' => is_number && !is_start,
            _ => false,
        };
        if is_active {
            escaped.push('\\');
        }
        escaped.push(c);
        is_start &= c == ' ';
        is_number &= c == ' ' || c.is_ascii_digit();
        before = Some(c);
    }
    escaped
}

/// Returns `text` as a code span of Markdown. Hidden characters are escaped as in [`shown`].
///
/// ```
/// use skills_core::text::markdown_code;
///
/// assert_eq!(markdown_code("code-review"), "`code-review`");
/// assert_eq!(markdown_code("a`b"), "``a`b``");
/// ```
pub fn markdown_code(text: &str) -> String {
    let text = shown(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A parser removes one space from each side, unless the text consists of spaces.
    let has_edge = |c: char| text.starts_with(c) && text.ends_with(c) && !text.trim().is_empty();
    let is_padded = text.is_empty() || text.starts_with('`') || text.ends_with('`') || has_edge(' ');
    let space = if is_padded { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Returns a path as a code span of Markdown, as in [`markdown_code`].
pub fn markdown_path(path: &Path) -> String {
    markdown_code(&shown_path(path))
}

/// Escapes a message that quotes names or values in backticks, such as the message of a diagnostic, for display on one line of
/// Markdown. Text between two backticks is a code span, and all other text is escaped as in [`markdown`].
///
/// ```
/// use skills_core::text::markdown_message;
///
/// assert_eq!(markdown_message("no skill `a*b` in *"), r"no skill `a*b` in \*");
/// ```
pub fn markdown_message(message: &str) -> String {
    let mut escaped = String::with_capacity(message.len() + 8);
    let mut rest = message;
    while let Some((text, (code, after))) =
        rest.split_once('`').and_then(|(text, rest)| Some((text, rest.split_once('`')?)))
    {
        escaped.push_str(&markdown(text));
        escaped.push_str(&markdown_code(code));
        rest = after;
    }
    escaped + &markdown(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;

    #[test]
    fn markdown_is_escaped() {
        for (text, escaped) in [
            (
                "Reviews code: 2 of 3 (or \"all\"); it's a - b, x=y!",
                "Reviews code: 2 of 3 (or \"all\"); it's a - b, x=y!",
            ),
            ("run_all_tests, __init__", r"run_all_tests, \_\_init\_\_"),
            ("![i](https://a.example/x_y)", r"!\[i](https://a.example/x_y)"),
            ("<img src=x> a < b </p> <!--", r"\<img src=x> a < b \</p> \<!--"),
            ("R&D, A & B, &lt; &#60;", r"R\&D, A & B, \&lt; \&#60;"),
            ("`code` **b** ~~s~~ $x$", r"\`code\` \*\*b\*\* \~\~s\~\~ \$x\$"),
            (r"C:\path \* \", r"C:\path \\\* \\"),
            ("re\u{200b}view\u{202e}", r"re\u{200b}view\u{202e}"),
            ("# title", r"\# title"),
            ("- item", r"\- item"),
            ("12. item", r"12\. item"),
            ("1) item 1)", r"1\) item 1)"),
            ("two\nlines", "two lines"),
        ] {
            assert_eq!(markdown(text), escaped, "{text:?}");
        }
    }

    #[test]
    fn code_spans_cannot_be_left() {
        for (text, code) in [
            ("a b", "`a b`"),
            ("a`b``c", "```a`b``c```"),
            ("`", "`` ` ``"),
            (" a ", "`  a  `"),
            ("\u{1b}", r"`\u{1b}`"),
            ("", "`  `"),
        ] {
            assert_eq!(markdown_code(text), code, "{text:?}");
        }
        for (message, escaped) in [
            ("no skill `a` in `b`: c", "no skill `a` in `b`: c"),
            ("`a` `*b", r"`a` \`\*b"),
            ("``*", r"`  `\*"),
        ] {
            assert_eq!(markdown_message(message), escaped, "{message:?}");
        }
    }

    /// Generates texts with many characters that have a meaning in Markdown.
    fn active() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            8 => prop::sample::select(r"!()*+-.:;<=>[]\_`{|}~#&$^/ 1a".chars().map(String::from).collect::<Vec<_>>()),
            2 => prop::sample::select(vec![
                "![i](u)", "[l](u)", "<u:v>", "<b>", "&amp;", "**", "__", "``", "```", "$$", "[^1]", "  ", "ü", "\u{200b}", "\n",
            ]).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
    }

    /// Returns the text that a renderer displays, with single spaces. Fails if there is anything but text and code.
    fn rendered(markdown: &str) -> String {
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_MATH
            | Options::ENABLE_GFM;
        let mut text = String::new();
        for event in Parser::new_ext(markdown, options) {
            match event {
                Event::Text(part) | Event::Code(part) => text.push_str(&part),
                Event::SoftBreak => text.push(' '),
                Event::Start(Tag::Paragraph | Tag::List(None) | Tag::Item) | Event::End(_) => {}
                other => panic!("{other:?} in {markdown:?}"),
            }
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn on_one_line(text: &str) -> String {
        shown(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    proptest! {
        #[test]
        fn text_is_displayed_as_it_is(text in active()) {
            let text = on_one_line(&text);
            prop_assert_eq!(rendered(&markdown(&text)), text.clone());
            prop_assert_eq!(rendered(&format!("- {} and {}", markdown(&text), markdown(&text))), on_one_line(&format!("{text} and {text}")));
            if !text.is_empty() {
                let list = format!("- {}: {} _x", markdown_code(&text), markdown(&text));
                prop_assert_eq!(rendered(&list), on_one_line(&format!("{text}: {text} _x")));
            }
            // The text of a message is the same without the backticks.
            let message = rendered(&format!("- {}", markdown_message(&text)));
            let bare = |text: &str| text.replace(['`', ' '], "");
            prop_assert_eq!(bare(&message), bare(&text));
        }
    }
}
