//! Reads the content of a file and classifies it as text, an image, or other binary data.

use std::{
    borrow::Cow,
    io::{BufRead, BufReader, Cursor, Read},
};

use memchr::memchr;

use super::{FileError, HARD_CAP_BYTES, SOFT_CAP_BYTES};

/// The number of bytes at the beginning of a file that decide its type.
pub(crate) const SNIFF_BYTES: u64 = 8 * 1024;

/// The image types that models and hosts support.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The lines of a text to read. The default is the whole text, up to [`SOFT_CAP_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// The number of the first line to read, starting at 1. Zero means the same as 1.
    pub offset: Option<u64>,
    /// The maximum number of lines to read. Zero means no limit.
    pub limit: Option<u64>,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileContent {
    /// Text.
    Text {
        /// The requested lines, including their line ends. Invalid UTF-8 is replaced by U+FFFD.
        text: String,
        /// The number of the first line in `text`, starting at 1.
        first_line: u64,
        /// The number of lines in the whole file.
        total_lines: u64,
        /// A note for the model if lines are missing (including how to read them) or if bytes were replaced.
        note: Option<String>,
    },
    /// An image of a supported type.
    Image {
        /// The media type, such as `image/png`.
        media_type: &'static str,
        /// The bytes of the whole file.
        data: Vec<u8>,
    },
    /// Other binary data, or an image with more than [`SOFT_CAP_BYTES`].
    Binary {
        /// The probable media type; `application/octet-stream` if it is unknown.
        media_type: &'static str,
        /// The size of the file in bytes.
        size: u64,
    },
}

/// The type of a file according to its first bytes. Contains the media type.
pub(crate) enum Kind {
    Text,
    Image(&'static str),
    Binary(&'static str),
}

/// Reads and classifies `file`. `path` is used in errors only, and `size` is the size of the whole file in bytes.
pub(crate) fn read(
    path: &str,
    mut file: impl Read,
    size: u64,
    options: ReadOptions,
) -> Result<FileContent, FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), source };
    let mut start = Vec::new();
    (&mut file).take(SNIFF_BYTES).read_to_end(&mut start).map_err(io)?;
    match sniff(&start) {
        Kind::Image(media_type) if size <= SOFT_CAP_BYTES => {
            let mut data = start;
            // Limit the read, because the file may have grown since it was opened.
            file.take(SOFT_CAP_BYTES).read_to_end(&mut data).map_err(io)?;
            Ok(FileContent::Image { media_type, data })
        }
        Kind::Image(media_type) | Kind::Binary(media_type) => Ok(FileContent::Binary { media_type, size }),
        Kind::Text => {
            let lines = Lines::read(path, Cursor::new(start).chain(file), options)?;
            if memchr(0, &lines.bytes).is_some() {
                return Ok(FileContent::Binary { media_type: "application/octet-stream", size });
            }
            lines.into_content(path, options)
        }
    }
}

/// Determines the type of a file by its first bytes. Text is checked first, because the magic numbers of some formats are
/// also common words (`BM`, `II*`).
pub(crate) fn sniff(start: &[u8]) -> Kind {
    let has_control = start.iter().any(|byte| matches!(byte, 0..=6 | 0xE..=0x1A | 0x1C..=0x1F | 0x7F));
    let text = &start[..char_boundary(start)];
    if !has_control && std::str::from_utf8(text).is_ok() {
        return Kind::Text;
    }
    match start {
        [0xFF, 0xFE, ..] if start.get(2..4) != Some(&[0, 0]) => {
            return Kind::Binary("text/plain; charset=utf-16le");
        }
        [0xFE, 0xFF, ..] => return Kind::Binary("text/plain; charset=utf-16be"),
        _ => {}
    }
    match infer::get(start) {
        Some(kind) if kind.matcher_type() == infer::MatcherType::Text => Kind::Text,
        Some(kind) if IMAGES.contains(&kind.mime_type()) => Kind::Image(kind.mime_type()),
        Some(kind) => Kind::Binary(kind.mime_type()),
        None if has_control => Kind::Binary("application/octet-stream"),
        // The text has another encoding, but most of it will be readable.
        None => Kind::Text,
    }
}

/// Returns the probable media type of a binary file by its first bytes; `application/octet-stream` if it is unknown.
pub fn media_type(start: &[u8]) -> &'static str {
    infer::get(start).map_or("application/octet-stream", |kind| kind.mime_type())
}

/// Returns the length of `bytes` without an incomplete UTF-8 sequence at its end.
pub(crate) fn char_boundary(bytes: &[u8]) -> usize {
    for back in 1..=3.min(bytes.len()) {
        let at = bytes.len() - back;
        let length = match bytes[at] {
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            0b1000_0000..=0b1011_1111 => continue,
            _ => break,
        };
        return if back < length { at } else { bytes.len() };
    }
    bytes.len()
}

/// The requested lines of a text, and the number of all lines.
struct Lines {
    bytes: Vec<u8>,
    first: u64,
    /// The number of the line after the last one in `bytes`.
    next: u64,
    total: u64,
    /// True if the only line in `bytes` is truncated, because it exceeds the soft cap by itself.
    cut: bool,
}

