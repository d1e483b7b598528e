//! HTML pages that open from disk: a template with its parts, text that is escaped, and what a page's policy allows.

use base64::{Engine, engine::general_purpose::STANDARD};
use skills_core::remote::Sha256;

/// `template` with a text for each `{{name}}` in it; a name without a text leaves nothing.
pub(crate) fn fill(template: &str, parts: &[(&str, &str)]) -> String {
    let length = parts.iter().map(|part| part.1.len()).sum::<usize>();
    let mut page = String::with_capacity(template.len() + length);
    // One pass: what is put in may look like a place for something else.
    for (number, piece) in template.split("{{").enumerate() {
        let (name, text) =
            if number == 0 { ("", piece) } else { piece.split_once("}}").unwrap_or(("", piece)) };
        page.extend(parts.iter().filter(|part| part.0 == name).map(|part| part.1));
        page.push_str(text);
    }
    page
}

/// A style or a script that stands in the page itself, as its `Content-Security-Policy` allows it.
pub(crate) fn source_of(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::of(text.as_bytes()).as_bytes()))
}

/// `text` as text or in an attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Characters that turn text around would make what stands there look like something else.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\0' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_no_template() {
        let template = "<title>{{title}}</title>{{unknown}}<p>{{text}} {{title}}";
        let parts = [("title", "{{text}}"), ("text", "}}{{title}}")];
        assert_eq!(fill(template, &parts), "<title>{{text}}</title><p>}}{{title}} {{text}}");
        assert_eq!(fill("no place", &parts), "no place");
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(escape("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
        assert_eq!(escape("gpj.\u{202e}exe\u{2066}\0"), "gpj.\u{fffd}exe\u{fffd}\u{fffd}");
    }
}
