//! Decodes JSON strings, including those that are not valid Unicode.
//!
//! Programs that truncate texts can write invalid ones: JavaScript writes half of a surrogate pair, and other languages write
//! half of a UTF-8 sequence. Clients show U+FFFD instead, followed by the rest of the text. This decoder should return the
//! same text.

use std::borrow::Cow;

/// Decodes the JSON string `raw`. Returns `None` if this is not a valid string.
pub(crate) fn exact(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = inside(raw)?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(raw).ok().map(Cow::Owned)
}

/// Decodes the JSON string `raw` like [`exact`], but replaces invalid characters by U+FFFD and keeps invalid escapes as they are.
/// Returns `None` if this is not a string.
pub(crate) fn lossy(raw: &[u8]) -> Option<Cow<'_, str>> {
    exact(raw).or_else(|| Some(Cow::Owned(unescaped(&String::from_utf8_lossy(inside(raw)?)))))
}

fn inside(raw: &[u8]) -> Option<&[u8]> {
    raw.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

fn unescaped(mut rest: &str) -> String {
    let mut text = String::with_capacity(rest.len());
    while let Some((before, escape)) = rest.split_once('\\') {
        text.push_str(before);
        let (escaped, after) = escape.split_at(escape.chars().next().map_or(0, char::len_utf8));
        rest = after;
        match escaped {
            "n" => text.push('\n'),
            "r" => text.push('\r'),
            "t" => text.push('\t'),
            "b" => text.push('\u{8}'),
            "f" => text.push('\u{c}'),
            "\"" | "\\" | "/" => text.push_str(escaped),
            "u" => match unit(after) {
                Some(first) => {
                    rest = &after[4..];
                    let second = rest.strip_prefix("\\u").and_then(unit);
                    let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
                    let pair = pair.filter(|c| c.len_utf16() == 2);
                    let alone = || char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER);
                    text.push(pair.unwrap_or_else(alone));
                    rest = &rest[pair.map_or(0, |_| "\\ud83d".len())..];
                }
                None => text.push_str("\\u"),
            },
            _ => {
                text.push('\\');
                text.push_str(escaped);
            }
        }
    }
    text + rest
}

/// Reads the four hexadecimal digits at the start of `text`.
fn unit(text: &str) -> Option<u16> {
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_characters_are_replaced() {
        for (raw, text) in [
            (br#""plain""#.as_slice(), "plain"),
            (br#""a\ud83d""#, "a\u{fffd}"),
            (br#""\ude00\ud83d\ude00\ud83d""#, "\u{fffd}\u{1f600}\u{fffd}"),
            (br#""\ud83d\u0041\n\ud83dx""#, "\u{fffd}A\n\u{fffd}x"),
            (b"\"\xe2\x82 <\\u003c\"", "\u{fffd} <<"),
            (b"\"a\tb\\tc\"", "a\tb\tc"),
            (br#""\q\u12 \u12\ud800""#, "\\q\\u12 \\u12\u{fffd}"),
        ] {
            assert_eq!(lossy(raw).as_deref(), Some(text), "{}", String::from_utf8_lossy(raw));
        }
        assert_eq!((lossy(b"12"), lossy(b"\""), lossy(b"null")), (None, None, None));
    }

    proptest! {
        /// Valid strings have the same text with both decoders.
        #[test]
        fn agrees_with_a_full_parser(text: String, escaped: bool) {
            let raw = serde_json::Value::from(text.as_str()).to_string();
            let inner = &raw[1..raw.len() - 1];
            prop_assert_eq!(unescaped(inner), &*text);
            if escaped {
                let raw: Vec<_> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
                prop_assert_eq!(unescaped(&raw.concat()), text);
            }
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            lossy(&[b"\"", bytes.as_slice(), b"\""].concat());
        }
    }
}