impl Lines {
    /// Reads the whole file to count its lines, but keeps only the requested ones.
    fn read(path: &str, source: impl Read, options: ReadOptions) -> Result<Self, FileError> {
        let first = options.offset.unwrap_or(1).max(1);
        let end =
            options.limit.filter(|limit| *limit > 0).map_or(u64::MAX, |limit| first.saturating_add(limit));
        let cap = usize::try_from(SOFT_CAP_BYTES).unwrap_or(usize::MAX);
        let mut lines = Self { bytes: Vec::new(), first, next: first, total: 0, cut: false };
        let mut reader = BufReader::with_capacity(64 * 1024, source);
        let mut line = 1;
        let mut line_start = 0;
        let mut read = 0_u64;
        let mut full = false;
        let mut at_start = true;
        loop {
            let chunk =
                reader.fill_buf().map_err(|source| FileError::Io { path: path.to_owned(), source })?;
            if chunk.is_empty() {
                break;
            }
            let length = chunk.len();
            read += length as u64;
            if read > HARD_CAP_BYTES {
                return Err(FileError::TooLarge { path: path.to_owned(), size: read, cap: HARD_CAP_BYTES });
            }
            let mut rest = chunk;
            while !rest.is_empty() {
                let line_end = memchr(b'\n', rest);
                let (part, after) = rest.split_at(line_end.map_or(rest.len(), |at| at + 1));
                rest = after;
                if line >= first && line < end && !full {
                    if at_start {
                        line_start = lines.bytes.len();
                    }
                    let room = cap - lines.bytes.len();
                    full = part.len() > room;
                    lines.bytes.extend_from_slice(&part[..part.len().min(room)]);
                    lines.next = line + 1;
                    if full {
                        lines.cut_back(line, line_start);
                    }
                }
                at_start = line_end.is_some();
                line += u64::from(at_start);
            }
            reader.consume(length);
        }
        lines.total = if at_start { line - 1 } else { line };
        Ok(lines)
    }

    /// Removes the last line, which didn't fit. If it is the only line, only its end is removed.
    fn cut_back(&mut self, line: u64, line_start: usize) {
        self.cut = line_start == 0;
        if self.cut {
            self.bytes.truncate(char_boundary(&self.bytes));
        } else {
            self.bytes.truncate(line_start);
            self.next = line;
        }
    }

