//! Words of a command line, quoted for a POSIX shell.

/// Quotes a word for a POSIX shell, if it needs quotes.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Formats words as a command line for a POSIX shell.
pub fn shell_line(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
