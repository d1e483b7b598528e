//! HTML pages that open from disk: the head and the style sheet that all pages share, the escaping of text, and the
//! `Content-Security-Policy` of a page.
//!
//! Pages are [askama](https://docs.rs/askama) templates, which are checked at compile time. A page extends
//! `html/page.html`. Every value in a template is escaped by [`Text`], except for values that go through `|safe`: these
//! must be templates themselves or constants of ours.
//!
//! | file | owns |
//! |---|---|
//! | `table` | a table with a row of titles, and a legend for it |
//! | `page.html`, `page.css` | the head, the frame and the style sheet of all pages |

mod table;

use std::fmt::{self, Write};

use askama::filters::Escaper;
use base64::{Engine, engine::general_purpose::STANDARD};
use skills_core::skill::Sha256;

pub(crate) use self::table::{Column, Explained, Legend, Table};

/// The style sheet of all pages, which is embedded in each.
pub(crate) const STYLE: &str = include_str!("html/page.css");

/// The part of a page that `html/page.html` shows around the page's own content.
pub(crate) struct Frame {
    /// The title of the document, which is also its heading.
    pub(crate) title: String,
    /// The subcommand that makes the page.
    pub(crate) command: &'static str,
    /// A note on what the page loads and runs, for the last line.
    pub(crate) note: &'static str,
    /// The script of the page. It must not contain `</`, which would end the element early.
    pub(crate) script: Option<&'static str>,
}

impl Frame {
    /// Returns the `Content-Security-Policy` of the page. It allows the embedded style sheet and the embedded script by
    /// their hashes, and nothing else.
    pub(crate) fn policy(&self) -> String {
        let script =
            self.script.map(|script| format!("script-src {}; ", source_of(script))).unwrap_or_default();
        let style = source_of(STYLE);
        format!("default-src 'none'; style-src {style}; {script}base-uri 'none'; form-action 'none'")
    }
}

/// Returns the hash source that allows an inline style or script
/// ([CSP Level 3](https://www.w3.org/TR/CSP3/#grammardef-hash-source)).
fn source_of(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::of(text.as_bytes()).as_bytes()))
}

/// The escaper of our templates. The result is safe as text and in quoted attributes.
///
/// Characters that reorder text and control characters other than white space become U+FFFD, because they could make text
/// look like something else.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Text;

impl Escaper for Text {
    fn write_escaped_str<W: Write>(&self, mut page: W, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| self.write_escaped_char(&mut page, c))
    }

    fn write_escaped_char<W: Write>(&self, mut page: W, c: char) -> fmt::Result {
        match c {
            '&' => page.write_str("&amp;"),
            '<' => page.write_str("&lt;"),
            '>' => page.write_str("&gt;"),
            '"' => page.write_str("&quot;"),
            '\'' => page.write_str("&#39;"),
            '\n' | '\r' | '\t' => page.write_char(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => page.write_char('\u{fffd}'),
            c if c.is_control() => page.write_char('\u{fffd}'),
            c => page.write_char(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escape(text: &str) -> String {
        let mut escaped = String::new();
        Text.write_escaped_str(&mut escaped, text).unwrap();
        escaped
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
        assert_eq!(escape("<script>\"&'\u{202e}"), "&lt;script&gt;&quot;&amp;&#39;\u{fffd}");
        assert_eq!(escape("gpj.\u{202e}exe\u{2066}\0"), "gpj.\u{fffd}exe\u{fffd}\u{fffd}");
        assert_eq!(escape("\u{1b}[31m\ta\r\n"), "\u{fffd}[31m\ta\r\n");
    }

    #[test]
    fn the_style_sheet_is_self_contained() {
        assert!(!STYLE.contains("</"), "the element would end early, and the hash would differ");
        assert!(!STYLE.contains("http") && !STYLE.contains("url("), "pages load nothing");
    }
}
