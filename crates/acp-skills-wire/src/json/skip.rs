//! Skips JSON values without reading the contents.

/// Returns the offset of the next member or element, after white space and one comma. Returns `None` at the end of the container.
pub fn next_item(line: &[u8], at: usize, end: usize) -> Option<usize> {
    let mut at = skip_space(line, at);
    if line.get(at) == Some(&b',') {
        at = skip_space(line, at + 1);
    }
    (at < end && !matches!(line[at], b'}' | b']')).then_some(at)
}

/// Returns the offset of the first byte at or after `at` that is not JSON white space.
pub fn skip_space(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// Returns the offset after the value at `at`, or `None` if this value is missing or incomplete.
pub fn skip_value(line: &[u8], at: usize) -> Option<usize> {
    match line.get(at)? {
        b'"' => skip_string(line, at),
        b'{' | b'[' => skip_container(line, at),
        b'}' | b']' | b',' | b':' => None,
        _ => {
            let ends = |byte: &u8| {
                matches!(byte, b',' | b'}' | b']' | b':' | b'"' | b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n')
            };
            Some(line[at..].iter().position(ends).map_or(line.len(), |length| at + length))
        }
    }
}

fn skip_container(line: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match line.get(at)? {
            b'"' => at = skip_string(line, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}

pub(super) fn skip_string(line: &[u8], at: usize) -> Option<usize> {
    if line.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', line.get(at..)?)?;
        if line[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}