    fn into_content(self, path: &str, options: ReadOptions) -> Result<FileContent, FileError> {
        if self.first > self.total && options.offset.is_some_and(|offset| offset > 1) {
            return Err(FileError::PastEnd {
                path: path.to_owned(),
                offset: self.first,
                total_lines: self.total,
            });
        }
        let bytes = match self.bytes.strip_prefix(b"\xEF\xBB\xBF") {
            Some(rest) if self.first == 1 => rest,
            _ => &self.bytes,
        };
        let decoded = String::from_utf8_lossy(bytes);
        let mut notes = Vec::new();
        if matches!(decoded, Cow::Owned(_)) {
            notes.push("Some bytes are not UTF-8 and were replaced by `\u{FFFD}`.".to_owned());
        }
        if self.cut {
            notes.push(format!(
                "Line {} is longer than {} MiB; the rest is missing.",
                self.first,
                SOFT_CAP_BYTES >> 20
            ));
        }
        if self.next <= self.total {
            notes.push(format!(
                "Lines {} to {} of {}; to read the next lines, use `offset` {}.",
                self.first,
                self.next - 1,
                self.total,
                self.next
            ));
        }
        Ok(FileContent::Text {
            text: decoded.into_owned(),
            first_line: self.first,
            total_lines: self.total,
            note: (!notes.is_empty()).then(|| notes.join(" ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(bytes: &[u8], offset: u64, limit: u64, expected: Expect) {
        let options = ReadOptions { offset: Some(offset), limit: Some(limit) };
        let shown = match read("f", bytes, bytes.len() as u64, options) {
            Ok(FileContent::Text { text, first_line, total_lines, note }) => {
                format!("{text:?} from {first_line} of {total_lines} {}", note.unwrap_or_default())
            }
            Ok(FileContent::Image { media_type, data }) => format!("image {media_type} {}", data.len()),
            Ok(FileContent::Binary { media_type, size }) => format!("binary {media_type} {size}"),
            Err(error) => format!("{}: {error}", error.code()),
        };
        expected.assert_eq(shown.trim_end());
    }

    #[test]
    fn requested_lines_are_returned() {
        check(b"", 0, 0, expect![[r#""" from 1 of 0"#]]);
        check(b"a", 0, 0, expect![[r#""a" from 1 of 1"#]]);
        check(b"a\nb\n", 0, 0, expect![[r#""a\nb\n" from 1 of 2"#]]);
        check(
            b"a\r\nb",
            1,
            1,
            expect![[r#""a\r\n" from 1 of 2 Lines 1 to 1 of 2; to read the next lines, use `offset` 2."#]],
        );
        check(
            b"a\nb\nc\n",
            2,
            1,
            expect![[r#""b\n" from 2 of 3 Lines 2 to 2 of 3; to read the next lines, use `offset` 3."#]],
        );
        check(b"a\nb\nc\n", 3, 9, expect![[r#""c\n" from 3 of 3"#]]);
        check(b"a\nb\n", 3, 0, expect!["past-end: `offset` is 3, but `f` has only 2 lines"]);
        check(
            b"a\nb\n",
            u64::MAX,
            u64::MAX,
            expect!["past-end: `offset` is 18446744073709551615, but `f` has only 2 lines"],
        );
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        check(b"\xEF\xBB\xBFa\n", 0, 0, expect![[r#""a\n" from 1 of 1"#]]);
        check(
            b"caf\xE9\n",
            0,
            0,
            expect![[r#""caf�\n" from 1 of 1 Some bytes are not UTF-8 and were replaced by `�`."#]],
        );
        check(b"\xFF\xFEa\0", 0, 0, expect!["binary text/plain; charset=utf-16le 4"]);
        check(b"\x1B[1mbold\x1B[0m\n", 0, 0, expect![[r#""\u{1b}[1mbold\u{1b}[0m\n" from 1 of 1"#]]);
    }

    #[test]
    fn content_is_classified() {
        check(b"BMW is a car\n", 0, 0, expect![[r#""BMW is a car\n" from 1 of 1"#]]);
        check(b"<html></html>", 0, 0, expect![[r#""<html></html>" from 1 of 1"#]]);
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 0, 0, expect!["image image/png 16"]);
        check(b"\xFF\xD8\xFF\xE0\0\x10JFIF", 0, 0, expect!["image image/jpeg 10"]);
        check(b"GIF89a\x01\0\x01\0", 0, 0, expect!["image image/gif 10"]);
        check(b"BM\x1e\0\0\0\0\0", 0, 0, expect!["binary image/bmp 8"]);
        check(b"%PDF-1.4\n%\xE2\xE3\xCF\xD3\n", 0, 0, expect!["binary application/pdf 15"]);
        check(b"PK\x03\x04\x14\0", 0, 0, expect!["binary application/zip 6"]);
        check(b"a\0b", 0, 0, expect!["binary application/octet-stream 3"]);
        let late = [vec![b'a'; 9_000], vec![0]].concat();
        check(&late, 0, 0, expect!["binary application/octet-stream 9001"]);
    }

    #[test]
    fn an_image_larger_than_the_soft_cap_is_only_described() {
        let size = SOFT_CAP_BYTES + 1;
        let content = read("f", &b"\x89PNG\r\n\x1a\n\0"[..], size, ReadOptions::default()).unwrap();
        assert_eq!(content, FileContent::Binary { media_type: "image/png", size });
    }

    #[test]
    fn a_long_text_is_split_between_lines_and_can_be_read_in_parts() {
        let line = format!("{}\n", "x".repeat(999));
        let whole = line.repeat(3_000);
        let mut offset = 1;
        let mut joined = String::new();
        let mut reads = 0;
        loop {
            let options = ReadOptions { offset: Some(offset), limit: None };
            let content = read("f", whole.as_bytes(), whole.len() as u64, options).unwrap();
            let FileContent::Text { text, first_line, total_lines, note } = content else { panic!() };
            assert_eq!((first_line, total_lines), (offset, 3_000));
            offset += text.lines().count() as u64;
            joined += &text;
            reads += 1;
            let Some(note) = note else { break };
            assert!(note.ends_with(&format!("to read the next lines, use `offset` {offset}.")), "{note}");
        }
        assert_eq!(reads, 2);
        assert!(joined == whole, "the parts must add up to the whole text");
    }

    #[test]
    fn a_line_longer_than_the_soft_cap_is_truncated_between_characters() {
        let whole = format!("{}\nlast\n", "€".repeat(1_000_000));
        let content = read("f", whole.as_bytes(), whole.len() as u64, ReadOptions::default()).unwrap();
        let FileContent::Text { text, note, .. } = content else { panic!() };
        assert!(text.chars().all(|c| c == '€'));
        assert!(text.len() as u64 > SOFT_CAP_BYTES - 3 && text.len() as u64 <= SOFT_CAP_BYTES);
        expect![[r"Line 1 is longer than 2 MiB; the rest is missing. Lines 1 to 1 of 2; to read the next lines, use `offset` 2."]]
            .assert_eq(&note.unwrap());
    }

    #[test]
    fn a_file_that_grows_beyond_the_hard_cap_is_an_error() {
        let endless = std::io::repeat(b'a');
        let error = read("f", endless, 10, ReadOptions::default()).unwrap_err();
        assert_eq!(error.code(), "too-large");
    }

    proptest::proptest! {
        #[test]
        fn boundaries_never_split_a_character(text in "\\PC{0,12}", cut in 0_usize..40) {
            let bytes = &text.as_bytes()[..cut.min(text.len())];
            let end = char_boundary(bytes);
            proptest::prop_assert!(std::str::from_utf8(&bytes[..end]).is_ok());
            proptest::prop_assert!(bytes.len() - end < 4);
        }
    }
}
