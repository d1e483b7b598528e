//! [`has_more_values_than`] and [`parsing_lock`]: limit the memory of JSON parsers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use memchr::memchr2;

/// The maximum number of values in a text from others that is parsed as a whole. A value needs up to 300 bytes of memory, even if it is only one
/// digit.
pub const MAX_VALUES: usize = 256 * 1024;

/// The maximum size of a text that is parsed at the same time as others, in bytes. It needs up to 5 MB of memory.
pub const MAX_SHORT_BYTES: usize = 64 * 1024;

/// Returns a lock to hold while a text is parsed. Returns `None` for a text that is not longer than [`MAX_SHORT_BYTES`], which needs no lock.
///
/// A text can need 80 MB of memory while it is parsed, and a project can name any number of servers that send one at the same time. Blocks
/// while another thread has the lock. No other lock is taken while it is held.
pub fn parsing_lock(text: &[u8]) -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    (text.len() > MAX_SHORT_BYTES).then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns true if a JSON text contains more than about `max` values. A parser needs memory for each value, which can be a hundred
/// times its length.
pub fn has_more_values_than(text: &[u8], max: usize) -> bool {
    // A value is at least one byte long.
    if text.len() <= max {
        return false;
    }
    let mut rest = text;
    let mut values = 0;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b',' | b'[' | b'{' => values += 1,
            b'"' => rest = after_string(after),
            _ => {}
        }
        if values > max {
            return true;
        }
    }
    false
}

/// Returns the bytes after a string. `text` begins in the string.
fn after_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr2(b'"', b'\\', text) {
        if text[at] == b'"' {
            return &text[at + 1..];
        }
        text = text.get(at + 2..).unwrap_or_default();
    }
    &[]
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    #[test]
    fn counts_values() {
        for (message, values) in [
            (r#"{"a":[1,2,3]}"#, 4),
            (r#"[[],{},{"a":{"b":1}}]"#, 7),
            (r#"{"a":"[,{\"[,\\"}"#, 1),
            (r#"["a","b","#, 3),
            (r#"{"a":",,,,,,,,"#, 1),
            (r#"{"a":",,\"#, 1),
        ] {
            let padded = format!("{message}{}", " ".repeat(20));
            assert!(has_more_values_than(padded.as_bytes(), values - 1), "{message}");
            assert!(!has_more_values_than(padded.as_bytes(), values), "{message}");
        }
    }

    #[test]
    fn large_texts_are_parsed_one_at_a_time() {
        let large = vec![b' '; MAX_SHORT_BYTES + 1];
        assert!(parsing_lock(&large[1..]).is_none());
        let parsing = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _guard = parsing_lock(&large);
                        assert_eq!(parsing.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        parsing.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
