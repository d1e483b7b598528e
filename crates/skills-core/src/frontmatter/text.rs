//! Bytes to text: UTF-8 with replacement, UTF-16 with a byte order mark, and what YAML does not allow in a file.

use std::borrow::Cow;

/// The text in `bytes`, and what was wrong with it.
pub(super) struct Decoded<'a> {
    pub text: Cow<'a, str>,
    pub fault: Option<Fault>,
}

/// Why the bytes are not the UTF-8 that they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The byte with this offset is no UTF-8; replaced by U+FFFD.
    Invalid { offset: usize },
    /// UTF-16, as its byte order mark says.
    Utf16,
}

/// Decodes `bytes`. A character that the end of `bytes` cuts is left out, because that end may be a limit of reading.
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

/// `text` without the characters that YAML forbids in a file, and the byte offset of the first of them.
pub(super) fn printable(text: &str) -> (Cow<'_, str>, Option<usize>) {
    // Nearly every file is plain, and two comparisons a byte are cheaper than decoding characters.
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

/// `text` as a description: trimmed, without control characters; line breaks and tabs stay.
pub(super) fn readable(text: &str) -> String {
    let text = text.trim();
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7F || byte == 0xC2) {
        let kept: String = text.chars().filter(|&c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        // What stood between control characters may be nothing but blanks.
        return kept.trim().to_owned();
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_what_editors_write() {
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
    fn drops_what_yaml_forbids() {
        assert_eq!(printable("a\tb\r\nc é ü"), (Cow::Borrowed("a\tb\r\nc é ü"), None));
        assert_eq!(printable("a\0b\u{85}c\u{FEFF}d"), (Cow::Borrowed("abcd"), Some(1)));
        assert_eq!(readable(" a\r\nb\u{7F}\u{9F}c \u{1}"), "a\nbc");
    }
}
