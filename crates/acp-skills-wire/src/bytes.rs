//! Compares and finds bytes on the hot path. The static program is linked with musl, whose `memcmp` compares one byte at a time. So we
//! compare integers, which never becomes a call of the C library, in contrast to a comparison of long arrays.

/// The length of a chunk of a long comparison in bytes.
const CHUNK: usize = 32;

/// The length in bytes from which a search is faster with a call of `memchr`.
pub const MANY: usize = 96;

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

/// Returns true if `bytes` contains `byte`. Short texts are searched without a call.
#[inline]
pub fn contains(bytes: &[u8], byte: u8) -> bool {
    match (bytes.len(), bytes.last_chunk()) {
        (..MANY, Some(&end)) => {
            // The end can overlap the last chunk.
            bytes.as_chunks().0.iter().any(|&chunk| is_in(chunk, byte)) || is_in(end, byte)
        }
        (..MANY, None) => bytes.contains(&byte),
        _ => memchr::memchr(byte, bytes).is_some(),
    }
}

/// Returns true if a chunk contains `byte`. All bytes are compared at the same time: a byte that is equal becomes 0, and only a subtraction
/// from 0 sets the highest bit of a byte whose highest bit was not set.
#[inline]
fn is_in(chunk: [u8; 8], byte: u8) -> bool {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    let different = u64::from_ne_bytes(chunk) ^ (ONES * u64::from(byte));
    different.wrapping_sub(ONES) & !different & HIGHEST != 0
}

/// Compares two slices, which must have the same length.
#[inline]
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    match a.len() {
        CHUNK.. => is_long_equal(a, b),
        16.. => are_ends_equal(a, b, u128::from_ne_bytes),
        8.. => are_ends_equal(a, b, u64::from_ne_bytes),
        4.. => are_ends_equal(a, b, u32::from_ne_bytes),
        _ => a.iter().eq(b),
    }
}

/// Compares two slices, which must have the same length, at least [`CHUNK`].
fn is_long_equal(a: &[u8], b: &[u8]) -> bool {
    let (Some(end_of_a), Some(end_of_b)) = (a.last_chunk(), b.last_chunk()) else { return false };
    let mut chunks = a.as_chunks().0.iter().zip(b.as_chunks().0);
    // The end can overlap the last chunk.
    chunks.all(|(a, b)| is_chunk_equal(a, b)) && is_chunk_equal(end_of_a, end_of_b)
}

/// Compares two chunks. An integer of 128 bits is compared with one vector instruction.
#[inline]
fn is_chunk_equal(a: &[u8; CHUNK], b: &[u8; CHUNK]) -> bool {
    let [first_of_a, second_of_a] = halves(a);
    let [first_of_b, second_of_b] = halves(b);
    (first_of_a ^ first_of_b) | (second_of_a ^ second_of_b) == 0
}

#[inline]
fn halves(chunk: &[u8; CHUNK]) -> [u128; 2] {
    let (first, second) = chunk.split_at(CHUNK / 2);
    [first, second].map(|half| half.first_chunk().map_or(0, |half| u128::from_ne_bytes(*half)))
}

/// Compares the first and the last `N` bytes of two slices, which are all bytes if the slices have at most 2 × `N` bytes.
#[inline]
fn are_ends_equal<const N: usize, T: PartialEq>(a: &[u8], b: &[u8], read: fn([u8; N]) -> T) -> bool {
    let ends = |bytes: &[u8]| Some((read(*bytes.first_chunk()?), read(*bytes.last_chunk()?)));
    ends(a) == ends(b)
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
            let mut text = vec![b'a'; bytes.len()];
            prop_assert!(!contains(&text, b'"'));
            if let Some(byte) = text.get_mut(flip) {
                *byte = b'"';
                prop_assert!(contains(&text, b'"'));
            }
        }
    }
}
