//! [`Capture`]: reads an output stream to its end, but keeps only the beginning.

use tokio::io::{AsyncRead, AsyncReadExt};

/// The marker at the end of truncated output.
pub const TRUNCATED: &str = "[output truncated]";

/// A buffer for the first bytes of a stream. The rest is read and discarded, so that the writer never blocks on a full pipe.
#[derive(Debug)]
pub(super) struct Capture {
    bytes: Vec<u8>,
    max: usize,
    truncated: bool,
}

impl Capture {
    /// Creates a buffer of at most `max` bytes.
    pub(super) fn new(max: usize) -> Self {
        Self { bytes: Vec::new(), max, truncated: false }
    }

    /// Reads to the end of `stream`. If the future is dropped earlier, the bytes read so far are kept.
    pub(super) async fn drain(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut chunk = vec![0; 16 * 1024];
        // If we can't read any more, the writer is gone, so we treat an error like the end of the stream.
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            let room = self.max - self.bytes.len();
            self.bytes.extend_from_slice(&chunk[..count.min(room)]);
            self.truncated |= count > room;
        }
    }

    /// Returns the captured text. It ends between two characters, and invalid UTF-8 becomes U+FFFD.
    pub(super) fn into_text(self) -> CapturedText {
        let mut bytes = &self.bytes[..];
        if self.truncated
            && let Some(last) = bytes.utf8_chunks().last()
            && is_incomplete(last.invalid())
        {
            bytes = &bytes[..bytes.len() - last.invalid().len()];
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        let mut truncated = self.truncated;
        // A replacement character takes three bytes, so the text can be longer than the bytes it was decoded from.
        if text.len() > self.max {
            let end = (0..=self.max).rev().find(|&index| text.is_char_boundary(index)).unwrap_or(0);
            text.truncate(end);
            truncated = true;
        }
        CapturedText { text, truncated }
    }
}

/// Returns true if `bytes` are the beginning of a UTF-8 sequence.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// The captured beginning of an output stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedText {
    /// The text, at most as long as the limit in bytes.
    pub text: String,
    /// True if the stream had more output than that.
    pub truncated: bool,
}

impl CapturedText {
    /// Returns the text, followed by [`TRUNCATED`] on a line of its own if output is missing.
    pub fn marked(&self) -> String {
        match (self.truncated, self.text.ends_with('\n') || self.text.is_empty()) {
            (false, _) => self.text.clone(),
            (true, true) => format!("{}{TRUNCATED}", self.text),
            (true, false) => format!("{}\n{TRUNCATED}", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_is_truncated_between_characters() {
        for (input, max, expected) in [
            (&b""[..], 4, ""),
            (b"abcd", 4, "abcd"),
            (b"abcde", 4, "abcd\n[output truncated]"),
            ("aéé".as_bytes(), 4, "aé\n[output truncated]"),
            ("日本".as_bytes(), 5, "日\n[output truncated]"),
            ("日本".as_bytes(), 6, "日本"),
            ("😀😀".as_bytes(), 3, "[output truncated]"),
            (b"abc\nd", 4, "abc\n[output truncated]"),
            (b"\xff\xffab", 4, "\u{fffd}\n[output truncated]"),
            (b"a\xff", 4, "a\u{fffd}"),
            (b"\xff\xe6\x97\xa5", 3, "\u{fffd}\n[output truncated]"),
            (b"ab\xffd", 3, "ab\n[output truncated]"),
        ] {
            let mut capture = Capture::new(max);
            capture.drain(Some(input)).await;
            let text = capture.into_text();
            assert!(text.text.len() <= max, "{input:?}");
            assert_eq!(text.marked(), expected, "{input:?}");
        }
    }
}
