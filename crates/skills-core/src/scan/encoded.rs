//! Finds and decodes base64 in a text.

use std::{borrow::Cow, sync::LazyLock};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use regex::Regex;

/// The maximum number of characters of a passage to decode.
const MAX_CHARS: usize = 256 * 1024;

/// Matches a passage that may be base64. It can span several lines.
static PASSAGE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"[A-Za-z0-9+/_-]{24,}(?:\r?\n[ \t]*[A-Za-z0-9+/_-]{4,})*={0,2}";
    Regex::new(pattern).expect("a regular expression")
});

const ENGINE: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ENGINE);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, ENGINE);

/// Calls `found` for each passage that is valid base64, with its start and end in bytes, the decoded bytes, and the text at
/// the beginning of those bytes.
pub(super) fn find(text: &str, mut found: impl FnMut(usize, usize, &[u8], &str)) {
    for passage in PASSAGE.find_iter(text) {
        let end = passage.as_str().len().min(MAX_CHARS);
        let mut letters: Vec<u8> =
            passage.as_str().as_bytes()[..end].iter().copied().filter(|c| !c.is_ascii_whitespace()).collect();
        while letters.last() == Some(&b'=') {
            letters.pop();
        }
        // The match may include a word of the surrounding text, so that the length is invalid.
        letters.truncate(letters.len() - usize::from(letters.len() % 4 == 1));
        let is_url_safe = letters.iter().any(|c| matches!(c, b'-' | b'_'));
        let engine = if is_url_safe { &URL_SAFE } else { &STANDARD };
        let Ok(bytes) = engine.decode(&letters) else { continue };
        let text = match (utf16(&bytes), bytes.utf8_chunks().next()) {
            (Some(text), _) => Cow::Owned(text),
            // The bytes after the first invalid sequence may come from a word of the surrounding text.
            (None, chunk) => Cow::Borrowed(chunk.map_or("", |chunk| chunk.valid())),
        };
        found(passage.start(), passage.end(), &bytes, &text);
    }
}

/// Decodes UTF-16 if nearly all of it is ASCII. PowerShell accepts commands in this encoding.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (pairs, _) = bytes.as_chunks::<2>();
    let is_plain = |pair: &&[u8; 2]| pair[1] == 0 && pair[0] != 0;
    if pairs.len() < 8 || pairs.iter().filter(is_plain).count() * 10 < pairs.len() * 9 {
        return None;
    }
    let units = pairs.iter().map(|pair| u16::from_le_bytes(*pair));
    Some(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}
