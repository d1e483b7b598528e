//! Numbers in sentences.

/// `1 skill`, `2 skills`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {}", plural(number as u64, what))
}

/// `what` for this many: `skill`, `skills`.
pub(crate) fn plural(number: u64, what: &str) -> String {
    if number == 1 { what.to_owned() } else { format!("{what}s") }
}
