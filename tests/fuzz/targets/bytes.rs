//! [`Bytes`]: decisions from the bytes of the input, so that a fuzzer changes a decision if it changes a byte.

/// The remaining bytes. After the last byte, every decision is the first choice.
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn next(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// Returns a number below `end`, which is at most 256.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::from(self.next()) % end
    }

    pub(super) fn choose<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns up to 31 bytes as text.
    pub(super) fn text(&mut self) -> String {
        let count = self.below(32).min(self.0.len());
        let (text, rest) = self.0.split_at(count);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }
}
