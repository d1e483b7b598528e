//! Decides which files are text that can be shown to the user.
//!
//! The decision errs on the side of showing: a script that begins like a picture, contains zero bytes, or has an unknown encoding is
//! shown, with escapes for the bytes that are not text.

use std::{fmt::Write, str::Utf8Chunk};

use skills_core::{files::SKILL_FILE_NAMES, frontmatter, scan};

/// A file is text if at most one in this number of bytes is not part of a text. Otherwise, the file is binary.
const TEXT_PER_OTHER_BYTE: usize = 10;

/// The maximum size of a script that is shown although it is binary, in bytes. The escapes of a byte take four characters.
const MAX_ESCAPED_BYTES: usize = 1024 * 1024;

/// Returns the text of a file, or `None` if it is binary. Bytes that are not UTF-8 are written as `\xNN`. A `SKILL.md` in UTF-16 is
/// decoded, as it is for the model.
pub(super) fn text_of(path: &str, bytes: &[u8]) -> Option<String> {
    if is_skill_file(path) && (bytes.starts_with(&[0xFE, 0xFF]) || bytes.starts_with(&[0xFF, 0xFE])) {
        return Some(frontmatter::decode(bytes).into_owned());
    }
    let of_chunk = |chunk: Utf8Chunk<'_>| {
        chunk.valid().bytes().filter(|byte| is_binary(*byte)).count() + chunk.invalid().len()
    };
    let others: usize = bytes.utf8_chunks().map(of_chunk).sum();
    let is_binary = others * TEXT_PER_OTHER_BYTE > bytes.len();
    if is_binary && (bytes.len() > MAX_ESCAPED_BYTES || !is_read_as_text(path, bytes)) {
        return None;
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    Some(text)
}

/// Returns true for control characters that texts don't contain.
fn is_binary(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0xE..=0x1A | 0x1C..=0x1F | 0x7F)
}

/// Returns true if a model or an interpreter reads the file as text, whatever it contains.
fn is_read_as_text(path: &str, bytes: &[u8]) -> bool {
    is_skill_file(path) || is_script(path, bytes)
}

fn is_skill_file(path: &str) -> bool {
    SKILL_FILE_NAMES.contains(&path.rsplit('/').next().unwrap_or(path))
}

/// Returns true if an interpreter may run a file that begins with `start`: it has the extension of a script, or begins with `#!`.
fn is_script(path: &str, start: &[u8]) -> bool {
    scan::is_script(path) || start.starts_with(b"#!")
}

/// Returns true if the user should see the file in the list of scripts: it is a script, or it is in `scripts/`. A compiled program in
/// `scripts/` is not text.
pub(super) fn is_offered_as_script(path: &str, start: &[u8]) -> bool {
    path.starts_with("scripts/") || is_script(path, start)
}
