//! Numbers in sentences.

use std::fmt::Display;

/// Returns a number with its noun: `1 skill`, `2 skills`.
pub(crate) fn count<N: Display + PartialEq + From<u8> + Copy>(number: N, what: &str) -> String {
    format!("{number} {}", plural(number, what))
}

/// Returns the noun for this number: `skill`, `skills`.
pub(crate) fn plural<N: PartialEq + From<u8>>(number: N, what: &str) -> String {
    if number == N::from(1) { what.to_owned() } else { format!("{what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!([0_usize, 1, 2].map(|number| count(number, "skill")), ["0 skills", "1 skill", "2 skills"]);
        assert_eq!(plural(1_u64, "line"), "line");
    }
}
