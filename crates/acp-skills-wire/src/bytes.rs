//! Compares bytes on the hot path. The static program is linked with musl, whose `memcmp` compares one byte at a time. So we
//! compare arrays of a fixed size, which the compiler turns into inline instructions.

const CHUNK: usize = 64;

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
    match a.len() {
        CHUNK.. => {
            let chunks = a.as_chunks::<CHUNK>().0.iter().zip(b.as_chunks::<CHUNK>().0);
            // The last chunk can overlap the chunk before.
            chunks.into_iter().all(|(a, b)| a == b) && a.last_chunk::<CHUNK>() == b.last_chunk::<CHUNK>()
        }
        32.. => are_ends_equal::<32>(a, b),
        16.. => are_ends_equal::<16>(a, b),
        8.. => are_ends_equal::<8>(a, b),
        4.. => are_ends_equal::<4>(a, b),
        _ => a.iter().eq(b),
    }
}

/// Compares the first and the last `N` bytes of two slices, which are all bytes if the slices have at most 2 × `N` bytes.
#[inline]
fn are_ends_equal<const N: usize>(a: &[u8], b: &[u8]) -> bool {
    a.first_chunk::<N>() == b.first_chunk::<N>() && a.last_chunk::<N>() == b.last_chunk::<N>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(bytes in proptest::collection::vec(0_u8..2, 0..200), at in 0_usize..200, flip in 0_usize..200) {
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
