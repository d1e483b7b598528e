//! Decodes bytes, and removes characters that YAML doesn't allow.

use std::borrow::Cow;

/// A decoded text.
pub(super) struct Decoded<'a> {
    pub text: Cow<'a, str>,
    pub fault: Option<Fault>,
}

/// A problem with the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Invalid UTF-8 was replaced by U+FFFD. `offset` is the position of the first invalid byte.
    Invalid { offset: usize },
    /// The text is UTF-16, which was recognised by its byte order mark.
    Utf16,
}

/// Decodes UTF-8, or UTF-16 with a byte order mark. An incomplete character at the end is left out, because `bytes` may be only
/// the beginning of a file.
pub(super) fn decode(bytes: &[u8]) -> Decoded<'_> {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => return utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => return utf16(rest, u16::from_be_bytes),
        _ => {}
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Decoded { text: Cow::Borrowed(text), fault: None },
        Err(error) => {
            let offset = error.valid_up_to();
            if error.error_len().is_none() {
                return Decoded { text: String::from_utf8_lossy(&bytes[..offset]), fault: None };
            }
            Decoded { text: String::from_utf8_lossy(bytes), fault: Some(Fault::Invalid { offset }) }
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Decoded<'static> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Decoded { text: Cow::Owned(text), fault: Some(Fault::Utf16) }
}

/// Removes the characters that YAML forbids. Also returns the byte offset of the first of them.
pub(super) fn printable(text: &str) -> (Cow<'_, str>, Option<usize>) {
    // This is a fast path for nearly all files, since comparing bytes is faster than decoding characters.
    let suspicious = |&byte: &u8| {
        (byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r'))
            || byte == 0x7F
            || byte == 0xC2
            || byte == 0xEF
    };
    if !text.as_bytes().iter().any(suspicious) {
        return (Cow::Borrowed(text), None);
    }
    match text.find(is_forbidden) {
        None => (Cow::Borrowed(text), None),
        Some(first) => (Cow::Owned(text.chars().filter(|&c| !is_forbidden(c)).collect()), Some(first)),
    }
}

fn is_forbidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
}

/// Trims `text` and removes control characters except line breaks and tabs.
pub(super) fn readable(text: &str) -> String {
    let text = text.trim();
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7F || byte == 0xC2) {
        let kept: String = text.chars().filter(|&c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        // Trim again to remove spaces that were next to a removed character.
        return kept.trim().to_owned();
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_and_utf16_are_decoded() {
        let check = |bytes: &[u8], text: &str, fault: Option<Fault>| {
            let decoded = decode(bytes);
            assert_eq!((decoded.text.as_ref(), decoded.fault), (text, fault));
        };
        check("é".as_bytes(), "é", None);
        check(b"a\xFFb", "a\u{FFFD}b", Some(Fault::Invalid { offset: 1 }));
        check(b"ab\xC3", "ab", None);
        check(b"\xFF\xFEa\0b\0", "ab", Some(Fault::Utf16));
        check(b"\xFE\xFF\0a\0b\0", "ab", Some(Fault::Utf16));
    }

    #[test]
    fn characters_that_yaml_forbids_are_removed() {
        assert_eq!(printable("a\tb\r\nc é ü"), (Cow::Borrowed("a\tb\r\nc é ü"), None));
        assert_eq!(printable("a\0b\u{85}c\u{FEFF}d"), (Cow::Borrowed("abcd"), Some(1)));
        assert_eq!(readable(" a\r\nb\u{7F}\u{9F}c \u{1}"), "a\nbc");
    }
}
