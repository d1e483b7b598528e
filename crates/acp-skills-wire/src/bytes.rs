//! Compares bytes on the hot path. The static program is linked with musl, whose `memcmp` compares one byte at a time. So we
//! compare arrays of 16 bytes, which the compiler turns into inline instructions.

const CHUNK: usize = 16;

/// Returns true if `bytes` begins with `prefix`.
#[inline]
pub fn starts_with(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|head| is_equal(head, prefix))
}

/// Returns `bytes` without `suffix`; `None` if `bytes` doesn't end with it.
#[inline]
pub fn strip_suffix<'a>(bytes: &'a [u8], suffix: &[u8]) -> Option<&'a [u8]> {
    let (rest, tail) = bytes.split_at_checked(bytes.len().checked_sub(suffix.len())?)?;
    is_equal(tail, suffix).then_some(rest)
}

/// Compares two slices, which must have the same length.
#[inline]
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let (a_chunks, a_rest) = a.as_chunks::<CHUNK>();
    let (b_chunks, b_rest) = b.as_chunks::<CHUNK>();
    a_chunks.iter().zip(b_chunks).all(|(a, b)| a == b)
        && match (a.last_chunk::<CHUNK>(), b.last_chunk::<CHUNK>()) {
            // Compare the last 16 bytes here. It doesn't matter that the loop might have compared some of them already.
            (Some(a), Some(b)) => a == b,
            _ => a_rest.iter().eq(b_rest),
        }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(bytes in proptest::collection::vec(0_u8..2, 0..80), at in 0_usize..80, flip in 0_usize..80) {
            let (prefix, suffix) = bytes.split_at(at.min(bytes.len()));
            prop_assert!(starts_with(&bytes, prefix));
            prop_assert_eq!(strip_suffix(&bytes, suffix), Some(prefix));
            let mut other = bytes.clone();
            if let Some(byte) = other.get_mut(flip) {
                *byte ^= 1;
            }
            prop_assert_eq!(starts_with(&other, prefix), other.starts_with(prefix));
            prop_assert_eq!(strip_suffix(&other, suffix), other.strip_suffix(suffix));
            prop_assert!(!starts_with(prefix, &[prefix, b"x"].concat()));
            prop_assert_eq!(strip_suffix(prefix, &[b"x", prefix].concat()), None);
        }
    }
}
