//! What a JSON string says: exactly, or as far as it says anything.
//!
//! Programs that cut texts write what is no text: JavaScript half a surrogate pair, others half a character. Whoever
//! shows that shows U+FFFD in its place, and what stands beside it is still there to be read.

use std::borrow::Cow;

/// The text of the JSON string `raw`; `None` for anything else and for text that is not valid.
pub(crate) fn exact(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = inside(raw)?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(raw).ok().map(Cow::Owned)
}

/// The same with U+FFFD for what is no character, and escapes that are none as they are; `None` for what is no string.
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

/// The four hexadecimal digits that `text` begins with.
fn unit(text: &str) -> Option<u16> {
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_can_be_read() {
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
        /// What can be read exactly says the same when it is read piece by piece.
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
