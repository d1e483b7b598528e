//! Numbers in sentences, and words of a command line.

use std::{fmt::Display, path::Path};

use skills_core::text::shown;

/// Returns a number with its noun: `1 skill`, `2 skills`.
pub(crate) fn count<N: Display + PartialEq + From<u8> + Copy>(number: N, what: &str) -> String {
    format!("{number} {}", plural(number, what))
}

/// Returns the noun for this number: `skill`, `skills`.
pub(crate) fn plural<N: PartialEq + From<u8>>(number: N, what: &str) -> String {
    if number == N::from(1) { what.to_owned() } else { format!("{what}s") }
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Formats words as a command line for a POSIX shell.
pub(crate) fn shell_line(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
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

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in [
            ("a", "a"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$(x)", "'$(x)'"),
            ("~/a:b=c@1%2+3,4", "~/a:b=c@1%2+3,4"),
        ] {
            assert_eq!(shell_word(word), expected);
        }
        assert_eq!(shell_line(["run", "my skills"]), "run 'my skills'");
    }
}
