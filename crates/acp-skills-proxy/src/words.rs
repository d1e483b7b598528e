//! Numbers in sentences, and commands in messages.

use std::{fmt::Display, path::Path};

use acp_skills_setup::shell::shell_word;
use skills_core::text::shown;

/// Returns a number with its noun: `1 skill`, `2 skills`.
pub(crate) fn count<N: Display + PartialEq + From<u8> + Copy>(number: N, what: &str) -> String {
    format!("{number} {}", plural(number, what))
}

/// Returns the noun for this number: `skill`, `skills`.
pub(crate) fn plural<N: PartialEq + From<u8>>(number: N, what: &str) -> String {
    if number == N::from(1) { what.to_owned() } else { format!("{what}s") }
}

/// Formats the words of a command for a shell. The program is named without its directory.
pub(crate) fn command_line(words: &[impl AsRef<str>]) -> String {
    let program = words.first().map(|word| Path::new(word.as_ref()));
    let program = program.and_then(Path::file_stem).map(|name| name.to_string_lossy().into_owned());
    let rest = words.iter().skip(1).map(|word| shell_word(word.as_ref()));
    let line: Vec<_> = program.into_iter().chain(rest).collect();
    shown(&line.join(" ")).into_owned()
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
