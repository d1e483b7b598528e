//! [`MarkKey`]: the secret from which marks are derived.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{Mark, without_marks};

/// The block size of SHA-256, in bytes.
const BLOCK: usize = 64;

/// The secret from which the marks around a text are derived. If the secret is kept, the same text has the same marks in each
/// session and in each run.
///
/// Without the secret, the marks of a text can't be guessed. This prevents that a skill ends the text that contains it.
#[derive(Clone, Copy)]
pub struct MarkKey([u8; 32]);

impl MarkKey {
    /// Creates a key from random bytes.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Returns `text` between its marks, as [`Mark::wrap`] does.
    pub fn wrap(self, text: &str) -> String {
        let text = without_marks(text);
        self.mark(&text).around(&text)
    }

    /// Returns the marks of a text.
    fn mark(self, text: &str) -> Mark {
        let [a, b, c, d, ..] = hmac(&self.0, text.as_bytes());
        Mark::new(u32::from_be_bytes([a, b, c, d]))
    }
}

/// Hides the secret.
impl fmt::Debug for MarkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MarkKey(..)")
    }
}

/// Returns the [HMAC](https://www.rfc-editor.org/rfc/rfc2104) with SHA-256. The key is at most as long as a block.
fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let pad = |with: u8| {
        let mut pad = [with; BLOCK];
        pad.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        pad
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test cases 1 and 2 of RFC 4231.
    #[test]
    fn the_code_is_an_hmac() {
        for (key, text, expected) in [
            (
                &[0x0b; 20][..],
                "Hi There",
                [
                    0xb034_4c61_d8db_3853_u64,
                    0x5ca8_afce_af0b_f12b,
                    0x881d_c200_c983_3da7,
                    0x26e9_376c_2e32_cff7,
                ],
            ),
            (
                b"Jefe",
                "what do ya want for nothing?",
                [0x5bdc_c146_bf60_754e, 0x6a04_2426_0895_75c7, 0x5a00_3f08_9d27_3983, 0x9dec_58b9_64ec_3843],
            ),
        ] {
            assert_eq!(hmac(key, text.as_bytes())[..], expected.map(u64::to_be_bytes).concat(), "{text}");
        }
    }

    #[test]
    fn marks_depend_on_the_text_and_the_secret() {
        let key = MarkKey::new([1; 32]);
        let wrapped = key.wrap("skills");
        assert_eq!(wrapped, MarkKey::new([1; 32]).wrap("skills"));
        assert_ne!(wrapped, MarkKey::new([2; 32]).wrap("skills"));
        assert_ne!(key.mark("skills"), key.mark("skills "));
        assert_eq!(wrapped, key.mark("skills").wrap("skills"));
        // A text with a mark in it has the marks of what is sent.
        let inside = format!("a {} b", key.mark("a").close());
        assert!(key.wrap(&inside).starts_with(&key.mark(&without_marks(&inside)).open()));
        assert_eq!(format!("{key:?}"), "MarkKey(..)");
    }
}
